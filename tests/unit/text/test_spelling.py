"""Words as ELMo's characters."""

from regard.text.spelling import spell_sentence_ends, spell_word, spell_words


def test_a_word_is_its_bytes_between_two_marks() -> None:
    assert spell_word("dog", 7).tolist() == [259, 101, 112, 104, 260, 261, 261]


def test_a_long_word_is_cut_before_the_mark_of_its_end() -> None:
    assert spell_word("abcdef", 5).tolist() == [259, 98, 99, 100, 260]


def test_the_ends_of_a_sentence_are_words_of_one_character() -> None:
    assert spell_sentence_ends(4).tolist() == [[259, 257, 260, 261], [259, 258, 260, 261]]


def test_no_words_are_no_rows() -> None:
    assert spell_words([], 5).shape == (0, 5)
