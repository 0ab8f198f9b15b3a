from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.training.averaging import (
    LastAverage,
    TriggeredAverage,
    WeightAverage,
    build_average,
    is_triggered,
    use_average,
)
from regard.training.config import TrainConfig


def one_weight(value: float) -> nn.Linear:
    model = nn.Linear(1, 1, bias=False).double()
    nn.init.constant_(model.weight, value)
    return model


def test_the_average_moves_by_the_share_that_is_not_kept() -> None:
    model = one_weight(1.0)
    average = WeightAverage(model, decay=0.75)
    nn.init.constant_(model.weight, 3.0)
    average.update(n_updates=10**6)
    assert average.average["weight"].item() == pytest.approx(0.75 * 1 + 0.25 * 3, abs=1e-15)


def test_a_young_average_forgets_faster() -> None:
    model = one_weight(1.0)
    average = WeightAverage(model, decay=0.999)
    nn.init.constant_(model.weight, 0.0)
    average.update(n_updates=8)  # keeps (1 + 8) / (10 + 8) = 1/2
    assert average.average["weight"].item() == pytest.approx(0.5, abs=1e-15)


def test_the_model_computes_with_the_average_only_inside_the_block() -> None:
    model = one_weight(1.0)
    average = WeightAverage(model, decay=0.5)
    nn.init.constant_(model.weight, 3.0)
    with use_average(average):
        assert model.weight.item() == 1.0
    assert model.weight.item() == 3.0
    with pytest.raises(KeyError), use_average(average):
        raise KeyError
    assert model.weight.item() == 3.0
    average.restore({"weight": torch.full((1, 1), 9.0)})
    assert average.average["weight"].item() == 9.0


def test_averaging_is_triggered_when_a_score_is_worse_than_the_best_of_those_long_past() -> None:
    scores = [9.0, 7.0, 8.0, 7.5, 6.9, 7.1, 6.95]
    #  n = 2: older scores are      -    -    -    9    9,7  9,7,8  9,7,8,7.5: only 7.1 is above 7
    found = [is_triggered(scores[: k + 1], patience=2) for k in range(len(scores))]
    assert found == [False, False, False, False, False, True, False]
    #  n = 0: older scores are all before: 8 > 7 and 7.5 > 7, then 7.1 > 6.9 and 6.95 > 6.9
    found = [is_triggered(scores[: k + 1], patience=0) for k in range(len(scores))]
    assert found == [False, False, True, True, False, True, True]
    assert not is_triggered([5.0] * 20, patience=5)  # no worse
    assert not is_triggered([], patience=0)


def test_the_triggered_average_is_the_mean_of_the_weights_since_and_stands_in_only_then() -> None:
    model = one_weight(1.0)
    average = TriggeredAverage(model, patience=1)
    scores: list[float] = []
    for step, (value, score) in enumerate([(2.0, 5.0), (4.0, 3.0), (8.0, 4.0)]):
        nn.init.constant_(model.weight, value)
        average.update(step + 1)
        average.observe(scores := [*scores, score])
        assert average.average == {}
        assert average.tensors() == {}
        with use_average(average):
            assert model.weight.item() == value
    average.observe([*scores, 4.5])  # worse than 3, two evaluations ago: the mean begins with the 8 of now
    nn.init.constant_(model.weight, 16.0)
    average.update(4)
    average.observe([*scores, 4.5, 9.0])  # and it does not begin again
    nn.init.constant_(model.weight, 3.0)
    average.update(5)
    assert average.average["weight"].item() == pytest.approx((8 + 16 + 3) / 3, abs=1e-14)
    with use_average(average):
        assert model.weight.item() == pytest.approx(9.0, abs=1e-14)
    assert model.weight.item() == 3.0


def test_a_restored_triggered_average_goes_on_as_the_first_would() -> None:
    model = one_weight(1.0)
    first, second = TriggeredAverage(model, patience=0), TriggeredAverage(model, patience=0)
    second.restore(first.tensors())
    assert second.average == {}
    first.observe([1.0, 2.0])
    for value in (5.0, 7.0):
        nn.init.constant_(model.weight, value)
        first.update(1)
    second.restore({name: tensor.clone() for name, tensor in first.tensors().items()})
    nn.init.constant_(model.weight, 11.0)
    for average in (first, second):
        average.update(1)
        assert average.average["weight"].item() == pytest.approx((1 + 5 + 7 + 11) / 4, abs=1e-14)


def test_the_config_names_the_average() -> None:
    model = one_weight(1.0)
    assert build_average(model, TrainConfig()) is None
    assert isinstance(build_average(model, TrainConfig(average="ema")), WeightAverage)
    triggered = build_average(model, TrainConfig(average="nt-asgd", average_patience=3))
    assert isinstance(triggered, TriggeredAverage)
    assert triggered.patience == 3


def test_the_last_average_is_the_mean_of_the_last_evaluations_weights() -> None:
    model = one_weight(1.0)
    average = build_average(model, TrainConfig(average="last", average_last=2, eval_every=10))
    assert isinstance(average, LastAverage)
    found = []
    for n_updates, value in ((10, 2.0), (15, 50.0), (20, 4.0), (30, 8.0)):
        nn.init.constant_(model.weight, value)
        average.update(n_updates)
        found.append(average.average["weight"].item())
    assert found == [2.0, 2.0, 3.0, 6.0]
    again = LastAverage(one_weight(0.0), n=2, every=10)
    assert again.average == {}
    again.restore(average.tensors())
    assert again.average["weight"].item() == 6.0
    with use_average(again):
        pass


@pytest.mark.parametrize("n", [1, 3])
def test_an_average_of_the_last_goes_on_where_it_was(n: int) -> None:
    values = [1.0, 4.0, 2.0, 8.0, 5.0]
    model = one_weight(0.0)
    whole, parts = LastAverage(model, n, every=1), LastAverage(model, n, every=1)
    for i, value in enumerate(values, 1):
        nn.init.constant_(model.weight, value)
        whole.update(i)
        parts.update(i)
        resumed = LastAverage(model, n, every=1)
        resumed.restore(parts.tensors())
        parts = resumed
    assert parts.average["weight"].item() == whole.average["weight"].item() == pytest.approx(sum(values[-n:]) / n)
