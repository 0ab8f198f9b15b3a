"""The loss of a language model on a text, without penalties."""

from typing import Any

from torch import Tensor

from regard.models.gradient_model import GradientModel


def text_nats(model: GradientModel, ids: Tensor, targets: Tensor, mask: Tensor, state: Any = None) -> Any:
    """Nats summed over the tokens where the mask is True, how many these are, and the state after the last."""
    h, state = model.hidden(ids, state)
    return model.goal_of(h, targets, mask)[1], mask.sum(), state
