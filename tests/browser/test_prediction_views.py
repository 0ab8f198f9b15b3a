"""The views of one prediction in a real headless Chromium: words as text, bars, and methods by keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from in_browser import NEEDS_CHROMIUM, in_browser

from regard.lens.look import Panel
from regard.lens.view import View
from regard.report.look import Look

pytestmark = NEEDS_CHROMIUM

WORDS = ["<eos>", "<b>bold</b>", "cat", "sat"]
SPANS = (None, (0, 11), (12, 15), (16, 19))


@pytest.fixture(scope="module")
def html() -> str:
    influence = View(
        name="influence", title="Which words a prediction comes from", note="", summary="The next token: “on”.",
        data={
            "what": "the next token", "target": "on", "chance": "12%", "unit": "log P", "words": WORDS,
            "marks": [True, False, False, False], "cut": 0, "tokens": [[0], [1], [2], [3]],
            "methods": {"erasure": [0.0, 0.5, -1.0, 0.25], "gradient × input": [0.0, 0.0, 0.0, 2.0]},
        },
    )  # fmt: skip
    faithfulness = View(
        name="faithfulness", title="Does attention explain it?", note="", summary="Attention explains nothing.",
        data={
            "verdict": "Attention explains nothing.", "what": "the next token", "target": "on", "words": WORDS,
            "marks": [True, False, False, False], "tokens": [[0], [1], [2], [3]],
            "shares": {name: [0.25] * 4 for name in ("attention", "gradients", "erasure")},
            "measures": [{"name": "agreement, τ", "value": None, "says": "1: the same"}], "permuted": [0.1, 0.2],
        },
    )  # fmt: skip
    panel = Panel(
        name="made-up", text="<b>bold</b> cat sat", tokens=tuple(WORDS), spans=SPANS, words=(0, 1, 2, 3),
        word_texts=tuple(WORDS), views=(influence, faithfulness),
    )  # fmt: skip
    return Look((panel,)).to_html()


def test_words_are_shown_as_text_and_bars_follow_the_method(tmp_path: Path, html: str) -> None:
    script = """
      const view = document.querySelector(".view-influence");
      found.words = [...view.querySelectorAll(".token")].map((each) => each.textContent);
      found.markup = document.querySelectorAll(".view b b, .token b").length;
      const bars = () => [...view.querySelectorAll(".influencebars .name")].map((each) => each.textContent.trim());
      found.erasure = bars();
      const radios = [...view.querySelectorAll('[role="radio"]')];
      radios[0].focus();
      radios[0].dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
      found.gradients = bars();
      found.label = view.querySelectorAll(".token")[3].getAttribute("aria-label");
    """
    found = in_browser(tmp_path, html, script)
    assert [word.replace("\u00a0", " ") for word in found["words"]] == WORDS
    assert found["markup"] == 0
    assert found["erasure"] == ["cat", "<b>bold</b>", "sat"]  # the strongest first
    assert found["gradients"] == ["sat"]
    assert found["label"] == "sat: +2.000"


def test_pointing_at_a_word_marks_it_in_both_views(tmp_path: Path, html: str) -> None:
    script = """
      document.querySelectorAll(".view-influence .token")[2].dispatchEvent(new PointerEvent("pointerenter"));
      found.rows = [...document.querySelectorAll(".wordrow.hovered .name")].map((each) => each.textContent);
      found.dots = document.querySelectorAll(".strip circle").length;
      found.fact = document.querySelector(".fact b").textContent;
      found.wide = document.documentElement.scrollWidth <= innerWidth;
    """
    found = in_browser(tmp_path, html, script)
    assert found == {"rows": ["cat"], "dots": 2, "fact": "–", "wide": True}
