"""What each input token has to do with a prediction: gradients, their integral, and erasure.

    gradient-input         a_i = x_i · ∂F/∂x_i, with x_i the vector of token i (Denil et al. 2014)
    integrated-gradients   a_i = (x_i - x'_i) · ∫_0^1 ∂F/∂x_i (x' + α (x - x')) dα, so that Σ_i a_i = F(x) - F(x')
                           (Sundararajan et al. 2017); x' is the baseline, all vectors zero where none is given
    erasure                a_i = F(x) - F(x without token i) (Li et al. 2016)

F is log P of the choice that is explained, or the number that is predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.errors import RegardError, nearest
from regard.layers.taps import Replacement, Taps
from regard.lens.prediction import Prediction

Array = NDArray[np.float64]
Vectors = dict[str, Tensor]
"""The vectors of all tokens, (1, T, D), by the tap in which they are read."""
N_STEPS, N_PARTS = 6, 9
"""Points by the rule of Gauss and Legendre in each part of the integral, and how many parts there are: [½, 1], [¼, ½],
... Near the baseline, where a norm makes short vectors long, F is steep: a Transformer's 32 points in one part were off
by 13% of the difference."""
LEAST = math.log(1e-12)
"""What erasure counts log P as where the choice has no probability left."""


@dataclass(frozen=True)
class Attribution:
    """A number for each token of a prediction: how much of `value` it accounts for, by `method`.

    `value` is F, `baseline` what F is where nothing is read (None: the method has no such point), and `gap` is how far
    the numbers are from adding up to the difference: zero but for the error of the integral.
    """

    method: str
    prediction: Prediction
    scores: Array
    value: float
    baseline: float | None = None

    @property
    def gap(self) -> float | None:
        return None if self.baseline is None else self.value - self.baseline - float(self.scores.sum())

    def rank(self) -> list[tuple[str, float]]:
        """The tokens and their numbers, largest absolute value first."""
        order = np.argsort(-np.abs(self.scores), kind="stable")
        return [(self.prediction.tokens[i], float(self.scores[i])) for i in order]


def attribute(prediction: Prediction, method: str = "gradient-input", **settings: Any) -> Attribution:
    """Attribute a prediction to its tokens by the method of that name.

    integrated-gradients takes `n_steps`, `n_parts`, and `baseline`, vectors by tap name as `read_vectors` gives them.
    """
    if method not in METHODS:
        raise RegardError(
            f"There is no method '{method}'.{nearest(method, METHODS)} A prediction is attributed by "
            f"{', '.join(METHODS)}."
        )
    return METHODS[method](prediction, **settings)


def read_vectors(prediction: Prediction) -> Vectors:
    """The vectors of all tokens as the model reads them, by tap name."""
    record = prediction.record()
    return {tap: record[tap].detach().clone() for tap in _taps(prediction)}


def compute_from(prediction: Prediction, vectors: Mapping[str, Replacement]) -> Tensor:
    """F of vectors that stand in for those of the tokens."""
    return prediction.compute(Taps(vectors))[prediction.target]


def multiply_gradients(prediction: Prediction) -> Attribution:
    """a_i = x_i · ∂F/∂x_i."""
    vectors = read_vectors(prediction)
    value, gradients = _differentiate(prediction, vectors)
    products = {tap: (x * gradients[tap]).sum(dim=-1)[0] for tap, x in vectors.items()}
    return Attribution("gradient-input", prediction, _gather(prediction, products), value)


def measure_gradients(prediction: Prediction) -> Array:
    """|∂F/∂x_i|, the length of the gradient at the vector of each token."""
    _, gradients = _differentiate(prediction, read_vectors(prediction))
    squares = {tap: g.square().sum(dim=-1)[0] for tap, g in gradients.items()}
    found: Array = np.sqrt(_gather(prediction, squares))
    return found


def integrate_gradients(
    prediction: Prediction,
    n_steps: int = N_STEPS,
    n_parts: int = N_PARTS,
    baseline: Mapping[str, Tensor] | None = None,
) -> Attribution:
    """a_i = (x_i - x'_i) · ∫ ∂F/∂x_i dα on the straight line from x' to x: n_steps points in each of n_parts parts."""
    for name, given in (("n_steps", n_steps), ("n_parts", n_parts)):
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise RegardError(f"{name} is a whole number from 1 on, not {given!r}.")
    here = read_vectors(prediction)
    there = {tap: torch.zeros_like(x) if baseline is None else baseline[tap] for tap, x in here.items()}
    total = {tap: torch.zeros_like(x) for tap, x in here.items()}
    for alpha, weight in place_points(n_steps, n_parts):
        between = {tap: there[tap] + alpha * (x - there[tap]) for tap, x in here.items()}
        _, gradients = _differentiate(prediction, between)
        for tap, gradient in gradients.items():
            total[tap] += weight * gradient
    products = {tap: ((x - there[tap]) * total[tap]).sum(dim=-1)[0] for tap, x in here.items()}
    with torch.no_grad():
        value, start = (float(compute_from(prediction, vectors)) for vectors in (here, there))
    return Attribution("integrated-gradients", prediction, _gather(prediction, products), value, start)


def place_points(n_steps: int, n_parts: int) -> list[tuple[float, float]]:
    """(α, weight) of the points at which an integral over [0, 1] is measured: Gauss and Legendre's in each part.

    >>> [(round(alpha, 3), weight) for alpha, weight in place_points(1, 3)]
    [(0.125, 0.25), (0.375, 0.25), (0.75, 0.5)]
    """
    borders = [0.0, *(2.0 ** (part + 1 - n_parts) for part in range(n_parts))]
    points, weights = np.polynomial.legendre.leggauss(n_steps)
    return [
        (low + (high - low) * (point + 1) / 2, (high - low) * weight / 2)
        for low, high in pairwise(borders)
        for point, weight in zip(points.tolist(), weights.tolist(), strict=True)
    ]


def erase_tokens(prediction: Prediction) -> Attribution:
    """a_i = F(x) - F(x without token i): the token is replaced by <unk> or a mask, or left out where there is neither.

    What cannot be erased, since nothing would be left to read, counts zero.
    """
    value = float(prediction.log_probs()[prediction.target])
    scores = np.zeros(len(prediction.tokens))
    for i in range(len(prediction.tokens)):
        if can_be_erased(prediction, i):
            scores[i] = value - value_without(prediction, i)
    return Attribution("erasure", prediction, scores, value)


def value_without(prediction: Prediction, *tokens: int) -> float:
    """F without some tokens; LEAST, and not -inf, for a word that could be copied from them alone."""
    found = prediction.log_probs_without(*tokens)
    return float(found[prediction.target]) if prediction.is_number else max(float(found[prediction.target]), LEAST)


def can_be_erased(prediction: Prediction, token: int) -> bool:
    """Whether a token can be erased: it is no mark, or a place of a picture."""
    is_place = prediction.places[token][0].tap == "encoder.states"
    return is_place or prediction.spans[token] is not None


METHODS: dict[str, Callable[..., Attribution]] = {
    "gradient-input": multiply_gradients,
    "integrated-gradients": integrate_gradients,
    "erasure": erase_tokens,
}


def _taps(prediction: Prediction) -> list[str]:
    return list(dict.fromkeys(place.tap for places in prediction.places for place in places))


@torch.enable_grad()
def _differentiate(prediction: Prediction, vectors: Vectors) -> tuple[float, Vectors]:
    """F, and its gradient at every vector."""
    leaves = {tap: x.detach().clone().requires_grad_() for tap, x in vectors.items()}
    value = compute_from(prediction, {tap: _stand_in(leaf) for tap, leaf in leaves.items()})
    found = torch.autograd.grad(value, list(leaves.values()), allow_unused=True)
    gradients = {
        tap: torch.zeros_like(leaf) if g is None else g for (tap, leaf), g in zip(leaves.items(), found, strict=True)
    }
    return float(value.detach()), gradients


def _stand_in(leaf: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda value: leaf


def _gather(prediction: Prediction, by_tap: Mapping[str, Tensor]) -> Array:
    """The numbers of all places at which a token is read, added up, for every token."""
    plain = {tap: numbers.double().cpu().numpy() for tap, numbers in by_tap.items()}
    return np.array([sum(plain[place.tap][place.row] for place in places) for places in prediction.places])
