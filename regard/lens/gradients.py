"""How much of a prediction's gradient reaches what was read before it, and each layer.

    g[t, s] = ‖∂L_t/∂x_s‖,   L_t = -log P(w_{t+1} | w_1 ... w_t),   x = the embeddings

A product of Jacobians lies between the two in a recurrent model, which shrinks or grows with t - s (Hochreiter 1991;
Bengio et al. 1994; Pascanu et al. 2013); attention has a way of one step to each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from regard.kernels.state import tensors_of
from regard.layers.taps import Taps
from regard.mixers.mixer import select_positions
from regard.models.gradient_model import GradientModel

Array = NDArray[np.float64]
AT_ONCE = 16  # predictions whose gradients are computed together


def input_norms(model: GradientModel, windows: Int[Tensor, "B S"]) -> Float[Tensor, "B T"]:
    """‖∂L_T/∂x_s‖ for s = 1 ... T: L_T is the loss at the last position of each text, x_s an embedding."""
    record = Taps()
    h, _ = model.hidden(windows[:, :-1], None, record)
    loss = model.nats_each(select_positions(h, slice(-1, None)), windows[:, -1:]).sum()
    (gradient,) = torch.autograd.grad(loss, record["embedding"])  # (B, T, D)
    norms: Tensor = torch.linalg.vector_norm(gradient, dim=-1)
    return norms


def state_norms(model: GradientModel, windows: Int[Tensor, "B S"]) -> Float[Tensor, "B T"]:
    """‖∂L_T/∂h_s‖ for s = 1 ... T, h_s being all that the model carries from step s to the next.

    The text is read token by token, so that every state is a tensor of its own that all later ones come from; by the
    plain path, where what the head reads is made from the state itself.
    """
    h: Any = None
    state, kept = None, []
    for token in torch.split(windows[:, :-1], 1, dim=1):
        h, state = model.hidden(token, state, Taps())
        kept.append([s for s in tensors_of(state) if s.requires_grad])
    loss = model.nats_each(h, windows[:, -1:]).sum()
    flat = torch.autograd.grad(loss, [s for step in kept for s in step], allow_unused=True)
    norms, at = [], 0
    for step in kept:
        parts = flat[at : at + len(step)]
        at += len(step)
        squares = [g.flatten(1).square().sum(1) for g in parts if g is not None]
        norms.append(torch.stack(squares).sum(0).sqrt())  # (B)
    return torch.stack(norms, dim=1)


@dataclass(frozen=True)
class TextGradients:
    """Gradients on one text: `norms[i, s]` = g[targets[i], s], zero where s comes after it.

    `layers` has the root mean square over positions of ‖∂L/∂h‖ at what each layer gives, the embeddings first, and
    `weights` the norm of ∂L/∂W for the weights of each layer; L is the mean loss of the text.
    """

    targets: tuple[int, ...]
    norms: Array
    layers: tuple[tuple[str, float], ...]
    weights: tuple[tuple[str, float], ...]

    def by_distance(self, n_least: int = 3) -> Array:
        """The mean over predictions of g[t, t-k], for k = 0, 1, ..., as far as `n_least` predictions reach.

        The start mark is no word of the text, and much of the gradient gathers there: it is left out.
        """
        n = self.norms.shape[1]
        sums, counts = np.zeros(n), np.zeros(n)
        for row, t in zip(self.norms, self.targets, strict=True):
            sums[:t] += row[1 : t + 1][::-1]
            counts[:t] += 1
        reach = max(1, int((counts >= min(n_least, int(counts.max()))).sum()))
        found: Array = (sums / np.maximum(counts, 1))[:reach]
        return found


def measure_gradients(model: GradientModel, seen: Int[Tensor, " S"], n_targets: int = 64) -> TextGradients:
    """Gradients of predictions on one text, which begins with its start mark: position t predicts token t + 1.

    Of a long text, `n_targets` predictions are taken, evenly and the last among them.
    """
    was_training = model.training
    model.eval()
    T = len(seen) - 1
    targets = np.unique(np.linspace(0, T - 1, min(T, n_targets)).round().astype(int))
    rows = [input_norms_at(model, seen, part) for part in np.array_split(targets, -(-len(targets) // AT_ONCE))]
    layers, weights = _measure_layers(model, seen)
    model.train(was_training)
    return TextGradients(tuple(targets.tolist()), np.concatenate(rows), layers, weights)


def input_norms_at(model: GradientModel, seen: Int[Tensor, " S"], targets: NDArray[np.int64]) -> Array:
    """g[t, s] for each t of `targets`, (len(targets), T).

    Each has a copy of the text, so that one pass back is enough for all of them.
    """
    B, record = len(targets), Taps()
    inputs = seen[:-1].expand(B, -1)
    with torch.enable_grad():
        h: Any = model.hidden(inputs, None, record)[0]
        at = torch.as_tensor(targets, device=seen.device)
        head: Any = model
        if isinstance(h, Tensor):  # only the states that are asked about go through the head
            loss = head.nats_each(h[torch.arange(B), at][:, None], seen[at + 1][:, None]).sum()
        else:
            loss = head.nats_each(h, seen[1:].expand(B, -1))[torch.arange(B), at].sum()
        (gradient,) = torch.autograd.grad(loss, record["embedding"])  # (B, T, D)
    norms: Array = torch.linalg.vector_norm(gradient, dim=-1).double().cpu().numpy()
    return norms


def _measure_layers(model: GradientModel, seen: Int[Tensor, " S"]) -> tuple[Any, Any]:
    """Norms of the gradient of the mean loss, at what each layer gives and at the weights of each."""
    record = Taps()
    parameters = {name: value for name, value in model.named_parameters() if value.requires_grad}
    with torch.enable_grad():
        h: Any = model.hidden(seen[:-1][None], None, record)[0]
        loss = model.nats_each(h, seen[1:][None]).mean()
        # The record keeps the gradients that pass through its taps on the way; no weight's own gradient is touched.
        found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    squares: dict[str, float] = {}
    for name, gradient in zip(parameters, found, strict=True):
        part = name_layer(name)
        squares[part] = squares.get(part, 0.0) + (0.0 if gradient is None else float(gradient.double().square().sum()))
    taps = ["embedding", *(name for name in record if re.fullmatch(r"layers\.\d+\.hidden", name))]
    at_layers = [(name_layer(tap), float(record.gradient(tap).double().square().sum(-1).mean()) ** 0.5) for tap in taps]
    return tuple(at_layers), tuple((part, value**0.5) for part, value in squares.items())


def name_layer(name: str) -> str:
    """The part of a model that a tap or a weight belongs to.

    >>> name_layer("mixer.layers.0.from_x.weight"), name_layer("embedding"), name_layer("mixer.norm.weight")
    ('layer 1', 'embedding', 'the rest')
    """
    match = re.search(r"layers\.(\d+)\.", name)
    return f"layer {int(match[1]) + 1}" if match else "embedding" if name == "embedding" else "the rest"
