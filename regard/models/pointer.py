"""A recurrent language model that can also copy words from its past."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.layers.copy_attention import CopyAttention
from regard.layers.copying import UNK, Pointed, keep_mixture, keep_shares, mixture_log_probs, mixture_nats
from regard.layers.past_attention import along_band, off_band, past_windows
from regard.layers.taps import Taps, keep
from regard.mixers.mixer import Mixer
from regard.models.language_model import LanguageModel

LanguageModelAndMemory = tuple[Any, Float[Tensor, "B M D"], Int[Tensor, "B M"]]
"""The language model's state; the last M states, oldest first; the word read at each of these, -1: none yet."""


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

    def hidden(
        self, ids: Int[Tensor, "B T"], state: LanguageModelAndMemory | None = None, taps: Taps | None = None
    ) -> tuple[Pointed, LanguageModelAndMemory]:
        """What every position's probabilities are made of, and the state after the last."""
        is_start = state is None
        before, memory, words = self.start(*ids.shape) if state is None else state
        h, after = self.language_model.hidden(ids.where(ids < self.n_vocab, UNK), before, taps)
        found, memory, words = self._look_back(h, ids, memory, words)
        if taps is not None:
            n_layers = sum(name.startswith("layers.") and name.endswith(".hidden") for name in taps)
            inner = taps.scope(f"layers.{n_layers}")
            log_a = self._keep_attention(found.log_a, self.copy.max_memory if is_start else 0, inner)
            log_g, log_a = keep_shares(found.log_g, log_a, inner)
            found = found._replace(log_g=log_g, log_a=log_a)
        return found, (after, memory, words)

    @staticmethod
    def _keep_attention(log_a: Float[Tensor, "B T M"], n_before: int, taps: Taps) -> Float[Tensor, "B T M"]:
        """Keep a as `attention` (B, 1, T, S), without the `n_before` positions of the memory of which none is there."""
        whole = off_band(log_a.exp())  # (B, T, M + T)
        kept = taps.keep("attention", whole[:, None, :, n_before:])
        if not taps.replaces("attention"):
            return log_a
        whole = torch.cat([whole[..., :n_before], kept[:, 0]], dim=-1)
        return along_band(whole, log_a.shape[-1]).clamp_min(torch.finfo(log_a.dtype).tiny).log()

    def _look_back(
        self, h: Float[Tensor, "B T D"], ids: Int[Tensor, "B T"], memory: Float[Tensor, "B M D"], words: Tensor
    ) -> tuple[Pointed, Float[Tensor, "B M D"], Int[Tensor, "B M"]]:
        """What can be copied at every position and how likely, and the memory after the last."""
        T, M = ids.shape[1], self.copy.max_memory
        keys = torch.cat([memory.to(h.dtype), h], dim=1)  # (B, M+T, D)
        words = torch.cat([words, ids], dim=1)  # (B, M+T)
        is_there = past_windows(words >= 0, M)  # (B, T, M)
        shares = self.copy(h, keys, is_there)
        copied = past_windows(words, M) if self.copies == "word" else words.unfold(1, M, 1)[:, 1:]
        copied = copied.where(is_there, -1)  # the word after a state that is not there is no copy
        return Pointed(h, shares.log_g, shares.log_a, copied), keys[:, T:], words[:, T:]

    def step(self, ids: Int[Tensor, "B 1"], state: LanguageModelAndMemory) -> tuple[Pointed, LanguageModelAndMemory]:
        """What `hidden` gives after one more word, with no gradient, over a state that stays where it is."""
        before, memory, words = state
        h, after = self.language_model.step(ids.where(ids < self.n_vocab, UNK), before)
        found, memory, words = self._look_back(h, ids, memory, words)
        return found, (after, memory, words)

    def encode(
        self,
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        taps: Taps | None = None,
    ) -> tuple[Float[Tensor, "B T D"], ...]:
        """The states of the language model at every token; what would be copied has no part in them."""
        return self.language_model.encode(tokens.where(tokens < self.n_vocab, UNK), mask, segments, taps)

    @property
    def n_layers(self) -> int:
        """How many states `encode` gives beyond the embeddings."""
        return self.language_model.n_layers

    @property
    def max_positions(self) -> int | None:
        """The longest text that is read at once; None: any."""
        return self.language_model.max_positions

    def flops(self, n_tokens: int) -> int:
        """Forward cost of `encode` for a text of so many tokens."""
        return self.language_model.flops(n_tokens)

    def forward(
        self, ids: Int[Tensor, "B T"], state: LanguageModelAndMemory | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T W"], LanguageModelAndMemory]:
        """log P of every word of the vocabulary, and of those beyond it that are in memory."""
        h, state = self.hidden(ids, state, taps)
        dropped = self.drop_output(h)
        log_probs = self._log_probs(dropped, self.output_weight)
        if taps is not None:
            keep_mixture(dropped, self.output_weight, self.language_model.bias, log_probs, taps)
        return keep(taps, "logits", log_probs), state

    def drop_output(self, h: Pointed) -> Pointed:
        """Drop from what the head reads; copying has read it whole.

        WikiText-2's words, small, 99.6 against 101.4 where both read it dropped.
        """
        return h._replace(h=self.language_model.output_dropout(h.h))

    def goal_of(
        self, h: Pointed, targets: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """What training makes small, and the nats that are in it: one and the same sum over the real tokens."""
        nats = self.nats_each(self.drop_output(h), targets).where(mask, 0.0).sum()
        return nats, nats

    def nats_each(self, h: Pointed, targets: Int[Tensor, "B T"], chunk: int | None = None) -> Float[Tensor, "B T"]:
        """-log(g p(y) + Σ_{i: x_i = y} a_i) of every target, given what `hidden` gave."""
        return mixture_nats(h, self.output_weight, self.language_model.bias, targets, chunk)[0]

    def log_probs(self, h: Pointed, weight: Float[Tensor, "V D"] | None = None) -> Float[Tensor, "B W"]:
        """log P of every next word after one position; W is the vocabulary and the words beyond it in memory."""
        return self._log_probs(h, self.output_weight if weight is None else weight)[:, 0]

    def step_log_probs(self, h: Pointed, weight: Float[Tensor, "R D"]) -> Float[Tensor, "B V"]:
        """log P of every word of the tokenizer after one position, where no other is in memory."""
        return mixture_log_probs(h, weight[: self.n_vocab], self.language_model.bias, self.vocab_size)[:, 0]

    def step_logits(self, h: Pointed, weight: Float[Tensor, "R D"]) -> Float[Tensor, "B V"]:
        """Scores that order the words of the tokenizer as their probabilities do: log P itself."""
        return self.step_log_probs(h, weight)

    def _log_probs(self, h: Pointed, weight: Float[Tensor, "V D"]) -> Float[Tensor, "B T W"]:
        n_words = max(self.vocab_size, int(h.words.max()) + 1)
        return mixture_log_probs(h, weight, self.language_model.bias, n_words)

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
        return self.language_model.flops_per_token(n_context) + self.copy.flops_per_token()
