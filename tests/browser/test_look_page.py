"""A page of `regard look` in a real headless Chromium: views are linked, work by keyboard, and fit a phone."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from in_browser import NEEDS_CHROMIUM, in_browser

from regard.lens.alignment_view import view_alignment
from regard.lens.attention_view import view_attention
from regard.lens.look import Panel
from regard.lens.next_word import NextWord
from regard.lens.surprise import view_surprise
from regard.lens.trace import Trace
from regard.lens.view import LookOptions
from regard.report.look import Look, look_next
from regard.report.study import render_study
from regard.studies.by_hand import measure
from regard.studies.config import ByHandConfig
from regard.studies.finding import Study

pytestmark = NEEDS_CHROMIUM

TEXT = "In October, people <b>carve</b> pumpkins; in October they do."
CUTS = [(0, 2), (2, 6), (6, 10), (10, 11), (11, 18), (18, 20), (20, 21), (21, 22), (22, 25), (25, 27), (27, 29),
        (29, 30), (30, 31), (31, 40), (40, 41), (41, 44), (44, 52), (52, 57), (57, 60), (60, 61)]  # fmt: skip


class Made:
    """A subject whose trace is made up: two layers of three heads, of which one looks at the token before."""

    is_written, target, picture, name, text, written = False, None, None, "made-up", TEXT, TEXT

    run = SimpleNamespace(model=None, tokenizers=())

    def __init__(self, n_times: int = 1) -> None:
        from regard.lens.subject import join_words, number_words

        self.text = self.written = TEXT * n_times
        spans = [(a + len(TEXT) * i, b + len(TEXT) * i) for i in range(n_times) for a, b in CUTS]
        self.spans: tuple[Any, ...] = (None, *spans)
        self.tokens = ("<eos>", *(self.text[a:b] for a, b in spans))
        T = len(self.tokens)
        scores = np.random.default_rng(0).normal(size=(2, 3, T, T))
        scores[0, 1] += 9 * np.eye(T, k=-1)
        scores[:, :, ~np.tril(np.ones((T, T), bool))] = -np.inf
        weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
        taps = {f"layers.{i}.attention": weights[i] for i in range(2)}
        self.trace = Trace(self.tokens, np.linspace(0, 9, T), taps)
        self.words = number_words(self.text, self.spans)
        self.word_texts = join_words(self.text, self.tokens, self.spans, self.words)

    def look(self, *views: Any) -> Panel:
        return Panel(
            name=self.name, text=self.text, tokens=self.tokens, spans=self.spans, words=self.words,
            word_texts=self.word_texts, views=tuple(make(self, LookOptions()) for make in views),
        )  # fmt: skip


@pytest.fixture(scope="module")
def html() -> str:
    return Look((Made().look(view_surprise, view_attention),)).to_html()


def test_every_head_has_its_name_and_a_click_shows_it(tmp_path: Path, html: str) -> None:
    script = """
      const heads = [...document.querySelectorAll(".headmark")];
      found.heads = heads.length;
      found.second = heads[1].getAttribute("aria-label");
      heads[4].click();
      found.which = document.querySelector(".chosen .which").textContent;
      found.checked = document.querySelectorAll('.headmark[aria-checked="true"]').length;
      found.markup = document.querySelectorAll("main b b, .looktext b").length;
    """
    found = in_browser(tmp_path, html, script)
    assert found["heads"] == 6
    assert found["second"].startswith("Layer 1, head 2: previous token 100%")
    assert found["which"].startswith("Layer 2, head 2: ")
    assert found["checked"] == 1
    assert found["markup"] == 0  # the text's <b> is text


def test_pointing_at_a_word_of_one_view_moves_all_others(tmp_path: Path, html: str) -> None:
    script = """
      const token = document.querySelector('.view-surprise [data-token="3"]');
      token.dispatchEvent(new PointerEvent("pointerenter"));
      found.says = document.querySelector(".says").textContent;
      found.detail = document.querySelector(".detail .which").textContent;
    """
    found = in_browser(tmp_path, html, script)
    assert found["says"].startswith("“October” looks at “")
    assert found["detail"].startswith("“ober” cost 1.95 bits")


def test_heads_lines_matrix_and_text_work_by_keyboard(tmp_path: Path, html: str) -> None:
    script = """
      const key = (node, name) => node.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
      const which = () => document.querySelector(".chosen .which").textContent.split(":")[0];
      const on = document.querySelector(".headmark.on");
      on.focus();
      key(on, "ArrowDown"); found.down = which();
      key(document.activeElement, "ArrowRight"); found.right = which();
      const lines = document.querySelector("canvas.lines");
      key(lines, "ArrowDown"); key(lines, "ArrowDown"); found.lines = document.querySelector(".says").textContent;
      const modes = [...document.querySelectorAll('[aria-label="show"] [role="radio"]')];
      modes[0].focus(); key(modes[0], "ArrowRight");
      const matrix = document.querySelector("canvas.matrix");
      key(matrix, "ArrowDown"); found.tip = matrix.dataset.tip;
      key(modes[1], "ArrowRight"); found.text = document.querySelectorAll(".stage .token").length;
      [...document.querySelectorAll('[aria-label="by"] [role="radio"]')][1].click();
      found.asked = document.querySelectorAll(".stage .asked").length;
    """
    found = in_browser(tmp_path, html, script)
    assert (found["down"], found["right"]) == ("Layer 2, head 2", "Layer 2, head 3")
    assert found["lines"].startswith("“In” looks at “")
    assert found["tip"].startswith("“October” looks at “<eos>”: ")
    assert found["text"] == 21
    assert found["asked"] == 1


@pytest.mark.parametrize("is_dark", [False, True])
def test_the_page_fits_a_phone_and_shows_its_numbers(tmp_path: Path, html: str, is_dark: bool) -> None:
    script = """
      found.wide = document.documentElement.scrollWidth; found.window = innerWidth;
      for (const fold of document.querySelectorAll("details")) fold.open = true;
      found.rows = document.querySelectorAll(".view-attention .behind tbody tr").length;
      found.after = document.documentElement.scrollWidth;
    """
    found = in_browser(tmp_path, html, script, width=390, is_dark=is_dark)
    assert max(found["wide"], found["after"]) <= found["window"]
    assert found["rows"] == 6 + 21


def test_a_thousand_tokens_are_shown_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    page = Look((Made(50).look(view_attention),)).to_html()
    script = """
      const lines = document.querySelector("canvas.lines");
      found.height = lines.height / devicePixelRatio;
      const box = document.querySelector(".scroller.tall");
      found.inner = box.scrollHeight > 10000;
      found.note = document.querySelector("#attention .note").textContent.includes("as small pictures only");
      found.says = document.querySelector(".headmark:not(.on)") !== null;
    """
    found = in_browser(tmp_path, page, script)
    assert found["height"] <= 620
    assert found["inner"]
    assert found["note"] is (1001 * 1001 * 6 > 6_000_000)
    assert len(page) < 9_500_000


def test_changing_a_number_by_hand_changes_all_that_follows(tmp_path: Path) -> None:
    finding = measure(ByHandConfig(), (), lambda *_: None)
    study = Study(
        name="by-hand", finding=finding, command="", settings={}, hardware="", versions={}, date="", seconds=0.0
    )
    script = """
      const box = document.querySelectorAll(".example")[3];
      const cells = () => [...box.querySelectorAll("tbody tr")].map((tr) => tr.children[3].textContent);
      found.before = cells();
      const score = box.querySelector('[aria-label="score of word 2"]');
      score.value = "112"; score.dispatchEvent(new Event("input"));
      found.after = cells();
      const aaba = document.querySelector(".example");
      found.z = aaba.querySelector(".z").textContent;
      const query = aaba.querySelector('[aria-label="query, number 2"]');
      query.value = "0"; query.dispatchEvent(new Event("input"));
      found.plain = aaba.querySelector(".z").textContent;
      const x = document.querySelectorAll(".example")[5];
      const rows = [...x.querySelectorAll(".matrices")[2].querySelector("table").rows];
      found.S = rows.map((row) => [...row.cells].map((cell) => cell.textContent).join(" "));
      const slider = document.querySelector('input[type="range"]');
      slider.value = "0"; slider.dispatchEvent(new Event("input"));
      found.regression = document.querySelectorAll(".example")[6].querySelector(".which").textContent;
    """
    found = in_browser(tmp_path, render_study(study), script)
    assert found["before"] == ["0.881", "0.119", "0.000", "0.000"]
    assert found["after"] == ["0.500", "0.500", "0.000", "0.000"]
    assert found["z"] == "z = [0.5, 0.5]"
    assert found["plain"] == "z = [0.75, 0.25]"
    assert found["S"] == ["0 1 1", "1 1 2", "1 2 3"]
    assert found["regression"].startswith("x = 0: ŷ = 0.2")


def test_next_words_are_bars_with_their_reasons(tmp_path: Path) -> None:
    ranked = [("Halloween", 0.5), ("<i>x</i>", 0.25)]
    shown = NextWord(name="ngram", text="they", distributions={"tokens": ranked}, reasons={"Halloween": "3 of 6 times"})
    script = """
      found.bars = [...document.querySelectorAll(".bar")].map((b) => b.getAttribute("aria-label"));
      found.why = [...document.querySelectorAll(".why")].map((w) => w.textContent);
    """
    found = in_browser(tmp_path, look_next([shown]).to_html(), script)
    assert found == {"bars": ["Halloween: 50%", "<i>x</i>: 25%"], "why": ["3 of 6 times"]}


def test_alignments_are_drawn_for_every_layer_and_head(tmp_path: Path) -> None:
    class Pair(Made):
        is_written, target = True, "Ein Hund"

        def __init__(self) -> None:
            self.text, self.written = "A dog", "Ein Hund"
            self.tokens, self.spans = ("Ein", "Hund", "<end>"), ((0, 3), (4, 8), None)
            weights = np.array([[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], [[0.1, 0.9], [0.4, 0.6], [0.5, 0.5]]])
            taps = {"layers.0.cross_attention": weights}
            spans = ((0, 1), (2, 5))
            self.trace = Trace(
                self.tokens, np.zeros(3), taps, self.spans, ("<eos>", "Ein", "Hund"), ("A", "dog"), spans
            )
            self.words, self.word_texts = (0, 1, 2), ("Ein", "Hund", "<end>")

    view = view_alignment(Pair(), LookOptions(gold="0-0 1-1"))  # type: ignore[arg-type]
    assert view is not None
    assert view.data["gold"] == [(0, 0, "sure"), (1, 1, "sure")]
    page = Look((Pair().look(lambda subject, options: view),)).to_html()
    script = """
      const press = (name) => new KeyboardEvent("keydown", { key: name });
      const key = (name) => document.querySelector("canvas.matrix").dispatchEvent(press(name));
      key("ArrowUp"); found.mean = document.querySelector("canvas.matrix").dataset.tip;
      [...document.querySelectorAll('[aria-label="head"] [role="radio"]')][1].click();
      key("ArrowUp"); found.first = document.querySelector("canvas.matrix").dataset.tip;
    """
    found = in_browser(tmp_path, page, script)
    assert json.dumps(found, ensure_ascii=False) == json.dumps(
        {"mean": "“Ein” looks at “A”: 50%", "first": "“Ein” looks at “A”: 90%"}, ensure_ascii=False
    )
