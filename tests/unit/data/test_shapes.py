"""A few shapes for all batches: every one is held, little is added, and what was never seen is rounded up."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regard.data.shapes import MAX_JOINED, FewShapes, Numbers, join_shapes

SHAPES = st.lists(st.tuples(st.integers(1, 64), st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=30)


def places(shape: Numbers) -> Numbers:
    return shape[..., 0] * (shape[..., 1] + shape[..., 2])


@given(SHAPES)
def test_every_shape_that_was_seen_is_held_by_the_smallest_that_holds_it(seen: list[tuple[int, ...]]) -> None:
    table, shapes = join_shapes(seen, places), FewShapes(seen, places)
    for shape in seen:
        holding = table[(table >= np.array(shape)).all(axis=1)]
        assert places(np.array(shapes.fit(shape))) == places(holding).min()


@given(SHAPES)
def test_joining_stops_before_too_much_is_added(seen: list[tuple[int, ...]]) -> None:
    rows = [(-(-n // 8) * 8, *more) for n, *more in seen]  # rows are rounded up in any case
    shapes = FewShapes(rows, places)
    padded = sum(int(places(np.array(shapes.fit(shape)))) for shape in rows)
    assert padded <= 1.08 * sum(int(places(np.array(shape))) for shape in rows)


def test_what_is_alike_is_joined() -> None:
    seen = [(80, 20 + i % 2, 21) for i in range(10)] + [(8, 100, 100)]
    assert sorted(map(tuple, join_shapes(seen, places).tolist())) == [(8, 100, 100), (80, 21, 21)]


def test_of_very_many_shapes_the_lengths_are_rounded_up_first() -> None:
    seen = [(8, s, t) for s in range(1, 41) for t in range(1, 41)]
    assert len(FewShapes(seen, places)) <= MAX_JOINED
    assert FewShapes(seen, places).fit((3, 41, 7)) == (8, 48, 8)
