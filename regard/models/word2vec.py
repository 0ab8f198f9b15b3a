"""word2vec: vectors that predict which words stand near each other (Mikolov et al. 2013).

    skip-gram   loss = - Σ_t Σ_{c near t} [ log σ(v_t · u_c) + k E_n log σ(-v_t · u_n) ]
    CBOW        loss = - Σ_t [ log σ(h_t · u_t) + k E_n log σ(-h_t · u_n) ],   h_t = mean of v_c, c near t

v are the vectors, u the weights of the words as predictions, n words drawn with P(n) ∝ count^0.75. The expectation is
taken over N words that the words of a block share; each then weighs k/N. The papers' programs draw k words for every
pair and leave out those that are the context itself. CBOW departs from its own gradient as they do: each context moves
as far as the mean should, not that divided by their number.

With subwords (Bojanowski et al. 2017), v_t is the mean of the word's own row and those of its character n-grams, and
each of these rows moves as far as v_t should.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from regard.kernels.word2vec import cbow_gradients, mark_contexts, skipgram_gradients
from regard.models.subwords import SubwordIndex
from regard.models.word_vectors_config import Word2VecConfig

BLOCK, SHARED = 32, 16
"""Words of a block, at least, and half as many words drawn at random for it: L and N."""
MAX_REPEATS = 4.0
"""A row that an update holds more often moves as if it held it so often: its steps are all taken from one place."""
MAX_CROWD = 2.0
"""An update holds so many words that one of them meets itself about so often in it: more made training diverge."""
FINAL_RATE = 0.004
"""The learning rate falls in proportion to what is left of the budget, to this part of itself."""


@dataclass
class Word2Vec:
    """Rows that are learned: `words` and `subwords` make the vectors v, `outputs` are u. Ids 0 and 1 are no words."""

    words: Float[Tensor, "V D"]
    outputs: Float[Tensor, "V D"]
    subwords: Float[Tensor, "K D"] | None = None

    @classmethod
    def create(cls, config: Word2VecConfig, vocab_size: int, seed: int) -> Word2Vec:
        """Vectors of random numbers within ±1/2D; outputs are zero."""
        random, D = torch.Generator().manual_seed(seed), config.d_model
        words = (torch.rand(vocab_size, D, generator=random) - 0.5) / D
        words[:2] = 0.0
        subwords = (torch.rand(config.n_buckets, D, generator=random) - 0.5) / D if config.has_subwords else None
        return cls(words, torch.zeros(vocab_size, D), subwords)

    def tensors(self) -> dict[str, Tensor]:
        named = {"words": self.words, "outputs": self.outputs, "subwords": self.subwords}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def to(self, device: torch.device) -> Word2Vec:
        return Word2Vec(**{name: tensor.to(device) for name, tensor in self.tensors().items()})


def block_length(window: int) -> int:
    return max(BLOCK, 2 * window)


@dataclass(frozen=True)
class Chunk:
    """What one update learns from: B blocks of L words, each with the w words before and after it; 0 is no word."""

    ids: Int[Tensor, "B M"]
    is_context: Bool[Tensor, "B L M"]
    negatives: Int[Tensor, "B N"]

    @property
    def centres(self) -> Int[Tensor, "B L"]:
        L, M = self.is_context.shape[1:]
        window = (M - L) // 2
        return self.ids[:, window : window + L]


@dataclass(frozen=True)
class Stretch:
    """Some text as updates, and the factors by which steps of rows that it holds often are made smaller."""

    chunks: tuple[Chunk, ...]
    damp_vectors: Float[Tensor, "V 1"]
    damp_outputs: Float[Tensor, "V 1"]


class WordSampler:
    """Which words are kept, where their contexts are, and which others are drawn: all that is random."""

    def __init__(self, config: Word2VecConfig, counts: NDArray[np.int64], device: torch.device) -> None:
        """`counts` are those of the training text by id; <eos> and <unk>, ids 0 and 1, are no words."""
        self.config, self.device = config, device
        counted = torch.from_numpy(counts.astype(np.float64))
        counted[:2] = 0
        self.keep = keep_probabilities(counted, config.subsample).to(device)
        drawn = torch.where(counted > 0, counted.clamp(min=1) ** config.smoothing, 0.0)
        self.drawn_share = (drawn / drawn.sum()).to(device)
        self._cumulative = self.drawn_share.cumsum(0)

    def sample(self, ids: NDArray[np.integer], segments: NDArray[np.integer] | None, seed: int) -> Stretch:
        """A stretch of text as updates, its blocks in random order; random numbers follow from `seed`."""
        config, device = self.config, self.device
        random = torch.Generator(device).manual_seed(seed)
        given = torch.from_numpy(np.asarray(ids, dtype=np.int64)).to(device)
        is_kept = torch.rand(len(given), generator=random, device=device) < self.keep[given]
        kept = given[is_kept]
        L, w = block_length(config.window), config.window
        share = torch.bincount(kept, minlength=len(self.keep)) / max(1, len(kept))
        # Words of an update are learned from one place: it holds fewer where the same words come again and again.
        n_update = min(config.n_update, int(MAX_CROWD / max(float((share * share).sum()), 1e-12)))
        B, n_blocks = max(1, n_update // L), -(-len(kept) // L)
        placed = torch.zeros((n_blocks + 1) * L + 2 * w, dtype=torch.int64, device=device)
        parts = torch.full_like(placed, -1)
        placed[w : w + len(kept)] = kept
        parts[w : w + len(kept)] = 0 if segments is None else torch.from_numpy(segments).to(device)[is_kept]
        reach = torch.randint(1, w + 1, (n_blocks * L,), generator=random, device=device)
        reach[len(kept) :] = 0
        order = torch.randperm(n_blocks, generator=random, device=device)
        blocks, around = (overlap(row, n_blocks, L, w)[order] for row in (placed, parts))  # (n_blocks, M)
        is_context = mark_contexts(reach.view(-1, L)[order], around)
        chance = torch.rand(n_blocks, max(SHARED, L // 2), generator=random, device=device, dtype=torch.float64)
        negatives = torch.searchsorted(self._cumulative, chance).clamp_(max=len(self.keep) - 1)
        split = zip(*(torch.split(each, B) for each in (blocks, is_context, negatives)), strict=True)
        k = config.n_negative
        as_output = (share + k * self.drawn_share.to(share)) / (1 + k)
        damped = ((MAX_REPEATS / (B * L * s).clamp(min=1e-9)).clamp(max=1.0)[:, None] for s in (share, as_output))
        return Stretch(tuple(Chunk(*each) for each in split), *damped)


def overlap(row: Int[Tensor, P], n_blocks: int, L: int, window: int) -> Int[Tensor, "B M"]:
    """Blocks of L + 2w places that overlap by 2w."""
    return row.as_strided((n_blocks, L + 2 * window), (L, 1))


def keep_probabilities(counts: Float[Tensor, V], subsample: float) -> Float[Tensor, V]:
    """P(keep) = min(1, (√(f/t) + 1) t/f), f the word's share of the text and t = `subsample`, as in word2vec.c."""
    share = counts / counts.sum()
    if not subsample:
        return (share > 0).to(torch.float32)
    kept = ((share / subsample).sqrt() + 1) * subsample / share.clamp(min=1e-300)
    return torch.where(share > 0, kept.clamp(max=1.0), 0.0).to(torch.float32)


class Updater:
    """Moves the rows of a model by the gradient of one chunk after the other."""

    def __init__(self, model: Word2Vec, config: Word2VecConfig, is_cbow: bool, index: SubwordIndex | None) -> None:
        self.model, self.config, self.is_cbow = model, config, is_cbow
        self.index = None if index is None else index.to(model.words.device)

    def update(self, chunk: Chunk, stretch: Stretch, lr: float) -> None:
        """Move every row that the chunk holds by `lr` times its part of the gradient."""
        k, negatives = self.config.n_negative, self._outputs(chunk.negatives)
        if self.is_cbow:
            centres, contexts = self._outputs(chunk.centres), self._vectors(chunk.ids)
            found = cbow_gradients(centres, contexts, negatives, chunk.is_context, k)
            self._add_outputs(chunk.centres, found.centres, stretch, lr)
            self._add_vectors(chunk.ids, found.contexts, stretch, lr)
        else:
            centres, contexts = self._vectors(chunk.centres), self._outputs(chunk.ids)
            found = skipgram_gradients(centres, contexts, negatives, chunk.is_context, k)
            self._add_vectors(chunk.centres, found.centres, stretch, lr)
            self._add_outputs(chunk.ids, found.contexts, stretch, lr)
        self._add_outputs(chunk.negatives, found.negatives, stretch, lr)

    def _outputs(self, ids: Tensor) -> Tensor:
        return self.model.outputs.index_select(0, ids.flatten()).view(*ids.shape, -1)

    def _vectors(self, ids: Tensor) -> Tensor:
        flat = ids.flatten()
        own = self.model.words.index_select(0, flat)
        return (own if self.index is None else self.index.compose(own, self.model.subwords, flat)).view(*ids.shape, -1)

    def _add_outputs(self, ids: Tensor, step: Tensor, stretch: Stretch, lr: float) -> None:
        flat = ids.flatten()
        moved = step.view(len(flat), -1).mul_(stretch.damp_outputs.index_select(0, flat))
        self.model.outputs.index_add_(0, flat, moved, alpha=lr)

    def _add_vectors(self, ids: Tensor, step: Tensor, stretch: Stretch, lr: float) -> None:
        flat = ids.flatten()
        moved = step.view(len(flat), -1).mul_(stretch.damp_vectors.index_select(0, flat))
        self.model.words.index_add_(0, flat, moved, alpha=lr)
        if self.index is not None:
            self.index.add(self.model.subwords, flat, moved, lr)

    def measure(self, chunk: Chunk) -> tuple[float, int]:
        """The loss of a chunk as it is, a sum in nats, and of how many words."""
        loss = word2vec_loss(
            self._vectors(chunk.ids), self._outputs(chunk.ids), self._outputs(chunk.negatives), chunk.is_context,
            self.config.n_negative, self.is_cbow,
        )  # fmt: skip
        return float(loss), int(chunk.is_context.any(dim=2).sum())


def word2vec_loss(
    vectors: Float[Tensor, "B M D"],
    outputs: Float[Tensor, "B M D"],
    negatives: Float[Tensor, "B N D"],
    is_context: Bool[Tensor, "B L M"],
    n_negative: int,
    is_cbow: bool,
) -> Float[Tensor, ""]:
    """The loss at the head of this file, of the words of B blocks that share N negative samples each."""
    L, M = is_context.shape[1:]
    N, logsigmoid = negatives.shape[1], functional.logsigmoid
    inner = slice((M - L) // 2, (M + L) // 2)
    band = is_context.to(vectors.dtype)
    n_contexts = band.sum(dim=2, keepdim=True)
    if is_cbow:
        h = band @ vectors / n_contexts.clamp(min=1)  # (B, L, D)
        counts = (n_contexts > 0).to(h.dtype)
        positive = logsigmoid((h * outputs[:, inner]).sum(dim=2, keepdim=True)) * counts
    else:
        h, counts = vectors[:, inner], n_contexts
        positive = logsigmoid(h @ outputs.transpose(1, 2)) * band  # (B, L, M)
    negative = logsigmoid(-h @ negatives.transpose(1, 2)) * counts * (n_negative / N)  # (B, L, N)
    return -(positive.sum() + negative.sum())
