"""Line charts as SVG text: drawn here rather than by a script, so that they print, scale and need no network."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from statistics import fmean

from regard.report.palette import Look
from regard.score.figures import linear_ticks

Point = tuple[float, float]

MANY = 8  # lines from which on their ends need the room that their beginnings take
SPACING = 16.0  # pixels from one name to the next
PHONE = 500  # pixels: a chart that is not as wide has little room for names
MAX_NAME, MAX_NAME_ON_PHONE = 22, 14  # characters
WIDTHS = (("wide", 1040, 440), ("narrow", 372, 320))  # for a screen and for a phone; the style sheet shows one


@dataclass(frozen=True)
class Series:
    """One line. `band` holds (x, low, high); a line without a single x above zero is drawn level, as a reference."""

    name: str
    look: Look
    points: Sequence[Point]
    band: Sequence[tuple[float, float, float]] = ()


@dataclass(frozen=True, kw_only=True)
class Plot:
    """What a chart says beside its lines.

    `y_text` writes a value in a tip, `tick_text` one beside a logarithmic y-axis (None: as in a tip). `measured_at` are
    the few x that were measured: these are marked on the axis and dotted on the lines. Two plots that are to be
    compared are given the same limits.
    """

    title: str
    x_label: str
    y_label: str
    x_text: Callable[[float], str]
    x_limits: tuple[float, float]
    y_limits: tuple[float, float]
    is_x_log: bool = True
    is_y_log: bool = False
    y_text: Callable[[float], str] = "{:.3f}".format
    tick_text: Callable[[float], str] | None = None
    measured_at: Sequence[float] = ()


@dataclass(frozen=True)
class Frame:
    """Where a plot lies in its picture, and how data become pixels.

    What a logarithmic y-axis has no place for, zero, lies below the picture: a line that falls to it falls out.
    """

    plot: Plot
    width: int
    height: int
    left: int
    margin: int
    """At the right, for the names of the lines."""
    top: int = 14

    @property
    def right(self) -> int:
        return self.width - self.margin

    @property
    def bottom(self) -> int:
        return self.height - 44

    def x(self, value: float) -> float:
        share = _share(value, *self.plot.x_limits, self.plot.is_x_log)
        return self.left + share * (self.right - self.left)

    def y(self, value: float) -> float:
        is_log = self.plot.is_y_log
        share = _share(value, *self.plot.y_limits, is_log) if value > 0 or not is_log else -1.0
        return self.bottom - share * (self.bottom - self.top)

    def shown(self, series: Series) -> list[Point]:
        """The points that the x-axis has a place for."""
        return [(x, y) for x, y in series.points if x > 0 or not self.plot.is_x_log]


def _share(value: float, low: float, high: float, is_log: bool) -> float:
    """How far `value` is on the way from `low` to `high`."""
    return math.log(value / low) / math.log(high / low) if is_log else (value - low) / (high - low)


def line_chart(series: Sequence[Series], plot: Plot, width: int, height: int) -> str:
    """The chart as one `<svg>`; lines are labelled at their ends, so that no legend is needed."""
    ticks = y_ticks(*plot.y_limits, plot.is_y_log, plot.tick_text or plot.y_text)
    left = max(52, 30 + 7 * max((len(text) for _, text in ticks), default=0))  # the axis' label stands before them
    longest = max((len(s.name) for s in series), default=0)
    margin = 118 if width < PHONE else max(118, 24 + 8 * min(longest, MAX_NAME))
    frame = Frame(plot, width, height, left, margin)
    clip = f"clip-{zlib.crc32(f'{plot.title} {width}'.encode()):08x}"
    lines = (f'<g data-series="{k}">{_line(s, frame)}</g>' for k, s in enumerate(series))
    return "\n".join(
        [
            f'<svg class="chart" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
            f'aria-label="{escape(plot.title)}">',
            f'<clipPath id="{clip}"><rect x="{frame.left}" y="{frame.top - 6}" '
            f'width="{frame.right - frame.left + 4}" height="{frame.bottom - frame.top + 10}"/></clipPath>',
            _axes(frame, ticks),
            f'<g clip-path="url(#{clip})">',
            *lines,
            "</g>",
            _end_labels(series, frame),
            "</svg>",
        ]
    )


def charts_for_screen_and_phone(series: Sequence[Series], plot: Plot) -> str:
    """The chart at two widths; the style sheet shows the one that fits the window."""
    return "".join(
        f'<div class="{kind}">{line_chart(series, plot, width, height)}</div>' for kind, width, height in WIDTHS
    )


def x_range(series: Sequence[Series]) -> tuple[float, float]:
    """From the first to the last x, but no more than 300-fold, as long as the end of every line is in the picture."""
    columns = [xs for s in series if (xs := [x for x, _ in s.points if x > 0])]
    if not columns:
        return 1.0, 10.0
    high = max(max(xs) for xs in columns)
    low = max(min(min(xs) for xs in columns), min(high / 300, *(0.8 * max(xs) for xs in columns)))
    return (low, high) if high > low * 1.01 else (low / 2, high * 2)


def curve_range(series: Sequence[Series]) -> tuple[float, float]:
    """A y-range that shows where the lines end; the steep fall at the start may leave the picture at the top.

    Where many end close together, little room is left for how they began.
    """
    finals = [s.points[-1][1] for s in series if s.points]
    lows = [min(y for _, y in s.points) for s in series if s.points]
    highs = [max(y for _, y in s.points) for s in series if s.points]
    if not finals:
        return 0.0, 1.0
    spread = max(max(finals) - min(lows), 0.15)
    room = max(0.3, (1.4 if len(finals) <= MANY else 0.5) * spread)
    return min(lows) - 0.06 * spread, min(max(highs), max(finals) + room) + 0.04 * spread


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Round values 1, 2, 5 x 10^k inside [low, high], thinned to at most `most`.

    >>> log_ticks(90, 1200, 5)
    [100.0, 200.0, 500.0, 1000.0]
    """
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    for steps in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        ticks = [m * 10.0**k for k in decades for m in steps if low * 0.999 <= m * 10.0**k <= high * 1.001]
        if len(ticks) <= most:
            return ticks
    return ticks[:: math.ceil(len(ticks) / most)]


def decimals(ticks: Sequence[float]) -> int:
    """How many decimals tell all ticks apart, the same for each.

    >>> decimals([80.0, 100.0]), decimals([1.8, 2.0]), decimals([2.0, 2.25])
    (0, 1, 2)
    """
    return next((n for n in (0, 1, 2, 3) if all(abs(t - round(t, n)) < 1e-9 for t in ticks)), 4)


def y_ticks(low: float, high: float, is_log: bool, y_text: Callable[[float], str]) -> list[tuple[float, str]]:
    """Where the y-axis is marked, and with what."""
    if is_log:
        return [(tick, y_text(tick)) for tick in log_ticks(low, high, 7)]
    ticks = linear_ticks(low, high, 6)
    digits = decimals(ticks)
    return [(tick, f"{tick:.{digits}f}") for tick in ticks]


def _axes(frame: Frame, ticks: Sequence[tuple[float, str]]) -> str:
    plot, bottom, right = frame.plot, frame.bottom, frame.right
    parts = []
    for tick, text in ticks:
        y = frame.y(tick)
        parts.append(f'<line class="grid" x1="{frame.left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{frame.left - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>')
    most = max(4, (right - frame.left) // 75)
    x_ticks = (log_ticks if plot.is_x_log else linear_ticks)(*plot.x_limits, most)
    for tick in thin_out(plot.measured_at, frame.x) or x_ticks:
        x = frame.x(tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{frame.top}" y2="{bottom}"/>')
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{escape(plot.x_text(tick))}</text>'
        )
    middle = (frame.left + right) / 2
    parts.append(f'<line class="axis" x1="{frame.left}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
    parts.append(
        f'<text class="axis-label" x="{middle:.0f}" y="{frame.height - 6}" text-anchor="middle">'
        f"{escape(plot.x_label)}</text>"
    )
    height = (frame.top + bottom) / 2
    parts.append(
        f'<text class="axis-label" transform="translate(13 {height:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(plot.y_label)}</text>"
    )
    return "\n".join(parts)


def thin_out(values: Sequence[float], place: Callable[[float], float], room: float = 38.0) -> list[float]:
    """Of ascending values, from the last on, those that have `room` pixels between them for their names.

    >>> thin_out([1, 2, 3, 9], lambda v: 10 * v, room=20)
    [1, 3, 9]
    """
    kept: list[float] = []
    for value in reversed(values):
        if not kept or place(kept[0]) - place(value) >= room:
            kept.insert(0, value)
    return kept


def _line(series: Series, frame: Frame) -> str:
    (colour, dash, _), plot, points = series.look, frame.plot, frame.shown(series)
    if not points and series.points:  # counting costs no FLOPs: a level line to hold the others against
        y = frame.y(series.points[-1][1])
        return f'<line x1="{frame.left}" x2="{frame.right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}" class="level"/>'
    parts = []
    if len(series.band) > 1:
        upper = [f"{frame.x(x):.1f},{frame.y(high):.1f}" for x, _, high in series.band if x > 0]
        lower = [f"{frame.x(x):.1f},{frame.y(low):.1f}" for x, low, _ in reversed(series.band) if x > 0]
        parts.append(f'<polygon points="{" ".join(upper + lower)}" fill="{colour}" opacity="0.16"/>')
    path = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in points)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    parts.append(f'<polyline class="line" points="{path}" stroke="{colour}"{dashed}/>')
    for x, y in points:
        tip = escape(f"{series.name}: {plot.y_text(y)}", quote=True)
        parts.append(f'<circle cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="6" class="hit" data-tip="{tip}"/>')
    for x, y in points if plot.measured_at else points[-1:]:
        parts.append(_mark(series.look, frame.x(x), frame.y(y)))
    return "\n".join(parts)


def _mark(look: Look, x: float, y: float) -> str:
    if look.shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{look.colour}"/>'
    path = {"square": "-4,-4 4,-4 4,4 -4,4", "diamond": "0,-5 5,0 0,5 -5,0", "triangle": "0,-5 5,4 -5,4"}[look.shape]
    return f'<polygon points="{path}" transform="translate({x:.1f} {y:.1f})" fill="{look.colour}"/>'


def apart(wanted: Sequence[float], spacing: float, low: float, high: float) -> list[float]:
    """Places for labels that want to be at `wanted`, ascending: `spacing` apart, inside [low, high], little moved.

    Least squares with p_(i+1) >= p_i + spacing: the values w_i - i spacing are pooled wherever they fall (Ayer et al.
    1955), and cut off at the ends. Where there is no room for all, they stand closer.

    >>> apart([1.0, 1.0, 9.0], 2.0, 0.0, 10.0), apart([9.0, 9.0], 2.0, 0.0, 10.0), apart([5.0] * 3, 9.0, 0.0, 10.0)
    ([0.0, 2.0, 9.0], [8.0, 10.0], [0.0, 5.0, 10.0])
    """
    steps = max(1, len(wanted) - 1)
    spacing = min(spacing, (high - low) / steps)
    pools: list[list[float]] = []
    for i, w in enumerate(wanted):
        pools.append([w - i * spacing])
        while len(pools) > 1 and fmean(pools[-2]) >= fmean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    level = [fmean(pool) for pool in pools for _ in pool]
    last = high - (len(wanted) - 1) * spacing
    return [min(max(v, low), last) + i * spacing for i, v in enumerate(level)]


def _end_labels(series: Sequence[Series], frame: Frame) -> str:
    """Names at the right, in the order of the last values, pushed apart so that none covers another."""
    floor = float(frame.bottom)
    # What fell out of the picture has its name at the foot.
    ends = sorted(
        ((min(frame.y(s.points[-1][1]), floor), k, s) for k, s in enumerate(series) if s.points), key=lambda e: e[0]
    )
    places = apart([y for y, _, _ in ends], SPACING, float(frame.top), floor)
    parts = []
    for place, (y, k, s) in zip(places, ends, strict=True):
        parts.append(f'<g data-series="{k}">')
        last = frame.shown(s)[-1:]
        start = frame.x(last[0][0]) + 5 if last else frame.right
        edge = frame.right + 10
        if frame.y(s.points[-1][1]) <= floor + 1:  # no leader from below the picture
            path = f"M{start:.1f} {y:.1f} L{edge - 2} {place:.1f}"
            parts.append(f'<path d="{path}" class="leader" stroke="{s.look.colour}"/>')
        most = MAX_NAME_ON_PHONE if frame.width < PHONE else MAX_NAME
        name = s.name if len(s.name) <= most else s.name[: most - 1] + "…"
        parts.append(
            f'<text x="{edge + 2}" y="{place + 4:.1f}" class="end" fill="{s.look.colour}">{escape(name)}</text></g>'
        )
    return "\n".join(parts)
