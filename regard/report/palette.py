"""The look of a model: one colour on every page and in every picture, whatever else is shown beside it.

A model of `regard models` has its place in the palette. Any other name, such as that of a run, has one that follows
from its letters, and where that is taken moves on to the next: so it keeps its colour from page to page unless two
names meet. What stands in brackets behind a name does not matter. Places from the ninth on have a dash and a shape as a
second sign.

The first eight colours follow Okabe & Ito (2008). The second eight were searched for: as far as may be from all others,
and from each other for colour-blind readers too, who are helped by the second sign to tell them from the first eight.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from itertools import chain, count
from typing import NamedTuple

COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#b8578f", "#d89000", "#332288", "#4aa3d8", "#4a4a4a",
    "#be0400", "#7c8900", "#667df2", "#93004e", "#dc03cb", "#8b595a", "#024f88", "#bc8488",
)  # fmt: skip
PER_SIGN = 8  # places that share a dash and a shape
DASHES = ("", "7 4", "2 3", "9 3 2 3")
SHAPES = ("circle", "square", "diamond", "triangle")
NEGATIVE, POSITIVE = "#2166ac", "#d9730d"  # the two ends of a cell's value
INK, SOFT, LINE = "#1c1e21", "#5d6470", "#e3e5e8"  # of text, of what stands back, and of grids

PLACES = {
    name: place
    for place, name in enumerate((
        "ngram", "window", "rnn", "lstm", "transformer", "attention", "bag", "gru",
        "gpt2", "convolution", "restricted", "rnn-attention", "pointer", "seq2seq", "vaswani", "captioner",
        "bert", "elmo", "lsa", "skipgram", "cbow", "glove",
    ))
}  # fmt: skip
"""Those that are compared most often have the first eight."""


class Look(NamedTuple):
    """How a model is drawn: its colour, the SVG dash pattern of its lines, the shape of its marks."""

    colour: str
    dash: str
    shape: str


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """The look of each name on a page that shows them all; the order of the names does not matter.

    >>> looks_of(["lstm", "my run"])["lstm"] == looks_of(["rnn", "lstm"])["lstm"]
    True
    """
    wanted = sorted(set(names))
    places = {name: PLACES[name] for name in wanted if name in PLACES}
    for name in wanted:
        if name not in places:
            own = name.partition(" (")[0]
            first = PLACES.get(own, zlib.crc32(own.encode(errors="surrogatepass"))) % PER_SIGN
            turns = chain(range(first, PER_SIGN), range(first), count(PER_SIGN))  # round the first eight, then on
            taken = set(places.values())
            places[name] = next(place for place in turns if place not in taken)
    return {name: Look(colour_of(p), dash_of(p), shape_of(p)) for name, p in places.items()}


def colour_of(place: int) -> str:
    """The colour at a place of the palette."""
    return COLOURS[place % len(COLOURS)]


def dash_of(place: int) -> str:
    """The SVG dash pattern that goes with it: solid for the first eight."""
    return DASHES[place // PER_SIGN % len(DASHES)]


def shape_of(place: int) -> str:
    """The shape of its mark, which changes with the dash."""
    return SHAPES[place // PER_SIGN % len(SHAPES)]


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
