"""Learning to describe pictures: frozen features, scores against several references."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_captions import run_tiny_captions, tiny_caption_task, tiny_captioner, tiny_captions
from tiny_training import memory_of, same_runs, stop_at

from regard.decode.config import BeamConfig
from regard.errors import RegardError
from regard.models.picture_encoder import EfficientNetPictures, unit_range
from regard.tasks.caption_objective import caption_bleu, sum_caption_nats
from regard.tasks.picture_features import picture_features
from regard.training.averaging import build_average
from regard.training.checkpoint import checkpoint_folders
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.weights import read_tensors

FROZEN = "frozen efficientnet to lstm"
EVERYTHING: dict[str, Any] = {
    "train": {"average": "ema", "average_decay": 0.9, "n_accumulate": 2},
    "teaching": {"mode": "scheduled", "decay": "linear", "n_half": 4, "select_by": "bleu"},
    "checkpoint": {"every_steps": 3},
}
"""All that draws random numbers or remembers something."""


def test_an_efficientnet_that_is_not_frozen_learns_too() -> None:
    prepared = tiny_captions()
    model = tiny_captioner(prepared, FROZEN, is_frozen=False)
    objective = tiny_caption_task(model, prepared, {"n_batch": 4})
    objective.loss(model, objective.body(model), objective.at(0).tensors, None).goal.backward()
    assert all(p.grad is not None for p in model.encoder.network.parameters())  # type: ignore[union-attr]


def test_the_test_of_resuming_would_see_another_order_of_captions(tmp_path: Path) -> None:
    prepared = tiny_captions()
    for folder, n_said in (("a", 2), ("b", 1)):
        some = tiny_captions(n_said=n_said)
        run_tiny_captions(tmp_path / folder, tiny_captioner(prepared, "convolution to lstm"), some)
    assert not same_runs(tmp_path / "a", tmp_path / "b")


def test_frozen_features_are_computed_once_and_teach_what_the_pictures_teach(tmp_path: Path) -> None:
    prepared = tiny_captions()
    model = tiny_captioner(prepared, FROZEN).double()
    encoder = model.encoder
    assert isinstance(encoder, EfficientNetPictures)
    told: list[int] = []
    features = picture_features(encoder, prepared.data, tmp_path, tell=told.append)
    assert told == [12]
    (kept,) = (tmp_path / "features").glob("*.safetensors")
    os.utime(kept, (0, 0))
    assert torch.equal(picture_features(encoder, prepared.data, tmp_path, tell=told.append), features)
    assert told == [12]  # found in the cache
    assert kept.stat().st_mtime > 0  # used just now, so that it is not the first to go where the cache is full
    losses = []
    for given in (None, features):
        objective = tiny_caption_task(model, prepared, features=given)
        tensors, n_tokens, _ = objective.at(5)
        assert tensors[0].shape[1] == (3 if given is None else 320)
        losses.append((objective.loss(model, objective.body(model), tensors, None).goal.item(), n_tokens))
    assert losses[0] == pytest.approx(losses[1], abs=1e-9)
    for split in (prepared.data.train, prepared.data.valid):
        plain, quick = (sum_caption_nats(model, prepared, split, given) for given in (None, features))
        assert plain == pytest.approx(quick, abs=1e-9)


def test_what_is_frozen_stays_and_resuming_from_features_gives_the_same_bits(tmp_path: Path) -> None:
    prepared = tiny_captions()
    first = tiny_captioner(prepared, FROZEN)
    frozen = {name: p.clone() for name, p in first.named_parameters() if not p.requires_grad}
    features = first.encoder.features(  # type: ignore[operator]
        unit_range(torch.from_numpy(prepared.data.squares(range(12))), first.embedding)
    )
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_tiny_captions(whole, first, prepared, features=features, **EVERYTHING)
    for on_step in (stop_at(4), None):
        model = tiny_captioner(prepared, FROZEN)
        run_tiny_captions(parts, model, prepared, resume=True, features=features, on_step=on_step, **EVERYTHING)
    assert same_runs(whole, parts)
    assert frozen
    for folder in (whole, parts):
        saved = read_tensors(folder / "model.safetensors")
        assert all(torch.equal(saved[name], value) for name, value in frozen.items())
    slots = read_tensors(checkpoint_folders(whole)[-1] / "optimizer.safetensors")
    assert not any(name.startswith("encoder.network.") for name in slots)


@pytest.mark.parametrize("average", ["ema", "nt-asgd", "last"])
def test_no_average_holds_what_is_frozen(average: str) -> None:
    model = tiny_captioner(tiny_captions(), FROZEN)
    built = build_average(model, TrainConfig(average=average, eval_every=1))
    assert built is not None
    built.observe([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    built.update(1)
    assert {name.startswith("encoder.network.") for name in built.average} == {False}


def test_the_nats_of_a_split_are_the_sum_over_its_captions() -> None:
    """Each picture is encoded once for all its captions; one by one it comes to the same."""
    prepared = tiny_captions()
    model = tiny_captioner(prepared, "convolution to lstm").double().eval()
    split, tokenizer = prepared.data.valid, prepared.tokenizer
    total, n = 0.0, 0
    for number, texts in zip(split.numbers, split.captions, strict=True):
        for text in texts:
            ids = [*tokenizer.encode(text).tolist(), tokenizer.eos]
            inputs = torch.tensor([[tokenizer.eos, *ids[:-1]]])
            log_probs = model(torch.from_numpy(prepared.data.squares([number])), inputs)[0].detach()
            total -= sum(float(log_probs[t, word]) for t, word in enumerate(ids))
            n += len(ids)
    assert sum_caption_nats(model, prepared, split) == pytest.approx((total, n), abs=1e-9)
    score = tiny_caption_task(model, prepared).evaluate(model)
    assert score is not None
    assert score.nats_per_token == pytest.approx(total / n, abs=1e-9)
    assert score.bits_per_byte == pytest.approx(total / math.log(2) / split.n_bytes, abs=1e-9)
    assert split.n_bytes == sum(len(text) for texts in split.captions for text in texts)


def test_bleu_takes_the_best_of_several_references(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two captions is said word for word, in capitals: all of it counts."""
    prepared = tiny_captions()
    model = tiny_captioner(prepared, "convolution to lstm")
    some = prepared.data.valid.first(2)
    from regard.decode.caption import Caption
    from regard.tasks import caption_objective

    texts = iter([Caption(f"{some.captions[i][1].upper()}", (), 0.0, 0.0)] for i in range(2))
    monkeypatch.setattr(caption_objective, "write_captions", lambda *_: [next(texts), next(texts)])
    found = caption_bleu(model, prepared, some, BeamConfig())
    assert found.up_to == pytest.approx((100.0,) * 4)
    assert "nrefs:2" in found.signature


def test_judged_by_bleu_the_higher_is_the_better() -> None:
    prepared = tiny_captions()
    model = tiny_captioner(prepared, "convolution to lstm")
    score = tiny_caption_task(model, prepared, select_by="bleu", max_select_items=2).evaluate(model)
    assert score is not None
    assert score.criterion == -score.more["bleu"]
    assert 0 <= score.more["bleu"] <= 100
    assert tiny_caption_task(model, tiny_captions(n_valid=0), select_by="bleu").evaluate(model) is None


def test_memory_counts_no_gradient_of_what_is_frozen_and_less_where_features_are_there() -> None:
    prepared = tiny_captions()
    model = tiny_captioner(prepared, FROZEN)
    optimizer, runtime = OptimizerConfig(), RuntimeConfig(device="cpu")
    seen = memory_of(tiny_caption_task(model, prepared), model, optimizer, runtime)
    learned = sum(4 * p.numel() for p in model.parameters() if p.requires_grad)
    assert (seen.gradients, seen.optimizer) == (learned, 2 * learned)
    assert seen.weights == sum(4 * p.numel() for p in model.parameters()) > 10 * learned
    with torch.device("meta"):
        outline = tiny_captioner(prepared, "convolution to lstm")
    one, two = (
        memory_of(tiny_caption_task(outline, prepared, {"n_batch": n}), outline, optimizer, runtime) for n in (4, 8)
    )
    assert two.activations == 2 * one.activations


def test_a_batch_of_pictures_that_does_not_fit_says_what_to_lower(tmp_path: Path) -> None:
    prepared = tiny_captions()
    with pytest.raises(RegardError, match=r"Raise train.n_accumulate, lower train.n_batch or data.size, or take"):
        run_tiny_captions(
            tmp_path, tiny_captioner(prepared, "convolution to lstm"), prepared, runtime={"max_memory_gb": 1e-6}
        )


def test_long_captions_are_cut_where_a_transformer_writes() -> None:
    prepared = tiny_captions()
    model = tiny_captioner(prepared, "patches to transformer", max_context=3)
    tensors = tiny_caption_task(model, prepared).at(0).tensors
    assert tensors[1].shape[1] == 3
    assert np.isfinite(sum_caption_nats(model, prepared, prepared.data.valid)[0])


def test_metrics_hold_bleu(tmp_path: Path) -> None:
    prepared = tiny_captions()
    run_tiny_captions(
        tmp_path, tiny_captioner(prepared, "convolution to lstm"), prepared, teaching={"select_by": "bleu"}
    )
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "bleu" in line] == [3, 6]
