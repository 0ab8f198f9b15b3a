"""A constituency tree as a picture: box lines for the terminal, SVG for a page. The sentence is the bottom row."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import accumulate
from pathlib import Path

from rich.cells import cell_len

from regard.data.trees import Tree

BEGIN = '<svg xmlns="http://www.w3.org/2000/svg" class="tree"'
GAP = 2  # columns between two words
INK, SOFT, LINE = "#1c1e21", "#0072b2", "#8b929c"
SIZE, ROW, MARGIN = 14, 44, 14  # of the SVG, in pixels: letters, rows, the edge
PER_COLUMN, PER_CAPITAL = 8.4, 2.6  # the width of a letter, and what a capital has more; fonts differ


def tree_text(tree: Tree, width: int | None = None) -> str:
    """The tree from its root down to the sentence, or from left to right where that is wider than `width`.

    >>> dogs = Tree("S", (Tree("NP", (Tree("NN", ("dogs",)),)), Tree("VP", (Tree("VBP", ("bark",)),))))
    >>> print(tree_text(dogs))
        S
     ┌──┴──┐
     NP    VP
     │     │
     NN   VBP
     │     │
    dogs  bark
    >>> print(tree_text(dogs, width=9))
    S
    ├─ NP
    │  └─ NN dogs
    └─ VP
       └─ VBP bark
    """
    block = _draw_block(tree, tree.depth)
    if width is not None and block.width > width:
        return "\n".join(_list_sideways(tree))
    return "\n".join(line.rstrip() for line in block.lines)


def tree_svg(tree: Tree) -> str:
    """The tree as one `<svg>` that needs no other file and runs nothing."""
    drawn = _place(tree, MARGIN, 0, tree.depth)
    width, height = svg_width(tree), tree.depth * ROW + SIZE + 2 * MARGIN
    title = escape(" ".join(map(_mark_unprintable, tree.words)))
    return "\n".join(
        [
            f'{BEGIN} viewBox="0 0 {width:.1f} {height}" '
            f'width="{width:.1f}" height="{height}" role="img" aria-label="{title}" text-anchor="middle" '
            f'font-family="system-ui, sans-serif" font-size="{SIZE}">',
            f"<title>{title}</title>",
            *drawn.parts,
            "</svg>",
        ]
    )


def is_tree_svg(path: Path) -> bool:
    """Whether a file is a picture that `tree_svg` drew."""
    with open(path, "rb") as file:
        return file.read(len(BEGIN)) == BEGIN.encode()


def svg_width(tree: Tree) -> float:
    """The width of the picture of a tree, in pixels."""
    return _width(tree) + 2 * MARGIN


@dataclass(frozen=True)
class _Block:
    """Lines of one width; what is above them hangs on to column `centre`."""

    lines: list[str]
    width: int
    centre: int


def _draw_block(node: Tree | str, levels: int) -> _Block:
    """A node and all under it: a label and a line to its children for every level, and the words below."""
    if isinstance(node, str):
        word = _mark_unprintable(node)
        word += " " * (1 - cell_len(word))  # an accent alone has no width, but the line to it has
        width, centre = cell_len(word), (cell_len(word) - 1) // 2
        line = " " * centre + "│" + " " * (width - centre - 1)
        return _Block([line] * (2 * levels) + [word], width, centre)
    children = [_draw_block(child, levels - 1) for child in node.children]
    starts = accumulate((child.width + GAP for child in children[:-1]), initial=0)
    centres = [start + child.centre for start, child in zip(starts, children, strict=True)]
    rows = [(" " * GAP).join(row) for row in zip(*(child.lines for child in children), strict=True)]
    centre = (centres[0] + centres[-1]) // 2
    return _add_label(_mark_unprintable(node.label), centre, [_draw_branches(centres, centre), *rows])


def _add_label(label: str, centre: int, under: list[str]) -> _Block:
    """The label over the middle of what is under it; one that is wider moves that to the right."""
    left = centre - (cell_len(label) - 1) // 2
    moved = max(0, -left)
    lines = [" " * (moved + left) + label, *(" " * moved + line for line in under)]
    width = max(cell_len(line) for line in lines)
    return _Block([line + " " * (width - cell_len(line)) for line in lines], width, moved + centre)


def _draw_branches(centres: list[int], parent: int) -> str:
    """The line from a parent to its children.

    >>> _draw_branches([1, 4, 9], 5), _draw_branches([1, 4, 7], 4), _draw_branches([2], 2)
    (' ┌──┬┴───┐', ' ┌──┼──┐', '  │')
    """
    if len(centres) == 1:
        return " " * centres[0] + "│"
    signs = dict.fromkeys(centres, "┬") | {centres[0]: "┌", centres[-1]: "┐"}
    signs[parent] = "┼" if parent in centres else "┴"
    return " " * centres[0] + "".join(signs.get(column, "─") for column in range(centres[0], centres[-1] + 1))


def _list_sideways(node: Tree) -> list[str]:
    if node.is_tag:
        return [f"{_mark_unprintable(node.label)} {_mark_unprintable(str(node.children[0]))}"]
    lines = [_mark_unprintable(node.label)]
    for number, child in enumerate(node.children, 1):
        first, *rest = [_mark_unprintable(child)] if isinstance(child, str) else _list_sideways(child)
        is_last = number == len(node.children)
        lines.append(f"{'└─ ' if is_last else '├─ '}{first}")
        lines += [f"{'   ' if is_last else '│  '}{line}" for line in rest]
    return lines


@dataclass(frozen=True)
class _Drawn:
    """The marks of a part of the picture, and the point that the line from above leads to."""

    parts: list[str]
    x: float
    y: float


def _width(node: Tree | str) -> float:
    text = _mark_unprintable(node if isinstance(node, str) else node.label)
    own = PER_COLUMN * cell_len(text) + PER_CAPITAL * sum(letter.isupper() for letter in text)
    return own if isinstance(node, str) else max(own, _inner_width(node))


def _inner_width(tree: Tree) -> float:
    return sum(map(_width, tree.children)) + GAP * PER_COLUMN * (len(tree.children) - 1)


def _place(node: Tree | str, left: float, level: int, n_levels: int) -> _Drawn:
    """`node` with its left edge at `left`; words are on the last level, wherever they hang."""
    y = MARGIN + SIZE + (n_levels if isinstance(node, str) else level) * ROW
    if isinstance(node, str):
        x = left + _width(node) / 2
        return _Drawn([_text(_mark_unprintable(node), x, y, INK)], x, y - SIZE)
    at = left + (_width(node) - _inner_width(node)) / 2
    children = []
    for child in node.children:
        children.append(_place(child, at, level + 1, n_levels))
        at += _width(child) + GAP * PER_COLUMN
    x = (children[0].x + children[-1].x) / 2
    lines = [
        f'<line x1="{x:.1f}" y1="{y + 5:.1f}" x2="{child.x:.1f}" y2="{child.y - 2:.1f}" stroke="{LINE}"/>'
        for child in children
    ]
    inside = [part for child in children for part in child.parts]
    return _Drawn([*lines, _text(_mark_unprintable(node.label), x, y, SOFT), *inside], x, y - SIZE)


def _text(text: str, x: float, y: float, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}">{escape(text)}</text>'


def _mark_unprintable(text: str) -> str:
    """What a terminal or a page would act on, such as an escape sequence, is shown as a sign that something is there.

    >>> _mark_unprintable("a\\x1b[31m")
    'a�[31m'
    """
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
