"""Trained word vectors in the hands of a user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.config import DataConfig
from regard.data.prepared_text import prepare_text
from regard.errors import RegardError
from regard.models.word_vectors import Matrix, Neighbours, WordVectors
from regard.score.word_tests import (
    CONTEXTS,
    WordEvaluation,
    WordScore,
    choose_contexts,
    prefer_contexts,
    read_word_test,
    score_word_test,
)
from regard.tasks.base_run import Run, list_items
from regard.tasks.task import OpenRun, Task, check_data, check_split
from regard.text.config import TokenizerConfig

N_CONTEXTS = 5_000
PLAIN_WORDS = TokenizerConfig(kind="word", vocab_size=None, lowercase=True, punctuation="dropped")
"""How a text becomes words where runs with other vocabularies are to be tested on the same ones."""


class WordVectorsRun(Run):
    """A trained run of word vectors: nearest words, analogies, tests."""

    model: WordVectors
    verbs = ("vector", "similarity", "nearest", "analogy", "predict", "evaluate")

    def __init__(self, task: Task, opened: OpenRun, model: WordVectors) -> None:
        super().__init__(task, opened, model)
        self.tokenizer = opened.tokenizers[0]
        self.vectors = model

    def vector(self, word: str) -> Matrix:
        """The vector of a word; RegardError with the nearest spelling where it has none."""
        return self.model.vector(word)

    def similarity(self, first: str, second: str) -> float:
        """The cosine of two words' vectors."""
        return self.model.similarity(first, second)

    def nearest(self, word: str, n: int = 10) -> Neighbours:
        """The n words with the largest cosine, and these."""
        return self.model.nearest(word, n)

    def analogy(self, first: str, second: str, third: str, n: int = 5) -> Neighbours:
        """The words that are to `third` as `second` is to `first`."""
        return self.model.analogy(first, second, third, n)

    def predict(self, items: Iterable[str], n: int = 10) -> Iterator[Neighbours]:
        """The nearest words of each word."""
        for word in list_items(items, "word"):
            yield self.nearest(word, n)

    def evaluate(self, data: str | Sequence[str] | None = None, *, split: str = "test") -> WordEvaluation:
        """Scores on files of rated pairs or analogies; without any, contexts of a split of the run's own text."""
        if data is not None:
            names = [data] if isinstance(data, str) else list(data)
            return WordEvaluation(tuple(score_word_test(self.model, read_word_test(Path(name))) for name in names))
        words, chosen = read_contexts(self.task, self.opened, split)
        return WordEvaluation((score_contexts(self.model, words, chosen, f"the {split} split"),))

    def prediction(self, *texts: str) -> Any:
        raise RegardError(f"'{self.folder}' holds vectors of words: it predicts nothing from a text.")

    def trace(self, *texts: str) -> Any:
        raise RegardError(f"'{self.folder}' holds vectors of words: there is nothing that it computes of a text.")


def read_contexts(task: Task, opened: OpenRun, split: str) -> tuple[list[str], NDArray[np.int64]]:
    """Words, and (word, word near it, random word) of a split of a run's text, the same for runs of any vocabulary."""
    check_data(task, opened)
    text = prepare_text(opened.config.section("data", DataConfig), PLAIN_WORDS)
    tokens = getattr(text, check_split(split)).tokens
    tokenizer = text.tokenizer
    words = [tokenizer.token_text(i) for i in range(tokenizer.vocab_size)]
    return words, choose_contexts(tokens[tokens > 1].astype(np.int64), N_CONTEXTS)


def score_contexts(vectors: WordVectors, words: Sequence[str], chosen: NDArray[np.int64], name: str) -> WordScore:
    """The share of words that are nearer to one that stands near them than to a random one."""
    rows = find_rows(vectors, words, chosen)
    known = rows[(rows >= 0).all(axis=1)]
    value = 100 * float(prefer_contexts(vectors, known).mean()) if len(known) else float("nan")
    return WordScore(name, CONTEXTS, value, len(known), len(chosen))


def find_rows(vectors: WordVectors, words: Sequence[str], chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of words given by their number in `words`; -1 where there is none."""
    rows = {int(i): vectors.find(words[i]) for i in np.unique(chosen)}
    found = [[-1 if (row := rows[i]) is None else row for i in item] for item in chosen.tolist()]
    return np.array(found, dtype=np.int64).reshape(-1, chosen.shape[1])
