"""Texts with their surprise: no character and no nat is lost."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.score.scored import Scored, ScoredToken, join_tokens


def test_white_space_between_tokens_belongs_to_the_token_before_it() -> None:
    result = join_tokens("the  cat\n", [(0, 3), (5, 8), (8, 9)], np.array([1.0, 2.0, 3.0]))
    assert [t.text for t in result.tokens] == ["the  ", "cat", "\n"]


def test_the_end_of_the_text_is_a_token_without_text() -> None:
    result = join_tokens("ab", [(0, 2)], np.array([1.0, 0.25]))
    assert [(t.text, t.nats) for t in result.tokens] == [("ab", 1.0), ("", 0.25)]
    assert result.log_probability == -1.25
    assert result.bits_per_byte == pytest.approx(1.25 / np.log(2) / 2, abs=1e-15)


def test_bytes_of_one_character_show_it_once() -> None:
    result = join_tokens("é!", [(0, 1), (0, 1), (1, 2)], np.array([1.0, 2.0, 3.0]))
    assert [t.text for t in result.tokens] == ["", "é", "!"]


def test_lines_keep_their_newline_and_the_last_line_keeps_the_end() -> None:
    tokens = tuple(ScoredToken(text, 1.0) for text in ("a", "\n", "b", "\n", ""))
    parts = list(Scored("a\nb\n", tokens).parts("line"))
    assert [(p["text"], p["nats"], p["tokens"]) for p in parts] == [("a", 2.0, 2), ("b", 3.0, 3)]


def test_blank_lines_keep_their_place() -> None:
    tokens = (ScoredToken("a", 1.0), ScoredToken("\n\n\n", 2.0), ScoredToken("b", 4.0), ScoredToken("", 8.0))
    parts = list(Scored("a\n\n\nb", tokens).parts("line"))
    assert [(p["text"], p["nats"], p["tokens"]) for p in parts] == [
        ("a", 3.0, 2),
        ("", 0.0, 0),
        ("", 0.0, 0),
        ("b", 12.0, 2),
    ]


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(RegardError, match="takes token, line or document, not 'word'"):
        list(Scored("a", ()).parts("word"))


def test_parts_are_plain_values() -> None:
    result = join_tokens("ab", [(0, 1), (1, 2)], np.array([1.0, 2.0]))
    for by in ("token", "line", "document"):
        assert json.loads(json.dumps(list(result.parts(by)))) == list(result.parts(by))


@given(st.lists(st.text(alphabet="ab \n", min_size=1, max_size=4), min_size=1, max_size=8))
def test_text_and_nats_survive_any_cut(pieces: list[str]) -> None:
    text = "".join(pieces)
    ends = np.cumsum([len(p) for p in pieces])
    spans = [(int(e) - len(p), int(e)) for p, e in zip(pieces, ends, strict=True)]
    result = join_tokens(text, spans, np.arange(1.0, len(pieces) + 2))
    assert "".join(t.text for t in result.tokens) == text
    for by in ("token", "line", "document"):
        assert sum(p["nats"] for p in result.parts(by)) == pytest.approx(result.total, abs=1e-12)


def test_a_notebook_shows_surprising_tokens_and_escapes_them() -> None:
    shown = Scored("<b>a", (ScoredToken("<b>", 0.0), ScoredToken("a", 8 * math.log(2))))._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert 'title="8.0 bits" style="background:rgba(214,69,65,0.50)"' in shown
