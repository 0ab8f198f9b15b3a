"""The language model: embed, mix, predict."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import RegardError
from regard.kernels.cross_entropy import chunked_cross_entropy
from regard.kernels.step_linear import step_linear
from regard.layers.activation_penalty import Activations, activation_penalty
from regard.layers.embedding_dropout import embed_dropping_words
from regard.layers.locked_dropout import sequence_dropout
from regard.layers.taps import Taps
from regard.mixers.mixer import Mixer, State, StaticMixer

MAX_LOGITS = 2**23  # logits held at once while scoring: 32 MB in float32


@dataclass(frozen=True)
class Regularization:
    """What a language model may do against learning a small text by heart, beside dropout of its input."""

    p_embedding: float = 0.0  # word types left out (regard/layers/embedding_dropout.py)
    p_output: float = 0.0  # dropout of what the head reads, where the mixer has none of its own
    is_variational: bool = False  # input and output masks are those of a sequence (regard/layers/locked_dropout.py)
    alpha: float = 0.0  # penalties on the output and on its change (regard/layers/activation_penalty.py)
    beta: float = 0.0

    @property
    def has_penalty(self) -> bool:
        return self.alpha > 0 or self.beta > 0


NO_REGULARIZATION = Regularization()


class LanguageModel(nn.Module):
    """P(w_{t+1} | w_1 ... w_t) = softmax(W h_t + b),  h = mixer(E w_1, ..., E w_t).

    With tied embeddings W = E (Press & Wolf 2017; Inan et al. 2017).
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        mixer: Mixer,
        p_dropout: float = 0.0,
        tie_embeddings: bool = True,
        has_bias: bool = True,
        std: float | None = None,
        n_rows: int | None = None,
        regularization: Regularization = NO_REGULARIZATION,
    ) -> None:
        """`std` is the embeddings' spread at the start; None: 1/√D, so that an embedding has length one.

        `n_rows` above V gives E and W rows that stand for no token, as models padded to a round number have: they are
        in the logits of `forward`, and have no part in any probability. Such a model has no bias.
        """
        assert n_rows is None or not has_bias, "which rows a bias has was never decided"
        super().__init__()
        self.vocab_size, self.d_model = vocab_size, d_model
        R = vocab_size if n_rows is None else n_rows
        self.embedding = nn.Parameter(torch.empty(R, d_model))  # E
        self.mixer = mixer
        self.head = None if tie_embeddings else nn.Parameter(torch.empty(R, d_model))  # W
        self.bias = nn.Parameter(torch.zeros(vocab_size)) if has_bias else None  # b
        self.regularization = regularization
        self.dropout = sequence_dropout(p_dropout, regularization.is_variational)
        self.output_dropout = sequence_dropout(regularization.p_output, regularization.is_variational)
        for weight in (self.embedding, self.head):
            if weight is not None:
                nn.init.normal_(weight, std=d_model**-0.5 if std is None else std)

    def hidden(
        self, ids: Int[Tensor, "B T"], state: State | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"] | Activations, State | None]:
        """What the head reads at every position, and the state after the last.

        While a model with a penalty trains, that comes with what it was before its dropout.
        """
        limit = self.mixer.max_context
        if state is None and limit is not None and ids.shape[1] > limit:
            raise RegardError(
                f"The model was given {ids.shape[1]} tokens at once and sees at most {limit}. "
                f"Give it less, or train one with max_context {ids.shape[1]}."
            )
        embedded = embed_dropping_words(ids, self.embedding, self.regularization.p_embedding, self.training)
        x = self.dropout(embedded)
        if taps is not None:
            taps.keep("embedding", x)
        raw, state = self.mixer(x, state, taps)
        h = self.output_dropout(raw)
        if taps is not None:
            taps.keep("hidden", h)
        return Activations(h, raw) if self.training and self.regularization.has_penalty else h, state

    def logits(self, h: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch R"]:
        return functional.linear(h, self.embedding if self.head is None else self.head, self.bias)

    @property
    def output_weight(self) -> Float[Tensor, "V D"]:
        """W without the rows that stand for no token."""
        W = self.embedding if self.head is None else self.head
        return W if len(W) == self.vocab_size else W[: self.vocab_size]

    def forward(
        self, ids: Int[Tensor, "B T"], state: State | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T R"], State | None]:
        h, state = self.hidden(ids, state, taps)
        logits = self.logits(read_by_head(h))
        if taps is not None:
            taps.keep("logits", logits)
        return logits, state

    def loss(
        self,
        ids: Int[Tensor, "B T"],
        targets: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        state: State | None = None,
        chunk: int | None = None,
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""], State | None]:
        """Nats summed over the real tokens (mask True), how many these are, and the state after the last."""
        h, state = self.hidden(ids, state)
        return *self.nats_of(h, targets, mask, chunk), state

    def nats_of(
        self,
        h: Float[Tensor, "B T D"] | Activations,
        targets: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        chunk: int | None = None,
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """The loss of what `hidden` gave. Logits are computed `chunk` tokens at a time and never held together."""
        rows = read_by_head(h).reshape(-1, self.d_model)  # (B T, D)
        return chunked_cross_entropy(rows, self.output_weight, self.bias, targets.reshape(-1), mask.reshape(-1), chunk)

    def penalty_of(
        self, h: Float[Tensor, "B T D"] | Activations, mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, ""] | None:
        """What is added to the summed nats while training and is no part of any score; None: nothing."""
        if not isinstance(h, Activations):
            return None
        return activation_penalty(h, mask, self.regularization.alpha, self.regularization.beta)

    def nats_each(self, h: Float[Tensor, "B T D"], targets: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """-log P of every target, given what `hidden` gave; few logits are held at a time. For scoring."""
        W, n_rows = self.output_weight, max(1, MAX_LOGITS // self.vocab_size)
        hiddens = torch.split(h.reshape(-1, h.shape[-1]), n_rows)  # (n_rows, D) each
        answers = torch.split(targets.reshape(-1), n_rows)
        parts = [
            functional.cross_entropy(at_least_float32(functional.linear(part, W, self.bias)), answer, reduction="none")
            for part, answer in zip(hiddens, answers, strict=True)
        ]
        return torch.cat(parts).view(targets.shape)

    def log_probs(self, h: Float[Tensor, "B 1 D"], weight: Float[Tensor, "R D"] | None = None) -> Float[Tensor, "B V"]:
        """log P of every next token after one position, in float32 at least; `weight` is as for `step_logits`."""
        return at_least_float32(self.step_logits(h, weight)).log_softmax(dim=-1)

    def step_logits(
        self, h: Float[Tensor, "B 1 D"], weight: Float[Tensor, "R D"] | None = None
    ) -> Float[Tensor, "B V"]:
        """Logits of every next token after one position.

        `weight` is the output matrix, in another layout if need be, or with rows added that stand for no token.
        """
        weight = self.output_weight if weight is None else weight
        if len(weight) == self.vocab_size:
            return functional.linear(h[:, 0], weight, self.bias)
        logits = step_linear(h[:, 0], weight)[:, : self.vocab_size]
        return logits if self.bias is None else logits + self.bias

    def step(self, ids: Int[Tensor, "B 1"], state: State) -> tuple[Float[Tensor, "B 1 D"], State]:
        """What the head reads after one more token, of a mixer whose state stays where it is; nothing is dropped."""
        assert isinstance(self.mixer, StaticMixer), "only what has a static step is captured"
        return self.mixer.step(functional.embedding(ids, self.embedding), state)

    def start(self, B: int, capacity: int) -> State:
        """The state before the first token of B texts, with room for `capacity` tokens."""
        return self.mixer.start(B, capacity, self.embedding)

    @property
    def n_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def flops_per_token(self, n_context: int) -> int:
        """Forward cost of a token, twice the multiply-adds; backward costs about twice as much again."""
        return self.mixer.flops_per_token(n_context) + 2 * self.d_model * self.vocab_size


def at_least_float32(x: Tensor) -> Tensor:
    """Sums over a vocabulary need more digits than a low-precision model's logits have."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def read_by_head(h: Float[Tensor, "B T D"] | Activations) -> Float[Tensor, "B T D"]:
    """What the head reads of what `hidden` gave."""
    return h.dropped if isinstance(h, Activations) else h
