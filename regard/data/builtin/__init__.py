"""Text that needs no download: what every Python installation carries.

The text is that of the Python it runs on, so it differs a little between versions; a run's data fingerprint says which
it was.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.data.builtin.python_text import python_docs, python_source
from regard.errors import RegardError
from regard.files import write_atomically

VERSION = 1  # of how the texts are made: another number makes them again


@dataclass(frozen=True)
class Builtin:
    """A named text: what it is, in a line, and its documents."""

    description: str
    documents: Callable[[], Iterator[str]]


BUILTIN: dict[str, Builtin] = {
    "python-docs": Builtin(
        "English prose from Python itself: its language reference, the docstrings of its library, its licence",
        python_docs,
    ),
    "python-source": Builtin("the source code of Python's standard library, without its tests", python_source),
}


def builtin_file(name: str, cache: Path) -> Path:
    """The built-in as a file of JSON lines in the cache, made the first time it is asked for."""
    path = cache / "builtin" / f"{name}-{platform.python_version()}-{VERSION}.jsonl"
    if not path.exists():
        lines = [json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in BUILTIN[name].documents()]
        if not lines:
            raise RegardError(f"This Python carries no text for {name}: its standard library has no source files.")
        write_atomically(path, "".join(lines).encode())
    return path
