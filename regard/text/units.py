"""Where a text may be cut without changing its tokens."""

from __future__ import annotations

import re

# White space as Unicode and the `tokenizers` library see it. Python's own idea (str.split, \s) also takes the
# separators U+001C to U+001F, which the library reads as ordinary characters.
SPACES = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_PYTHON_ONLY = re.compile("[\x1c-\x1f]")
_WORD = re.compile(f"[^{SPACES}]+")


def words_of(text: str) -> list[str]:
    """White-space separated words.

    >>> words_of(" the  cat\\n")
    ['the', 'cat']
    """
    return _WORD.findall(text) if _PYTHON_ONLY.search(text) else text.split()
