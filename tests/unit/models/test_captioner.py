"""Models that describe pictures: settings, shapes, cost, and where they look."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_captions import GRID, SIZE, TINY, tiny_captioner, tiny_captions

from regard.decode.caption import measure_attention, write_captions
from regard.decode.config import BeamConfig
from regard.errors import RegardError
from regard.layers.taps import Taps
from regard.models.captioner import Captioner
from regard.models.captioner_config import CaptionerConfig
from regard.models.picture_encoder import unit_range
from regard.models.table import build_model, model_config
from regard.tasks.table import build_config

VARIANTS = pytest.mark.parametrize("variant", GRID)
RUN: dict[str, Any] = {"model": {"name": "captioner"}, "data": {"pictures": "photos", "captions": "said.txt"}}


def some_pictures(n: int = 3, seed: int = 0) -> torch.Tensor:
    draws = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (n, 3, SIZE, SIZE), dtype=torch.uint8, generator=draws)


@VARIANTS
def test_a_config_round_trips_through_yaml(variant: str) -> None:
    config = model_config("captioner", TINY | GRID[variant])
    assert model_config("captioner", yaml.safe_load(yaml.safe_dump(config.to_dict()))) == config
    run = build_config(RUN | {"model": {"name": "captioner", **config.to_dict()}})
    assert build_config(yaml.safe_load(run.to_yaml())) == run
    assert "target_tokenizer" not in run.to_dict()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decoder": "transformer", "attention": "mlp"}, "attention is 'mlp' and the decoder is a transformer"),
        ({"decoder": "transformer", "d_model": 30}, "n_heads"),
        ({"encoder": "patches", "d_model": 30}, "n_heads"),
        ({"attention": "none", "input_feeding": True}, "input_feeding is true and attention is none"),
        ({"encoder": "resnet"}, "must be one of convolution, patches, efficientnet-lite0, not 'resnet'"),
        ({"d_modle": 3}, "Unknown key 'model.d_modle'. Did you mean 'model.d_model'"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        model_config("captioner", given)


def test_a_run_refuses_what_is_not_for_pictures() -> None:
    with pytest.raises(
        RegardError, match=r"'target_tokenizer' is only for translation and parsing, and the model capt"
    ):
        build_config(RUN | {"target_tokenizer": {"kind": "word"}})
    with pytest.raises(RegardError, match=r"Unknown key 'data.p_vlaid'. Did you mean 'data.p_valid'"):
        build_config(RUN | {"data": RUN["data"] | {"p_vlaid": 0.1}})
    with pytest.raises(RegardError, match=r"'data.captions' is required"):
        build_config(RUN | {"data": {"pictures": "photos"}})
    with pytest.raises(RegardError, match=r"size 100 is no multiple of patch 16. Make size 96"):
        build_config({"model": {"name": "captioner", "encoder": "patches"}, "data": RUN["data"] | {"size": 100}})
    with pytest.raises(RegardError, match="captioner is not for the task language-model, but for captions"):
        build_config(RUN | {"task": "language-model"})


def test_what_changes_nothing_is_said() -> None:
    config = build_config(
        {
            "model": {"name": "captioner", "encoder": "efficientnet-lite0", "patch": 8, "n_heads": 2},
            "data": RUN["data"],
            "teaching": {"max_tokens": 9},
        }
    )
    assert config.notes() == [
        "model.patch changes nothing: the encoder is efficientnet-lite0, the decoder lstm.",
        "model.n_heads changes nothing: the encoder is efficientnet-lite0, the decoder lstm.",
        "teaching.max_tokens changes nothing: a batch has train.n_batch whole captions.",
    ]
    assert isinstance(config.model, CaptionerConfig)
    (size,) = config.model.notes_for(160)
    assert size == "data.size is 160; efficientnet-lite0 has learned from pictures of 224 pixels."


@VARIANTS
def test_probabilities_sum_to_one_and_each_picture_is_for_itself(variant: str) -> None:
    """In float64: what is beside a picture changes nothing of what is said of it."""
    model = tiny_captioner(tiny_captions(), variant).double().eval()
    pictures, inputs = some_pictures(), torch.tensor([[0, 3, 4, 2], [0, 5, 2, 0], [0, 1, 6, 3]])
    together = model(pictures, inputs)
    torch.testing.assert_close(together.exp().sum(dim=-1), torch.ones(3, 4).double(), rtol=0, atol=1e-12)
    for row in range(3):
        alone = model(pictures[row : row + 1], inputs[row : row + 1, :3])
        torch.testing.assert_close(alone[0], together[row, :3], rtol=0, atol=1e-10)
    assert (together[0, 0] - together[1, 0]).abs().max() > 1e-6  # the same words before, another picture


def test_features_computed_before_say_what_the_pictures_say() -> None:
    model = tiny_captioner(tiny_captions(), "frozen efficientnet to lstm").double().eval()
    pictures, inputs = some_pictures(), torch.tensor([[0, 3, 4], [0, 5, 2], [0, 1, 6]])
    features = model.encoder.features(unit_range(pictures, model.embedding))  # type: ignore[operator]
    assert not features.requires_grad
    torch.testing.assert_close(model(features, inputs), model(pictures, inputs), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("variant", "sees_places"), [("patches to rnn, no attention", False), ("convolution to lstm", True)]
)
def test_without_attention_all_that_is_known_of_a_picture_is_its_mean(variant: str, sees_places: bool) -> None:
    model = tiny_captioner(tiny_captions(), variant).double().eval()
    states = torch.randn(1, 16, 16, dtype=torch.float64).repeat(2, 1, 1)
    states[1, 0] += 1
    states[1, 1] -= 1  # other places, the same mean
    model.encoder.forward = lambda pictures, taps=None: states  # type: ignore[method-assign]
    one, other = model(some_pictures(2), torch.tensor([[0, 3], [0, 3]]))
    assert ((one - other).abs().max() > 1e-6) == sees_places


def test_cost_is_that_of_its_parts() -> None:
    """One patch of 32 x 32, D = 2, V = 3, an Elman layer and no attention, worked by hand."""
    config = CaptionerConfig(
        encoder="patches", decoder="rnn", attention="none", patch=32, d_model=2, n_heads=1, max_context=4
    )
    model: Captioner = build_model("captioner", config, 3, 32)
    picture = model.encoder.flops_per_picture()
    bridge = 2 * 2 * 2
    word = 2 * (2 * 2) * 2 + 2 * 2 * 3  # from the input and from the state; then the vocabulary
    assert model.flops_per_caption(5) == picture + bridge + 5 * word
    assert model.grid == (1, 1)


@VARIANTS
def test_where_a_caption_looked_is_what_beam_search_saw(variant: str) -> None:
    prepared = tiny_captions()
    model = tiny_captioner(prepared, variant)
    pictures = some_pictures(2)
    config = BeamConfig(beam=3, n_best=2, max_length=9)
    found = write_captions(model, prepared.tokenizer, pictures, config)
    assert [len(best) for best in found] == [2, 2]
    for row, best in enumerate(found):
        for caption in best:
            ends = [prepared.tokenizer.eos] if len(caption.tokens) < 9 else []
            inputs = torch.tensor([[prepared.tokenizer.eos, *caption.tokens]])[:, : len(caption.tokens) + len(ends)]
            log_probs = model(pictures[row : row + 1], inputs)[0].detach()
            told = sum(float(log_probs[t, w]) for t, w in enumerate([*caption.tokens, *ends]))
            assert told == pytest.approx(caption.log_prob, abs=1e-4)
            assert caption.score == pytest.approx(caption.log_prob / len(inputs[0]), abs=1e-6)
        if "no attention" not in variant:
            weights = measure_attention(model, prepared.tokenizer, pictures[row : row + 1], best[0].tokens)
            assert weights.shape == (max(1, len(best[0].tokens)), math.prod(model.grid))
            assert weights.sum(axis=1) == pytest.approx(np.ones(len(weights)), abs=1e-5)


def test_a_caption_is_never_longer_than_the_model_writes() -> None:
    prepared = tiny_captions()
    model = tiny_captioner(prepared, "patches to transformer", max_context=4)
    torch.nn.init.normal_(model.target.embedding, std=3.0)
    config = BeamConfig(beam=2, max_length=50, min_length=4)
    (best,) = write_captions(model, prepared.tokenizer, some_pictures(1), config)[0]
    assert len(best.tokens) in (3, 4)
    endless = tiny_captioner(prepared, "convolution to lstm")
    (long,) = write_captions(endless, prepared.tokenizer, some_pictures(1), BeamConfig(beam=1, min_length=1000))[0]
    assert len(long.tokens) == 50  # where nobody says how long
    assert measure_attention(model, prepared.tokenizer, some_pictures(1), best.tokens).shape[0] == len(best.tokens)


@settings(max_examples=10)
@given(st.integers(0, 2**31), st.sampled_from(sorted(set(GRID) - {"frozen efficientnet to lstm"})))
def test_the_future_of_a_caption_changes_nothing_before_it(seed: int, variant: str) -> None:
    model = tiny_captioner(tiny_captions(), variant).double().eval()
    draws = torch.Generator().manual_seed(seed)
    inputs = torch.randint(0, model.vocab_size, (1, 6), generator=draws)
    other = inputs.clone()
    cut = 1 + seed % 5
    other[:, cut:] = torch.randint(0, model.vocab_size, (1, 6 - cut), generator=draws)
    pictures = some_pictures(1, seed)
    before, after = model(pictures, inputs), model(pictures, other)
    torch.testing.assert_close(before[:, :cut], after[:, :cut], rtol=0, atol=1e-10)


def test_taps_have_names() -> None:
    record = Taps()
    tiny_captioner(tiny_captions(), "convolution to lstm")(some_pictures(1), torch.tensor([[0, 3]]), record)
    assert {"encoder.states", "embedding", "hidden", "logits"} <= set(record)
