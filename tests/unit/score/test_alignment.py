"""Word alignments: the Pharaoh form, from attention, and the error rate by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import MissingTextError, RegardError
from regard.score.alignment import (
    Alignment,
    alignment_error_rate,
    hard_alignment,
    read_alignments,
    word_weights,
)

links = st.frozensets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)
alignments = st.builds(Alignment, links, links)


def test_sure_and_possible_links_are_read() -> None:
    read = Alignment.of("0-0 10-2 1p1 2?3")
    assert read.sure == {(0, 0), (10, 2)}
    assert read.possible == {(0, 0), (10, 2), (1, 1), (2, 3)}
    assert str(read) == "0-0 1p1 2p3 10-2"


@given(alignment=alignments)
def test_what_is_written_reads_back(alignment: Alignment) -> None:
    assert Alignment.of(str(alignment)) == alignment


def test_files_keep_empty_lines_and_name_the_line_of_an_error(tmp_path: Path) -> None:
    path = tmp_path / "test.align"
    given_ = [Alignment.of("0-0 1p1"), Alignment.of(""), Alignment.of("2-1")]
    path.write_text("0-0 1p1\n\n2-1\n", encoding="utf-8")
    assert read_alignments(path) == given_
    path.write_text("0-0\r\n1-1 0:1\r\n", encoding="utf-8", newline="")
    with pytest.raises(RegardError, match=r"test.align, line 2: '0:1' is no link. Write .* such as 0-1"):
        read_alignments(path)
    path.write_text("", encoding="utf-8")
    assert read_alignments(path) == []
    with pytest.raises(MissingTextError, match="no file of alignments at"):
        read_alignments(tmp_path / "absent")


@pytest.mark.parametrize("text", ["0-", "-1-0", "0-1-2", "a-b", "0 - 1", "²-1"])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(RegardError, match="is no link"):
        Alignment.of(text)


def test_links_that_leave_the_sentence_are_refused() -> None:
    Alignment.of("1-2").check(2, 3)
    with pytest.raises(RegardError, match="the link 1-2 leaves the sentence, which has 2 source and 2 target words"):
        Alignment.of("0-0 1-2").check(2, 2)
    with pytest.raises(RegardError, match="align, line 7: the link 2-0 leaves the sentence"):
        Alignment.of("2p0").check(2, 2, "train.align, line 7")


def test_pieces_of_a_word_are_added_up_in_the_source_and_averaged_in_the_target() -> None:
    # source: un+happy dog <eos>; target: mal+heureux chien
    weights = np.array([[0.5, 0.25, 0.125, 0.125], [0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 0.75, 0.25]])
    words = word_weights(weights, [0, 0, 1], [0, 0, 1, None])
    assert words.tolist() == [[0.625, 0.1875], [0.0, 0.75]]
    assert str(hard_alignment(words)) == "0-0 1-1"


def test_a_token_of_no_word_in_the_target_counts_nowhere() -> None:
    weights = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert word_weights(weights, [0, None], [0, 1]).tolist() == [[1.0, 0.0]]
    assert word_weights(weights, [None, None], [0, 1]).shape == (0, 2)
    assert hard_alignment(word_weights(weights, [None, None], [0, 1])) == Alignment(frozenset())


def test_weights_of_another_shape_are_refused() -> None:
    with pytest.raises(RegardError, match="weights are 2 x 3, but words are given for 2 target and 2 source tokens"):
        word_weights(np.ones((2, 3)), [0, 1], [0, 1])


def test_every_target_word_gets_the_source_word_it_looks_at_most() -> None:
    weights = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.1, 0.2, 0.7]])
    assert str(hard_alignment(weights)) == "0-1 1-0 2-2"  # the tie goes to the first


def test_the_error_rate_by_hand() -> None:
    gold = [Alignment.of("0-0 1-1 2p1"), Alignment.of("0-0")]
    found = [Alignment.of("0-0 2-1 2-2"), Alignment.of("0-0")]
    # A = 4 links, S = 3; sure ones found: 0-0, 0-0; possible ones found: 0-0, 2-1, 0-0
    score = alignment_error_rate(found, gold)
    assert (score.precision, score.recall) == (3 / 4, 2 / 3)
    assert score.error_rate == pytest.approx(1 - (2 + 3) / (4 + 3))
    assert str(score) == "alignment error rate 0.286 (precision 0.750, recall 0.667, 2 sentences)"
    assert json.loads(json.dumps(score.to_dict()))["n_right_possible"] == 3


def test_possible_links_may_be_missed_but_sure_ones_may_not() -> None:
    gold = [Alignment.of("0-0 1p1")]
    assert alignment_error_rate([Alignment.of("0-0")], gold).error_rate == 0.0
    assert alignment_error_rate([Alignment.of("0-0 1-1")], gold).error_rate == 0.0
    assert alignment_error_rate([Alignment.of("1-1")], gold).error_rate == 0.5


def test_nothing_found_and_nothing_to_find() -> None:
    nothing = Alignment.of("")
    assert alignment_error_rate([nothing], [nothing]).error_rate == 0.0
    score = alignment_error_rate([nothing], [Alignment.of("0-0")])
    assert (score.error_rate, score.precision, score.recall) == (1.0, 0.0, 0.0)
    assert alignment_error_rate([Alignment.of("0-0")], [nothing]).recall == 0.0


def test_alignments_of_different_texts_are_refused() -> None:
    with pytest.raises(RegardError, match="1 sentences are aligned, but 2 have gold links"):
        alignment_error_rate([Alignment.of("")], [Alignment.of("")] * 2)
    with pytest.raises(RegardError, match="no alignment was given"):
        alignment_error_rate([], [])
