"""The pictures show what their sentences say."""

import io

import numpy as np
import pytest
from PIL import Image

from regard.data.builtin.grammar import Grammar
from regard.data.builtin.grammar.scene import BACKGROUND, CELL, COLOURS, SHAPES, Item, Scene

NUMBERS = {"a": 1, "an": 1, "two": 2, "three": 3, "four": 4}


def test_a_png_holds_the_pixels() -> None:
    scene = Grammar().sentence(0, kind="scene").scene
    assert scene is not None
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(scene.png(32)))), scene.pixels(32))


def test_a_circle_is_drawn_where_it_stands_with_y_upwards() -> None:
    pixels = Scene((Item("circle", "red", None, x=0.25, y=0.75, radius=0.1),)).pixels(40)
    assert tuple(pixels[10, 10]) == COLOURS["red"]  # a quarter from the left, a quarter from the top
    assert tuple(pixels[30, 10]) == BACKGROUND
    blue = BACKGROUND[2] - pixels[..., 2].astype(float)  # edges are mixed, so each pixel counts by its share
    share = blue.mean() / (BACKGROUND[2] - COLOURS["red"][2])
    assert share == pytest.approx(np.pi * 0.1**2, rel=0.02)


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_fills_some_of_its_square_and_nothing_beyond(name: str) -> None:
    x, y = np.meshgrid(np.linspace(-1.5, 1.5, 301), np.linspace(-1.5, 1.5, 301))
    mask = SHAPES[name](x, y)
    assert not mask[(np.abs(x) > 1.001) | (np.abs(y) > 1.001)].any()
    assert 0.15 < mask[(np.abs(x) <= 1) & (np.abs(y) <= 1)].mean() < 0.9


def test_every_scene_sentence_has_a_picture_of_what_it_says() -> None:
    for sentence in Grammar(seed=1).sentences("train", 150, "scene"):
        scene = sentence.scene
        assert scene is not None
        words = [word.lower() for word in sentence.en]
        present = words[: words.index("but")] if "but" in words else words
        said = sum(NUMBERS.get(word, 0) for word in present)
        assert len(scene.items) == said, sentence.text("en")
        for item in scene.items:
            assert item.shape[:4] in " ".join(present)
            assert item.size is None or item.size in words
            assert item.radius <= CELL / 2
            assert item.radius <= item.x <= 1 - item.radius
            assert item.radius <= item.y <= 1 - item.radius
        for colour in COLOURS:
            if colour in present:
                assert any(item.colour == colour for item in scene.items)


@pytest.mark.parametrize(
    ("relation", "axis", "sign"), [("left", "x", -1), ("right", "x", 1), ("above", "y", 1), ("below", "y", -1)]
)
def test_relations_hold_between_all_that_is_drawn(relation: str, axis: str, sign: int) -> None:
    seen = 0
    for sentence in Grammar(seed=2).sentences("train", 300, "scene"):
        words = [word.lower() for word in sentence.en]
        if relation not in words or "and" in words or sentence.scene is None:
            continue
        seen += 1
        n_first = sum(NUMBERS.get(word, 0) for word in words[: words.index(relation)])
        places = [getattr(item, axis) * sign for item in sentence.scene.items]
        assert min(places[:n_first]) > max(places[n_first:]), sentence.text("en")
    assert seen > 10


def test_other_kinds_have_no_picture() -> None:
    assert all(Grammar().sentence(i, kind="event").scene is None for i in range(5))
