"""The one budget that every contender gets: FLOPs or tokens, read from words like "1e14flops"; or seconds.

A time such as "2min" is a wish: it is turned into FLOPs by the speed of this machine (`regard/compare/pace.py`), so
that all contenders get the same work and the result can be had again elsewhere. A budget in seconds of the clock is
another thing: it gives more work to whoever runs while the machine is quiet.
"""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, replace

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
    **dict.fromkeys(_SECONDS, "wished_seconds"),
}
_PART = re.compile(r"\s*([0-9][0-9_]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z ]*)")
_ALLOWED = 'Write it like "2min", "90s", "5Mtokens", "1e15flops" or "1Mparams"; join two with a comma.'


@dataclass(frozen=True)
class Budget:
    """What stops training, per contender and seed; `n_parameters` is the size that all are matched to.

    >>> parse_budget("2min")
    Budget(wished_seconds=120.0, seconds=None, tokens=None, flops=None, n_parameters=None)
    >>> str(parse_budget("1Mparams, 5M tokens"))
    '5M tokens, 1M parameters'
    """

    wished_seconds: float | None = None
    """About how long a training is to take on this machine; stops nothing, and becomes FLOPs."""
    seconds: float | None = None
    """Of the clock."""
    tokens: int | None = None
    flops: float | None = None
    n_parameters: int | None = None

    def __post_init__(self) -> None:
        for name, value in self.to_dict().items():
            if not value > 0:
                unit = name.removeprefix("wished_")
                raise RegardError(f"A budget must be more than nothing, not {value:g} {unit}. {_ALLOWED}")

    @property
    def is_wish(self) -> bool:
        """Whether it says how long a training takes, and not yet how many FLOPs that are."""
        return self.wished_seconds is not None and self.flops is None

    def with_stop(self, n_parameters: int) -> Budget:
        """This budget, with 20 tokens a parameter as the stopping rule where none was given."""
        if any(name != "n_parameters" for name in self.to_dict()):
            return self
        return replace(self, tokens=TOKENS_PER_PARAMETER * n_parameters)

    def with_flops(self, flops: float) -> Budget:
        """The wish come true; two digits are all that a short measurement gives, and all that one has to type."""
        return replace(self, flops=float(f"{flops:.2g}"))

    def max_tokens(self, flops_per_token: float) -> int | None:
        """Training tokens for a model of this cost (forward and backward); None where tokens are not limited."""
        limits = [] if self.tokens is None else [self.tokens]
        if self.flops is not None and flops_per_token > 0:
            limits.append(max(1, int(self.flops / flops_per_token)))
        return min(limits) if limits else None

    def to_dict(self) -> dict[str, float]:
        """The limits that are set, to the last digit."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def words(self) -> list[str]:
        """What one types for the same budget on another machine.

        >>> parse_budget("1min").with_flops(7.612e11).words(), Budget(seconds=90.0, tokens=1234567).words()
        (['--budget', '7.6e11flops'], ['--budget', '1234567tokens', '--seconds', '90'])
        """
        given = {"s": self.wished_seconds if self.is_wish else None, "tokens": self.tokens, "flops": self.flops}
        limits = ",".join(f"{_exact_text(number)}{unit}" for unit, number in given.items() if number is not None)
        seconds = [] if self.seconds is None else ["--seconds", _exact_text(self.seconds)]
        return [*(["--budget", limits] if limits else []), *seconds]

    def __str__(self) -> str:
        return self.describe()

    def describe(self, unit: str = "token") -> str:
        """In words; `unit` is what a training counts, where that are no tokens.

        >>> Budget(tokens=5000).describe("example")
        '5k examples'
        """
        parts = [
            None if not self.is_wish else f"about {duration_text(self.wished_seconds or 0)} on this machine",
            None if self.seconds is None else f"{duration_text(self.seconds)} of the clock",
            None if self.tokens is None else f"{count_text(self.tokens)} {unit}s",
            None if self.flops is None else f"{_exact_text(self.flops)} FLOPs",
            None if self.n_parameters is None else f"{count_text(self.n_parameters)} parameters",
        ]
        return ", ".join(p for p in parts if p is not None)


def _exact_text(number: float) -> str:
    """A number as short as it can be written without losing a digit.

    >>> _exact_text(7.6e11), _exact_text(1234567), _exact_text(0.5)
    ('7.6e11', '1234567', '0.5')
    """
    short = f"{number:g}"
    return (short if float(short) == number else repr(number)).replace("e+0", "e").replace("e+", "e")


def parse_budget(text: str) -> Budget:
    """Read a budget; several limits may be joined by commas, and the first one reached stops training."""
    found: dict[str, float] = {}
    for part in text.replace(" and ", ",").split(","):
        kind, value = _parse_part(part, text)
        if kind in found:
            raise RegardError(f"The budget '{text}' gives {kind.removeprefix('wished_')} twice. {_ALLOWED}")
        found[kind] = value
    if "wished_seconds" in found and "flops" in found:
        raise RegardError(f"The budget '{text}' gives a time and FLOPs, and a time becomes FLOPs: give one of them.")
    tokens, n_parameters = found.get("tokens"), found.get("parameters")
    return Budget(
        wished_seconds=found.get("wished_seconds"),
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
        unit = unit if len(unit) < 3 else unit.lower().removesuffix("s")  # 5M and 5ms are no minutes
        if unit in _UNITS:
            kind = _UNITS[unit]
            value = number * _SCALES[scale] * _SECONDS.get(unit, 1)
            if not math.isfinite(value):
                raise RegardError(f"The budget '{whole}' is too large to be a number. {_ALLOWED}")
            return kind, value
    what = f"the unit '{word}' is unknown" if word else "it has no unit"
    raise RegardError(f"The budget '{whole}' could not be read: {what}. {_ALLOWED}")
