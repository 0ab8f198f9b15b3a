"""Features of a text, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from regard.lens import features


def marked(text: str, values: np.ndarray) -> str:
    """The characters at which a feature is above zero, others as dots."""
    return "".join(c if v else "." for c, v in zip(text, values, strict=True))


def test_features_on_a_line_worked_by_hand() -> None:
    text = 'ab "c"\nD4.'
    assert features.position_in_line(text).tolist() == [1, 2, 3, 4, 5, 6, 0, 1, 2, 3]
    assert features.inside_quotes(text).tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    assert features.position_in_word(text).tolist() == [1, 2, 0, 1, 2, 3, 0, 1, 2, 3]
    assert features.position_in_sentence(text).tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    assert features.capitals(text).tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 0, 0]
    assert features.digits(text).tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 1, 0]
    assert features.indentation("a\n  b\n\tc").tolist() == [0, 0, 2, 2, 2, 2, 4, 4]


def test_brackets_are_closed_by_a_blank_line() -> None:
    assert features.bracket_depth("((a\n\nb").tolist() == [1, 2, 2, 2, 0, 0]


def test_a_quote_in_a_comment_and_a_comment_in_a_quote_are_what_they_look_like() -> None:
    text = "x = '#a'  # don't\ny = \"b\""
    assert marked(text, features.inside_quotes(text)) == "....'#a...............\"b."
    assert marked(text, features.inside_comments(text)) == "..........# don't" + "." * 8


def test_an_apostrophe_in_prose_opens_no_quote() -> None:
    text = "It isn't \"so,\nhe said\" in '38"
    assert (
        marked(text, features.inside_quotes(text))
        == '.........."so,\nhe said'.replace("..........", ".........") + "." * 8
    )


def test_a_docstring_is_neither_a_quote_nor_a_comment() -> None:
    text = 'def f():\n    """Say "hi" # now.\n    """\n    1'
    inside = marked(text, features.inside_docstring(text))
    assert inside.strip(".") == '"""Say "hi" # now.\n    """'
    assert not features.inside_quotes(text).any()
    assert not features.inside_comments(text).any()


def test_an_if_holds_its_line_and_what_is_indented_below_it() -> None:
    text = "a\n    if b:  # c\n        d\n\n        e\n    f\nif prose goes on\nif (x) {\n  y\n}\n"
    found = marked(text, features.inside_if(text)).replace("\n", "⏎")
    assert found == "..    if b:  # c⏎        d⏎⏎        e⏎......" + "." * 17 + "if (x) {⏎  y⏎.."


@pytest.mark.parametrize("name", list(features.FEATURES))
@pytest.mark.parametrize("text", ["", "a", "\n", "x(\n\n'q' \"z\" 9", '"""', "if a:", "# c", "/*"])
def test_a_feature_has_one_finite_value_a_character(name: str, text: str) -> None:
    values = features.FEATURES[name](text)
    assert values.shape == (len(text),)
    assert np.isfinite(values).all()


def test_a_feature_varies_where_it_changes_four_times() -> None:
    assert features.varies(np.array([0.0, 1, 0, 1, 0]))
    assert not features.varies(np.array([0.0, 1, 0, 1, 1]))
    assert not features.varies(np.zeros(9))


def test_the_passage_shown_is_one_on_which_the_feature_varies() -> None:
    text = "aaaa " * 19 + "aaaa\n" + "(b) c " * 5 + "aaaa " * 20
    begin, end = features.choose_varied(features.bracket_depth(text), text, 30)
    assert (begin, end) == (100, 130)
    begin, end = features.choose_varied(features.bracket_depth(text), text, 30, first=140)
    assert begin >= 140
    assert end - begin == 30
