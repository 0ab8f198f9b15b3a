"""How a text is made."""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import RegardError
from regard.settings import Settings, setting


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
    beam: int | None = setting(None, "search for the most probable text with so many hypotheses, not sampling", low=1)
    seed: int = setting(0, "the same seed gives the same text", low=0)

    def check(self) -> None:
        picks = {"top_k": self.top_k, "top_p": self.top_p, "min_p": self.min_p}
        given = [name for name, value in picks.items() if value is not None]
        if self.beam is not None and given:
            raise RegardError(f"beam searches and does not sample: leave out {', '.join(given)}, or beam.")
