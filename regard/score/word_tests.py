"""How good word vectors are: word pairs that people rated, analogies, and words that stand near each other in a text.

- Pairs: Spearman's correlation of the cosines with the ratings.
- Analogies: the share of questions a : b = c : ? whose answer is the word nearest to b - a + c.
- Contexts: the share of words for which a word that stands near it is nearer than a random word of the text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.reading import BadLine, read_lines
from regard.errors import RegardError, suggest_path
from regard.models.word_vectors import WordVectors
from regard.score.measured import Figure, Measured
from regard.score.significance import Counts

Floats = NDArray[np.float64]
SPEARMAN, ANALOGIES, CONTEXTS = "Spearman × 100", "analogies, %", "contexts, %"


@dataclass(frozen=True)
class RatedPairs:
    """Pairs of words with what people said of their likeness."""

    name: str
    pairs: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True)
class Analogies:
    """Questions (a, b, c, d), a : b = c : d, by section."""

    name: str
    sections: Mapping[str, tuple[tuple[str, str, str, str], ...]]


def read_word_test(path: Path) -> RatedPairs | Analogies:
    """Read a file of rated pairs (two words and a number a line) or of analogies (four words a line, `: section`)."""
    if path.is_dir():
        raise RegardError(f"'{path}' is a folder. Give files of rated pairs or analogies, one a line.")
    if not path.is_file():
        raise RegardError(f"There is no file '{path}'.{suggest_path(path)}")
    pairs: list[tuple[str, str, float]] = []
    sections: dict[str, list[tuple[str, str, str, str]]] = {}
    section = "all"
    for number, text in enumerate(read_lines(path, str(path)), start=1):
        if isinstance(text, BadLine):
            raise RegardError(f"{path}, line {number} {text.why}")
        if text.startswith(":"):
            section = text[1:].strip()
            continue
        parts = text.replace("\t", " ").replace(",", " ").replace(";", " ").split()
        if not parts or text.startswith("#"):
            continue
        if len(parts) == 4:
            sections.setdefault(section, []).append((parts[0], parts[1], parts[2], parts[3]))
        elif len(parts) >= 3 and _is_number(parts[2]):
            pairs.append((parts[0], parts[1], float(parts[2])))
        elif pairs or sections or number > 1:  # the first line may say what the columns are
            raise RegardError(
                f"{path}, line {number} is neither a rated pair (two words and a number) nor an analogy (four words): "
                f"'{text[:60]}'."
            )
    if bool(pairs) == bool(sections):
        what = "both rated pairs and analogies" if pairs else "no rated pairs and no analogies"
        raise RegardError(f"'{path}' holds {what}: give lines of two words and a number, or of four words.")
    if pairs:
        return RatedPairs(path.name, tuple(pairs))
    return Analogies(path.name, {name: tuple(questions) for name, questions in sections.items()})


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def rank_with_ties(values: Sequence[float] | Floats) -> Floats:
    """Ranks from 1 on; equal values share the mean of theirs.

    >>> rank_with_ties([10.0, 30.0, 10.0]).tolist()
    [1.5, 3.0, 1.5]
    """
    _, place, n = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(n) - (n - 1) / 2)[place])


def spearman(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float:
    """The correlation of ranks; NaN where one of the two is all equal.

    >>> spearman([1, 2, 3], [10, 30, 20])
    0.5
    """
    judge = RankCorrelation(list(second))
    return judge.score(judge.counts(list(first)).sum(axis=0)) / 100


@dataclass
class RankCorrelation:
    """Spearman's correlation of answers with ratings, times 100. Ranks are those among all items that are given."""

    ratings: Sequence[float]
    name: str = SPEARMAN
    is_higher_better: bool = True
    signature: str = "Spearman's correlation of cosines with ratings, ties at their mean rank"
    other_signatures: Mapping[str, str] = field(default_factory=dict)

    def counts(self, answers: Sequence[Any]) -> Counts:
        # Centred, so that sums of squares lose no digits to a common large part.
        x, y = (rank_with_ties(v) - (len(answers) + 1) / 2 for v in (answers, self.ratings))
        return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)

    def score(self, summed: Counts, /) -> float:
        n, x, y, xx, yy, xy = (float(v) for v in summed)
        spread = (xx - x * x / n) * (yy - y * y / n)
        return 100 * (xy - x * y / n) / math.sqrt(spread) if spread > 0 else math.nan

    def other_scores(self, runs: Sequence[Sequence[Any]]) -> dict[str, float]:
        return {}


@dataclass
class ShareRight:
    """The share of answers that are right, in per cent; an answer is 1 or 0."""

    n_items: int
    name: str = CONTEXTS
    is_higher_better: bool = True
    signature: str = "a word that stands near another is nearer to it than a random word of the text"
    other_signatures: Mapping[str, str] = field(default_factory=dict)

    def counts(self, answers: Sequence[Any]) -> Counts:
        return np.array([(float(answer), 1.0) for answer in answers])

    def score(self, summed: Counts, /) -> float:
        return float(100 * summed[0] / summed[1])

    def other_scores(self, runs: Sequence[Sequence[Any]]) -> dict[str, float]:
        return {}


@dataclass(frozen=True)
class WordScore:
    """One test: its score, and how many of its items the vocabulary has all words of."""

    test: str
    measure: str
    value: float
    n_used: int
    n_given: int
    parts: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    """By section of analogies: per cent, and of how many."""


@dataclass(frozen=True)
class WordEvaluation:
    """Scores of word vectors on one test or several."""

    scores: tuple[WordScore, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "tests": [
                {**vars(score), "value": score.value if math.isfinite(score.value) else None,
                 "parts": {name: {"value": v, "n": n} for name, (v, n) in score.parts.items()}}
                for score in self.scores
            ]
        }  # fmt: skip

    def measure(self) -> Measured:
        several = len(self.scores) > 1
        figures = tuple(Figure(f"{s.test}: {s.measure}" if several else s.measure, s.value) for s in self.scores)
        notes = tuple(
            f"{s.test}: {s.n_used:,} of {s.n_given:,} have all their words in the vocabulary."
            for s in self.scores
            if s.n_used < s.n_given
        )
        counts = {f"items of {s.test}" if several else "items": s.n_used for s in self.scores}
        return Measured(figures, figures[0].name, is_higher_better=True, counts=counts, notes=notes)


def score_word_test(vectors: WordVectors, test: RatedPairs | Analogies) -> WordScore:
    """Score vectors on one test; items with a word that has no vector are left out and counted."""
    return _score_pairs(vectors, test) if isinstance(test, RatedPairs) else _score_analogies(vectors, test)


def _score_pairs(vectors: WordVectors, test: RatedPairs) -> WordScore:
    known = [pair for pair in test.pairs if vectors.knows(pair[0]) and vectors.knows(pair[1])]
    value = math.nan
    if len(known) > 1:
        value = 100 * spearman([vectors.similarity(a, b) for a, b, _ in known], [rating for *_, rating in known])
    return WordScore(test.name, SPEARMAN, value, len(known), len(test.pairs))


def _score_analogies(vectors: WordVectors, test: Analogies) -> WordScore:
    parts: dict[str, tuple[float, int]] = {}
    n_right = n_used = n_given = 0
    for name, questions in test.sections.items():
        rows = [[vectors.find(word) for word in question] for question in questions]
        known = np.array([row for row in rows if None not in row], dtype=np.int64).reshape(-1, 4)
        right = int((vectors.solve_analogies(known[:, :3]) == known[:, 3]).sum())
        parts[name] = (100 * right / len(known) if len(known) else 0.0, len(known))
        n_right, n_used, n_given = n_right + right, n_used + len(known), n_given + len(questions)
    return WordScore(test.name, ANALOGIES, 100 * n_right / n_used if n_used else math.nan, n_used, n_given, parts)


def choose_contexts(ids: NDArray[np.integer], n_items: int, window: int = 5, seed: int = 0) -> NDArray[np.int64]:
    """Up to `n_items` (word, word near it, random word) of a text, spread evenly over it, (n, 3).

    No two of the three are the same word. Words are those of `ids`; the random one is drawn by its share of the text.
    """
    random = np.random.default_rng(seed)
    if len(ids) <= 2 * window + 1:
        return np.zeros((0, 3), dtype=np.int64)
    at = np.unique(np.linspace(window, len(ids) - window - 1, num=n_items).astype(np.int64))
    offsets = random.integers(1, window + 1, len(at)) * random.choice([-1, 1], len(at))
    chosen = np.stack([ids[at], ids[at + offsets], ids[random.integers(0, len(ids), len(at))]], axis=1)
    a, b, c = chosen.T
    return np.asarray(chosen[(a != b) & (a != c) & (b != c)], dtype=np.int64)


def prefer_contexts(vectors: WordVectors, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each word is nearer to the one that stands near it than to the random one; `rows` of words, (n, 3)."""
    words, near, random = (vectors.directions[rows[:, k]] for k in range(3))
    return np.asarray((words * near).sum(axis=1) > (words * random).sum(axis=1))
