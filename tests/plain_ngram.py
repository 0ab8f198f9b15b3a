"""N-gram models written with dictionaries, one n-gram at a time: what the arrays of regard.count are held equal to.

Slow, and short enough to be checked against the equations by eye. An n-gram is a tuple of tokens; `<s>` is a string.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from regard.count.config import NgramConfig
from regard.count.kneser_ney import FALLBACK

BOS = "<s>"
EOS = 0

Token = int | str
Ngram = tuple[Token, ...]


class PlainNgram:
    """P(w | h) for a stream of ids, by the equations of `kneser_ney.py` and `estimate.py`."""

    def __init__(self, config: NgramConfig, ids: Iterable[int], vocab_size: int) -> None:
        self.N, self.V, self.k, self.smoothing = config.order, vocab_size, config.k, config.smoothing
        self.c: Counter[Ngram] = Counter()
        for h, w in self.walk(ids):
            self.c.update((*h[len(h) - m :], w) for m in range(len(h) + 1))
        self.c_after: defaultdict[Ngram, dict[Token, int]] = defaultdict(dict)  # [h][w] = c(h w)
        for ngram, count in self.c.items():
            self.c_after[ngram[:-1]][ngram[-1]] = count
        if config.smoothing == "kneser-ney":
            self._adjust()

    def walk(self, ids: Iterable[int]) -> Iterable[tuple[Ngram, int]]:
        """(context, token) at each place: the context is the last N - 1 tokens since `<s>`."""
        sentence: Ngram = (BOS,)
        for w in ids:
            yield sentence[max(0, len(sentence) - self.N + 1) :] if self.N > 1 else (), w
            sentence = (BOS,) if w == EOS else (*sentence, w)

    def probability(self, w: int, h: Ngram) -> float:
        if self.smoothing == "mle":
            while h not in self.c_after:
                h = h[1:]
            return self.c[(*h, w)] / sum(self.c_after[h].values())
        if self.smoothing == "add-k":
            return (self.c[(*h, w)] + self.k) / (sum(self.c_after[h].values()) + self.k * self.V)
        return self._kneser_ney(w, h)

    def _adjust(self) -> None:
        """a(w_1 .. w_n) and D for each order."""
        before: defaultdict[Ngram, set[Token]] = defaultdict(set)
        for ngram in self.c:
            before[ngram[1:]].add(ngram[0])
        self.a_after: defaultdict[Ngram, dict[Token, int]] = defaultdict(dict)  # [h][w] = a(h w)
        t: Counter[tuple[int, int]] = Counter()  # [n, j] n-grams with a = j
        for ngram, count in self.c.items():
            a = count if len(ngram) == self.N or ngram[0] == BOS else len(before[ngram])
            self.a_after[ngram[:-1]][ngram[-1]] = a
            t[len(ngram), a] += 1
        self.D = {n: plain_discounts([t[n, j] for j in range(5)]) for n in range(1, self.N + 1)}

    def _kneser_ney(self, w: int, h: Ngram) -> float:
        shorter = self._kneser_ney(w, h[1:]) if h else 1 / self.V
        after = self.a_after.get(h)
        if not after:
            return shorter
        D = self.D[len(h) + 1]
        total = sum(after.values())
        gamma = sum(D[min(a, 3)] for a in after.values()) / total
        a = after.get(w, 0)
        return (a - D[min(a, 3)]) / total + gamma * shorter


def plain_discounts(t: Sequence[int]) -> list[float]:
    """(0, D_1, D_2, D_3+) from t[j], the number of n-grams with adjusted count j."""
    if t[1] and t[2] and t[3]:
        y = t[1] / (t[1] + 2 * t[2])
        D = [j - (j + 1) * y * t[j + 1] / t[j] for j in (1, 2, 3)]
        if min(D) > 0:
            return [0.0, *D]
    return [0.0, *FALLBACK]
