"""GPT-2's sizes, its start, and rows of the embedding that stand for no token."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from text_nats import text_nats

from regard.compare.width import match_width
from regard.errors import RegardError
from regard.models.gpt2_config import GPT2Config
from regard.models.gradient_next_token import as_next_token
from regard.models.language_model import LanguageModel
from regard.models.outline import outline_model
from regard.models.table import build_model, model_config

Tiny = Callable[..., LanguageModel]
V = 50_257
PUBLISHED = {"small": 124_439_808, "medium": 354_823_168, "large": 774_030_080, "xl": 1_557_611_200}


@pytest.mark.parametrize("size", PUBLISHED)
def test_every_size_has_the_published_number_of_parameters(size: str) -> None:
    assert outline_model("gpt2", GPT2Config(size=size), V).n_parameters == PUBLISHED[size]


def test_a_width_that_is_given_wins_over_the_size() -> None:
    written_out = GPT2Config(size="medium", d_model=64, n_layers=24, n_heads=16, d_ff=256)
    assert GPT2Config(size="medium", d_model=64).fill_in() == written_out
    with pytest.raises(RegardError, match=r"d_model 100 cannot be shared by n_heads 12"):
        GPT2Config(d_model=100)


@pytest.mark.parametrize("size", ["small", "medium"])
def test_widths_are_solved_for_at_the_depth_of_the_size(size: str) -> None:
    found = match_width(
        "gpt2", {"size": size}, 2_000_000, lambda config: outline_model("gpt2", config, 1000).n_parameters
    )
    assert abs((found.n_parameters or 0) / 2_000_000 - 1) <= 0.02
    shape = found.config.fill_in().to_dict()
    assert shape["n_layers"] == {"small": 12, "medium": 24}[size]
    assert shape["d_model"] < 768


def test_it_starts_as_gpt_2_did() -> None:
    torch.manual_seed(0)
    model = build_model("gpt2", GPT2Config(n_layers=2, max_context=64), 500)
    weights = dict(model.named_parameters())
    for name, std in {
        "embedding": 0.02,
        "mixer.positions.table": 0.02,
        "mixer.layers.0.attention.qkv.weight": 0.02,
        "mixer.layers.1.feed_forward.up.weight": 0.02,
        "mixer.layers.0.attention.out.weight": 0.02 / math.sqrt(4),  # 2 L sums
        "mixer.layers.1.feed_forward.out.weight": 0.02 / math.sqrt(4),
    }.items():
        assert abs(weights[name].std().item() / std - 1) < 0.02, name
    assert all(not w.any() for name, w in weights.items() if name.endswith("bias"))


def test_epsilon_reaches_every_layer_norm(tiny_model: Tiny) -> None:
    norms = [m for m in tiny_model("gpt2", epsilon=0.25).modules() if isinstance(m, torch.nn.LayerNorm)]
    assert len(norms) == 5  # two a block, one at the end
    assert all(norm.eps == 0.25 for norm in norms)


@pytest.mark.parametrize("is_tied", [True, False])
def test_rows_beyond_the_vocabulary_have_no_part_in_any_probability(tiny_model: Tiny, is_tied: bool) -> None:
    """The padded model's probabilities are those of the same model cut to its 11 tokens."""
    padded = tiny_model("gpt2", vocab_size=11, n_rows=16, tie_embeddings=is_tied).eval()
    cut = tiny_model("gpt2", vocab_size=11, tie_embeddings=is_tied).eval()
    cut.load_state_dict({k: w[:11] if k in ("embedding", "head") else w for k, w in padded.state_dict().items()})
    ids = np.array([3, 1, 4, 1, 5])
    np.testing.assert_allclose(as_next_token(padded).nats(ids), as_next_token(cut).nats(ids), rtol=0, atol=1e-14)
    log_probs, _ = as_next_token(padded).start(torch.from_numpy(ids[None]))
    assert log_probs.shape == (1, 11)
    tokens = torch.from_numpy(ids[None])
    logits, _ = padded(tokens)
    assert logits.shape == (1, 5, 16)
    torch.testing.assert_close(logits[..., :11], cut(tokens)[0], rtol=0, atol=1e-14)
    mask = torch.ones(1, 4, dtype=torch.bool)
    losses = [text_nats(m, tokens[:, :-1], tokens[:, 1:], mask)[0].item() for m in (padded, cut)]
    assert abs(losses[0] - losses[1]) < 1e-12


def test_fewer_rows_than_tokens_are_refused() -> None:
    with pytest.raises(RegardError, match=r"n_rows is 10, and the tokenizer has 11 tokens.*Leave n_rows out"):
        build_model("gpt2", model_config("gpt2", {"n_rows": 10, "d_model": 12}), 11)
