"""Pooling, spans and the choice of layers, against values worked by hand or found by brute force."""

import math

import pytest
import torch

from regard.errors import RegardError
from regard.models.heads import ClassHead, Goal, States, best_span
from regard.models.pooling import Pooling
from regard.models.reader import LayerChoice


def two_windows() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A text of four tokens in two windows of three, whose middle two are in both."""
    h = torch.tensor([[[[1.0], [2.0], [30.0]], [[20.0], [3.0], [4.0]]]])
    mask = torch.ones(1, 2, 3, dtype=torch.bool)
    keep = torch.tensor([[[True, True, False], [False, True, True]]])
    return h, mask, keep


@pytest.mark.parametrize(("kind", "value"), [("mean", 2.5), ("max", 4.0), ("first", 10.5), ("last", 17.0)])
def test_a_pool_sees_every_token_once(kind: str, value: float) -> None:
    assert Pooling(kind, 1)(*two_windows()).tolist() == [[value]]


def test_attention_pools_by_weights_that_sum_to_one_over_kept_tokens() -> None:
    torch.manual_seed(0)
    pool = Pooling("attention", 2).double()
    h = torch.randn(2, 1, 3, 2, dtype=torch.float64)
    mask = torch.tensor([[[True, True, True]], [[True, False, False]]])
    found = pool(h, mask, mask)
    assert pool.scorer is not None
    a = pool.scorer(h[0, 0])[:, 0].softmax(0)
    torch.testing.assert_close(found[0], a @ h[0, 0], rtol=0, atol=1e-12)
    torch.testing.assert_close(found[1], h[1, 0, 0], rtol=0, atol=1e-12)


def test_the_best_span_is_that_of_brute_force() -> None:
    generator = torch.Generator().manual_seed(0)
    for max_length in (1, 3, 9):
        for threshold in (0.0, 2.0):
            scores = torch.randn(8, 2, generator=generator, dtype=torch.float64)
            spans = [(i, j) for i in range(1, 8) for j in range(i, min(8, i + max_length))]
            value = {span: float(scores[span[0], 0] + scores[span[1], 1]) for span in spans}
            best, none = max(spans, key=value.__getitem__), float(scores[0].sum())
            answers = value[best] - none > threshold
            total = math.log(sum(math.exp(v) for v in (*value.values(), none)))
            i, j, p = best_span(scores, max_length, True, threshold)
            assert (i, j) == (best if answers else (0, 0))
            assert p == pytest.approx(math.exp((value[best] if answers else none) - total), rel=1e-12)
            assert best_span(scores, max_length, False)[:2] == best


def test_class_weights_and_smoothing_change_the_goal_and_not_the_nats() -> None:
    head = ClassHead(2, 3, "mean", 0.0)
    outputs, targets = torch.tensor([[1.0, 0.0, -1.0], [0.0, 2.0, 0.0]]), torch.tensor([0, 2])
    log_p = outputs.log_softmax(-1)
    goal, nats = head.goal_of(outputs, targets, Goal(weights=torch.tensor([1.0, 1.0, 3.0])))
    torch.testing.assert_close(nats, -(log_p[0, 0] + log_p[1, 2]), rtol=0, atol=1e-6)
    torch.testing.assert_close(goal, -(log_p[0, 0] + 3 * log_p[1, 2]), rtol=0, atol=1e-6)


def test_layers_are_chosen_summed_or_laid_side_by_side() -> None:
    layers = [torch.full((1, 1, 2), float(i)) for i in range(6)]  # embeddings, then five layers
    wanted = {"last": 5.0, "first": 1.0, "second-to-last": 4.0, "sum": 15.0, "sum-last-four": 14.0, "mix": 2.5}
    for kind, value in wanted.items():
        assert LayerChoice(kind, 5, 2)(layers)[0, 0].tolist() == pytest.approx([value, value])
    assert LayerChoice("concat-last-four", 5, 2)(layers)[0, 0].tolist() == [2, 2, 3, 3, 4, 4, 5, 5]
    with pytest.raises(RegardError, match="takes 4 layers, and the encoder has 2"):
        LayerChoice("sum-last-four", 2, 2)


def test_states_at_places_are_gathered_across_windows() -> None:
    h, mask, keep = two_windows()
    found, is_there = States(h, mask, keep, torch.tensor([[0, 4, 5, -1]])).at_places()
    assert found[0, :3, 0].tolist() == [1.0, 3.0, 4.0]
    assert is_there.tolist() == [[True, True, True, False]]
