"""What changed in a run or in the cache since it was written is found, named, and made again where it can be."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from run_damage import change, flip_bit, replace_in

from regard import api
from regard.errors import RegardError


def test_a_bit_that_flips_in_the_weights_is_found(regard, stranger: Path) -> None:
    assert regard("check", stranger).code == 0
    weights = bytearray((stranger / "model.safetensors").read_bytes())
    weights[-5] ^= 1
    (stranger / "model.safetensors").write_bytes(weights)
    found = regard("check", stranger)
    assert found.code == 2
    assert "changed since it was written" in found.out
    done = regard("generate", stranger)
    assert done.code == 2
    assert "has changed since it was written: its SHA-256" in done.err
    assert regard("check", stranger, "--trust").code == 0
    assert regard("generate", stranger, "--max-tokens", 2).code == 0


def test_a_refused_resume_leaves_the_checksums(regard, stranger: Path) -> None:
    """Damaged weights were loaded without a word after it: the checksums were gone."""
    before = (stranger / "run.json").read_bytes()
    shutil.rmtree(stranger / "state")
    flip_bit(stranger / "model.safetensors")
    done = regard("train", "--resume", "--out", stranger, "--set", "train.max_steps=8")
    assert done.code == 2
    assert f"regard check {stranger} --trust" in " ".join(done.err.split())
    assert (stranger / "run.json").read_bytes() == before
    assert regard("generate", stranger).code == 2
    api.check(stranger, is_trusted=True)
    assert "whose saved state is gone" in " ".join(regard("train", "--resume", "--out", stranger).err.split())
    assert json.loads((stranger / "run.json").read_text())["checksums"]


def test_a_resume_from_a_damaged_state_leaves_the_checksums_and_the_config(regard, stranger: Path) -> None:
    before = [(stranger / name).read_bytes() for name in ("run.json", "config.yaml", "model.safetensors")]
    flip_bit(max((stranger / "state").iterdir()) / "optimizer.safetensors")
    done = regard("train", "--resume", "--out", stranger, "--set", "train.max_steps=8")
    assert (done.code, "optimizer.safetensors has changed" in " ".join(done.err.split())) == (2, True)
    assert [(stranger / name).read_bytes() for name in ("run.json", "config.yaml", "model.safetensors")] == before
    assert not api.check(stranger).is_damaged


def test_weights_that_are_damaged_are_put_back_from_a_good_state(stranger: Path) -> None:
    before = (stranger / "model.safetensors").read_bytes()
    flip_bit(stranger / "model.safetensors")
    api.train(out=stranger, resume=True)
    assert (stranger / "model.safetensors").read_bytes() == before
    assert not api.check(stranger).is_damaged


def test_a_resume_as_another_ends_takes_the_checksums_of_the_end(
    stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard.run import engine

    lock, others = engine.run_folder.lock_folder, []

    def finish_first(folder: Path) -> Any:
        if not others:
            others.append(folder)
            api.train(out=folder, resume=True, settings=["train.max_steps=8"])
        return lock(folder)

    monkeypatch.setattr(engine.run_folder, "lock_folder", finish_first)
    with pytest.raises(RegardError, match=r"was changed by another process .* Start this command again"):
        api.train(out=stranger, resume=True, settings=["train.max_steps=9"])
    assert not api.check(stranger).is_damaged
    assert api.load(stranger, device="cpu").config.train.max_steps == 8


def test_counts_that_are_damaged_are_not_gone_on_with(ngram_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(ngram_run, folder)
    flip_bit(folder / "model.safetensors")
    with pytest.raises(RegardError, match="has changed since it was written"):
        api.train(out=folder, resume=True)
    with pytest.raises(RegardError, match="has changed since it was written"):
        api.load(folder)


def test_a_config_that_changed_is_found_wherever_the_run_is_opened(regard, stranger: Path, text: Path) -> None:
    """One letter of a label was printed as another; a resume trained at another rate and called it as written."""
    before = (stranger / "run.json").read_bytes()
    rate = next(line for line in (stranger / "config.yaml").read_text().splitlines() if line.startswith("  lr: "))
    replace_in(stranger / "config.yaml", rate, "  lr: 0.0012")
    resume = ("train", "--resume", "--out", stranger, "--set", "train.max_steps=8")
    for words in (("generate", stranger), resume, ("train", "--from", stranger, "--data", text, "--dry-run")):
        done = regard(*words)
        assert (done.code, "config.yaml' has changed since it was written" in " ".join(done.err.split())) == (2, True)
        assert f"regard check {stranger} --trust" in " ".join(done.err.split())
    assert (stranger / "run.json").read_bytes() == before
    states = {file.name: file.state for file in api.check(stranger).files}
    assert {name for name, state in states.items() if "changed" in state} == {"config.yaml"}
    assert not api.check(stranger, is_trusted=True).is_damaged
    assert api.load(stranger, device="cpu").config.to_dict()["optimizer"]["lr"] == 0.0012


def test_a_run_json_that_changed_is_found(regard, stranger: Path) -> None:
    replace_in(stranger / "run.json", '"opening": "', '"opening": "x')
    done = regard("generate", stranger)
    assert (done.code, "run.json' has changed since it was written" in " ".join(done.err.split())) == (2, True)
    assert f"regard check {stranger} --trust" in " ".join(done.err.split())
    found = regard("check", stranger)
    assert (found.code, found.out.count("changed since it was written")) == (2, 1)
    assert regard("check", stranger, "--trust").code == 0
    assert regard("generate", stranger, "--max-tokens", 2).code == 0
    change(stranger / "run.json", checksums={})  # of an earlier version
    assert regard("generate", stranger, "--max-tokens", 2).code == 0


def test_check_names_every_file_that_changed_and_says_why_the_run_is_not_opened(regard, stranger: Path) -> None:
    for name in ("config.yaml", "tokenizer.json"):
        replace_in(stranger / name, "max_steps" if name == "config.yaml" else '"vocab"', "[{")
    flip_bit(stranger / "model.safetensors")
    found = regard("check", stranger)
    assert (found.code, found.out.count("changed since it was written")) == (2, 3)
    assert "is not valid YAML" in " ".join((found.out + found.err).split())
    (stranger / "config.yaml").unlink()
    found = regard("check", stranger)
    assert (found.code, "missing" in found.out) == (2, True)


@pytest.mark.parametrize("kind", ["lstm_run", "ngram_run"])
def test_a_bit_that_flips_in_weights_without_a_sha256_is_found(
    regard, request: pytest.FixtureRequest, tmp_path: Path, text: Path, kind: str
) -> None:
    """Of a run that is not finished yet there is none in run.json: the file has a checksum of its own."""
    folder = tmp_path / "run"
    shutil.copytree(request.getfixturevalue(kind), folder)
    change(folder / "run.json", checksums={})
    assert regard("generate", folder, "--max-tokens", 2).code == 0
    flip_bit(folder / "model.safetensors")
    trained = [("train", "--from", folder, "--data", text, "--out", tmp_path / "new")] if kind == "lstm_run" else []
    for words in (("generate", folder), *trained):
        done = regard(*words)
        assert (done.code, "has changed since it was written" in " ".join(done.err.split())) == (2, True), done.err
        assert f"regard train --resume --out {folder}" in " ".join(done.err.split())
        assert f"regard check {folder} --trust" in " ".join(done.err.split())
    assert [file.name for file in api.check(folder).files if file.is_damaged] == ["model.safetensors"]
    before = (folder / "model.safetensors").read_bytes()
    assert not api.check(folder, is_trusted=True).is_damaged
    assert (folder / "model.safetensors").read_bytes() == before
    assert regard("generate", folder, "--max-tokens", 2).code == 0


def test_a_resume_puts_back_damaged_weights_of_a_run_that_was_killed(stranger: Path) -> None:
    before = (stranger / "model.safetensors").read_bytes()
    change(stranger / "run.json", checksums={})
    flip_bit(stranger / "model.safetensors")
    api.train(out=stranger, resume=True)
    assert (stranger / "model.safetensors").read_bytes() == before


def test_a_number_that_changed_in_the_metrics_is_not_compared(
    regard, stranger: Path, ngram_run: Path, tmp_path: Path
) -> None:
    path = stranger / "metrics.jsonl"
    line = path.read_text().splitlines()[-1]
    replace_in(path, line, re.sub(r'("nats_per_token": )\d', r"\g<1>9", line))
    for words in (
        ("compare", stranger, ngram_run, "--out", tmp_path / "out"),
        ("train", "--resume", "--out", stranger, "--set", "train.max_steps=8"),
    ):
        done = regard(*words)
        assert (done.code, "metrics.jsonl' has changed since it was written" in " ".join(done.err.split())) == (2, True)
    assert [file.name for file in api.check(stranger).files if file.is_damaged] == ["metrics.jsonl"]
    api.check(stranger, is_trusted=True)
    api.train(out=stranger, resume=True, settings=["train.max_steps=8"])
    assert not api.check(stranger).is_damaged


def test_a_run_that_is_trained_further_has_no_old_checksums(stranger: Path) -> None:
    facts = json.loads((stranger / "run.json").read_text())
    sealed = {"run.json", "config.yaml", "tokenizer.json", "model.safetensors", "metrics.jsonl"}
    assert set(facts["checksums"]) == sealed
    api.train(out=stranger, resume=True, settings=["train.max_steps=8"])
    assert not api.check(stranger).is_damaged
    assert json.loads((stranger / "run.json").read_text())["checksums"] != facts["checksums"]


def test_a_bit_that_flips_in_a_checkpoint_is_found(stranger: Path) -> None:
    path = max((stranger / "state").iterdir()) / "optimizer.safetensors"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(RegardError, match=r"optimizer\.safetensors has changed since it was written"):
        api.train(out=stranger, resume=True, settings=["train.max_steps=8"])


def test_damaged_entries_of_the_cache_are_made_again(text: Path, lstm_run: Path, tmp_path: Path) -> None:
    from regard.data.config import DataConfig
    from regard.data.prepared_text import open_text, prepare_text
    from regard.text.config import TokenizerConfig

    given = DataConfig(train=str(text)), TokenizerConfig(kind="char")
    first = prepare_text(*given, cache=tmp_path)
    whole = first.train[:].tolist()
    shard = tmp_path / "encoded" / first.fingerprint / "train-00000.npy"
    data = bytearray(shard.read_bytes())
    data[200] ^= 1
    shard.write_bytes(data)
    assert open_text(first.fingerprint, tmp_path) is None
    assert prepare_text(*given, cache=tmp_path).train[:].tolist() == whole
    (tokenizer,) = (tmp_path / "tokenizers").glob("*.json")
    replace_in(tokenizer, '"e"', '"é"')
    assert prepare_text(*given, cache=tmp_path).fingerprint == first.fingerprint


def test_every_kind_of_entry_is_looked_at_when_the_cache_is_checked(regard, tmp_path: Path, monkeypatch: Any) -> None:
    from regard.data.builtin import BUILTIN, Builtin, builtin_file
    from regard.data.cache import content_hash
    from regard.data.config import DataConfig
    from regard.data.pair_grammar import grammar_file
    from regard.data.prepared_text import prepare_text
    from regard.text.config import TokenizerConfig
    from regard.training.weights import write_weights

    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("regard.data.cache.SMALL", 1)
    monkeypatch.setitem(BUILTIN, "python-docs", Builtin("a book", lambda: iter(["It rains."])))
    text, cache = tmp_path / "text.txt", tmp_path / "cache"
    text.write_text("".join(f"line {i} of a text\n" for i in range(200)))
    os.utime(text, (10**9, 10**9))
    prepare_text(DataConfig(train=str(text)), TokenizerConfig(kind="char"), cache=cache)
    content_hash(text, cache)
    builtin_file("python-docs", cache)
    grammar_file("grammar:en-de:5@test", cache)
    write_weights({"features": torch.arange(9.0)}, cache / "features" / f"{'a' * 32}.safetensors", has_checksum=True)
    (cache / "features" / f"{'a' * 32}.crc32").write_text("12")  # an earlier version's
    files = [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".sha256"]
    assert json.loads(regard("cache", "--check", "--json").out)["removed"] == 0
    assert all(path.is_file() for path in files)
    alone = [path for path in files if path.parent.name in ("tokenizers", "documents", "hashes", "builtin", "features")]
    alone = [path for path in alone if path.suffix != ".crc32"]
    assert {path.parent.name for path in alone} == {"tokenizers", "documents", "hashes", "builtin", "features"}
    for path in alone:
        path.write_bytes(path.read_bytes()[:-3] + b"???")
    n_bytes = sum(path.stat().st_size for path in alone)
    assert json.loads(regard("cache", "--check", "--json").out)["removed"] == n_bytes
    assert not any(path.exists() or path.with_suffix(".sha256").exists() for path in alone)
    assert all(path.exists() for path in files if path not in alone)


def test_a_resume_that_is_refused_for_its_measurements_leaves_all_as_it_was(regard, stranger: Path) -> None:
    (stranger / "metrics.jsonl").write_text("damaged\n")
    assert regard("check", stranger, "--trust").code == 0
    before = {path: path.read_bytes() for path in stranger.rglob("*") if path.is_file()}
    done = regard("train", "--resume", "--out", stranger, "--set", "train.max_steps=9")
    assert done.code == 2
    assert "not as it was when the run was saved" in done.err
    assert {path: path.read_bytes() for path in stranger.rglob("*") if path.is_file()} == before
