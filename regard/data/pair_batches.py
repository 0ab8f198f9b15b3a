"""Batches of pairs as a pure function of one integer, which is the whole position in the data.

A batch holds as many pairs as fit into `max_tokens`, padding included, so pairs of like lengths go together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from regard.data.pair_copying import NOT_COPIED, CopiedWords
from regard.data.pair_dropout import Flat, PairDropout, join_rows
from regard.data.pair_dropout_order import DropoutOrder
from regard.data.pair_order import PlainOrder, cut_batches, fold_order, round_up
from regard.data.pairs import ANY_LENGTH, MaxLengths, Pairs
from regard.errors import RegardError

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


class PairBatches:
    """Batch i of pairs, for any i >= 0, in no particular order of asking.

    The batches of an epoch come in an order of its own. `max_lengths` leaves out pairs with a longer side;
    `n_left_out` says how many. A pair of more than `max_tokens` is an error, or, where `skips_bad`, left out;
    `n_too_large` says how many are. With `p_bpe_dropout`, words are cut anew each epoch, and `max_tokens` counts
    the tokens there would be without it. With `copies`, which needs word tokenizers, `words` is given and targets
    name the words of their source.
    """

    def __init__(
        self,
        pairs: Pairs,
        *,
        max_tokens: int,
        seed: int = 0,
        max_lengths: MaxLengths = ANY_LENGTH,
        p_bpe_dropout: float = 0.0,
        copies: bool = False,
        skips_bad: bool = False,
    ) -> None:
        if copies and p_bpe_dropout > 0:
            raise RegardError(
                f"copies needs word tokenizers and p_bpe_dropout {p_bpe_dropout:g} needs bpe: set one of them to 0 or "
                "false."
            )
        readable = pairs.select_fitting(max_lengths)
        self.n_left_out = len(pairs) - len(readable)
        _refuse_none(pairs, readable, max_lengths)
        self.pairs = _drop_larger(readable, max_tokens, skips_bad)
        self.n_too_large = len(readable) - len(self.pairs)
        self._maker = BatchMaker(self.pairs, copies=copies)
        self._order: PlainOrder | DropoutOrder
        if p_bpe_dropout > 0:
            dropout = PairDropout(self.pairs, p_bpe_dropout, seed, max_lengths)
            self._order = DropoutOrder(self.pairs, dropout, max_tokens, seed)
        else:
            self._order = PlainOrder(self.pairs, max_tokens, seed)
        self.per_epoch = self._order.per_epoch

    def at(self, index: int) -> PairBatch:
        """Batch `index`; the same arguments give the same arrays, whatever was asked before."""
        if isinstance(self._order, DropoutOrder):
            return self._maker.join(*self._order.rows(index))
        return self._maker.batch(self._order.indices(index))

    def indices(self, index: int) -> Ids:
        """Which of `self.pairs` are in batch `index`."""
        return self._order.indices(index)

    def shape(self, index: int) -> tuple[int, int, int]:
        """Rows of batch `index`, and the tokens of its longest source and of its longest target with its <eos>."""
        n_source, n_target = self._order.lengths(index)
        return len(n_source), int(n_source.max()), int(n_target.max()) + 1


def read_in_order(pairs: Pairs, max_tokens: int, *, copies: bool = False) -> Iterator[tuple[Ids, PairBatch]]:
    """Every pair once, in batches from the shortest targets to the longest, with the numbers of their pairs.

    Nothing is left out of what is scored: a pair of more than `max_tokens` is a batch of its own.
    """
    if not len(pairs):
        return
    turned = fold_order(pairs.source_lengths, round_up(pairs.target_lengths + 1))
    maker, order = BatchMaker(pairs, copies=copies), np.lexsort((pairs.target_lengths, *turned))
    bounds = cut_batches(pairs.source_lengths[order], pairs.target_lengths[order] + 1, max_tokens)
    for begin, end in pairwise(bounds):
        yield order[begin:end], maker.batch(order[begin:end])


def _refuse_none(given: Pairs, kept: Pairs, max_lengths: MaxLengths) -> None:
    if len(kept):
        return
    if not len(given):
        raise RegardError("There are no pairs to make batches of. Give others.")
    limits = zip(max_lengths, ("source", "target"), strict=True)
    longer = " or ".join(f"more than {n} tokens in the {side}" for n, side in limits if n is not None)
    raise RegardError(
        f"There are no pairs to make batches of: all {len(given)} have {longer}. Give others, or make "
        "data.max_length and model.max_context larger."
    )


def _drop_larger(pairs: Pairs, max_tokens: int, skips_bad: bool) -> Pairs:
    """Those that a batch has room for."""
    n_tokens = pairs.source_lengths + pairs.target_lengths + 1
    fits = n_tokens <= max_tokens
    if fits.all():
        return pairs
    if skips_bad and fits.any():
        return pairs.select(fits)
    if skips_bad:
        raise RegardError(
            f"There are no pairs to make batches of: all {len(pairs)} have more than {max_tokens} tokens on both sides "
            f"together. Give others, or make teaching.max_tokens at least {n_tokens.min()}."
        )
    i, n = int(n_tokens.argmax()), int(n_tokens.max())
    raise RegardError(
        f"A pair ('{_begin(pairs.source_text(i))}' to '{_begin(pairs.target_text(i))}') has {n} tokens on both sides "
        f"together, its <eos> included, and a batch holds {max_tokens}. Make teaching.max_tokens at least {n}, or "
        "leave out long pairs: those of more than data.max_length tokens a side, or, with --skip-bad (data.skips_bad), "
        "all that a batch has no room for."
    )


def _begin(text: str) -> str:
    return text if len(text) <= 30 else f"{text[:30]}..."


class BatchMaker:
    """Batches from the numbers of their pairs."""

    def __init__(self, pairs: Pairs, *, copies: bool) -> None:
        self._pairs = pairs
        self._copied = CopiedWords(pairs.target.tokenizer, pairs.source.tokenizer) if copies else None

    def batch(self, indices: Ids) -> PairBatch:
        rows = self._pairs.rows[indices]
        source, target = self._pairs.source.ids.take(rows), self._pairs.target.ids.take(rows)
        if self._copied is None:
            return self.join(source, target)
        words, named = self._name_copied(indices)
        return self.join(source, target, named, pad(words, NOT_COPIED)[0])

    def join(self, source: Flat, target: Flat, predicted: Flat | None = None, words: Ids | None = None) -> PairBatch:
        """A batch of the ids of its pairs; what is predicted may have names of its own for the words of the target."""
        predicted = target if predicted is None else predicted
        source_ids, source_mask = pad(source)
        tokenizer, lengths = self._pairs.target.tokenizer, target[1] + 1
        # <eos> stands before what is read and after what is predicted.
        starts = np.cumsum(target[1]) - target[1]
        inputs, mask = pad((np.insert(target[0], starts, tokenizer.start), lengths))
        targets, _ = pad((np.insert(predicted[0], starts + target[1], tokenizer.eos), lengths))
        return PairBatch(source_ids, source_mask, inputs, targets, mask, words)

    def _name_copied(self, indices: Ids) -> tuple[Flat, Flat]:
        """The words of each source, and the target that names them."""
        assert self._copied is not None
        sources, targets = [], []
        for i in indices.tolist():
            words, unknown = self._copied.number_source(self._pairs.source_text(i))
            has_tag = self._pairs.tag(i) is not None
            sources.append(np.concatenate([[NOT_COPIED], words]) if has_tag else words)
            targets.append(self._copied.number_target(self._pairs.target_text(i), unknown))
        return join_rows(sources), join_rows(targets)


def pad(rows: Flat, value: int = 0) -> tuple[Ids, Mask]:
    """Rows of different lengths as one array, and where they are real.

    >>> pad((np.array([5, 6, 7]), np.array([2, 1])))
    (array([[5, 6], [7, 0]]), array([[ True,  True], [ True, False]]))
    """
    values, lengths = rows
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(mask.shape, value, dtype=np.int64)
    ids[mask] = values
    return ids, mask
