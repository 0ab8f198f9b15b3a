"""Pictures with captions, ready to train on: read, split, and a vocabulary learned from the training captions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.cache import key_of
from regard.data.caption_config import CaptionConfig
from regard.data.caption_pairs import CaptionData, CaptionSet, load_captions, told_skipped
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress, train_tokenizer
from regard.text.tokenizer import Tokenizer

READING = "reading pictures"


@dataclass(frozen=True)
class PreparedCaptions:
    """`fingerprint` stands for pictures and captions, how they are cut and split, and the vocabulary."""

    tokenizer: Tokenizer
    data: CaptionData
    fingerprint: str

    def told(self) -> str:
        """How much there is, and what was left out, in words."""
        splits = {"training": self.data.train, "validation": self.data.valid, "test": self.data.test}
        sizes = [
            f"{len(split):,} pictures for {name} ({n_captions(split):,} captions)" for name, split in splits.items()
        ]
        return ", ".join(sizes) + (f"; left out: {told_skipped(self.data.skipped)}" if self.data.skipped else "")


def prepare_captions(
    config: CaptionConfig, tokenizer: TokenizerConfig, *, progress: Progress | None = None, cache: Path | None = None
) -> PreparedCaptions:
    """Read and split; learn the vocabulary from the training captions, or load the one that is named."""
    data = load_captions(config, cache, None if progress is None else lambda n: progress(READING, n, None))
    learned = train_tokenizer(tokenizer, texts_of(data.train), progress)
    return PreparedCaptions(learned, data, _fingerprint(data, learned))


def texts_of(split: CaptionSet) -> Iterator[str]:
    return (text for texts in split.captions for text in texts)


def n_captions(split: CaptionSet) -> int:
    return sum(map(len, split.captions))


def n_bytes(split: CaptionSet) -> int:
    """Of all captions, in UTF-8."""
    return sum(len(text.encode()) for text in texts_of(split))


def first_pictures(split: CaptionSet, n: int) -> CaptionSet:
    return CaptionSet(split.names[:n], split.numbers[:n], split.captions[:n])


def square(data: CaptionData, numbers: Sequence[int] | NDArray[np.int64]) -> NDArray[np.uint8]:
    """The middle of pictures as a model takes them, (B, 3, size, size)."""
    return np.ascontiguousarray(data.centre([int(n) for n in numbers]).transpose(0, 3, 1, 2))


def _fingerprint(data: CaptionData, tokenizer: Tokenizer) -> str:
    splits = [
        [[data.pictures.hashes[number], texts] for number, texts in zip(split.numbers, split.captions, strict=True)]
        for split in (data.train, data.valid, data.test)
    ]
    config = data.config
    cut = [config.size, config.n_margin, config.fit, config.flips]
    return key_of(splits, cut, tokenizer.hash)
