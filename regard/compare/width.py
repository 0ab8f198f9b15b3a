"""Depths and widths that give every contender the same number of parameters.

The number of parameters grows with the width, so the width is found by bisection on models that are built on the
"meta" device: shapes without numbers, which cost nothing. Width moves in steps (heads must share it), so where a model
has an inner width too (`d_ff`, `d_hidden`), that one closes the rest of the gap.

The number of layers comes first, and from the size alone (`choose_depth`), so that it favours nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from regard.errors import RegardError
from regard.models.table import model_config, model_entry
from regard.score.figures import count_text
from regard.settings import Settings

TOLERANCE = 0.02
MAX_WIDTH = 2**13
DEPTHS = ((2_000_000, 2), (10_000_000, 4), (50_000_000, 6), (200_000_000, 12))
"""From so many parameters on, so many layers; one below. Convolutions see little each and have twice as many.

Up to 1M parameters one layer beats two for every model, by 0.02 to 0.07 bits per byte; at 4M both are level
(docs/defaults.md).
"""
N_WINDOW = 5
"""The words that a fixed window sees below 2M parameters: more would leave little width (Bengio et al. 2003: 5)."""

Count = Callable[[Settings], int]
"""How many parameters a model with these settings has."""


@dataclass(frozen=True)
class Matched:
    """A config and its size; `note` is empty where the size is within 2% of what was asked for."""

    config: Settings
    n_parameters: int | None
    note: str


def choose_depth(n_parameters: int) -> int:
    """The number of layers of a model of this size.

    >>> [choose_depth(n) for n in (300_000, 1_000_000, 4_000_000, 10_000_000, 124_000_000)]
    [1, 1, 2, 4, 6]
    """
    return max((n_layers for least, n_layers in DEPTHS if n_parameters >= least), default=1)


def with_depth(name: str, given: Mapping[str, Any], n_parameters: int) -> dict[str, Any]:
    """The settings `given`, with the number of layers for this size where nobody has chosen one."""
    default, n_layers = model_config(name).to_dict(), choose_depth(n_parameters)
    if name == "window":
        return {"n_window": N_WINDOW, **given} if n_layers == 1 else dict(given)
    if "n_layers" not in default or "size" in given:
        return dict(given)
    return {"n_layers": 2 * n_layers if name == "convolution" else n_layers, **given}


def match_width(name: str, given: Mapping[str, Any], target: int, count: Count) -> Matched:
    """The model called `name` with the settings `given`, and every width left open chosen so that it has `target`."""
    if model_entry(name).is_counted:
        note = "as many n-grams as the text holds; cannot be matched"
        return Matched(model_config(name, given), None, note)
    default = model_config(name, {key: given[key] for key in given if key == "size"}).fill_in().to_dict()
    # A recurrent stack whose d_hidden is null keeps one width, and with it the one call of the fused kernel.
    open_widths = [f for f in ("d_ff", "d_hidden") if f in default and f not in given]
    inner = next((f for f in open_widths if f == "d_ff" or default[f] is not None), None)
    if inner is not None and count(model_config(name, {**given, inner: 8})) == count(
        model_config(name, {**given, inner: 16})
    ):
        inner = None  # the parts that are chosen have no such layer
    if "d_model" in given and inner is None:
        config = model_config(name, given)
        return _note_gap(config, count(config), target, "its widths were set by hand")
    best: Matched | None = None
    for n_heads in _heads_to_try(default, given):
        settings = dict(given) if n_heads in (None, default.get("n_heads")) else {**given, "n_heads": n_heads}
        try:
            found = _solve(name, settings, target, count, default, inner, n_heads or 1)
        except RegardError:
            if best is None:
                raise
            break  # a width that the model does not take, such as an odd one
        if best is None or _distance(found, target) < _distance(best, target):
            best = found
        if _distance(best, target) <= TOLERANCE:
            break
    assert best is not None
    return best


def largest(is_small_enough: Callable[[int], bool], low: int, high: int) -> int:
    """The largest n in [low, high] for which it holds; `low` where it holds for none. It must hold up to some n only.

    >>> largest(lambda n: n * n <= 50, 1, 100)
    7
    """
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_small_enough(middle) else (low, middle - 1)
    return low


def _heads_to_try(default: Mapping[str, Any], given: Mapping[str, Any]) -> list[int | None]:
    """The number of heads given; else the default, then halves of it, which allow finer widths."""
    if "n_heads" not in default:
        return [None]
    if "n_heads" in given:
        return [int(given["n_heads"])]
    heads = int(default["n_heads"])
    return [heads >> k for k in range(heads.bit_length()) if heads >> k]


def _solve(
    name: str,
    given: Mapping[str, Any],
    target: int,
    count: Count,
    default: Mapping[str, Any],
    inner: str | None,
    step: int,
) -> Matched:
    ratio = None if inner is None or default[inner] is None else default[inner] / default["d_model"]

    def config(width: int | None, inside: int | None = None) -> Settings:
        chosen = dict(given) if width is None else {**given, "d_model": width}
        if inner is not None and inside is not None:
            chosen[inner] = inside
        elif inner is not None and ratio is not None and width is not None:
            chosen[inner] = max(1, round(ratio * width))
        return model_config(name, chosen)

    @cache
    def size(width: int | None, inside: int | None = None) -> int:
        return count(config(width, inside))

    width: int | None = None
    if "d_model" not in given:
        k = largest(lambda k: size(k * step) <= target, 1, MAX_WIDTH // step)
        width = min((k * step, (k + 1) * step), key=lambda w: abs(size(w) - target))
        if size(step, 1 if inner else None) > target * (1 + TOLERANCE):
            raise RegardError(
                f"'{name}' cannot have {count_text(target)} parameters with this vocabulary: at width {step} it has "
                f"{size(step):,}. Raise the number of parameters, or use a smaller vocabulary."
            )
    if inner is None:
        return _note_gap(config(width), size(width), target, "no width comes closer")
    m = largest(lambda m: size(width, m) <= target, 1, MAX_WIDTH)
    inside = min((m, m + 1), key=lambda w: abs(size(width, w) - target))
    reason = "no width comes closer" if width is not None else "d_model was set by hand"
    return _note_gap(config(width, inside), size(width, inside), target, reason)


def _note_gap(config: Settings, n: int, target: int, reason: str) -> Matched:
    gap = n / target - 1
    return Matched(config, n, "" if abs(gap) <= TOLERANCE else f"{gap:+.0%} off the target; {reason}")


def _distance(found: Matched, target: int) -> float:
    return abs((found.n_parameters or 0) / target - 1)
