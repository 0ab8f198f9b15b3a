"""Whatever is wrong with the input: one clear sentence, exit code 2, nothing lost, no traceback."""

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from regard.errors import suggest_path


@pytest.fixture
def refuses(regard):
    """`refuses("part", ..., words=[...])`: the command ends with code 2 and a sentence that has all parts."""

    def check(*parts: str, words: list[object]) -> None:
        done = regard(*words)
        assert done.code == 2, done
        assert "Traceback" not in done.err
        sentence = " ".join(done.err.split())
        for part in parts:
            assert part in sentence, sentence

    return check


def small(data: object, *more: object) -> list[object]:
    """A `regard train` that would be over in a moment, if it began."""
    sets = ["tokenizer.kind=char", "model.d_model=8", "train.max_steps=2", "train.n_context=8", "train.n_batch=2"]
    return ["train", "--model", "lstm", "--data", data, *[w for s in sets for w in ("--set", s)], *more]


def test_a_missing_file_names_the_nearest(refuses, text: Path, tmp_path: Path) -> None:
    refuses("my.tx'", f"Did you mean '{text}'?", words=small(text.with_name("my.tx"), "--out", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_an_empty_file(refuses, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    refuses(
        "is empty. Give a file that holds some text", words=small(tmp_path / "empty.txt", "--out", tmp_path / "run")
    )


def test_a_binary_file(refuses, tmp_path: Path) -> None:
    (tmp_path / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00")
    refuses("picture.txt", "not text", words=small(tmp_path / "picture.txt", "--out", tmp_path / "run"))


def test_broken_utf8_says_where(refuses, tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"caf\xc3\xa9 au lait\n" * 10 + b"caf\xe9\n")
    refuses("latin.txt", "UTF-8", "143", words=small(tmp_path / "latin.txt", "--out", tmp_path / "run"))


def test_a_truncated_gzip_file(refuses, tmp_path: Path) -> None:
    whole = gzip.compress(os.urandom(2000).hex().encode())
    (tmp_path / "cut.txt.gz").write_bytes(whole[: len(whole) // 2])
    refuses("cut.txt.gz", "gzip", words=small(tmp_path / "cut.txt.gz", "--out", tmp_path / "run"))


def test_a_text_shorter_than_one_window(refuses, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("a few words\n")
    words = small(
        tmp_path / "short.txt", "--out", tmp_path / "run", "--set", "data.p_valid=0", "--set", "data.p_test=0"
    )
    refuses("n_context + 1 = 65", "Give more text", words=[*words, "--set", "train.n_context=64"])
    refuses("too few to cut 5% off", "Give more text", words=small(tmp_path / "short.txt"))
    assert not (tmp_path / "run").exists()


def test_an_unknown_key_names_the_nearest(refuses, text: Path, tmp_path: Path) -> None:
    refuses("'model.d_mode'", "Did you mean 'model.d_model'?", words=small(text, "--set", "model.d_mode=3"))


def test_a_wrong_type_and_a_wrong_range(refuses, text: Path) -> None:
    refuses("model.n_layers must be a whole number, not 'two'", words=small(text, "--set", "model.n_layers=two"))
    refuses("p_dropout must be between 0 and 0.95, not 2", words=small(text, "--set", "model.p_dropout=2"))


def test_an_unknown_model(refuses, text: Path) -> None:
    refuses("There is no model 'lsmt'.", "Did you mean 'lstm'?", words=["train", "--model", "lsmt", "--data", text])


def test_an_out_folder_that_holds_another_run(refuses, text: Path, lstm_run: Path) -> None:
    before = (lstm_run / "model.safetensors").read_bytes()
    refuses("already holds a run", "--resume", words=small(text, "--out", lstm_run))
    assert (lstm_run / "model.safetensors").read_bytes() == before


def test_an_out_folder_that_holds_something_else(refuses, text: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    refuses("is not empty (it holds thesis.tex)", words=small(text, "--out", tmp_path))
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_resuming_with_another_config(refuses, text: Path, lstm_run: Path) -> None:
    words = small(text, "--out", lstm_run, "--resume", "--set", "model.d_model=9")
    refuses("was begun with", "is asked for", words=words)


def test_a_gpu_that_is_not_there(refuses, text: Path, tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    words = small(text, "--out", tmp_path / "run", "--set", "runtime.device=cuda")
    refuses("'cuda' was asked for", "runtime.device=cpu", words=words)
    refuses("device must be auto, cpu, cuda or cuda:N", words=small(text, "--set", "runtime.device=gpu"))


def test_more_memory_than_there_is(refuses, text: Path, tmp_path: Path) -> None:
    words = small(text, "--out", tmp_path / "run", "--set", "model.d_model=60000", "--set", "runtime.max_memory_gb=4")
    refuses("Training needs about", "smaller model", words=words)


def test_a_prompt_longer_than_the_context(refuses, regard, transformer_run: Path) -> None:
    words = ["generate", transformer_run, "--prompt", "the cat " * 9]
    refuses("sees 16 at most", "Shorten the prompt", words=words)
    assert regard(*words).out == ""


@pytest.mark.parametrize("verb", [["generate"], ["score"], ["eval"]])
def test_a_run_folder_that_is_not_there(refuses, lstm_run: Path, verb: list[str]) -> None:
    refuses("There is no run folder", f"Did you mean '{lstm_run}'?", words=[*verb, lstm_run.with_name("lsmt")])


@pytest.mark.parametrize("name", ["config.yaml", "run.json", "tokenizer.json", "model.safetensors"])
def test_an_incomplete_run_folder_names_what_is_missing(refuses, lstm_run: Path, tmp_path: Path, name: str) -> None:
    copy = shutil.copytree(lstm_run, tmp_path / "copy")
    (copy / name).unlink()
    refuses(name, words=["generate", copy])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("config.yaml", "was cut short"),
        ("run.json", "is damaged"),
        ("tokenizer.json", "is no tokenizer.json"),
        ("model.safetensors", "is no whole safetensors file"),
    ],
)
def test_a_truncated_run_folder(refuses, lstm_run: Path, tmp_path: Path, name: str, sentence: str) -> None:
    copy = shutil.copytree(lstm_run, tmp_path / "copy")
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[: len(content) // 2])
    refuses(name, sentence, words=["generate", copy])


def test_a_run_of_another_version(refuses, lstm_run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(lstm_run, tmp_path / "copy")
    facts = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps({**facts, "format": 9, "regard": "7.0"}))
    refuses("has run format 9, written by Regard 7.0", "reads format 1", words=["generate", copy])


def test_a_tokenizer_that_does_not_fit_the_weights(refuses, lstm_run: Path, text: Path, tmp_path: Path) -> None:
    from regard.text.config import TokenizerConfig
    from regard.text.learning import train_tokenizer

    copy = shutil.copytree(lstm_run, tmp_path / "copy")
    train_tokenizer(TokenizerConfig(kind="word"), [text.read_text()]).save(copy / "tokenizer.json")
    refuses("does not fit its weights", words=["generate", copy])


def test_weights_of_another_config(refuses, lstm_run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(lstm_run, tmp_path / "copy")
    config = (copy / "config.yaml").read_text().replace("d_model: 16", "d_model: 24")
    (copy / "config.yaml").write_text(config)
    refuses("has changed since it was written", f"regard check {copy} --trust", words=["generate", copy])
    from regard import api

    api.check(copy, is_trusted=True)
    refuses("do not fit this model", words=["generate", copy])


def test_a_file_where_a_run_folder_is_wanted(refuses, text: Path) -> None:
    refuses("is a file, not a run folder", words=["generate", text])


def test_a_full_disk_loses_nothing(text: Path, tmp_path: Path, regard, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    words = small(text, "--out", tmp_path / "run", "--set", "checkpoint.every_steps=1", "--set", "train.max_steps=6")
    folders, rename = [], os.rename

    def fills_up(source: Path, target: Path) -> None:
        folders.append(target)
        if "step-00000003" in str(target):
            raise OSError(errno.ENOSPC, "No space left on device")
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("regard.files.os.rename", fills_up)
        done = regard(*words)
    assert done.code == 2
    assert "No space left to write in" in done.err
    assert "Traceback" not in done.err
    assert (tmp_path / "run" / "state" / "step-00000002").is_dir()
    assert regard("train", "--resume", "--out", tmp_path / "run").code == 0
    assert (tmp_path / "run" / "state" / "step-00000006").is_dir()


def test_a_full_disk_is_told_by_its_file_where_that_is_known(
    regard, lstm_run: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    for name, told in ((None, "No space left on device."), ("/x/out", "No space left on device: /x/out.")):

        def fills_up(*_: object, name: str | None = name, **__: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device", name)

        monkeypatch.setattr("regard.cli.terminal.print_scored", fills_up)
        done = regard("score", lstm_run, text)
        assert (done.code, done.err) == (2, f"regard: {told} Nothing else was changed.\n")


def test_unknown_options_and_verbs_are_typers_own_errors(regard) -> None:
    assert regard("trian").code == 2
    assert regard("train", "--modle", "lstm").code == 2


def test_a_folder_in_which_another_process_trains(refuses, text: Path, tmp_path: Path) -> None:
    from regard.run.folder import lock_folder

    with lock_folder(tmp_path / "run"):
        refuses("Another process is training in", words=small(text, "--out", tmp_path / "run"))


def test_a_recipe_whose_sections_have_the_wrong_form(refuses, text: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text("data: my.txt\nmodel: lstm\n")
    refuses("'data' must be a mapping", words=["train", recipe, "--data", text])
    refuses("'model' must be a mapping", words=["train", recipe, "--model", "lstm"])
    recipe.write_text("data:\nmodel: {name: ngram}\n")
    refuses("'data.train' is required", words=["train", recipe, "--set", "train.max_steps=3"])


def test_an_out_folder_that_cannot_be_made(refuses, text: Path) -> None:
    refuses("cannot be made", words=small(text, "--out", text / "below-a-file"))


def test_the_section_of_a_wrong_value_is_named(refuses, text: Path) -> None:
    refuses("optimizer.name must be one of adamw, sgd, not 'adm'", words=small(text, "--set", "optimizer.name=adm"))


def test_generation_settings_out_of_range(refuses, lstm_run: Path) -> None:
    refuses("top_p must be between 0 and 1, not 3", words=["generate", lstm_run, "--top-p", 3])
    refuses("beam searches and does not sample", words=["generate", lstm_run, "--beam", 2, "--top-k", 3])


def test_score_refuses_an_unknown_unit(refuses, lstm_run: Path, text: Path) -> None:
    refuses("--by takes token, line or document, not 'word'", words=["score", lstm_run, text, "--by", "word"])


def test_eval_refuses_an_unknown_split(refuses, lstm_run: Path) -> None:
    refuses("split must be train, valid or test, not 'dev'", words=["eval", lstm_run, "--split", "dev"])


def test_training_without_text_or_model(refuses, text: Path) -> None:
    refuses("'data.train' is required", words=["train", "--model", "lstm"])
    refuses("'model.name' is required", words=["train", "--data", text])
    refuses("Say which run to resume: give its folder with --out", words=["train", "--resume"])


def test_ctrl_c_is_told_wherever_it_comes(regard, monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.cli import catalog

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(catalog, "_print_models", interrupt)
    done = regard("models")
    assert (done.code, done.err.strip()) == (130, "regard: interrupted.")


def test_a_link_to_nowhere_is_called_one(refuses, tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(tmp_path / "gone.yaml")
    for words in (small(link, "--out", tmp_path / "run"), ["train", link]):
        refuses(f"'{link}'. There is a link of this name, and what it points to is not there.", words=words)


def test_a_pipe_is_no_link_to_nowhere(regard, tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to(os.devnull)
    done = regard("vectors", "coverage", tmp_path / "null")
    assert done.code == 2
    assert "There is a link" not in done.err


def test_a_folder_that_may_not_be_listed_suggests_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> list[str]:
        raise PermissionError(13, "Permission denied", str(folder))

    (tmp_path / "my.txt").write_text("")
    assert suggest_path(tmp_path / "my.tx") == f" Did you mean '{tmp_path / 'my.txt'}'?"
    assert suggest_path(tmp_path / "my.tx", is_folder=True) == ""
    assert suggest_path(Path("/tpm")) == " Did you mean '/tmp'?"
    monkeypatch.setattr(os, "listdir", refuse)
    assert suggest_path(tmp_path / "my.tx") == ""


def test_a_cache_that_is_a_file_is_refused(refuses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "file"))
    refuses("cannot be used: it is no folder. Set REGARD_CACHE", words=["cache"])


def test_a_home_of_nobody_is_a_name_as_any_other(refuses, text: Path, tmp_path: Path) -> None:
    """`~NAME` where there is no such user ended in a traceback."""
    refuses("There is no file '~nobody-of-this-name/x'", words=small("~nobody-of-this-name/x", "--dry-run"))
    for setting in ("data.boundaries", "train.vectors"):
        more = ("--set", f"{setting}=~nobody-of-this-name/x", "--dry-run")
        refuses("'~nobody-of-this-name/x'", words=small(text, *more))
