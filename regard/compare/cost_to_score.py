"""What a validation score costs: the FLOPs and seconds that each contender had spent when it first had it."""

from __future__ import annotations

from collections.abc import Sequence

from regard.compare.result import CostToScore, CurvePoint
from regard.score.figures import linear_ticks

N_LEVELS = 5


def cost_to_score(
    curves: Sequence[Sequence[CurvePoint]], levels: Sequence[float] = (), *, is_upwards: bool
) -> tuple[CostToScore, ...]:
    """For the levels given, or for round ones, from the easiest on."""
    wanted = sorted(levels or round_levels(curves, is_upwards=is_upwards), reverse=not is_upwards)
    found = []
    for level in wanted:
        firsts = [first_at(curve, level, is_upwards=is_upwards) for curve in curves]
        found.append(
            CostToScore(
                level=level,
                flops=tuple(None if first is None else first.flops for first in firsts),
                seconds=tuple(None if first is None else first.seconds for first in firsts),
            )
        )
    return tuple(found)


def first_at(curve: Sequence[CurvePoint], level: float, *, is_upwards: bool) -> CurvePoint | None:
    """The first evaluation that is as good as `level`; None: there is none."""
    return next((p for p in curve if (p.score >= level if is_upwards else p.score <= level)), None)


def round_levels(curves: Sequence[Sequence[CurvePoint]], *, is_upwards: bool) -> list[float]:
    """Round scores from what the weakest reached soon to what only the best reached.

    The weakest ends at 20 and the best at 40, so the levels lie between 10 and 40:

    >>> def end(score): return [CurvePoint(step=1, tokens=1, flops=1.0, seconds=1.0, score=score, low=0.0, high=0.0)]
    >>> round_levels([end(20.0), end(40.0)], is_upwards=True)
    [10.0, 20.0, 30.0, 40.0]
    >>> round_levels([end(1.0), end(0.8)], is_upwards=False)
    [0.8, 0.9, 1.0, 1.1, 1.2, 1.3]
    """
    best = max if is_upwards else min
    ends = [best(point.score for point in curve) for curve in curves if curve]
    if not ends:
        return []
    low, high = (0.5 * min(ends), max(ends)) if is_upwards else (min(ends), 1.3 * max(ends))
    return linear_ticks(low, high, N_LEVELS) if high > low else []
