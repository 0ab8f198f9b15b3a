"""Texts from outside in pictures: formulas, commands to a terminal, and scripts that the font lacks."""

from __future__ import annotations

import dataclasses
import io
import warnings
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from interleaving import PATIENCE
from matplotlib.text import Text

from regard.lens.look import Panel
from regard.lens.view import View
from regard.report import figure as figures
from regard.report.comparison_picture import write_overview
from regard.report.figure import drawing, log_y, new_figure, show_spaces
from regard.report.lens_pictures import show_character
from regard.report.look_pictures import draw_picture
from tests.made_up_comparison import made_up_comparison

HOSTILE = ["\x1b]0;owned\x07", "$x^{$", "$\\frac{1}{$ and $", "猫が座る", "\udcff"]


@pytest.fixture(autouse=True)
def _no_warning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("name", HOSTILE)
def test_a_comparison_of_contenders_with_odd_names_is_drawn(name: str, tmp_path: Path) -> None:
    comparison = made_up_comparison(("rnn", "lstm"))
    named = tuple(dataclasses.replace(c, name=c.name.replace("rnn", name)) for c in comparison.contenders)
    ranking = tuple(one.replace("rnn", name) for one in comparison.ranking)
    shown = dataclasses.replace(comparison, contenders=named, ranking=ranking, headline=(f"{name} leads.",))
    write_overview(shown, tmp_path / "overview.png")
    assert (tmp_path / "overview.png").stat().st_size > 10_000


@pytest.mark.parametrize("word", HOSTILE)
def test_a_view_of_odd_words_is_drawn_and_its_svg_can_be_read(word: str, tmp_path: Path) -> None:
    view = View(name="surprise", title="", note="", data={"bits": [1.0, 2.0]}, summary=f"bits of {word}")
    panel = Panel(
        name=word, text=f"a{word}", tokens=("a", word), spans=((0, 1), (1, 2)), words=(), word_texts=(), views=(view,)
    )
    draw_picture(view, panel, tmp_path / "view", "#2166ac")
    ET.parse(tmp_path / "view.svg")
    assert (tmp_path / "view.png").stat().st_size > 1000


def test_what_stands_between_dollars_is_shown_as_it_is() -> None:
    with drawing():
        text = new_figure(4, 3, "from $1 to $2", "", 40).text(0, 0, show_spaces("$x$"))
    assert not text.get_parse_math()
    assert text.get_text() == "$x$"


def test_powers_of_ten_are_written_plainly_beside_an_axis() -> None:
    with drawing():
        axes = new_figure(4, 3, "", "", 40).subplots()
        log_y(axes)
        axes.plot([1, 2], [1e-5, 1e-3])
        axes.figure.draw_without_rendering()
        assert "1e-4" in [label.get_text() for label in axes.get_yticklabels()]


def test_a_font_of_this_machine_helps_out_where_ours_lacks_a_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "FONTS", ("No Such Font", "STIXGeneral"))
    with drawing():
        figure = new_figure(4, 3, "a title", "", 40)
    assert [text.get_fontfamily() for text in figure.findobj(Text)] == [["DejaVu Sans", "STIXGeneral"]]


def test_threads_draw_one_after_the_other_and_leave_matplotlib_as_it_was() -> None:
    """The first to begin ends first: where both were inside, the second kept what the first had set, for good."""
    before, filters = dict(mpl.rcParams), list(warnings.filters)
    first, second = drawing(), drawing()

    def draw() -> None:
        figure = new_figure(4, 3, "a title with $x^{$", "", 80)
        figure.savefig(io.BytesIO(), format="png")

    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        one.submit(first.__enter__).result()
        wait([has_entered := other.submit(second.__enter__)], PATIENCE)
        one.submit(first.__exit__, None, None, None).result()
        has_entered.result()
        other.submit(draw).result()
        other.submit(second.__exit__, None, None, None).result()
    assert dict(mpl.rcParams) == before
    assert list(warnings.filters) == filters


@pytest.mark.parametrize(
    ("character", "shown"), [("\u3000", " "), ("\u00a0", " "), ("\n", "⏎"), ("\x1b", "�"), ("a", "a")]
)
def test_spaces_of_every_script_are_blank_in_pictures_of_cells(character: str, shown: str) -> None:
    assert show_character(character) == shown
