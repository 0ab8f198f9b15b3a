"""The picture that a sentence of the kind "scene" describes.

What the sentence says holds in the picture: shape, number, relation always; colour and size where it names them. What
it leaves open is drawn at random (a colour) or in between (a size). Two clauses share the picture, one half each.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from regard.data.builtin.grammar import meaning as m
from regard.data.builtin.grammar.lexicon import plain

COLOURS = {
    "red": (214, 39, 40), "blue": (31, 90, 200), "green": (44, 150, 60), "yellow": (240, 200, 30),
    "black": (25, 25, 25), "brown": (130, 80, 40), "grey": (140, 140, 140), "purple": (130, 60, 170),
}  # fmt: skip
BACKGROUND = (250, 248, 243)
CELL = 0.25  # the room of one shape: four stand side by side, and a size is the same in every picture
RADII = {"small": 0.45, "big": 0.9}  # of half a cell; between them where the sentence does not say
MIDDLE_RADIUS = 0.68
SIDES = {"to the left of": (-1, 0), "to the right of": (1, 0), "above": (0, 1), "below": (0, -1)}
OVERSAMPLED = 3  # points a pixel, each way, for smooth edges

Points = NDArray[np.float64]
Mask = NDArray[np.bool_]
Box = tuple[float, float, float, float]  # left, right, low, high


@dataclass(frozen=True)
class Item:
    """One drawn shape; the picture is the square 0 ≤ x, y ≤ 1, with y upwards."""

    shape: str
    colour: str
    size: str | None
    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class Scene:
    """All there is to see."""

    items: tuple[Item, ...]

    def pixels(self, n_pixels: int = 96) -> NDArray[np.uint8]:
        """(n_pixels, n_pixels, 3), the top row first."""
        fine = n_pixels * OVERSAMPLED
        places = (np.arange(fine) + 0.5) / fine
        picture = np.empty((fine, fine, 3))
        picture[:] = BACKGROUND
        for item in self.items:
            # Only the square that the shape lies in is looked at: of ten thousand scenes, a minute is saved.
            columns = _find_within(places, item.x, item.radius)
            rows = _find_within(places[::-1], item.y, item.radius)
            x, y = np.meshgrid(places[columns], places[::-1][rows])
            mask = SHAPES[item.shape]((x - item.x) / item.radius, (y - item.y) / item.radius)
            picture[rows, columns][mask] = COLOURS[item.colour]
        cells = picture.reshape(n_pixels, OVERSAMPLED, n_pixels, OVERSAMPLED, 3)
        return np.asarray(cells.mean(axis=(1, 3)).round(), np.uint8)

    def png(self, n_pixels: int = 96) -> bytes:
        from PIL import Image  # here, since most who draw sentences draw no pictures

        file = io.BytesIO()
        Image.fromarray(self.pixels(n_pixels)).save(file, "PNG")
        return file.getvalue()


def _find_within(places: NDArray[np.float64], middle: float, radius: float) -> slice:
    """Which of places in order are no further than `radius` from `middle`."""
    (near,) = np.nonzero(np.abs(places - middle) <= radius)
    return slice(int(near[0]), int(near[-1]) + 1) if len(near) else slice(0)


def draw_scene(meaning: m.Meaning, random: Random) -> Scene:
    """The picture of a scene sentence; `random` decides what the sentence leaves open."""
    clauses = [meaning.main, *([meaning.second] if meaning.second else [])]
    boxes: list[Box] = [(0, 1, 0, 1)] if len(clauses) == 1 else [(0, 0.5, 0, 1), (0.5, 1, 0, 1)]
    items: list[Item] = []
    for clause, box in zip(clauses, boxes, strict=True):
        for thing, room in _rooms(clause, box):
            items += _place_items(thing, room, random)
    return Scene(tuple(items))


def _rooms(clause: m.Clause, box: Box) -> Iterator[tuple[m.NounPhrase, Box]]:
    """Which things are where: each gets its part of the box."""
    things = clause.subject.parts
    if clause.where:
        place = clause.where[0]
        assert place.thing is not None
        assert place.preposition is not None
        side = SIDES[plain(place.preposition.english)]
        yield things[0], _half(box, *side)
        yield place.thing, _half(box, -side[0], -side[1])
    elif isinstance(clause.subject, m.Both) and not clause.subject.lacks:
        yield things[0], _half(box, -1, 0)
        yield things[1], _half(box, 1, 0)
    else:
        yield things[0], box


def _half(box: Box, x: int, y: int) -> Box:
    left, right, low, high = box
    middle_x, middle_y = (left + right) / 2, (low + high) / 2
    if x:
        return (middle_x, right, low, high) if x > 0 else (left, middle_x, low, high)
    return (left, right, middle_y, high) if y > 0 else (left, right, low, middle_y)


def _place_items(thing: m.NounPhrase, box: Box, random: Random) -> list[Item]:
    """`count` equal shapes, each in a cell of its own, a little off its centre."""
    words = {a.name for a in thing.adjectives}
    colour = next((c for c in COLOURS if c in words), None) or random.choice(list(COLOURS))
    size = next((s for s in RADII if s in words), None)
    left, right, low, high = box
    n_columns = 1 if thing.count == 1 or right - left < 2 * CELL else 2
    n_rows = -(-thing.count // n_columns)
    width, height = (right - left) / n_columns, (high - low) / n_rows
    radius = CELL / 2 * RADII.get(size or "", MIDDLE_RADIUS)
    items = []
    for i in range(thing.count):
        row, column = divmod(i, n_columns)
        slack_x, slack_y = (width / 2 - radius) * 0.5, (height / 2 - radius) * 0.5
        items.append(
            Item(
                shape=thing.head.name,
                colour=colour,
                size=size,
                x=left + (column + 0.5) * width + random.uniform(-slack_x, slack_x),
                y=low + (row + 0.5) * height + random.uniform(-slack_y, slack_y),
                radius=radius,
            )
        )
    return items


# Each shape is a set of points of the square -1 ≤ x, y ≤ 1, with y upwards.


def _disc(x: Points, y: Points, centre: tuple[float, float] = (0.0, 0.0), radius: float = 1.0) -> Mask:
    return (x - centre[0]) ** 2 + (y - centre[1]) ** 2 <= radius**2


def _polygon(x: Points, y: Points, corners: Sequence[tuple[float, float]]) -> Mask:
    """Inside, where a ray to the right crosses the outline an odd number of times."""
    inside = np.zeros(x.shape, bool)
    for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if y0 != y1:
            crosses = (y0 > y) != (y1 > y)
            inside ^= crosses & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return inside


def _box(x: Points, y: Points, left: float, right: float, low: float, high: float) -> Mask:
    return (x >= left) & (x <= right) & (y >= low) & (y <= high)


def _star(x: Points, y: Points) -> Mask:
    turns = np.pi / 2 + np.arange(10) * np.pi / 5
    radii = np.where(np.arange(10) % 2 == 0, 1.0, 0.42)
    return _polygon(x, y, list(zip(radii * np.cos(turns), radii * np.sin(turns), strict=True)))


def _cross(x: Points, y: Points) -> Mask:
    return _box(x, y, -0.3, 0.3, -1, 1) | _box(x, y, -1, 1, -0.3, 0.3)


def _arrow(x: Points, y: Points) -> Mask:
    return _box(x, y, -1, 0.2, -0.22, 0.22) | _polygon(x, y, [(0.1, -0.75), (0.1, 0.75), (1.0, 0.0)])


def _cloud(x: Points, y: Points) -> Mask:
    puffs = [((-0.5, -0.2), 0.48), ((0.0, 0.1), 0.6), ((0.55, -0.2), 0.44)]
    base = _box(x, y, -0.6, 0.6, -0.65, -0.2)
    for centre, radius in puffs:
        base |= _disc(x, y, centre, radius)
    return base


def _fish(x: Points, y: Points) -> Mask:
    body = ((x - 0.2) / 0.8) ** 2 + (y / 0.5) ** 2 <= 1
    tail = _polygon(x, y, [(-0.4, 0.0), (-1.0, 0.55), (-1.0, -0.55)])
    return (body | tail) & ~_disc(x, y, (0.6, 0.15), 0.1)


def _flag(x: Points, y: Points) -> Mask:
    return _box(x, y, -0.8, -0.62, -1, 1) | _box(x, y, -0.62, 0.9, 0.0, 0.95)


SHAPES: dict[str, Callable[[Points, Points], Mask]] = {
    "circle": _disc,
    "square": lambda x, y: _box(x, y, -0.9, 0.9, -0.9, 0.9),
    "triangle": lambda x, y: _polygon(x, y, [(-1.0, -0.85), (1.0, -0.85), (0.0, 0.95)]),
    "star": _star,
    "cross": _cross,
    "ring": lambda x, y: _disc(x, y) & ~_disc(x, y, radius=0.55),
    "arrow": _arrow,
    "diamond": lambda x, y: np.abs(x) / 0.75 + np.abs(y) <= 1,
    "moon": lambda x, y: _disc(x, y) & ~_disc(x, y, (0.5, 0.15), 0.85),
    "cloud": _cloud,
    "fish": _fish,
    "flag": _flag,
}
