"""Batches of pairs as a pure function of one integer, which is the whole position in the data.

A batch holds as many pairs as fit into `max_tokens`, padding included, so pairs of like lengths go together. Lengths
are rounded up to classes,

    1, 2, .., 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, ..      (four to an octave: at most a quarter too long)

all pairs are laid out by the class of their target, then of their source, and the line is cut where the longest of the
classes fill a batch. An epoch shuffles the pairs within each class, which leaves the cuts where they are, and then the
batches. So every pair comes once an epoch, every epoch has as many batches, and batch i depends on nothing but the seed
and i.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from regard.data.batches import permute
from regard.data.pair_copying import NOT_COPIED, CopiedWords
from regard.data.pair_dropout import Flat, PairDropout, join_rows
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
        self.max_tokens, self.seed = max_tokens, seed
        self._class, n_source, n_target = classify_lengths(self.pairs)
        self._cuts = cut_batches(n_source, n_target, max_tokens)
        self.per_epoch = len(self._cuts) - 1
        self._maker = BatchMaker(
            self.pairs, copies=copies, p_bpe_dropout=p_bpe_dropout, seed=seed, max_lengths=max_lengths
        )
        # The order of one epoch is asked for batch after batch: the last two epochs' are kept.
        self._order = lru_cache(maxsize=2)(self._order_of)

    def at(self, index: int) -> PairBatch:
        """Batch `index`; the same arguments give the same arrays, whatever was asked before."""
        return self._maker.batch(self.indices(index), index // self.per_epoch)

    def indices(self, index: int) -> Ids:
        """Which of `self.pairs` are in batch `index`."""
        epoch, step = divmod(index, self.per_epoch)
        step = int(permute(np.array([step]), self.per_epoch, seed=key_of_epoch(self.seed, epoch, "batches"))[0])
        return self._order(epoch)[self._cuts[step] : self._cuts[step + 1]]

    def _order_of(self, epoch: int) -> Ids:
        shuffled = permute(np.arange(len(self.pairs)), len(self.pairs), seed=key_of_epoch(self.seed, epoch, "pairs"))
        return shuffled[np.argsort(self._class[shuffled], kind="stable")]


def read_in_order(pairs: Pairs, max_tokens: int, *, copies: bool = False) -> Iterator[tuple[Ids, PairBatch]]:
    """Every pair once, in batches from the shortest targets to the longest, with the numbers of their pairs.

    Nothing is left out of what is scored: a pair of more than `max_tokens` is a batch of its own.
    """
    if not len(pairs):
        return
    turned = _fold_order(pairs.source_lengths, round_up(pairs.target_lengths + 1))
    maker, order = BatchMaker(pairs, copies=copies), np.lexsort((pairs.target_lengths, *turned))
    bounds = cut_batches(pairs.source_lengths[order], pairs.target_lengths[order] + 1, max_tokens)
    for begin, end in pairwise(bounds):
        yield order[begin:end], maker.batch(order[begin:end])


def round_up(lengths: Ids) -> Ids:
    """Lengths rounded up to their classes.

    >>> round_up(np.array([1, 8, 9, 15, 16, 17, 33]))
    array([ 1,  8, 10, 16, 16, 20, 40])
    """
    octave = np.frexp(np.maximum(lengths - 1, 1))[1] - 1  # floor(log2(length - 1))
    grain = 1 << np.maximum(octave - 2, 0)
    rounded: Ids = -(-lengths // grain) * grain
    return rounded


def classify_lengths(pairs: Pairs) -> tuple[Ids, Ids, Ids]:
    """The class of each pair, numbered as they are laid out, and how long a source and a target at each place may be.

    Pairs stand in line by their class; a place may be taken by any of its class, so it has the length of the longest.
    Targets are counted with their <eos>.
    """
    n_source, n_target = pairs.source_lengths, pairs.target_lengths + 1
    turned, rank = _fold_order(round_up(n_source), round_up(n_target))
    span = 2 * int(np.abs(turned).max()) + 1
    _, number, sizes = np.unique(rank * span + turned, return_inverse=True, return_counts=True)
    longest = np.zeros((2, len(sizes)), dtype=np.int64)
    np.maximum.at(longest[0], number, n_source)
    np.maximum.at(longest[1], number, n_target)
    return number, np.repeat(longest[0], sizes), np.repeat(longest[1], sizes)


def _fold_order(n_source: Ids, target_class: Ids) -> tuple[Ids, Ids]:
    """What to sort sources by within a target class, and what to sort target classes by.

    Every other target class has its sources from long to short: where one class ends and the next begins, and a batch
    may hold some of both, sources are of like lengths.
    """
    _, rank = np.unique(target_class, return_inverse=True)
    return np.where(rank % 2 == 0, n_source, -n_source), rank


def cut_batches(n_source: Ids, n_target: Ids, max_tokens: int) -> list[int]:
    """Where a line of pairs is cut, so that rows x (longest source + longest target) is at most `max_tokens`.

    >>> cut_batches(np.array([2, 2, 3, 9]), np.array([2, 2, 2, 9]), max_tokens=15)
    [0, 3, 4]
    """
    found, S, T = [0], 0, 0
    for i, (s, t) in enumerate(zip(n_source.tolist(), n_target.tolist(), strict=True)):
        S, T = max(S, s), max(T, t)
        if (i + 1 - found[-1]) * (S + T) > max_tokens and i > found[-1]:
            found.append(i)
            S, T = s, t
    return [*found, len(n_source)]


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


def key_of_epoch(seed: int, epoch: int, what: str) -> int:
    """A seed for one use in one epoch."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {epoch} {what}".encode(), digest_size=7).digest(), "little")


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
            source, target = self._pairs.source.ids.take(rows), self._pairs.target.ids.take(rows)
        predicted, words = target, None
        if self._copied is not None:
            copied, predicted = self._name_copied(indices)
            words = pad(copied, NOT_COPIED)[0]
        source_ids, source_mask = pad(source)
        eos, lengths = self._pairs.target.tokenizer.eos, target[1] + 1
        # <eos> stands before what is read and after what is predicted.
        starts = np.cumsum(target[1]) - target[1]
        inputs, mask = pad((np.insert(target[0], starts, eos), lengths))
        targets, _ = pad((np.insert(predicted[0], starts + target[1], eos), lengths))
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
