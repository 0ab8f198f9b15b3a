"""Which heads a page carries, which it shows first, and what it says of them."""

from __future__ import annotations

import numpy as np
import pytest

from regard.errors import RegardError
from regard.lens.attention_view import Stack, choose_head, describe_stack, keep_heads, read_layers, shrink
from regard.lens.patterns import Pattern
from regard.lens.subject import Side
from regard.lens.view import LookOptions

T = 6
EVEN = np.tril(np.ones((T, T))) / np.arange(1, T + 1)[:, None]
BEFORE = np.eye(T, k=-1) + np.eye(T) * (np.arange(T) == 0)
ITSELF = np.eye(T)
SIDE = Side(tuple("abcdef"), tuple(range(T)), tuple("abcdef"))


def stack(*heads: np.ndarray) -> Stack:
    return Stack("", [np.stack(heads)], SIDE, SIDE, (True,) * T, True)


def test_the_first_head_shown_looks_at_another_token() -> None:
    assert choose_head([np.stack([ITSELF, EVEN]), np.stack([BEFORE, EVEN])], LookOptions()) == (1, 0)
    assert choose_head([np.stack([ITSELF, EVEN]), np.stack([BEFORE, EVEN])], LookOptions(layer=1, head=2)) == (0, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (LookOptions(layer=3), "--layer 3: the model has 1 layer there; give 1 to 1."),
        (LookOptions(head=0), "--head 0: the model has 2 heads there; give 1 to 2."),
    ],
)
def test_a_layer_or_head_that_is_not_there_is_refused(options: LookOptions, said: str) -> None:
    with pytest.raises(RegardError, match=said):
        choose_head([np.stack([ITSELF, EVEN])], options)


def test_a_page_that_is_full_keeps_the_first_head_and_those_that_do_one_thing() -> None:
    patterns = [[Pattern("broad", 0.9), Pattern("itself", 0.5), Pattern("mixed", 0.2), Pattern("itself", 0.8)]]
    layers = [np.stack([EVEN] * 4)]
    assert keep_heads(layers, patterns, (0, 0), n_bytes=2 * T * T) == [(0, 0), (0, 3)]
    assert keep_heads(layers, patterns, (0, 2), n_bytes=1) == [(0, 2)]
    assert len(keep_heads(layers, patterns, (0, 0))) == 4


def test_a_small_picture_keeps_the_strongest_weight_of_every_block() -> None:
    weights = np.zeros((100, 100))
    weights[57, 3] = 1.0
    small = shrink(weights, side=10)
    assert small.shape == (10, 10)
    assert np.argwhere(small == 1.0).tolist() == [[5, 0]]
    assert shrink(EVEN) is EVEN


def test_heads_are_counted_by_what_they_do() -> None:
    data, said, rows = describe_stack(stack(BEFORE, EVEN), LookOptions(), 10**6)
    assert said.startswith(
        "2 heads in 1 layer: 1 previous token, 1 broad. Layer 1, head 1 puts 100% of its weight on the previous token;"
    )
    assert data["layers"][0][0] == {"pattern": "previous token", "share": 1.0, "label": "previous token 100%"}
    assert rows[0] == ("layer 1, head 1", "previous token", "100.0%")


def test_only_layers_over_their_own_tokens_are_read() -> None:
    taps = {
        "layers.10.attention": np.zeros((2, T, T)), "layers.2.attention": np.ones((2, T, T)),
        "layers.0.cross_attention": np.ones((1, T, 9)), "encoder.layers.0.attention": np.ones((1, 9, 9)),
    }  # fmt: skip
    assert [layer.max() for layer in read_layers(taps, T)] == [1.0, 0.0]
    assert [layer.shape for layer in read_layers(taps, 9, "encoder.")] == [(1, 9, 9)]


def test_the_pool_of_a_reader_is_one_row_and_says_which_words_weigh_most() -> None:
    words = Side(("I", " lo", "ve", " it"), (0, 1, 1, 2), ("I", "love", "it"))
    pool = np.array([[[0.1, 0.3, 0.4, 0.2]]])
    answer = Side(("the answer",), (0,), ("the answer",))
    pooled = Stack("weighing its words", [pool], answer, words, (True,), False)
    data, said, _ = describe_stack(pooled, LookOptions(layer=3, head=2), 10**6)  # which are of other stacks
    assert said == "Of the words, these weigh the most in the answer: “love” (70%), “it” (20%), “I” (10%)."
    assert data["full"]["0,0"].array.tolist() == pool[0].tolist()
    assert data["rows"]["wordTexts"] == ("the answer",)
    assert data["layers"][0][0]["pattern"] == "broad"
