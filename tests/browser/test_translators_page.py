"""The page of finished runs in a real headless Chromium: one chart is shown, and nothing is wider than the window."""

from pathlib import Path

import pytest
from in_browser import NEEDS_CHROMIUM, in_browser
from made_up_translators import made_up_translators

from regard.report.comparison import render_comparison

pytestmark = NEEDS_CHROMIUM


@pytest.mark.parametrize(("width", "shown"), [(500, "narrow"), (1280, "wide")])
def test_one_chart_is_shown_and_the_page_fits_the_window(tmp_path: Path, width: int, shown: str) -> None:
    script = """
      const charts = [...document.querySelectorAll("svg.chart")];
      const visible = () => charts.filter((s) => s.getBoundingClientRect().height > 100);
      found.charts = visible().map((s) => s.parentElement.className);
      found.lines = visible()[0].querySelectorAll(".line").length;
      document.querySelector('[data-tab="curve-seconds"]').click();
      found.then = visible().map((s) => s.closest(".panel").id);
      found.wide = document.documentElement.scrollWidth; found.window = innerWidth;
    """
    found = in_browser(tmp_path, render_comparison(made_up_translators(n_more=6)), script, width)
    assert found["charts"] == [shown]
    assert found["lines"] == 9
    assert found["then"] == ["curve-seconds"]
    assert found["wide"] <= found["window"]
