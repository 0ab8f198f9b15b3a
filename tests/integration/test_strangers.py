"""Files from a stranger: each ends in one sentence, soon, in little memory; nothing else is read, run or written."""

from __future__ import annotations

import io
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from run_damage import change, replace_in
from safetensors.torch import load_file, save_file
from tiny_training import change_state

from regard import api
from regard.errors import RegardError
from regard.training.metrics import read_metrics


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
