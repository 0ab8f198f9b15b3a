"""Tables of confusions and lists of errors, as `regard eval` prints them."""

from regard.tasks.classification import draw_confusions, list_errors


def test_a_small_table_of_confusions_names_its_columns() -> None:
    assert draw_confusions(["neg", "pos"], [[3, 1], [0, 12]])[1:] == [
        "rows: the true class, columns: the class given",
        "         neg      pos",
        "neg        3        1",
        "pos        0       12",
    ]


def test_a_table_of_confusions_fits_eighty_columns() -> None:
    labels = [f"a-rather-long-class-{i}" for i in range(12)]
    lines = draw_confusions(labels, [[100 * (i == j) for j in range(12)] for i in range(12)])
    assert max(map(len, lines)) <= 80
    assert lines[2].split() == [str(i) for i in range(1, 13)]
    assert lines[3].split()[:3] == ["1", "a-rather-long-class-0", "100"]


def test_no_errors_have_no_title() -> None:
    assert list_errors([]) == []
