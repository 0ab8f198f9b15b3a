"""Where a text may be cut without changing its tokens, and its words.

Each of our tokenizers puts a token boundary wherever white space follows something else. So a text cut just before
such white space gives, piece by piece, the ids of the whole; and a *unit*, the white space and the word after it, has
the same ids wherever it stands, which is what makes them worth remembering.
"""

from __future__ import annotations

import re

import numpy as np

# White space as Unicode and the `tokenizers` library see it. Python's own idea (str.split, \s) also takes the
# separators U+001C to U+001F, which the library reads as ordinary characters.
SPACES = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WORD = re.compile(f"[^{SPACES}]+")
_UNIT = re.compile(f"[{SPACES}]*[^{SPACES}]+|[{SPACES}]+")
_PYTHON_ONLY = re.compile("[\x1c-\x1f]")

# BERT's normaliser removes control characters before it looks for white space, so these join what they stand between.
_BERT_WORD = re.compile(f"[^{SPACES.replace(chr(0x85), '')}]+".replace("\t-\r", "\t\n\r"))
_NOT_BERT_SPACE = re.compile("[\x0b\x0c\x1c-\x1f\x85]")

_ASCII_SPACE = np.zeros(256, dtype=np.bool_)
_ASCII_SPACE[[9, 10, 11, 12, 13, 32]] = True


def split_words(text: str) -> list[str]:
    """White-space separated words.

    >>> split_words(" the  cat\\n")
    ['the', 'cat']
    """
    return _WORD.findall(text) if _PYTHON_ONLY.search(text) else text.split()


def split_bert_words(text: str) -> list[str]:
    """Words as BERT's pre-tokenizer sees them before it splits off punctuation."""
    return _BERT_WORD.findall(text) if _NOT_BERT_SPACE.search(text) else text.split()


def split_units(text: str) -> list[str]:
    """Words, each with the white space before it; nothing is left out.

    >>> split_units("a  b\\n\\nc ")
    ['a', '  b', '\\n\\nc', ' ']
    """
    return _UNIT.findall(text)


def count_words(utf8: bytes) -> int:
    """Words separated by ASCII white space, as KenLM counts them.

    >>> count_words(b" the  cat\\nsat")
    3
    """
    is_space = _ASCII_SPACE[np.frombuffer(utf8, dtype=np.uint8)]
    if not len(is_space):
        return 0
    return int(np.count_nonzero(is_space[:-1] & ~is_space[1:])) + (not is_space[0])


def last_cut(text: str) -> int:
    """The last place where `text` can be cut without changing its tokens, a line end if there is one; 0: nowhere.

    >>> last_cut("one two\\nthree four")
    7
    >>> last_cut("one  two"), last_cut("one")
    (3, 0)
    """
    for space in ("\n", " "):
        end = len(text)
        while (i := text.rfind(space, 1, end)) > 0:
            end = len(text[:i].rstrip(" \t\r\n"))  # the cut comes before a run of white space, never inside it
            if end > 0 and not text[end - 1].isspace():
                return end
    return 0
