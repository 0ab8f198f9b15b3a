"""What word vectors are asked to be. Importing this file does not import torch."""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import RegardError
from regard.settings import Settings, setting

WITHIN_LINES_DOC = "contexts never reach over a line end, as suits one sentence a line"
WIDTH_DOC = "width of a vector"


@dataclass(frozen=True, kw_only=True)
class LSAConfig(Settings):
    """Positive mutual information of words and contexts, reduced by SVD."""

    d_model: int = setting(100, WIDTH_DOC, low=1)
    window: int = setting(5, "how many words away a context is at most", low=1, high=100)
    smoothing: float = setting(0.75, "power of the contexts' counts: below 1, rare contexts count less", low=0, high=1)
    shift: float = setting(1.0, "log of this is taken off the mutual information, as k negative samples do", low=1.0)
    power: float = setting(0.5, "power of the singular values: 1 keeps them, 0 makes directions equal", low=0, high=1)
    within_lines: bool = setting(False, WITHIN_LINES_DOC)


@dataclass(frozen=True, kw_only=True)
class Word2VecConfig(Settings):
    """Vectors that predict which words stand near each other, against words drawn at random."""

    d_model: int = setting(100, WIDTH_DOC, low=1)
    window: int = setting(5, "how many words away a context is at most; each word draws from 1 to this", low=1, high=64)
    n_negative: int = setting(5, "words drawn at random that each context is told from", low=1, high=100)
    subsample: float = setting(
        0.001, "of words that are a larger share of the text than this some are left out; 0: none", low=0, high=1
    )
    smoothing: float = setting(0.75, "power of the counts that random words are drawn by", low=0.0, high=1.0)
    has_subwords: bool = setting(
        False, "a word's vector is the mean of its own and those of its character n-grams, as in fastText"
    )
    min_n: int = setting(3, "has_subwords: shortest n-gram", low=1, high=20)
    max_n: int = setting(6, "has_subwords: longest n-gram", low=1, high=20)
    n_buckets: int = setting(200_000, "has_subwords: rows that n-grams share, by their hash", low=1)
    lr: float | None = setting(
        None, "learning rate at the start, from which it falls to nearly none; null: 0.025, of cbow 0.05", low=1e-9
    )
    n_update: int = setting(1024, "words that are learned from at once; many more make training unstable", low=32)
    within_lines: bool = setting(False, WITHIN_LINES_DOC)

    def check(self) -> None:
        if self.min_n > self.max_n:
            raise RegardError(f"min_n {self.min_n} must not be more than max_n {self.max_n}.")


@dataclass(frozen=True, kw_only=True)
class GloVeConfig(Settings):
    """Vectors whose products are the logarithms of how often words stand near each other."""

    d_model: int = setting(100, WIDTH_DOC, low=1)
    window: int = setting(10, "how many words away a context is at most; it counts 1/distance", low=1, high=100)
    x_max: float = setting(10.0, "pairs that are seen so often or more weigh 1; the paper has 100, for 6G words", low=1)
    power: float = setting(0.75, "pairs that are seen less often weigh (count / x_max) to this power", low=0, high=1)
    lr: float = setting(0.05, "learning rate of AdaGrad", low=1e-9)
    n_update: int = setting(4096, "pairs that are learned from at once", low=1)
    within_lines: bool = setting(False, WITHIN_LINES_DOC)
