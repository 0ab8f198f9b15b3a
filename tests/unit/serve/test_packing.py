"""JSON with arrays behind it."""

import json

import numpy as np

from regard.lens.view import Packed
from regard.serve.packing import Arrays


def test_arrays_come_back_from_where_the_json_says_they_are() -> None:
    arrays = Arrays()
    first, second = np.array([[1.5, -2.0, 0.25]]), np.arange(5.0)
    body = arrays.write({"é": arrays.add(Packed(first, "float16")), "b": [arrays.add(Packed(second, "float32"))]})
    n = int.from_bytes(body[:4], "little")
    value, rest = json.loads(body[4 : 4 + n]), body[4 + n :]
    assert (4 + n) % 8 == 0  # so that a browser can see the bytes as numbers
    found, other = value["é"], value["b"][0]
    assert found["at"] == 0
    assert other["at"] % 8 == 0
    assert np.frombuffer(rest[: found["n"]], "<f2").tolist() == first.ravel().tolist()
    assert np.frombuffer(rest[other["at"] : other["at"] + other["n"]], "<f4").tolist() == second.tolist()
    assert found["shape"] == [1, 3]


def test_numbers_that_json_has_no_word_for_become_null() -> None:
    body = Arrays().write({"a": float("nan"), "b": float("inf")})
    assert json.loads(body[4:]) == {"a": None, "b": None}
