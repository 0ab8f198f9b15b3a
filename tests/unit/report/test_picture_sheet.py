"""The contact sheet: every word of every picture has its panel, and ten pictures have room."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.errors import RegardError
from regard.lens.picture_attention import PictureAttention
from regard.report.caption_panels import FRAME
from regard.report.caption_sheet import BETWEEN, GAP, LABEL, N_COLUMNS, PANEL, PICTURE, TITLE, draw_sheet, write_sheet

WHITE = np.full((8, 8, 3), 255, dtype=np.uint8)
BLUE = 2  # the channel that has nothing of the line


def looking(*places: int) -> PictureAttention:
    """Each word looks at one of four places, upper left, upper right, lower left, lower right."""
    words = tuple("abcdefghijklmn"[: len(places)])
    return PictureAttention.over((2, 2), WHITE, words, np.eye(4)[list(places)], "white.png")


def corners(sheet: np.ndarray, left: int, top: int) -> list[bool]:
    """Which corners of the panel that begins there are bright."""
    near, far = 6, PANEL - 6
    return [bool(sheet[top + y, left + x, BLUE] > 200) for y in (near, far) for x in (near, far)]


def test_every_word_has_a_panel_after_the_picture_and_rows_break() -> None:
    sheet = np.asarray(draw_sheet([looking(*[0] * N_COLUMNS, 3), looking(1)]))
    left = BETWEEN + PICTURE + BETWEEN
    assert sheet.shape[1] == left + N_COLUMNS * (PANEL + GAP) - GAP + BETWEEN
    top, step = BETWEEN + TITLE, PANEL + LABEL
    for i in range(N_COLUMNS):
        assert corners(sheet, left + i * (PANEL + GAP), top) == [True, False, False, False]
    assert corners(sheet, left, top + step) == [False, False, False, True]
    second = BETWEEN + max(PICTURE + LABEL, TITLE + 2 * step) + BETWEEN + TITLE  # the next picture's panels
    assert corners(sheet, left, second) == [False, True, False, False]
    assert (sheet[BETWEEN : BETWEEN + PICTURE, BETWEEN : BETWEEN + PICTURE] == 255).all()  # the picture as it is


def test_pictures_and_panels_have_frames_around_them() -> None:
    even = PictureAttention(WHITE, ("a",) * N_COLUMNS, np.full((N_COLUMNS, 2, 2), 0.25))
    sheet = np.asarray(draw_sheet([even]))
    panels = BETWEEN + PICTURE + BETWEEN
    last = panels + (N_COLUMNS - 1) * (PANEL + GAP)
    for left, top, side in (
        (BETWEEN, BETWEEN, PICTURE),
        (panels, BETWEEN + TITLE, PANEL),
        (last, BETWEEN + TITLE, PANEL),
    ):
        around = sheet[top - 1 : top + side + 1, left - 1 : left + side + 1]
        assert (around[1:-1, 1:-1] == 255).all()
        assert all((edge == FRAME).all() for edge in (around[0], around[-1], around[:, 0], around[:, -1]))


def test_a_sheet_stops_after_ten_pictures() -> None:
    assert draw_sheet([looking(0)] * 10).size == draw_sheet([looking(0)] * 12).size
    assert draw_sheet([looking(0)] * 9).height < draw_sheet([looking(0)] * 10).height


def test_the_file_has_the_colours_of_the_sheet(tmp_path: Path) -> None:
    shown = [looking(0, 3)]
    with Image.open(write_sheet(shown, tmp_path / "sheet.png")) as image:
        assert image.mode == "P"
        read = np.asarray(image.convert("RGB")).astype(int)
    assert np.abs(read - np.asarray(draw_sheet(shown)).astype(int)).mean() < 1


def test_a_colour_that_few_pixels_have_is_kept(tmp_path: Path) -> None:
    picture = np.random.default_rng(0).integers(0, 60, (88, 88, 3)).astype(np.uint8)  # dark, of very many colours
    picture[:4, :4] = 214, 39, 40
    shown = PictureAttention(picture, ("red",), np.full((1, 2, 2), 0.25))
    with Image.open(write_sheet([shown], tmp_path / "sheet.png")) as image:
        red = np.asarray(image.convert("RGB"))[BETWEEN + TITLE + 1, BETWEEN + PICTURE + BETWEEN + 1].astype(int)
    assert np.abs(red - (214, 39, 40)).max() < 12


def test_a_sheet_of_nothing_is_refused() -> None:
    with pytest.raises(RegardError, match=r"There is no caption to show\. Give at least one"):
        draw_sheet([])
