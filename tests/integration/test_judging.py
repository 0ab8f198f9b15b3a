"""`regard bleu` and `regard align`, as a user runs them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu
from typer.testing import CliRunner

from regard import api
from regard.cli import app
from regard.errors import RegardError


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "reference": ["a b c d e", "the cat sat on the mat", "no one was there at all"],
        "good": ["a b c d e", "the cat sat on mat", "no one was there at all"],
        "bad": ["a c b e d", "cat the on sat mat", "all at there was one no"],
        "short": ["a b c"],
    }
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return {name: tmp_path / name for name in texts}


def test_scores_are_sacrebleus_and_two_systems_are_told_apart(files: dict[str, Path]) -> None:
    words = ["bleu", str(files["good"]), "-r", str(files["reference"]), "--other", str(files["bad"]), "--json"]
    found = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).output)
    lines = [files[name].read_text().splitlines() for name in ("good", "reference")]
    assert found["bleu"]["score"] == pytest.approx(sacrebleu.corpus_bleu(lines[0], [lines[1]]).score, abs=1e-12)
    assert found["chrf"]["score"] == pytest.approx(sacrebleu.corpus_chrf(lines[0], [lines[1]]).score, abs=1e-12)
    assert found["versus"]["difference"] > 0
    said = CliRunner().invoke(app, words[:-1], catch_exceptions=False).output
    assert f"BLEU against {files['bad']}" in said


def test_text_that_is_split_into_words_is_told_of(tmp_path: Path) -> None:
    for name, line in (("split", "a dog ."), ("plain", "a dog.")):
        (tmp_path / name).write_text(f"{line}\n" * 100)
    note = "The translations are split into words already: this BLEU compares with no published score."

    def said(name: str, *more: str) -> str:
        words = ["bleu", str(tmp_path / name), "-r", str(tmp_path / name), *more]
        return CliRunner().invoke(app, words, catch_exceptions=False).output

    assert note in said("split")
    assert note not in said("plain")
    assert note not in said("split", "--tokenizer", "none")  # which is for such text


def test_two_systems_are_compared_by_the_tokenizer_that_was_asked_for(files: dict[str, Path]) -> None:
    words = ["bleu", str(files["good"]), "-r", str(files["reference"]), "--other", str(files["bad"]), "--json"]
    output = CliRunner().invoke(app, [*words, "--tokenizer", "char"], catch_exceptions=False).output
    lines = {name: files[name].read_text().splitlines() for name in ("good", "bad", "reference")}
    good, bad = (
        sacrebleu.corpus_bleu(lines[name], [lines["reference"]], tokenize="char").score for name in ("good", "bad")
    )
    assert json.loads(output)["versus"]["difference"] == pytest.approx(good - bad, abs=1e-9)


def test_every_file_is_read_once_so_that_each_may_be_a_pipe(files: dict[str, Path]) -> None:
    system, reference, other = (f"<(cat {files[name]})" for name in ("good", "reference", "bad"))
    command = f"{sys.executable} -m regard bleu {system} -r {reference} --other {other}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "BLEU against" in done.stdout


def test_files_of_unequal_length_are_refused(files: dict[str, Path]) -> None:
    with pytest.raises(RegardError, match=r"'.*short' ends after line 1, and '.*reference' goes on: line i"):
        CliRunner().invoke(app, ["bleu", str(files["short"]), "-r", str(files["reference"])], catch_exceptions=False)


def test_a_model_that_copies_word_by_word_aligns_each_with_itself(tmp_path: Path) -> None:
    settings = ["train.max_steps=150", "train.eval_every=150", "teaching.max_tokens=400", "teaching.smoothing=0",
                "model.encoder=lstm", "model.decoder=lstm", "model.attention=mlp", "model.d_model=32",
                "model.n_layers=1", "model.p_dropout=0", "optimizer.lr=0.01", "tokenizer.kind=word"]  # fmt: skip
    words = [f"w{i}" for i in range(6)]
    lines = [f"{a} {b} {c}" for a in words for b in words for c in words]
    (tmp_path / "pairs.tsv").write_text("".join(f"{line}\t{line}\n" for line in lines))
    run = api.train(model="seq2seq", data=str(tmp_path / "pairs.tsv"), settings=settings, out=tmp_path / "run")
    assert run.translate("w1 w4 w2") == "w1 w4 w2"
    (tmp_path / "text").write_text("w1 w4 w2\nw5 w0 w3\n")
    (tmp_path / "gold").write_text("0-0 1-1 2-2\n0-0 1-1 2-2\n")
    words = ["align", str(tmp_path / "run"), str(tmp_path / "text"), str(tmp_path / "text")]
    found = CliRunner().invoke(app, words, catch_exceptions=False).output.splitlines()
    assert [len(line.split()) for line in found] == [3, 3]
    scored = CliRunner().invoke(app, [*words, "--gold", str(tmp_path / "gold")], catch_exceptions=False).output
    assert scored.startswith("alignment error rate 0.")
    (tmp_path / "gold").write_text("0-0 1-1 2-2\n")
    with pytest.raises(RegardError, match="2 sentences are aligned, but 1 have gold links"):
        CliRunner().invoke(app, [*words[:1], str(tmp_path / "no run"), *words[2:], "--gold", str(tmp_path / "gold")],
                           catch_exceptions=False)  # fmt: skip


def test_a_gold_link_to_a_word_that_is_not_there_is_refused_before_a_run_is_loaded(tmp_path: Path) -> None:
    for name, text in (("source", "a b\na b\n"), ("target", "c d e\nc d e\n"), ("gold", "0-0 1-2\n0-0 2-1\n")):
        (tmp_path / name).write_text(text)
    words = [str(tmp_path / name) for name in ("no run", "source", "target")]
    with pytest.raises(
        RegardError, match="gold, line 2: the link 2-1 leaves the sentence, which has 2 source and 3 target words"
    ):
        CliRunner().invoke(app, ["align", *words, "--gold", str(tmp_path / "gold")], catch_exceptions=False)


def test_lines_that_are_aligned_are_printed_before_one_that_cannot_be(tmp_path: Path) -> None:
    settings = ["train.max_steps=2", "teaching.max_tokens=400", "model.d_model=16", "model.n_layers=1",
                "model.max_context=8", "tokenizer.kind=word"]  # fmt: skip
    (tmp_path / "pairs.tsv").write_text("".join(f"a {i}\tb {i}\n" for i in range(60)))
    api.train(model="seq2seq", data=str(tmp_path / "pairs.tsv"), settings=settings, out=tmp_path / "run")
    (tmp_path / "text").write_text("a 1\n" + "a " * 20 + "\n")
    words = ["align", str(tmp_path / "run"), str(tmp_path / "text"), str(tmp_path / "text")]
    done = CliRunner().invoke(app, words)
    assert "given a source of 20 tokens and reads at most 8" in str(done.exception)
    assert len(done.output.splitlines()) == 1


def test_a_line_that_is_not_utf8_is_named_with_its_file(files: dict[str, Path]) -> None:
    files["good"].write_bytes(b"a b c\ncaf\xe9\nd\n")
    with pytest.raises(
        RegardError, match=r"'.*good', line 2 is not UTF-8 \(.*\)\. Convert the text first, with iconv for ex"
    ):
        CliRunner().invoke(app, ["bleu", str(files["good"]), "-r", str(files["reference"])], catch_exceptions=False)
