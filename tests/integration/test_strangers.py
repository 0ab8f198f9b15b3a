"""Files from a stranger: each ends in one sentence, soon, in little memory; nothing else is read, run or written."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from tiny_training import change_state

from regard import api
from regard.data.cache import cache_root
from regard.data.known_sources import remember_sources
from regard.errors import RegardError
from regard.training.metrics import read_metrics


@pytest.fixture
def stranger(lstm_run: Path, tmp_path: Path) -> Path:
    """A run folder that came from elsewhere."""
    shutil.copytree(lstm_run, tmp_path / "run")
    return tmp_path / "run"


def change(path: Path, **values: Any) -> None:
    """Change what a JSON file says."""
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def flip_bit(path: Path) -> None:
    """Flip the last bit but a few of a file: in weights it is one of a number."""
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("value", ["2020-13-45", "!!int ''", "!!float x", "!!bool maybe", "9" * 5000, "[" * 3000])
def test_a_setting_of_any_form_is_one_sentence(regard, text: Path, value: str) -> None:
    done = regard("train", "--model", "lstm", "--data", text, "--set", f"seed={value}", "--dry-run")
    assert done.code == 2
    assert "is not valid YAML" in done.err
    assert len(done.err) < 500


def test_a_wide_config_takes_no_memory_before_its_shapes_are_compared(stranger: Path) -> None:
    replace_in(stranger / "config.yaml", "d_model: 16", "d_model: 200000")  # 1.3 TB
    api.check(stranger, is_trusted=True)
    with pytest.raises(RegardError, match=r"do not fit this model: 'embedding' is \(\d+, 16\) there and"):
        api.load(stranger, device="cpu")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("n_layers: 1", "n_layers: 100000000", "The model has more than .* tensors"),
        ("d_model: 16", "d_model: 4611686018427387904", "more parameters than any machine can hold"),
    ],
)
def test_a_deep_config_is_refused_before_it_is_built(stranger: Path, old: str, new: str, why: str) -> None:
    replace_in(stranger / "config.yaml", old, new)
    change(stranger / "run.json", checksums={})
    with pytest.raises(RegardError, match=why):
        api.load(stranger, device="cpu")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("vocab_size", "many", "'vocab_size' must be a whole number"),
        ("checksums", [1], "'checksums' must be an object"),
        ("data", "../../../etc", "'data' must be 32 hexadecimal digits"),
        ("n_parameters", {"a": []}, "'n_parameters' must be a whole number"),
        ("extra", 1, "RunFacts has 'extra', which is no field of it"),
    ],
)
def test_run_json_of_other_types_is_one_sentence(stranger: Path, key: str, value: Any, why: str) -> None:
    change(stranger / "run.json", **{key: value})
    with pytest.raises(RegardError, match=f"is damaged .*{why}"):
        api.load(stranger, device="cpu")


def test_a_state_and_metrics_of_other_types_are_one_sentence(stranger: Path) -> None:
    folder = max((stranger / "state").iterdir())
    whole = (folder / "state.json").read_text()
    for wrong, why in (
        ({"state": {"step": "many"}}, r"does not hold a state \('step' must be a whole number"),
        ({"state": []}, r"does not hold a state \('state' must be an object"),
        ({"sizes": 3}, "'sizes' must have a number for every file"),
        ({"started_with": 1}, "'started_with' must be an object"),
    ):
        with change_state(folder) as written:
            written |= wrong
        with pytest.raises(RegardError, match=f"is damaged: .*{why}"):
            api.train(out=stranger, resume=True, settings=["train.max_steps=8"])
        (folder / "state.json").write_text(whole)
    (stranger / "metrics.jsonl").write_text('{"kind": []}\n')
    with pytest.raises(RegardError, match="line 1 is no measurement"):
        read_metrics(stranger)


def test_counts_that_lead_nowhere_are_refused(ngram_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(ngram_run, folder)
    tensors = load_file(folder / "model.safetensors")
    for name, change_one in (
        ("keys.2", lambda t: t + 2**40),
        ("keys.3", lambda t: t.flip(0)),
        ("unk", lambda t: torch.tensor([10**9])),
        ("log_probs.1", lambda t: t[:-3]),
        ("keys.2", lambda t: t.double()),
    ):
        save_file(tensors | {name: change_one(tensors[name]).contiguous()}, folder / "model.safetensors")
        api.check(folder, is_trusted=True)
        with pytest.raises(RegardError, match="no n-gram model"):
            api.load(folder)


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


def test_a_checkpoint_that_does_not_name_its_best_weights_changes_no_file_outside(
    stranger: Path, tmp_path: Path
) -> None:
    key, folder = tmp_path / "id_rsa", max((stranger / "state").iterdir())
    key.write_text("secret")
    key.chmod(0o600)
    with change_state(folder) as written:
        for what in ("sizes", "crc32"):
            del written[what]["best.safetensors"]
    with pytest.raises(RegardError, match=r"is damaged: state\.json says nothing of best\.safetensors"):
        api.train(out=stranger, resume=True, settings=["train.max_steps=8"])
    (folder / "best.safetensors").unlink()
    (folder / "best.safetensors").symlink_to(key)
    with pytest.raises(RegardError, match="is a link, and a run has files and folders of its own only"):
        api.train(out=stranger, resume=True, settings=["train.max_steps=8"])
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_text() == "secret"


@pytest.mark.parametrize("name", ["zz", "a\0b", "../../model.safetensors", "x" * 300])
@pytest.mark.parametrize("what", ["sizes", "crc32"])
def test_a_state_names_files_of_a_checkpoint_only(stranger: Path, name: str, what: str) -> None:
    with change_state(max((stranger / "state").iterdir())) as written:
        written[what][name] = 0
    with pytest.raises(
        RegardError, match=f"is damaged: state.json lists .* under '{what}', which is no file of a checkpoint"
    ):
        api.train(out=stranger, resume=True, settings=["train.max_steps=8"])


REFUSED = """
import sys
from regard import RegardError, api

for folder in sys.argv[1:]:
    try:
        api.train(out=folder, resume=True, settings=["train.max_steps=8"])
    except RegardError as error:
        print(error)
"""


def test_a_pipe_in_a_run_folder_is_refused_and_not_waited_for(stranger: Path, tmp_path: Path) -> None:
    names, pipes = (".lock", "metrics.jsonl", "run.json", "state/zz", "tensorboard/events", "README.md"), []
    for number, name in enumerate(names):
        folder = Path(shutil.copytree(stranger, tmp_path / str(number)))
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        pipes.append((folder, path))
    words = [sys.executable, "-c", REFUSED, *(str(folder) for folder, _ in pipes)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    said = done.stdout.splitlines()
    assert len(said) == len(pipes), done.stderr
    for (_, path), line in zip(pipes, said, strict=True):
        assert f"'{path}' is no regular file but a pipe, a socket or a device" in line


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


def test_a_pipe_is_read_and_a_device_is_not(regard, lstm_run: Path) -> None:
    done = regard("score", lstm_run, "/dev/zero")
    assert done.code == 2
    assert "is a device or a socket, not a file of text" in done.err


def test_standard_input_without_end_is_bounded_and_leaves_nothing(
    lstm_run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from regard.data import source
    from regard.data.config import DataConfig

    monkeypatch.setattr(source, "MAX_SPOOL", 2**20)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"endless " * 2**20)))
    (tmp_path / "spool").mkdir()
    with pytest.raises(RegardError, match=r"Standard input gives more than 0\.0 GB.*data\.max_bytes"):
        source.resolve("-", DataConfig(train="-"), tmp_path / "spool", tmp_path)
    assert not list((tmp_path / "spool").iterdir())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"endless " * 2**21)))
    (file,) = source.resolve("-", DataConfig(train="-", max_bytes=1000), tmp_path / "spool", tmp_path)
    assert 4000 <= file.path.stat().st_size <= 2**21


@pytest.mark.slow
def test_sigterm_while_standard_input_is_read_leaves_nothing(lstm_run: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "regard", "score", str(lstm_run), "-"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, env=environment, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"text " * 10**5)
        process.stdin.flush()
        ends = time.monotonic() + 60
        while not (spooled := list(tmp_path.rglob("*0.txt*"))) and time.monotonic() < ends and process.poll() is None:
            time.sleep(0.05)
        assert spooled
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate()
    assert process.returncode == 130, said
    assert not list(tmp_path.rglob("*0.txt*"))


def test_a_picture_never_starts_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import EpsImagePlugin

    from regard.data.pictures import read_picture

    def start(*_: object) -> None:
        raise AssertionError("Ghostscript")

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", start)
    data = io.BytesIO()
    Image.new("RGB", (8, 8)).save(data, "EPS")
    with pytest.raises(RegardError, match="no picture of these formats: JPEG, PNG, GIF, BMP, WEBP, TIFF"):
        read_picture(data.getvalue())


def test_an_arpa_file_of_a_stranger_is_one_sentence(regard, ngram_run: Path, tmp_path: Path) -> None:
    good = "\\data\\\nngram 1=4\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\n-1\t</s>\n-1\tw\n\n\\end\\\n"
    for old, new, why in (
        ("\tw\n", "\t<0xFFFFFFFF>\n", "stands for no character of Unicode"),
        ("\tw\n", "\t<0xD800>\n", "stands for no character of Unicode"),
        ("\tw\n", "\t<eos>\n", "has the word <eos>"),
        ("1=4", "1=" + "9" * 5000, "expected 'ngram 1=COUNT'"),
        ("\tw\n", "\t" + "w" * 2**21 + "\n", "has a line of more than 65,536 bytes"),
    ):
        path = tmp_path / "words.arpa"
        path.write_text(good.replace(old, new))
        done = regard("import", path, "--out", tmp_path / "run")
        assert (done.code, why in " ".join(done.err.split())) == (2, True), done.err[:300]
    path.write_text(good)
    assert regard("import", path, "--out", tmp_path / "run").code == 0


def test_an_error_commands_no_terminal(regard, tmp_path: Path) -> None:
    done = regard("eval", tmp_path / "\x1b]0;owned\x07\x1b[2J")
    assert done.code == 2
    assert "\x1b" not in done.err
    assert "\\x1b]0;owned" in done.err


def test_a_folder_that_is_deleted_while_it_trains_is_one_sentence(
    regard, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard.training.loop import _Run

    folder, evaluate = tmp_path / "run", _Run.evaluate

    def delete(run: _Run) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        evaluate(run)

    monkeypatch.setattr(_Run, "evaluate", delete)
    sets = ["tokenizer.kind=char", "model.d_model=8", "train.max_steps=4", "train.n_context=8", "train.eval_every=2",
            "checkpoint.has_tensorboard=false"]  # fmt: skip
    given = [word for one in sets for word in ("--set", one)]
    done = regard("train", "--model", "lstm", "--data", text, "--out", folder, *given)
    assert done.code == 2
    assert "Traceback" not in done.err
    assert "was deleted or moved while it was trained" in " ".join(done.err.split())


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


def test_a_resume_that_is_refused_for_its_measurements_leaves_all_as_it_was(regard, stranger: Path) -> None:
    (stranger / "metrics.jsonl").write_text("damaged\n")
    assert regard("check", stranger, "--trust").code == 0
    before = {path: path.read_bytes() for path in stranger.rglob("*") if path.is_file()}
    done = regard("train", "--resume", "--out", stranger, "--set", "train.max_steps=9")
    assert done.code == 2
    assert "not as it was when the run was saved" in done.err
    assert {path: path.read_bytes() for path in stranger.rglob("*") if path.is_file()} == before
