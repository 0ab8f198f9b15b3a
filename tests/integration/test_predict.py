"""The four tasks with labels, from the command line and from Python."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import regard
from regard.errors import RegardError

QUICK = {
    "optimizer": {"lr": 0.02},
    "train": {"max_steps": 40, "n_batch": 16, "eval_every": 20},
    "runtime": {"device": "cpu", "n_threads": 1},
    "checkpoint": {"has_tensorboard": False},
    "tokenizer": {"kind": "word", "vocab_size": None},
}
MODEL = {"name": "lstm", "d_model": 16, "n_layers": 1}


def command(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "regard", *words],
        input=given,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "reviews.tsv"
    good, bad, things = ("fine", "lovely", "great"), ("dull", "awful", "poor"), ("film", "book", "play", "song", "cast")
    rows = [(f"the {w} was {a} and {b}", label) for label, words in (("good", good), ("bad", bad)) for w in things
            for a in words for b in words]  # fmt: skip
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    return path


@pytest.fixture(scope="module")
def classifier(reviews: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "classifier"
    regard.train({**QUICK, "model": MODEL}, task="classify", data=str(reviews), out=folder)
    return folder


def test_a_table_with_a_header_is_predicted_row_by_row_without_its_labels(classifier: Path, tmp_path: Path) -> None:
    texts = ["the film was great and fine", "a play was awful and dull"]
    bare, table, packed = tmp_path / "bare.txt", tmp_path / "named.tsv", tmp_path / "named.csv.gz"
    bare.write_text("\n" + "\n".join(texts) + "\n")
    table.write_text("label\ttext\n" + "".join(f"bad\t{text}\n" for text in texts))
    packed.write_bytes(gzip.compress(("text,label\n" + "".join(f"{text},bad\n" for text in texts)).encode()))
    found = [command("predict", str(classifier), str(file)) for file in (bare, table, packed)]
    assert found[0].returncode == 0, found[0].stderr
    assert [each.stdout for each in found[1:]] == [found[0].stdout] * 2
    assert len(found[0].stdout.splitlines()) == 3
    with table.open("a") as file:
        file.write("bad\n")
    assert "Line 4 has 1 column" in command("predict", str(classifier), str(table)).stderr
    skipped = command("predict", str(classifier), str(table), "--skip-bad")
    assert (skipped.returncode, skipped.stdout) == (0, found[0].stdout + "\n")
    assert "1 with another number of columns" in skipped.stderr


def test_a_classifier_is_trained_used_on_a_pipe_and_scored(classifier: Path) -> None:
    lines = ["the film was great and fine", "", "a play was awful and dull"]
    found = command("predict", str(classifier), given="\n".join(lines) + "\n")
    assert found.returncode == 0, found.stderr
    first, empty, last = found.stdout.splitlines()
    assert (first.split("\t")[0], empty, last.split("\t")[0]) == ("good", "", "bad")
    found = command("predict", str(classifier), "--json", given=lines[0] + "\n")
    parsed = json.loads(found.stdout)
    assert parsed["label"] == "good"
    assert sum(parsed["probabilities"].values()) == pytest.approx(1)
    scored = command("eval", str(classifier))
    assert "accuracy, %" in scored.stdout
    assert "rows: the true class, columns: the class given" in scored.stdout
    config = (classifier / "config.yaml").read_text()
    assert "labels:\n  - bad\n  - good" in config


def test_a_batch_predicts_what_single_texts_do_and_in_order(classifier: Path) -> None:
    run = regard.load(classifier, "cpu")
    texts = ["the film was great", "awful", "a book of the cast was dull and poor and dull", "unheard words"]
    together = list(run.predict(texts))
    alone = [next(iter(run.predict([text]))) for text in texts]
    assert [each.label for each in together] == [each.label for each in alone]
    for a, b in zip(together, alone, strict=True):
        assert a.probability == pytest.approx(b.probability, abs=1e-6)
    assert [each.label for each in run.predict(texts, window=1, max_tokens=1)] == [each.label for each in together]
    with pytest.raises(RegardError, match="Give a list of texts"):
        list(run.predict("one text"))


def test_other_data_with_an_unknown_label_is_refused_or_left_out(classifier: Path, tmp_path: Path) -> None:
    run, path = regard.load(classifier, "cpu"), tmp_path / "other.tsv"
    path.write_text("text\tlabel\nthe film was great\tgood\nthe film was odd\tso-so\n")
    with pytest.raises(RegardError, match="has the label 'so-so'"):
        run.evaluate(str(path))
    assert run.evaluate(str(path), skips_bad=True).n_examples == 1


@pytest.mark.parametrize(
    ("task", "data", "item", "key"),
    [
        ("rate", "grammar:en-stars:60", "Anna hates the dog.", "value"),
        ("tag", "grammar:en-ner:60", "Anna hates the dog .", "tags"),
        ("answer", "grammar:questions:60", ("Who hates the dog?", "Anna hates the dog."), "answer"),
    ],
)
def test_every_task_trains_predicts_and_resumes(tmp_path: Path, task: str, data: str, item: str, key: str) -> None:
    given = {**QUICK, "model": MODEL, "train": {"max_steps": 4, "n_batch": 8, "eval_every": 2}}
    given |= {"data": {"train": data, "valid": data.replace("60", "10"), "test": data.replace("60", "10")}}
    run = regard.train(given, task=task, out=tmp_path / "run")
    if task == "answer":
        assert list(run.lines(["no passage"], skips_long=True)) == [None]
        with pytest.raises(RegardError, match="Line 2: 'no passage' has 1 column"):
            list(run.lines(["\t".join(item), "no passage"]))
    assert key in next(iter(run.predict([item]))).to_dict()
    assert run.ending is not None
    assert run.ending.test is not None
    longer = {**given, "train": {**given["train"], "max_steps": 6}}
    assert regard.train(longer, task=task, out=tmp_path / "run", resume=True).folder == tmp_path / "run"


def test_a_language_model_reads_for_a_classifier_frozen_or_not(reviews: Path, text: Path, tmp_path: Path) -> None:
    lm = {"model": {"name": "gru", "d_model": 8, "n_layers": 1}, "tokenizer": {"kind": "char", "vocab_size": None}}
    regard.train({**QUICK, **lm, "train": {"max_steps": 2, "n_batch": 2}}, data=str(text), out=tmp_path / "lm")
    before = (tmp_path / "lm" / "model.safetensors").read_bytes()
    for name, frozen in (("frozen", True), ("tuned", False)):
        run = regard.train(
            str(tmp_path / "lm"), task="classify", data=str(reviews), out=tmp_path / name,
            settings=["train.max_steps=2", f"encoder.frozen={str(frozen).lower()}", "encoder.layers=mix"],
        )  # fmt: skip
        assert run.config.model_name == "gru"
        assert run.tokenizers[0].kind == "char"
        own = regard.load(tmp_path / "lm", "cpu").model.state_dict()
        read = run.model.encoder.state_dict()
        same = all(own[key].equal(read[key].cpu()) for key in own)
        assert same is frozen
    assert (tmp_path / "lm" / "model.safetensors").read_bytes() == before


def test_readers_are_compared_under_one_budget(reviews: Path, text: Path, tmp_path: Path) -> None:
    lm = {"model": {"name": "gru", "d_model": 8, "n_layers": 1}, "tokenizer": {"kind": "char", "vocab_size": None}}
    regard.train({**QUICK, **lm, "train": {"max_steps": 2, "n_batch": 2}}, data=str(text), out=tmp_path / "lm")
    found = regard.compare(
        ["bag", str(tmp_path / "lm")], task="classify", data=str(reviews), budget="100tokens", seeds=1,
        out=tmp_path / "compare",
    )  # fmt: skip
    assert set(found.ranking) == {"bag", "lm"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train", "lstm", "--task", "classfy"), "There is no task 'classfy'. Did you mean 'classify'?"),
        (("train", "lsmt", "--task", "classify"), "no model and no folder of one. Did you mean 'lstm'"),
        (("train", "ngram", "--task", "classify", "--data", "x.tsv"), "ngram is not for the task classification"),
        (("train", "lstm", "--task", "classify", "--data", "x.tsv", "--set", "encoder.frozen=true"), "none is named"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_said_in_a_sentence(words: tuple[str, ...], said: str) -> None:
    found = command(*words)
    assert found.returncode == 2
    assert said in found.stderr
    assert "Traceback" not in found.stderr


def test_a_line_with_the_wrong_columns_and_another_kind_of_run_are_refused(classifier: Path, tmp_path: Path) -> None:
    given = {**QUICK, "model": MODEL, "train": {"max_steps": 1}, "data": {"train": "grammar:questions:30"}}
    regard.train(given, task="answer", out=tmp_path / "answerer", is_tested=False)
    found = command("predict", str(tmp_path / "answerer"), given="Who?\n")
    assert found.returncode == 2
    assert "has 1 column, and a question and a passage are wanted" in found.stderr
    assert command("predict", str(tmp_path / "answerer"), "--skip-bad", given="Who?\n").stdout == "\n"
    assert "that tells the class of a text" in command("generate", str(classifier)).stderr
