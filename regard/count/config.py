"""What an n-gram model is asked to be."""

from __future__ import annotations

from dataclasses import dataclass

from regard.settings import Settings, setting

SMOOTHINGS = ("kneser-ney", "add-k", "mle")


@dataclass(frozen=True, kw_only=True)
class NgramConfig(Settings):
    """P(w | the last order - 1 tokens), smoothed."""

    order: int = setting(5, "longest n-gram: a token is predicted from the order - 1 before it", low=1, high=7)
    smoothing: str = setting("kneser-ney", "how unseen n-grams get their share", choices=SMOOTHINGS)
    k: float = setting(0.1, "what add-k adds to every count; nothing else reads it", low=1e-9)
