"""Cells, vectors, gradients, positions and learning through `regard look`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard import api
from regard.errors import RegardError
from regard.lens import cell_view

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def little_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little is searched that a test takes a second: the tests' checks of shapes slow every step of a model."""
    monkeypatch.setattr(cell_view, "MAX_CHARS", 900)


@pytest.fixture(scope="session")
def watched_run(text: Path, tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> Path:
    given = {
        "data": {"train": str(text)},
        "tokenizer": {"kind": "char"},
        "model": {"name": "lstm", "d_model": 16, "n_layers": 1},
        "train": {"max_steps": 6, "n_batch": 4, "n_context": 16, "eval_every": 3},
        "checkpoint": {"has_tensorboard": False, "snapshots": [0, 3, 6], "log_every": 1},
    }
    return api.train(given, out=tmp_path_factory.mktemp("runs") / "watched").folder


def test_cells_are_found_on_held_out_text_and_shown_on_the_users(
    regard: Command, lstm_run: Path, tmp_path: Path
) -> None:
    done = regard("look", lstm_run, "--text", "my cat sat.", "--view", "cells", "--out", tmp_path / "look")
    assert done.code == 0, done.err
    assert "A cell that means something: Cell" in done.out.replace("\n", " ")
    view = json.loads((tmp_path / "look" / "look.json").read_text())["panels"][0]["views"]["cells"]
    assert "text that it was not trained on" in view["note"]
    assert view["data"]["cells"][0]["ownTokens"] == list("my cat sat.")
    assert [cell["r"] is None for cell in view["data"]["cells"]].count(True) == 1  # the one that follows nothing
    assert {path.name for path in (tmp_path / "look").iterdir()} >= {"index.html", "cells.png", "cells.svg"}


def test_cells_are_searched_on_a_file_of_the_users(regard: Command, lstm_run: Path, tmp_path: Path) -> None:
    long = tmp_path / "long.txt"
    long.write_text("the (cat) sat.\n" * 40)
    words = ("look", lstm_run, "--text", "a cat", "--view", "cells", "--out", tmp_path / "look", "--search")
    assert regard(*words, long).code == 0
    view = json.loads((tmp_path / "look" / "look.json").read_text())["panels"][0]["views"]["cells"]
    assert any(cell["feature"] == "bracket depth" for cell in view["data"]["cells"])
    missing = regard(*words, tmp_path / "none.txt")
    assert missing.code == 2
    assert "cannot be read: No such file or directory. Give --search a text file." in missing.err.replace("\n", " ")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    said = regard(*words, tmp_path / "bytes").err.replace("\n", " ")
    assert "is UTF-16 text, not UTF-8. --search takes a text file in UTF-8." in said


def test_a_word_is_compared_in_several_texts(regard: Command, transformer_run: Path, tmp_path: Path) -> None:
    texts = ("--text", "the cat sat", "--text", "a cat left")
    done = regard("look", transformer_run, "--word", "cat", *texts, "--out", tmp_path / "look")
    assert done.code == 0, done.err
    assert "“cat” in context: 2 occurrences" in done.out.replace("\n", " ")
    assert "<h1>“cat” in 2 texts</h1>" in (tmp_path / "look" / "index.html").read_text()  # and not the first of them
    no_word = regard("look", transformer_run, *texts, "--out", tmp_path / "other")
    assert no_word.code == 2
    assert "2 texts are compared by a word that is in all of them: add --word WORD." in no_word.err.replace("\n", " ")
    absent = regard("look", transformer_run, "--word", "dog", *texts, "--out", tmp_path / "other")
    assert "The word 'dog' is not in the text 'the cat sat'." in absent.err.replace("\n", " ")


def test_positions_and_gradients_of_a_transformer(transformer_run: Path) -> None:
    found = api.look(transformer_run, "the cat sat", views=["positions", "gradients"])
    assert set(found.views) == {"positions", "gradients"}
    assert found.views["positions"].summary.startswith("16 learned vectors of 16 numbers: the cosine of neighbours is")
    assert len(found.views["gradients"].data["targets"]) == 11  # a prediction for every character


def test_an_ngram_model_has_none_of_these(ngram_run: Path) -> None:
    found = api.look(ngram_run, "the cat sat")
    missing = dict(found.panels[0].missing)
    assert missing["cells"] == "it has no units that read a text"
    assert missing["influence"] == "it counts, and has no gradient: see next for what it counted"
    assert missing["positions"] == "it has no table of positions"
    assert missing["gradients"] == "it is no language model with a gradient"


def test_a_run_is_seen_as_it_learned(regard: Command, watched_run: Path, tmp_path: Path) -> None:
    done = regard("look", watched_run, "--over-time", "--text", "the cat sat on", "--out", tmp_path / "look")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "3 snapshots, from step 0 to step 6." in said
    view = json.loads((tmp_path / "look" / "look.json").read_text())["panels"][0]["views"]["over-time"]
    data = view["data"]
    assert f"The correlation of {data['unit']} with “{data['feature']}” went from" in said
    assert data["steps"] == [0, 3, 6]
    assert all(sample.startswith("the cat sat on") for sample in data["samples"])
    assert data["bits"][0] > data["bits"][-1]  # it has learned something
    assert [len(values) for values in data["cells"]] == [14, 14, 14]
    assert [step for step, _ in data["curves"]["grad_norm"]] == [1, 2, 3, 4, 5, 6]
    assert (tmp_path / "look" / "over-time.png").exists()


def test_snapshots_open_by_step_and_the_last_is_the_end_of_training(watched_run: Path) -> None:
    first, last = api.load(watched_run, step=0), api.load(watched_run, step=6)
    assert first.score("the cat").nats.sum() > last.score("the cat").nats.sum()
    with pytest.raises(RegardError, match=r"did not keep the weights of step 4\. It kept those of the steps 0, 3, 6\."):
        api.load(watched_run, step=4)


def test_a_run_without_snapshots_says_how_to_keep_some(regard: Command, lstm_run: Path, tmp_path: Path) -> None:
    done = regard("look", lstm_run, "--over-time", "--text", "the cat", "--out", tmp_path / "look")
    assert done.code == 2
    said = done.err.replace("\n", " ")
    assert "kept no weights on its way: nothing to see over time." in said
    assert 'checkpoint.snapshots="[0, 10, 100, 1000]"' in said


def test_a_view_that_is_missing_says_the_real_reason(lstm_run: Path) -> None:
    run = api.load(lstm_run)
    found = api.look(run, "t", views=["surprise", "gradients"])
    assert dict(found.panels[0].missing)["gradients"] == "the text is one token long: give a longer one"

    def refuse(n_chars: int) -> str:
        raise RegardError("'lost.txt' is not there.")

    run.held_out_text = refuse
    found = api.look(run, "the cat", views=["surprise", "cells"])
    assert dict(found.panels[0].missing)["cells"] == (
        "there is no text to search, give --search FILE: 'lost.txt' is not there"
    )
