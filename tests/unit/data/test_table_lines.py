"""Lines of tables that are asked about: which of them are a header, and which columns are texts."""

import pytest

from regard.data.table_lines import read_table_lines
from regard.errors import RegardError


@pytest.mark.parametrize(
    ("lines", "form", "texts", "wanted"),
    [
        (["text\tlabel", "a film\tpos", "", "b\tneg"], "tsv", (None,), ["", "a film", "", "b"]),
        (["stars,review", '5,"good, really"'], "csv", (None,), ["", "good, really"]),
        (["comment;rating", "fine;3"], "csv", ("comment",), ["", "fine"]),
        (["id\ta\tb", "1\tx\ty"], "tsv", ("2", "3"), ["", "x\ty"]),
        (["question\tpassage", "who?\tme"], "tsv", (None, None), ["", "who?\tme"]),
        (["a film\tpos", "b\tneg"], "tsv", (None,), ["a film\tpos", "b\tneg"]),
        (["The text is long.", "text"], "tsv", (None,), ["The text is long.", "text"]),
        ([], "tsv", (None,), []),
    ],
)
def test_a_header_is_no_example_and_names_the_columns_of_the_texts(
    lines: list[str], form: str, texts: tuple[str | None, ...], wanted: list[str]
) -> None:
    assert list(read_table_lines(lines, form, texts)) == wanted


def test_a_row_under_a_header_that_is_too_short_is_named() -> None:
    with pytest.raises(RegardError, match="Line 2 has 1 column, and column 2 of the header is wanted"):
        list(read_table_lines(["label\ttext", "pos"], "tsv", (None,)))


def test_rows_that_cannot_be_read_are_left_out_where_that_is_asked_for() -> None:
    given = ["label,text", "pos", 'pos,"open', "neg,bad"]
    assert list(read_table_lines(given, "csv", (None,), skips_bad=True)) == ["", None, None, "bad"]
    with pytest.raises(RegardError, match=r"Line 2 opens a quote that is not closed.* --skip-bad"):
        list(read_table_lines([given[0], given[2]], "csv", (None,)))
