"""Learned tokenizers in the cache, each with its hash beside it: one that was damaged is learned again."""

from __future__ import annotations

from pathlib import Path

from regard.errors import RegardError
from regard.files import write_atomically
from regard.text.tokenizer import Tokenizer


def open_kept_tokenizer(path: Path) -> Tokenizer | None:
    """The tokenizer that was kept as `path`; None where there is none, or it is damaged."""
    try:
        found = Tokenizer.load(path)
    except RegardError:
        return None
    try:
        return found if _hash_beside(path).read_bytes() == found.hash.encode() else None
    except OSError:  # version 0.1.0 did not write it, or it is being removed
        return found


def keep_tokenizer(tokenizer: Tokenizer, path: Path) -> None:
    """Keep a tokenizer as `path`; its hash first, so that none is ever without it."""
    write_atomically(_hash_beside(path), tokenizer.hash.encode())
    tokenizer.save(path)


def _hash_beside(path: Path) -> Path:
    return path.with_suffix(".sha256")
