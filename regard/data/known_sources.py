"""Which data this machine has been told to read. A run folder from elsewhere names any file: a password file, a device.

What a user names on the command line or in a recipe is remembered with the fingerprint that it had; what only the
config.yaml of a run folder names is read if it is remembered, or built in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard.data.builtin import BUILTIN
from regard.data.cache import cache_root, key_of
from regard.errors import RegardError
from regard.files import write_atomically

SOURCES = ("train", "valid", "test", "pictures", "captions", "boundaries")
"""Settings of `data` that name files."""
GRAMMAR = "grammar:"


def remember_sources(data: Mapping[str, Any], fingerprint: str, cache: Path | None = None) -> None:
    """Note that this machine may read what a data section names; `fingerprint` is that of what it holds."""
    with suppress(RegardError, OSError):  # a cache that cannot be written: the user is asked again
        write_atomically(_note(data, fingerprint, cache), b"")


def are_known(data: Mapping[str, Any], fingerprint: str, cache: Path | None = None) -> bool:
    """Whether what a data section names was named by this user before, or comes with Regard."""
    is_builtin = all(
        (name in BUILTIN or name.startswith(GRAMMAR)) and not Path(name).exists() for name in list_sources(data)
    )
    return is_builtin or _note(data, fingerprint, cache).exists()


def list_sources(data: Mapping[str, Any]) -> Iterator[str]:
    """Every name of a file, folder or data set in a data section."""

    def walk(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            for inner in value:
                yield from walk(inner)

    for key in SOURCES:
        yield from walk(data.get(key))


def _note(data: Mapping[str, Any], fingerprint: str, cache: Path | None) -> Path:
    return (cache or cache_root()) / "known" / key_of(fingerprint, list(list_sources(data)))
