"""Pairs by the length of their source: short ones to learn from, and some of every length to test on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from regard.data.builtin.grammar import Grammar
from regard.data.pairs_config import PairsConfig
from regard.data.prepared_pairs import prepare_pairs
from regard.errors import RegardError
from regard.score.by_length import LEAST_ITEMS, count_words
from regard.studies.config import BottleneckConfig
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress

N_VALID = 100  # pairs for the one score that training asks for
SOURCE, TARGET = "en", "de"
Pair = tuple[str, str]
Bin = tuple[int, int]


def cut_bins(ends: Sequence[int]) -> list[Bin]:
    """Bins by the longest length of each.

    >>> cut_bins((8, 15, 30))
    [(1, 8), (9, 15), (16, 30)]
    """
    return [(low + 1, high) for low, high in zip((0, *ends), ends, strict=False)]


def name_bin(one: Bin, between: str = "–") -> str:
    """
    >>> name_bin((9, 15)), name_bin((7, 7), " to ")
    ('9–15', '7')
    """
    return f"{one[0]}{between}{one[1]}" if one[1] > one[0] else f"{one[0]}"


def draw_short(seed: int, split: str, n: int, max_words: int, tell: Progress) -> list[Pair]:
    """The first n long sentences of the grammar that are no longer than `max_words` on the side of the source."""
    found: list[Pair] = []
    for pair in draw_pairs(seed, split):
        if count_words(pair[0]) <= max_words:
            found.append(pair)
            tell(f"{split} sentences", len(found), n)
        if len(found) == n:
            break
    return found


def draw_test(seed: int, bins: Sequence[Bin], n: int, tell: Progress) -> list[Pair]:
    """The first n test sentences of each bin."""
    found: dict[Bin, list[Pair]] = {one: [] for one in bins}
    for pair in draw_pairs(seed, "test"):
        n_words = count_words(pair[0])
        for (low, high), kept in found.items():
            if low <= n_words <= high and len(kept) < n:
                kept.append(pair)
                tell("test sentences", sum(map(len, found.values())), n * len(bins))
        if all(len(kept) == n for kept in found.values()):
            break
    return [pair for kept in found.values() for pair in kept]


def draw_pairs(seed: int, split: str) -> Iterator[Pair]:
    """Long sentences of the built-in grammar, English and German, words and marks with spaces between them."""
    for sentence in Grammar(seed).sentences(split, kind="long"):
        yield " ".join(sentence.words(SOURCE)), " ".join(sentence.words(TARGET))


def read_pairs(config: BottleneckConfig, tell: Progress) -> dict[str, list[Pair]]:
    """The user's pairs: split as a run would, the short ones of train to learn from, those of test to measure on."""
    assert config.data is not None
    words = TokenizerConfig(kind="word", vocab_size=None)
    prepared = prepare_pairs(PairsConfig(train=config.data), words, words, progress=tell)
    found = {
        split: [(pairs.source_text(i), pairs.target_text(i)) for i in range(len(pairs))]
        for split, pairs in (("train", prepared.train), ("valid", prepared.valid), ("test", prepared.test))
    }
    for split in ("train", "valid"):
        found[split] = [pair for pair in found[split] if count_words(pair[0]) <= config.max_words]
    found["test"] = found["test"][: config.n_test * len(config.lengths)]
    if not found["train"] or not found["valid"] or len(found["test"]) < 2 * LEAST_ITEMS:
        raise RegardError(
            f"Of {config.data} there are {len(found['train']):,} pairs with at most {config.max_words} words to learn "
            f"from, {len(found['valid']):,} such to watch and {len(found['test']):,} to test on, and {2 * LEAST_ITEMS} "
            "of these are needed. Give more pairs, or raise max_words."
        )
    return found
