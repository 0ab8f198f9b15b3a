"""A text with what each of its tokens cost: nats = -log p(token | what stands before it)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.score.frames import import_pandas


@dataclass(frozen=True)
class ScoredToken:
    """One token: the characters of the text it stands for, and its surprise."""

    text: str
    nats: float


@dataclass(frozen=True)
class Scored:
    """A scored document. The last token may be the end of the text, whose text is empty.

    >>> scored = Scored("ab\\nc", (ScoredToken("ab", 2.0), ScoredToken("\\n", 0.5), ScoredToken("c", 1.0)))
    >>> scored.total
    3.5
    >>> [part["nats"] for part in scored.parts("line")]
    [2.5, 1.0]
    """

    text: str
    tokens: tuple[ScoredToken, ...]

    @property
    def nats(self) -> np.ndarray:
        return np.array([t.nats for t in self.tokens])

    @property
    def total(self) -> float:
        return math.fsum(t.nats for t in self.tokens)

    @property
    def log_probability(self) -> float:
        """In nats: of the whole text, its end included."""
        return -self.total

    @property
    def n_bytes(self) -> int:
        return len(self.text.encode("utf-8"))

    @property
    def bits_per_byte(self) -> float:
        return self.total / math.log(2) / max(self.n_bytes, 1)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for every token: its text, nats and bits."""
        pandas = import_pandas()
        rows = {"text": [t.text for t in self.tokens], "nats": self.nats, "bits": self.nats / math.log(2)}
        return pandas.DataFrame(rows)

    def _repr_html_(self) -> str:
        """The text, each token the redder the more surprising it was: what a notebook shows."""
        spans = (
            f'<span title="{t.nats / math.log(2):.1f} bits" '
            f'style="background:rgba(214,69,65,{min(t.nats / math.log(2) / 16, 0.8):.2f})">{escape(t.text)}</span>'
            for t in self.tokens
        )
        return f'<pre style="white-space:pre-wrap">{"".join(spans)}</pre>'

    def parts(self, by: str) -> Iterator[dict[str, Any]]:
        """The score cut by `token`, `line` or `document`, as plain values.

        A token counts for the line on which it begins; a line on which none begins has no tokens and costs nothing.
        """
        if by not in ("token", "line", "document"):
            raise RegardError(f"--by takes token, line or document, not '{by}'.")
        if by == "document":
            yield {"text": self.text, "nats": self.total, "tokens": len(self.tokens)}
        elif by == "token":
            yield from ({"text": t.text, "nats": t.nats} for t in self.tokens)
        else:
            yield from self._lines()

    def _lines(self) -> Iterator[dict[str, Any]]:
        lines = self.text.removesuffix("\n").split("\n")
        nats: list[list[float]] = [[] for _ in lines]
        at = 0
        for token in self.tokens:
            nats[min(at, len(lines) - 1)].append(token.nats)  # the end of the text belongs to its last line
            at += token.text.count("\n")
        for line, costs in zip(lines, nats, strict=True):
            yield {"text": line, "nats": math.fsum(costs), "tokens": len(costs)}


def join_tokens(text: str, spans: Sequence[tuple[int, int]], nats: np.ndarray) -> Scored:
    """Give every token the characters from its start to the next token's start, so that no character is lost.

    Tokenizers leave out white space or cut characters into bytes; the picture of a text must not.
    """
    starts = [start for start, _ in spans]
    tokens = []
    for i, start in enumerate(starts):
        begin = 0 if i == 0 else start
        end = starts[i + 1] if i + 1 < len(starts) else len(text)
        tokens.append(ScoredToken(text[begin : max(begin, end)], float(nats[i])))
    tokens.extend(ScoredToken("", float(n)) for n in nats[len(starts) :])
    return Scored(text, tuple(tokens))
