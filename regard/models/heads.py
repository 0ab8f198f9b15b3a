"""What a task puts on top of an encoder: a class, a number, a tag for each word, the span of an answer.

Every head is called with the states of B texts in W windows of T tokens, and gives what `goal_of` compares with the
targets: what training makes small, and the nats that are in it, each summed over `n_targets` of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.kernels.device import at_least_float32
from regard.layers.taps import Taps
from regard.models.crf import ConditionalRandomField, Legal
from regard.models.pooling import Pooling

IGNORED = -1
"""A target that is none."""


class States(NamedTuple):
    """What an encoder made of B texts."""

    h: Float[Tensor, "B W T D"]
    mask: Bool[Tensor, "B W T"]
    keep: Bool[Tensor, "B W T"]
    places: Int[Tensor, "B N"]
    """Flat positions of words, or of the tokens of a passage; -1: there is none."""

    def at_places(self) -> tuple[Float[Tensor, "B N D"], Bool[Tensor, "B N"]]:
        """The states of words or tokens that are asked about, and which of them there are."""
        index = self.places.clamp_min(0)[..., None].expand(-1, -1, self.h.shape[-1])
        return self.h.flatten(1, 2).gather(1, index), self.places >= 0


@dataclass(frozen=True)
class Goal:
    """How a loss departs from the nats: smoothed targets, and weights of classes (K,)."""

    smoothing: float = 0.0
    weights: Tensor | None = None


class Head(Protocol):
    """The last layers of a model that answers about a text."""

    out: nn.Linear
    answers_each_place: bool
    """Whether there is a target for each of the places, or a fixed number of them."""
    unit: str
    """What `n_targets` counts, in the singular."""

    def __call__(self, states: States, taps: Taps | None = None) -> Tensor: ...

    def goal_of(self, outputs: Tensor, targets: Tensor, goal: Goal) -> tuple[Tensor, Tensor]:
        """What training makes small, and the nats, each summed."""

    def n_targets(self, targets: Tensor) -> int:
        """How many the sums are over."""

    def flops(self, n_tokens: int) -> int: ...


def deep_layers(d_model: int, d_hidden: int, n_layers: int, p_dropout: float) -> nn.Sequential:
    """z_l = relu(W_l z_{l-1} + b_l): the layers above the average of a deep averaging network (Iyyer et al. 2015)."""
    parts: list[nn.Module] = []
    for d_in, d_out in pairwise([d_model] + [d_hidden] * n_layers):
        layer = nn.Linear(d_in, d_out)
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
        parts += [layer, nn.ReLU(), nn.Dropout(p_dropout)]
    return nn.Sequential(*parts)


def sum_nats(scores: Float[Tensor, "M K"], targets: Int[Tensor, " M"], goal: Goal) -> tuple[Tensor, Tensor]:
    """-log softmax(scores)[target], as the goal departs from it, and itself; where a target is IGNORED, nothing."""
    nats = functional.cross_entropy(scores, targets, ignore_index=IGNORED, reduction="sum")
    if goal.weights is None and not goal.smoothing:
        return nats, nats
    weights = None if goal.weights is None else goal.weights.to(scores)
    departed = functional.cross_entropy(
        scores, targets, weights, ignore_index=IGNORED, label_smoothing=goal.smoothing, reduction="sum"
    )
    return departed, nats.detach()


def pooler_layers(d_model: int, activation: str) -> nn.Sequential:
    """z = φ(W h_1 + b): the layer of BERT between its first state and a classifier; φ is tanh, DistilBERT's is relu."""
    layer = nn.Linear(d_model, d_model)
    nn.init.normal_(layer.weight, std=0.02)
    nn.init.zeros_(layer.bias)
    return nn.Sequential(layer, nn.ReLU() if activation == "relu" else nn.Tanh())


class _Answering(nn.Module):
    """out(dropout(hidden(x))): what all heads end with."""

    def __init__(
        self, d_model: int, n_out: int, p_dropout: float, layers: nn.Sequential | None, has_bias: bool = True
    ) -> None:
        super().__init__()
        self.hidden = nn.Sequential() if layers is None else layers
        widths = [part.out_features for part in self.hidden if isinstance(part, nn.Linear)]
        self.dropout = nn.Dropout(p_dropout)
        self.out = nn.Linear(widths[-1] if widths else d_model, n_out, bias=has_bias)
        nn.init.normal_(self.out.weight, std=0.02)
        if has_bias:
            nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor) -> Tensor:
        return at_least_float32(self.out(self.dropout(self.hidden(x))))

    def flops(self, n: int) -> int:
        linears = [part for part in self.modules() if isinstance(part, nn.Linear)]
        return n * sum(2 * part.in_features * part.out_features for part in linears)


class ClassHead(nn.Module):
    """P(class | x) = softmax(W v + b),   v = pool(h_1 ... h_n)"""

    answers_each_place = False
    unit = "example"

    def __init__(
        self,
        d_model: int,
        n_classes: int,
        pool: str,
        p_dropout: float,
        layers: nn.Sequential | None = None,
        has_bias: bool = True,
    ) -> None:
        super().__init__()
        self.pool = Pooling(pool, d_model)
        self.answer = _Answering(d_model, n_classes, p_dropout, layers, has_bias)

    @property
    def out(self) -> nn.Linear:
        return self.answer.out

    def forward(self, states: States, taps: Taps | None = None) -> Float[Tensor, "B K"]:
        return self.answer(self.pool(states.h, states.mask, states.keep, taps))  # type: ignore[no-any-return]

    def goal_of(self, outputs: Float[Tensor, "B K"], targets: Int[Tensor, " B"], goal: Goal) -> tuple[Tensor, Tensor]:
        return sum_nats(outputs, targets, goal)

    def n_targets(self, targets: Tensor) -> int:
        return len(targets)

    def flops(self, n_tokens: int) -> int:
        return self.pool.flops(n_tokens) + self.answer.flops(1)


class NumberHead(nn.Module):
    """y = c + s (w·v + b),   v = pool(h_1 ... h_n);  c and s are the mean and the spread of the training labels.

    The loss is half the squared error in units of s: the nats of a Gaussian, but for a constant.
    """

    answers_each_place = False
    unit = "example"

    def __init__(
        self,
        d_model: int,
        centre: float,
        spread: float,
        pool: str,
        p_dropout: float,
        layers: nn.Sequential | None = None,
    ) -> None:
        super().__init__()
        self.centre, self.spread = centre, spread
        self.pool = Pooling(pool, d_model)
        self.answer = _Answering(d_model, 1, p_dropout, layers)

    @property
    def out(self) -> nn.Linear:
        return self.answer.out

    def forward(self, states: States, taps: Taps | None = None) -> Float[Tensor, " B"]:
        raw: Tensor = self.answer(self.pool(states.h, states.mask, states.keep, taps))[:, 0]
        return self.centre + self.spread * raw

    def goal_of(self, outputs: Float[Tensor, " B"], targets: Float[Tensor, " B"], goal: Goal) -> tuple[Tensor, Tensor]:
        error = (outputs - targets) / self.spread
        half = 0.5 * (error * error).sum()
        return half, half

    def n_targets(self, targets: Tensor) -> int:
        return len(targets)

    def flops(self, n_tokens: int) -> int:
        return self.pool.flops(n_tokens) + self.answer.flops(1)


class TagHead(nn.Module):
    """P(tag of word t | x) = softmax(W h_t + b), h_t that of its first piece; or a random field (CRF) of W h + b."""

    answers_each_place = True
    unit = "word"

    def __init__(
        self,
        d_model: int,
        n_tags: int,
        has_crf: bool,
        p_dropout: float,
        layers: nn.Sequential | None = None,
        legal: Legal | None = None,
    ) -> None:
        """`legal` says which tags a random field may give one after the other; None: any."""
        super().__init__()
        self.answer = _Answering(d_model, n_tags, p_dropout, layers)
        self.crf = ConditionalRandomField(n_tags, legal) if has_crf else None

    @property
    def out(self) -> nn.Linear:
        return self.answer.out

    def forward(self, states: States, taps: Taps | None = None) -> Float[Tensor, "B N K"]:
        h, _ = states.at_places()
        return self.answer(h)  # type: ignore[no-any-return]

    def goal_of(
        self, outputs: Float[Tensor, "B N K"], targets: Int[Tensor, "B N"], goal: Goal
    ) -> tuple[Tensor, Tensor]:
        mask = targets >= 0
        if self.crf is not None:
            nats = self.crf.nats(outputs, targets, mask).sum()
            return nats, nats
        return sum_nats(outputs.flatten(0, 1), targets.flatten(), goal)

    @torch.no_grad()
    def best_tags(
        self, outputs: Float[Tensor, "B N K"], mask: Bool[Tensor, "B N"]
    ) -> tuple[Int[Tensor, "B N"], Float[Tensor, " B"], Float[Tensor, "B N"]]:
        """The tags, the probability that all of a sentence are right, and that of each of them."""
        if self.crf is not None:
            tags = self.crf.decode(outputs, mask)
            return tags, *self.crf.probabilities(outputs, tags, mask)
        each, tags = outputs.softmax(dim=-1).max(dim=-1)
        return tags * mask, each.where(mask, 1.0).prod(dim=1), each * mask

    def n_targets(self, targets: Tensor) -> int:
        return int((targets >= 0).sum())

    def flops(self, n_tokens: int) -> int:
        return self.answer.flops(n_tokens)


class SpanHead(nn.Module):
    """P(begin = i) = softmax(u_i), P(end = j) = softmax(v_j),   u_t, v_t = W h_t + b  (Devlin et al. 2019)

    i and j are tokens of the passage; the first token of all stands for "no answer". All windows of a passage share one
    softmax (Clark & Gardner 2018).
    """

    answers_each_place = False
    unit = "question"

    def __init__(self, d_model: int, p_dropout: float, layers: nn.Sequential | None = None) -> None:
        super().__init__()
        self.answer = _Answering(d_model, 2, p_dropout, layers)

    @property
    def out(self) -> nn.Linear:
        return self.answer.out

    def forward(self, states: States, taps: Taps | None = None) -> Float[Tensor, "B M 2"]:
        """Scores of no answer, then of every token of the passage; -inf where there is none."""
        h, is_there = states.at_places()
        h = torch.cat([states.h[:, 0, :1], h], dim=1)  # (B, M = 1 + N, D)
        scores: Tensor = self.answer(h)
        return scores.masked_fill(~functional.pad(is_there, (1, 0), value=True)[..., None], float("-inf"))

    def goal_of(
        self, outputs: Float[Tensor, "B M 2"], targets: Int[Tensor, "B 2"], goal: Goal
    ) -> tuple[Tensor, Tensor]:
        """Targets are counted as `forward` counts: 0 is no answer."""
        nats = functional.cross_entropy(outputs.transpose(1, 2).flatten(0, 1), targets.flatten(), reduction="sum")
        return nats, nats

    def n_targets(self, targets: Tensor) -> int:
        return len(targets)

    def flops(self, n_tokens: int) -> int:
        return self.answer.flops(n_tokens)


def best_span(
    scores: Float[Tensor, "M 2"], max_length: int, allows_none: bool, threshold: float = 0.0
) -> tuple[int, int, float]:
    """Begin and end of the best answer, 1 <= i <= j < i + max_length, and its probability; (0, 0) is no answer.

    There is none where the best span's score is not above that of no answer by more than `threshold`. The probability
    is among all spans of the allowed lengths and, where it is allowed, no answer.
    """
    begin, end = scores[1:, 0], scores[1:, 1]
    pairs = begin[:, None] + end[None, :]  # (N, N)
    allowed = torch.ones_like(pairs, dtype=torch.bool).triu() & torch.ones_like(pairs, dtype=torch.bool).tril(
        max_length - 1
    )
    pairs = pairs.masked_fill(~allowed, float("-inf"))
    none = scores[0].sum()
    total = torch.logsumexp(torch.cat([pairs.flatten(), none[None]]) if allows_none else pairs.flatten(), dim=0)
    place = int(pairs.argmax())
    i, j = divmod(place, pairs.shape[1])
    best = pairs[i, j]
    if allows_none and best - none <= threshold:
        return 0, 0, float((none - total).exp())
    return i + 1, j + 1, float((best - total).exp())
