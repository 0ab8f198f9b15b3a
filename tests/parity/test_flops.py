"""FLOP formulas against counted operations on the plain path (the counter does not see into fused kernels)."""

from collections.abc import Callable

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from regard.layers.record import Record
from regard.models.language_model import LanguageModel
from regard.models.table import MODELS

GRADIENT = [name for name, entry in MODELS.items() if entry.kind == "gradient"]


@pytest.mark.parametrize("n_context", [1, 5, 7])
@pytest.mark.parametrize("name", GRADIENT)
def test_the_formula_is_what_a_forward_pass_costs(
    tiny_model: Callable[..., LanguageModel], name: str, n_context: int
) -> None:
    model, B = tiny_model(name), 3
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.zeros(B, n_context, dtype=torch.long), None, Record())
    assert model.flops_per_token(n_context) * B * n_context == counter.get_total_flops()
