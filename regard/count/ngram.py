"""The n-gram language model: fit, score, the distribution of the next token, in and out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.count.arpa import write_arpa
from regard.count.arpa_reader import read_arpa
from regard.count.config import NgramConfig
from regard.count.counts import (
    EOS,
    NONE,
    Bools,
    Floats,
    Ids,
    Index,
    Level,
    Progress,
    count_ngrams,
    sentence_starts,
)
from regard.count.estimate import Estimate, estimate_add_k, estimate_mle
from regard.count.kneser_ney import estimate_kneser_ney
from regard.count.trie import Trie
from regard.errors import RegardError

# Tokens scored at a time. They are searched in the order of the trie, so the more, the nearer each to the one before:
# with 16 million n-grams 0.6 million tokens/s in text order, 1.4 with 2**16, 1.9 with 2**18, no more with 2**20.
CHUNK = 1 << 18


class NgramModel:
    """P(w | the last N - 1 tokens of the sentence), looked up by back-off (see `estimate.py`).

    >>> stream = np.array([1, 2, 3, 0, 1, 2, 2, 0])
    >>> model = NgramModel.fit(NgramConfig(order=2, smoothing="mle"), stream, vocab_size=4, unk=None)
    >>> np.exp(model.next_log_probs([1, 2])).round(3).tolist()  # 2 was followed by 3, 2 and <eos>
    [0.333, 0.0, 0.333, 0.333]
    """

    def __init__(self, trie: Trie, estimate: Estimate, unk: int | None) -> None:
        self.trie = trie
        self.estimate = estimate
        self.unk = unk

    @property
    def order(self) -> int:
        return self.trie.order

    @property
    def vocab_size(self) -> int:
        return self.trie.base - 1

    @property
    def n_ngrams(self) -> list[int]:
        """Stored n-grams by order; `<s>` counts as a unigram, as in ARPA."""
        return self.trie.sizes

    @property
    def discounts(self) -> Floats:
        """Kneser-Ney's D_1, D_2, D_3+ by order, (N, 3); no rows where the model has none."""
        return self.estimate.discounts

    @property
    def discounts_estimated(self) -> list[bool]:
        """By order, whether the text sufficed to estimate Kneser-Ney's discounts; False: the fallback was taken."""
        return [bool(is_estimated) for is_estimated in self.estimate.discounts_estimated]

    @classmethod
    def fit(
        cls, config: NgramConfig, ids: Ids, vocab_size: int, unk: int | None, progress: Progress | None = None
    ) -> NgramModel:
        """Count the stream `ids`, documents or lines each ended by token 0, and smooth the counts."""
        ids = np.asarray(ids)
        if not len(ids):
            raise RegardError("An n-gram model needs at least one token to count; the training text has none.")
        _check_ids(ids, vocab_size)
        levels = count_ngrams(ids, config.order, vocab_size, progress)
        estimate = _estimate(config, levels, vocab_size)
        return cls(Trie(vocab_size, [level.keys for level in levels[1:]]), estimate, unk)

    def nats(self, ids: Ids) -> Floats:
        """-log P of every token of a stream given its past in the sentence; the first follows `<s>`."""
        _check_ids(ids, self.vocab_size)
        nats = np.empty(len(ids))
        for rows, log_prob, _ in self._score_chunks(ids):
            np.negative(log_prob, out=nats[rows])
        return nats

    def matched_orders(self, ids: Ids) -> Index:
        """The length of the longest stored n-gram that ends at each token: how much context the model could use."""
        _check_ids(ids, self.vocab_size)
        return np.concatenate([np.zeros(0, np.int64), *(matched for _, _, matched in self._score_chunks(ids))])

    def _score_chunks(self, ids: Ids) -> Iterator[tuple[slice, Floats, Index]]:
        """(rows, log P, matched order) a chunk at a time; each chunk sees the N - 1 tokens before it."""
        for first in range(0, len(ids), CHUNK):
            before = max(0, first - self.order + 1)
            chunk = np.asarray(ids[before : first + CHUNK]).astype(np.int64)
            # The chunk's head may be no sentence's start, but what follows from that reaches only tokens not kept.
            log_prob, matched = self._score(chunk, sentence_starts(chunk))
            keep = slice(first - before, None)
            yield slice(first, first + CHUNK), log_prob[keep], matched[keep]

    def _score(self, x: Index, starts: Bools) -> tuple[Floats, Index]:
        """log P(x_i | h_i) from the unigram up: each longer context either knows the word or pays to back off."""
        log_prob = self.estimate.log_probs[0].take(x)
        matched = np.ones_like(x)
        rows = np.arange(len(x))  # where an n-gram ends whose prefix is stored
        prefix = np.roll(x, 1)
        prefix[starts] = self.vocab_size  # <s>
        for n in range(2, self.order + 1):
            at = self.trie.find_many(n, prefix, x.take(rows))
            seen = np.flatnonzero(at != NONE)
            ends, at = rows.take(seen), at.take(seen)
            log_prob[rows] += self.estimate.log_backoffs[n - 2].take(prefix)
            log_prob[ends] = self.estimate.log_probs[n - 1].take(at)
            matched[ends] = n
            # An n-gram that was seen is the prefix at the next token, if its sentence goes on.
            goes_on = np.flatnonzero(~starts.take(ends + 1, mode="clip") & (ends + 1 < len(x)))
            rows, prefix = ends.take(goes_on) + 1, at.take(goes_on)
        return log_prob, matched

    def next_log_probs(self, context: Sequence[int] | Ids) -> Floats:
        """log P of each of the V tokens after `context`, a stream up to now: what precedes its last `<eos>` is gone."""
        history = self._history(context)
        log_probs = self.estimate.log_probs[0][: self.vocab_size].copy()
        for m in range(1, len(history) + 1):
            at = self.trie.locate(history[-m:])
            if at != NONE:
                rows, words = self.trie.children(m, at)
                log_probs += self.estimate.log_backoffs[m - 1][at]
                log_probs[words] = self.estimate.log_probs[m][rows]
        return log_probs

    def _history(self, context: Sequence[int] | Ids) -> list[int]:
        """The at most N - 1 tokens that the next one is predicted from, oldest first, `<s>` among them."""
        reach = self.order - 1
        tail = [int(token) for token in context[max(0, len(context) - reach) :]]
        _check_ids(np.array(tail, np.int64), self.vocab_size)
        if EOS in tail:
            tail = tail[len(tail) - tail[::-1].index(EOS) :]
        return [self.vocab_size, *tail][-reach:] if reach else []

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, by name, for safetensors; `from_tensors` is its inverse."""
        named: dict[str, npt.NDArray[Any]] = {}
        named |= {f"keys.{n}": keys for n, keys in enumerate(self.trie.keys, start=2)}
        named |= {f"log_probs.{n}": values for n, values in enumerate(self.estimate.log_probs, start=1)}
        named |= {f"log_backoffs.{n}": values for n, values in enumerate(self.estimate.log_backoffs, start=1)}
        named["discounts"] = self.estimate.discounts
        named["discounts_estimated"] = self.estimate.discounts_estimated
        named["unk"] = np.array([] if self.unk is None else [self.unk], np.int64)
        return named

    @classmethod
    def from_tensors(cls, named: Mapping[str, npt.NDArray[Any]]) -> NgramModel:
        """The model that `tensors` described."""
        order = max(1, sum(name.startswith("log_probs.") for name in named))
        try:
            log_probs = [named[f"log_probs.{n}"] for n in range(1, order + 1)]
            log_backoffs = [named[f"log_backoffs.{n}"] for n in range(1, order)]
            keys = [named[f"keys.{n}"] for n in range(2, order + 1)]
            for name, tensor in named.items():
                is_whole, is_row = name.startswith(("keys", "unk")), tensor.ndim == 1 or name.startswith("discounts")
                if not is_row or (tensor.dtype == np.int64) != is_whole:
                    raise RegardError(f"These tensors are no n-gram model: '{name:.40}' is of another type or shape.")
            estimate = Estimate(log_probs, log_backoffs, named["discounts"], named["discounts_estimated"])
            trie, unk = Trie(len(log_probs[0]) - 1, keys), named["unk"]
        except KeyError as error:
            raise RegardError(
                f"These tensors are no n-gram model: {error} is missing. Expected keys.N, log_probs.N and "
                "log_backoffs.N for each order, discounts, discounts_estimated and unk."
            ) from None
        if trie.sizes != [len(p) for p in log_probs] or trie.sizes[:-1] != [len(b) for b in log_backoffs]:
            raise RegardError("These tensors are no n-gram model: keys, log_probs and log_backoffs differ in length.")
        _check_tensors(trie, estimate, unk)
        return cls(trie, estimate, int(unk[0]) if len(unk) else None)

    def write_arpa(self, path: Path, words: Sequence[str]) -> None:
        """Write an ARPA file that KenLM reads, gzip where the name ends in .gz; `words[id]` names each token.

        Token 0 is called `</s>` and the unknown token `<unk>`, whatever `words` calls them.
        """
        write_arpa(Path(path), self.trie, self.estimate, words, self.unk)

    @classmethod
    def read_arpa(cls, path: Path, *, adds_unk: bool = False) -> tuple[NgramModel, list[str]]:
        """The model in an ARPA file of any maker, and the word of each token id; `</s>` has id 0, as everywhere.

        `adds_unk` gives a file without `<unk>` one that has the probability 0.
        """
        trie, estimate, words, unk = read_arpa(Path(path), adds_unk)
        return cls(trie, estimate, unk), words


def _check_tensors(trie: Trie, estimate: Estimate, unk: npt.NDArray[Any]) -> None:
    """Refuse keys that lead nowhere: a file may have been damaged, or made by somebody else."""
    sizes = trie.sizes
    is_sorted = all(len(keys) < 2 or bool((np.diff(keys) > 0).all()) for keys in trie.keys)
    fits = all(
        not len(keys) or (keys[0] >= 0 and int(keys[-1]) // trie.base < size)
        for keys, size in zip(trie.keys, sizes, strict=False)
    )
    if not is_sorted or not fits or (len(unk) and not 0 <= unk[0] < trie.base - 1):
        raise RegardError("These tensors are no n-gram model: its keys are not in order, or lead to no n-gram.")
    if any(np.isnan(column).any() for column in (*estimate.log_probs, *estimate.log_backoffs)):
        raise RegardError("These tensors are no n-gram model: some of its probabilities are no numbers.")


def _estimate(config: NgramConfig, levels: list[Level], vocab_size: int) -> Estimate:
    if config.smoothing == "kneser-ney":
        return estimate_kneser_ney(levels, vocab_size)
    if config.smoothing == "add-k":
        return estimate_add_k(levels, vocab_size, config.k)
    return estimate_mle(levels, vocab_size)


def _check_ids(ids: Ids, vocab_size: int) -> None:
    if len(ids) and not 0 <= ids.min() <= ids.max() < vocab_size:
        raise RegardError(
            f"Token ids must lie between 0 and {vocab_size - 1}, found {ids.min()} to {ids.max()}. "
            "Use the tokenizer that the model was fitted with."
        )
