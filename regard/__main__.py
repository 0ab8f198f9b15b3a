"""Where `regard` and `python -m regard` begin: Ctrl-C ends in a word also while the rest is still being imported."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        # lazy: it takes a quarter of a second, in which Ctrl-C may be pressed
        from regard.cli import main as run

        run()
    except KeyboardInterrupt:
        print("\nregard: interrupted.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
