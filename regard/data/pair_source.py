"""What the user names, to pairs of texts with the file and line of every fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from regard.data.builtin import BUILTIN
from regard.data.config import DataConfig
from regard.data.pair_grammar import is_grammar, write_pairs
from regard.data.pair_lines import BadLine, TextPair, checked_sides, columns, fields, read_lines
from regard.data.pairs_config import PairPart, PairsConfig
from regard.data.source import HUB, TextFile, resolve
from regard.data.tree_pairs import tree_sides
from regard.errors import RegardError


@dataclass(frozen=True)
class PairFiles:
    """A part whose names have become files: (source, target) for aligned files, else one file with both sides."""

    files: tuple[TextFile, ...]
    form: str
    tag: str | None


def resolve_pairs(parts: tuple[PairPart, ...], spool: Path, cache: Path) -> list[PairFiles]:
    """The files that parts name; folders and globs stand for all they hold, and what is piped in for a file."""
    found: list[PairFiles] = []
    for i, part in enumerate(parts):
        sides = []
        for j, name in enumerate(part.names):
            folder = spool / f"{i}-{j}"
            folder.mkdir()
            sides.append(_files_of(_trees_in(name) if part.form == "trees" else name, folder, cache))
        if len({len(files) for files in sides}) > 1:
            (source, target), (n_source, n_target) = part.names, map(len, sides)
            files = "file" if n_source == 1 else "files"
            raise RegardError(
                f"Aligned files come in twos, and '{source}' stands for {n_source:,} {files} and '{target}' for "
                f"{n_target:,}. Name the same number of each."
            )
        found += [PairFiles(files, part.form, part.tag) for files in zip(*sides, strict=True)]
    return found


def _trees_in(name: str) -> str:
    """A treebank's folder holds other files too, such as one that says what it is."""
    return f"{name.rstrip('/')}/**/*.mrg" if Path(name).expanduser().is_dir() else name


def _files_of(name: str, spool: Path, cache: Path) -> list[TextFile]:
    """Files as for plain text: paths, folders, globs, '-'; and what the built-in grammar writes."""
    if is_grammar(name):
        write_pairs(name, spool / "grammar.txt")
        return [TextFile(spool / "grammar.txt", name)]
    if name.startswith(HUB) or (name in BUILTIN and not Path(name).exists()):
        raise RegardError(f"Pairs are read from files, not from {name}. Write the set to a TSV or JSONL file first.")
    return resolve(name, DataConfig(train=name, format="text"), spool, cache)


class PairReader:
    """Reads parts one after the other; `skipped` counts the lines that were left out, by kind."""

    def __init__(self, data: PairsConfig) -> None:
        self._data = data
        self.skipped: Counter[str] = Counter()

    def pairs(self, part: PairFiles) -> Iterator[TextPair]:
        """The pair of every line that can be used; the first that cannot is an error unless `skips_bad`."""
        for place, pair in self._found(part):
            checked = pair if isinstance(pair, BadLine) else checked_sides(pair)
            if not isinstance(checked, BadLine):
                source, target, word_tags = checked
                yield TextPair(target, source) if self._data.is_reversed else TextPair(source, target, word_tags)
            elif self._data.skips_bad:
                self.skipped[checked.kind] += 1
            else:
                raise RegardError(
                    f"{place} {checked.why} To leave out such lines and count them: --skip-bad (data.skips_bad)."
                )

    def _found(self, part: PairFiles) -> Iterator[tuple[str, TextPair | BadLine]]:
        """Every pair, or what is wrong with it, and where it stands."""
        if part.form == "files":
            return self._aligned(*part.files)
        if part.form == "trees":
            return tree_sides(part.files[0], self._data.tree_words)
        return self._in_one(part.files[0], part.form)

    def _in_one(self, file: TextFile, form: str) -> Iterator[tuple[str, TextPair | BadLine]]:
        for number, line in enumerate(read_lines(file.path, file.name), start=1):
            yield f"{file.name}, line {number}", self._sides(line, form)

    def _sides(self, line: str | BadLine, form: str) -> TextPair | BadLine:
        if isinstance(line, BadLine):
            return line
        if not line.strip():
            return TextPair("", "")
        return columns(line) if form == "tsv" else fields(line, self._data.source_field, self._data.target_field)

    def _aligned(self, source: TextFile, target: TextFile) -> Iterator[tuple[str, TextPair | BadLine]]:
        n_source = n_target = 0
        for left, right in zip_longest(read_lines(source.path, source.name), read_lines(target.path, target.name)):
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
