"""A contact sheet: several pictures on one PNG, each with its caption and where every word of it looked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw

from regard.errors import RegardError
from regard.files import write_atomically
from regard.lens.picture_attention import PictureAttention
from regard.report import caption_panels as panels
from regard.report.palette import INK, SOFT

N_PICTURES = 10  # on a sheet; a caption more would not be looked at
PICTURE, PANEL, N_COLUMNS = 156, 88, 10  # pixels: the picture at the left, a word's panel; panels in a row
GAP, BETWEEN, TITLE, LABEL = 8, 22, 28, 22  # between panels, between pictures; for a caption, for a word
LEFT = BETWEEN + PICTURE + BETWEEN  # where panels begin, and where they end
RIGHT = LEFT + N_COLUMNS * (PANEL + GAP) - GAP
LINE_WIDTH = 1.4
N_COLOURS = 256


def draw_sheet(examples: Sequence[PictureAttention]) -> Image.Image:
    """The first pictures below each other: picture, caption, and a small panel for every word."""
    if not examples:
        raise RegardError("There is no caption to show. Give at least one.")
    heights = [_height(shown) for shown in examples[:N_PICTURES]]
    sheet = Image.new("RGB", (RIGHT + BETWEEN, BETWEEN + sum(height + BETWEEN for height in heights)), panels.GROUND)
    y = BETWEEN
    for shown, height in zip(examples, heights, strict=False):
        _draw(sheet, shown, y)
        y += height + BETWEEN
    return sheet


def write_sheet(examples: Sequence[PictureAttention], path: Path) -> Path:
    """Write a sheet as a PNG of 256 colours, a third of the bytes that all of them would take.

    Colours are chosen to lie near all that there are and then moved to the means of what they stand for. Chosen by how
    many pixels they stand for, as Pillow does by default, nearly all of them are the greys of the dark panels.
    """
    sheet = draw_sheet(examples)
    few = sheet.quantize(N_COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
    write_atomically(path, panels.encode_image(few, "PNG", optimize=True))
    return path


def _height(shown: PictureAttention) -> int:
    """What a picture and its panels take."""
    n_rows = -(-len(shown.words) // N_COLUMNS)
    picture, panel = (len(panels.resize_to(shown.picture, width)) for width in (PICTURE, PANEL))
    return max(picture + LABEL, TITLE + n_rows * (panel + LABEL))


def _draw(sheet: Image.Image, shown: PictureAttention, top: int) -> None:
    picture, small = panels.resize_to(shown.picture, PICTURE), panels.resize_to(shown.picture, PANEL)
    pen = ImageDraw.Draw(sheet)
    panels.paste_with_frame(sheet, picture, BETWEEN, top)
    pen.text(
        (BETWEEN, top + len(picture) + 4),
        panels.shorten_text(shown.name, PICTURE, 12, pen),
        SOFT,
        panels.load_font(12),
    )
    pen.text((LEFT, top), panels.shorten_text(" ".join(shown.words), RIGHT - LEFT, 16, pen), INK, panels.load_font(16))
    for i, (word, weights) in enumerate(zip(shown.words, shown.weights, strict=True)):
        x, y = LEFT + i % N_COLUMNS * (PANEL + GAP), top + TITLE + i // N_COLUMNS * (len(small) + LABEL)
        panels.paste_with_frame(sheet, panels.shade_picture(small, weights, LINE_WIDTH), x, y)
        pen.text((x, y + len(small) + 3), panels.shorten_text(word, PANEL, 12, pen), INK, panels.load_font(12))
