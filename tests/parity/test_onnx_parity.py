"""ONNX files against the runs they come from: onnxruntime gives the same numbers on batches of other shapes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
from tiny_bert import write_hf_bert
from tiny_gpt2 import write_hf_folder

import regard
from regard.errors import RegardError
from regard.run.exchange import export_run, import_run
from regard.tasks.labelled_objective import read_windows

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")
pytest.importorskip("transformers")
CLOSE = {"rtol": 0, "atol": 1e-5}
SHAPES = [["The cat sat on the mat.", "The dog"], ["the old man sat", "it", "dog"]]


LABELS = {"id2label": {0: "O", 1: "B-who"}, "label2id": {"O": 0, "B-who": 1}}
EXPORT = """
import sys, regard.api
for name in sys.argv[2:]:
    regard.api.export(f"{sys.argv[1]}/{name}", f"{sys.argv[1]}/{name}.onnx")
"""


QUICK = {"train": {"max_steps": 2, "n_batch": 4}, "checkpoint": {"has_tensorboard": False}}
RECURRENT = {
    "lstm-tagger": ("lstm", "tag", True),
    "gru-classifier": ("gru", "classify", True),
    "rnn-on-top": ("rnn", "classify", False),
}
"""Runs of recurrent encoders: the model, the task, and whether they read both ways."""


def name_data(kind: str) -> dict[str, str]:
    return {split: f"grammar:{kind}:{n}" for split, n in (("train", 20), ("valid", 4), ("test", 4))}


def train_recurrent(folder: Path) -> None:
    """Train recurrent readers for a moment, at a rate that makes all weights large; one on top of a language model."""
    (folder / "my.txt").write_text("the old man sat on the mat .\n" * 50)
    shape: dict[str, Any] = {"name": "rnn", "d_model": 8, "n_layers": 2}
    given = {**QUICK, "model": {**shape, "d_hidden": 12}, "tokenizer": {"kind": "word"}}
    regard.train(given, data=str(folder / "my.txt"), out=folder / "lm")
    for name, (model, task, is_both) in RECURRENT.items():
        reader: dict[str, Any] = {"model": {**shape, "name": model}, "encoder": {"is_bidirectional": is_both}}
        if name == "rnn-on-top":
            reader = {"encoder_from": str(folder / "lm"), "encoder": {"layers": "mix"}}
        data = name_data("en-ner" if task == "tag" else "en-sentiment")
        regard.train({**QUICK, **reader, "optimizer": {"lr": 0.3}, "data": data}, task=task, out=folder / name)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs and their ONNX files, which another process writes: here every shape is checked to be an int."""
    folder = tmp_path_factory.mktemp("onnx")
    write_hf_folder(folder / "theirs-gpt2")
    write_hf_bert(folder / "theirs-bert", "bert", "ForMaskedLM")
    write_hf_bert(folder / "theirs-classifier", "distilbert", "ForSequenceClassification", **LABELS)
    write_hf_bert(folder / "theirs-tagger", "distilbert", "ForTokenClassification", **LABELS)
    names = ["gpt2", "bert", "classifier", "tagger"]
    for name in names:
        import_run(folder / f"theirs-{name}", folder / name)
    train_recurrent(folder)
    done = subprocess.run(
        [sys.executable, "-c", EXPORT, str(folder), *names, *RECURRENT], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder


def open_onnx(path: Path) -> Any:
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def encode(path: Path, texts: list[Any]) -> dict[str, Any]:
    """A padded batch by the tokenizer that lies beside an ONNX file."""
    tokenizer = tokenizers.Tokenizer.from_file(str(path.with_suffix(".tokenizer.json")))
    tokenizer.enable_padding()
    rows = tokenizer.encode_batch(texts)
    names = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
    return {name: np.array([getattr(row, field) for row in rows]) for name, field in names.items()}


def test_gpt2_with_its_cache_gives_the_logits_of_the_whole_text(runs: Path) -> None:
    run, session = regard.load(runs / "gpt2", "cpu"), open_onnx(runs / "gpt2.onnx")
    names = [each.name for each in session.get_inputs()]
    assert names[:3] == ["input_ids", "past_key_values.0.key", "past_key_values.0.value"]
    for n_rows, cuts in ((1, (0, 6, 7, 8, 12)), (3, (0, 1, 9))):
        ids = torch.randint(0, 300, (n_rows, cuts[-1]), generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            right = run.model(ids)[0].numpy()  # type: ignore[union-attr]
        past = [np.zeros((n_rows, 3, 0, 4), dtype=np.float32)] * 4
        found = []
        for begin, end in pairwise(cuts):
            step = {"input_ids": ids[:, begin:end].numpy(), **dict(zip(names[1:], past, strict=True))}
            logits, *past = session.run(None, step)
            found.append(logits)
        np.testing.assert_allclose(np.concatenate(found, axis=1), right, **CLOSE)


def test_bert_gives_its_states_and_logits(runs: Path) -> None:
    run = regard.load(runs / "bert", "cpu", kind=regard.MaskedLanguageModelRun)
    session = open_onnx(runs / "bert.onnx")
    for texts in (SHAPES[0], [("The cat", "the mat"), ("it", "sat on the old dog"), ("a", "b")]):
        rows = encode(runs / "bert.onnx", texts)
        mask = rows["attention_mask"].astype(bool)
        states, logits = session.run(["last_hidden_state", "logits"], rows)
        given = (torch.from_numpy(rows[name]) for name in ("input_ids", "token_type_ids"))
        with torch.no_grad():
            right = run.model.hidden(next(given), torch.from_numpy(mask), next(given))
            np.testing.assert_allclose(states[mask], right.numpy()[mask], **CLOSE)
            np.testing.assert_allclose(logits[mask], run.model.logits(right).numpy()[mask], **CLOSE)


@pytest.mark.parametrize("name", ["classifier", "tagger"])
def test_a_reader_gives_what_it_predicts_and_its_labels(name: str, runs: Path) -> None:
    run: Any = regard.load(runs / name, "cpu")
    session = open_onnx(runs / f"{name}.onnx")
    facts = session.get_modelmeta().custom_metadata_map
    assert json.loads(facts["labels"]) == ["O", "B-who"]
    for texts in SHAPES:
        rows = encode(runs / f"{name}.onnx", texts)
        (logits,) = session.run(["logits"], {key: rows[key] for key in ("input_ids", "attention_mask")})
        predicted = list(run.predict(texts))
        if name == "tagger":
            tokens = logits.argmax(axis=-1)
            windows = [run.task.frame(run.config, run.tokenizers[0], run.model, (text,)) for text in texts]
            found = [tuple(["O", "B-who"][tokens[i, p]] for _, p in w.places) for i, w in enumerate(windows)]
            assert found == [each.tags for each in predicted]
            continue
        odds = np.exp(logits.astype(np.float64))
        right = [list(each.probabilities.values()) for each in predicted]
        np.testing.assert_allclose(odds / odds.sum(axis=1, keepdims=True), right, **CLOSE)


@pytest.mark.parametrize("name", RECURRENT)
def test_a_recurrent_reader_gives_its_logits_for_every_length(name: str, runs: Path) -> None:
    run: Any = regard.load(runs / name, "cpu")
    session = open_onnx(runs / f"{name}.onnx")
    for texts in SHAPES:
        rows = encode(runs / f"{name}.onnx", texts)
        (logits,) = session.run(["logits"], {key: rows[key] for key in ("input_ids", "attention_mask")})
        windows = [run.task.frame(run.config, run.tokenizers[0], run.model, (text,)) for text in texts]
        right = read_windows(run.model, windows, run.has_segments).numpy()
        assert np.abs(right).max() > 0.01  # so that gates in another order would be seen
        if run.config.task == "classification":
            np.testing.assert_allclose(logits, right, **CLOSE)
            continue
        for row, given, window in zip(right, logits, windows, strict=True):
            np.testing.assert_allclose([given[p] for _, p in window.places], row[: len(window.places)], **CLOSE)


def test_what_is_not_written_as_onnx_says_why(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RegardError, match=r"models of full attention \(gpt2, transformer, attention\)"):
        export_run(regard.load(runs / "lm", "cpu"), tmp_path / "lm.onnx")
    given = {**QUICK, "model": {"name": "pointer", "d_model": 8, "n_layers": 1}, "data": name_data("en-sentiment")}
    reader = regard.train(given, task="classify", out=tmp_path / "reader")
    with pytest.raises(RegardError, match=r"its encoder is pointer.* Train with .*lstm"):
        export_run(reader, tmp_path / "reader.onnx")
    write_hf_bert(tmp_path / "theirs", "bert", "ForMaskedLM")
    bert = import_run(tmp_path / "theirs", tmp_path / "bert")
    monkeypatch.setattr("regard.weights.onnx.find_spec", lambda name: None)
    with pytest.raises(RegardError, match=r"pip install 'regard\[onnx\]'"):
        export_run(bert, tmp_path / "bert.onnx")
    assert not list(tmp_path.glob("*.onnx"))


@pytest.mark.parametrize("name", ["gpt2", "bert", "classifier"])
def test_the_card_of_a_run_says_how_other_programs_use_it(
    name: str, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = (runs / name / "README.md").read_text()
    assert f"regard export {runs / name} {name}-hf\n" in card
    assert f"regard export {runs / name} {name}.onnx " in card
    export_run(regard.load(runs / name, "cpu"), runs / f"{name}-hf")
    monkeypatch.chdir(runs)
    blocks = re.findall(r"```python\n(.*?)```", card.partition("## In other programs")[2], flags=re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_the_card_says_why_a_program_cannot_use_a_run(tmp_path: Path) -> None:
    given = {**QUICK, "model": {"name": "lstm", "d_model": 8, "n_layers": 1}, "data": name_data("en-ner")}
    regard.train({**given, "head": {"has_crf": True}}, task="tag", out=tmp_path / "run")
    card = (tmp_path / "run" / "README.md").read_text()
    assert "Not in transformers: its encoder is lstm, and it has bert and gpt2." in card
    assert "Not in onnxruntime: its tags are those of a conditional random field" in card
