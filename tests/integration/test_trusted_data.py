"""A run from elsewhere does not say which files are read: the user does, and they are compared with its own."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from run_damage import change, flip_bit, replace_in

from regard import api
from regard.data.cache import cache_root
from regard.data.known_sources import remember_sources
from regard.errors import RegardError


def test_a_run_from_elsewhere_does_not_say_what_is_read(
    regard, stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "passwords"
    secret.write_text("root:hunter2\n" * 100)
    config = stranger / "config.yaml"
    train = next(line for line in config.read_text().splitlines() if line.startswith("  train: "))
    replace_in(config, train, f"  train: {secret}")
    change(stranger / "run.json", checksums={})  # a stranger who writes a config leaves none of another
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    done = regard("eval", stranger)
    assert done.code == 2
    assert "was not trained on this machine, and its config.yaml asks to read" in " ".join(done.err.split())
    assert "--trust" in done.err
    assert not any(path.is_file() for path in (tmp_path / "cache").rglob("*"))
    with pytest.raises(RegardError, match="was not trained on this machine"):
        api.train(out=stranger, resume=True, settings=["train.max_steps=9"])
    api.check(stranger, is_trusted=True)
    assert "are not those that" in regard("eval", stranger).err


@pytest.mark.parametrize("key", ["vectors", "start_from"])
def test_a_run_from_elsewhere_does_not_say_where_weights_begin(
    regard, stranger: Path, tmp_path: Path, key: str
) -> None:
    """Its data are known, and built-in data always are: what it begins with is asked for by itself."""
    secret = tmp_path / "passwords"
    secret.write_text("root:hunter2\n" * 100)
    shutil.rmtree(stranger / "state")
    replace_in(stranger / "config.yaml", f"{key}: null", f"{key}: {secret}")
    change(stranger / "run.json", checksums={})
    again = ("train", "--resume", "--out", stranger, "--set", "train.max_steps=8")
    done = regard(*again)
    assert done.code == 2
    assert "hunter2" not in done.err
    why = f"was not begun on this machine, and its config.yaml asks to begin with {str(secret)!r}"
    assert why in " ".join(done.err.split())
    assert f"regard check {stranger} --trust" in " ".join(done.err.split())
    checked = json.loads(regard("check", stranger, "--json").out)
    assert (str(secret) in checked["sources"], checked["may_read"]) == (True, False)
    api.check(stranger, is_trusted=True)
    assert "was not begun on this machine" not in regard(*again).err


def test_a_run_that_was_killed_before_its_first_state_begins_with_its_vectors_again(
    regard, text: Path, tmp_path: Path
) -> None:
    vectors, out = tmp_path / "mine.vec", tmp_path / "run"
    vectors.write_text("\n".join(f"{word} {' '.join(['0.1'] * 16)}" for word in "abcdefgh") + "\n")
    recipe = {
        "data": {"train": str(text)}, "tokenizer": {"kind": "char"}, "checkpoint": {"has_tensorboard": False},
        "model": {"name": "lstm", "d_model": 16, "n_layers": 1},
        "train": {"max_steps": 6, "n_batch": 4, "n_context": 16, "eval_every": 3, "vectors": str(vectors)},
    }  # fmt: skip
    api.train(recipe, out=out)
    for left in [path for path in out.iterdir() if path.name not in ("config.yaml", "run.json", "tokenizer.json")]:
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    again = ("train", "--resume", "--out", out, "--set", "train.max_steps=8")
    done = regard(*again)
    assert done.code == 0, done.err


def test_a_run_of_this_machine_is_known_wherever_it_is_moved(regard, stranger: Path, text: Path) -> None:
    shutil.rmtree(cache_root() / "encoded")
    assert regard("eval", stranger).code == 0


def test_what_is_remembered_outlives_the_cache(lstm_run: Path, regard, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    remember_sources({"train": "a.txt"}, "0" * 32)
    (tmp_path / "encoded" / ("1" * 32)).mkdir(parents=True)
    (tmp_path / "encoded" / ("1" * 32) / "x.npy").write_bytes(b"x" * 100)
    assert json.loads(regard("cache", "--json").out)["entries"]["encoded"] == 1
    assert json.loads(regard("cache", "--clean", "--json").out)["entries"]["encoded"] == 0
    assert len(list((tmp_path / "known").iterdir())) == 1


def test_the_data_of_a_run_that_is_written_by_nobody_can_be_trusted(
    stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))  # of a machine that knows nothing
    weights = stranger / "model.safetensors"
    weights.rename(tmp_path / "kept elsewhere")  # as programs for large files do
    weights.symlink_to(tmp_path / "kept elsewhere")
    before = (stranger / "run.json").stat().st_mtime_ns
    assert not api.check(stranger).may_read
    assert api.check(stranger, is_trusted=True).may_read
    assert (stranger / "run.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("form", ["links", "read only"])
def test_the_data_of_an_older_run_that_is_written_by_nobody_can_be_trusted(
    stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """It has fewer checksums than are written now; nothing in it is damaged."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    sums = json.loads((stranger / "run.json").read_text())["checksums"]
    change(stranger / "run.json", checksums={"model.safetensors": sums["model.safetensors"]})
    if form == "links":
        (stranger / "config.yaml").rename(tmp_path / "kept elsewhere")
        (stranger / "config.yaml").symlink_to(tmp_path / "kept elsewhere")
    else:
        refusal = RegardError("Cannot write in it: Permission denied.")
        monkeypatch.setattr("regard.run.checksums.write_facts", Mock(side_effect=refusal))
    assert not api.check(stranger).may_read
    assert api.check(stranger, is_trusted=True).may_read
    flip_bit(stranger / "model.safetensors")
    with pytest.raises(RegardError, match=r"is a link|Permission denied"):
        api.check(stranger, is_trusted=True)


def test_other_data_that_a_config_names_are_not_those_of_the_run(regard, stranger: Path, tmp_path: Path) -> None:
    """`eval` scored the old text, which the cache still had, and said no word of the new one."""
    other = tmp_path / "other.txt"
    other.write_text("another text\n" * 300)
    config = stranger / "config.yaml"
    config.write_text(re.sub(r"train: .*my\.txt", f"train: {other}", config.read_text(), count=1))
    assert regard("check", stranger, "--trust").code == 0
    done = regard("eval", stranger)
    assert done.code == 2
    assert "are not those that" in done.err
    assert regard("eval", stranger, "--data", other).code == 0


def test_data_that_may_be_read_are_compared_once_and_then_taken_from_the_cache(
    regard, stranger: Path, text: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "moved.txt"
    shutil.copyfile(text, moved)
    config = stranger / "config.yaml"
    config.write_text(re.sub(r"train: .*my\.txt", f"train: {moved}", config.read_text(), count=1))
    assert regard("check", stranger, "--trust").code == 0
    first = regard("eval", stranger)
    assert first.code == 0
    moved.unlink()
    assert regard("eval", stranger).out == first.out


@pytest.mark.parametrize("words", [("train", "--resume", "--dry-run"), ("train", "--resume")])
def test_naming_other_data_of_a_run_that_is_resumed_does_not_make_them_its_own(
    regard, stranger: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("another text\n" * 300)
    config = stranger / "config.yaml"
    config.write_text(re.sub(r"train: .*my\.txt", f"train: {other}", config.read_text(), count=1))
    assert regard("check", stranger, "--trust").code == 0
    for command in ([*words, "--out", stranger, "--data", other], ["eval", stranger]):
        done = regard(*command)
        assert done.code == 2
        assert "are not those that" in done.err


def test_a_run_of_word_vectors_compares_its_data_too(regard, text: Path, tmp_path: Path) -> None:
    vectors = {"model": {"name": "lsa", "d_model": 4}, "data": {"train": str(text)}}
    run = api.train(vectors, out=tmp_path / "run").folder
    other = tmp_path / "other.txt"
    other.write_text("quite another text of words\n" * 300)
    config = run / "config.yaml"
    config.write_text(re.sub(r"train: .*my\.txt", f"train: {other}", config.read_text(), count=1))
    assert regard("check", run, "--trust").code == 0
    said = " ".join(regard("vectors", "coverage", run).err.split())
    assert "were not compared yet with those it was trained on" in said
    done = regard("eval", run)
    assert done.code == 2
    assert "are not those that" in done.err


def test_the_plan_of_a_strangers_run_reads_no_more_than_its_training(regard, stranger: Path, tmp_path: Path) -> None:
    shutil.rmtree(stranger / "state")
    replace_in(stranger / "config.yaml", "start_from: null", f"start_from: {tmp_path / 'elsewhere'}")
    change(stranger / "run.json", checksums={})
    for more in ((), ("--dry-run",)):
        done = regard("train", "--resume", "--out", stranger, *more)
        assert done.code == 2
        assert "asks to begin with" in done.err
