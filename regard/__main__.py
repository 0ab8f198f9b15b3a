"""`python -m regard`: the command line where the package is only a folder and nothing is installed."""

from regard.cli import main

main()
