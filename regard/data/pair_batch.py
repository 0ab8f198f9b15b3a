"""One batch of pairs: ids of different lengths put into rectangles, with masks that say what is real."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.pair_copying import NOT_COPIED, CopiedWords
from regard.data.pair_dropout import Flat, PairDropout, flat
from regard.data.pairs import ANY_LENGTH, MaxLengths, Pairs

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class PairBatch:
    """Row b, column t: predict targets[b, t] from the source and inputs[b, : t + 1]; masks are True where real."""

    source: Ids  # (B, S), padded with 0
    source_mask: Mask  # (B, S)
    inputs: Ids  # (B, T), <eos> y_1 .. y_n, padded with 0
    targets: Ids  # (B, T), y_1 .. y_n <eos>, padded with 0; V + k: the k-th unknown word of its source
    mask: Mask  # (B, T)
    words: Ids | None  # (B, S), the source's words as ids of the extended target vocabulary, -1: nothing to copy


class BatchMaker:
    """Batches from the numbers of their pairs."""

    def __init__(
        self,
        pairs: Pairs,
        *,
        copies: bool,
        p_bpe_dropout: float = 0.0,
        seed: int = 0,
        max_lengths: MaxLengths = ANY_LENGTH,
    ) -> None:
        self._pairs = pairs
        self._copied = CopiedWords(pairs.target.tokenizer, pairs.source.tokenizer) if copies else None
        self._dropout = PairDropout(pairs, p_bpe_dropout, seed, max_lengths) if p_bpe_dropout > 0 else None

    def batch(self, indices: Ids, epoch: int = 0) -> PairBatch:
        if self._dropout is not None:
            source, target = self._dropout.cut(indices, epoch)
        else:
            rows = self._pairs.rows[indices]
            source, target = self._pairs.source.ids.taken(rows), self._pairs.target.ids.taken(rows)
        predicted, words = target, None
        if self._copied is not None:
            copied, predicted = self._with_copied(indices)
            words = padded(copied, NOT_COPIED)[0]
        source_ids, source_mask = padded(source)
        eos, lengths = self._pairs.target.tokenizer.eos, target[1] + 1
        # <eos> stands before what is read and after what is predicted.
        starts = np.cumsum(target[1]) - target[1]
        inputs, mask = padded((np.insert(target[0], starts, eos), lengths))
        targets, _ = padded((np.insert(predicted[0], starts + target[1], eos), lengths))
        return PairBatch(source_ids, source_mask, inputs, targets, mask, words)

    def _with_copied(self, indices: Ids) -> tuple[Flat, Flat]:
        """The words of each source, and the target that names them."""
        assert self._copied is not None
        sources, targets = [], []
        for i in indices.tolist():
            words, unknown = self._copied.of_source(self._pairs.source_text(i))
            has_tag = self._pairs.tag(i) is not None
            sources.append(np.concatenate([[NOT_COPIED], words]) if has_tag else words)
            targets.append(self._copied.of_target(self._pairs.target_text(i), unknown))
        return flat(sources), flat(targets)


def padded(rows: Flat, value: int = 0) -> tuple[Ids, Mask]:
    """Rows of different lengths as one array, and where they are real.

    >>> padded((np.array([5, 6, 7]), np.array([2, 1])))
    (array([[5, 6], [7, 0]]), array([[ True,  True], [ True, False]]))
    """
    values, lengths = rows
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(mask.shape, value, dtype=np.int64)
    ids[mask] = values
    return ids, mask
