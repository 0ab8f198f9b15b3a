"""How well a text is predicted from its two ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from regard.score.evaluate import Evaluation
from regard.score.measured import Figure, Measured


@dataclass(frozen=True)
class TwoWayEvaluation:
    """The score of every word given what stands before it, and given what stands after it; both of one text.

    >>> sizes = {"n_tokens": 4, "n_bytes": 8, "n_words": 4}
    >>> TwoWayEvaluation(Evaluation(nats=4.0, **sizes), Evaluation(nats=8.0, **sizes)).nats_per_token
    1.5
    """

    ahead: Evaluation
    back: Evaluation
    notes: tuple[str, ...] = field(default=())

    def parts(self) -> Iterator[tuple[str, Evaluation]]:
        yield from (("ahead", self.ahead), ("back", self.back))

    @property
    def nats_per_token(self) -> float:
        """The mean of both directions."""
        return (self.ahead.nats_per_token + self.back.nats_per_token) / 2

    @property
    def bits_per_byte(self) -> float:
        """The mean of both directions."""
        return (self.ahead.bits_per_byte + self.back.bits_per_byte) / 2

    def to_dict(self) -> dict[str, Any]:
        means = {"nats_per_token": self.nats_per_token, "bits_per_byte": self.bits_per_byte}
        return {**means, **{name: each.to_dict() for name, each in self.parts()}}

    def measure(self) -> Measured:
        return Measured(
            figures=(
                Figure("loss, nats a word", self.nats_per_token, 4),
                Figure("perplexity, read ahead", self.ahead.perplexity),
                Figure("perplexity, read back", self.back.perplexity),
                Figure("bits per byte", self.bits_per_byte, 4),
            ),
            headline="bits per byte",
            is_higher_better=False,
            counts={"tokens": self.ahead.n_tokens, "words": self.ahead.n_words, "bytes": self.ahead.n_bytes},
            notes=self.notes,
        )
