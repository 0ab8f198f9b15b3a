"""How well a text is predicted from its two ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from regard.score.evaluate import Evaluation
from regard.score.measured import Figure, Measured

LENIENT = ("bits_per_byte", "perplexity_per_word")
"""What a text's own length is held against: too good where unknown words cost no more than <unk> does."""


@dataclass(frozen=True)
class TwoWayEvaluation:
    """The score of every word given what stands before it, and given what stands after it; both of one text.

    A word that the model does not predict costs what <unk> does, which is easier to predict than the word is. So there
    are no bits per byte: they would compare with those of models that predict every byte.

    >>> sizes = {"n_tokens": 4, "n_bytes": 8, "n_words": 4}
    >>> found = TwoWayEvaluation(Evaluation(nats=4.0, **sizes), Evaluation(nats=8.0, **sizes), n_unknown=1)
    >>> found.nats_per_token, found.tell_unknown()
    (1.5, '1 of 4 words (25.0%) is none that it predicts, and counts as <unk>: compare with models that predict the same words alone.')
    """  # noqa: E501

    ahead: Evaluation
    back: Evaluation
    n_unknown: int = 0
    """Words that count as <unk>."""
    notes: tuple[str, ...] = field(default=())

    def parts(self) -> Iterator[tuple[str, Evaluation]]:
        yield from (("ahead", self.ahead), ("back", self.back))

    @property
    def nats_per_token(self) -> float:
        """The mean of both directions."""
        return (self.ahead.nats_per_token + self.back.nats_per_token) / 2

    def tell_unknown(self) -> str:
        """A sentence about the words that count as <unk>; empty where there are none."""
        if not self.n_unknown:
            return ""
        n, share = self.ahead.n_tokens, self.n_unknown / self.ahead.n_tokens
        are, count = ("is", "counts") if self.n_unknown == 1 else ("are", "count")
        return (
            f"{self.n_unknown:,} of {n:,} words ({share:.1%}) {are} none that it predicts, and {count} as <unk>: "
            "compare with models that predict the same words alone."
        )

    def to_dict(self) -> dict[str, Any]:
        each = {
            name: {key: value for key, value in part.to_dict().items() if key not in LENIENT}
            for name, part in self.parts()
        }
        return {"nats_per_token": self.nats_per_token, "n_unknown": self.n_unknown, **each}

    def measure(self) -> Measured:
        return Measured(
            figures=(
                Figure("loss, nats a word", self.nats_per_token, 4),
                Figure("perplexity, read ahead", self.ahead.perplexity),
                Figure("perplexity, read back", self.back.perplexity),
            ),
            headline="loss, nats a word",
            is_higher_better=False,
            counts={"words": self.ahead.n_tokens, "counted as <unk>": self.n_unknown, "bytes": self.ahead.n_bytes},
            notes=(*self.notes, *filter(None, (self.tell_unknown(),))),
        )
