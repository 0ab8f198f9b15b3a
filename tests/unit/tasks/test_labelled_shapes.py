"""Batches of labelled texts that are padded to few shapes: the loss is the same, and so is a replayed training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_training import same_runs

from regard import api
from regard.tasks.table import build_config, task_of

WORDS = {"kind": "word", "vocab_size": None}
LSTM = {"name": "lstm", "d_model": 8, "n_layers": 1, "p_dropout": 0.2}
RECIPES: dict[str, dict[str, Any]] = {
    "classification": {"data": {"train": "grammar:en-sentiment:60"}, "head": {"weights": "balanced", "smoothing": 0.1}},
    "rating": {"data": {"train": "grammar:en-stars:60"}},
    "tagging": {"data": {"train": "grammar:en-ner:60"}, "words": {"d_word": 4, "filters": [0, 3]}},
    "tagging by a random field": {"data": {"train": "grammar:en-ner:60"}, "head": {"has_crf": True}},
    "answering": {"data": {"train": "grammar:questions:60"}},
}
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def recipe_of(name: str) -> dict[str, Any]:
    train = {"n_batch": 8, "max_steps": 40, "eval_every": 20}
    return {"task": name.split()[0], "tokenizer": WORDS, "model": LSTM, "train": train, **RECIPES[name]}


@pytest.mark.parametrize("name", RECIPES)
def test_padding_to_a_shape_changes_no_loss(name: str) -> None:
    config = build_config(recipe_of(name), is_new=True)
    task = task_of(config)
    config = task.complete(task.check(config))
    data = task.prepare(config)
    config = task.fill_in(config, data)
    model: Any = task.build(config, task.tokenizers(data))
    task.fill_vectors(config, model, data)
    model.double().eval()
    objective = task.objective(config, model, data)
    n_padded = 0
    for index in range(objective.per_epoch):
        batch = objective.at(index)
        padded = objective.round_shape(batch)
        n_padded += padded.tensors[0].numel() - batch.tensors[0].numel()
        plain, same = (objective.loss(model, objective.body(model), each.tensors, None) for each in (batch, padded))
        torch.testing.assert_close(same.goal, plain.goal, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(same.nats, plain.nats, rtol=1e-12, atol=1e-12)
    assert n_padded > 0


@needs_gpu
@pytest.mark.parametrize("name", RECIPES)
def test_replayed_updates_give_the_same_bits(tmp_path: Path, name: str) -> None:
    for is_replayed in (False, True):
        runtime = {"device": "cuda", "is_deterministic": True, "is_replayed": is_replayed}
        api.train({**recipe_of(name), "runtime": runtime}, out=tmp_path / str(is_replayed), is_tested=False)
    assert same_runs(tmp_path / "True", tmp_path / "False")
