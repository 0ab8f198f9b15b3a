"""Word vectors as files of other programs.

word2vec   text: a line "WORDS WIDTH", then a word and its numbers a line; fastText's .vec is the same
binary     word2vec's: that line, then a word, a space and its numbers as 32-bit floats, one after the other
glove      text without the first line
"""

from __future__ import annotations

import io
import math
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from regard.errors import RegardError, suggest_path
from regard.files import write_atomically
from regard.models.word_vectors import Matrix, WordVectors
from regard.untrusted.unpacking import open_bytes
from regard.untrusted.values import make_printable

FORMATS = ("word2vec", "binary", "glove")
SUFFIXES = {".bin": "binary", ".vec": "word2vec", ".txt": "glove"}
MAX_ROW = 2**22  # bytes of a line of text
MAX_WIDTH = 100_000  # numbers of a word
READ = 2**22  # bytes at a time
MAX_WORDS = 2**22  # each takes Python some hundred bytes, and a line of text as long as anybody waits
MAX_WORD = 1000  # bytes; a longer stretch without a space is no word of a binary file


def read_vectors(path: Path) -> WordVectors:
    """Read a file of word vectors of any of these formats, which its beginning tells; it may be gzipped."""
    if not path.is_file():
        raise RegardError(f"There is no file of word vectors '{path}'.{suggest_path(path)}")
    with open_bytes(path, str(path), by_content=True) as file:
        first = file.readline(1 << 20)
        header = _parse_header(first)
        if header is None:
            return _read_text(path, _lines(first, file), None)
        beginning = file.read(1 << 16)
        rest = _Rejoined(beginning, file)
        if _looks_like_text(beginning, header[1]):
            return _read_text(path, _lines(b"", rest, number=2), header)
        return _read_binary(path, rest, header)


def _parse_header(line: bytes) -> tuple[int, int] | None:
    parts = line.split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        return None
    if any(len(part) > 15 for part in parts) or not 1 <= int(parts[1]) <= MAX_WIDTH:
        raise RegardError(
            f"The first line of these word vectors says {make_printable(line[:60].decode(errors='replace')).strip()}: "
            f"the number of words, and how many numbers each has, from 1 to {MAX_WIDTH:,}."
        )
    return int(parts[0]), int(parts[1])


def _looks_like_text(beginning: bytes, width: int) -> bool:
    """Whether the first row is a word and numbers in writing."""
    line = beginning.split(b"\n", 1)[0]
    try:
        [float(part) for part in line.decode().rstrip().split(" ")[1:]]
    except (UnicodeDecodeError, ValueError):
        return False
    return not beginning or b" " in line[: MAX_WORD + 24 * width]


class _Rejoined(io.RawIOBase):
    """A file whose beginning was read already."""

    def __init__(self, beginning: bytes, file: BinaryIO) -> None:
        self._beginning, self._file = io.BytesIO(beginning), file

    def read(self, size: int = -1) -> bytes:
        found = self._beginning.read(size)
        return found if len(found) == size else found + self._file.read(size - len(found) if size >= 0 else -1)


def _lines(first: bytes, file: BinaryIO | _Rejoined, number: int = 1) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers; `first` is one that was read already."""
    left = first
    while block := file.read(1 << 22):
        *whole, left = (left + block).split(b"\n")
        if len(left) > MAX_ROW:
            raise RegardError(f"Line {number + len(whole)} of these word vectors has more than {MAX_ROW:,} bytes.")
        for line in whole:
            yield number, line
            number += 1
    if left:
        yield number, left


def _read_text(path: Path, lines: Iterator[tuple[int, bytes]], header: tuple[int, int] | None) -> WordVectors:
    words: list[str] = []
    numbers = array("f")  # of all words: an object for each row would take ten times the memory of narrow vectors
    width = None if header is None else header[1]
    for number, line in lines:
        if not line.strip():
            continue
        try:
            text = line.decode().rstrip()
        except UnicodeDecodeError:
            raise RegardError(f"{path}, line {number} is no UTF-8 text; word vectors in text are.") from None
        if width is None:
            width = len(text.split(" ")) - 1
        if len(words) == MAX_WORDS:
            raise _refuse_more(path)
        word, row = _parse_row(path, number, text, width)
        words.append(word)
        numbers.frombytes(row.tobytes())
    if not words:
        raise RegardError(f"'{path}' holds no word vectors: a word and its numbers a line.")
    if header is not None and header[0] != len(words):
        raise RegardError(
            f"The first line of '{path}' says {header[0]:,} words, and {len(words):,} follow. It was cut short, or its "
            "header is wrong: write the right number there."
        )
    return _keep_first(path, words, np.frombuffer(numbers, dtype=np.float32).reshape(len(words), -1))


def _refuse_more(path: Path) -> RegardError:
    return RegardError(
        f"'{path}' has more than {MAX_WORDS:,} words, and no more are read. Keep the most frequent ones: in most files "
        "they come first."
    )


def _parse_row(path: Path, number: int, text: str, width: int) -> tuple[str, Matrix]:
    """A word, which may hold spaces, and its numbers."""
    word, *parts = text.rsplit(" ", width)
    try:
        if len(parts) != width or width == 0:
            raise ValueError
        row = np.array(parts, dtype=np.float32)
    except ValueError:
        n = len(text.split(" ")) - 1
        said = f"{n} numbers" if n != width else "something that is no number"
        raise RegardError(
            f"{path}, line {number} has {said} after its word, and {width} numbers are expected: '{text[:40]}'."
        ) from None
    last = word.rpartition(" ")[2]
    if last != word and _is_number(last):
        raise RegardError(
            f"{path}, line {number} has {len(text.split(' ')) - 1} numbers after its word, and {width} are expected: "
            f"'{text[:40]}'."
        )
    return word, row


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _read_binary(path: Path, file: _Rejoined, header: tuple[int, int]) -> WordVectors:
    """Rows are taken out of a part of the file at a time, so that it is not held beside the numbers."""
    n_words, width = header
    if n_words > MAX_WORDS:
        raise _refuse_more(path)
    rows, words = bytearray(), list[str]()
    data, at, size = file.read(READ), 0, 4 * width
    for i in range(n_words):
        if len(data) - at < MAX_WORD + 1 + size:
            data, at = data[at:] + file.read(READ + size), 0
        space = data.find(b" ", at, at + MAX_WORD)
        end = space + 1 + size
        if space >= 0 and end <= len(data):
            words.append(data[at:space].lstrip(b"\n").decode("utf-8", "replace"))
            rows += data[space + 1 : end]
            at = end
        elif len(data) - at <= MAX_WORD + size:
            raise RegardError(
                f"The first line of '{path}' says {n_words:,} words of {width} numbers, and the file is too short for "
                "that. It was cut short, or its header is wrong."
            )
        else:
            raise RegardError(
                f"'{path}' is damaged at word {i + 1:,} of {n_words:,}: rows of {width} 32-bit numbers are expected. "
                "Is the number in its first line the right one?"
            )
    if not words:
        raise RegardError(f"'{path}' holds no word vectors: its first line says 0 words.")
    if data[at:].strip() or file.read(READ).strip():
        raise RegardError(f"'{path}' goes on after the {n_words:,} words that its first line says. Is that line right?")
    return _keep_first(path, words, np.frombuffer(rows, dtype="<f4").reshape(n_words, width))


def _keep_first(path: Path, words: list[str], matrix: Matrix) -> WordVectors:
    """The words with their vectors; of a word that comes twice, the first row is kept. The rows are moved in place."""
    n_at_once = max(1, READ // max(1, matrix.shape[1]))
    for first in range(0, len(matrix), n_at_once):
        is_finite = np.isfinite(matrix[first : first + n_at_once]).all(axis=1)
        if not is_finite.all():
            word = words[first + int(np.argmin(is_finite))]
            raise RegardError(f"The vector of '{word}' in '{path}' holds something that is no number (NaN or inf).")
    first_of: dict[str, int] = {}
    for i, word in enumerate(words):
        first_of.setdefault(word, i)
    if len(first_of) == len(words):
        return WordVectors(words, matrix)
    kept = np.fromiter(first_of.values(), dtype=np.int64)  # in their order, none before its place
    for first in range(0, len(kept), n_at_once):
        some = kept[first : first + n_at_once]
        matrix[first : first + len(some)] = matrix[some]
    return WordVectors(list(first_of), matrix[: len(kept)])


def write_vectors(vectors: WordVectors, path: Path, form: str | None = None) -> None:
    """Write vectors as `form`, or as the name's ending says: .bin, .vec (word2vec) or .txt (glove).

    Numbers in text have nine digits, which gives the same 32-bit number again.
    """
    form = form or SUFFIXES.get(path.suffix)
    if form not in FORMATS:
        raise RegardError(
            f"The form of '{path}' is not clear: name it .bin (word2vec's binary), .vec (text with a header) or .txt "
            f"(GloVe's), or say which with --format {'|'.join(FORMATS)}."
        )
    marks = " \n\t" if form == "binary" else "\n"
    bad = next((word for word in vectors.words if not word or any(mark in word for mark in marks)), None)
    if bad is not None:
        raise RegardError(f"The word {bad!r} cannot be written as {form}: it is empty or holds white space.")
    write_atomically(path, _writer(vectors, form))


def _writer(vectors: WordVectors, form: str) -> Callable[[Path], None]:
    def write(aside: Path) -> None:
        with open(aside, "wb") as file:
            if form != "glove":
                file.write(f"{len(vectors)} {vectors.width}\n".encode())
            row_form = " ".join(["%.9g"] * vectors.width) + "\n"
            for word, row in zip(vectors.words, vectors.matrix, strict=True):
                numbers = row.astype("<f4").tobytes() + b"\n" if form == "binary" else (row_form % tuple(row)).encode()
                file.write(word.encode() + b" " + numbers)

    return write
