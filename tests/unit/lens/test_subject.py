"""Words from pieces: which tokens spell one word, whatever the tokenizer."""

from __future__ import annotations

from regard.lens.subject import Side, join_words, number_words
from regard.report.attention_figure import find_spans


def words_of(text: str, cuts: list[tuple[int, int] | None], **how: bool) -> list[str]:
    names = ["<mark>" if cut is None else text[slice(*cut)] for cut in cuts]
    return list(join_words(text, names, cuts, number_words(text, cuts, **how)))


def test_pieces_that_bring_the_space_before_them_are_one_word_each() -> None:
    assert words_of("a string, so", [None, (0, 1), (1, 5), (5, 8), (8, 9), (9, 12)]) == [
        "<mark>", "a", "string", ",", "so",
    ]  # fmt: skip


def test_single_characters_are_gathered_into_words() -> None:
    text = "to be!\nor"
    assert words_of(text, [(i, i + 1) for i in range(len(text))]) == ["to", "be", "!", "\n", "or"]


def test_a_token_that_covers_two_words_joins_them() -> None:
    assert words_of("it's done.", [(0, 4), (4, 10)]) == ["it's", "done."]


def test_tokens_without_the_spaces_between_them_are_words() -> None:
    assert words_of("the cat sat", [(0, 3), (4, 7), (8, 11)]) == ["the", "cat", "sat"]


def test_bytes_of_one_character_belong_to_its_word() -> None:
    assert number_words("né", [(0, 1), (1, 2), (1, 2)]) == (0, 0, 0)


def test_marks_stand_alone() -> None:
    assert number_words("ab", [None, (0, 1), (1, 2), None, None]) == (0, 1, 1, 2, 3)


def test_between_spaces_a_comma_is_of_its_word() -> None:
    text, cuts = "No, so", [(0, 2), (2, 3), (3, 6)]
    assert words_of(text, cuts, is_spaced=True) == ["No,", "so"]
    assert words_of(text, cuts) == ["No", ",", "so"]


def test_a_side_names_every_word_once() -> None:
    side = Side.of("un do", ["un", " d", "o"], [(0, 2), (2, 4), (4, 5)])
    assert side == Side(("un", " d", "o"), (0, 1, 1), ("un", "do"))


def test_tokens_are_found_again_in_the_passage_they_are_of() -> None:
    assert find_spans(["<eos>", "the", "cat", "<unk>", "mat"], "the cat wug mat") == [None, (0, 3), (3, 7), None, None]
