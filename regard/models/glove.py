"""GloVe: vectors whose products are the logarithms of co-occurrence counts (Pennington et al. 2014).

    loss = Σ_ij f(X_ij) (w_i · c_j + a_i + b_j - log X_ij)²,   f(x) = min(1, (x / x_max)^α)

by AdaGrad on pairs in random order, many at once. The vector of a word is w_i + c_i, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.models.word_vectors_config import GloVeConfig


@dataclass
class GloVe:
    """Rows w and c with their biases as the last column, (V, D + 1), and AdaGrad's sums of squares of each."""

    words: Float[Tensor, "V E"]
    contexts: Float[Tensor, "V E"]
    words_squared: Float[Tensor, "V E"]
    contexts_squared: Float[Tensor, "V E"]

    @classmethod
    def create(cls, config: GloVeConfig, vocab_size: int, seed: int) -> GloVe:
        """Random numbers within ±1/2D; sums of squares begin at 1, so that no first step is larger than lr."""
        random, shape = torch.Generator().manual_seed(seed), (vocab_size, config.d_model + 1)
        words, contexts = ((torch.rand(shape, generator=random) - 0.5) / config.d_model for _ in range(2))
        return cls(words, contexts, torch.ones(shape), torch.ones(shape))

    def tensors(self) -> dict[str, Tensor]:
        return dict(vars(self))

    def to(self, device: torch.device) -> GloVe:
        return GloVe(**{name: tensor.to(device) for name, tensor in self.tensors().items()})


def weigh(counts: Float[Tensor, P], x_max: float, power: float) -> Float[Tensor, P]:
    """f(x) = min(1, (x / x_max)^α)"""
    return (counts / x_max).pow(power).clamp(max=1.0)


def pair_errors(model: GloVe, i: Int[Tensor, P], j: Int[Tensor, P], counts: Float[Tensor, P]) -> Float[Tensor, P]:
    """w_i · c_j + a_i + b_j - log X_ij"""
    w, c = model.words[i], model.contexts[j]
    return (w[:, :-1] * c[:, :-1]).sum(dim=1) + w[:, -1] + c[:, -1] - counts.log()


def update(
    model: GloVe, config: GloVeConfig, i: Int[Tensor, P], j: Int[Tensor, P], counts: Float[Tensor, P], lr: float
) -> Tensor:
    """Move the rows of these pairs by AdaGrad, all from one place; returns the loss before, a sum."""
    error = pair_errors(model, i, j, counts)
    weight = weigh(counts, config.x_max, config.power)
    # The factor 2 of a square's derivative is left to the learning rate, as the authors' program does.
    slope = (weight * error)[:, None]
    for_words, for_contexts = slope * model.contexts[j], slope * model.words[i]
    for_words[:, -1], for_contexts[:, -1] = slope[:, 0], slope[:, 0]
    for table, squared, at, gradient in (
        (model.words, model.words_squared, i, for_words),
        (model.contexts, model.contexts_squared, j, for_contexts),
    ):
        squared.index_add_(0, at, gradient * gradient)  # first: a row that comes often takes the smaller steps
        table.index_add_(0, at, gradient / squared[at].sqrt(), alpha=-lr)
    return (weight * error * error).sum()
