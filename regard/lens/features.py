"""Features of a text that a reader can see, one number a character: what a unit of a model may be found to follow.

Those of program text (comments, docstrings, `if`, brackets, indentation) are read by a few rules that suit Python and
languages with braces; on prose they rest at zero, and a feature that rests is never searched for.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MIN_CHANGES = 4
"""A feature varies on a text where its value changes so often, or more."""

_SPANS = re.compile(
    r'(?P<docstring>"""[\s\S]*?(?:"""|\Z)|\'\'\'[\s\S]*?(?:\'\'\'|\Z))'
    r"|(?P<comment>(?:^|(?<=\s))(?:\#|//)[^\n]*|/\*[\s\S]*?(?:\*/|\Z))"
    r'|(?P<quotes>"(?:\\.|[^"\n\\]|\n(?!\s*\n)){0,500}"|(?<!\w)\'(?:\\.|[^\'\n\\]){0,200}\'(?!\w)'
    r"|``[^`]{1,400}(?:''|``)|“[^”]{1,600}”|«[^»]{1,600}»)",
    re.MULTILINE,
)
_IF = re.compile(r"^([ \t]*)(?:\}\s*)?(?:if|elif|else if)\b[^\n]*(?::[ \t]*(?:\#[^\n]*)?|[{(][ \t]*)$", re.MULTILINE)


def position_in_line(text: str) -> Array:
    """How far from the start of the line, in characters, up to 100."""
    return np.minimum(_since(text, lambda c: c == "\n"), 100.0)


def position_in_sentence(text: str) -> Array:
    """How far from the last full stop, up to 200 characters."""
    return np.minimum(_since(text, lambda c: c in ".!?"), 200.0)


def position_in_word(text: str) -> Array:
    """How far from the last white space, up to 12 characters."""
    return np.minimum(_since(text, str.isspace), 12.0)


def inside_quotes(text: str) -> Array:
    """1 between quotation marks, from the first to before the last; 0 outside, in comments and in docstrings."""
    return _mark(text, "quotes", n_last=1)


def inside_comments(text: str) -> Array:
    """1 from # or // to the end of the line, and between /* and */.

    >>> inside_comments("a  # b").tolist()
    [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    """
    return _mark(text, "comment")


def inside_docstring(text: str) -> Array:
    """1 between three quotation marks and the next three."""
    return _mark(text, "docstring")


def bracket_depth(text: str) -> Array:
    """How many brackets are open, up to 4; a blank line closes all.

    >>> bracket_depth("a(b[c])").tolist()
    [0.0, 1.0, 1.0, 2.0, 2.0, 1.0, 0.0]
    """
    values, depth = np.zeros(len(text)), 0
    for i, c in enumerate(text):
        depth = depth + 1 if c in "([{" else depth - 1 if c in ")]}" else depth
        depth = 0 if text[i - 1 : i + 1] == "\n\n" else min(max(depth, 0), 4)
        values[i] = depth
    return values


def indentation(text: str) -> Array:
    """How far the line is indented, up to 24 columns; a tab counts 4."""
    values = []
    for line in text.split("\n"):
        blank = line[: len(line) - len(line.lstrip(" \t"))]
        values += [float(min(len(blank) + 3 * blank.count("\t"), 24))] * (len(line) + 1)
    return np.array(values[: len(text)])


def inside_if(text: str) -> Array:
    """1 in the line of an `if` or `elif` that ends in a colon or an opening bracket, and in the lines indented below.

    >>> inside_if("if x:\\n  y\\nz\\n").tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    """
    values = np.zeros(len(text))
    for match in _IF.finditer(text):
        end = match.end() + 1
        while end < len(text):
            stop = text.find("\n", end)
            stop = len(text) if stop < 0 else stop
            line = text[end:stop]
            if line.strip() and len(line) - len(line.lstrip()) <= len(match[1]):
                break
            end = stop + 1
        values[match.start(1) : end] = 1.0
    return values


def capitals(text: str) -> Array:
    """1 where the character is a capital letter."""
    return np.array([float(c.isupper()) for c in text])


def digits(text: str) -> Array:
    """1 where the character is a digit."""
    return np.array([float(c.isdigit()) for c in text])


FEATURES: dict[str, Callable[[str], Array]] = {
    "position in the line": position_in_line,
    "inside quotes": inside_quotes,
    "inside comments": inside_comments,
    "inside a docstring": inside_docstring,
    "inside an if": inside_if,
    "bracket depth": bracket_depth,
    "indentation": indentation,
    "position in the sentence": position_in_sentence,
    "position in the word": position_in_word,
    "capital letters": capitals,
    "digits": digits,
}


def varies(values: Array) -> bool:
    """Whether a feature changes often enough on a text to be followed or not."""
    return int((np.diff(values) != 0).sum()) >= MIN_CHANGES


def choose_varied(values: Array, text: str, n_chars: int, first: int = 0) -> tuple[int, int]:
    """[a, b) of the stretch of about n_chars characters, from `first` on, on which the feature varies the most.

    The spread of the feature decides, of stretches that begin after white space; of two alike, the earlier.
    """
    n = min(n_chars, len(text) - first)
    starts = [a for a in range(first, len(text) - n + 1, max(1, n // 8)) if a == first or text[a - 1].isspace()]
    line_ends = [m.end() for m in re.finditer(r"\n", text[first : len(text) - n])]
    starts += [first + end for end in line_ends[:: max(1, len(line_ends) // 2000)]]
    one, two = (np.concatenate([[0.0], np.cumsum(part)]) for part in (values, values**2))
    at = np.unique(np.array([first, *starts]))
    spread = (two[at + n] - two[at]) / n - ((one[at + n] - one[at]) / n) ** 2
    begin = int(at[int(np.argmax(spread.round(9)))])
    return begin, begin + n


def _mark(text: str, kind: str, n_last: int = 0) -> Array:
    """1 inside the spans of a kind, without their last so many characters."""
    values = np.zeros(len(text))
    for match in _SPANS.finditer(text):
        if match.lastgroup == kind:
            values[match.start() : match.end() - n_last] = 1.0
    return values


def _since(text: str, is_mark: Callable[[str], bool]) -> Array:
    """Characters since the last mark, the mark itself counting 0."""
    values, n = np.zeros(len(text)), 0
    for i, c in enumerate(text):
        n = 0 if is_mark(c) else n + 1
        values[i] = n
    return values
