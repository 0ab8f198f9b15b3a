"""The picture as each word saw it: panels in one PNG (Xu et al. 2015, figure 2).

A panel is the picture, dark where a word did not look, with a line around what it looked at most: in a photograph of a
black dog at night brightness alone shows nothing. The strongest place of every word is as bright as the picture itself,
so panels compare places and not words; the share of the attention that lies there is written below each word, next to
what it would be if all places counted the same.
"""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from regard.files import write_atomically
from regard.lens.picture_attention import PictureAttention, Weights
from regard.report.palette import INK, SOFT

DARKEST = 0.4  # brightness of a place with no attention
LEVEL = 0.5  # the line runs where attention is so much of its largest
LINE = (255, 176, 0)  # amber, which few things are
PANEL, GAP, LABEL = 168, 14, 46  # pixels: a panel's side, between panels, for the words below
FRAME = (201, 205, 211)  # the line around a picture: a white one would have no edge on the white ground
GROUND = "#ffffff"


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


def draw_line_around(drawn: NDArray[np.float64], width: float = 2.0) -> NDArray[np.float64]:
    """How much of each pixel a line covers that runs where `drawn` crosses LEVEL, in [0, 1].

    A pixel is |drawn - LEVEL| / |∇drawn| away from the line, to first order.
    """
    slope = np.hypot(*np.gradient(drawn))
    distance = np.abs(drawn - LEVEL) / np.maximum(slope, 1e-9)
    covered: NDArray[np.float64] = np.clip((width + 1) / 2 - distance, 0.0, 1.0)
    return covered


def cover(weights: Weights, size: tuple[int, int], width: float = 2.0) -> NDArray[np.uint8]:
    """What lies over a picture of `size`, (H, W, 4): black where the weights are small, and a line so wide."""
    drawn = smooth(weights, size)
    shade, line = (1 - DARKEST) * (1 - drawn), draw_line_around(drawn, width)
    alpha = line + shade * (1 - line)
    share = np.divide(line, alpha, out=np.zeros_like(line), where=alpha > 0)  # of the line in what covers
    colours = np.concatenate([share[..., None] * LINE, 255 * alpha[..., None]], axis=-1)
    return colours.round().astype(np.uint8)


def shade_picture(picture: NDArray[np.uint8], weights: Weights, width: float = 2.0) -> NDArray[np.uint8]:
    """The picture, darkened where the weights are small, with a line around where they are large."""
    over = cover(weights, (picture.shape[0], picture.shape[1]), width).astype(np.float64)
    alpha = over[..., 3:] / 255
    return (picture * (1 - alpha) + over[..., :3] * alpha).round().astype(np.uint8)


def resize_to(picture: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """The picture, so many pixels wide."""
    height = max(1, round(width * picture.shape[0] / picture.shape[1]))
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.LANCZOS))


def draw_panels(shown: PictureAttention, n_columns: int = 6) -> Image.Image:
    """The picture, then a panel for every word, its word below."""
    picture = resize_to(shown.picture, PANEL)
    height = len(picture)
    labels = [("", ""), *((word, f"{share:.0%}") for word, share in zip(shown.words, shown.strongest, strict=True))]
    panels = [picture, *(shade_picture(picture, w) for w in shown.weights)]
    n_columns = min(n_columns, len(panels))
    n_rows = -(-len(panels) // n_columns)
    sheet = Image.new("RGB", (GAP + n_columns * (PANEL + GAP), GAP + n_rows * (height + LABEL)), GROUND)
    pen = ImageDraw.Draw(sheet)
    for i, (panel, (word, share)) in enumerate(zip(panels, labels, strict=True)):
        x, y = GAP + i % n_columns * (PANEL + GAP), GAP + i // n_columns * (height + LABEL)
        paste_with_frame(sheet, panel, x, y)
        room = PANEL - (pen.textlength(share, load_font(13)) + 8 if share else 0)
        pen.text((x, y + height + 6), shorten_text(word, room, 16, pen), INK, load_font(16))
        pen.text((x + PANEL, y + height + 8), share, SOFT, load_font(13), anchor="ra")
    pen.text((GAP, GAP + height + 8), f"even: {shown.even:.1%}", SOFT, load_font(13))
    return sheet


def paste_with_frame(sheet: Image.Image, picture: NDArray[np.uint8], x: int, y: int) -> None:
    """Put a picture on a sheet, a thin frame around it, outside of its own pixels."""
    sheet.paste(Image.fromarray(picture), (x, y))
    ImageDraw.Draw(sheet).rectangle((x - 1, y - 1, x + picture.shape[1], y + picture.shape[0]), outline=FRAME)


def write_panels(shown: PictureAttention, path: Path) -> Path:
    """Write the panels as a PNG."""
    write_atomically(path, encode_image(draw_panels(shown), "PNG"))
    return path


def encode_image(image: Image.Image, form: str, **options: int) -> bytes:
    """The bytes of a file."""
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def load_font(size: int) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which matplotlib carries: it has Greek and Cyrillic letters too, on every machine."""
    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", size)


def shorten_text(text: str, room: float, size: int, pen: ImageDraw.ImageDraw) -> str:
    """As much of a text as there is room for."""
    if pen.textlength(text, load_font(size)) <= room:
        return text
    while text and pen.textlength(text + "…", load_font(size)) > room:
        text = text[:-1]
    return text + "…"
