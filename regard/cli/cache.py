"""`regard cache`: what is kept of data that were read, how much that is, and how to make room."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from regard.cli.options import AsJson
from regard.cli.terminal import console, plain_table
from regard.data.cache import cache_root, open_kept_hash, remove_abandoned
from regard.data.cache_limit import (
    LIMITED,
    SMALL,
    CacheEntry,
    cache_limit,
    list_entries,
    list_small,
    parse_size,
    remove_all,
    remove_entry,
)
from regard.data.checksums import find_damage, is_whole
from regard.data.documents import open_kept_cut
from regard.data.kept_tokenizer import open_kept_tokenizer
from regard.errors import RegardError
from regard.score.figures import count_text

Clean = Annotated[bool, typer.Option("--clean", help="Remove all that can be made again.")]
To = Annotated[
    str | None,
    typer.Option(
        "--max", help="Remove what was not used for longest, down to this size: 20GB, 500MB (GB if no unit is given)."
    ),
]
_OPEN: dict[str, Callable[[Path], bool]] = {
    "features": lambda path: _open_features(path) is not None,
    "tokenizers": lambda path: open_kept_tokenizer(path) is not None,
    "documents": lambda path: open_kept_cut(path) is not None,
    "hashes": lambda path: open_kept_hash(path) is not None,
    "builtin": is_whole,
}
"""Whether a file that is an entry by itself can be opened and has its checksum, by the kind of entry."""
Whole = Annotated[bool, typer.Option("--check", help="Read every file, and remove what was damaged.")]


def cache(clean: Clean = False, to: To = None, check: Whole = False, as_json: AsJson = False) -> None:
    """Show what is kept of texts, pairs and pictures that were read, and make room.

    It lies in $REGARD_CACHE, or ~/.cache/regard, and may have $REGARD_CACHE_MAX (100GB): beyond that, what was not used
    for longest is removed when something new is kept. Whatever is removed is made again when it is needed.

    Examples:
      regard cache
      regard cache --max 20GB
      regard cache --check
      regard cache --clean
    """
    root = cache_root()
    if not root.is_dir():
        raise RegardError(f"The cache, {root}, cannot be used: it is no folder. Set REGARD_CACHE to another one.")
    for folder in (root, *(root / kind for kind in (*LIMITED, *SMALL))):
        remove_abandoned(folder)
    removed = _remove_damaged([*list_entries(root), *list_small(root)]) if check else 0
    removed += _remove_to(list_entries(root), parse_size(to, "--max")) if to is not None else 0
    removed += remove_all(root) if clean else 0
    entries = list_entries(root)
    sizes = {kind: sum(entry.n_bytes for entry in entries if entry.kind == kind) for kind in LIMITED}
    counts = {kind: sum(entry.kind == kind for entry in entries) for kind in LIMITED}
    if as_json:
        found = {"folder": str(root), "limit": cache_limit(), "removed": removed, "bytes": sizes, "entries": counts}
        print(json.dumps(found))
        return
    table = plain_table("kept", "entries", "bytes", right=("entries", "bytes"))
    for kind in LIMITED:
        table.add_row(kind, f"{counts[kind]:,}", count_text(sizes[kind]))
    console.print(table)
    whole = f"{count_text(sum(sizes.values()))}B of {count_text(cache_limit())}B in {root}"
    done = "" if to is None else f"; reduced to {count_text(parse_size(to, '--max'))}B at most"
    done += f"; removed {count_text(removed)}B" if removed or to is not None else ""
    console.print(Text(f"{whole}{done}."), soft_wrap=True)


def _remove_damaged(entries: list[CacheEntry]) -> int:
    bad = [entry for entry in entries if _is_damaged(entry)]
    for entry in bad:
        remove_entry(entry)
    return sum(entry.n_bytes for entry in bad)


def _open_features(path: Path) -> object:
    from regard.tasks.picture_features import open_kept_features  # lazy: it needs torch, and this verb does not

    return open_kept_features(path)


def _is_damaged(entry: CacheEntry) -> bool:
    if entry.path.is_dir():
        return find_damage(entry.path, None) is not None
    # Beside features lie the notes of their checksums that earlier versions wrote.
    return entry.path.suffix != ".crc32" and not _OPEN[entry.kind](entry.path)


def _remove_to(entries: list[CacheEntry], limit: int) -> int:
    """Remove the least recently used entries until the others have no more than `limit` bytes."""
    excess, removed = sum(entry.n_bytes for entry in entries) - limit, 0
    for entry in entries:
        if removed >= excess:
            break
        remove_entry(entry)
        removed += entry.n_bytes
    return removed
