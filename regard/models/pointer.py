"""A recurrent language model that can also copy words from its past."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.kernels.cross_entropy import chunked_log_probs
from regard.layers.copy_attention import CopyAttention
from regard.layers.copying import log_copied, log_mixed
from regard.layers.past_attention import off_band, past_windows
from regard.layers.taps import Taps
from regard.mixers.mixer import Mixer
from regard.models.language_model import LanguageModel, at_least_float32, read_by_head

UNK = 1
"""What a word outside the model's vocabulary is read as: <unk> of the word tokenizers."""

LanguageModelAndMemory = tuple[Any, Float[Tensor, "B M D"], Int[Tensor, "B M"]]
"""The language model's state; the last M states, oldest first; the word read at each of these, -1: none yet."""


class Pointed(NamedTuple):
    """What the probabilities of every position are made of."""

    h: Float[Tensor, "B T D"]
    """What the head reads."""
    log_g: Float[Tensor, "B T"]
    """The vocabulary's share."""
    log_a: Float[Tensor, "B T M"]
    """The share of each of the M positions before."""
    words: Int[Tensor, "B T M"]
    """The word that each of these stands for; -1: no position."""


class PointerModel(nn.Module):
    """P(w) = g p(w) + Σ_{i: x_i = w} a_i,   p = softmax(W h + b) over the first n_vocab words

    for g and a see CopyAttention. With copies = "word", state i stands for x_i, the word it has just read (Merity et
    al. 2016, where the last word read can be copied too: here it never can, since a step looks at the M states before
    its own); with "next" for x_{i+1}, the word that followed: what came after a state like this one (Grave et al.
    2017).

    Words are told apart by their ids alone, so a word need not be in the vocabulary to be copied. Every id from n_vocab
    on is read as <unk> and copied as itself: the distribution is over n_vocab words and the words in memory, and sums
    to one. A target outside the vocabulary that is not in memory either counts as <unk>, which is how it would be read.
    """

    def __init__(self, language_model: LanguageModel, copy: CopyAttention, vocab_size: int, copies: str) -> None:
        """`vocab_size` is the tokenizer's; the language model may know fewer words, the first n_vocab of them."""
        super().__init__()
        self.language_model, self.copy = language_model, copy
        self.vocab_size, self.n_vocab = vocab_size, language_model.vocab_size
        self.d_model, self.copies = language_model.d_model, copies
        # The head reads states with dropout, the copying those without: WikiText-2's words, small, 99.6 against 101.4.
        self.output_dropout, language_model.output_dropout = language_model.output_dropout, nn.Identity()

    def hidden(
        self, ids: Int[Tensor, "B T"], state: LanguageModelAndMemory | None = None, taps: Taps | None = None
    ) -> tuple[Pointed, LanguageModelAndMemory]:
        """What every position's probabilities are made of, and the state after the last."""
        T, M = ids.shape[1], self.copy.max_memory
        is_start = state is None
        before, memory, words = self.start(len(ids), T) if state is None else state
        found, after = self.language_model.hidden(ids.where(ids < self.n_vocab, UNK), before, taps)
        h = read_by_head(found)
        keys = torch.cat([memory.to(h.dtype), h], dim=1)  # (B, M+T, D)
        words = torch.cat([words, ids], dim=1)  # (B, M+T)
        is_there = past_windows(words >= 0, M)  # (B, T, M)
        shares = self.copy(h, keys, is_there)
        copied = past_windows(words, M) if self.copies == "word" else words.unfold(1, M, 1)[:, 1:]
        copied = copied.where(is_there, -1)  # the word after a state that is not there is no copy
        if taps is not None:
            n_layers = sum(name.startswith("layers.") and name.endswith(".hidden") for name in taps)
            scope = taps.scope(f"layers.{n_layers}")
            scope.keep("attention", off_band(shares.log_a.exp())[:, None, :, M if is_start else 0 :])  # (B, 1, T, S)
            scope.keep("gates.vocabulary", shares.log_g.exp()[..., None])  # (B, T, 1)
        return Pointed(self.output_dropout(h), shares.log_g, shares.log_a, copied), (after, keys[:, T:], words[:, T:])

    def forward(
        self, ids: Int[Tensor, "B T"], state: LanguageModelAndMemory | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T W"], LanguageModelAndMemory]:
        """log P of every word of the vocabulary, and of those beyond it that are in memory."""
        pointed, state = self.hidden(ids, state, taps)
        log_probs = self._log_mixture(pointed, self.output_weight)
        if taps is not None:
            taps.keep("logits", log_probs)
        return log_probs, state

    def loss(
        self,
        ids: Int[Tensor, "B T"],
        targets: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        state: LanguageModelAndMemory | None = None,
        chunk: int | None = None,
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""], LanguageModelAndMemory]:
        """Nats summed over the real tokens (mask True), how many these are, and the state after the last."""
        h, state = self.hidden(ids, state)
        return *self.nats_of(h, targets, mask, chunk), state

    def nats_of(
        self, h: Pointed, targets: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], chunk: int | None = None
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """The loss of what `hidden` gave. Logits are computed `chunk` tokens at a time and never held together."""
        return self.nats_each(h, targets, chunk).where(mask, 0.0).sum(), mask.sum()

    def nats_each(self, h: Pointed, targets: Int[Tensor, "B T"], chunk: int | None = None) -> Float[Tensor, "B T"]:
        """-log(g p(y) + Σ_{i: x_i = y} a_i) of every target."""
        is_outside = targets >= self.n_vocab
        is_in_memory = (h.words == targets[..., None]).any(dim=-1)
        targets = targets.where(~is_outside | is_in_memory, UNK)
        from_memory = log_copied(h.log_a, h.words, targets)
        rows, answers = (
            h.h.reshape(-1, self.d_model),
            targets.where(targets < self.n_vocab, UNK).reshape(-1),
        )
        weight, bias = self.output_weight, self.language_model.bias
        from_vocabulary = h.log_g + chunked_log_probs(rows, weight, bias, answers, chunk).view(targets.shape)
        lowest = torch.finfo(from_memory.dtype).min
        return -torch.logaddexp(from_vocabulary.masked_fill(targets >= self.n_vocab, lowest), from_memory)

    def log_probs(self, h: Pointed, weight: Float[Tensor, "V D"] | None = None) -> Float[Tensor, "B W"]:
        """log P of every next word after one position; W is the vocabulary and the words beyond it in memory."""
        return self._log_mixture(h, self.output_weight if weight is None else weight)[:, 0]

    def _log_mixture(self, h: Pointed, weight: Float[Tensor, "V D"]) -> Float[Tensor, "B T W"]:
        logits = functional.linear(h.h, weight, self.language_model.bias)
        log_p = at_least_float32(logits).log_softmax(dim=-1)  # (B, T, V)
        n_words = max(self.vocab_size, int(h.words.max()) + 1)
        log_p = functional.pad(log_p, (0, n_words - self.n_vocab), value=-torch.inf)  # (B, T, W)
        return log_mixed((h.log_g[..., None] + log_p).to(h.log_a.dtype), h.log_a, h.words)

    def penalty_of(self, h: Pointed, mask: Bool[Tensor, "B T"]) -> Float[Tensor, ""] | None:
        """What is added to the summed nats while training and is no part of any score; None: nothing."""
        return None

    def start(self, B: int, capacity: int) -> LanguageModelAndMemory:
        """The state before the first token of B texts."""
        M = self.copy.max_memory
        memory = self.embedding.new_zeros(B, M, self.d_model)
        words = torch.full((B, M), -1, dtype=torch.int64, device=memory.device)
        return self.language_model.start(B, capacity), memory, words

    @property
    def mixer(self) -> Mixer:
        return self.language_model.mixer

    @property
    def embedding(self) -> Float[Tensor, "V D"]:
        return self.language_model.embedding

    @property
    def output_weight(self) -> Float[Tensor, "V D"]:
        return self.language_model.output_weight

    @property
    def n_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def flops_per_token(self, n_context: int) -> int:
        """Forward cost of a token, twice the multiply-adds; copying itself multiplies nothing."""
        return self.language_model.flops_per_token(n_context) + self.copy.flops_per_token(n_context)
