"""Values from outside: shown short in errors, and refused where they are deeper, more or longer than any of ours."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterator
from itertools import chain
from typing import Any

MAX_SHOWN = 80  # characters of a value in an error
MAX_DEPTH = 50  # lists and mappings inside each other
MAX_VALUES = 1_000_000  # in one file; what YAML's aliases repeat counts each time
MAX_BITS = 1024  # of a whole number: longer ones are no setting, and slow to print
MAX_PRINTED = 4000  # characters of an error

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A)}
"""Characters by which a text can move a terminal's cursor, rename its window or hide lines; tab and line end stay."""
_CONTROLS |= {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}  # order of reading

_SURROGATE = re.compile("[\ud800-\udfff]")


class _Short(reprlib.Repr):
    """repr() that looks at the beginning of a value only: one of a gigabyte is never written out."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxdict, self.maxlist, self.maxtuple, self.maxset = 3, 4, 6, 6, 6
        self.maxstring = self.maxother = MAX_SHOWN

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if x.bit_length() <= MAX_BITS else f"a whole number of {x.bit_length():,} bits"


def quote(value: Any, limit: int = MAX_SHOWN) -> str:
    """A value as errors print it: as Python writes it, but never longer than `limit` characters.

    >>> quote("two"), quote([1, 2]), quote("a" * 1000, 12)
    ("'two'", '[1, 2]', "'aaaaaaaa...")
    """
    text = _Short().repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def make_printable(text: str, limit: int | None = None) -> str:
    """A text that a terminal shows as it is: characters that command a terminal are written as \\xNN.

    >>> print(make_printable("red: \\x1b[31m end"))
    red: \\x1b[31m end
    """
    if limit is not None and len(text) > limit:
        text = f"{text[: limit - 3]}..."
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_CONTROLS).encode("utf-8", "backslashreplace").decode()


def has_lone_surrogate(value: Any) -> bool:
    """Whether a text in a plain value has half a pair of surrogates, which JSON can spell and UTF-8 cannot.

    Python puts one where a file name or an argument has a byte that is no UTF-8.
    """
    # One for each list or object that is open: a deep value cannot exhaust the stack.
    waiting: list[Iterator[Any]] = [iter((value,))]
    while waiting:
        for one in waiting[-1]:
            if isinstance(one, str):
                if _SURROGATE.search(one) is not None:
                    return True
            elif isinstance(one, dict | list | tuple):
                waiting.append(chain(one, one.values()) if isinstance(one, dict) else iter(one))
                break
        else:
            waiting.pop()
    return False


def make_utf8(text: str) -> str:
    """A text that can be written: what is no text in the name of a file becomes the replacement character.

    >>> make_utf8("few\\udcff.txt")
    'few�.txt'
    """
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def find_excess(value: Any) -> str | None:
    """What is too much in a value that was read, to follow "it has"; None: nothing.

    What is met twice is counted twice, since whoever prints or copies it meets it twice: aliases in YAML can stand for
    a billion values in a hundred bytes.
    """
    waiting, n_values = [(value, 1)], 0
    while waiting:
        one, depth = waiting.pop()
        n_values += 1
        if isinstance(one, int) and one.bit_length() > MAX_BITS:
            return f"a whole number of {one.bit_length():,} bits; at most {MAX_BITS:,} are read"
        if isinstance(one, dict):
            inside: list[Any] = [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set):
            inside = list(one)
        else:
            continue
        if depth > MAX_DEPTH:
            return f"more than {MAX_DEPTH} lists or mappings inside each other"
        if n_values + len(waiting) + len(inside) > MAX_VALUES:
            return f"more than {MAX_VALUES:,} values"
        waiting += [(item, depth + 1) for item in inside]
    return None
