"""The copy distribution: attention weights on positions, read as probabilities of the words that stand there.

    c(w) = Σ_{i: x_i = w} a_i

(Vinyals et al. 2015; Gülçehre et al. 2016; Merity et al. 2016). It needs no vocabulary: any word of the context can be
copied, known or not. `words` holds x_i for each of the M positions that a step may copy from, -1 where there is none.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def log_copied(
    log_a: Float[Tensor, "B T M"], words: Int[Tensor, "B T M"], targets: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """log c(y) of one word a step; as low as the type can say where the word is nowhere in the context."""
    lowest = torch.finfo(log_a.dtype).min  # and not -inf, whose gradient would be NaN
    return log_a.masked_fill(words != targets[..., None], lowest).logsumexp(dim=-1)


def copied(log_a: Float[Tensor, "B T M"], words: Int[Tensor, "B T M"], vocab_size: int) -> Float[Tensor, "B T V"]:
    """c(w) of every word: (B, T, V), so for looking and decoding only."""
    nowhere = log_a.new_zeros(*log_a.shape[:2], vocab_size)
    return nowhere.scatter_add(2, words.clamp_min(0), log_a.exp() * (words >= 0))


def log_mixed(
    log_vocabulary: Float[Tensor, "B T V"], log_a: Float[Tensor, "B T M"], words: Int[Tensor, "B T M"]
) -> Float[Tensor, "B T V"]:
    """log(e^log_vocabulary + c), word by word."""
    c = copied(log_a, words, log_vocabulary.shape[-1])
    is_copied = c > 0
    both = torch.logaddexp(log_vocabulary, c.where(is_copied, 1.0).log())  # log 0 has no gradient to speak of
    return both.where(is_copied, log_vocabulary)
