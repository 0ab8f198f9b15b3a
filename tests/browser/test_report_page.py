"""The report in a real headless Chromium: does its script run, and do its buttons do what they say?"""

from __future__ import annotations

from pathlib import Path

import pytest
from in_browser import NEEDS_CHROMIUM, in_browser
from made_up_comparison import SIXTEEN, TWELVE, made_up_comparison

from regard.report.comparison import render_comparison

pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def html() -> str:
    return render_comparison(made_up_comparison())


def test_attention_is_drawn_and_a_thumbnail_switches_the_head(tmp_path: Path, html: str) -> None:
    script = """
      const root = document.querySelector("#attention");
      found.drawn = root.querySelectorAll("canvas.lines").length;
      found.heads = root.querySelectorAll(".heads canvas").length;
      found.before = root.querySelector(".which").textContent;
      root.querySelector('[data-head="0,3"]').click();
      found.after = root.querySelector(".which").textContent;
    """
    found = in_browser(tmp_path, html, script)
    assert found["drawn"] == 1
    assert found["heads"] == 12
    assert found["before"] != found["after"]
    assert found["after"].startswith("Layer 1, head 4: ")


def test_the_switch_shows_one_learning_curve_at_a_time(tmp_path: Path, html: str) -> None:
    script = """
      const shown = () => [...document.querySelectorAll("#curves .panel")].filter((p) => !p.hidden).map((p) => p.id);
      found.before = shown();
      document.querySelector('[data-tab="curve-seconds"]').click();
      found.after = shown();
    """
    assert in_browser(tmp_path, html, script) == {"before": ["curve-tokens"], "after": ["curve-seconds"]}


def test_pointing_at_a_word_shows_what_it_cost_every_contender(tmp_path: Path, html: str) -> None:
    script = """
      const word = document.querySelectorAll("#surprise .w")[2];
      const box = word.querySelector(".t").getBoundingClientRect();
      word.querySelector(".t").dispatchEvent(new PointerEvent("pointermove",
        { bubbles: true, clientX: box.left + box.width / 2, clientY: box.top + 3 }));
      found.tip = document.getElementById("tip").innerText;
      found.hidden = document.getElementById("tip").hidden;
    """
    found = in_browser(tmp_path, html, script)
    assert found["hidden"] is False
    for name in ("ngram", "window", "rnn", "lstm", "transformer"):
        assert name in found["tip"]
    assert found["tip"].count("bits") == 5


def test_text_can_be_coloured_by_another_contender_and_another_cell(tmp_path: Path, html: str) -> None:
    script = """
      const text = () => [...document.querySelectorAll("#surprise .t")].map((t) => t.textContent).join("");
      const colours = (q) => [...document.querySelectorAll(q)].map((s) => getComputedStyle(s).backgroundColor).join();
      found.text = text();
      const before = colours("#surprise .t span"), cell = colours("#cells .panel:not([hidden]) .celltext span");
      document.querySelector('[data-colour-by="3"]').click();
      document.querySelectorAll("#cells .panel:not([hidden]) [role=radio]")[1].click();
      found.same_text = text() === found.text;
      found.recoloured = colours("#surprise .t span") !== before;
      found.other_cell = colours("#cells .panel:not([hidden]) .celltext span") !== cell;
    """
    found = in_browser(tmp_path, html, script)
    assert (found["same_text"], found["recoloured"], found["other_cell"]) == (True, True, True)
    assert found["text"].startswith("If\u00a0the\u00a0iterable")


def test_the_strips_are_of_the_five_best_and_the_tip_has_all_twelve(tmp_path: Path) -> None:
    comparison = made_up_comparison(TWELVE)
    script = """
      const word = document.querySelectorAll("#surprise .w")[2];
      word.scrollIntoView({ block: "center" });
      found.strips = word.querySelectorAll(".s").length;
      found.chips = [...document.querySelectorAll("[data-colour-by]")].map((b) => b.textContent);
      const box = word.querySelector(".t").getBoundingClientRect();
      word.querySelector(".t").dispatchEvent(new PointerEvent("pointermove",
        { bubbles: true, clientX: box.left + box.width / 2, clientY: box.top + 3 }));
      const tip = document.getElementById("tip");
      found.rows = tip.querySelectorAll("tr").length;
      found.inside = tip.getBoundingClientRect().bottom <= innerHeight && tip.getBoundingClientRect().top >= 0;
    """
    found = in_browser(tmp_path, render_comparison(comparison), script)
    assert found == {"strips": 5, "chips": list(comparison.ranking), "rows": 12, "inside": True}


def test_the_best_that_attends_is_shown_first_and_every_other_has_its_map(tmp_path: Path) -> None:
    script = """
      found.tabs = [...document.querySelectorAll("#attention [data-tab]")].map((b) => b.textContent);
      found.shown = [...document.querySelectorAll("#attention .panel")].filter((p) => !p.hidden).map((p) => p.id);
      found.maps = document.querySelectorAll("#attention canvas.lines").length;
      found.cells = [...document.querySelectorAll("#cells [data-tab]")].map((b) => b.textContent);
    """
    found = in_browser(tmp_path, render_comparison(made_up_comparison(TWELVE)), script)
    assert found == {
        "tabs": ["transformer", "restricted", "pointer", "rnn-attention", "attention"],
        "shown": ["attention-0"],
        "maps": 5,
        "cells": ["pointer", "rnn-attention", "lstm", "gru", "rnn"],
    }


def test_pointing_at_a_name_fades_all_other_lines(tmp_path: Path) -> None:
    script = """
      const chart = document.querySelector("#curves .wide .chart");
      const name = [...chart.querySelectorAll(".end")].find((t) => t.textContent === "gru");
      const clear = () => [...chart.querySelectorAll("[data-series]")]
        .filter((g) => getComputedStyle(g).opacity === "1").length;
      found.before = clear();
      name.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
      found.pointing = clear();
      chart.dispatchEvent(new PointerEvent("pointerleave"));
      found.after = clear();
    """
    found = in_browser(tmp_path, render_comparison(made_up_comparison(TWELVE)), script)
    assert found == {"before": 24, "pointing": 2, "after": 24}  # a line and a name each


@pytest.mark.parametrize("width", [500, 1280])
@pytest.mark.parametrize("n", [2, 5, 12, 16])
def test_no_name_in_a_chart_covers_another_or_is_cut_off(tmp_path: Path, n: int, width: int) -> None:
    script = """
      for (const panel of document.querySelectorAll("#curves .panel")) panel.hidden = false;
      const kind = innerWidth < 620 ? ".narrow" : ".wide";
      const charts = [...document.querySelectorAll(`${kind} .chart`)].map((chart) => {
        const frame = chart.getBoundingClientRect();
        const boxes = [...chart.querySelectorAll(".end")].map((t) => t.getBoundingClientRect());
        boxes.sort((a, b) => a.top - b.top);
        const type = (kind === ".narrow" ? 12 : 14) * frame.height / chart.viewBox.baseVal.height;
        return { apart: boxes.every((b, i) => i === 0 || b.top - boxes[i - 1].top >= type),
          within: boxes.every((b) => b.right <= frame.right + 1 && b.top >= frame.top && b.bottom <= frame.bottom) };
      });
      found.n = charts.length;
      found.apart = charts.every((c) => c.apart);
      found.within = charts.every((c) => c.within);
    """
    found = in_browser(tmp_path, render_comparison(made_up_comparison(SIXTEEN[:n])), script, width)
    assert found == {"n": 4, "apart": True, "within": True}


@pytest.mark.parametrize("width", [500, 1280])
@pytest.mark.parametrize("n", [5, 16])
def test_nothing_is_wider_than_the_window(tmp_path: Path, n: int, width: int) -> None:
    html = render_comparison(made_up_comparison(SIXTEEN[:n]))
    script = "found.wide = document.documentElement.scrollWidth; found.window = innerWidth;"
    found = in_browser(tmp_path, html, script, width)
    assert found["wide"] <= found["window"]


@pytest.mark.parametrize("is_dark", [False, True])
def test_a_dark_window_gets_a_dark_page_whose_tips_stay_at_the_pointer(
    tmp_path: Path, html: str, is_dark: bool
) -> None:
    script = """
      found.filter = getComputedStyle(document.documentElement).filter;
      const word = document.querySelectorAll("#surprise .w")[2];
      word.scrollIntoView({ block: "center" });
      const box = word.querySelector(".t").getBoundingClientRect();
      word.querySelector(".t").dispatchEvent(new PointerEvent("pointermove",
        { bubbles: true, clientX: box.left + 5, clientY: box.top + 3 }));
      found.below = document.getElementById("tip").getBoundingClientRect().top - box.top;
    """
    found = in_browser(tmp_path, html, script, is_dark=is_dark)
    assert found["filter"] == ("invert(0.91) hue-rotate(180deg)" if is_dark else "none")
    assert found["below"] == pytest.approx(3 + 18, abs=1)


def test_hostile_text_runs_nothing(tmp_path: Path) -> None:
    hostile = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> & " * 3
    html = render_comparison(made_up_comparison(("lstm", "transformer"), passage=hostile, prompt=hostile))
    found = in_browser(tmp_path, html, "found.title = document.title; found.images = document.images.length;")
    assert found == {"title": "Regard: lstm, transformer", "images": 0}
