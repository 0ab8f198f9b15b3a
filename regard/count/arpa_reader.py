"""An ARPA file made into a trie and its numbers; what is wrong with one is told with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
import numpy.typing as npt

from regard.count.arpa import BOS_NAME, EOS_NAME, LOG10_ZERO, UNK_NAME, unescape
from regard.count.counts import EOS, NONE, Floats, Index
from regard.count.estimate import Estimate
from regard.count.trie import Trie
from regard.errors import RegardError
from regard.untrusted.unpacking import open_bytes

BLOCK = 1 << 12  # lines parsed at a time
_SIZE = re.compile(rb"ngram\s+(\d{1,18})\s*=\s*(\d{1,18})")
MAX_ORDER = 64  # longer n-grams do not fit the numbers they are sorted by
MAX_LINE = 2**16  # bytes; an n-gram of a few words has a hundred
MAX_BLOCK = 2**22  # bytes parsed at a time: every two of them may be a field, which is an object of some forty
N_AT_ONCE = 64  # lines that are read before their bytes are counted

Contents = tuple[Trie, Estimate, list[str], int | None]  # ..., the word of each id, the id of <unk>


def read_arpa(path: Path, adds_unk: bool = False) -> Contents:
    """What an ARPA file holds, packed by gzip or not.

    Ids follow the order of the 1-grams, except that `</s>` is 0, `<unk>` 1, and `<s>` comes after all others. The
    context of every n-gram must be in the file too, for that is what a prefix trie can hold; its suffix need not be.
    """
    try:
        with open_bytes(path, str(path), MAX_LINE, by_content=True) as file:
            return _read(Lines(path, file), adds_unk)
    except FileNotFoundError:
        raise RegardError(f"There is no file {path}; give the path of an ARPA file.") from None


def _read(lines: Lines, adds_unk: bool) -> Contents:
    sizes = read_sizes(lines)
    first_line = lines.n_read + 1
    blocks = list(read_blocks(lines, 1, sizes[0], len(sizes)))
    names = [name for block in blocks for name in block.words[0]]
    if adds_unk and UNK_NAME.encode() not in names:
        names.append(UNK_NAME.encode())
        blocks.append(Block(lines.n_read, np.array([-np.inf]), [[names[-1]]], np.zeros(1)))
    ids = _number(lines, names)
    row_of_id = _sort_rows(lines, first_line, np.array([ids[name] for name in names], np.int64))
    words = _decode_words(lines, first_line, names, row_of_id[:-1])
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
        row_of_key = _sort_rows(lines, first_line, all_keys)
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


def _decode_words(lines: Lines, first_line: int, names: list[bytes], rows: Index) -> list[str]:
    words: list[str] = []
    lines_of: dict[str, int] = {}
    for row in rows.tolist():
        try:
            word = unescape(names[row].decode())
            word.encode()
        except UnicodeDecodeError:
            lines.refuse(first_line + row, f"{show(names[row])} is not UTF-8")
        except (ValueError, OverflowError):  # UnicodeEncodeError for half a pair of surrogates
            lines.refuse(first_line + row, f"{show(names[row])} stands for no character of Unicode")
        is_special = names[row] in (EOS_NAME.encode(), UNK_NAME.encode())
        if not is_special and lines_of.setdefault(word, row) != row:
            lines.refuse(first_line + row, f"the same word as on line {first_line + lines_of[word]}")
        words.append(word)
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


def _sort_rows(lines: Lines, first_line: int, keys: Index) -> Index:
    """The rows in the order of their keys, which must differ."""
    rows = np.argsort(keys, kind="stable")
    again = np.flatnonzero(np.diff(keys[rows]) == 0)
    if len(again):
        earlier, later = rows[again[0]], rows[again[0] + 1]
        lines.refuse(first_line + int(later), f"the same n-gram as on line {first_line + int(earlier)}")
    return rows


class Lines:
    """The lines of a file, counted."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self.file, self.n_read = path, file, 0

    def take(self, n: int) -> list[bytes]:
        """The next n lines, fewer where the file ends or where they have many bytes."""
        taken: list[bytes] = []
        n_bytes = 0
        while len(taken) < n and n_bytes < MAX_BLOCK:
            some = list(islice(self.file, min(N_AT_ONCE, n - len(taken))))
            if not some:
                break
            taken += some
            n_bytes += sum(map(len, some))
        self.n_read += len(taken)
        return taken

    def take_one(self, wanted: str) -> bytes:
        """The next line, without the white space around it; the end of the file is an error."""
        taken = self.take(1)
        if not taken:
            self.refuse(self.n_read, f"the file ends here, before {wanted}")
        return taken[0].strip()

    def expect(self, marker: str, otherwise: str) -> None:
        """Pass empty lines and then `marker`."""
        while (line := self.take_one(f"'{marker}'")) != marker.encode():
            if line:
                self.refuse(self.n_read, f"expected '{marker}', found {show(line)}: {otherwise}")

    def refuse(self, number: int, why: str) -> NoReturn:
        raise RegardError(f"{self.path}, line {number}: {why}. Write or fetch this ARPA file again.")


def show(text: bytes) -> str:
    return f"'{' '.join(text.decode(errors='replace').split())[:60]}'"


def read_sizes(lines: Lines) -> list[int]:
    r"""How many n-grams of each order are promised, up to the marker of the 1-grams; `\data\` may follow a comment."""
    while lines.take_one("'\\data\\'") != b"\\data\\":
        pass
    sizes: list[int] = []
    while (line := lines.take_one("'\\1-grams:'")) != b"\\1-grams:":
        size = _SIZE.fullmatch(line)
        if size and int(size[1]) == len(sizes) + 1 <= MAX_ORDER:
            sizes.append(int(size[2]))
        elif line:
            lines.refuse(lines.n_read, f"expected 'ngram {len(sizes) + 1}=COUNT', found {show(line)}")
    if not sizes:
        lines.refuse(lines.n_read, "expected 'ngram 1=COUNT' before the 1-grams, found nothing")
    return sizes


@dataclass(frozen=True)
class Block:
    """Some lines of one order, by column."""

    first_line: int
    log_probs: Floats  # nats
    words: list[list[bytes]]  # n columns
    log_backoffs: Floats  # nats


def read_blocks(lines: Lines, n: int, size: int, order: int) -> Iterator[Block]:
    """The `size` n-grams of order n, a block at a time."""
    widths_allowed = [n + 1] if n == order else [n + 1, n + 2]
    while size:
        first_line = lines.n_read + 1
        taken = lines.take(min(size, BLOCK))
        fields, firsts, widths = _split(taken)
        is_bad = ~np.isin(widths, widths_allowed)
        if not taken or is_bad.any():
            at = int(np.argmax(is_bad)) if taken else 0
            _refuse_line(lines, first_line + at, taken[at : at + 1], n, size - at, widths_allowed)
        log_probs = fields[firsts].tolist()
        words = [fields[firsts + column].tolist() for column in range(1, n + 1)]
        log_backoffs = np.full(len(taken), b"0", object)
        log_backoffs[widths == n + 2] = fields[(firsts + n + 1)[widths == n + 2]]
        yield Block(
            first_line,
            _nats(lines, first_line, log_probs, at_most=0.0),
            words,
            _nats(lines, first_line, log_backoffs.tolist(), at_most=np.inf),
        )
        size -= len(taken)


def _split(taken: list[bytes]) -> tuple[npt.NDArray[np.object_], Index, Index]:
    """All fields, the index of each line's first field, and how many fields each line has.

    One split for the whole block and a count by numpy; a split a line took twice as long.
    """
    text = b"".join(taken)
    characters = np.frombuffer(text, np.uint8)
    is_field = (characters != ord(" ")) & (
        (characters < ord("\t")) | (characters > ord("\r"))
    )  # what split() splits at
    is_field[1:] &= ~is_field[:-1]  # only where a field begins
    line_ends = np.cumsum([0, *map(len, taken)])
    widths = np.add.reduceat(is_field, line_ends[:-1], dtype=np.int64) if taken else np.zeros(0, np.int64)
    return np.array(text.split(), object), np.cumsum(widths) - widths, widths


def _refuse_line(lines: Lines, number: int, line: list[bytes], n: int, n_missing: int, allowed: list[int]) -> NoReturn:
    missing = f"{n_missing} {n}-grams before all that \\data\\ promises"
    if not line:
        lines.refuse(lines.n_read, f"the file ends here, {missing}")
    if not line[0].strip() or line[0].startswith(b"\\"):
        lines.refuse(number, f"the {n}-grams end here, {missing}")
    wanted = f"a number, {n} words" + (" and perhaps a number" if n + 2 in allowed else "")
    lines.refuse(number, f"expected {wanted}, found {show(line[0].strip())}")


def _nats(lines: Lines, first_line: int, column: list[bytes], at_most: float) -> Floats:
    """Decimal logarithms as natural ones; -99 and below mean the logarithm of zero."""
    try:
        log10 = np.array(list(map(float, column)))
    except ValueError:
        at = next(i for i, text in enumerate(column) if not _is_number(text))
        lines.refuse(first_line + at, f"{show(column[at])} is no number")
    if not np.all(log10 <= at_most) or np.isposinf(log10).any():  # NaN compares false
        at = int(np.argmin((log10 <= at_most) & (log10 < np.inf)))
        lines.refuse(first_line + at, f"{show(column[at])} is no logarithm of a probability or back-off weight")
    return np.where(log10 <= LOG10_ZERO, -np.inf, log10 * np.log(10))


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
