"""Sentences with many wrong tags, as the list of errors shows them."""

from __future__ import annotations

from regard.tasks.tagging import MAX_MARKED, mark_errors


def test_no_more_than_some_wrong_words_of_a_sentence_are_marked() -> None:
    n = 10_000
    shown = mark_errors(["w"] * n, ["A"] * n, ["B"] * n)
    assert shown.count("true B") == MAX_MARKED
    assert shown.endswith("w[A, true B] ...")
    assert mark_errors(["w"] * 3, ["A", "B", "A"], ["A"] * 3) == "w w[B, true A] w"
