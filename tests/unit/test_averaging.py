from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.training.averaging import WeightAverage


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
    with average.applied():
        assert model.weight.item() == 1.0
    assert model.weight.item() == 3.0
    with pytest.raises(KeyError), average.applied():
        raise KeyError
    assert model.weight.item() == 3.0
    average.restore({"weight": torch.full((1, 1), 9.0)})
    assert average.average["weight"].item() == 9.0
