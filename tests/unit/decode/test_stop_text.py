"""Stop strings, though the text arrives in pieces."""

from hypothesis import example, given
from hypothesis import strategies as st

from regard.decode.generate import StopText


def shown(pieces: list[str], stops: list[str]) -> str:
    stop = StopText(stops)
    return "".join([stop.push(p) for p in pieces]) + stop.flush()


def test_a_stop_string_across_pieces_is_found() -> None:
    assert shown(["one\n", "\ntwo"], ["\n\n"]) == "one"


def test_text_that_only_began_like_a_stop_string_is_shown_in_the_end() -> None:
    assert shown(["abc EN"], ["END"]) == "abc EN"


def test_the_earliest_of_several_stops_wins() -> None:
    assert shown(["aXbYc"], ["Y", "X"]) == "a"


@given(
    st.lists(st.text(alphabet="ab", max_size=3), max_size=8), st.lists(st.text(alphabet="ab", max_size=3), max_size=3)
)
@example(["ab", "b"], ["b", "abb"])  # after the first piece there is a stop, whatever comes
@example(["abb"], ["b", "abb"])
def test_pieces_give_what_the_whole_text_gives(pieces: list[str], stops: list[str]) -> None:
    text = "".join(pieces)
    ends = [(text.find(s) + len(s), text.find(s)) for s in stops if s and s in text]
    assert shown(pieces, stops) == (text[: min(ends)[1]] if ends else text)
