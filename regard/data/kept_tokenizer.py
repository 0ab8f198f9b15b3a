"""Learned tokenizers in the cache: one that was damaged is learned again."""

from __future__ import annotations

from pathlib import Path

from regard.data.checksums import is_whole, keep_file
from regard.errors import RegardError
from regard.text.tokenizer import Tokenizer


def open_kept_tokenizer(path: Path) -> Tokenizer | None:
    """The tokenizer that was kept as `path`; None where there is none, or it is damaged."""
    try:
        return Tokenizer.load(path) if is_whole(path) else None
    except RegardError:  # it is being removed
        return None


def keep_tokenizer(tokenizer: Tokenizer, path: Path) -> None:
    """Keep a tokenizer as `path`, with a checksum beside it."""
    keep_file(path, tokenizer.hf.to_str(pretty=True).encode())
