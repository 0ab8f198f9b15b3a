"""Where each word looked: the drawing says what the weights say, and the page holds what it needs."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_browser import NEEDS_CHROMIUM, in_browser
from PIL import Image

from regard.errors import RegardError
from regard.lens.picture_attention import PictureAttention
from regard.report.caption_panels import (
    DARKEST,
    FRAME,
    GAP,
    LABEL,
    LINE,
    PANEL,
    draw_line_around,
    draw_panels,
    shade_picture,
    smooth,
    write_panels,
)
from regard.report.captions import attention_page

BLUE = 2  # the channel that has nothing of the line
WHITE = np.full((64, 64, 3), 255, dtype=np.uint8)


def looking(*places: tuple[int, int], words: tuple[str, ...] | None = None, side: int = 4) -> PictureAttention:
    """Each word looks at one place of a grid."""
    weights = np.zeros((len(places), side, side))
    for i, place in enumerate(places):
        weights[(i, *place)] = 1.0
    return PictureAttention(WHITE, words or tuple(f"w{i}" for i in range(len(places))), weights, "dog.jpg")


def test_a_word_brightens_the_place_it_looks_at_and_darkens_the_others() -> None:
    panel = shade_picture(WHITE, looking((1, 2)).weights[0]).astype(int)[..., BLUE]
    rows, columns = np.unravel_index(panel.argmax(), panel.shape)
    assert (rows // 16, columns // 16) == (1, 2)
    assert panel.max() == 255
    assert panel[60, 4] == pytest.approx(255 * DARKEST, abs=1)


def test_a_line_runs_where_attention_is_half_its_largest() -> None:
    # The slope is 1/10 a pixel and crosses a half at pixel 5: two pixels wide, a line covers it and half of 4 and 6.
    slope = np.tile(np.arange(11) / 10, (3, 1))
    np.testing.assert_allclose(draw_line_around(slope)[1], [0, 0, 0, 0, 0.5, 1, 0.5, 0, 0, 0, 0], atol=1e-9)
    panel = shade_picture(WHITE, looking((1, 2)).weights[0])
    on_line = (panel == LINE).all(-1)
    rows, columns = np.nonzero(on_line)
    assert (rows.min() + rows.max() + 1, columns.min() + columns.max() + 1) == (2 * 24, 2 * 40)  # around the cell
    assert 12 < rows.max() - rows.min() < 20
    assert not on_line[24, 40]  # the middle of what is looked at is the picture itself


def test_even_attention_leaves_the_picture_as_it_is() -> None:
    np.testing.assert_array_equal(shade_picture(WHITE, np.full((4, 4), 1 / 16)), WHITE)


@given(st.lists(st.floats(0, 1), min_size=6, max_size=6).filter(lambda x: max(x) > 0.01))
def test_drawn_weights_lie_between_zero_and_one(values: list[float]) -> None:
    drawn = smooth(np.array(values).reshape(2, 3), (20, 30))
    assert drawn.shape == (20, 30)
    assert drawn.min() >= 0
    assert drawn.max() == 1


def test_panels_stand_in_the_order_of_the_words() -> None:
    sheet = np.asarray(draw_panels(looking((0, 0), (3, 3), (0, 3)), n_columns=2)).astype(int)[..., BLUE]
    assert sheet.shape == (GAP + 2 * (PANEL + LABEL), GAP + 2 * (PANEL + GAP))
    corners = {"first": (8, 8), "last": (PANEL - 8, PANEL - 8), "right": (8, PANEL - 8)}
    lit = []
    for i in range(4):
        y, x = GAP + i // 2 * (PANEL + LABEL), GAP + i % 2 * (PANEL + GAP)
        lit.append({name for name, (dy, dx) in corners.items() if sheet[y + dy, x + dx] > 200})
    assert lit == [{"first", "last", "right"}, {"first"}, {"last"}, {"right"}]


def test_a_white_picture_has_a_frame_around_it() -> None:
    even = PictureAttention(WHITE, ("a",), np.full((1, 4, 4), 1 / 16))
    sheet = np.asarray(draw_panels(even))
    for left in (GAP, GAP + PANEL + GAP):
        inside = sheet[GAP : GAP + PANEL, left : left + PANEL]
        assert (inside == 255).all()
        around = sheet[GAP - 1 : GAP + PANEL + 1, left - 1 : left + PANEL + 1]
        edges = [around[0], around[-1], around[:, 0], around[:, -1]]
        assert all((edge == FRAME).all() for edge in edges)


def test_the_share_on_the_strongest_place_is_told() -> None:
    weights = np.array([[0.5, 0.25, 0.25, 0.0], [0.25] * 4])
    shown = PictureAttention.over((2, 2), WHITE, ["a", "b"], weights)
    assert shown.strongest == [0.5, 0.25]
    assert shown.even == 0.25
    assert shown.weights[0].tolist() == [[0.5, 0.25], [0.25, 0.0]]


def test_the_png_holds_the_panels(tmp_path: Path) -> None:
    shown = looking((0, 0), words=("Donaudampfschifffahrtsgesellschaftskapitän",))
    with Image.open(io.BytesIO(write_panels(shown, tmp_path / "a.png").read_bytes())) as image:
        np.testing.assert_array_equal(np.asarray(image), np.asarray(draw_panels(shown)))


def test_the_page_loads_nothing_and_escapes_what_it_shows(tmp_path: Path) -> None:
    shown = PictureAttention(WHITE, ("<b>", "&"), np.ones((2, 3, 3)), "a<i>.jpg", ("said <u>so</u>",))
    html = attention_page([shown, looking((0, 0))], "Dogs & <cats>")
    assert not re.search(r"https?://|<b>|<i>|<u>|<cats>", html)
    assert "&lt;b&gt; &amp;" in html
    sources = re.findall(r'(?:src="|url\()([^")]*)', html)
    assert len(sources) == 5  # two pictures, once each, and three words
    assert all(source.startswith(("data:image/png;base64,", "data:image/jpeg;base64,")) for source in sources)
    assert html.count("11%") == 2


@pytest.mark.parametrize(
    ("words", "weights", "why"),
    [
        (
            ("a", "b"),
            np.ones((1, 2, 2)),
            r"2 words were given with weights of shape \(1, 2, 2\). Give one word or more",
        ),
        ((), np.ones((0, 2, 2)), "0 words were given"),
        (("a",), np.zeros((1, 2, 2)), "below 0 or none above it. Give the attention after its softmax"),
        (("a",), np.full((1, 2, 2), np.nan), "Give the attention after its softmax"),
        (("a",), np.array([[[1.0, -0.1]]]), "Give the attention after its softmax"),
    ],
)
def test_weights_that_are_no_attention_are_refused(words: tuple[str, ...], weights: np.ndarray, why: str) -> None:
    with pytest.raises(RegardError, match=why):
        PictureAttention(WHITE, words, weights)


def test_weights_of_another_grid_are_refused() -> None:
    with pytest.raises(RegardError, match=r"shape \(1, 5\) do not cover a grid of 2 x 2. Give \(words, 4\)"):
        PictureAttention.over((2, 2), WHITE, ["a"], np.ones((1, 5)))
    with pytest.raises(RegardError, match="There is no caption to show"):
        attention_page([])


@NEEDS_CHROMIUM
def test_a_panel_that_is_pointed_at_is_shown_large(tmp_path: Path) -> None:
    html = attention_page([looking((0, 0), (3, 3), words=("one", "two"))])
    script = """
      const panels = document.querySelectorAll(".panel"), large = document.querySelector(".large img");
      found.before = large.hidden;
      panels[1].dispatchEvent(new Event("pointerenter"));
      found.after = [large.hidden, large.src === panels[1].querySelector("img").src];
      found.said = document.querySelector(".said").textContent;
      panels[0].dispatchEvent(new Event("focus"));  // focus() tells nobody in a window without focus
      found.then = document.querySelector(".said").textContent;
      found.on = [...panels].map(p => p.classList.contains("on"));
      found.wide = document.documentElement.scrollWidth <= innerWidth;
      const frames = [...document.querySelectorAll(".picture")].map(p => getComputedStyle(p).boxShadow);
      found.framed = frames.map(frame => frame.endsWith("0px 0px 0px 1px"));
    """
    found = in_browser(tmp_path, html, script, width=500)
    assert found == {"before": True, "after": [False, True], "said": "two", "then": "one", "on": [True, False],
                     "wide": True, "framed": [True] * 3}  # fmt: skip
