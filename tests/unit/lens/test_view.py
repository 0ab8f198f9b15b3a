"""Views carry numbers to a page: packed arrays come back as they were, as far as their kind can say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from regard.errors import RegardError
from regard.lens.view import Packed, View, to_plain, unpack


@pytest.mark.parametrize(("kind", "most"), [("uint8", 5.0 / 510), ("float16", 0.002), ("float32", 1e-6)])
def test_a_packed_array_comes_back_within_what_its_kind_can_say(kind: str, most: float) -> None:
    array = np.linspace(-2.0, 3.0, 24).reshape(2, 3, 4)
    found = unpack(json.loads(json.dumps(Packed(array, kind).to_json())))
    assert found.shape == (2, 3, 4)
    assert np.abs(found - array).max() <= most * (1 + 1e-9)


def test_the_lowest_and_highest_weight_are_kept_exactly() -> None:
    assert unpack(Packed(np.array([0.0, 0.3, 1.0])).to_json())[[0, 2]].tolist() == [0.0, 1.0]


def test_an_array_of_one_value_can_be_packed() -> None:
    assert unpack(Packed(np.full((2, 2), 0.25)).to_json()).tolist() == [[0.25, 0.25], [0.25, 0.25]]


def test_numbers_that_are_none_cannot_be_packed() -> None:
    with pytest.raises(RegardError, match="infinite or missing"):
        Packed(np.array([0.0, np.inf]))


def test_an_unknown_kind_of_packing_is_refused() -> None:
    with pytest.raises(RegardError, match="one of uint8, float16, float32, not as 'int4'"):
        Packed(np.zeros(3), "int4")


def test_what_json_has_no_word_for_becomes_null() -> None:
    assert to_plain({"a": (1, np.float32(0.5), float("inf")), 2: np.arange(2)}) == {"a": [1, 0.5, None], "2": [0, 1]}


def test_a_view_is_json() -> None:
    view = View(name="x", title="X", note="", data={"w": Packed(np.zeros((1, 2)))}, table=(("a", "b"), [("1", "2")]))
    whole = json.loads(json.dumps(view.to_json()))
    assert whole["table"] == {"columns": ["a", "b"], "rows": [["1", "2"]]}
    assert whole["data"]["w"]["shape"] == [1, 2]
