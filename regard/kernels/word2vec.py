"""Gradients of word2vec for many words at once, as products of small matrices.

Words are taken in blocks of L that follow each other in the text. The contexts of a block lie in its L words and the w
before and after them, so all scores of a block are one product, (L, D) by (D, L + 2w), of which a band counts; and a
block shares its N negative samples, whose scores are another. The idea of sharing is that of Ji et al. 2016. What is
computed is exactly the gradient of the loss in `regard/models/word2vec.py`; a test holds the two equal.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


class Gradients(NamedTuple):
    """What rows are to move by, per unit of the learning rate: towards a lower loss."""

    centres: Float[Tensor, "B L D"]
    contexts: Float[Tensor, "B M D"]
    negatives: Float[Tensor, "B N D"]


def mark_contexts(reach: Int[Tensor, "B L"], segments: Int[Tensor, "B M"]) -> Bool[Tensor, "B L M"]:
    """Which of the M = L + 2w places around a block are contexts of each of its words.

    `reach` is how far each word looks, at most w; 0: it is none to learn from. A context is of the word's own segment.
    """
    L, M = reach.shape[1], segments.shape[1]
    window = (M - L) // 2
    place, at = torch.arange(M, device=reach.device), torch.arange(L, device=reach.device)
    distance = (place - window - at[:, None]).abs()  # (L, M)
    near = (distance <= reach[:, :, None]) & (distance > 0)
    return near & (segments[:, None, :] == segments[:, window : window + L, None])


def skipgram_gradients(
    centres: Float[Tensor, "B L D"],
    contexts: Float[Tensor, "B M D"],
    negatives: Float[Tensor, "B N D"],
    is_context: Bool[Tensor, "B L M"],
    n_negative: int,
) -> Gradients:
    """Of skip-gram: every word predicts each of its contexts, and not `n_negative` others, weighed k/N a sample."""
    N = negatives.shape[1]
    positive = torch.bmm(centres, contexts.transpose(1, 2)).neg_().sigmoid_().mul_(is_context)  # σ(-v·u), (B, L, M)
    n_contexts = is_context.sum(dim=2, keepdim=True)
    negative = torch.bmm(centres, negatives.transpose(1, 2)).sigmoid_()  # σ(v·u), (B, L, N)
    negative.mul_(n_contexts * (-n_negative / N))
    for_centres = torch.baddbmm(torch.bmm(positive, contexts), negative, negatives)
    for_contexts = torch.bmm(positive.transpose(1, 2), centres)
    return Gradients(for_centres, for_contexts, torch.bmm(negative.transpose(1, 2), centres))


def cbow_gradients(
    centres: Float[Tensor, "B L D"],
    contexts: Float[Tensor, "B M D"],
    negatives: Float[Tensor, "B N D"],
    is_context: Bool[Tensor, "B L M"],
    n_negative: int,
) -> Gradients:
    """Of CBOW: the mean of its contexts predicts each word. As in word2vec.c, a context moves by the mean's step."""
    N = negatives.shape[1]
    band = is_context.to(contexts.dtype)
    n_contexts = band.sum(dim=2, keepdim=True)  # (B, L, 1)
    h = torch.bmm(band, contexts) / n_contexts.clamp(min=1)
    counts = (n_contexts > 0).to(h.dtype)
    positive = (h * centres).sum(dim=2, keepdim=True).neg_().sigmoid_().mul_(counts)  # σ(-h·u), (B, L, 1)
    negative = torch.bmm(h, negatives.transpose(1, 2)).sigmoid_().mul_(counts * (-n_negative / N))  # (B, L, N)
    for_mean = torch.baddbmm(positive * centres, negative, negatives)
    for_contexts = torch.bmm(band.transpose(1, 2), for_mean)
    return Gradients(positive * h, for_contexts, torch.bmm(negative.transpose(1, 2), h))
