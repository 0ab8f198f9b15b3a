"""Whether attention explains a prediction (Jain & Wallace 2019; Wiegreffe & Pinter 2019).

Attention is read as one number a token: the weights of the row from which the prediction is made, mean over the heads
of a layer. Where several layers attend to the same tokens the layers are put together by rollout, R = Π_l (A_l + I)/2
(Abnar & Zuidema 2020). Two questions are asked of it.

Does it agree with what the output depends on? τ_b of the weights with |x_i · ∂F/∂x_i|, and with how far the output
moves when token i is erased.

Does the output depend on it? How far it moves, as total variation ½ Σ |P' - P|, when the weights that a head gives are
permuted among the tokens (median of many permutations), or made uniform; and how far the weights can be pushed away,
as Jensen-Shannon divergence of at most ln 2, while the output moves by no more than `epsilon`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.errors import RegardError
from regard.layers.attention import masked_weights
from regard.layers.taps import Replacement, Taps
from regard.lens.attribution import can_be_erased, multiply_gradients
from regard.lens.patching import measure_variation
from regard.lens.prediction import Look, Prediction, attention_rows
from regard.score.rank_agreement import kendall_tau

Array = NDArray[np.float64]
N_PERMUTATIONS = 50
N_STEPS, RATE, WEIGHT, GROWTH = 100, 0.1, 10.0, 1.2
"""Of the search for other weights: updates, Adam's learning rate, λ at first, and by what it changes."""
STARTS = (1.0, 0.1)
"""How far from the model's own logits each search begins: standard deviations of the noise on them."""
N_HALVINGS = 12
"""Of the way back from other weights that move the output too far."""
EPSILON = 0.01
"""How far the output may move while the weights are pushed away."""
STILL = 0.05
"""An output that moves by less than this hardly moves."""
AGREES = 0.4
"""A τ above this is agreement."""
MIN_WORDS = 5
"""With fewer words than this any order is soon the same by chance."""
ELSEWHERE = 0.3
"""Weights that are further away than this, as a share of ln 2, look elsewhere."""


@dataclass(frozen=True)
class Faithfulness:
    """What was measured of one prediction, and what it comes to in words."""

    prediction: Prediction
    attention: Array
    """One number a token, (n,)."""
    by_layer: dict[str, Array]
    """The attention of each layer that attends, one number a token, by tap name."""
    gradients: Array
    erasure: Array
    """How far the output moves without each token; nan for what cannot be erased."""
    tau_gradients: float
    tau_erasure: float
    tau_gradients_erasure: float
    """How far the two others agree with each other: what attention can be expected to reach."""
    moved_permuted: float
    moved_uniform: float
    pushed: float
    """Jensen-Shannon divergence of the weights that are furthest away, over ln 2."""
    moved_pushed: float
    epsilon: float = EPSILON
    permuted: tuple[float, ...] = field(default=(), repr=False)
    tau_by_layer: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    """τ with gradients and with erasure of every layer that attends, by tap name."""

    @property
    def depends(self) -> bool:
        """Whether the output depends on where it looks."""
        return max(self.moved_permuted, self.moved_uniform) >= STILL

    @property
    def agrees(self) -> bool:
        """Whether attention orders the words as gradients and erasure do."""
        both = [tau for tau in (self.tau_gradients, self.tau_erasure) if not math.isnan(tau)]
        return bool(both) and float(np.mean(both)) >= AGREES

    @property
    def n_words(self) -> int:
        """How many tokens are put in order: those that can be erased."""
        return int(np.isfinite(self.erasure).sum())

    @property
    def agreement(self) -> str:
        """With which of gradients and erasure attention agrees, as part of a sentence."""
        taus = {"gradients": self.tau_gradients, "erasure": self.tau_erasure}
        with_it = [f"{name} (τ = {tau:.2f})" for name, tau in taus.items() if tau >= AGREES]
        not_with = [f"{name} (τ = {tau:.2f})" for name, tau in taus.items() if not tau >= AGREES]
        if not with_it:
            return "gradients and erasure order the words otherwise"
        return f"it agrees with {' and '.join(with_it)}" + (f", not with {not_with[0]}" if not_with else "")

    @property
    def has_other(self) -> bool:
        """Whether weights that look elsewhere give the same output."""
        return self.pushed >= ELSEWHERE

    @property
    def verdict(self) -> str:
        """What the numbers come to, in one sentence."""
        if not self.depends:
            return "Attention does not explain this prediction: the output hardly depends on where the model looks."
        if self.n_words < MIN_WORDS:
            return (
                f"There are too few words to tell ({self.n_words}): the output depends on where the model looks, but "
                f"with fewer than {MIN_WORDS} any order may be the same by chance. Give a longer text."
            )
        if self.agrees and not self.has_other:
            return (
                f"Attention explains this prediction: the output depends on it, {self.agreement}, "
                "and no attention was found that looks elsewhere and gives the same output."
            )
        if self.agrees:
            return (
                f"Attention is one explanation of this prediction: {self.agreement}, but attention "
                "that looks elsewhere gives the same output."
            )
        if self.has_other:
            return (
                f"Attention does not explain this prediction: {self.agreement}, and attention "
                "that looks elsewhere gives the same output."
            )
        return (
            "Attention matters here but does not explain: the output depends on where the model looks, and "
            f"{self.agreement}."
        )


def measure_faithfulness(
    prediction: Prediction,
    *,
    n_permutations: int = N_PERMUTATIONS,
    n_steps: int = N_STEPS,
    epsilon: float = EPSILON,
    seed: int = 0,
) -> Faithfulness:
    """Ask whether attention explains a prediction; an error where the model does not attend or predicts a number."""
    if prediction.is_number:
        raise RegardError("A rating is a number, not a choice: how far its probabilities move cannot be asked.")
    record = prediction.record()
    by_layer = {name: rows.mean(axis=0) for name, rows in attention_rows(prediction, record).items()}
    if not by_layer:
        raise RegardError("This model attends to nothing from which the prediction is made: there is nothing to test.")
    attention = join_layers(prediction, record, by_layer)
    before = prediction.log_probs()
    gradients, erasure = np.abs(multiply_gradients(prediction).scores), measure_erasure(prediction, before)
    there = np.array([can_be_erased(prediction, i) for i in range(len(prediction.tokens))])
    rows = _attending_rows(prediction, record)
    draws = torch.Generator().manual_seed(seed)
    permuted = [_move(prediction, before, rows, _permute(draws)) for _ in range(n_permutations)]
    pushed, moved_pushed = push_away(prediction, record, rows, epsilon, n_steps, seed)
    return Faithfulness(
        prediction=prediction,
        attention=attention,
        by_layer=by_layer,
        gradients=gradients,
        erasure=erasure,
        tau_gradients=kendall_tau(attention[there], gradients[there]),
        tau_erasure=kendall_tau(attention[there], erasure[there]),
        tau_gradients_erasure=kendall_tau(gradients[there], erasure[there]),
        moved_permuted=float(np.median(permuted)) if permuted else math.nan,
        moved_uniform=_move(prediction, before, rows, _even),
        pushed=pushed / math.log(2),
        moved_pushed=moved_pushed,
        epsilon=epsilon,
        permuted=tuple(permuted),
        tau_by_layer={
            name: (kendall_tau(row[there], gradients[there]), kendall_tau(row[there], erasure[there]))
            for name, row in by_layer.items()
        },
    )


def measure_erasure(prediction: Prediction, before: Array) -> Array:
    """How far the output moves without each token; nan for what cannot be erased."""
    return np.array(
        [
            measure_variation(before, prediction.log_probs_without(i)) if can_be_erased(prediction, i) else math.nan
            for i in range(len(prediction.tokens))
        ]
    )


def join_layers(prediction: Prediction, record: Taps, by_layer: dict[str, Array]) -> Array:
    """One number a token: that of the pool or the source's, or of all layers by rollout; else the last layer's."""
    names = [name for name in by_layer if name.startswith("layers.") and name.endswith(".attention")]
    apart = [name for name in by_layer if name not in names and not name.startswith("encoder.")]
    if apart:  # a pool, or a decoder's look at its source
        return by_layer[apart[-1]]
    look = next((look for look in prediction.looks if look.matches(names[-1])), None) if names else None
    if look is None or look.row is None or len(names) < 2:
        return by_layer[list(by_layer)[-1]]
    joined: Array | None = None
    for name in names:
        A = record[name][0].mean(dim=0).double().cpu().numpy()
        step = (A + np.eye(*A.shape)) / 2
        joined = step if joined is None else step @ joined
    assert joined is not None
    found = np.zeros(len(prediction.tokens))
    found[look.first : look.first + joined.shape[1]] = joined[look.row]
    return found


Rows = dict[str, int | None]
"""Which row of each attention tap the prediction is made from; None: all of them."""


def _attending_rows(prediction: Prediction, record: Taps) -> Rows:
    def find(name: str) -> Look | None:
        return next((look for look in prediction.looks if look.matches(name)), None)

    return {name: look.row for name in record if (look := find(name)) is not None}


def _change_rows(rows: Rows, change: Callable[[Tensor], Tensor]) -> dict[str, Replacement]:
    """What changes the rows that the prediction is made from, (N, R, S) at a time, and leaves the others."""

    def of(row: int | None) -> Callable[[Tensor], Tensor]:
        def replace(A: Tensor) -> Tensor:
            chosen = slice(None) if row is None else slice(row, row + 1)
            changed = A.clone()
            changed[0, :, chosen] = change(A[0, :, chosen])
            return changed

        return replace

    return {name: of(row) for name, row in rows.items()}


def _move(prediction: Prediction, before: Array, rows: Rows, change: Callable[[Tensor], Tensor]) -> float:
    return measure_variation(before, prediction.log_probs(_change_rows(rows, change)))


def _permute(draws: torch.Generator) -> Callable[[Tensor], Tensor]:
    """A random order of the weights of every row, among the positions that it looks at."""

    def permute(A: Tensor) -> Tensor:
        keys = torch.rand(A.shape, generator=draws).to(A.device).masked_fill(A == 0, 2.0)  # what is not seen stays last
        order, places = keys.argsort(dim=-1), (A == 0).to(torch.int8).argsort(dim=-1, stable=True)
        return torch.zeros_like(A).scatter(-1, places, A.gather(-1, order))

    return permute


def _even(A: Tensor) -> Tensor:
    """One weight for all that is looked at; a row that shares its weight with a vocabulary keeps its total."""
    seen = (A > 0).to(A)
    return A.sum(dim=-1, keepdim=True) * seen / seen.sum(dim=-1, keepdim=True).clamp_min(1)


@torch.enable_grad()
def push_away(
    prediction: Prediction, record: Taps, rows: Rows, epsilon: float, n_steps: int = N_STEPS, seed: int = 0
) -> tuple[float, float]:
    """Other weights, as far from these as can be found while the output moves by at most epsilon.

    They maximise mean JSD(A', A) - λ max(0, TV(P', P) - ε) over the logits of A', by Adam. λ grows while the output
    moves too far and shrinks while it does not: what is too small for one model never comes within ε for another.
    Where a search ends outside, the way back, A + t (A' - A), is halved until it is inside. Returns the divergence in
    nats of the best that keep the limit, and how far the output moved.
    """
    own = {name: _take(record[name].detach(), row) for name, row in rows.items()}
    own = {name: A for name, A in own.items() if bool((A > 0).any())}
    totals = {name: A.sum(dim=-1, keepdim=True).clamp_min(1e-12) for name, A in own.items()}
    shares = {name: A / totals[name] for name, A in own.items()}
    P = prediction.compute(None).detach().exp()

    def measure(others: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        scaled = {name: totals[name] * other for name, other in others.items()}
        moved = 0.5 * (prediction.compute(Taps(_put(rows, scaled))).exp() - P).abs().sum()
        return torch.stack([_divergence(others[name], A).mean() for name, A in shares.items()]).mean(), moved

    draws, best = torch.Generator().manual_seed(seed), (0.0, 0.0)
    for spread in STARTS:
        logits = {
            name: (A.clamp_min(1e-6).log() + spread * torch.randn(A.shape, generator=draws).to(A)).requires_grad_()
            for name, A in own.items()
        }
        thetas, cost = list(logits.values()), WEIGHT
        optimizer = torch.optim.Adam(thetas, lr=RATE)
        for step in range(n_steps):
            optimizer.param_groups[0]["lr"] = RATE * (1 - step / n_steps)  # to settle inside the limit
            others = {name: masked_weights(theta, own[name] > 0) for name, theta in logits.items()}
            apart, moved = measure(others)
            now = float(apart.detach()), float(moved.detach())
            if now[1] <= epsilon and now[0] > best[0]:
                best = now
            cost *= GROWTH if now[1] > epsilon else 1 / GROWTH
            goal = cost * (moved - 0.9 * epsilon).clamp_min(0) - apart
            for theta, gradient in zip(thetas, torch.autograd.grad(goal, thetas), strict=True):
                theta.grad = gradient  # and none to the weights of the model
            optimizer.step()
        best = max(best, _come_back(measure, shares, others, epsilon))
    return best


@torch.no_grad()
def _come_back(
    measure: Callable[[dict[str, Tensor]], tuple[Tensor, Tensor]],
    shares: dict[str, Tensor],
    others: dict[str, Tensor],
    epsilon: float,
) -> tuple[float, float]:
    """Divergence and move of the first of A + t (A' - A), t = 1, 1/2, 1/4, ..., that keeps the limit."""
    for halvings in range(N_HALVINGS):
        t = 0.5**halvings
        apart, moved = map(float, measure({name: A + t * (others[name] - A) for name, A in shares.items()}))
        if moved <= epsilon:
            return apart, moved
    return 0.0, 0.0


def _take(A: Tensor, row: int | None) -> Tensor:
    return A[0] if row is None else A[0, :, row : row + 1]


def _put(rows: Rows, others: dict[str, Tensor]) -> dict[str, Replacement]:
    def of(name: str, row: int | None) -> Callable[[Tensor], Tensor]:
        def replace(A: Tensor) -> Tensor:
            changed = A.clone()
            changed[0, :, slice(None) if row is None else slice(row, row + 1)] = others[name]
            return changed

        return replace

    return {name: of(name, rows[name]) for name in others}


def _divergence(p: Tensor, q: Tensor) -> Tensor:
    """Jensen-Shannon divergence of the rows: ½ KL(p ‖ m) + ½ KL(q ‖ m), m = (p + q)/2, in nats; at most ln 2."""
    m = (p + q) / 2

    def against_middle(x: Tensor) -> Tensor:
        safe = x.clamp_min(1e-12)
        return (x * (safe.log() - m.clamp_min(1e-12).log())).sum(dim=-1)

    return (against_middle(p) + against_middle(q)) / 2


def divergence(p: Sequence[float], q: Sequence[float]) -> float:
    """Jensen-Shannon divergence of two distributions, in nats.

    >>> round(divergence([1.0, 0.0], [0.0, 1.0]) / math.log(2), 6), divergence([0.5, 0.5], [0.5, 0.5])
    (1.0, 0.0)
    """
    return float(_divergence(torch.tensor(p, dtype=torch.float64), torch.tensor(q, dtype=torch.float64)))
