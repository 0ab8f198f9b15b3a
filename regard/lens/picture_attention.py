"""Where in the picture each word looked: panels in one PNG, and one page that loads nothing (Xu et al. 2015, figure 2).

A panel is the picture, dark where a word did not look. The strongest place of every word is as bright as the picture
itself, so panels compare places and not words; the share of the attention that lies there is written below each word,
next to what it would be if all places counted the same.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from regard.errors import RegardError
from regard.files import write_atomically

DARKEST = 0.22  # brightness of a place with no attention
PANEL, GAP, LABEL = 168, 14, 46  # pixels: a panel's side, between panels, for the words below
INK, SOFT, GROUND = "#1c1e21", "#5d6470", "#ffffff"

Weights = NDArray[np.floating]


@dataclass(frozen=True)
class PictureAttention:
    """A picture (H, W, 3) of bytes, the words said of it, and each word's weights over the grid, (T, h, w)."""

    picture: NDArray[np.uint8]
    words: tuple[str, ...]
    weights: Weights
    name: str = ""
    references: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.weights.ndim != 3 or len(self.words) != len(self.weights) or not self.words:
            raise RegardError(
                f"{len(self.words)} words were given with weights of shape {self.weights.shape}. Give one word or "
                "more, and for each of them a row of weights over the grid: (words, rows, columns)."
            )
        if not np.isfinite(self.weights).all() or (self.weights < 0).any() or (self.weights.sum((1, 2)) <= 0).any():
            raise RegardError(
                "The weights hold numbers below 0 or none above it. Give the attention after its softmax."
            )

    @classmethod
    def over(
        cls,
        grid: tuple[int, int],
        picture: NDArray[np.uint8],
        words: Sequence[str],
        weights: Weights,
        name: str = "",
        references: Sequence[str] = (),
    ) -> PictureAttention:
        """The same from weights (T, S) over the places of a grid, row after row."""
        if weights.ndim != 2 or weights.shape[1] != grid[0] * grid[1]:
            raise RegardError(
                f"Weights of shape {weights.shape} do not cover a grid of {grid[0]} x {grid[1]}. Give (words, "
                f"{grid[0] * grid[1]}), the mean over heads where there are several."
            )
        return cls(picture, tuple(words), weights.reshape(-1, *grid), name, tuple(references))

    @property
    def strongest(self) -> list[float]:
        """The largest share of a word's attention that lies on one place."""
        return [float(w.max() / w.sum()) for w in self.weights]

    @property
    def even(self) -> float:
        """What each place has where all count the same."""
        return 1.0 / int(self.weights[0].size)


def smooth(weights: Weights, size: tuple[int, int]) -> NDArray[np.float64]:
    """Weights (h, w) drawn out to (H, W) by cubic interpolation, in [0, 1] with the largest at 1.

    >>> smooth(np.full((2, 2), 0.25), (4, 4)).tolist() == np.ones((4, 4)).tolist()
    True
    """
    grid = Image.fromarray((weights / weights.max()).astype(np.float32))
    drawn = np.asarray(grid.resize(size[::-1], Image.Resampling.BICUBIC), dtype=np.float64)
    drawn = drawn.clip(min=0)  # a cubic swings below zero beside a peak
    result: NDArray[np.float64] = drawn / drawn.max()
    return result


def shaded(picture: NDArray[np.uint8], weights: Weights) -> NDArray[np.uint8]:
    """The picture, darkened where the weights are small."""
    brightness = DARKEST + (1 - DARKEST) * smooth(weights, picture.shape[:2])
    return (picture * brightness[..., None]).round().astype(np.uint8)


def draw_panels(shown: PictureAttention, n_columns: int = 6) -> Image.Image:
    """The picture, then a panel for every word, its word below."""
    height = round(PANEL * shown.picture.shape[0] / shown.picture.shape[1])
    picture = np.asarray(Image.fromarray(shown.picture).resize((PANEL, height), Image.Resampling.LANCZOS))
    labels = [("", ""), *((word, f"{share:.0%}") for word, share in zip(shown.words, shown.strongest, strict=True))]
    panels = [picture, *(shaded(picture, w) for w in shown.weights)]
    n_columns = min(n_columns, len(panels))
    n_rows = -(-len(panels) // n_columns)
    sheet = Image.new("RGB", (GAP + n_columns * (PANEL + GAP), GAP + n_rows * (height + LABEL)), GROUND)
    pen = ImageDraw.Draw(sheet)
    for i, (panel, (word, share)) in enumerate(zip(panels, labels, strict=True)):
        x, y = GAP + i % n_columns * (PANEL + GAP), GAP + i // n_columns * (height + LABEL)
        sheet.paste(Image.fromarray(panel), (x, y))
        room = PANEL - (pen.textlength(share, font(13)) + 8 if share else 0)
        pen.text((x, y + height + 6), _shortened(word, room, pen), INK, font(16))
        pen.text((x + PANEL, y + height + 8), share, SOFT, font(13), anchor="ra")
    pen.text((GAP, GAP + height + 8), f"even: {shown.even:.1%}", SOFT, font(13))
    return sheet


def write_panels(shown: PictureAttention, path: Path) -> Path:
    """Write the panels as a PNG."""
    write_atomically(path, _encoded(draw_panels(shown), "PNG"))
    return path


def attention_page(examples: Sequence[PictureAttention], title: str = "Where each word looked") -> str:
    """One page for all examples. It loads nothing from anywhere; without scripts the panels are still there."""
    if not examples:
        raise RegardError("There is no caption to show. Give at least one.")
    return PAGE.format(
        title=escape(title),
        css=_text("picture_attention.css"),
        js=_text("picture_attention.js"),
        examples="\n".join(_example(shown, i) for i, shown in enumerate(examples)),
    )


def write_page(examples: Sequence[PictureAttention], path: Path, title: str = "Where each word looked") -> Path:
    write_atomically(path, attention_page(examples, title).encode())
    return path


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{css}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p class="note">Each panel is the picture as one word of the caption saw it: bright where the model looked when it wrote
that word. The number is the share of its attention on the brightest place. Point at a panel, or move to it by keyboard,
to see it large.</p>
{examples}
<footer>Made by Regard. This page is one file and loads nothing from the network.</footer>
</main>
<script>
{js}
</script>
</body>
</html>
"""


def _example(shown: PictureAttention, index: int) -> str:
    height, width = shown.picture.shape[:2]
    shades = [_shade(w, (height, width)) for w in shown.weights]
    panels = "".join(
        f'<button type="button" class="panel"><span class="picture"><img src="{shade}" alt=""></span>'
        f"<span class=word>{escape(word)}</span> <small>{share:.0%}</small></button>"
        for word, share, shade in zip(shown.words, shown.strongest, shades, strict=True)
    )
    references = "".join(f"<li>{escape(text)}</li>" for text in shown.references)
    people = f"<details><summary>What people said</summary><ul>{references}</ul></details>" if references else ""
    name = f'<p class="name">{escape(shown.name)}</p>' if shown.name else ""
    return (
        f"<style>#e{index} .picture {{ background-image: url({_data_uri(shown.picture)}); "
        f"aspect-ratio: {width} / {height}; }}</style>"
        f'<section id="e{index}"><div class="large">{name}<div class="picture"><img alt="" hidden></div>'
        f'<p class="said" aria-live="polite"></p></div>'
        f'<div><h2>{escape(" ".join(shown.words))}</h2><p class="even">Even attention would give every place '
        f'{shown.even:.1%}.</p><div class="panels">{panels}</div>{people}</div></section>'
    )


def _shade(weights: Weights, size: tuple[int, int]) -> str:
    """A black picture that covers what was not looked at, as a data URI."""
    alpha = (255 * (1 - DARKEST) * (1 - smooth(weights, size))).round().astype(np.uint8)
    image = Image.merge("LA", (Image.new("L", size[::-1], 0), Image.fromarray(alpha)))
    return f"data:image/png;base64,{base64.b64encode(_encoded(image, 'PNG')).decode()}"


def _data_uri(picture: NDArray[np.uint8]) -> str:
    data = _encoded(Image.fromarray(picture), "JPEG", quality=90)
    return f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"


def _encoded(image: Image.Image, form: str, **options: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def font(size: int) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which matplotlib carries: it has Greek and Cyrillic letters too, on every machine."""
    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", size)


def _shortened(word: str, room: float, pen: ImageDraw.ImageDraw) -> str:
    if pen.textlength(word, font(16)) <= room:
        return word
    while word and pen.textlength(word + "…", font(16)) > room:
        word = word[:-1]
    return word + "…"


def _text(name: str) -> str:
    return resources.files("regard.lens").joinpath(name).read_text(encoding="utf-8")
