"""Tables of positions, and how alike two of them are."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from regard.layers.positions import LearnedPositions, SinusoidalPositions
from regard.lens.positions import compare_offsets, find_tables


def test_the_cosine_of_sinusoids_depends_on_how_far_apart_they_are_and_on_nothing_else() -> None:
    table = SinusoidalPositions(40, 16).double().table.numpy().astype(np.float64)
    curve = compare_offsets(table)
    assert curve.spread.max() < 1e-6  # the table is kept in float32
    # p_t·p_{t+k} = Σ_i cos(k w_i), and every row has the length √(D/2)
    w = 1 / 10000 ** (np.arange(0, 16, 2) / 16)
    expected = [np.cos(k * w).sum() / 8 for k in range(len(curve.mean))]
    np.testing.assert_allclose(curve.mean, expected, rtol=0, atol=1e-6)


def test_offsets_of_a_small_table_worked_by_hand() -> None:
    table = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, -1.0], [3.0, 0.0]])
    curve = compare_offsets(table)
    # neighbours: 0, -1, 0; two apart: 0, 0
    np.testing.assert_allclose(curve.mean[:2], [1.0, -1 / 3], rtol=0, atol=1e-12)
    np.testing.assert_allclose(curve.spread[:2], [0.0, np.std([0, -1, 0])], rtol=0, atol=1e-12)


def test_every_table_of_a_model_is_found() -> None:
    model = nn.ModuleDict(
        {"encoder": SinusoidalPositions(8, 4), "target": LearnedPositions(6, 4), "x": nn.Linear(2, 2)}
    )
    tables = find_tables(model)
    assert [(t.where, t.is_learned, t.values.shape) for t in tables] == [
        ("encoder", False, (8, 4)),
        ("target", True, (6, 4)),
    ]
    assert find_tables(nn.Linear(2, 2)) == []
    assert torch.is_tensor(model["target"].table)
