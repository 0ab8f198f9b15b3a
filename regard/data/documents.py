"""What a document is: a record of JSON lines or a table; of text a file, a line, a paragraph, a story or a chapter.

Stories are parted by two blank lines or more. A chapter begins with its heading: after a blank line, a line such as
"CHAPTER IV. The Storm", "Zweites Kapitel", "Chapitre 3" or "XII."; in Markdown, a heading of the first or second level.
Stories and chapters keep every character: blank lines belong to the document before them. Or a table says at which
bytes the documents of a file begin and end.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from regard.data.builtin import BUILTIN
from regard.data.cache import cache_root, content_hash, key_of, make_kind_folder, spool_folder
from regard.data.checksums import crc32_of_fields
from regard.data.config import DataConfig
from regard.data.pieces import (
    Piece,
    cut_file,
    cut_lines,
    cut_paragraphs,
    cut_records,
    join_pieces,
    limit_bytes,
)
from regard.data.reading import BadLine, read_lines, read_text_blocks, read_utf8_blocks
from regard.data.source import TextFile, resolve
from regard.data.split import MIN_DOCUMENTS
from regard.data.tables import Table, read_rows
from regard.errors import RegardError
from regard.files import expand_home, write_atomically
from regard.untrusted.fields import decode_fields
from regard.untrusted.small_files import MAX_NOTE, read_object

FORMAT = 1  # another number: texts are looked at anew for chapters and stories
MAX_HEADING = 2**16  # characters
MIN_CHAPTER = 500  # characters; headings that follow each other sooner are a list of contents
MIN_STORY = 200  # bytes on average; shorter stretches between blank lines are no stories
MAX_PART = 0.25  # of the text; where one document is larger, the others say little
BOUNDARIES = ("start_byte", "end_byte")
PLURALS = {"chapter": "chapters", "story": "stories"}

_CHAPTER = "chapter|chapitre|kapitel|cap[ií]tulo|capitolo|hoofdstuk|глава"
_HEADING = re.compile(
    rf"(?:{_CHAPTER})\s+(?:the\s+)?(?:(?:[ivxlcdm]+|\d+)\b.{{0,80}}|[\w-]+\s*(?:[.:,—–].{{0,80}})?)"
    rf"|(?:\d+\.|\w+)\s+(?:{_CHAPTER})\s*(?:[.:,—–].{{0,80}})?"
    r"|(?-i:[IVXLC]+)\.?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Cut:
    """How files of text are cut into documents, and how many there are."""

    document: str
    n_files: int = 0
    n_documents: int = 0
    """0: not counted, since nothing had to be chosen."""

    def describe(self) -> str:
        """What was chosen, as a sentence; empty where nothing was.

        >>> Cut("chapter", 1, 63).describe()
        '1 file, cut into 63 chapters; data.document: file keeps it whole.'
        """
        if self.document not in PLURALS or not self.n_documents:
            return ""
        files, whole = ("1 file", "it") if self.n_files == 1 else (f"{self.n_files} files", "each")
        kind = PLURALS[self.document]
        return f"{files}, cut into {self.n_documents:,} {kind}; data.document: file keeps {whole} whole."


def read_documents(data: DataConfig, *, cache: Path | None = None) -> Iterator[str]:
    """The documents of `data.train`, whole, one after the other."""
    cache = cache or cache_root()
    # Of the cache's own folders for text on its way, so that the file of a built-in stays; others need no cache.
    has_builtin = any(name in BUILTIN for name in ([data.train] if isinstance(data.train, str) else data.train))
    with spool_folder(cache) if has_builtin else tempfile.TemporaryDirectory() as folder:
        files = resolve(data.train, data, Path(folder), cache)
        document = choose_document(files, data, cache).document
        yield from join_pieces(limit_bytes(read_pieces(files, document, read_boundaries(data)), data.max_bytes))


def read_pieces(
    files: Sequence[TextFile], document: str, boundaries: Sequence[tuple[int, int]] | None = None
) -> Iterator[Piece]:
    """The documents of these files, in pieces; `boundaries` are the first byte and the end of each in the one file."""
    if boundaries is not None:
        yield from _cut_at_bytes(files, boundaries)
        return
    for file in files:
        if file.table is not None:
            yield from _cut_table(file, file.table)
            continue
        blocks = read_text_blocks(file.path, file.name, file.encoding, has_crlf=file.has_crlf)
        if file.field is not None:
            yield from cut_records(blocks, file.field, file.name)
        elif document == "line":
            yield from cut_lines(blocks)
        elif document == "paragraph":
            yield from cut_paragraphs(blocks)
        elif document in PLURALS:
            lines = _lines_with_ends(blocks)
            numbered = _number_stories(lines) if document == "story" else _number_chapters(lines, _is_markdown(file))
            for _, group in groupby(numbered, key=itemgetter(0)):
                yield from cut_file(line for _, line in group)
        else:
            yield from cut_file(blocks)


def _lines_with_ends(blocks: Iterable[str]) -> Iterator[str]:
    """Lines with their line ends; one that is longer than any heading may come in parts, so that none is held whole."""
    rest = ""
    for block in blocks:
        lines = (rest + block).split("\n")
        yield from (f"{line}\n" for line in lines[:-1])
        rest = lines[-1]
        if len(rest) > MAX_HEADING:
            kept = max(len(rest.rstrip()) - 1, 1)  # a character stays, or the line's end would be a blank line
            yield rest[:kept]
            rest = rest[kept:]
    yield rest


def _cut_table(file: TextFile, table: Table) -> Iterator[Piece]:
    """The wanted cell of each row is a document."""
    for number, row in table.rows(read_lines(file.path, file.name, file.encoding)):
        if isinstance(row, BadLine):
            raise RegardError(f"{file.name}, line {number} {row.why}")
        if row and row[0]:
            yield from cut_file([row[0]])


def choose_document(files: Sequence[TextFile], data: DataConfig, cache: Path) -> Cut:
    """What a document is: what the config says; where it says `auto`, chapters or stories if there are enough of them.

    Of 20 files or more, each is a document. What was found in a text is remembered by its content.
    """
    is_open = data.document == "auto" and data.boundaries is None and data.split != "tail"
    if not is_open or len(files) >= MIN_DOCUMENTS or any(file.field is not None for file in files):
        return Cut("file" if data.document == "auto" else data.document)
    key = key_of(FORMAT, [(content_hash(file.path, cache), file.reading, _is_markdown(file)) for file in files])
    note = make_kind_folder(cache, "documents") / f"{key}.json"
    if (kept := open_kept_cut(note)) is not None:
        return kept
    found = _look_for_documents(files)
    write_atomically(note, json.dumps({**asdict(found), "crc32": crc32_of_fields(asdict(found))}).encode())
    return found


def open_kept_cut(note: Path) -> Cut | None:
    """What was found in a text, as a note in the cache says; None where there is none, or it was damaged."""
    try:
        kept = read_object(note, MAX_NOTE)
        is_whole = kept.pop("crc32", None) == crc32_of_fields(kept)
        found = decode_fields(Cut, kept)
    except (OSError, ValueError, RegardError):
        return None
    return found if is_whole and found.document in ("file", *PLURALS) else None


def _look_for_documents(files: Sequence[TextFile]) -> Cut:
    for document, fewest_bytes in (("chapter", MIN_CHAPTER), ("story", MIN_STORY)):
        sizes = [0]
        for piece in read_pieces(files, document):
            sizes[-1] += len(piece.text.encode())
            sizes += [0] * piece.ends
        n_documents, n_bytes = len(sizes) - 1, sum(sizes)
        if n_documents >= MIN_DOCUMENTS and n_bytes >= fewest_bytes * n_documents and max(sizes) <= MAX_PART * n_bytes:
            return Cut(document, len(files), n_documents)
    return Cut("file", len(files), len(files))


def _number_chapters(lines: Iterable[str], is_markdown: bool) -> Iterator[tuple[int, str]]:
    """Every line with the number of its chapter."""
    number, n_characters, is_after_blank, is_code = 0, 0, True, False
    for line in lines:
        text = line.strip()
        is_code ^= is_markdown and text.startswith("```")
        is_heading = is_after_blank and len(text) <= 120 and _HEADING.fullmatch(text) is not None
        if is_heading or (is_markdown and not is_code and line.startswith(("# ", "## "))):
            is_new = n_characters >= MIN_CHAPTER
            number, n_characters = number + is_new, 0 if is_new else n_characters
        n_characters += len(line)
        is_after_blank = not text
        yield number, line


def _number_stories(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Every line with the number of its story."""
    number, n_blank, has_text = 0, 0, False
    for line in lines:
        if line.strip():
            number += n_blank >= 2 and has_text
            n_blank, has_text = 0, True
        else:
            n_blank += 1
        yield number, line


def _is_markdown(file: TextFile) -> bool:
    return not {".md", ".markdown"}.isdisjoint(file.path.suffixes)


def read_boundaries(data: DataConfig) -> list[tuple[int, int]] | None:
    """The first byte and the end of every document, as the table `data.boundaries` says; None where there is none."""
    if data.boundaries is None:
        return None
    name, path = data.boundaries, expand_home(data.boundaries)
    if not path.is_file():
        raise RegardError(f"There is no file '{name}'. data.boundaries is a table with the columns {_columns()}.")
    is_csv = path.suffix == ".csv"
    rows = read_rows(read_lines(path, name), "," if is_csv else "\t", is_csv)
    _, header = next(rows, (0, []))
    if isinstance(header, BadLine) or not set(BOUNDARIES) <= set(header):
        raise RegardError(
            f"{name} needs the columns {_columns()} in its first line, with {'commas' if is_csv else 'tabs'} between "
            f"them, to say where documents begin and end; it has: {header if isinstance(header, list) else header.why}."
        )
    places = [header.index(column) for column in BOUNDARIES]
    found: list[tuple[int, int]] = []
    for number, row in rows:
        if row == []:
            continue
        try:
            start, end = (int(row[place]) for place in places)
        except (ValueError, IndexError):
            raise RegardError(f"{name}, line {number} has no whole numbers as {_columns()}: {row}.") from None
        if not (found[-1][1] if found else 0) <= start < end:
            raise RegardError(
                f"{name}, line {number}: bytes {start} to {end} are no document after the one before. Sort the rows by "
                "start_byte; documents may not overlap or be empty."
            )
        found.append((start, end))
    return found


def _columns() -> str:
    return " and ".join(BOUNDARIES)


def _cut_at_bytes(files: Sequence[TextFile], boundaries: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    """The bytes from one place to another are a document; what lies between documents is left out."""
    if len(files) != 1 or files[0].field is not None:
        raise RegardError(
            f"data.boundaries cuts one text file, and data.train names {len(files)}, or one that is no text. Name one "
            "text file, or leave out data.boundaries."
        )
    file, at, rest = files[0], 0, memoryview(b"")
    blocks = read_utf8_blocks(file.path, file.name)
    for start, end in boundaries:
        parts: list[memoryview] = []
        while at < end:
            rest = rest or memoryview(next(blocks, b""))
            if not rest:
                raise RegardError(
                    f"data.boundaries has a document from byte {start} to {end}, and {file.name} has {at} bytes. Is it "
                    "the table of another text?"
                )
            n = min(len(rest), (start if at < start else end) - at)
            if at >= start:
                parts.append(rest[:n])
            at, rest = at + n, rest[n:]
        try:
            text = b"".join(parts).decode()
        except UnicodeDecodeError:
            raise RegardError(
                f"data.boundaries cuts {file.name} inside a character: no UTF-8 text is from byte {start} to {end}. Is "
                "it the table of another text?"
            ) from None
        text = text.removeprefix("\ufeff")
        yield from cut_file([text.replace("\r\n", "\n") if file.has_crlf else text])
