"""The language model: embed, mix, predict."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import RegardError
from regard.kernels.cross_entropy import chunked_cross_entropy, nats_each
from regard.kernels.device import at_least_float32
from regard.kernels.linear import linear
from regard.kernels.step_linear import step_linear
from regard.layers.dropout import embed_dropping_words, sequence_dropout
from regard.layers.taps import Taps, keep
from regard.mixers.mixer import Mixer, State, StaticMixer
from regard.models.regularization import NO_REGULARIZATION, Regularization


def check_length(n_tokens: int, limit: int | None) -> None:
    """Refuse more tokens at once than a model can see."""
    if limit is not None and n_tokens > limit:
        raise RegardError(
            f"The model was given {n_tokens} tokens at once and sees at most {limit}. "
            f"Give it less, or train one with max_context {n_tokens}."
        )


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
    ) -> tuple[Float[Tensor, "B T D"], State | None]:
        """h at every position, before the dropout of what the head reads; and the state after the last."""
        if state is None:
            check_length(ids.shape[1], self.max_positions)
        x = self.dropout(embed_dropping_words(ids, self.embedding, self.regularization.p_embedding, self.training))
        h, state = self.mixer(keep(taps, "embedding", x), state, taps)
        return keep(taps, "hidden", h), state

    def encode(
        self,
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        taps: Taps | None = None,
    ) -> tuple[Float[Tensor, "B T D"], ...]:
        """What the first layer reads, then what each layer gives, at every token; the last is `hidden`'s h.

        Every token knows its past alone, so that padding at the right reaches none of them. A language model tells no
        segments apart.
        """
        check_length(tokens.shape[1], self.max_positions)
        ids = tokens.where(mask, 0)
        x = self.dropout(embed_dropping_words(ids, self.embedding, self.regularization.p_embedding, self.training))
        return self.mixer.read_layers(keep(taps, "embedding", x), taps)

    @property
    def n_layers(self) -> int:
        """How many states `encode` gives beyond the embeddings."""
        return self.mixer.n_layers

    @property
    def max_positions(self) -> int | None:
        """The longest text that is read at once; None: any."""
        return self.mixer.max_context

    def forward(
        self, ids: Int[Tensor, "B T"], state: State | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T R"], State | None]:
        """Logits of every next token, and the state after the last."""
        h, state = self.hidden(ids, state, taps)
        return keep(taps, "logits", self.logits(self.drop_output(h))), state

    def logits(self, h: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch R"]:
        return functional.linear(h, self.embedding if self.head is None else self.head, self.bias)

    @property
    def output_weight(self) -> Float[Tensor, "V D"]:
        """W without the rows that stand for no token."""
        W = self.embedding if self.head is None else self.head
        return W if len(W) == self.vocab_size else W[: self.vocab_size]

    def drop_output(self, h: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Drop from what the head reads, while training."""
        return self.output_dropout(h)  # type: ignore[no-any-return]

    def goal_of(
        self, h: Float[Tensor, "B T D"], targets: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """What training makes small, and the nats that are in it, each summed over the real tokens (mask True)."""
        dropped = self.drop_output(h)
        rows = dropped.reshape(-1, self.d_model)  # (B T, D)
        nats, _ = chunked_cross_entropy(rows, self.output_weight, self.bias, targets.reshape(-1), mask.reshape(-1))
        has_penalty = self.training and self.regularization.has_penalty
        return nats + self.regularization.penalty(dropped, h, mask) if has_penalty else nats, nats

    def nats_each(self, h: Float[Tensor, "B T D"], targets: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """-log P of every target, given what `hidden` gave; few logits are held at a time. For scoring."""
        return nats_each(h, self.output_weight, self.bias, targets)

    def log_probs(self, h: Float[Tensor, "B 1 D"], weight: Float[Tensor, "R D"] | None = None) -> Float[Tensor, "B V"]:
        """log P of every next token after one position, in float32 at least; `weight` is as for `step_logits`."""
        return at_least_float32(self.step_logits(h, weight)).log_softmax(dim=-1)

    def step_log_probs(self, h: Float[Tensor, "B 1 D"], weight: Float[Tensor, "R D"]) -> Float[Tensor, "B V"]:
        """log P of every next token after one position, asked for by a step that is captured."""
        return self.log_probs(h, weight)

    def step_logits(
        self, h: Float[Tensor, "B 1 D"], weight: Float[Tensor, "R D"] | None = None
    ) -> Float[Tensor, "B V"]:
        """Logits of every next token after one position.

        `weight` is the output matrix, in another layout if need be, or with rows added that stand for no token.
        """
        weight = self.output_weight if weight is None else weight
        if len(weight) == self.vocab_size:
            return linear(h[:, 0], weight, self.bias)
        logits = step_linear(h[:, 0], weight)[:, : self.vocab_size]
        return logits if self.bias is None else logits + self.bias

    def step(self, ids: Int[Tensor, "B 1"], state: State) -> tuple[Float[Tensor, "B 1 D"], State]:
        """h after one more token, of a mixer whose state stays where it is; nothing is dropped."""
        assert isinstance(self.mixer, StaticMixer), "only what has a static step is captured"
        return self.mixer.step(functional.embedding(ids, self.embedding), state)

    def start(self, B: int, capacity: int) -> State:
        """The state before the first token of B texts, with room for `capacity` tokens."""
        return self.mixer.start(B, capacity, self.embedding)

    @property
    def n_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def flops(self, n_tokens: int) -> int:
        """Forward cost of `encode` for a text of so many tokens; nothing is predicted."""
        return n_tokens * self.mixer.flops_per_token(n_tokens)

    def flops_per_token(self, n_context: int) -> int:
        """Forward cost of a token, twice the multiply-adds; backward costs about twice as much again."""
        return self.mixer.flops_per_token(n_context) + 2 * self.d_model * self.vocab_size
