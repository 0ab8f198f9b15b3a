"""Words in two dimensions: a page, a picture and the numbers behind them."""

from __future__ import annotations

import importlib.util
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.files import write_atomically
from regard.models.word_vectors import WordVectors
from regard.report.figure import drawing, new_figure
from regard.report.page_folder import WORD_MAP, begin_page, check_page_folder, finish_page
from regard.report.palette import INK, SOFT, colour_of
from regard.report.shell import how_to_repeat, report_page, section, table
from regard.untrusted.values import make_printable

WAYS = ("pca", "umap")
N_FREQUENT = 150
WIDTH, HEIGHT, MARGIN, LINE_HEIGHT = 1040, 760, 40, 13


@dataclass(frozen=True)
class MappedWord:
    """A word, where it lies, and which of the words that were asked for it is near (None: none was)."""

    word: str
    x: float
    y: float
    group: str | None
    cosine: float | None


PAGE, DRAWN = "report.html", ("numbers.json", "figure.png")


def write_word_map(
    vectors: WordVectors,
    source: str,
    words: Sequence[str],
    *,
    n: int,
    by: str,
    seed: int,
    out: Path,
    force: bool = False,
) -> Path:
    """Write report.html, figure.png and numbers.json into `out`; returns the page.

    `force` writes into a folder that holds files of somebody else.
    """
    if by not in WAYS:
        raise RegardError(f"--by must be one of {', '.join(WAYS)}, not '{by}'.")
    if (out / "config.yaml").exists():
        raise RegardError(f"'{out}' is a run folder; give --out another one.")
    check_page_folder(out, WORD_MAP, force)
    chosen = choose_words(vectors, words, n)
    points, kept = project(np.stack([vectors.vector(word) for word, *_ in chosen]), by, seed)
    mapped = [MappedWord(word, float(x), float(y), group, cosine)
              for (word, group, cosine), (x, y) in zip(chosen, points, strict=True)]  # fmt: skip
    what = f"{len(mapped)} words of {source} by {by.upper()}"
    note = "" if kept is None else f"The two directions hold {100 * kept:.0f}% of what these words differ in."
    typed = ["regard", "vectors", "map", source, *words, "--n", str(n), "--by", by, "--out", str(out)]
    begin_page(out, WORD_MAP, DRAWN, force)
    numbers = {"source": source, "by": by, "seed": seed, "kept": kept, "words": [vars(word) for word in mapped]}
    write_atomically(out / "numbers.json", json.dumps(numbers, ensure_ascii=False, indent=1) + "\n")
    write_atomically(out / "figure.png", lambda aside: draw_picture(mapped, what, note, aside))
    return finish_page(out, render_map(mapped, what, note, shlex.join(typed)), WORD_MAP, DRAWN)


def choose_words(vectors: WordVectors, words: Sequence[str], n: int) -> list[tuple[str, str | None, float | None]]:
    """Each word asked for with its n nearest, or the most frequent; a word is in the group that it is nearest to."""
    if not words:
        frequent = [word for word in vectors.words if len(word) >= 4 and word.isalpha()][:N_FREQUENT]
        frequent = frequent if len(frequent) >= 3 else vectors.words[:N_FREQUENT]
        if len(frequent) < 3:
            raise RegardError(f"A map needs three words at least, and there are {len(frequent)}.")
        return [(word, None, None) for word in frequent]
    found: dict[str, tuple[str, float]] = {}
    for word in words:
        for near, cosine in vectors.nearest(word, n):
            if near not in found or found[near][1] < cosine:
                found[near] = (word, cosine)
    found |= {word: (word, 1.0) for word in words}
    if len(found) < 3:
        raise RegardError(f"A map needs three words at least, and there are {len(found)}: raise --n.")
    return [(word, group, cosine) for word, (group, cosine) in found.items()]


def project(rows: NDArray[np.float32], by: str, seed: int) -> tuple[NDArray[np.float64], float | None]:
    """Rows in two dimensions, and for PCA the share of their variance that these hold; rows have length one before."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = (rows / np.where(lengths > 0, lengths, 1)).astype(np.float64)
    if by == "umap":
        return _project_by_umap(unit, seed), None
    centred = unit - unit.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    signs = np.sign(u[np.abs(u).argmax(axis=0), np.arange(u.shape[1])])  # one of two, the same each time
    points = np.zeros((len(rows), 2))
    points[:, : min(2, len(s))] = (u * signs * s)[:, :2]
    return points, float((s[:2] ** 2).sum() / max((s**2).sum(), 1e-300))


def _project_by_umap(unit: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    if importlib.util.find_spec("umap") is None:
        raise RegardError("--by umap needs the package umap-learn: pip install umap-learn. PCA needs nothing: --by pca")
    import umap  # optional, and takes long to start

    n_neighbours = max(2, min(15, len(unit) - 1))
    found: Any = umap.UMAP(n_components=2, metric="cosine", random_state=seed, n_neighbors=n_neighbours, n_jobs=1)
    return np.asarray(found.fit_transform(unit), dtype=np.float64)


def colours_of(mapped: Sequence[MappedWord]) -> dict[str | None, str]:
    """A colour for each group."""
    groups = list(dict.fromkeys(word.group for word in mapped))
    return {group: colour_of(place) for place, group in enumerate(groups)}


def render_map(mapped: Sequence[MappedWord], what: str, note: str, command: str) -> str:
    """The whole page as text."""
    columns, rows = ["word", "x", "y"], [[word.word, f"{word.x:.3f}", f"{word.y:.3f}"] for word in mapped]
    has_cosines = any(word.cosine is not None for word in mapped)
    if has_cosines:
        columns += ["near", "cosine"]
        rows = [[*row, word.group or "", "" if word.cosine is None else f"{word.cosine:.3f}"]
                for row, word in zip(rows, mapped, strict=True)]  # fmt: skip
    return report_page(
        title=f"Regard: {what}",
        kicker="Regard · word vectors",
        headline="Which words are near each other?",
        lede=f"{what}. Words that stand in the same contexts lie together.",
        notes=[note] if note else [],
        sections=[
            section(
                "Map",
                f"Distances on paper are only part of those in the vectors{': the table has cosines' * has_cosines}.",
                draw(mapped),
            ),
            section("Words", "", table(columns, rows)),
            section("How it was made", "", how_to_repeat(command)),
        ],
        made="Made by Regard; its numbers are in numbers.json.",
    )


@dataclass(frozen=True)
class Label:
    """Where a word's point and the middle of its name lie, in pixels from the top left."""

    x: float
    y: float
    text_x: float
    text_y: float


def place_labels(mapped: Sequence[MappedWord]) -> list[Label]:
    """Put every name beside its point, where it covers the names before it least: right, left, below or above."""
    xs, ys = np.array([word.x for word in mapped]), np.array([word.y for word in mapped])
    across = MARGIN + (xs - xs.min()) / max(float(np.ptp(xs)), 1e-9) * (WIDTH - 2 * MARGIN)
    down = HEIGHT - MARGIN - (ys - ys.min()) / max(float(np.ptp(ys)), 1e-9) * (HEIGHT - 2 * MARGIN)
    placed: list[tuple[float, float, float]] = []  # middle and half width of each name
    labels = []
    for word, x, y in zip(mapped, across.tolist(), down.tolist(), strict=True):
        half = 3.9 * len(word.word)
        sides = ((x + half + 6, y), (x - half - 6, y), (x, y + 12), (x, y - 12))
        text_x, text_y = min(sides, key=lambda side: _cover(side, half, placed))
        placed.append((text_x, text_y, half))
        labels.append(Label(x, y, text_x, text_y))
    return labels


def _cover(middle: tuple[float, float], half: float, placed: Sequence[tuple[float, float, float]]) -> float:
    """How much of other names, and of what is outside the picture, a name would cover, in square pixels."""
    x, y = middle
    outside = max(0.0, half - x) + max(0.0, x + half - WIDTH)
    width = (max(0.0, half + other - abs(x - at)) for at, _, other in placed)
    height = (max(0.0, LINE_HEIGHT - abs(y - at)) for _, at, _ in placed)
    return outside * LINE_HEIGHT + sum(w * h for w, h in zip(width, height, strict=True))


def draw(mapped: Sequence[MappedWord]) -> str:
    """The map as one `<svg>`."""
    colours, parts = colours_of(mapped), []
    for word, at in zip(mapped, place_labels(mapped), strict=True):
        weight = "700" if word.word == word.group else "400"
        parts.append(
            f'<circle cx="{at.x:.1f}" cy="{at.y:.1f}" r="3" fill="{colours[word.group]}"/>'
            f'<text x="{at.text_x:.1f}" y="{at.text_y + 4:.1f}" font-size="13" font-weight="{weight}" '
            f'text-anchor="middle" fill="{colours[word.group]}">{escape(word.word)}</text>'
        )
    return (
        f'<svg class="word-map" viewBox="0 0 {WIDTH} {HEIGHT}" style="width:100%;height:auto" role="img" '
        f'aria-label="Words in two dimensions">{"".join(parts)}</svg>'
    )


@drawing()
def draw_picture(mapped: Sequence[MappedWord], what: str, note: str, path: Path) -> None:
    """Draw `path` (PNG). No display is needed."""
    figure = new_figure(10.4, 8.0, what, note, 90)
    axes, colours, labels = figure.subplots(), colours_of(mapped), place_labels(mapped)
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(HEIGHT, 0)
    axes.scatter([at.x for at in labels], [at.y for at in labels], s=9, c=[colours[w.group] for w in mapped])
    for word, at in zip(mapped, labels, strict=True):
        weight = "bold" if word.word == word.group else "normal"
        axes.text(
            at.text_x, at.text_y, make_printable(word.word), fontsize=8.5, fontweight=weight, ha="center",
            va="center_baseline", color=colours[word.group] if word.group else INK,
        )  # fmt: skip
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color(SOFT)
    figure.savefig(path, format="png")
