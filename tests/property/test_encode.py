"""Every language model as an encoder: its own states, layer by layer, and nothing of the padding in them."""

from collections.abc import Callable

import pytest
import torch

from regard.layers.taps import Taps
from regard.models.language_model import LanguageModel
from regard.models.table import MODELS, models_for

Tiny = Callable[..., LanguageModel]
NAMES = [name for name in models_for("language-model") if not MODELS[name].is_counted]
IDS = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]])
ALL = torch.ones(2, 6, dtype=torch.bool)
HIDES_LAYERS = ("bag", "window")  # theirs are of another width


@pytest.mark.parametrize("name", NAMES)
def test_states_are_those_that_the_language_model_computes(tiny_model: Tiny, name: str) -> None:
    has_width = "d_hidden" in vars(MODELS[name].config())
    model, taps = tiny_model(name, **({"d_hidden": 8} if has_width else {})).eval(), Taps()
    states = model.encode(IDS, ALL)
    assert len(states) == model.n_layers + 1
    assert all(state.shape == (2, 6, model.d_model) for state in states)
    model.hidden(IDS, None, taps)
    torch.testing.assert_close(states[-1], taps["hidden"], rtol=0, atol=1e-12)
    if name not in HIDES_LAYERS:
        inside = [name for name in taps if name.startswith("layers.") and name.endswith(".hidden")]
        assert len(inside) == model.n_layers
        for state, tap in zip(states[1:-1], inside[:-1], strict=True):
            torch.testing.assert_close(state, taps[tap], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_padding_reaches_no_state(tiny_model: Tiny, name: str) -> None:
    model = tiny_model(name).eval()
    mask = torch.tensor([[True] * 4 + [False] * 2, [True] * 6])
    garbage = IDS.clone()
    garbage[0, 4:] = -1  # not even a token
    for padded, alone in zip(model.encode(garbage, mask), model.encode(IDS[:1, :4], ALL[:1, :4]), strict=True):
        torch.testing.assert_close(padded[0, :4], alone[0], rtol=0, atol=1e-12)


def test_layers_of_another_width_are_left_out(tiny_model: Tiny) -> None:
    model = tiny_model("lstm", d_hidden=12, n_layers=3)
    assert model.n_layers == 1
    assert [state.shape[-1] for state in model.encode(IDS, ALL)] == [8, 8]
