"""Word alignments: read, taken from attention, and scored (Och & Ney 2003).

A link (s, t) says that word s of the source and word t of the target mean the same, both counted from 0. In the Pharaoh
form a sentence is a line such as `0-0 1-2 2p1`; p marks a link that is possible but not sure.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from regard.data.reading import BadLine, read_lines
from regard.errors import MissingTextError, RegardError

Link = tuple[int, int]
_LINK = re.compile(r"(\d{1,9})([-p?])(\d{1,9})", re.ASCII)


@dataclass(frozen=True)
class Alignment:
    """The links of one sentence. Every sure link is possible as well.

    >>> str(Alignment.of("1?1 0-0"))
    '0-0 1p1'
    """

    sure: frozenset[Link]
    possible: frozenset[Link] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "possible", self.possible | self.sure)

    @classmethod
    def of(cls, text: str, where: str = "The alignment") -> Alignment:
        """Of the Pharaoh form; `where` is what the text is called in errors."""
        kinds: dict[str, set[Link]] = {"-": set(), "p": set(), "?": set()}
        for part in text.split():
            found = _LINK.fullmatch(part)
            if not found:
                raise RegardError(
                    f"{where}: '{part[:40]}' is no link. Write the source's word, - (sure) or p (possible), and the "
                    "target's word, counted from 0, such as 0-1."
                )
            kinds[found[2]].add((int(found[1]), int(found[3])))
        return cls(frozenset(kinds["-"]), frozenset(kinds["p"] | kinds["?"]))

    def __str__(self) -> str:
        return " ".join(f"{s}{'-' if (s, t) in self.sure else 'p'}{t}" for s, t in sorted(self.possible))

    def check(self, n_source: int, n_target: int, where: str = "The alignment") -> None:
        """Refuse links to words that a sentence does not have."""
        for s, t in sorted(self.possible):
            if s >= n_source or t >= n_target:
                raise RegardError(
                    f"{where}: the link {s}-{t} leaves the sentence, which has {n_source} source and {n_target} target "
                    "words, counted from 0. Do the lines of the files belong together?"
                )


def read_alignments(path: Path | str) -> list[Alignment]:
    """A sentence a line; an empty line is a sentence in which nothing is aligned."""
    path = Path(path)
    if not path.exists():
        raise MissingTextError(f"There is no file of alignments at {path}.")
    found = []
    for number, line in enumerate(read_lines(path, str(path)), start=1):
        if isinstance(line, BadLine):
            raise RegardError(f"{path}, line {number} {line.why}")
        found.append(Alignment.of(line, f"{path}, line {number}"))
    return found


def word_weights(
    weights: Float[np.ndarray, "T S"], target_words: Sequence[int | None], source_words: Sequence[int | None]
) -> Float[np.ndarray, "W U"]:
    """Attention between tokens as attention between words: (target words, source words).

        a[w, u] = mean over the tokens t of w of (sum over the tokens s of u of weights[t, s])

    A word of many pieces is looked at as much as all its pieces are, and looks as its pieces do on average. The two
    lists give the word of every token, None for what belongs to no word, such as <eos>.

    >>> word_weights(np.array([[0.25, 0.25, 0.5], [0.75, 0.25, 0.0]]), [0, 0], [0, 0, 1])
    array([[0.75, 0.25]])
    """
    if weights.shape != (len(target_words), len(source_words)):
        raise RegardError(
            f"The weights are {' x '.join(map(str, weights.shape))}, but words are given for {len(target_words)} "
            f"target and {len(source_words)} source tokens: give one row a target token, one column a source token."
        )
    rows, columns = _belongs(target_words), _belongs(source_words)
    averages = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
    words: Float[np.ndarray, "W U"] = averages @ weights @ columns.T
    return words


def hard_alignment(weights: Float[np.ndarray, "W U"]) -> Alignment:
    """Every target word with the source word it looks at most, where it looks at any; of equal ones the first.

    >>> str(hard_alignment(np.array([[0.1, 0.9], [0.6, 0.4], [0.0, 0.0]])))
    '0-1 1-0'
    """
    if not weights.size:
        return Alignment(frozenset())
    best = weights.argmax(axis=1)
    return Alignment(frozenset((int(s), t) for t, s in enumerate(best) if weights[t, s] > 0))


@dataclass(frozen=True, kw_only=True)
class AlignmentScore:
    """Links A against sure ones S and possible ones P ⊇ S, counted over all sentences (Och & Ney 2003).

    precision = |A ∩ P| / |A|,   recall = |A ∩ S| / |S|,   error rate = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
    """

    n_links: int
    n_sure: int
    n_right_sure: int
    n_right_possible: int
    n_sentences: int

    @property
    def precision(self) -> float:
        return self.n_right_possible / self.n_links if self.n_links else 0.0

    @property
    def recall(self) -> float:
        return self.n_right_sure / self.n_sure if self.n_sure else 0.0

    @property
    def error_rate(self) -> float:
        """0 where there is nothing to find and nothing was found."""
        total = self.n_links + self.n_sure
        return 1 - (self.n_right_sure + self.n_right_possible) / total if total else 0.0

    def to_dict(self) -> dict[str, Any]:
        shares = {"precision": self.precision, "recall": self.recall, "error_rate": self.error_rate}
        return dataclasses.asdict(self) | shares

    def __str__(self) -> str:
        return (
            f"alignment error rate {self.error_rate:.3f} (precision {self.precision:.3f}, recall {self.recall:.3f}, "
            f"{self.n_sentences:,} sentences)"
        )


def alignment_error_rate(found: Sequence[Alignment], gold: Sequence[Alignment]) -> AlignmentScore:
    """Score alignments, all of whose links count as claimed, against gold ones of the same sentences."""
    same_sentences(len(found), len(gold))
    pairs = [(a.possible, g) for a, g in zip(found, gold, strict=True)]
    return AlignmentScore(
        n_links=sum(len(links) for links, _ in pairs),
        n_sure=sum(len(g.sure) for _, g in pairs),
        n_right_sure=sum(len(links & g.sure) for links, g in pairs),
        n_right_possible=sum(len(links & g.possible) for links, g in pairs),
        n_sentences=len(gold),
    )


def same_sentences(n_found: int, n_gold: int) -> None:
    """Refuse to score alignments of other sentences than the gold ones are of."""
    if n_found != n_gold:
        raise RegardError(f"{n_found:,} sentences are aligned, but {n_gold:,} have gold links: give the same ones.")
    if not n_gold:
        raise RegardError("There is nothing to score: no alignment was given. Give at least one sentence.")


def _belongs(words: Sequence[int | None]) -> Float[np.ndarray, "W T"]:
    """1 where a token (column) is a piece of a word (row)."""
    n_words = 1 + max((word for word in words if word is not None), default=-1)
    return np.array([[float(word == w) for word in words] for w in range(n_words)]).reshape(n_words, len(words))
