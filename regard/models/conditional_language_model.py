"""The conditional language model: the next word of a target, given the words before it and a source."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import RegardError
from regard.kernels.cross_entropy import chunked_cross_entropy, nats_each
from regard.kernels.device import at_least_float32
from regard.kernels.linear import linear
from regard.layers.copying import UNK, Pointed, keep_mixture, keep_shares, mixture_log_probs, mixture_nats
from regard.layers.label_smoothing import above_mean_logit
from regard.layers.taps import Taps, keep
from regard.mixers.mixer import Decoder, State
from regard.models.source import Source

Hidden = Float[Tensor, "B T D"] | Pointed
"""What the probabilities of every position are made of."""


class ConditionalLanguageModel(nn.Module):
    """P(y_t | y_1 ... y_{t-1}, source) = softmax(W h_t + b),  h = decoder(E <eos>, E y_1, ..., source).

    With copying (pointer-generator, See et al. 2017)

        P(w) = g p(w) + (1-g) Σ_{i: words_i = w} a_i,   g = σ(u·h_t + β)

    where a are the decoder's weights on the source and p is the softmax above. Words are told apart by their ids, and a
    word of the source need not be in the vocabulary to be copied: ids from V on are read as <unk> and copied as
    themselves. A target outside the vocabulary that is not in the source either counts as <unk>. A position that stands
    for no word, such as a tag, cannot be copied: what looks there counts for the vocabulary, whose share is then
    g + (1-g) Σ_{i: no word} a_i. The paper's gate also reads the step's input and its context; here these are heard
    through h_t.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        decoder: Decoder,
        *,
        p_dropout: float = 0.0,
        is_tied: bool = True,
        has_bias: bool = True,
        std: float,
        copies: bool = False,
    ) -> None:
        """`p_dropout` is that of the embedded words; `std` the spread of the embeddings at the start."""
        super().__init__()
        self.vocab_size, self.d_model = vocab_size, d_model
        self.embedding = nn.Parameter(torch.empty(vocab_size, d_model))  # E
        self.decoder = decoder
        self.head = None if is_tied else nn.Parameter(torch.empty(vocab_size, d_model))  # W
        self.bias = nn.Parameter(torch.zeros(vocab_size)) if has_bias else None  # b
        self.gate = nn.Linear(d_model, 1) if copies else None  # u, β
        self.dropout = nn.Dropout(p_dropout)
        nn.init.normal_(self.embedding, std=std)
        if self.head is not None:
            nn.init.normal_(self.head, std=d_model**-0.5)

    @property
    def max_context(self) -> int | None:
        return self.decoder.max_context

    @property
    def output_weight(self) -> Float[Tensor, "V D"]:
        return self.embedding if self.head is None else self.head

    def start(self, source: Source, capacity: int) -> State:
        """The decoder before its first token, with room for `capacity` tokens; the source is looked through once."""
        if self.max_context is not None and capacity > self.max_context:
            raise RegardError(
                f"A target of up to {capacity} tokens was asked for, and the model writes at most {self.max_context}. "
                f"Ask for less, or train one with max_context {capacity}."
            )
        return self.decoder.start(source.states, source.mask, source.start, capacity)

    def hidden(
        self,
        inputs: Int[Tensor, "B T"],
        source: Source,
        state: State | None = None,
        taps: Taps | None = None,
    ) -> tuple[Hidden, State | None]:
        """What every position's probabilities are made of; and the state after the last, where one was given.

        Without a `state` the inputs are whole targets, from their first token on.
        """
        is_whole = state is None
        if state is None:
            check_length(inputs.shape[1], self.max_context, "target")
            state = self.decoder.start(source.states, source.mask, source.start, None)
        x = self.dropout(functional.embedding(inputs.where(inputs < self.vocab_size, UNK), self.embedding))
        h, a, state = self.decoder(keep(taps, "embedding", x), state, taps)
        h = keep(taps, "hidden", h)
        after = None if is_whole else state
        return (h if self.gate is None else self._point(h, a, source, self.gate, taps)), after

    def _point(self, h: Tensor, a: Tensor | None, source: Source, gate: nn.Linear, taps: Taps | None) -> Pointed:
        if source.words is None:
            raise RegardError(
                "The model copies words and was given a source without them. Encode the source with its words as ids "
                "of the target's extended vocabulary, or train a model with copies false."
            )
        assert a is not None, "a decoder that copies gives its weights"
        a = at_least_float32(a)
        odds = gate(h).squeeze(-1).to(a.dtype)  # (B, T)
        log_g, log_rest = functional.logsigmoid(odds), functional.logsigmoid(-odds)
        is_word, tiny = source.words >= 0, torch.finfo(a.dtype).tiny  # (B, S)
        elsewhere = a.masked_fill(is_word[:, None], 0.0).sum(dim=-1)  # (B, T)
        log_g = torch.logaddexp(log_g, log_rest + elsewhere.clamp_min(tiny).log())
        log_g = log_g.where(is_word.any(dim=-1, keepdim=True), 0.0)  # where there are no words nothing is copied
        log_a = log_rest[..., None] + a.clamp_min(tiny).log()
        if taps is not None:
            log_g, log_a = keep_shares(log_g, log_a, taps)
        return Pointed(h, log_g, log_a, source.words[:, None].expand(log_a.shape))

    def forward(self, inputs: Int[Tensor, "B T"], source: Source, taps: Taps | None = None) -> Float[Tensor, "B T W"]:
        """log P of every word at every position: for looking, since (B, T, V) numbers are many."""
        return self.log_probs_of_all(self.hidden(inputs, source, None, taps)[0], taps)

    def log_probs_of_all(self, h: Hidden, taps: Taps | None = None) -> Float[Tensor, "B T W"]:
        """log P of every word at every position of what `hidden` gave."""
        log_probs = self._log_probs(h)
        if taps is not None and isinstance(h, Pointed):
            keep_mixture(h, self.output_weight, self.bias, log_probs, taps)
        return keep(taps, "logits", log_probs)

    def goal_of(
        self, h: Hidden, targets: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], smoothing: float = 0.0
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """What training makes small, and the nats that are in it, each summed over the real tokens (mask True).

        With `smoothing` ε: (1-ε) (-log P(y)) + ε mean over the vocabulary of -log p (regard/layers/label_smoothing.py).
        The nats come with it at no cost.
        """
        W, b = self.output_weight, self.bias
        if isinstance(h, Pointed):
            nats, of_vocabulary = mixture_nats(h, W, b, targets)
            goal = nats
            if smoothing:
                rows, answers = h.h.reshape(-1, self.d_model), self._in_vocabulary(targets).reshape(-1)
                uniform = of_vocabulary + above_mean_logit(rows, W, b, answers).view(targets.shape)
                goal = (1 - smoothing) * nats + smoothing * uniform
            return goal.where(mask, 0.0).sum(), nats.where(mask, 0.0).sum()
        rows, answers = h.reshape(-1, self.d_model), self._in_vocabulary(targets).reshape(-1)
        is_real = mask.reshape(-1)
        if rows.device.type == "cpu":  # padding costs as much as words do; a GPU would have to wait to know how many
            rows, answers, is_real = rows[is_real], answers[is_real], is_real[is_real]
        nats, _ = chunked_cross_entropy(rows, W, b, answers, is_real)
        if not smoothing:
            return nats, nats
        return nats + smoothing * above_mean_logit(rows, W, b, answers).where(is_real, 0.0).sum(), nats

    def nats_each(self, h: Hidden, targets: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """-log P of every target; few logits are held at a time. For scoring."""
        if isinstance(h, Pointed):
            return mixture_nats(h, self.output_weight, self.bias, targets)[0]
        return nats_each(h, self.output_weight, self.bias, self._in_vocabulary(targets))

    def log_probs(
        self, h: Hidden, n_words: int | None = None, weight: Float[Tensor, "V D"] | None = None
    ) -> Float[Tensor, "B W"]:
        """log P of every next word after ONE position; W = V, or V and the words copied beyond it.

        `n_words` is W where it is known: to find it out a GPU has to be waited for. `weight` is the output matrix, in
        another layout if need be.
        """
        return self._log_probs(h, n_words, weight)[:, 0]

    def _log_probs(
        self, h: Hidden, n_words: int | None = None, weight: Float[Tensor, "V D"] | None = None
    ) -> Float[Tensor, "B T W"]:
        W, b = self.output_weight, self.bias
        if not isinstance(h, Pointed):
            return at_least_float32(linear(h, W if weight is None else weight, b)).log_softmax(dim=-1)
        return mixture_log_probs(h, W, b, self.n_words(h.words) if n_words is None else n_words)

    def n_words(self, words: Int[Tensor, "*batch S"] | None) -> int:
        """How many words have a probability: the vocabulary and those of the source beyond it."""
        if self.gate is None or words is None or words.numel() == 0:
            return self.vocab_size
        return max(self.vocab_size, int(words.max()) + 1)

    def _in_vocabulary(self, targets: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
        return targets.where(targets < self.vocab_size, UNK)

    def flops(self, n_source: int, n_target: int) -> int:
        """Forward cost of a target, twice the multiply-adds; copying itself multiplies nothing."""
        gate = 0 if self.gate is None else 2 * self.d_model
        return self.decoder.flops(n_source, n_target) + n_target * (2 * self.d_model * self.vocab_size + gate)


def check_length(n: int, limit: int | None, side: str) -> None:
    if limit is not None and n > limit:
        raise RegardError(
            f"The model was given a {side} of {n} tokens and reads at most {limit}. Leave out what is longer, or train "
            f"one with max_context {n}."
        )
