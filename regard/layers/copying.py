"""The copy distribution: attention weights on positions, read as probabilities of the words that stand there.

    c(w) = Σ_{i: x_i = w} a_i

(Vinyals et al. 2015; Gülçehre et al. 2016; Merity et al. 2016). It needs no vocabulary: any word of the context can be
copied, known or not. `words` holds x_i for each of the M positions that a step may copy from, -1 where there is none.
Beside a vocabulary of V words it makes a mixture (See et al. 2017)

    P(w) = g p(w) + c(w),   p = softmax(W h + b),   g + Σ_i a_i = 1
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from regard.kernels.cross_entropy import chunked_log_probs
from regard.kernels.device import at_least_float32
from regard.layers.taps import Taps

UNK = 1
"""What a word outside the vocabulary is read as: <unk> of the word tokenizers."""


class Pointed(NamedTuple):
    """What the probabilities of every position are made of."""

    h: Float[Tensor, "B T D"]
    """What the head reads."""
    log_g: Float[Tensor, "B T"]
    """The vocabulary's share."""
    log_a: Float[Tensor, "B T M"]
    """The share of each of the M positions that can be copied from."""
    words: Int[Tensor, "B T M"]
    """The word that each of these stands for; -1: no position."""


def keep_shares(
    log_g: Float[Tensor, "B T"], log_a: Float[Tensor, "B T M"], taps: Taps
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T M"]]:
    """Keep g as `gates.vocabulary` (B, T, 1); where it is replaced, what is copied shares what is left.

    >>> taps = Taps(replace={"gates.vocabulary": 0.4})
    >>> log_g, log_a = keep_shares(torch.tensor([[0.8]]).log(), torch.tensor([[[0.15, 0.05]]]).log(), taps)
    >>> round(float(log_g.exp()), 4), [round(x, 4) for x in log_a.exp().flatten().tolist()]
    (0.4, [0.45, 0.15])
    """
    g = taps.keep("gates.vocabulary", log_g.exp()[..., None])  # (B, T, 1)
    if not taps.replaces("gates.vocabulary"):
        return log_g, log_a
    tiny = torch.finfo(g.dtype).tiny
    before = (1 - log_g.exp()).clamp_min(tiny).log()
    return g[..., 0].clamp_min(tiny).log(), log_a + ((1 - g).clamp_min(tiny).log() - before[..., None])


def keep_mixture(
    h: Pointed,
    W: Float[Tensor, "V D"],
    b: Float[Tensor, " V"] | None,
    log_probs: Float[Tensor, "B T R"],
    taps: Taps,
) -> None:
    """Keep p, c and P = g p + c of every word, those beyond the vocabulary too, as `probabilities`."""
    inner, n_words = taps.scope("probabilities"), log_probs.shape[-1]
    p = at_least_float32(functional.linear(h.h, W, b)).softmax(dim=-1)
    inner.keep("vocabulary", functional.pad(p, (0, n_words - len(W))))
    inner.keep("copied", copy_probs(h.log_a, h.words, n_words))
    inner.keep("mixed", log_probs.exp())


def log_copy_prob(
    log_a: Float[Tensor, "B T M"], words: Int[Tensor, "B T M"], targets: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """log c(y) of one word a step; as low as the type can say where the word is nowhere in the context."""
    lowest = torch.finfo(log_a.dtype).min  # and not -inf, whose gradient would be NaN
    return log_a.masked_fill(words != targets[..., None], lowest).logsumexp(dim=-1)


def copy_probs(log_a: Float[Tensor, "B T M"], words: Int[Tensor, "B T M"], vocab_size: int) -> Float[Tensor, "B T V"]:
    """c(w) of every word: (B, T, V), so for looking and decoding only."""
    nowhere = log_a.new_zeros(*log_a.shape[:2], vocab_size)
    return nowhere.scatter_add(2, words.clamp_min(0), log_a.exp() * (words >= 0))


def log_mixture(
    log_vocabulary: Float[Tensor, "B T V"], log_a: Float[Tensor, "B T M"], words: Int[Tensor, "B T M"]
) -> Float[Tensor, "B T V"]:
    """log(e^log_vocabulary + c), word by word."""
    c = copy_probs(log_a, words, log_vocabulary.shape[-1])
    is_copied = c > 0
    both = torch.logaddexp(log_vocabulary, c.where(is_copied, 1.0).log())  # log 0 has no gradient to speak of
    return both.where(is_copied, log_vocabulary)


def mixture_nats(
    h: Pointed,
    W: Float[Tensor, "V D"],
    b: Float[Tensor, " V"] | None,
    targets: Int[Tensor, "B T"],
    chunk: int | None = None,
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
    """-log P of every target; and -log p of it, or of <unk> where it is in no vocabulary.

    A target outside the vocabulary that cannot be copied either counts as <unk>, which is how it would be read. Logits
    are computed `chunk` tokens at a time and never held together.
    """
    V = len(W)
    can_be_copied = (h.words == targets[..., None]).any(dim=-1)
    targets = targets.where((targets < V) | can_be_copied, UNK)
    from_words = log_copy_prob(h.log_a, h.words, targets)
    rows, answers = h.h.reshape(-1, h.h.shape[-1]), targets.where(targets < V, UNK).reshape(-1)
    log_p = chunked_log_probs(rows, W, b, answers, chunk).view(targets.shape)
    lowest = torch.finfo(from_words.dtype).min
    return -torch.logaddexp((h.log_g + log_p).masked_fill(targets >= V, lowest), from_words), -log_p


def mixture_log_probs(
    h: Pointed, W: Float[Tensor, "V D"], b: Float[Tensor, " V"] | None, n_words: int
) -> Float[Tensor, "B T R"]:
    """log P of every word of the vocabulary and of those beyond it: `n_words` together."""
    log_p = at_least_float32(functional.linear(h.h, W, b)).log_softmax(dim=-1)  # (B, T, V)
    log_p = functional.pad(log_p, (0, n_words - len(W)), value=-torch.inf)  # (B, T, n_words)
    return log_mixture((h.log_g[..., None] + log_p).to(h.log_a.dtype), h.log_a, h.words)
