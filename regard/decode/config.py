"""How a text is made."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from regard.errors import RegardError
from regard.settings import Settings, setting

MAX_BEAM = 10_000  # every hypothesis has a state of its own in memory


@dataclass(frozen=True, kw_only=True)
class SamplingConfig(Settings):
    """Which of the likely next tokens is taken."""

    temperature: float = setting(1.0, "below 1 sharpens the distribution, above 1 flattens it; 0 is greedy", low=0.0)
    top_k: int | None = setting(None, "only the k most probable tokens", low=1)
    top_p: float | None = setting(None, "only the fewest tokens that hold this probability", low=0.0, high=1.0)
    min_p: float | None = setting(
        None, "only tokens with this share of the most probable one's probability", low=0.0, high=1.0
    )
    max_tokens: int = setting(200, "new tokens at most", low=1)
    beam: int | None = setting(
        None, "search for the most probable text with so many hypotheses, not sampling", low=1, high=MAX_BEAM
    )
    seed: int = setting(0, "the same seed gives the same text", low=0)

    def check(self) -> None:
        picks = {"top_k": self.top_k, "top_p": self.top_p, "min_p": self.min_p}
        given = [name for name, value in picks.items() if value is not None]
        if self.beam is not None and given:
            raise RegardError(f"beam searches and does not sample: leave out {', '.join(given)}, or beam.")


LENGTH_PENALTIES = ("none", "length", "wu")
MAX_RATIO = 3.0
"""Where nothing else limits a text it has at most so many tokens for each of its source, and ten more."""


@dataclass(frozen=True, kw_only=True)
class BeamConfig(Settings):
    """How the most probable text is searched for. Lengths are in tokens and count the one that ends a text."""

    beam: int = setting(5, "hypotheses kept at every length; 1 is greedy", low=1, high=MAX_BEAM)
    n_best: int | None = setting(1, "how many texts are wanted for each source; null: all that the search met", low=1)
    length_penalty: str = setting(
        "length",
        "what log P is divided by: 1, L^alpha, or ((5 + L) / 6)^alpha as in Wu et al. (2016)",
        choices=LENGTH_PENALTIES,
    )
    alpha: float = setting(
        1.0, "how much the length counts: 0 not at all, more favours longer texts", low=0.0, high=20.0
    )
    max_length: int | None = setting(None, "the longest text; null: max_ratio and max_extra alone limit it", low=1)
    max_ratio: float | None = setting(
        None,
        f"the longest text as a multiple of its source; null: no such limit, or {MAX_RATIO:g} if max_length is null",
        low=0.0,
    )
    max_extra: int = setting(10, "tokens that max_ratio allows beyond the multiple", low=0)
    min_length: int = setting(1, "the shortest text", low=1)
    no_repeat_ngram: int | None = setting(None, "block repeated n-grams of this length", low=1)

    def check(self) -> None:
        if self.max_length is not None and self.min_length > self.max_length:
            raise RegardError(
                f"min_length {self.min_length} is above max_length {self.max_length}, which allows no text. Lower the "
                "one or raise the other."
            )

    def notes(self) -> list[str]:
        if self.length_penalty == "none" and self.alpha != 1.0:
            return ["alpha changes nothing where length_penalty is none."]
        return []

    def max_lengths(self, source_lengths: Iterable[int]) -> list[int]:
        """The longest text for each source: min(max_length, max_ratio S + max_extra), 1 at least.

        >>> BeamConfig(max_length=50, max_ratio=1.5, max_extra=4).max_lengths([2, 7, 100])
        [7, 14, 50]
        """
        if self.max_ratio is None and self.max_length is not None:
            return [self.max_length for _ in source_lengths]
        ratio = MAX_RATIO if self.max_ratio is None else self.max_ratio
        longest = math.inf if self.max_length is None else self.max_length
        return [max(1, int(min(longest, int(ratio * S) + self.max_extra))) for S in source_lengths]

    def penalty(self, length: int) -> float:
        """What the log-probability of a text of this length is divided by; it never falls as texts grow.

        >>> BeamConfig(alpha=2.0).penalty(3), BeamConfig(length_penalty="wu", alpha=2.0).penalty(7)
        (9.0, 4.0)
        """
        if self.length_penalty == "none":
            return 1.0
        return math.pow(length if self.length_penalty == "length" else (5 + length) / 6, self.alpha)


def search_trees(*, n_best: int = 1, beam: int | None = None, **more: Any) -> dict[str, Any]:
    """The settings of a search for the `n_best` trees of a sentence.

    Where several are wanted they are ranked by their probability, whatever their length, and the beam is twice as wide
    as they are many, unless it is given.
    """
    if n_best == 1:
        return more | ({} if beam is None else {"beam": beam})
    if beam is not None and n_best > beam:
        raise RegardError(
            f"--n-best {n_best} of a search that keeps {beam}: make --beam {n_best} at least, or leave it out."
        )
    return {"length_penalty": "none", "beam": beam or max(5, 2 * n_best), "n_best": n_best} | more
