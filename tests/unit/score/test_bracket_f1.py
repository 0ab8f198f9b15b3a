"""Bracket F1 by hand, rule by rule."""

import json

import pytest

from regard.data.trees import Tree, parse_brackets
from regard.errors import RegardError
from regard.score.bracket_f1 import BracketScore, bracket_f1


def score(predicted: str, gold: str, **options: bool) -> BracketScore:
    """Of trees that stand one a line."""
    trees = ([tree for tree, _ in parse_brackets(text.strip().split("\n"))] for text in (predicted, gold))
    return bracket_f1(*trees, **options)


def counts(predicted: str, gold: str, **options: bool) -> tuple[int, int, int]:
    found = score(predicted, gold, **options)
    return found.n_matched, found.n_predicted, found.n_gold


SAW = "(S (NP (NN I)) (VP (VBD saw) (NP (NP (DT a) (NN dog)) (PP (IN with) (NP (NN glasses))))))"
SAW_WITH = "(S (NP (NN I)) (VP (VBD saw) (NP (DT a) (NN dog)) (PP (IN with) (NP (NN glasses)))))"


def test_an_attachment_gone_wrong_costs_one_bracket() -> None:
    # both have S(0,6) NP(0,1) VP(1,6) NP(2,4) PP(4,6) NP(5,6); the gold tree has NP(2,6) too
    found = score(SAW_WITH, SAW)
    assert (found.n_matched, found.n_predicted, found.n_gold) == (6, 6, 7)
    assert (found.precision, found.recall, found.f1) == (1.0, 6 / 7, pytest.approx(12 / 13))
    assert (found.n_exact, found.exact) == (0, 0.0)


def test_counts_are_summed_over_sentences_before_dividing() -> None:
    found = score(f"{SAW_WITH}\n(S (NN a))", f"{SAW}\n(S (NN a))")
    assert (found.n_matched, found.n_gold, found.n_exact, found.exact) == (7, 8, 1, 0.5)
    assert found.f1 == pytest.approx(14 / 15)  # not the mean of 12/13 and 1


def test_tags_do_not_count() -> None:
    assert counts("(S (VB a) (VB b))", "(S (NN a) (JJ b))") == (1, 1, 1)
    assert score("(S (VB a) (VB b))", "(S (NN a) (JJ b))").exact == 1.0


def test_the_root_does_not_count_where_it_is_called_so() -> None:
    for root in ("TOP", "S1", "ROOT"):
        assert counts("(S (NN a))", f"({root} (S (NN a)))") == (1, 1, 1)
    assert counts("(S (NN a))", "(X (S (NN a)))") == (1, 1, 2)


def test_punctuation_is_taken_out_first() -> None:
    # the comma inside or outside of the NP is the same; what covers only punctuation is nothing
    inside, outside = "(S (NP (NN a) (, ,)) (VP (VB b)))", "(S (NP (NN a)) (, ,) (VP (VB b)))"
    assert counts(inside, outside) == (3, 3, 3)
    assert counts("(S (NN a) (PRN (: --)))", "(S (NN a) (: --))") == (1, 1, 1)


def test_other_signs_are_words() -> None:
    for tag in ("$", "-LRB-", "#"):
        assert counts(f"(S (NP (NN a) ({tag} x)))", f"(S (NP (NN a)) ({tag} x))") == (1, 2, 2)


def test_the_gold_tags_say_what_punctuation_is() -> None:
    assert counts("(S (NP (NN a) (NN ,)) (VP (VB b)))", "(S (NP (NN a)) (, ,) (VP (VB b)))") == (3, 3, 3)
    assert counts("(S (NP (NN a)) (, and) (VP (VB b)))", "(S (NP (NN a) (CC and)) (VP (VB b)))") == (2, 3, 3)


def test_traces_cover_nothing() -> None:
    assert counts("(S (NP (-NONE- *)) (VP (VB a)))", "(S (VP (NP (-NONE- *)) (VB a)))") == (2, 2, 2)


def test_functions_are_left_off_and_particles_are_adverbs() -> None:
    assert counts("(S (NP (NN a)) (PRT (RP up)))", "(S (NP-SBJ-1 (NN a)) (ADVP=2 (RP up)))") == (3, 3, 3)


def test_a_bracket_that_is_there_twice_matches_twice_at_most() -> None:
    assert counts("(NP (NP (NP (NN a))))", "(NP (NP (NN a)))") == (2, 3, 2)
    assert counts("(NP (NN a))", "(NP (NP (NN a)))") == (1, 1, 2)


def test_labels_must_agree() -> None:
    assert counts("(S (VP (NN a)) (NN b))", "(S (NP (NN a)) (NN b))") == (1, 2, 2)


def test_trees_without_tags() -> None:
    assert counts("(S (NP dogs) (VP bark .))", "(S (NP dogs) (VP bark) .)", has_tags=False) == (2, 3, 3)


def test_a_sentence_of_punctuation_alone_has_nothing_to_match() -> None:
    found = score("(S (. .))", "(X (. .))")
    assert (found.precision, found.recall, found.f1, found.exact) == (0.0, 0.0, 0.0, 1.0)


def test_the_score_as_text_and_as_plain_values() -> None:
    found = score(SAW_WITH, SAW)
    assert str(found) == "F1 92.31 (precision 100.00, recall 85.71, exact 0.00% of 1 sentences)"
    assert json.loads(json.dumps(found.to_dict()))["f1"] == found.f1


@pytest.mark.parametrize(
    ("predicted", "gold", "says"),
    [
        ("(S (NN a))\n(S (NN b))", "(S (NN a))", "There are 2 parses for 1 gold trees"),
        ("(S (NN a))\n(S (NN b))", "(S (NN a))\n(S (NN c))", "Sentence 2: word 1 is 'b' in the parse and 'c' in the"),
        ("(S (NN a))", "(S (NN a) (NN b))", "Sentence 1: the parse has 1 words and the gold tree 2"),
        ("(S a b)", "(S (NN a) (NN b))", "Sentence 1: The word 'a' stands beside others .* has_tags false"),
    ],
)
def test_trees_that_do_not_belong_together_are_refused(predicted: str, gold: str, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        score(predicted, gold)


def test_nothing_to_score_is_refused() -> None:
    nothing: list[Tree] = []
    with pytest.raises(RegardError, match="no tree was given"):
        bracket_f1(nothing, nothing)
