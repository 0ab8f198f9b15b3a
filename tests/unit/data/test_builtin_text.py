"""The texts that need no download hold nothing twice that would make a test score a lie."""

from collections import Counter

from regard.data.builtin import _first_seen, python_docs


def test_no_paragraph_of_the_prose_comes_twice() -> None:
    counts = Counter(" ".join(p.split()) for text in python_docs() for p in text.split("\n\n"))
    assert [p for p, n in counts.items() if n > 1 and len(p) >= 40] == []
    assert sum(len(p) * n for p, n in counts.items()) > 1_000_000


def test_a_paragraph_is_kept_where_it_comes_first() -> None:
    long, other, seen = (
        "a paragraph that is long enough to be a copy",
        "another one that is long enough to count",
        set(),
    )
    assert _first_seen(f"Title\n\n{long}\n", seen) == f"Title\n\n{long}\n"
    assert _first_seen(f"Title\n\n{long.replace(' ', '  ')}\n\n{other}", seen) == f"Title\n\n{other}\n"
    assert _first_seen(f"Title\n\n{long}", seen) == ""
