"""An ARPA file made into a trie and its numbers."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from regard.count.arpa import BOS_NAME, EOS_NAME, UNK_NAME, unescape
from regard.count.arpa_lines import Block, Lines, read_blocks, read_sizes, show
from regard.count.arrays import Floats, Index
from regard.count.counts import EOS, NONE
from regard.count.estimate import Estimate
from regard.count.trie import Trie
from regard.errors import RegardError

_GZIP_MAGIC = b"\x1f\x8b"

Contents = tuple[Trie, Estimate, list[str], int | None]  # ..., the word of each id, the id of <unk>


def read_arpa(path: Path) -> Contents:
    """What an ARPA file holds, packed by gzip or not.

    Ids follow the order of the 1-grams, except that `</s>` is 0, `<unk>` 1, and `<s>` comes after all others. The
    context of every n-gram must be in the file too, for that is what a prefix trie can hold; its suffix need not be.
    """
    try:
        with path.open("rb") as raw:
            is_packed = raw.read(2) == _GZIP_MAGIC
            raw.seek(0)
            return _read(Lines(path, cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if is_packed else raw))
    except FileNotFoundError:
        raise RegardError(f"There is no file {path}; give the path of an ARPA file.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RegardError(f"{path} is no whole gzip file ({error}). Fetch or write it again.") from None


def _read(lines: Lines) -> Contents:
    sizes = read_sizes(lines)
    first_line = lines.n_read + 1
    blocks = list(read_blocks(lines, 1, sizes[0], len(sizes)))
    names = [name for block in blocks for name in block.words[0]]
    ids = _number(lines, names)
    row_of_id = _sorted(lines, first_line, np.array([ids[name] for name in names], np.int64))
    words = _decoded(lines, first_line, names, row_of_id[:-1])
    log_probs, log_backoffs = ([column[row_of_id]] for column in _numbers(blocks))
    log_probs[0][-1] = 0.0  # <s> is given, never predicted
    trie = Trie(len(words), [])
    for n in range(2, len(sizes) + 1):
        lines.expect(f"\\{n}-grams:", f"\\data\\ promises only {sizes[n - 2]} {n - 1}-grams")
        first_line = lines.n_read + 1
        blocks, keys = [], [np.zeros(0, np.int64)]
        for block in read_blocks(lines, n, sizes[n - 1], len(sizes)):
            keys.append(_keys(lines, block, trie, ids))
            blocks.append(Block(block.first_line, block.log_probs, [], block.log_backoffs))  # the words may go
        all_keys = np.concatenate(keys)
        row_of_key = _sorted(lines, first_line, all_keys)
        trie.keys.append(all_keys[row_of_key])
        for columns, column in zip((log_probs, log_backoffs), _numbers(blocks), strict=True):
            columns.append(column[row_of_key])
    lines.expect("\\end\\", f"\\data\\ promises only {sizes[-1]} {len(sizes)}-grams")
    return trie, Estimate(log_probs, log_backoffs[:-1]), words, ids.get(UNK_NAME.encode())


def _numbers(blocks: list[Block]) -> tuple[Floats, Floats]:
    empty = np.zeros(0)
    return (
        np.concatenate([empty, *(block.log_probs for block in blocks)]),
        np.concatenate([empty, *(block.log_backoffs for block in blocks)]),
    )


def _number(lines: Lines, names: list[bytes]) -> dict[bytes, int]:
    """The id of each word: `</s>` is 0, `<unk>` (where there is one) 1, `<s>` last, the others as they come."""
    bos, eos = BOS_NAME.encode(), EOS_NAME.encode()
    for special in (bos, eos):
        if special not in names:
            lines.refuse(lines.n_read, f"the 1-grams end without {special.decode()}, which every model needs")
    ids = {eos: EOS}
    if UNK_NAME.encode() in names:
        ids[UNK_NAME.encode()] = len(ids)
    for name in names:
        if name != bos:
            ids.setdefault(name, len(ids))
    ids[bos] = len(ids)
    return ids


def _decoded(lines: Lines, first_line: int, names: list[bytes], rows: Index) -> list[str]:
    words = []
    for row in rows:
        try:
            words.append(unescape(names[row].decode()))
        except UnicodeDecodeError:
            lines.refuse(first_line + int(row), f"{show(names[row])} is not UTF-8")
    return words


def _keys(lines: Lines, block: Block, trie: Trie, ids: Mapping[bytes, int]) -> Index:
    """prefix (V + 1) + word of each n-gram of a block, with the prefix looked up in the level below."""
    try:
        columns = [np.array([*map(ids.__getitem__, column)], np.int64) for column in block.words]
    except KeyError as error:
        at = min(column.index(error.args[0]) for column in block.words if error.args[0] in column)
        lines.refuse(block.first_line + at, f"{show(error.args[0])} is not among the 1-grams")
    prefix = columns[0]
    for n, column in enumerate(columns[1:-1], start=2):
        prefix = trie.find(n, prefix, column)
    if NONE in prefix:
        at = int(np.argmax(prefix == NONE))
        context = b" ".join(column[at] for column in block.words[:-1])
        lines.refuse(block.first_line + at, f"its context {show(context)} is not among the {len(columns) - 1}-grams")
    if trie.base - 1 in columns[-1]:
        lines.refuse(block.first_line + int(np.argmax(columns[-1] == trie.base - 1)), f"{BOS_NAME} is never predicted")
    return trie.key(prefix, columns[-1])


def _sorted(lines: Lines, first_line: int, keys: Index) -> Index:
    """The rows in the order of their keys, which must differ."""
    rows = np.argsort(keys, kind="stable")
    again = np.flatnonzero(np.diff(keys[rows]) == 0)
    if len(again):
        earlier, later = rows[again[0]], rows[again[0] + 1]
        lines.refuse(first_line + int(later), f"the same n-gram as on line {first_line + int(earlier)}")
    return rows
