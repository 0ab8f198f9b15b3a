"""What holds for every mixer, whatever its weights and whatever the text."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from text_nats import text_nats

from regard.kernels.state import reorder
from regard.layers.taps import Taps
from regard.models.gradient_next_token import as_next_token
from regard.models.language_model import LanguageModel
from regard.models.next_token import NextToken, context_length
from regard.models.table import MODELS

Tiny = Callable[..., LanguageModel]
EXACT = {"rtol": 0, "atol": 1e-12}
GRADIENT = [name for name, entry in MODELS.items() if "language-model" in entry.tasks and not entry.is_counted]
VARIANTS = [(name, {}) for name in GRADIENT] + [
    ("transformer", {"norm": "post", "positions": "sinusoidal", "activation": "relu", "tie_embeddings": False}),
    ("attention", {"positions": "none", "n_heads": 1}),
    ("window", {"n_window": 1}),
    ("convolution", {"n_window": 2, "dilation_growth": 1, "tie_embeddings": False}),
    ("restricted", {"n_window": 1, "positions": "none"}),
    ("restricted", {"n_window": 9, "n_heads": 1, "positions": "sinusoidal"}),
    ("attention", {"heads": "averaged", "n_heads": 3}),
    ("attention", {"heads": "averaged", "without": ["residual", "norm"]}),
    ("attention", {"without": ["residual", "values"]}),
    ("attention", {"without": ["norm", "scale"]}),
    ("transformer", {"without": ["residual", "scale"]}),
    ("transformer", {"without": ["norm", "values"]}),
    ("transformer", {"without": ["feed-forward"], "norm": "post"}),
    ("rnn-attention", {"cell": "rnn", "score": "bilinear", "max_memory": 1}),
    ("rnn-attention", {"cell": "gru", "score": "mlp", "max_memory": 64}),
    ("pointer", {"copies": "next", "mix": "sentinel", "score": "scaled-dot"}),
    ("pointer", {"cell": "gru", "mix": "fixed", "score": "bilinear", "max_memory": 1}),
]
EACH = pytest.mark.parametrize(("name", "changes"), VARIANTS)
V = 11
seeds = st.integers(0, 2**16)
FEW = settings(max_examples=10)  # of each of two dozen mixers


def texts(seed: int, B: int, T: int) -> torch.Tensor:
    return torch.randint(V, (B, T), generator=torch.Generator().manual_seed(seed))


@EACH
@FEW
@given(seed=seeds, T=st.integers(2, 7), data=st.data())
def test_the_past_ignores_the_future(
    tiny_model: Tiny, name: str, changes: dict[str, object], seed: int, T: int, data: st.DataObject
) -> None:
    model, ids = tiny_model(name, seed, **changes), texts(seed, 2, T)
    t = data.draw(st.integers(1, T - 1))
    changed = ids.clone()
    changed[:, t:] = (changed[:, t:] + data.draw(st.integers(1, V - 1))) % V
    before, after = model(ids)[0], model(changed)[0]
    torch.testing.assert_close(before[:, :t], after[:, :t], **EXACT)
    assert not torch.allclose(before[:, t], after[:, t], **EXACT)


@EACH
@FEW
@given(seed=seeds, T=st.integers(1, 4), n_padded=st.integers(1, 3), B=st.integers(1, 4))
def test_right_padding_and_batch_mates_change_nothing(
    tiny_model: Tiny, name: str, changes: dict[str, object], seed: int, T: int, n_padded: int, B: int
) -> None:
    model, ids = tiny_model(name, seed, **changes), texts(seed, B, T)
    padded = torch.cat([ids, texts(seed + 1, B, n_padded)], dim=1)
    together, _ = model(padded)
    for row in range(B):
        alone, _ = model(ids[row : row + 1])
        torch.testing.assert_close(together[row : row + 1, :T], alone, **EXACT)
    mask = torch.ones_like(padded, dtype=torch.bool)
    mask[:, T:] = False
    with_padding = text_nats(model, padded, padded, mask)
    without = text_nats(model, ids, ids, torch.ones_like(ids, dtype=torch.bool))
    torch.testing.assert_close(with_padding[0], without[0], **EXACT)
    assert with_padding[1] == without[1]


@EACH
@FEW
@given(seed=seeds, T=st.integers(1, 7))
def test_the_fast_path_equals_the_plain_one_in_value_and_gradient(
    tiny_model: Tiny, name: str, changes: dict[str, object], seed: int, T: int
) -> None:
    model, ids = tiny_model(name, seed, **changes), texts(seed, 3, T)
    gradients = []
    for record in (None, Taps()):
        model.zero_grad()
        logits, _ = model(ids, None, record)
        logits.log_softmax(-1)[..., 0].sum().backward()
        gradients.append([logits.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
    for fast, plain in zip(*gradients, strict=True):
        torch.testing.assert_close(fast, plain, rtol=0, atol=1e-10)


@EACH
@FEW
@given(seed=seeds, cuts=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_a_text_in_pieces_equals_the_text_in_one(
    tiny_model: Tiny, name: str, changes: dict[str, object], seed: int, cuts: list[int]
) -> None:
    model = tiny_model(name, seed, **changes)
    T = min(sum(cuts), model.mixer.max_context or 99)
    ids = texts(seed, 2, T)
    for record in (None, Taps()):
        state, pieces = model.start(2, T), []
        for piece in ids.split(cuts_within(cuts, T), dim=1):
            logits, state = model(piece, state, record)
            pieces.append(logits)
        torch.testing.assert_close(torch.cat(pieces, dim=1), model(ids)[0], **EXACT)


def cuts_within(cuts: list[int], T: int) -> list[int]:
    ends = [min(end, T) for end in np.cumsum(cuts)]
    return [b - a for a, b in zip([0, *ends], ends, strict=False) if b > a]


@EACH
@FEW
@given(seed=seeds, rows=st.lists(st.integers(0, 2), min_size=1, max_size=4))
def test_a_reordered_state_goes_on_as_those_texts(
    tiny_model: Tiny, name: str, changes: dict[str, object], seed: int, rows: list[int]
) -> None:
    model, ids = tiny_model(name, seed, **changes), texts(seed, 3, 5)
    _, state = model(ids[:, :3], model.start(3, 5))
    index = torch.tensor(rows)
    logits, _ = model(ids[index, 3:], reorder(state, index))
    torch.testing.assert_close(logits, model(ids[index])[0][:, 3:], **EXACT)


def read(model: NextToken, ids: np.ndarray, n_prompt: int) -> list[torch.Tensor]:
    """Log-probabilities of every token from n_prompt on, by prompt and cache."""
    log_probs, state = model.start(torch.from_numpy(ids[None, :n_prompt]))
    found = [log_probs[0]]
    for token in ids[n_prompt:-1]:
        log_probs, state = model.step(torch.tensor([token]), state)
        found.append(log_probs[0])
    return found


@EACH
@FEW
@given(seed=seeds, T=st.integers(1, 24), data=st.data())
def test_cached_equals_uncached_beyond_the_context_too(
    tiny_model: Tiny, name: str, changes: dict[str, object], seed: int, T: int, data: st.DataObject
) -> None:
    network = tiny_model(name, seed, **changes)
    model, ids = as_next_token(network), texts(seed, 1, T)[0].numpy()
    n_prompt = data.draw(st.integers(0, T - 1))
    limit = model.max_context
    whole = torch.tensor([0, *ids.tolist()])
    nats = model.nats(ids)
    for t, log_probs in enumerate(read(model, ids, n_prompt), start=n_prompt):
        n = t + 1
        seen = n if limit is None else context_length(n, limit, limit - limit // 2)
        expected = network(whole[None, n - seen : n])[0][0, -1].log_softmax(-1)
        torch.testing.assert_close(log_probs, expected.detach(), **EXACT)
        assert abs(log_probs[ids[t]].item() + nats[t]) < 1e-12
        assert abs(log_probs.exp().sum().item() - 1) < 1e-12
