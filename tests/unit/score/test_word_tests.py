from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.errors import RegardError
from regard.models.word_vectors import WordVectors
from regard.score.word_tests import choose_contexts, prefer_contexts, read_word_test, score_word_test, spearman

ROWS = [[1, 0.1, 0], [1, 1, 0], [0.1, 0, 1], [0.1, 1, 1], [-1, -1, -1]]
SQUARE = WordVectors(["man", "king", "woman", "queen", "tree"], np.array(ROWS, dtype=np.float32))


def test_spearman_is_that_of_ranks_with_ties_at_their_mean() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 20, 40]) == pytest.approx(0.9486832980505138)
    assert np.isnan(spearman([1, 1], [1, 2]))


def test_pairs_with_unknown_words_are_left_out_and_counted(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("word1\tword2\tscore\nMan\tking\t8\nman\twoman\t3\nman\ttree\t1\ncar\tman\t5\n")
    test = read_word_test(tmp_path / "pairs.tsv")
    found = score_word_test(SQUARE, test)
    assert (found.value, found.n_used, found.n_given) == (pytest.approx(100.0), 3, 4)


def test_analogies_are_solved_by_section(tmp_path: Path) -> None:
    (tmp_path / "questions.txt").write_text(": royal\nman king woman queen\n: odd\nman king woman tree\nman x y z\n")
    found = score_word_test(SQUARE, read_word_test(tmp_path / "questions.txt"))
    assert (found.value, found.n_used, found.n_given) == (50.0, 2, 3)
    assert found.parts == {"royal": (100.0, 1), "odd": (0.0, 1)}


@pytest.mark.parametrize(
    ("text", "said"),
    [("a b 1\na b\n", "line 2 is neither"), ("a b 1\na b c d\n", "both"), ("\n", "no rated pairs and no analogies")],
)
def test_a_file_that_is_no_test_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "t.txt").write_text(text)
    with pytest.raises(RegardError, match=said):
        read_word_test(tmp_path / "t.txt")


def test_contexts_are_three_different_words_of_which_the_second_stands_near_the_first() -> None:
    ids = np.random.default_rng(0).integers(0, 50, 3000)
    chosen = choose_contexts(ids, 200, window=2)
    near = {(int(ids[t]), int(ids[t + d])) for t in range(2, 2998) for d in (-2, -1, 1, 2)}
    assert len(chosen) > 150
    assert all((a, b) in near and len({a, b, c}) == 3 for a, b, c in chosen.tolist())
    assert len(choose_contexts(ids[:5], 10)) == 0
    assert prefer_contexts(SQUARE, np.array([[0, 1, 4], [0, 4, 1]])).tolist() == [True, False]


def test_a_word_that_is_not_there_is_refused_with_the_nearest_spelling() -> None:
    with pytest.raises(RegardError, match=r"'quen' is not among the 5 words\. Did you mean 'queen'\?"):
        SQUARE.nearest("quen")
    assert SQUARE.nearest("KING", 2)[0][0] == "man"
    assert SQUARE.analogy("man", "king", "woman", 1)[0][0] == "queen"
    assert len(SQUARE.nearest("king", 100)) == 4
