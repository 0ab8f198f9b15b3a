"""Studies of what a task reads: layers, pre-training, directions, units. Tiny ones, to the page."""

from pathlib import Path
from typing import Any

import pytest

from regard import api
from regard.data.labelled import Example
from regard.errors import RegardError
from regard.studies.directions import choose_width
from regard.studies.reader_config import DirectionsConfig, LayersConfig, UnitsConfig
from regard.studies.units import judge_each, list_words


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("tags") / "my.conll"
    lines = []
    for i in range(60):
        words = [("the", "D"), (f"n{i % 7}", "N"), (f"v{i % 5}", "V"), ("here", "A")]
        lines += [*(f"{word} {tag}" for word, tag in (words if i % 2 else words[::-1])), ""]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def lstm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lm")
    (folder / "my.txt").write_text("".join(f"the n{i % 7} v{i % 5} here\n" for i in range(200)))
    recipe: dict[str, Any] = {
        "model": {"name": "lstm", "d_model": 8, "n_layers": 2},
        "tokenizer": {"kind": "word", "vocab_size": None},
        "train": {"max_steps": 4, "eval_every": 4, "n_batch": 4, "n_context": 8},
        "runtime": {"device": "cpu", "n_threads": 1},
        "checkpoint": {"has_tensorboard": False},
    }
    api.train(recipe, data=str(folder / "my.txt"), out=folder / "run", is_tested=False)
    return folder / "run"


def test_layers_are_compared_on_runs_of_the_users(lstm: Path, tagged: str, tmp_path: Path) -> None:
    settings = [f"data={tagged}", "n_steps=3", "n_seeds=2", "layers=[first, last, sum-last-four, mix]"]
    study = api.study("layers", runs=[lstm], settings=settings, out=tmp_path / "out")
    scores = study.numbers["scores"]
    assert {score["layers"] for score in scores} == {"first", "last", "mix"}  # there are no four
    assert all(0 <= score["value"] <= 100 for score in scores)
    assert all(sum(score["shares"]) == pytest.approx(1) for score in scores if score["layers"] == "mix")
    assert study.sentence.startswith("Over 2 seeds")
    assert (tmp_path / "out" / "figure.png").stat().st_size > 1000


def test_pre_trained_and_scratch_are_scored_by_number_of_examples(lstm: Path, tagged: str, tmp_path: Path) -> None:
    settings = [f"data={tagged}", "n_steps=3", "n_seeds=1", "sizes=[5, 20]"]
    study = api.study("transfer", runs=[lstm], settings=settings, out=tmp_path / "out")
    ways = {(way.rpartition(", ")[2], size) for way, size, _ in study.numbers["scores"]}
    assert ways == {(way, size) for way in ("pre-trained", "from scratch") for size in (5, 20)}
    assert study.sentence.startswith("Trained once")


def test_directions_have_as_many_parameters(tagged: str, tmp_path: Path) -> None:
    config = DirectionsConfig.from_dict({"data": tagged, "n_parameters": 10_000})
    found = {(n, both): choose_width(config, n, both) for n in (1, 3) for both in (False, True)}
    assert all(abs(n - 10_000) < 1_000 for _, n in found.values())
    assert found[1, True][0] > found[1, False][0]  # halves of a width take fewer weights
    settings = [f"data={tagged}", "n_steps=3", "n_seeds=1", "layers=[1]", "n_parameters=10000"]
    study = api.study("directions", settings=settings, out=tmp_path / "out")
    assert [row[:2] for row in study.numbers["scores"]] == [["one direction", 1], ["two directions", 1]]


def test_a_choice_of_layers_that_there_is_not_is_refused() -> None:
    with pytest.raises(RegardError, match="layers must be some of first"):
        LayersConfig(layers=("middle",))


def test_words_are_new_where_training_never_showed_them() -> None:
    known = list_words([Example(("the dog sat",), ("D", "N", "V"))])
    tagged, text = Example(("the cat sat",), ("D", "N", "V")), Example(("the cat",), "good")
    assert list(judge_each(tagged, "D V V", known)) == [(False, True), (True, False), (False, True)]
    assert list(judge_each(text, "good", known)) == [(True, True)]
    assert list(judge_each(Example(("the dog",), "good"), "bad", known)) == [(False, False)]


def test_units_are_compared_by_number_of_examples(tagged: str, tmp_path: Path) -> None:
    settings = [f"data={tagged}", "n_steps=3", "n_seeds=1", "sizes=[10, 20]", "units=[types, types+characters, bpe]"]
    study = api.study("units", settings=[*settings, "d_model=8", "vocab_size=300"], out=tmp_path / "out")
    assert [row[:2] for row in study.numbers["scores"]] == [
        [unit, size] for size in (10, 20) for unit in ("words", "words and characters", "subwords (BPE)")
    ]
    assert "labelled examples" in study.sentence
    (table,) = study.finding.tables
    per_word = {(row[0], row[2]): float(str(row[3])) for row in table.rows}
    assert per_word["10", "words"] == 1.0
    assert per_word["10", "subwords (BPE)"] > 1.0
    with pytest.raises(RegardError, match=r"units are some of types, .* not 'byte'"):
        UnitsConfig(units=("byte",))


def test_faithfulness_is_measured_of_models_that_are_made(tmp_path: Path) -> None:
    reviews = tmp_path / "reviews.tsv"
    reviews.write_text("".join(f"the n{i % 7} is v{i % 5} here\t{'good' if i % 5 < 2 else 'bad'}\n" for i in range(60)))
    settings = ["models=[lstm]", "n_texts=2", "n_permutations=3", "n_steps=2", "n_seeds=2", "d_model=8",
                f"data={reviews}"]  # fmt: skip
    study = api.study("faithfulness", settings=settings, out=tmp_path / "out")
    found = study.numbers["predictions"]
    assert [(each["model"], each["seed"]) for each in found] == [("lstm", 0), ("lstm", 0), ("lstm", 1), ("lstm", 1)]
    assert all(0 <= each["numbers"]["moved, permuted"] <= 1 for each in found)
    assert study.sentence.startswith("Over 2 seeds")
    assert (tmp_path / "out" / "report.html").exists()


def test_faithfulness_of_a_language_model_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text("".join(f"the n{i % 7} v{i % 5} here\n" for i in range(200)))
    recipe: dict[str, Any] = {
        "model": {"name": "transformer", "d_model": 8, "n_layers": 1, "n_heads": 2, "max_context": 8},
        "tokenizer": {"kind": "word", "vocab_size": None},
        "train": {"max_steps": 2, "eval_every": 2, "n_batch": 4},
        "runtime": {"device": "cpu", "n_threads": 1},
        "checkpoint": {"has_tensorboard": False},
    }
    api.train(recipe, data=str(tmp_path / "my.txt"), out=tmp_path / "run", is_tested=False)
    settings = ["n_texts=1", "n_permutations=2"]
    study = api.study("faithfulness", runs=[tmp_path / "run"], settings=settings, out=tmp_path / "out")
    assert len(study.numbers["predictions"]) == 1
    assert study.sentence.startswith("Attention explains ")
    assert "% in run (transformer); permuting it moves the output by" in study.sentence


def test_faithfulness_of_what_does_not_attend_is_refused(lstm: Path, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="attends to nothing from which the prediction is made"):
        api.study("faithfulness", runs=[lstm], settings=["n_texts=1"], out=tmp_path / "out")
    with pytest.raises(RegardError, match=r"models are some of bag, .*not 'lstn'\. Did you mean 'lstm'\?"):
        api.study("faithfulness", settings=["models=[lstn]"], out=tmp_path / "out")
