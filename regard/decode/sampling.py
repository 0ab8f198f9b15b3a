"""Filters on the log-probabilities of the next token; what a filter takes out becomes -inf."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from regard.decode.config import SamplingConfig

LogProbs = Float[Tensor, "B V"]


def sharpen(log_probs: LogProbs, temperature: float) -> LogProbs:
    """Divide log p by the temperature τ, and normalise it again: log p^(1/τ)."""
    below = (log_probs - log_probs.amax(dim=-1, keepdim=True)).double()  # the best is 0: no τ can make it overflow
    return (below / temperature).log_softmax(dim=-1).to(log_probs.dtype)  # a τ of 1e-60 is 0 in float32, and 0/0 NaN


def top_k(log_probs: LogProbs, k: int) -> LogProbs:
    """Keep the k most probable tokens (Fan et al. 2018), and any that tie with the last of them."""
    smallest_kept = log_probs.topk(min(k, log_probs.shape[-1]), dim=-1).values[:, -1:]
    return log_probs.masked_fill(log_probs < smallest_kept, -math.inf)


def top_p(log_probs: LogProbs, p: float) -> LogProbs:
    """Keep the nucleus: the fewest most probable tokens that together hold at least p (Holtzman et al. 2020)."""
    ordered, index = log_probs.sort(dim=-1, descending=True)
    probs = ordered.exp()
    is_out = probs.cumsum(dim=-1) - probs >= p  # those before it already hold p
    is_out[:, 0] = False
    return log_probs.masked_fill(is_out.scatter(-1, index, is_out), -math.inf)


def min_p(log_probs: LogProbs, p: float) -> LogProbs:
    """Keep tokens with at least p times the highest probability (Nguyen et al. 2024)."""
    if p == 0:
        return log_probs
    return log_probs.masked_fill(log_probs < log_probs.amax(dim=-1, keepdim=True) + math.log(p), -math.inf)


def filter_log_probs(log_probs: LogProbs, config: SamplingConfig) -> LogProbs:
    """Make what is sampled from: the temperature, then every filter on the distribution that the one before left."""
    log_probs = sharpen(log_probs, config.temperature)
    if config.top_k is not None:
        log_probs = top_k(log_probs, config.top_k).log_softmax(dim=-1)
    if config.top_p is not None:
        log_probs = top_p(log_probs, config.top_p).log_softmax(dim=-1)
    if config.min_p is not None:
        log_probs = min_p(log_probs, config.min_p).log_softmax(dim=-1)
    return log_probs


def pick(log_probs: LogProbs, uniform: Float[Tensor, " B"]) -> Tensor:
    """Take the token at which the cumulated probability passes `uniform`, a number in [0, 1) for each row: (B,).

    One number a row, so that what a row draws never depends on the rows beside it.
    """
    cumulated = log_probs.double().exp().cumsum(dim=-1)  # (B, V)
    total = cumulated[:, -1:]  # rounding may leave it just off 1
    aim = torch.minimum(uniform.to(total.device)[:, None] * total, total.nextafter(torch.zeros_like(total)))
    return torch.searchsorted(cumulated, aim, right=True).squeeze(-1)
