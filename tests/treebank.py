"""The trees of the Penn Treebank's sample, where REGARD_DATA has it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from regard.data.trees import Tree, parse_trees


def read_trees(path: Path) -> Iterator[Tree]:
    """The trees of a file, or of all `.mrg` files of a folder."""
    for file in [path] if path.is_file() else sorted(path.glob("*.mrg")):
        yield from parse_trees(file.read_text(encoding="utf-8").split("\n"), str(file))
