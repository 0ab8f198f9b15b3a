"""The unigram model of pieces and what is done to a text before, worked by hand."""

import struct
from itertools import product

import numpy as np
import pytest

from regard.errors import RegardError
from regard.text.charsmap import MAX_READ, Charsmap
from regard.text.unigram import Piece, Unigram


def list_cuts(text: str) -> list[list[str]]:
    """All 2^(n-1) ways to cut a text."""
    found = []
    for ends in product((False, True), repeat=len(text) - 1):
        pieces = [""]
        for character, is_end in zip(text, (*ends, False), strict=True):
            pieces[-1] += character
            if is_end:
                pieces.append("")
        found.append(pieces)
    return found


def test_the_most_probable_of_all_cuts_is_found() -> None:
    draws = np.random.default_rng(0)
    pieces = {"a": -3.1, "b": -2.7, "ab": -4.9, "ba": -5.3, "aba": -6.6, "bb": -6.2, "abb": -9.0}
    for _ in range(50):
        text = "".join(draws.choice(["a", "b"], size=draws.integers(1, 9)))
        found = [text[start:end] for start, end, _ in Unigram(pieces).cut(text)]
        known = [cut for cut in list_cuts(text) if all(piece in pieces for piece in cut)]
        assert sum(pieces[p] for p in found) == pytest.approx(max(sum(pieces[p] for p in cut) for cut in known))


def test_unknown_letters_that_follow_each_other_are_one_piece() -> None:
    model = Unigram({"a": -1.0, "bc": -2.0})
    assert model.cut("axya") == [Piece(0, 1, True), Piece(1, 3, False), Piece(3, 4, True)]
    assert model.cut("ab") == [Piece(0, 1, True), Piece(1, 2, False)]  # "b" begins a piece, and is none
    assert model.cut("") == []


def test_an_unknown_letter_costs_ten_nats_more_than_the_least_probable_piece() -> None:
    way = {"ab": -3.0, "bc": -20.0}
    assert [piece[:2] for piece in Unigram(way | {"a": -12.9}).cut("abc")] == [(0, 1), (1, 3)]  # -32.9 against -33
    assert [piece[:2] for piece in Unigram(way | {"a": -13.1}).cut("abc")] == [(0, 2), (2, 3)]


def test_spaces_become_one_mark_before_each_word() -> None:
    text, spans = Charsmap(b"").normalize("  ab  c ")
    assert text == "▁ab▁c"
    assert spans == [(0, 0), (2, 3), (3, 4), (4, 5), (6, 7)]
    assert Charsmap(b"").normalize("   ") == ("", [])


def write_trie(rules: dict[int, int]) -> bytes:
    """A table whose rules are of one ASCII character each: the character, and where what it writes begins."""
    units = np.zeros(1024, dtype="<u4") + np.uint32(0x80000000)
    units[0] = 256 << 10  # the root's children are at 256 ^ byte
    for i, (byte, value) in enumerate(rules.items()):
        here, leaf = 256 ^ byte, 512 + 256 * i
        units[here] = ((here ^ leaf) << 10) | 0x100 | byte
        units[leaf] = 0x80000000 | value
    return units.tobytes()


def test_a_rule_writes_what_the_table_says() -> None:
    trie, written = write_trie({ord("a"): 0, ord("b"): 3}), b"xy\0\0"
    table = Charsmap(struct.pack("<I", len(trie)) + trie + written)
    text, spans = table.normalize("cab a")
    assert text == "▁cxy▁xy"  # b is left out
    assert spans == [(0, 0), (0, 1), (1, 2), (1, 2), (3, 4), (4, 5), (4, 5)]


@pytest.mark.parametrize(
    "data",
    [b"abc", b"\0\0\0\0abc", struct.pack("<I", 400) + bytes(100), struct.pack("<I", 6) + bytes(20),
     struct.pack("<I", 4) + bytes(4) + b"x" * 2000],
)  # fmt: skip
def test_a_broken_table_is_refused(data: bytes) -> None:
    with pytest.raises(RegardError, match=r"the table of characters has a broken table of characters \(precompiled"):
        Charsmap(data)


def test_no_table_is_read_beyond_its_end() -> None:
    draws = np.random.default_rng(0)
    for _ in range(200):
        trie = draws.integers(2**32, size=16, dtype=np.uint32).astype("<u4").tobytes()
        table = Charsmap(struct.pack("<I", len(trie)) + trie + b"abc\0d")
        assert isinstance(table.normalize("".join(map(chr, draws.integers(1, 300, size=30))))[0], str)


def test_a_trie_that_leads_in_circles_is_left_after_so_many_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    node, letter = 256, ord("a")
    units = np.zeros(512, dtype="<u4")
    units[0], units[node ^ letter] = node << 10, letter << 10 | letter  # from the node back to it
    table = Charsmap(struct.pack("<I", units.nbytes) + units.tobytes() + b"\0")
    asked: list[int] = []
    unit = table._unit
    monkeypatch.setattr(table, "_unit", lambda place: asked.append(place) or unit(place))
    assert table.apply("a" * 1000, 0) == ("a", 1)
    assert len(asked) == MAX_READ
