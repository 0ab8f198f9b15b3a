"""Splits: by documents or by cuts, reproducible, and nothing in two of them."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

from regard.data.pieces import Piece, join_pieces
from regard.data.split import NAMES, TEST, TRAIN, VALID, find_cuts, plan_split, split_documents
from regard.errors import RegardError


def split(
    pieces: list[Piece], p_valid: float = 0.1, p_test: float = 0.1, seed: int = 0, *, takes_tail: bool = False
) -> dict[str, list[str]]:
    """Documents by split."""
    plan = plan_split(lambda: pieces, p_valid, p_test, seed, takes_tail=takes_tail)
    found = list(plan.assign(pieces))
    return {NAMES[n]: list(join_pieces(piece for number, piece in found if number == n)) for n in (TRAIN, VALID, TEST)}


def documents(n: int) -> list[Piece]:
    return [Piece(f"document {i}\n", True) for i in range(n)]


def test_many_documents_are_split_whole_and_exactly() -> None:
    found = split(documents(100), p_valid=0.1, p_test=0.2)
    assert [len(found[name]) for name in NAMES] == [70, 10, 20]
    together = [text for name in NAMES for text in found[name]]
    assert sorted(together) == sorted(piece.text for piece in documents(100))


def test_the_seed_decides_the_split_and_nothing_else_does() -> None:
    assert split(documents(100)) == split(documents(100))
    assert split(documents(100)) != split(documents(100), seed=1)


def test_pieces_of_a_document_stay_together_and_do_not_change_its_split() -> None:
    whole = split([Piece(f"first {i} second {i}", True) for i in range(50)])
    halves = [Piece(text, ends) for i in range(50) for text, ends in ((f"first {i}", False), (f" second {i}", True))]
    assert split(halves) == whole


def test_copies_of_a_document_never_lie_in_two_splits() -> None:
    found = split([Piece(f"document {i % 60}", True) for i in range(120)])
    sets = [set(found[name]) for name in NAMES]
    assert all(sets)
    assert not sets[0] & sets[1]
    assert not sets[0] & sets[2]
    assert not sets[1] & sets[2]


def test_a_document_that_fills_the_source_stays_in_training() -> None:
    keys = np.array([5] * 80 + list(range(100, 120)), dtype=np.uint64)
    found = split_documents(keys, 0.05, 0.05)
    assert set(found[:80]) == {TRAIN}
    assert (np.count_nonzero(found == TEST), np.count_nonzero(found == VALID)) == (5, 5)


def test_documents_that_are_all_there_twice_are_split_with_their_copies() -> None:
    found = split_documents(np.repeat(np.arange(60, dtype=np.uint64), 2), 0.05, 0.05)
    assert found.tolist() == [TEST] * 6 + [VALID] * 6 + [TRAIN] * 108


def test_where_all_are_frequent_the_least_frequent_are_set_apart() -> None:
    keys = np.array([5] * 80 + [9] * 4 + [3] * 8 + [7] * 4 + [8] * 4, dtype=np.uint64)
    found = split_documents(keys, 0.0, 0.05)  # five documents are wanted, a quarter of them is one
    assert keys[found == TEST].tolist() == [7] * 4
    with pytest.raises(RegardError, match="documents can be set apart for test"):
        split_documents(keys, 0.0, 0.03)  # none is there as seldom as three times


def test_only_copies_cannot_be_split() -> None:
    with pytest.raises(RegardError, match="None of the 30 documents can be set apart for test: 1 of them is different"):
        split([Piece("same", True)] * 30)


def test_one_text_is_cut_at_line_ends_in_order() -> None:
    lines = [f"line {i:02d}\n" for i in range(50)]  # 8 bytes each
    found = split([Piece("".join(lines), True)], takes_tail=True)
    assert found == {"train": ["".join(lines[:40])], "valid": ["".join(lines[40:45])], "test": ["".join(lines[45:])]}


def test_cuts_do_not_depend_on_the_pieces() -> None:
    text = "".join(f"line {i} é\n" for i in range(40))
    whole = split([Piece(text, True)])
    for size in (1, 3, 7, 50):
        parts = [text[i : i + size] for i in range(0, len(text), size)]
        pieces = [Piece(part, i == len(parts) - 1) for i, part in enumerate(parts)]
        assert split(pieces) == whole


def test_a_cut_inside_a_document_ends_it_on_both_sides() -> None:
    pieces = [Piece("a\nb\n", False), Piece("c\nd\n", True), Piece("e\nf\ng\nh\n", True)]
    found = list(plan_split(lambda: pieces, 0.25, 0.25, 0, takes_tail=True).assign(pieces))
    assert [(n, p.text, p.ends) for n, p in found] == [
        (0, "a\nb\n", False),
        (0, "c\nd\n", True),
        (1, "e\nf\n", True),
        (2, "g\nh\n", True),
    ]


@pytest.mark.parametrize(("p_valid", "p_test", "empty"), [(0.2, 0.0, "test"), (0.0, 0.2, "valid")])
def test_a_part_of_zero_is_empty_and_the_rest_is_cut_as_asked(p_valid: float, p_test: float, empty: str) -> None:
    text = "".join(f"line {i:02d}\n" for i in range(50))
    for pieces in ([Piece(text, True)], documents(50)):
        found = split(pieces, p_valid, p_test)
        assert found.pop(empty) == []
        assert sum(len(text) for texts in found.values() for text in texts) == sum(len(p.text) for p in pieces)
        assert all(found.values())


def test_no_split_means_all_for_training() -> None:
    assert split(documents(30), 0, 0)["train"] == [p.text for p in documents(30)]


def test_cuts_fall_back_from_lines_to_spaces_to_characters() -> None:
    assert find_cuts([Piece("aaaa\nbbbb\ncccc\n", True)], [6]) == [10]
    assert find_cuts([Piece("aaaa\nbbbbbbbbbb", True)], [10]) == [5]  # no line end after it but the last
    assert find_cuts([Piece("aaa bbb ccc", True)], [5]) == [8]
    assert find_cuts([Piece("ééééé", True)], [5]) == [6]
    assert find_cuts([Piece("abc", True), Piece("def", True), Piece("ghi", True)], [4]) == [6]


def test_a_line_without_spaces_is_cut_between_characters() -> None:
    found = split([Piece("日本語" * 20, True)], takes_tail=True)
    assert [len(found[name][0]) for name in NAMES] == [48, 6, 6]


def test_a_text_too_short_to_cut_is_refused_with_the_numbers() -> None:
    with pytest.raises(RegardError, match=r"The text has 2 bytes, too few to cut \d+% off for"):
        split([Piece("ab", True)])
    with pytest.raises(RegardError, match="The training source holds no text"):
        split([])


def test_the_tail_of_a_text_is_one_run_of_it_for_each_split() -> None:
    pieces = [Piece(f"document {i}\n", True) for i in range(15)]
    plan = plan_split(lambda: pieces, 0.1, 0.1, 0, takes_tail=True)
    assert [number for number, _ in groupby(n for n, _ in plan.assign(pieces))] == [TRAIN, VALID, TEST]
    assert plan.n_bytes == sum(len(p.text) for p in pieces)


def test_one_long_text_is_held_out_in_stretches_that_are_spread_over_it() -> None:
    lines = [f"this is line {i:05d}\n" for i in range(5000)]  # 95 kB
    pieces = [Piece("".join(lines), True)]
    plan = plan_split(lambda: pieces, 0.05, 0.05, 0)
    found = list(plan.assign(pieces))
    assert plan.n_stretches == 4
    assert [number for number, _ in found] == [TRAIN, VALID, TRAIN, TEST] * 4
    assert "".join(piece.text for _, piece in found) == "".join(lines)
    assert all(piece.ends and piece.text.endswith("\n") for _, piece in found)
    sizes = [sum(len(p.text) for n, p in found if n == number) for number in (TRAIN, VALID, TEST)]
    assert sizes == pytest.approx([85_500, 4_750, 4_750], rel=0.05)


def test_training_text_is_cut_only_where_some_is_held_out() -> None:
    pieces = [Piece("".join(f"this is line {i:05d}\n" for i in range(5000)), True)]
    for p_valid, p_test, number in ((0.05, 0.0, VALID), (0.0, 0.05, TEST)):
        plan = plan_split(lambda: pieces, p_valid, p_test, 0)
        assert [n for n, _ in plan.assign(pieces)] == [TRAIN, number] * 4


def test_a_short_text_is_held_out_in_one_stretch_each() -> None:
    lines = [f"line {i:02d}\n" for i in range(50)]
    found = split([Piece("".join(lines), True)])
    assert [len(found[name]) for name in NAMES] == [2, 1, 1]
    assert found["test"] == ["".join(lines[45:])]
    assert found["valid"] == ["".join(lines[20:25])]


def test_a_few_documents_stay_whole() -> None:
    pieces = documents(10)
    found = split(pieces)
    assert [len(found[name]) for name in NAMES] == [8, 1, 1]
    assert sorted(text for name in NAMES for text in found[name]) == [piece.text for piece in pieces]
    assert found == split(pieces[::-1]) | {"train": found["train"]}  # their order does not matter


@pytest.mark.parametrize(
    "pieces",
    [
        [Piece("a long line of text\n" * 200, True) for _ in range(10)],  # copies
        [Piece(f"line {i} of a text\n" * 200, True) for i in range(3)],  # each of them is a third of the text
        [Piece("a line\n" * 9000, True), Piece("a line\nand another\n", True), Piece("x\n", True)],
    ],
)
def test_a_few_documents_of_which_none_could_be_set_apart_are_held_out_in_stretches(pieces: list[Piece]) -> None:
    plan = plan_split(lambda: pieces, 0.05, 0.05, 0)
    assert plan.n_stretches > 0
    found = split(pieces, 0.05, 0.05)
    n_bytes = sum(len(piece.text) for piece in pieces)
    for name in ("valid", "test"):
        assert sum(map(len, found[name])) == pytest.approx(0.05 * n_bytes, rel=0.5)
