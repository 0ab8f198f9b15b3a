"""One colour a contender, the same in every figure, told apart by colour-blind readers (Okabe & Ito 2008)."""

from __future__ import annotations

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b8578f", "#d89000", "#332288", "#4aa3d8", "#4a4a4a", "#8a6d3b")
DASHES = ("", "7 4", "2 3", "9 3 2 3")
NEGATIVE, POSITIVE = "#2166ac", "#d9730d"  # the two ends of a cell's value


def colour_of(index: int) -> str:
    """The colour of the contender that was named `index`-th."""
    return COLOURS[index % len(COLOURS)]


def dash_of(index: int) -> str:
    """The SVG dash pattern that goes with it: solid until the colours repeat."""
    return DASHES[index // len(COLOURS) % len(DASHES)]


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
