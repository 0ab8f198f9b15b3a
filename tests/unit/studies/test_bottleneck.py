"""The study of the bottleneck: bins, the sentence, and the study at a tiny size."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import regard
from regard.errors import RegardError
from regard.score.by_length import LengthScore, count_words
from regard.score.translation import bleu, chrf
from regard.studies.bottleneck import bottleneck_sentence, join_seeds, translate_by_length
from regard.studies.fits import Spread
from regard.studies.short_and_long import draw_pairs
from regard.studies.table import study_config
from regard.tasks.translation import TranslationRun

SMALL = ["n_steps=2", "d_model=8", "n_pairs=40", "n_test=4", "n_seeds=1", "max_words=9", "lengths=[9, 20]"]


def point(score: float, low: float = 0.0, high: float = 120.0) -> LengthScore:
    return LengthScore(shortest=1, longest=9, n_items=5, n_words=5.0, score=score, low=low, high=high)


def test_one_training_has_its_interval_over_sentences_and_several_have_it_over_seeds() -> None:
    assert join_seeds([(point(50.0, 40.0),)]) == {(1, 9): Spread(50.0, 40.0, 100.0)}
    both = join_seeds([(point(20.0),), (point(22.0),)])[1, 9]
    assert both.mean == 21.0
    assert both.low == pytest.approx(21.0 - 12.706, abs=1e-3)  # t of one degree of freedom, times 1


def test_the_sentence_compares_the_longest_taught_length_with_the_longest() -> None:
    near, middle, far = (1, 8), (9, 15), (16, 40)
    scores = {
        "no attention": {near: Spread(60.0), middle: Spread(50.0), far: Spread(3.0)},
        "attention": {near: Spread(80.0), middle: Spread(75.0), far: Spread(40.0, 30.0, 50.0)},
    }
    assert bottleneck_sentence(scores, 15, 3) == (
        "Over 3 seeds (95% intervals in brackets): taught with sentences of at most 15 words, BLEU on sentences of 9 "
        "to 15 words and on those of 16 to 40 is 50.0 and 3.0 with no attention; 75.0 and 40.0 (30.0 to 50.0) with "
        "attention."
    )
    assert "BLEU on sentences of 1 to 8 words and on those of 16 to 40 is" in bottleneck_sentence(scores, None, 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"models": ["atention"]}, "models must be out of no attention, attention, Transformer, not 'atention'. Did "),
        ({"lengths": [9]}, "lengths must be two or more numbers of words, each larger than the one before, not [9]."),
        ({"lengths": [9, 90]}, "lengths ends with 90, and the built-in grammar writes too few sentences"),
        ({"d_model": 6}, "d_model must be a multiple of 4"),
    ],
)
def test_settings_that_mean_nothing_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(RegardError, match=re.escape(said)):
        study_config("bottleneck", given)


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def tsv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of the grammar of every length."""
    path = tmp_path_factory.mktemp("pairs") / "long.tsv"
    drawn = draw_pairs(0, "train")
    path.write_text("".join(f"{source}\t{target}\n" for (source, target), _ in zip(drawn, range(900), strict=False)))
    return path


def test_models_learn_short_sentences_and_are_asked_for_longer_ones(tmp_path: Path) -> None:
    found = regard.study("bottleneck", settings=SMALL, out=tmp_path / "b")
    models = found.numbers["models"]
    assert [m["model"] for m in models] == ["no attention", "attention", "Transformer"]
    for m in models:
        assert [(p["shortest"], p["longest"]) for p in m["by_length"]] == [(1, 9), (10, 20)]
        assert all(0 <= p["bleu"] <= 100 and 0 <= p["chrf"] <= 100 for p in m["by_length"])
    assert models[0]["n_parameters"] < models[1]["n_parameters"]
    assert "no source has more than 9 words" in found.finding.method["Training"]
    assert found.sentence in (tmp_path / "b" / "report.html").read_text()
    assert (tmp_path / "b" / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow  # three trainings more
def test_pairs_of_the_user_are_learned_from_as_far_as_they_are_short(tmp_path: Path, tsv: Path) -> None:
    settings = ["n_steps=2", "d_model=8", "n_seeds=1", "max_words=9", f"data={tsv}", "models=[attention]"]
    found = regard.study("bottleneck", settings=settings, out=tmp_path / "own")
    (model,) = found.numbers["models"]
    assert len(model["by_length"]) == 2  # 5% of 900 pairs are two bins of twenty
    with pytest.raises(RegardError, match="there are 0 pairs with at most 3 words to learn from"):
        regard.study("bottleneck", settings=[*settings, "max_words=3"], out=tmp_path / "no")


@pytest.fixture(scope="module")
def run(tsv: Path, tmp_path_factory: pytest.TempPathFactory) -> TranslationRun:
    given = {
        "data": {"train": str(tsv), "p_test": 0.2},
        "tokenizer": {"kind": "word", "vocab_size": None},
        "model": {"name": "seq2seq", "encoder": "gru", "decoder": "gru", "attention": "none", "d_model": 8,
                  "n_layers": 1},
        "train": {"max_steps": 2, "eval_every": 2},
        "checkpoint": {"has_tensorboard": False},
    }  # fmt: skip
    made: TranslationRun = regard.train(given, out=tmp_path_factory.mktemp("runs") / "mine", is_tested=False)
    return made


def test_runs_of_the_user_are_measured_on_their_own_test_pairs(tmp_path: Path, run: TranslationRun) -> None:
    found = regard.study("bottleneck", runs=run.folder, out=tmp_path / "own")
    (model,) = found.numbers["models"]
    assert model["model"] == "mine (gru, no attention)"
    assert len(model["by_length"]) == 6
    assert "taught with" not in found.sentence
    with pytest.raises(RegardError, match="--set max_words is about the models that the study makes"):
        regard.study("bottleneck", runs=run.folder, settings=["max_words=8"], out=tmp_path / "x")


def test_a_bin_is_scored_as_a_corpus_of_its_own(run: TranslationRun) -> None:
    pairs = [pair for pair, _ in zip(draw_pairs(1, "test"), range(12), strict=False)]
    found = translate_by_length("mine", run, pairs, [(1, 10), (11, 70)])
    short = [pair for pair in pairs if count_words(pair[0]) <= 10]
    texts = [run.translate(source, beam=1, max_ratio=2.0) for source, _ in short]
    references = [target for _, target in short]
    assert found.bleu[0].n_items == len(short)
    assert found.bleu[0].score == pytest.approx(bleu(texts, references).score)
    assert found.chrf[0].score == pytest.approx(chrf(texts, references).score)
