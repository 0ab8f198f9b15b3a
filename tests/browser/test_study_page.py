"""A study's page in a real headless Chromium: the figure is shown, and nothing is wider than the window."""

from dataclasses import replace
from pathlib import Path

import pytest
from in_browser import NEEDS_CHROMIUM, in_browser
from made_up_study import made_up_study

from regard.report.shell import frame_page
from regard.report.study import render_study

pytestmark = NEEDS_CHROMIUM


@pytest.mark.parametrize(("width", "shown"), [(500, "narrow"), (1280, "wide")])
def test_one_figure_is_shown_and_the_page_fits_the_window(tmp_path: Path, width: int, shown: str) -> None:
    script = """
      const visible = [...document.querySelectorAll("svg.chart")].filter((s) => s.getBoundingClientRect().height > 100);
      found.figures = visible.map((s) => s.parentElement.className);
      found.lines = visible[0].querySelectorAll(".line").length;
      found.cells = document.querySelectorAll(".numbers td").length;
      found.wide = document.documentElement.scrollWidth; found.window = innerWidth;
    """
    found = in_browser(tmp_path, render_study(made_up_study()), script, width)
    assert found["figures"] == [shown]
    assert found["lines"] == 2
    assert found["cells"] == 2
    assert found["wide"] <= found["window"]


def test_pointing_at_a_line_shows_its_value(tmp_path: Path) -> None:
    script = """
      const spot = document.querySelectorAll(".wide .hit")[1];
      spot.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: 200, clientY: 200 }));
      found.tip = document.getElementById("tip").innerText;
      found.hidden = document.getElementById("tip").hidden;
    """
    found = in_browser(tmp_path, render_study(made_up_study()), script)
    assert found == {"tip": "rnn: 0.10", "hidden": False}


def test_a_notebook_shows_the_page_as_high_as_it_is_and_720_pixels_at_most(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(render_study(made_up_study()), encoding="utf-8")
    study = replace(made_up_study(), folder=tmp_path)
    short = frame_page("<!doctype html><head></head>short")
    notebook = f"<!doctype html><html><body>{study._repr_html_()}{short}</body></html>"
    script = """
      const [page, short] = [...document.querySelectorAll("iframe")];
      found.height = page.clientHeight; found.short = short.clientHeight < 100;
      found.question = page.contentDocument.querySelector("h1").innerText;
      found.kicker = getComputedStyle(page.contentDocument.querySelector(".kicker")).display;
    """
    found = in_browser(tmp_path, notebook, script)
    assert found == {"height": 720, "short": True, "question": "Does it fall?", "kicker": "none"}
