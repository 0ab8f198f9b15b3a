"""The one budget that every contender gets: seconds, tokens, FLOPs or parameters, read from words like "2min"."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass

from regard.errors import RegardError
from regard.score.figures import count_text, duration_text

TOKENS_PER_PARAMETER = 20  # where only parameters are given: the ratio of Hoffmann et al. 2022

_SCALES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_SECONDS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hr": 3600, "hour": 3600}
_UNITS = {
    "token": "tokens",
    "tok": "tokens",
    "flop": "flops",
    "param": "parameters",
    "parameter": "parameters",
    **dict.fromkeys(_SECONDS, "seconds"),
}
_PART = re.compile(r"\s*([0-9][0-9_]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z ]*)")
_ALLOWED = 'Write it like "2min", "90s", "5Mtokens", "1e15flops" or "1Mparams"; join two with a comma.'


@dataclass(frozen=True)
class Budget:
    """What stops training, per contender and seed; `n_parameters` is the size that all are matched to.

    >>> parse_budget("2min")
    Budget(seconds=120.0, tokens=None, flops=None, n_parameters=None)
    >>> str(parse_budget("1Mparams, 5M tokens"))
    '5M tokens, 1M parameters'
    """

    seconds: float | None = None
    tokens: int | None = None
    flops: float | None = None
    n_parameters: int | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "tokens", "flops", "n_parameters"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise RegardError(f"A budget must be more than nothing, not {value:g} {name}. {_ALLOWED}")

    @property
    def has_stop(self) -> bool:
        return not (self.seconds is None and self.tokens is None and self.flops is None)

    def with_stop(self, n_parameters: int) -> Budget:
        """This budget, with 20 tokens a parameter as the stopping rule where none was given."""
        if self.has_stop:
            return self
        return Budget(tokens=TOKENS_PER_PARAMETER * n_parameters, n_parameters=self.n_parameters)

    def max_tokens(self, flops_per_token: float) -> int | None:
        """Training tokens for a model of this cost (forward and backward); None where tokens are not limited."""
        limits = [] if self.tokens is None else [self.tokens]
        if self.flops is not None and flops_per_token > 0:
            limits.append(max(1, int(self.flops / flops_per_token)))
        return min(limits) if limits else None

    def to_dict(self) -> dict[str, float]:
        """The limits that are set, to the last digit."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        parts = [
            None if self.seconds is None else duration_text(self.seconds),
            None if self.tokens is None else f"{count_text(self.tokens)} tokens",
            None if self.flops is None else f"{self.flops:.3g} FLOPs",
            None if self.n_parameters is None else f"{count_text(self.n_parameters)} parameters",
        ]
        return ", ".join(p for p in parts if p is not None)


def parse_budget(text: str) -> Budget:
    """Read a budget; several limits may be joined by commas, and the first one reached stops training."""
    found: dict[str, float] = {}
    for part in text.replace(" and ", ",").split(","):
        kind, value = _parse_part(part, text)
        if kind in found:
            raise RegardError(f"The budget '{text}' gives {kind} twice. {_ALLOWED}")
        found[kind] = value
    tokens, n_parameters = found.get("tokens"), found.get("parameters")
    return Budget(
        seconds=found.get("seconds"),
        tokens=None if tokens is None else round(tokens),
        flops=found.get("flops"),
        n_parameters=None if n_parameters is None else round(n_parameters),
    )


def _parse_part(part: str, whole: str) -> tuple[str, float]:
    match = _PART.fullmatch(part)
    if match is None:
        raise RegardError(f"The budget '{whole}' could not be read. {_ALLOWED}")
    number, word = float(match[1]), match[2].replace(" ", "")
    for scale in ("", *{k for k in _SCALES if k and word.startswith(k)}):  # "min" is a unit before "M" is a scale
        unit = word[len(scale) :]
        unit = unit if len(unit) < 2 else unit.lower().removesuffix("s")  # 5M is no number of minutes
        if unit in _UNITS:
            kind = _UNITS[unit]
            value = number * _SCALES[scale] * (_SECONDS[unit] if kind == "seconds" else 1)
            if not math.isfinite(value):
                raise RegardError(f"The budget '{whole}' is too large to be a number. {_ALLOWED}")
            return kind, value
    what = f"the unit '{word}' is unknown" if word else "it has no unit"
    raise RegardError(f"The budget '{whole}' could not be read: {what}. {_ALLOWED}")
