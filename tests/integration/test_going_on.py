"""Runs that are begun, resumed and finished: what a person is told on the way."""

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny_gpt2 import write_hf_folder

import regard as package
from regard.errors import InterruptedRunError, RegardError
from regard.training.progress import Lines, Silent

Command = Callable[..., Any]
TINY_RUN = {
    "tokenizer": {"kind": "char"},
    "model": {"name": "lstm", "d_model": 16, "n_layers": 1},
    "train": {"max_steps": 6, "n_batch": 4, "n_context": 16, "eval_every": 3},
    "checkpoint": {"has_tensorboard": False},
}


def said(done: Any, code: int, *parts: str) -> None:
    assert done.code == code, done
    whole = " ".join((done.out + done.err).split())
    for part in parts:
        assert part in whole, whole


class Heard(Silent):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_setting_that_differs_from_the_runs_is_named_when_it_is_resumed(regard: Command, lstm_run: Path) -> None:
    done = regard("train", "--resume", "--out", lstm_run, "--set", "train.n_batch=5")
    said(done, 2, "was begun with train.n_batch = 4, and now train.n_batch = 5 is asked for.", "another folder")
    done = regard("train", "--resume", "--out", lstm_run, "--model", "gru")
    said(done, 2, "was begun with model.name = 'lstm', and now model.name = 'gru' is asked for.")


def test_resuming_a_finished_run_says_that_nothing_was_left_to_do(regard: Command, lstm_run: Path) -> None:
    for more in ([], ["--set", "train.max_steps=6"]):
        done = regard("train", "--resume", "--out", lstm_run, *more)
        said(done, 0, "Nothing was left to do: the run ended at step 6 (max_steps).")


@pytest.mark.parametrize(
    "model",
    [
        {"name": "transformer", "d_model": 8, "n_layers": 1, "n_heads": 2},  # max_context follows from n_context
        {"name": "bert", "size": "tiny", "d_model": 8, "n_layers": 1},  # wordpiece follows from the model
    ],
)
def test_a_recipe_that_leaves_settings_open_goes_on_with_what_it_began(
    text: Path, tmp_path: Path, model: dict[str, Any]
) -> None:
    given = {
        "data": {"train": str(text)},
        "model": model,
        "tokenizer": {"vocab_size": 90} if model["name"] == "bert" else {"kind": "char"},
        "train": {"max_steps": 2, "n_batch": 2, "n_context": 12, "eval_every": 1},
        "checkpoint": {"has_tensorboard": False},
    }
    package.train(given, out=tmp_path / "run")
    longer = {**given, "train": {**given["train"], "max_steps": 3}}  # type: ignore[dict-item]
    assert package.train(longer, out=tmp_path / "run", resume=True).config.train.max_steps == 3


def test_an_imported_run_cannot_be_resumed(regard: Command, text: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    write_hf_folder(tmp_path / "tiny")
    assert regard("import", tmp_path / "tiny", "--out", tmp_path / "run").code == 0
    for more in ([], ["--data", text]):
        done = regard("train", "--resume", "--out", tmp_path / "run", *more)
        said(done, 2, "was imported, not trained here: there is nothing to resume.", "regard train --from")


def test_an_import_into_a_run_does_not_offer_to_resume_it(regard: Command, ngram_run: Path, tmp_path: Path) -> None:
    assert regard("export", ngram_run, tmp_path / "words.arpa").code == 0
    done = regard("import", tmp_path / "words.arpa", "--out", ngram_run)
    said(done, 2, "already holds a run. Choose another folder.")
    assert "--resume" not in done.err


def test_a_longer_context_than_the_weights_have_can_only_be_lowered(
    regard: Command, transformer_run: Path, text: Path, tmp_path: Path
) -> None:
    words = ["--from", transformer_run, "--data", text, "--set", "train.n_context=100", "--out", tmp_path / "run"]
    done = regard("train", *words)
    said(done, 2, "train.n_context is 100, but the model", "sees at most 16 tokens. Lower it to 16 or less.")
    assert "raise" not in done.err


def test_a_recipe_whose_text_is_missing_says_what_to_do(
    regard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = {**TINY_RUN, "data": {"train": "data/mine/train.txt"}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(recipe))
    advice = "See mine.yaml for where to get it, or give your own: --data (in Python: data)."
    for more in ([], ["--dry-run"]):
        said(regard("train", "mine.yaml", *more), 2, "There is no file 'data/mine/train.txt'", advice)
    done = regard("train", "mine.yaml", "--data", "there/is/none.txt")
    said(done, 2, "There is no file 'there/is/none.txt'")
    assert "See mine.yaml" not in done.err
    (tmp_path / "both.yaml").write_text(yaml.safe_dump({"contenders": ["rnn"], "data": "no/such.txt", "budget": "1s"}))
    said(regard("compare", "both.yaml"), 2, "There is no file 'no/such.txt'", "See both.yaml for where to get it")


def test_the_card_suggests_the_prompt_that_the_command_line_suggests(
    regard: Command, text: Path, tmp_path: Path
) -> None:
    words = ["--model", "window", "--data", text, "--set", "train.max_steps=2", "--out", tmp_path / "run"]
    done = regard("train", *words, "--set", "tokenizer.kind=char")
    card = (tmp_path / "run" / "README.md").read_text()
    line = next(line.strip() for line in done.out.splitlines() if "regard generate" in line)
    prompt = shlex.split(line)[-1]
    assert len(prompt.split()) == 3
    assert line in card
    assert f'run.generate("{prompt}")' in card


def test_a_text_of_one_line_has_a_prompt_to_suggest_too(text: Path, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(" ".join(text.read_text().split()))
    run = package.train({**TINY_RUN, "data": {"train": str(tmp_path / "one.txt")}}, out=tmp_path / "run")
    assert run.ending is not None
    prompt = shlex.split(run.ending.usage.shell[0])[-1]
    assert len(prompt.split()) == 3


def test_an_interruption_is_told_once(text: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import os
    import signal

    class Impatient(Lines):
        def show(self, status: Any) -> None:
            if status.step == 2:
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(InterruptedRunError, match="Stopped at step") as told:
        package.train({**TINY_RUN, "data": {"train": str(text)}}, out=tmp_path / "run", reporter=Impatient())
    captured = capfd.readouterr()
    assert "Stopped" not in captured.out + captured.err
    assert "regard train --resume --out" in str(told.value)


@pytest.mark.parametrize(
    ("model", "notes"),
    [
        ({"is_variational": True, "n_layers": 2}, ["model.is_variational changes nothing"]),
        ({"is_variational": True, "n_layers": 1, "p_hidden": 0.3}, ["model.is_variational", "model.p_hidden"]),
        ({"d_hidden": 40, "n_layers": 1}, ["model.d_hidden changes nothing: it is the width of the layers below"]),
        ({"is_variational": True, "p_dropout": 0.1, "d_hidden": 8, "n_layers": 2}, []),
    ],
)
def test_settings_that_change_nothing_are_named_when_a_run_begins(
    text: Path, tmp_path: Path, model: dict[str, Any], notes: list[str]
) -> None:
    heard = Heard()
    data = {"train": str(text), "document": "file"}
    given = {**TINY_RUN, "model": {"name": "lstm", "d_model": 16, **model}, "data": data}
    package.train(given, out=tmp_path / "run", reporter=heard)
    assert len(heard.notes) == len(notes)
    for note, part in zip(heard.notes, notes, strict=True):
        assert note.startswith(part)


def test_a_trace_prints_as_a_few_lines(transformer_run: Path) -> None:
    shown = repr(package.load(transformer_run).trace("the cat sat"))
    assert "12 tokens" in shown
    assert "layers.0.attention (2, 12, 12)" in shown
    assert len(shown) < 1500


def test_models_are_named_without_an_article(
    regard: Command, ngram_run: Path, lstm_run: Path, text: Path, tmp_path: Path
) -> None:
    said(regard("export", lstm_run, tmp_path / "out"), 2, f"'{lstm_run}' is a run of lstm.")
    said(regard("train", "--from", ngram_run, "--data", text), 2, f"'{ngram_run}' is a run of ngram: counts")


def test_the_limits_of_a_setting_are_listed(regard: Command) -> None:
    whole = " ".join(regard("models", "gru").out.split())
    assert "from 0 to 0.95" in whole
    assert "from 1 on" in whole


def test_a_run_cannot_be_resumed_from_a_folder_that_was_changed_in_between(lstm_run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(lstm_run, tmp_path / "copy")
    (copy / "config.yaml").write_text((copy / "config.yaml").read_text().replace("max_steps: 6", "max_stepz: 6"))
    facts = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(facts | {"checksums": {}}))
    with pytest.raises(RegardError, match="max_stepz"):
        package.train(out=copy, resume=True, settings=["train.max_steps=6"])


def test_a_run_says_and_keeps_what_a_document_of_its_text_is(tmp_path: Path) -> None:
    body = "the cat sat on the mat, and nobody knew why it did so.\n" * 10
    (tmp_path / "book.txt").write_text("".join(f"CHAPTER {i}\n\n{body}\n" for i in range(1, 31)))
    recipe, heard = {**TINY_RUN, "data": {"train": str(tmp_path / "book.txt")}}, Heard()
    run = package.train(recipe, out=tmp_path / "run", reporter=heard)
    assert heard.notes[0] == "1 file, cut into 30 chapters; data.document: file keeps it whole."
    assert run.config.data.to_dict()["document"] == "chapter"
    written = (tmp_path / "run" / "config.yaml").read_bytes()
    package.train(recipe, out=tmp_path / "run", resume=True)  # the recipe still leaves it open
    assert (tmp_path / "run" / "config.yaml").read_bytes() == written
    with pytest.raises(RegardError, match=r"was begun with data.document = 'chapter', and now data.document = 'line'"):
        package.train(recipe, settings=["data.document=line"], out=tmp_path / "run", resume=True)


def test_a_dry_run_of_a_run_that_is_resumed_plans_that_run(regard: Command, lstm_run: Path) -> None:
    done = regard("train", "--resume", "--out", lstm_run, "--dry-run", "--set", "train.max_steps=9")
    said(done, 0, "d_model: 16", "max_steps: 9", "Nothing was trained")
    done = regard("train", "--resume", "--out", lstm_run, "--dry-run", "--set", "model.d_model=9")
    said(done, 2, "was begun with model.d_model = 16, and now model.d_model = 9 is asked for")


@pytest.mark.parametrize("more", [(), ("--set", "train.max_steps=9"), ("--dry-run",)])
def test_what_a_run_that_is_resumed_lacks_is_named(
    regard: Command, lstm_run: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    for name in ("config.yaml", "run.json"):
        shutil.copytree(lstm_run, tmp_path / name)
        (tmp_path / name / name).unlink()
        done = regard("train", "--resume", "--out", tmp_path / name, *more)
        said(done, 2, f"{name} is missing. Take it from a copy, or train again in another folder.")


def test_a_folder_with_a_config_and_no_run_is_not_to_be_resumed(
    regard: Command, text: Path, lstm_run: Path, tmp_path: Path
) -> None:
    shutil.copytree(lstm_run, tmp_path / "run")
    (tmp_path / "run" / "run.json").unlink()
    for more in ((), ("--force",)):
        done = regard("train", "lstm", "--data", text, "--out", tmp_path / "run", *more)
        said(done, 2, "holds a config.yaml and no run.json", "Choose another folder")
        assert "--resume" not in done.err


def test_a_finished_run_without_its_weights_has_lost_them(regard: Command, lstm_run: Path, tmp_path: Path) -> None:
    shutil.copytree(lstm_run, tmp_path / "run")
    (tmp_path / "run" / "model.safetensors").unlink()
    said(regard("eval", tmp_path / "run"), 2, "has lost its model.safetensors. Take it from a copy; or resume the run")
    assert regard("train", "--resume", "--out", tmp_path / "run", "--quiet").code == 0
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (lstm_run / "model.safetensors").read_bytes()


def test_a_new_run_may_be_begun_by_the_command_that_goes_on_with_it(
    regard: Command, text: Path, tmp_path: Path
) -> None:
    begin = ["train", "--resume", "--out", tmp_path / "run", "--data", text, "--set", "model.name=ngram", "--quiet"]
    assert regard(*begin).code == 0
    said(regard("train", "--resume", "--out", tmp_path / "none", "--data", text), 2, "There is no run folder")
