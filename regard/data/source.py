"""What the user names, to files of text: paths, folders, globs, standard input, built-in texts, hub sets.

A folder means every file in it and below, in the order of their paths; hidden files and empty ones are left out, and a
file that is not text is an error that names it, because a model trained on half of a folder is worse than a message.
What is no file (standard input, a built-in, a hub set) is written to one first, so that it can be read again: to
split it, to learn a tokenizer, to encode.
"""

from __future__ import annotations

import glob
import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from regard.data.builtin import BUILTIN, builtin_file
from regard.data.config import DataConfig
from regard.data.folders import walk_files
from regard.data.reading import BLOCK, COMPRESSED, UTF8, BadLine, has_windows_line_ends, pick_text
from regard.data.tables import SUFFIXES, Table, open_table
from regard.errors import MissingTextError, RegardError, suggest_path
from regard.files import expand_home, write_atomically

JSONL = (".jsonl", ".ndjson")
HUB = "hub:"
MAX_SPOOL = 2**36  # bytes of standard input or of a pipe


@dataclass(frozen=True)
class TextFile:
    """A file of text: `name` is what the user knows it as; `field` is set where it is JSON lines or a table."""

    path: Path
    name: str
    field: str | None = None
    encoding: str = UTF8
    table: Table | None = None
    has_crlf: bool = False
    """Whether its lines end as those of Windows do; they are read as if they ended in "\\n" alone."""

    @property
    def reading(self) -> Any:
        """How it is read, for the key of what is read: of UTF-8 text and JSON lines the field alone."""
        table = None if self.table is None else [*asdict(self.table).values()]
        if self.encoding == UTF8 and table is None and not self.has_crlf:
            return self.field
        return [self.field, self.encoding, table, self.has_crlf]


def resolve(given: str | Sequence[str], data: DataConfig, spool: Path, cache: Path) -> list[TextFile]:
    """The files that `given` names; what is no file is written into the folder `spool`, built-ins into `cache`."""
    files: list[TextFile] = []
    for name in [given] if isinstance(given, str) else given:
        files += _resolve_one(name, data, spool / f"{len(files)}.txt", cache)
    if not files:
        raise RegardError(f"There is no text in {given}: every file is empty. Give a source that holds some text.")
    return files


def _resolve_one(name: str, data: DataConfig, spool: Path, cache: Path) -> list[TextFile]:
    path = expand_home(name)
    if name == "-":
        return [_as_text_file(_spool_stdin(spool, data.max_bytes), "standard input", data)]
    if name.startswith(HUB):
        return [TextFile(write_hub_rows(name.removeprefix(HUB), str(data.field), spool), name, str(data.field))]
    if path.is_dir():
        return _folder(path, data)
    if path.exists():
        if not path.is_file():
            path = _spool_pipe(path, spool, data.max_bytes)
        if path.stat().st_size == 0:
            raise RegardError(f"{name} is empty. Give a file that holds some text.")
        return [_as_text_file(path, name, data)]
    if name in BUILTIN:
        return [TextFile(builtin_file(name, cache), name, "text")]
    if glob.has_magic(name):
        found = [Path(p) for p in sorted(glob.glob(str(path), recursive=True)) if Path(p).is_file()]
        if not found:
            raise RegardError(f"No file matches '{name}'. In a glob, ** means any number of folders.")
        return [_as_text_file(p, str(p), data) for p in found if p.stat().st_size > 0]
    raise _explain_missing(name, path)


def _folder(folder: Path, data: DataConfig) -> list[TextFile]:
    below = sorted((p.relative_to(folder) for p in walk_files(folder)), key=lambda p: p.as_posix())
    shown = [folder / p for p in below if not any(part.startswith(".") for part in p.parts)]
    if not shown:
        raise RegardError(f"The folder {folder} holds no files (hidden ones are not read). Put text files into it.")
    return [_as_text_file(p, str(p), data) for p in shown if p.stat().st_size > 0]


def _as_text_file(path: Path, name: str, data: DataConfig) -> TextFile:
    stem = path.stem if path.suffix in COMPRESSED else path.name
    suffix = Path(stem).suffix
    named = "jsonl" if suffix in JSONL else SUFFIXES.get(suffix, "text")
    form, field = named if data.format == "auto" else data.format, str(data.field)
    if form == "jsonl":
        return TextFile(path, name, field, data.encoding)
    if form == "text":
        return TextFile(path, name, None, data.encoding, None, has_windows_line_ends(path, name, data.encoding))
    table = open_table(path, name, form, data.encoding, {"data.field": field})
    return TextFile(path, name, field, data.encoding, table)


def _spool_stdin(spool: Path, max_bytes: int | None) -> Path:
    if sys.stdin is None or sys.stdin.isatty():
        raise RegardError("'-' means standard input, and nothing is piped into it. Try: regard ... < my.txt.")
    _copy(sys.stdin.buffer, spool, "Standard input", max_bytes)
    if spool.stat().st_size == 0:
        raise RegardError(
            "Standard input is empty, or was read before: it can be read only once. Pipe some text into it, or save "
            "the text to a file and give its path."
        )
    return spool


def _spool_pipe(path: Path, spool: Path, max_bytes: int | None) -> Path:
    """What a shell makes of <(command): a path that can be read once. A device may have no end, and is no text."""
    if not path.is_fifo():
        raise RegardError(f"'{path}' is a device or a socket, not a file of text. Give a file, a folder or a pipe.")
    with open(path, "rb") as pipe:
        _copy(pipe, spool, str(path), max_bytes)
    return spool


def _copy(source: IO[bytes], spool: Path, name: str, max_bytes: int | None) -> None:
    """Keep what can be read once, which may have no end: of `max_bytes` of text as much as these can take in a file."""
    free = shutil.disk_usage(spool.parent).free
    wanted = None if max_bytes is None else 4 * max_bytes + BLOCK  # four bytes a character, and one block more
    limit = min(MAX_SPOOL, free // 2)

    def write(path: Path) -> None:
        n_bytes = 0
        with open(path, "wb") as file:
            while block := source.read(BLOCK):
                file.write(block)
                n_bytes += len(block)
                if wanted is not None and n_bytes >= wanted:
                    return
                if n_bytes > limit:
                    raise RegardError(
                        f"{name} gives more than {limit / 2**30:,.1f} GB, as much as is kept of what has "
                        "to be read twice. Save it in a file and give that, or set data.max_bytes to read a beginning."
                    )

    write_atomically(spool, write)


def _explain_missing(name: str, path: Path) -> MissingTextError:
    parent = path.parent
    if not parent.is_dir():
        return MissingTextError(f"There is no file '{name}': the folder {parent} does not exist.")
    known = BUILTIN if str(parent) == "." else ()
    return MissingTextError(
        f"There is no file, folder or built-in text '{name}'.{suggest_path(path, known)} "
        f"Built-in: {', '.join(BUILTIN)}; pairs, for models that translate or parse: grammar:en-de and others, which "
        "`regard data` lists."
    )


def write_hub_rows(name: str, field: str, path: Path) -> Path:
    """Write the texts of a named set to `path`, as JSON lines; empty rows are left out."""
    rows = load_rows(name)

    def write(aside: Path) -> None:
        with open(aside, "w", encoding="utf-8") as file:
            for row in rows:
                text = "" if row.get(field, "") is None else pick_text(row, field, "data.field")
                if isinstance(text, BadLine):
                    raise RegardError(f"hub:{name} {text.why}")
                if text:
                    file.write(json.dumps({field: text}, ensure_ascii=False) + "\n")

    write_atomically(path, write)
    if path.stat().st_size == 0:
        raise RegardError(f"hub:{name} has no text in field '{field}'. Set data.field or take another split.")
    return path


def load_rows(name: str) -> Iterable[Mapping[str, Any]]:
    """The rows of OWNER/NAME, OWNER/NAME/CONFIG or NAME/CONFIG, of the split after @ (train where none is named)."""
    try:
        import datasets
    except ImportError:
        raise RegardError(f"hub:{name} needs the package datasets. Install it: pip install 'regard[hub]'.") from None
    base, _, split = name.partition("@")
    parts = base.split("/")
    readings: list[tuple[str, str | None]] = [(base, None)] if len(parts) < 3 else []
    if len(parts) > 1:
        readings.append(("/".join(parts[:-1]), parts[-1]))
    reasons = []
    for dataset, config in readings:
        try:
            rows: Iterable[Mapping[str, Any]] = datasets.load_dataset(dataset, config, split=split or "train")
            return rows
        except Exception as error:  # every kind: not found, no network, no such config or split
            reasons.append(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    raise RegardError(
        f"hub:{name} cannot be loaded ({reasons[0]}). Check the name (hub:OWNER/NAME/CONFIG@SPLIT) and the network, "
        "or give a file."
    )
