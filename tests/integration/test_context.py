"""A model sees at most what it is trained on: no verb reads a position that was never learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.config import RunConfig
from regard.models.table import MODELS, models_for

WITH_LIMIT = [
    name
    for name in models_for("language-model")
    if any(line.name == "max_context" for line in MODELS[name].config.help())
]


def recipe(text: Path, name: str, **sections: Any) -> dict[str, Any]:
    small = {"d_model": 16, "n_layers": 1, "n_heads": 2}
    known = [line.name for line in MODELS[name].config.help()]
    model = {"name": name, **{key: value for key, value in small.items() if key in known}}
    given: dict[str, Any] = {
        "data": {"train": str(text)},
        "tokenizer": {"kind": "char"},
        "model": model,
        "train": {"max_steps": 2, "n_batch": 4, "n_context": 24, "eval_every": 2},
        "checkpoint": {"has_tensorboard": False},
    }
    return {key: {**value, **sections.get(key, {})} for key, value in given.items()}


def limit_of(config: RunConfig) -> int:
    found = config.model.to_dict()["max_context"]
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize("name", WITH_LIMIT)
def test_the_context_of_a_model_follows_what_it_is_trained_on(name: str, text: Path) -> None:
    assert limit_of(regard.plan(recipe(text, name)).config) == 24
    left_open = regard.plan(recipe(text, name, model={"max_context": 32}, train={"n_context": None})).config
    assert (limit_of(left_open), left_open.train.n_context) == (32, 32)


@pytest.mark.parametrize("name", WITH_LIMIT)
def test_a_context_that_would_not_be_trained_is_refused(name: str, text: Path) -> None:
    with pytest.raises(
        regard.RegardError,
        match=r"train.n_context is 24 and model.max_context 64: the positions after 24 would never be trained.*equal",
    ):
        regard.plan(recipe(text, name, model={"max_context": 64}))


def test_no_verb_reads_a_position_that_was_not_trained(text: Path, tmp_path: Path) -> None:
    """The rows of the position table after the trained ones do not exist, so that nothing can read them."""
    run = regard.train(recipe(text, "transformer"), out=tmp_path / "run")
    assert isinstance(run, regard.LanguageModelRun)
    assert isinstance(run.model, torch.nn.Module)
    positions = dict(run.model.named_parameters())["mixer.positions.table"]
    assert len(positions) == 24
    long = "the cat sat on the mat, " * 10
    assert run.score(long).bits_per_byte > 0
    assert sum(1 for _ in run.stream("the cat sat", max_tokens=40)) > 0
    assert run.evaluate().n_tokens > 24


def test_the_numbers_that_were_left_open_are_written_out(text: Path, tmp_path: Path) -> None:
    for name in ("lstm", "transformer"):
        run = regard.train(recipe(text, name, train={"n_context": None}), out=tmp_path / name)
        train, optimizer = run.config.train, run.config.optimizer
        assert (optimizer.lr, optimizer.weight_decay) == (MODELS[name].lr, 0.1)
        assert train.n_context == (128 if name == "transformer" else 64)
        assert "lr: null" not in (tmp_path / name / "config.yaml").read_text()


def test_a_finished_run_is_trained_longer(text: Path, tmp_path: Path) -> None:
    regard.train(recipe(text, "lstm"), out=tmp_path / "run")
    longer = regard.train(out=tmp_path / "run", resume=True, settings=["train.max_steps=4"])
    assert longer.config.train.max_steps == 4
    assert '"step": 4' in (tmp_path / "run" / "metrics.jsonl").read_text()
    with pytest.raises(regard.RegardError, match=r"was begun with train\.n_batch = 4, and now train\.n_batch = 8"):
        regard.train(out=tmp_path / "run", resume=True, settings=["train.n_batch=8"])
