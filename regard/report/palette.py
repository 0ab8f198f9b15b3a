"""One look a contender, the same in every figure: a colour, and from the ninth on a dash and a shape as a second sign.

The first eight colours follow Okabe & Ito (2008). The second eight were searched for: as far as may be from all others,
and from each other for colour-blind readers too, who are helped by the second sign to tell them from the first eight.
"""

from __future__ import annotations

COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#b8578f", "#d89000", "#332288", "#4aa3d8", "#4a4a4a",
    "#be0400", "#7c8900", "#667df2", "#93004e", "#dc03cb", "#8b595a", "#024f88", "#bc8488",
)  # fmt: skip
PER_SIGN = 8  # contenders that share a dash and a shape
DASHES = ("", "7 4", "2 3", "9 3 2 3")
SHAPES = ("circle", "square", "diamond", "triangle")
NEGATIVE, POSITIVE = "#2166ac", "#d9730d"  # the two ends of a cell's value


def colour_of(index: int) -> str:
    """The colour of the contender that was named `index`-th."""
    return COLOURS[index % len(COLOURS)]


def dash_of(index: int) -> str:
    """The SVG dash pattern that goes with it: solid for the first eight."""
    return DASHES[index // PER_SIGN % len(DASHES)]


def shape_of(index: int) -> str:
    """The shape of its mark, which changes with the dash."""
    return SHAPES[index // PER_SIGN % len(SHAPES)]


def shade(colour: str, strength: float) -> str:
    """`colour` mixed into white: 0 is white, 1 the colour itself.

    >>> shade("#d55e00", 0.0), shade("#d55e00", 0.5), shade("#d55e00", 1.0)
    ('#ffffff', '#eaae80', '#d55e00')
    """
    s = min(1.0, max(0.0, strength))
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 + (c - 255) * s):02x}" for c in channels)


def diverging(value: float) -> str:
    """White at 0, blue towards -1, orange towards +1."""
    return shade(POSITIVE if value >= 0 else NEGATIVE, abs(value))
