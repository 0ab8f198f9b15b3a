"""Words looked up at once equal words looked up one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard.text.words import WordEncoder

LONG = "fifteen-letters" + "x"  # sixteen
VOCAB = [
    "<eos>",
    "<unk>",
    "a",
    "a\0",
    "cat",
    "eightlet",
    "ninelette",
    "fifteen-letters",
    LONG,
    "日本語",
    "é",
    "\x1c",
    "\n",
]
ENCODER = WordEncoder({word: i for i, word in enumerate(VOCAB)}, str)

pieces = st.one_of(
    st.sampled_from(VOCAB),
    st.sampled_from(
        list("\t\n\x0b\x0c\r \x1c\x1f\x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\ufeff\u200b\0\x08\x0e")
    ),
    st.text(max_size=20),
)
texts = st.lists(pieces, max_size=30).map("".join)


@given(text=texts)
@example(text="")
@example(text="\n")
@example(text="a\n\n a\0 \0a  cat\r\nnew " + LONG + " " + LONG + "x fifteen-letters\x1ceightlet")
@example(text=" ".join(VOCAB))
def test_all_words_together_have_the_ids_of_each(text: str) -> None:
    assert ENCODER.look_up_at_once(text).tolist() == ENCODER.split_and_look_up(text).tolist()


def test_every_white_space_separates_words() -> None:
    spaces = [chr(i) for i in range(0x3001) if chr(i).isspace() and chr(i) not in "\n\x1c\x1d\x1e\x1f"]
    text = "a" + "".join(space + "cat" for space in spaces)
    assert ENCODER.look_up_at_once(text).tolist() == [2] + [4] * len(spaces)


def test_words_are_kept_apart_by_their_length() -> None:
    assert ENCODER.look_up_at_once("a a\0 a\0\0").tolist() == [2, 3, 1]


@pytest.mark.parametrize("few", [0, 10**9])
def test_documents_and_pieces_are_kept_apart_on_both_paths(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.text.words.FEWEST_CHARACTERS", few)
    ids = ENCODER([("a cat\n", False), ("c", False), ("at", True), ("a\n", True), ("", True), ("é", False)])
    assert ids.tolist() == [2, 4, 0, 1, 1, 0, 2, 0, 0, 10]
    assert ids.dtype == np.int32
    assert ENCODER([]).tolist() == []
