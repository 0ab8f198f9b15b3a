"""Batches of pictures and captions, as a pure function of one integer.

An epoch shows every caption once, in an order of its own; a picture with five captions is seen five times, each time
cut and mirrored anew. Which way depends on the seed, the epoch and the caption alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.batches import permute
from regard.data.pair_batches import pad
from regard.data.pair_dropout import join_rows
from regard.data.pictures import Pixels
from regard.data.prepared_captions import CaptionData, CaptionSet
from regard.errors import RegardError
from regard.text.tokenizer import Tokenizer

Ids = NDArray[np.int64]
SIDES = re.compile(r"\b(left|right)\b", re.IGNORECASE)


@dataclass(frozen=True)
class CaptionBatch:
    """Row b: the picture that caption b is of, and the caption as it is read and predicted; mask is True where real."""

    pictures: Pixels  # (B, 3, size, size)
    numbers: Ids  # (B,) where the pictures stand among all, for what was computed of them before
    inputs: Ids  # (B, T) <eos> y_1 ... y_n, padded with 0
    targets: Ids  # (B, T) y_1 ... y_n <eos>, padded with 0
    mask: NDArray[np.bool_]  # (B, T)


class CaptionBatches:
    """Batch i of a split, for any i >= 0; the last batch of an epoch holds what is left."""

    def __init__(
        self,
        data: CaptionData,
        split: CaptionSet,
        tokenizer: Tokenizer,
        *,
        n_batch: int,
        seed: int = 0,
        max_tokens: int | None = None,
    ) -> None:
        """Captions of more than `max_tokens` are cut there, and do not end with <eos>."""
        if n_batch < 1:
            raise RegardError(f"n_batch must be at least 1, not {n_batch}.")
        if not len(split):
            raise RegardError("The split has no pictures to make batches of. Raise its p_, or name pictures for it.")
        self.data, self.n_batch, self.seed = data, n_batch, seed
        self.eos = tokenizer.eos
        pairs = [(n, text) for n, texts in zip(split.numbers, split.captions, strict=True) for text in texts]
        self.numbers: Ids = np.array([number for number, _ in pairs], dtype=np.int64)
        cut = slice(None if max_tokens is None else max_tokens)
        self.ids = [np.append(tokenizer.encode(text), self.eos)[cut].astype(np.int64) for _, text in pairs]
        self.names_a_side = np.array([SIDES.search(text) is not None for _, text in pairs])
        self.per_epoch = -(-len(pairs) // n_batch)

    def __len__(self) -> int:
        """Captions in an epoch."""
        return len(self.ids)

    def at(self, index: int) -> CaptionBatch:
        """Batch `index`; the same arguments give the same arrays, whatever was asked before."""
        epoch, rows = self.rows(index)
        pictures = np.stack([self._picture(epoch, int(row)) for row in rows]).transpose(0, 3, 1, 2)
        inputs, targets, mask = self.captions(rows)
        return CaptionBatch(np.ascontiguousarray(pictures), self.numbers[rows], inputs, targets, mask)

    def rows(self, index: int) -> tuple[int, Ids]:
        """The epoch of batch `index`, and which captions are in it: `numbers` says of which pictures they are."""
        epoch, step = divmod(index, self.per_epoch)
        places = np.arange(step * self.n_batch, min((step + 1) * self.n_batch, len(self)))
        return epoch, permute(places, len(self), seed=_draws(self.seed, epoch)[0])

    def captions(self, rows: Ids) -> tuple[Ids, Ids, NDArray[np.bool_]]:
        """Inputs, targets and mask (B, T) of some captions."""
        return pad_captions([self.ids[row] for row in rows], self.eos)

    def _picture(self, epoch: int, row: int) -> Pixels:
        """(size, size, 3): cut out anywhere and mirrored by chance."""
        config, whole = self.data.config, self.data.pictures.pixels[self.numbers[row]]
        down, across, side, _ = _draws(self.seed, epoch, row)
        top, left = down % (config.n_margin + 1), across % (config.n_margin + 1)
        is_mirrored = config.flips and side % 2 == 1 and not self.names_a_side[row]
        piece: Pixels = whole[top : top + config.size, left : left + config.size]
        return piece[:, ::-1] if is_mirrored else piece


def pad_captions(targets: Sequence[Ids], eos: int) -> tuple[Ids, Ids, NDArray[np.bool_]]:
    """Inputs, targets and mask (B, T): what is read starts with <eos> and lags one behind what is predicted.

    >>> inputs, targets, mask = pad_captions([np.array([5, 6, 9]), np.array([7, 9])], eos=9)
    >>> inputs.tolist(), targets.tolist(), mask.sum(axis=1).tolist()
    ([[9, 5, 6], [9, 7, 0]], [[5, 6, 9], [7, 9, 0]], [3, 2])
    """
    right, mask = pad(join_rows(targets))
    left = np.zeros_like(right)
    left[:, 1:] = right[:, :-1]
    left[:, 0] = eos
    return np.where(mask, left, 0), right, mask


def _draws(*key: int) -> tuple[int, int, int, int]:
    """Four whole numbers below 2^32 that depend on the key alone, on any machine."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
    return tuple(int.from_bytes(digest[i : i + 4], "little") for i in (0, 4, 8, 12))  # type: ignore[return-value]
