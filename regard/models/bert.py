"""BERT: Transformer encoders that read both sides, learned by filling masked places and telling what follows what."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import RegardError
from regard.kernels.cross_entropy import chunked_cross_entropy
from regard.kernels.device import lower_precision
from regard.kernels.gelu import ACTIVATIONS
from regard.layers.positions import LearnedPositions
from regard.layers.taps import Taps, keep, scope
from regard.mixers.transformer import TransformerBlock
from regard.models.bert_config import BertConfig

STD = 0.02


class MaskedHead(nn.Module):
    """g = norm(φ(W h + b)),   P(w) = softmax(E g + b_w), with E the input embeddings (Devlin et al. 2019)."""

    def __init__(self, config: BertConfig, vocab_size: int) -> None:
        super().__init__()
        D = config.widths()["d_model"]
        self.activate = ACTIVATIONS[config.activation]  # φ
        self.transform = nn.Linear(D, D)  # W, b
        self.norm = nn.LayerNorm(D, eps=config.epsilon)
        self.bias = nn.Parameter(torch.zeros(vocab_size))  # b_w

    def forward(self, h: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch D"]:
        """g: what is multiplied with the embeddings."""
        g: Tensor = self.norm(self.activate(self.transform(h)))
        return g


class Bert(nn.Module):
    """x^0 = norm(E w + P + S s),   x^l = block_l(x^{l-1}),   with norms after the sums and both sides seen.

    w are the tokens, P learned positions, s the segments. `pooled` is tanh(W x^L_1 + b) of the first token, from which
    the next-sentence head tells whether the second segment follows the first (class 0) or not (class 1, as in BERT's
    own code). What is not in `config` is None.
    """

    def __init__(self, config: BertConfig, vocab_size: int) -> None:
        super().__init__()
        shape = config.transformer()
        R, D = config.n_rows or vocab_size, shape.d_model
        self.vocab_size, self.d_model, self.n_layers = vocab_size, D, shape.n_layers
        self.max_positions: int | None = config.max_context
        self.n_unused_positions = config.n_unused_positions
        self.embedding = nn.Parameter(torch.empty(R, D))  # E
        self.positions = LearnedPositions(config.max_context + config.n_unused_positions, D)  # P
        self.segments = nn.Parameter(torch.empty(config.n_segments, D)) if config.n_segments else None  # S
        self.norm = nn.LayerNorm(D)
        self.dropout = nn.Dropout(config.p_dropout)
        blocks = [TransformerBlock(shape, is_causal=False) for _ in range(shape.n_layers)]
        self.layers: Sequence[TransformerBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.pooler = nn.Linear(D, D) if config.has_pooler else None
        self.masked_head = MaskedHead(config, R) if config.has_masked_head else None
        self.next_head = nn.Linear(D, 2) if config.has_next_head else None
        for part in self.modules():
            if isinstance(part, nn.LayerNorm):
                part.eps = config.epsilon
        self._initialise()

    def _initialise(self) -> None:
        """N(0, 0.02²) for every matrix, zero for every bias, as in BERT."""
        for part in self.modules():
            if isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=STD)
                nn.init.zeros_(part.bias)
        for table in (self.embedding, self.segments):
            if table is not None:
                nn.init.normal_(table, std=STD)

    def widen_segments(self, n: int) -> None:
        """Tell n kinds of tokens apart: each new kind begins as one of those before it, in their order."""
        assert self.segments is not None
        assert n % len(self.segments) == 0
        self.segments = nn.Parameter(self.segments.detach().repeat(n // len(self.segments), 1))

    def embed(
        self, tokens: Int[Tensor, "B T"], segments: Int[Tensor, "B T"] | None = None, taps: Taps | None = None
    ) -> Float[Tensor, "B T D"]:
        """x^0; all tokens are of the first segment where none are given."""
        T = tokens.shape[1]
        assert self.max_positions is not None
        if self.max_positions < T:
            raise RegardError(
                f"The model was given {T} tokens at once and reads at most {self.max_positions}. Give it less, or cut "
                "the text into windows."
            )
        x = functional.embedding(tokens, self.embedding)
        if self.segments is not None:
            # With one text, or one kind of segment, its row is added everywhere, and nothing is looked up.
            if segments is None or len(self.segments) == 1:
                x = x + self.segments[0]
            else:
                x = x + functional.embedding(segments, self.segments)
        x = self.positions(x, self.n_unused_positions, taps)
        return lower_precision(self.dropout(self.norm(x)))

    def encode(
        self,
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"] | None,
        segments: Int[Tensor, "B T"] | None = None,
        taps: Taps | None = None,
    ) -> tuple[Float[Tensor, "B T D"], ...]:
        """States by layer: x^0 first, x^L last. mask is True where there is a token; None: everywhere."""
        x = keep(taps, "embedding", self.embed(tokens, segments, taps))
        states = [x]
        for index, block in enumerate(self.layers):
            inner = scope(taps, f"layers.{index}")
            x, _, _ = block(x, None, inner, mask)
            x = keep(inner, "hidden", x)
            states.append(x)
        return tuple(states)

    def hidden(
        self,
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"] | None,
        segments: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """x^L alone."""
        return self.encode(tokens, mask, segments)[-1]

    def pool(self, states: Float[Tensor, "B T D"]) -> Float[Tensor, "B D"]:
        """tanh(W x_1 + b) of the first token."""
        if self.pooler is None:
            raise RegardError("This model has no pooler. Read its states, or load one that has (model.has_pooler).")
        return self.pooler(states[:, 0]).tanh()  # type: ignore[no-any-return]

    def logits(self, states: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch R"]:
        """The masked head's logits of every token, at each of the places whose states are given."""
        head = self._masked_head()
        return functional.linear(head(states), self.embedding, head.bias)

    def nats_of(
        self, states: Float[Tensor, "M D"], targets: Int[Tensor, " M"], mask: Bool[Tensor, " M"]
    ) -> Float[Tensor, ""]:
        """-log P of the targets at the places whose states are given, summed where mask is True."""
        head = self._masked_head()
        V = self.vocab_size
        return chunked_cross_entropy(head(states), self.embedding[:V], head.bias[:V], targets, mask)[0]

    def _masked_head(self) -> MaskedHead:
        if self.masked_head is None:
            raise RegardError(
                "This model has no head that fills masked places (model.has_masked_head), only the layers below it. "
                "Train one on text, or take its vectors: regard embed."
            )
        return self.masked_head

    @property
    def n_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def flops(self, n_tokens: int) -> int:
        """Forward cost of `encode` for a text of so many tokens; nothing is predicted."""
        return n_tokens * sum(block.flops_per_token(n_tokens, is_causal=False) for block in self.layers)

    def flops_per_token(self, n_context: int) -> int:
        """Forward cost of `encode` for each token of a text of so many."""
        return self.flops(n_context) // n_context

    def flops_per_row(self, n_context: int, n_masked: int) -> int:
        """Forward cost of a row of `n_context` tokens, of which `n_masked` are predicted."""
        D = self.d_model
        head = n_masked * 2 * D * (D + self.vocab_size) if self.masked_head is not None else 0
        next_sentence = 2 * D * (D + 2) if self.next_head is not None else 0
        return self.flops(n_context) + head + next_sentence


def bert(config: BertConfig, vocab_size: int) -> Bert:
    """BERT of a size, with fresh weights."""
    if config.n_rows is not None and config.n_rows < vocab_size:
        raise RegardError(
            f"model.n_rows is {config.n_rows}, and the tokenizer has {vocab_size} tokens: each needs a row. "
            f"Leave n_rows out, or set it to {vocab_size} or more."
        )
    return Bert(config, vocab_size)
