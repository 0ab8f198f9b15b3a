"""FLOP formulas against counted operations on the plain path (the counter does not see into fused kernels)."""

from collections.abc import Callable

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from regard.layers.record import Record
from regard.models.language_model import LanguageModel
from regard.models.table import MODELS, models_for

GRADIENT = [name for name in models_for("language-model") if not MODELS[name].is_counted]
AVERAGED = ("attention", {"heads": "averaged"})


@pytest.mark.parametrize("n_context", [1, 5, 7])
@pytest.mark.parametrize(("name", "changes"), [*((name, {}) for name in GRADIENT if name != "restricted"), AVERAGED])
def test_the_formula_is_what_a_forward_pass_costs(
    tiny_model: Callable[..., LanguageModel], name: str, changes: dict[str, object], n_context: int
) -> None:
    """The plain path of restricted attention computes what it then hides: the next test has the formula for it."""
    model, B = tiny_model(name, **changes), 3
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.zeros(B, n_context, dtype=torch.long), None, Record())
    assert model.flops_per_token(n_context) * B * n_context == counter.get_total_flops()


@pytest.mark.parametrize("n_context", [1, 2, 3, 7])
@pytest.mark.parametrize(("name", "changes"), [("restricted", {}), ("attention", {}), AVERAGED, ("convolution", {})])
def test_the_formula_is_what_the_last_token_costs_with_a_cache(
    tiny_model: Callable[..., LanguageModel], name: str, changes: dict[str, object], n_context: int
) -> None:
    model, B = tiny_model(name, **changes), 3
    ids = torch.zeros(B, n_context, dtype=torch.long)
    with torch.no_grad():
        state = model.start(B, n_context)
        for t in range(n_context):
            with FlopCounterMode(display=False) as counter:
                _, state = model(ids[:, t : t + 1], state, Record())
    assert model.flops_per_token(n_context) * B == counter.get_total_flops()
