"""What the user names, to pairs of texts with the file and line of every fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from regard.data.builtin import BUILTIN
from regard.data.config import DataConfig
from regard.data.pair_grammar import grammar_file, is_grammar
from regard.data.pairs import TextPair
from regard.data.pairs_config import PairPart, PairsConfig
from regard.data.reading import MAX_LINE, BadLine, parse_record, pick_text, read_lines, too_long
from regard.data.source import HUB, TextFile, resolve
from regard.data.tables import Table, open_table
from regard.data.tree_pairs import read_tree_pairs
from regard.errors import RegardError
from regard.files import expand_home

TABLES = ("tsv", "csv")


@dataclass(frozen=True)
class PairFiles:
    """A part whose names have become files: (source, target) for aligned files, else one file with both sides."""

    files: tuple[TextFile, ...]
    form: str
    tag: str | None
    table: Table | None = None


def resolve_pairs(data: PairsConfig, split: str, spool: Path, cache: Path) -> list[PairFiles]:
    """The files of a split; folders and globs stand for all they hold, and what is piped in for a file."""
    found: list[PairFiles] = []
    for i, part in enumerate(data.parts(split)):
        sides = []
        for j, name in enumerate(part.names):
            folder = spool / f"{i}-{j}"
            folder.mkdir()
            sides.append(_files_of(_trees_in(name) if part.form == "trees" else name, data.encoding, folder, cache))
        if len({len(files) for files in sides}) > 1:
            (source, target), (n_source, n_target) = part.names, map(len, sides)
            files = "file" if n_source == 1 else "files"
            raise RegardError(
                f"Aligned files come in twos, and '{source}' stands for {n_source:,} {files} and '{target}' for "
                f"{n_target:,}. Name the same number of each."
            )
        found += [_open_part(files, part, data) for files in zip(*sides, strict=True)]
    return found


def _open_part(files: tuple[TextFile, ...], part: PairPart, data: PairsConfig) -> PairFiles:
    if part.form not in TABLES:
        return PairFiles(files, part.form, part.tag)
    wanted = {"data.source_field": str(data.source_field), "data.target_field": str(data.target_field)}
    defaults = [data.help_of(name).default for name in ("source_field", "target_field")]
    file = files[0]
    return PairFiles(
        files, part.form, part.tag, open_table(file.path, file.name, part.form, file.encoding, wanted, defaults)
    )


def _trees_in(name: str) -> str:
    """A treebank's folder holds other files too, such as one that says what it is."""
    return f"{name.rstrip('/')}/**/*.mrg" if expand_home(name).is_dir() else name


def _files_of(name: str, encoding: str, spool: Path, cache: Path) -> list[TextFile]:
    """Files as for plain text: paths, folders, globs, '-'; and what the built-in grammar writes."""
    if is_grammar(name):
        return [TextFile(grammar_file(name, cache), name)]
    if name.startswith(HUB) or (name in BUILTIN and not Path(name).exists()):
        raise RegardError(f"Pairs are read from files, not from {name}. Write the set to a TSV or JSONL file first.")
    return resolve(name, DataConfig(train=name, format="text", encoding=encoding), spool, cache)


class PairReader:
    """Reads parts one after the other; `skipped` counts the lines that were left out, by kind."""

    def __init__(self, data: PairsConfig) -> None:
        self._data = data
        self.skipped: Counter[str] = Counter()

    def pairs(self, part: PairFiles) -> Iterator[TextPair]:
        """The pair of every line that can be used; the first that cannot is an error unless `skips_bad`."""
        if part.table is not None and part.table.has_header:
            self.skipped["header"] += 1
        for place, pair in self._read(part):
            checked = pair if isinstance(pair, BadLine) else _check_sides(pair)
            if not isinstance(checked, BadLine):
                source, target, word_tags = checked
                yield TextPair(target, source) if self._data.is_reversed else TextPair(source, target, word_tags)
            elif self._data.skips_bad:
                self.skipped[checked.kind] += 1
            else:
                raise RegardError(
                    f"{place} {checked.why} To leave out such lines and count them: --skip-bad (data.skips_bad)."
                )

    def _read(self, part: PairFiles) -> Iterator[tuple[str, TextPair | BadLine]]:
        """Every pair, or what is wrong with it, and where it stands."""
        if part.form == "files":
            return self._read_aligned(*part.files)
        if part.form == "trees":
            return read_tree_pairs(part.files[0], self._data.tree_words)
        return self._read_records(part.files[0]) if part.table is None else _read_table(part.files[0], part.table)

    def _read_records(self, file: TextFile) -> Iterator[tuple[str, TextPair | BadLine]]:
        source, target = str(self._data.source_field), str(self._data.target_field)
        for number, line in enumerate(read_lines(file.path, file.name, file.encoding), start=1):
            pair = line if isinstance(line, BadLine) else pick_fields(line, source, target)
            yield f"{file.name}, line {number}", pair

    def _read_aligned(self, source: TextFile, target: TextFile) -> Iterator[tuple[str, TextPair | BadLine]]:
        n_source = n_target = 0
        sides = (read_lines(file.path, file.name, file.encoding) for file in (source, target))
        for left, right in zip_longest(*sides):
            n_source += left is not None
            n_target += right is not None
            if n_source != n_target:
                self.skipped["no partner"] += 1
            elif isinstance(left, BadLine):
                yield f"{source.name}, line {n_source}", left
            elif isinstance(right, BadLine):
                yield f"{target.name}, line {n_target}", right
            else:  # where a side is empty, the file to look into is that side's
                yield f"{(target if left.strip() else source).name}, line {n_source}", TextPair(left, right)
        if n_source != n_target and not self._data.skips_bad:
            names = (source.name, target.name) if n_source < n_target else (target.name, source.name)
            raise RegardError(
                f"{names[0]} ends after line {min(n_source, n_target):,}, and {names[1]} has "
                f"{max(n_source, n_target):,} lines: line i of one must belong to line i of the other. Give files of "
                "equal length, or leave out the rest: --skip-bad (data.skips_bad)."
            )


def _read_table(file: TextFile, table: Table) -> Iterator[tuple[str, TextPair | BadLine]]:
    for number, row in table.rows(read_lines(file.path, file.name, file.encoding)):
        pair = row if isinstance(row, BadLine) else TextPair(*(join_lines(cell) for cell in row or ("", "")))
        yield f"{file.name}, line {number}", pair


def _check_sides(pair: TextPair) -> TextPair | BadLine:
    """A pair without the white space around its sides, if there is something in each."""
    source, target = pair.source.strip(), pair.target.strip()
    if source and target:
        return pair._replace(source=source, target=target)
    which = "is empty" if not (source or target) else f"has an empty {'target' if source else 'source'}"
    return BadLine("empty side", f"{which}. Every pair needs a source and a target.")


def join_lines(text: str) -> str:
    """A text on one line, since an output is one line."""
    return " ".join(text.splitlines())


def pick_fields(line: str, source_field: str, target_field: str) -> TextPair | BadLine:
    """The two texts of a JSON record, each on one line."""
    if not line.strip():
        return TextPair("", "")
    record = parse_record(line)
    if isinstance(record, BadLine):
        return record
    found = []
    for key, option in ((source_field, "data.source_field"), (target_field, "data.target_field")):
        text = pick_text(record, key, option)
        if isinstance(text, BadLine):
            return text
        if len(text) > MAX_LINE:
            return too_long(f"{len(text):,} characters in its field '{key}'")
        found.append(join_lines(text))
    return TextPair(found[0], found[1])
