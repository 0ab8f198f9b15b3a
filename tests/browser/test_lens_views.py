"""Cells, vectors, gradients, positions and learning in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from in_browser import NEEDS_CHROMIUM, in_browser

from regard import api

pytestmark = NEEDS_CHROMIUM

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("browser")
    text = folder / "my.txt"
    text.write_text(f'He said "no (never)" to the cat.\n  Then (2) the cat "left".\n{HOSTILE}\n' * 60)
    given = {
        "data": {"train": str(text)},
        "tokenizer": {"kind": "char"},
        "model": {"name": "transformer", "d_model": 16, "n_layers": 2, "n_heads": 2, "max_context": 64},
        "train": {"max_steps": 6, "n_batch": 4, "n_context": 64, "eval_every": 3},
        "checkpoint": {"has_tensorboard": False, "snapshots": [0, 6], "log_every": 1},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(folder / "cache"))
        yield api.train(given, out=folder / "run").folder  # which is looked at with the cache that knows its text


def test_cells_gradients_and_positions_are_drawn_and_answer_to_keys_and_pointer(tmp_path: Path, run: Path) -> None:
    html = api.look(run, f'the cat "{HOSTILE}"', views=["cells", "gradients", "positions"]).to_html()
    script = """
      const one = (q) => document.querySelector(q), all = (q) => [...document.querySelectorAll(q)];
      const colours = (q) => all(q).map((s) => s.style.background).join();
      found.images = all("img").length;
      found.texts = all(".view-cells .celltext").length;
      const buttons = all(".view-cells [role=radio]"), before = colours(".view-cells .celltext .token");
      found.last = buttons.at(-1).textContent;
      buttons[0].focus();
      buttons[0].dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
      found.moved = document.activeElement === buttons[1] && buttons[1].getAttribute("aria-checked") === "true";
      found.recoloured = colours(".view-cells .celltext .token") !== before;
      const which = () => one(".view-gradients .which").textContent;
      const last = which();
      all(".view-gradients .token")[3].dispatchEvent(new PointerEvent("pointerenter"));
      found.gradient = [last, which()];
      found.heats = all(".view-positions canvas").length;
      one(".view-positions canvas").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
      found.tip = one(".view-positions canvas").dataset.tip;
      found.labels = all(".view-positions canvas, .view svg").every((c) => c.getAttribute("aria-label"));
      found.tables = all(".view details table").length;
      found.wide = document.documentElement.scrollWidth <= innerWidth;
    """
    found = in_browser(tmp_path, html, script)
    assert found["images"] == 0  # text stays text
    assert found["texts"] == 2  # the user's text, and a passage
    assert found["last"] == "follows nothing"
    assert (found["moved"], found["recoloured"], found["labels"], found["wide"]) == (True, True, True, True)
    assert found["gradient"] == ['The prediction of “"”', "The prediction of “e”"]
    assert found["heats"] == 2
    assert found["tip"].startswith("position 1, number 0:")
    assert found["tables"] == 3


def test_sliders_move_through_layers_and_through_snapshots(tmp_path: Path, run: Path) -> None:
    words = api.look(run, ["the cat said", f"Then {HOSTILE} cat"], word="cat", views=["vectors"])
    learned = api.look(run, "the cat said no", over_time=True)
    script = """
      const one = (q) => document.querySelector(q), all = (q) => [...document.querySelectorAll(q)];
      const shown = () => all("circle").map((c) => c.getAttribute("cx")).join() + one(".view").textContent;
      const before = shown(), slider = one("input[type=range]");
      found.images = all("img").length;
      found.said = one("output").textContent;
      slider.value = 0;
      slider.dispatchEvent(new Event("input"));
      found.first = [one("output").textContent, slider.getAttribute("aria-valuetext")];
      found.changed = shown() !== before;
      found.matrices = all("canvas.matrix").length;
      found.wide = document.documentElement.scrollWidth <= innerWidth;
    """
    found = in_browser(tmp_path, words.to_html(), script, width=390)
    assert (found["images"], found["said"], found["first"]) == (0, "layer 2", ["the embedding", "the embedding"])
    assert (found["changed"], found["wide"]) == (True, True)
    found = in_browser(tmp_path, learned.to_html(), script, width=390, is_dark=True)
    assert (found["said"], found["first"], found["changed"]) == ("6", ["0", "0"], True)
    assert (found["matrices"], found["wide"]) == (1, True)


def test_layers_are_drawn_and_rows_can_be_chosen(tmp_path: Path, run: Path) -> None:
    html = api.look(run, f"the cat {HOSTILE}", views=["surprise", "layers"]).to_html()
    script = """
      const one = (q) => document.querySelector(q), all = (q) => [...document.querySelectorAll(q)];
      found.images = all("img").length;
      found.heads = all(".says-table thead th").map((th) => th.textContent);
      found.rows = all(".says-table tbody tr").length;
      const which = () => one(".view-layers .which").textContent;
      const before = which(), rows = all(".says-table tbody tr");
      rows.at(-1).focus();
      rows.at(-1).dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowUp", bubbles: true }));
      found.which = [before, which()];
      found.moved = document.activeElement === rows.at(-2) && rows.at(-2).tabIndex === 0 && rows.at(-1).tabIndex === -1;
      found.bars = all(".view-layers .distributions > div").length;
      rows[1].dispatchEvent(new PointerEvent("pointerenter"));
      found.linked = all(".view-surprise .token.hovered").map((s) => s.dataset.token);
      found.wide = document.documentElement.scrollWidth <= innerWidth;
    """
    found = in_browser(tmp_path, html, script)
    assert found["images"] == 0
    assert found["heads"] == ["after", "embedding", "layer 1", "layer 2", "came"]
    assert found["rows"] == 1 + len(f"the cat {HOSTILE}")
    assert found["which"] == ["After “>”", "After “)”, where “>” came"]
    assert found["moved"]
    assert found["bars"] == 3  # a list for each layer
    assert found["linked"] == ["2"]  # the token that row 1 expects
    assert found["wide"]
