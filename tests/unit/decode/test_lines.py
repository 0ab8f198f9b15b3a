from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.decode.lines import LinesDone, decode_lines
from regard.errors import RegardError


def words(line: str) -> list[str]:
    return line.split()


class Shouting:
    """Upper case; remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[list[list[str]]] = []

    def __call__(self, items: list[list[str]]) -> list[str]:
        self.batches.append(items)
        return [" ".join(item).upper() for item in items]


@given(
    lines=st.lists(st.lists(st.sampled_from(["a", "bc"]), max_size=7).map(" ".join), max_size=30),
    window=st.integers(1, 40),
    max_tokens=st.integers(1, 30),
)
def test_lines_come_out_in_their_order_and_batches_are_small(lines: list[str], window: int, max_tokens: int) -> None:
    decode = Shouting()
    outs = list(decode_lines(lines, words, decode, empty="", max_tokens=max_tokens, window=window))
    assert outs == [line.upper() for line in lines]
    for batch in decode.batches:
        assert all(batch), "an empty line was decoded"
        assert len(batch) == 1 or len(batch) * max(map(len, batch)) <= max_tokens


def test_a_batch_holds_lines_of_similar_length() -> None:
    decode = Shouting()
    lines = ["a", "a b c d", "a b", "a b c", "b"]
    assert list(decode_lines(lines, words, decode, empty="", max_tokens=6)) == [line.upper() for line in lines]
    assert [[len(item) for item in batch] for batch in decode.batches] == [[4], [3, 2], [1, 1]]


def counted(n: int, read: list[int]) -> Iterator[str]:
    for i in range(n):
        read.append(i)
        yield f"line {i}"


@pytest.mark.parametrize("window", [1, 10])
def test_no_more_than_a_window_is_read_ahead(window: int) -> None:
    read: list[int] = []
    outs = decode_lines(counted(10**9, read), words, Shouting(), empty="", window=window)
    assert read == []
    assert next(outs) == "LINE 0"
    assert len(read) == window
    for _ in range(window):
        next(outs)
    assert len(read) == 2 * window


def test_a_window_of_long_lines_is_shorter() -> None:
    read: list[str] = []

    def long_lines() -> Iterator[str]:
        for _ in range(1000):
            read.append("line")
            yield "a " * 200

    next(decode_lines(long_lines(), words, Shouting(), empty="", window=100))
    assert len(read) == 32  # 32 * 200 is the first above 64 tokens for each of 100 lines


def test_a_line_that_is_too_long_is_an_error_or_is_skipped_and_counted() -> None:
    lines = ["a", "", "a b c d", "a b"]
    with pytest.raises(RegardError, match=r"Line 3 has 4 tokens; at most 3 can be read\. Shorten it, or .*--skip-bad"):
        list(decode_lines(lines, words, Shouting(), empty="", max_line=3, window=2))
    told: list[LinesDone] = []
    outs = decode_lines(
        lines, words, Shouting(), empty="-", max_line=3, window=2, skips_long=True, progress=told.append
    )
    assert list(outs) == ["A", "-", "-", "A B"]
    assert told == [LinesDone(2, 1, 0), LinesDone(4, 1, 1)]


@pytest.mark.parametrize("window", [1, 2, 3, 4, 5, 100])
def test_what_stands_before_a_line_that_cannot_be_read_is_not_lost(window: int) -> None:
    def broken() -> Iterator[str]:
        yield from ("a", "", "b c", "d")
        raise RegardError("Line 5 is not UTF-8.")

    told: list[LinesDone] = []
    outs = decode_lines(broken(), words, Shouting(), empty="", window=window, progress=told.append)
    assert [next(outs) for _ in range(4)] == ["A", "", "B C", "D"]
    assert told[-1].n_lines == 4
    with pytest.raises(RegardError, match=r"Line 5 is not UTF-8\."):
        next(outs)
    assert list(outs) == []


@pytest.mark.parametrize("window", [1, 2, 3, 4, 100])
def test_what_stands_before_a_line_that_is_too_long_is_not_lost(window: int) -> None:
    outs = decode_lines(["a", "b c", "d e f g", "h"], words, Shouting(), empty="", max_line=3, window=window)
    assert [next(outs), next(outs)] == ["A", "B C"]
    with pytest.raises(RegardError, match="Line 3 has 4 tokens"):
        next(outs)


def test_a_first_line_that_cannot_be_read_is_an_error_at_once() -> None:
    told: list[LinesDone] = []
    outs = decode_lines(["a b"], words, Shouting(), empty="", max_line=1, progress=told.append)
    with pytest.raises(RegardError, match="Line 1 has 2 tokens"):
        next(outs)
    assert told == []


def test_progress_is_told_of_lines_that_need_no_decoding() -> None:
    told: list[LinesDone] = []
    assert list(decode_lines(["", " "], words, Shouting(), empty="", window=1, progress=told.append)) == ["", ""]
    assert [done.n_lines for done in told] == [1, 2]


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(RegardError, match="window and max_tokens must be at least 1, not 0 and 5"):
        next(decode_lines(["a"], words, Shouting(), empty="", window=0, max_tokens=5))
