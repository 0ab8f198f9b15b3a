"""BLEU and chrF by hand and against sacreBLEU's own command line; intervals against sacreBLEU's bootstrap."""

import json
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from regard.errors import RegardError
from regard.score.translation import bleu, chrf, sample_sentences

WORDS = [
    "a",
    "the",
    "dog",
    "cat",
    "sees",
    "chases",
    "red",
    "house",
    "in",
    "garden,",
    "old",
    "and",
    "new.",
    "The",
    "Dog",
]


def made_up(n: int, seed: int, spoiled: float = 0.3) -> tuple[list[str], list[str]]:
    """References of 4 to 12 words, and hypotheses in which some of the words are others."""
    draws = random.Random(seed)
    references = [[draws.choice(WORDS) for _ in range(draws.randint(4, 12))] for _ in range(n)]
    hypotheses = [[draws.choice(WORDS) if draws.random() < spoiled else word for word in line] for line in references]
    return [" ".join(line) for line in hypotheses], [" ".join(line) for line in references]


def test_bleu_by_hand() -> None:
    # 5 of 6 words, 3 of 5 pairs, 1 of 4 triples; no four: sacreBLEU's exp smoothing makes that 1/2 of one in 3
    score = bleu(["the cat sat on the mat"], ["the cat sat in the mat"])
    assert score.precisions == pytest.approx((500 / 6, 300 / 5, 100 / 4, 100 / 6))
    assert score.score == pytest.approx(100 * (5 / 6 * 3 / 5 * 1 / 4 * 1 / 6) ** (1 / 4))
    assert (score.brevity_penalty, score.n_words, score.n_reference_words, score.n_sentences) == (1.0, 6, 6, 1)


def test_a_short_hypothesis_pays_the_brevity_penalty() -> None:
    score = bleu(["a b c d"], ["a b c d e f"])
    assert score.brevity_penalty == pytest.approx(math.exp(1 - 6 / 4))
    assert score.score == pytest.approx(100 * math.exp(-0.5))


def test_the_reference_of_nearest_length_counts() -> None:
    score = bleu(["a b c d e"], [["a b c d", "a b c d e f g h"]])
    assert (score.n_reference_words, score.brevity_penalty) == (4, 1.0)


def test_bleu_up_to_n_is_sacrebleu_with_that_order() -> None:
    hypotheses, references = made_up(40, seed=1)
    expected = [BLEU(max_ngram_order=n).corpus_score(hypotheses, [references]).score for n in (1, 2, 3, 4)]
    assert bleu(hypotheses, references).up_to == pytest.approx(expected, abs=1e-10)


def test_nothing_right_is_zero_up_to_every_order() -> None:
    score = bleu(["x y z"], ["a b c"])
    assert (score.score, score.up_to) == (0.0, (0.0, 0.0, 0.0, 0.0))


def test_case_counts_unless_told_otherwise() -> None:
    assert bleu(["The dog sees it"], ["the dog sees it"]).score < 100
    lowered = bleu(["The dog sees it"], ["the dog sees it"], is_lowercase=True)
    assert lowered.score == pytest.approx(100)
    assert "case:lc" in lowered.signature


def test_13a_splits_punctuation_off_and_none_does_not() -> None:
    assert bleu(["I see it, dog."], ["I see it, dog."]).n_words == 6
    assert bleu(["I see it, dog."], ["I see it, dog."], tokenizer="none").n_words == 4


def test_text_that_was_split_into_words_is_told_apart() -> None:
    assert bleu(["a dog ."] * 100, ["a dog ."] * 100).looks_tokenized
    assert not bleu(["a dog."] * 100, ["a dog."] * 100).looks_tokenized


def test_scores_as_plain_values() -> None:
    plain = bleu(["a b c d"], ["a b c d"]).to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["up_to"] == pytest.approx([100.0] * 4)
    assert plain["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert str(bleu(["a b c d"], ["a b c d"])).startswith("BLEU 100.00 (100.0/100.0/100.0/100.0, brevity penalty 1.000")
    assert chrf(["ab"], ["ab"]).to_dict()["score"] == pytest.approx(100)
    assert str(chrf(["ab"], ["ab"])).startswith("chrF 100.00 (nrefs:1|case:mixed|eff:yes|nc:6|nw:0")


def write(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("n_references", [1, 3])
def test_scores_are_those_of_sacrebleus_command_line(tmp_path: Path, n_references: int) -> None:
    hypotheses, _ = made_up(50, seed=3)
    columns = [made_up(50, seed=3, spoiled=0.2 * k)[0] for k in range(n_references)]
    files = [write(tmp_path / f"reference.{k}", column) for k, column in enumerate(columns)]
    command = [sys.executable, "-m", "sacrebleu", *files, "-i", write(tmp_path / "hypotheses", hypotheses)]
    options = ["-m", "bleu", "chrf", "-w", "12", "--format", "json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    theirs = {score["name"]: score for score in json.loads(done.stdout)}
    references = [list(row) for row in zip(*columns, strict=True)]
    ours = bleu(hypotheses, references)
    assert (round(ours.score, 12), ours.signature) == (theirs["BLEU"]["score"], theirs["BLEU"]["signature"])
    characters = chrf(hypotheses, references)
    assert (round(characters.score, 12), characters.signature) == (
        theirs["chrF2"]["score"],
        theirs["chrF2"]["signature"],
    )


def test_sentences_may_have_different_numbers_of_references() -> None:
    score = bleu(["a b c d", "e f g h"], [["x", "a b c d"], ["e f g h"]])
    assert score.score == pytest.approx(100)
    assert score.signature.startswith("nrefs:var")


@pytest.mark.parametrize("score", [bleu, chrf])
@pytest.mark.parametrize(
    ("hypotheses", "references", "says"),
    [
        ([], [], "There is nothing to score: no hypothesis was given"),
        (["a", "b"], ["a"], "There are 2 hypotheses and references for 1 sentences"),
        (["a", "b"], [["a"], []], "Sentence 2 has no reference"),
        ("a b", ["a b"], "The hypotheses must be a list of sentences, not one text"),
        (["a b"], "a b", "The references must be a list of sentences, not one text"),
    ],
)
def test_what_cannot_be_scored_is_refused(score, hypotheses, references, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RegardError, match=says):
        score(hypotheses, references)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(RegardError, match=r"must be one of 13a, intl, char, zh, none, not 'int1'. Did you mean 'intl'"):
        bleu(["a"], ["a"], tokenizer="int1")


def test_the_interval_agrees_with_sacrebleus_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """sacreBLEU draws sentences with replacement; half of the middle 95% is about what Student's t gives."""
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    worse, references = made_up(200, seed=5, spoiled=0.35)
    theirs = BLEU().corpus_score(worse, [references], n_bootstrap=1000)
    found = sample_sentences(worse, references).estimate
    assert found.value == pytest.approx(theirs.score, abs=1e-10)
    low, high = found.interval
    assert (high - low) / 2 == pytest.approx(theirs._ci, rel=0.15)


def test_a_clearly_better_system_wins_and_the_reverse_is_its_mirror() -> None:
    worse, references = made_up(80, seed=8, spoiled=0.6)
    better, _ = made_up(80, seed=8, spoiled=0.1)
    one, two = (sample_sentences(texts, references) for texts in (better, worse))
    assert (one - two).p == (two - one).p < 0.001
    assert (one - two).interval[0] == -(two - one).interval[1] > 0


def test_a_system_is_not_better_than_itself() -> None:
    hypotheses, references = made_up(30, seed=9)
    one = sample_sentences(hypotheses, references)
    assert ((one - one).p, (one - one).interval) == (1.0, (0.0, 0.0))
