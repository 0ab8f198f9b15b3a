"""Pages and pictures, in one design: comparisons, studies, captions, trees.

`palette.py` gives every model its colour, `shell.py` is the page around all content, `chart.py` draws lines as SVG.
A page is one file that loads nothing; it is made from plain results, and everything that it shows is escaped.
"""
