"""A trained BERT under a task: what it is told of capitals, and how much of a text it reads at once."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard import api
from regard.config import RunConfig
from regard.errors import RegardError

QUICK: dict[str, Any] = {
    "runtime": {"device": "cpu", "n_threads": 1},
    "checkpoint": {"every_seconds": None, "has_tensorboard": False},
    "train": {"max_steps": 1, "eval_every": 1, "n_batch": 8},
}


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    (folder / "my.txt").write_text("the cat sat here . the dog ran there .\n" * 30)
    recipe = {
        **QUICK,
        "model": {"name": "bert", "d_model": 8, "n_layers": 1, "n_heads": 2, "max_context": 32},
        "tokenizer": {"kind": "wordpiece", "vocab_size": 60, "lowercase": True},
        "train": {"max_steps": 1, "eval_every": 1, "n_batch": 2, "n_context": 16},
    }
    api.train(recipe, data=str(folder / "my.txt"), out=folder / "run", is_tested=False)
    return folder / "run"


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A name is a cat with a capital: in lower case the two cannot be told apart."""
    path = tmp_path_factory.mktemp("tags") / "my.conll"
    rows = []
    for i in range(64):
        words = ["the", "sat", "here", *(("Cat", "cat")[i >> k & 1] for k in range(6))]
        rows.append("".join(f"{word} {'B-X' if word == 'Cat' else 'O'}\n" for word in words))
    path.write_text("\n".join(rows) + "\n")
    return path


def train(bert: Path, tagged: Path, out: Path, rate: float = 1e-3, n_steps: int = 1, **encoder: Any) -> Any:
    recipe = {
        **QUICK,
        "task": "tagging",
        "encoder_from": str(bert),
        "encoder": encoder,
        "optimizer": {"lr": rate},
        "train": {"max_steps": n_steps, "eval_every": n_steps, "n_batch": 16},
    }
    return api.train(recipe, data=str(tagged), out=out)


def test_capitals_that_a_vocabulary_folds_can_be_told(bert: Path, tagged: Path, tmp_path: Path) -> None:
    run = train(bert, tagged, tmp_path / "run", rate=0.02, n_steps=100, has_case=True)
    assert run.model.encoder.segments.shape == (8, 8)
    assert run.test_result()["scores"]["entity F1"]["value"] == 100.0
    again = api.load(tmp_path / "run")
    assert [found.tags for found in again.predict(["the Cat sat", "the cat sat"])] == [
        ("O", "B-X", "O"),
        ("O", "O", "O"),
    ]


def test_every_case_begins_as_the_segment_was(bert: Path, tagged: Path, tmp_path: Path) -> None:
    run = train(bert, tagged, tmp_path / "run", rate=1e-12, has_case=True)
    before = api.load(bert).model.segments
    torch.testing.assert_close(run.model.encoder.segments.cpu(), before.cpu().repeat(4, 1), rtol=0, atol=1e-6)


def test_a_shorter_window_than_the_encoder_reads_cuts_texts_and_loses_no_word(
    bert: Path, tagged: Path, tmp_path: Path
) -> None:
    run = train(bert, tagged, tmp_path / "run", max_window=6, stride=2)
    config: RunConfig = run.config
    words = "the cat sat the Cat sat the cat sat"
    windows = run.task.frame(config, run.tokenizers[0], run.model, (words,))
    assert max(map(len, windows.tokens)) <= 6 < len(words.split())
    assert len(windows.places) == len(words.split())


@pytest.mark.parametrize(
    ("model", "more", "said"),
    [
        ("lstm", {}, "encoder.has_case is for BERT's own form"),
        ("bert", {"frozen": True}, "encoder.frozen keeps them from it"),
    ],
)
def test_capitals_that_cannot_be_told_are_refused(
    model: str, more: dict[str, Any], said: str, bert: Path, tagged: Path, tmp_path: Path
) -> None:
    start: dict[str, Any] = {"encoder_from": str(bert)} if model == "bert" else {"model": {"name": model}}
    recipe = {**QUICK, **start, "task": "tagging", "encoder": {"has_case": True, **more}}
    with pytest.raises(RegardError, match=said):
        api.train(recipe, data=str(tagged), out=tmp_path / "run")
