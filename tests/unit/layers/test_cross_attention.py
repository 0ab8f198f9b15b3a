import math

import pytest
import torch

from regard.layers.attention import MultiHeadAttention, masked_attention, masked_weights
from regard.layers.bidirectional import Bidirectional
from regard.layers.bridge import Bridge, mean_state
from regard.layers.cross_attention import CrossAttention, SourceKeysAndValues
from regard.layers.scores import Score
from regard.layers.source_attention import SourceAttention
from regard.layers.taps import Taps

EXACT = {"rtol": 0, "atol": 1e-12}


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_weights_are_a_softmax_over_what_is_there() -> None:
    # e^0 : e^ln 3 = 1 : 3; the third position is padding, however high its score.
    scores = torch.tensor([[[0.0, math.log(3), 99.0]]], dtype=torch.float64)
    A = masked_weights(scores, torch.tensor([[[True, True, False]]]))
    torch.testing.assert_close(A, torch.tensor([[[0.25, 0.75, 0.0]]], dtype=torch.float64), **EXACT)


@pytest.mark.parametrize("wants_weights", [False, True])
def test_a_source_with_nothing_in_it_gives_zeros_and_no_nan(wants_weights: bool) -> None:
    q, k, v = (numbers(2, 1, 3, 4, seed=seed).requires_grad_() for seed in range(3))
    is_there = torch.tensor([[True, True, False], [False, False, False]])
    y, _ = masked_attention(q, k, v, is_there, wants_weights=wants_weights)
    assert (y[1] == 0).all()
    y.sum().backward()
    for x in (q, k, v):
        assert x.grad is not None
        assert x.grad.isfinite().all()


def test_the_fused_path_equals_the_plain_one() -> None:
    q, k, v = numbers(2, 2, 3, 4), numbers(2, 2, 5, 4, seed=1), numbers(2, 2, 5, 4, seed=2)
    is_there = torch.arange(5) < torch.tensor([5, 2])[:, None]
    fused, _ = masked_attention(q, k, v, is_there)
    plain, A = masked_attention(q, k, v, is_there, wants_weights=True)
    torch.testing.assert_close(fused, plain, **EXACT)
    assert A is not None
    assert (A[1, :, :, 2:] == 0).all()


def test_two_queries_of_one_source_by_hand() -> None:
    layer, record = CrossAttention(1, 1).double(), Taps()
    for part in (layer.q, layer.kv, layer.out):
        torch.nn.init.ones_(part.weight)
        torch.nn.init.zeros_(part.bias)
    s = torch.tensor([[[0.0], [1.0], [7.0]]], dtype=torch.float64)
    x = torch.tensor([[[math.log(3)], [0.0]]], dtype=torch.float64)
    source = SourceKeysAndValues(*layer.keys_and_values(s), torch.tensor([[True, True, False]]))
    y, A = layer(x, source, record)
    # Scores are 0 and ln 3, then 0 and 0; values are 0 and 1.
    torch.testing.assert_close(y[0, :, 0], torch.tensor([0.75, 0.5], dtype=torch.float64), **EXACT)
    assert record["cross_attention"] is A
    assert record["cross_attention"].shape == (1, 1, 2, 3)


def test_full_attention_sees_both_sides() -> None:
    layer, x = MultiHeadAttention(4, 2).double(), numbers(1, 3, 4)
    mask = torch.ones(1, 3, dtype=torch.bool)
    y, _ = layer(x, mask=mask)
    changed = x.clone()
    changed[:, 2] += 1
    assert not torch.allclose(y[:, 0], layer(changed, mask=mask)[0][:, 0])


@pytest.mark.parametrize("name", ["dot", "bilinear", "mlp", "scaled-dot"])
def test_keys_computed_once_give_the_same_scores(name: str) -> None:
    score, q, k = Score(name, 4).double(), numbers(2, 3, 4), numbers(2, 5, 4, seed=1)
    torch.testing.assert_close(score.against(q, score.keys(k)), score(q, k), **EXACT)


@pytest.mark.parametrize("name", ["dot", "bilinear", "mlp", "scaled-dot"])
def test_luongs_state_is_what_the_equations_say(name: str) -> None:
    layer = SourceAttention(4, name).double()
    h, states = numbers(2, 3, 4), numbers(2, 5, 4, seed=1)
    lengths = [5, 2]
    mask = torch.arange(5) < torch.tensor(lengths)[:, None]
    y, a = layer(h, layer.start(states, mask))
    for b, n in enumerate(lengths):
        for t in range(3):
            scores = layer.score(h[b : b + 1, t : t + 1], states[b : b + 1, :n])[0, 0]
            weights = scores.exp() / scores.exp().sum()
            c = sum(w * s for w, s in zip(weights, states[b, :n], strict=True))
            torch.testing.assert_close(a[b, t, :n], weights, **EXACT)
            torch.testing.assert_close(y[b, t], (layer.out.weight @ torch.cat([c, h[b, t]])).tanh(), **EXACT)


def test_each_direction_reads_its_row_from_its_own_end() -> None:
    layer = Bidirectional("rnn", 2, is_bidirectional=True).double()
    for parameter in layer.parameters():
        torch.nn.init.zeros_(parameter)
    for direction in (layer.ahead, layer.back):
        assert direction is not None
        W, V, _, _ = direction.kernel.all_weights[0]
        torch.nn.init.ones_(V)
        W.data[0, 0] = 1.0
    x = torch.tensor([[[1.0, 0], [2, 0], [9, 0]]], dtype=torch.float64)
    y, end = layer(x, torch.tensor([2]))
    first, last = math.tanh(1), math.tanh(2)
    ahead, back = math.tanh(2 + first), math.tanh(1 + last)
    expected = torch.tensor([[first, back], [ahead, last]], dtype=torch.float64)
    torch.testing.assert_close(y[0, :2], expected, **EXACT)
    torch.testing.assert_close(end[0], torch.tensor([ahead, back], dtype=torch.float64), **EXACT)


def test_taps_of_both_directions_are_in_the_order_of_the_text() -> None:
    layer, record = Bidirectional("lstm", 4, is_bidirectional=True).double(), Taps()
    x, lengths = numbers(2, 3, 4), torch.tensor([3, 2])
    y, _ = layer(x, lengths, record)
    for name, half in (("ahead", slice(0, 2)), ("back", slice(2, 4))):
        h = record[f"{name}.gates.output"] * record[f"{name}.cell"].tanh()
        torch.testing.assert_close(h, y[..., half], **EXACT)


def test_a_bridge_joins_the_tops_of_two_stacks() -> None:
    # Two ends for three layers: the top reads the top, the middle and the lowest read the lower end.
    bridge = Bridge(1, n_ends=2, n_layers=3, has_cell=True)
    for each in bridge.maps:
        each.weight.data.copy_(torch.tensor([[1.0], [2.0]]))
    states = bridge((torch.tensor([[0.5]]), torch.tensor([[-1.0]])))
    assert [c.item() for _, c in states] == [1.0, 1.0, -2.0]
    assert [h.item() for h, _ in states] == pytest.approx([math.tanh(0.5), math.tanh(0.5), math.tanh(-1)])


def test_the_mean_state_leaves_padding_out() -> None:
    states = torch.tensor([[[1.0], [3.0], [50.0]], [[7.0], [8.0], [9.0]]])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    assert mean_state(states, mask).tolist() == [[2.0], [0.0]]
