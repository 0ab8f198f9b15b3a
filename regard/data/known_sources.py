"""Which data this machine has been told to read. A run folder from elsewhere names any file: a password file, a device.

What a user names on the command line or in a recipe is remembered with the fingerprint that it had; what only the
config.yaml of a run folder names is read if it is remembered, or built in, or if the user said so (`regard check
--trust`): until it was read, it may hold other data than the run was begun with. The same holds of what a run begins
with, word vectors and the weights of another run, which is read again where a run is resumed that has no state yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard.data.builtin import BUILTIN
from regard.data.cache import cache_root, key_of, make_kind_folder
from regard.errors import RegardError
from regard.files import write_atomically

SOURCES = ("train", "valid", "test", "pictures", "captions", "boundaries")
"""Settings of `data` that name files."""
STARTS = ("start_from", "encoder_from", "decoder_from")
"""Keys of a config that name a folder whose weights a run begins with."""
GRAMMAR = "grammar:"
UNREAD = b"may be read; not read yet\n"
"""What a note holds until the data that it is about were read; then it is empty."""


def remember_sources(data: Mapping[str, Any], fingerprint: str, cache: Path | None = None) -> None:
    """Note that this machine may read what a data section names; `fingerprint` is that of what it holds."""
    with suppress(RegardError, OSError):  # a cache that cannot be written: the user is asked again
        write_atomically(_note(list_sources(data), fingerprint, cache), b"")


def trust_sources(data: Mapping[str, Any], fingerprint: str, cache: Path | None = None) -> None:
    """Note that this machine may read what a data section names, and has not compared it with the fingerprint yet."""
    with suppress(RegardError, OSError):
        if not (note := _note(list_sources(data), fingerprint, cache)).exists():
            write_atomically(note, UNREAD)


def is_unread(data: Mapping[str, Any], fingerprint: str, cache: Path | None = None) -> bool:
    """Whether what a data section names may be read, and was never seen to be the data of this fingerprint."""
    try:
        return _note(list_sources(data), fingerprint, cache).read_bytes() == UNREAD
    except OSError:
        return False


def remember_starts(config: Mapping[str, Any], fingerprint: str, cache: Path | None = None) -> None:
    """Note that this machine may read what a plain config begins with; `fingerprint` is that of its data."""
    if any(list_starts(config)):
        with suppress(RegardError, OSError):
            write_atomically(_note(("starts", *list_starts(config)), fingerprint, cache), b"")


def are_known(data: Mapping[str, Any], fingerprint: str, cache: Path | None = None) -> bool:
    """Whether what a data section names was named by this user before, or comes with Regard."""
    is_builtin = all(
        (name in BUILTIN or name.startswith(GRAMMAR)) and not Path(name).exists() for name in list_sources(data)
    )
    return is_builtin or _note(list_sources(data), fingerprint, cache).exists()


def are_starts_known(config: Mapping[str, Any], fingerprint: str, cache: Path | None = None) -> bool:
    """Whether what a plain config begins with was named by this user before, or there is nothing to read."""
    starts = ("starts", *list_starts(config))
    return len(starts) == 1 or _note(starts, fingerprint, cache).exists()


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


def list_starts(config: Mapping[str, Any]) -> Iterator[str]:
    """Every file and folder beside its data that a run of a plain config reads before its first update."""
    train = config.get("train")
    yield from filter(None, (*map(config.get, STARTS), train.get("vectors") if isinstance(train, Mapping) else None))


def _note(names: Iterable[str], fingerprint: str, cache: Path | None) -> Path:
    return make_kind_folder(cache or cache_root(), "known") / key_of(fingerprint, list(names))
