"""Readers against `transformers`: classifiers, raters, taggers and answerers, out and in, logits in float64."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny_bert import STEMS, TEXT, write_hf_bert
from tiny_gpt2 import write_hf_folder

import regard
from regard.data.labelled_batches import pad_windows
from regard.data.labelled_windows import Windows
from regard.errors import RegardError
from regard.run.exchange import export_run, import_run
from regard.tasks.labelled_objective import read_windows

transformers = pytest.importorskip("transformers")
EXACT = {"rtol": 0, "atol": 1e-10}
LABELS = {"id2label": {0: "O", 1: "B-who", 2: "I-who"}, "label2id": {"O": 0, "B-who": 1, "I-who": 2}}
KINDS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
TEXTS = ["The cat sat on the mat.", "The dog", "the old man sat"]
PAIRS = [("The cat", "The cat sat on the mat."), ("it", "The dog sat")]
QUICK = {
    "train": {"max_steps": 2, "n_batch": 4, "eval_every": 2},
    "runtime": {"device": "cpu", "n_threads": 1},
    "checkpoint": {"has_tensorboard": False},
}


def load_double(folder: Path) -> Any:
    """A run that computes in float64."""
    run = regard.load(folder, "cpu")
    run.model.double()
    return run


def frame(run: Any, items: list[Any]) -> list[Windows]:
    texts = [(item,) if isinstance(item, str) else item for item in items]
    return [run.task.frame(run.config, run.tokenizers[0], run.model, each) for each in texts]


def our_logits(run: Any, items: list[Any]) -> torch.Tensor:
    """What the head of a run gives for texts, one padded batch."""
    windows = frame(run, items)
    assert all(len(each.tokens) == 1 for each in windows), "short enough for one window"
    return read_windows(run.model, windows, run.has_segments)


def check_same_logits(run: Any, folder: Path, kind: str, items: list[Any]) -> Any:
    """Load a folder by transformers, which must give the logits of a run for a padded batch."""
    theirs = getattr(transformers, f"AutoModel{kind}").from_pretrained(folder, dtype=torch.float64).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    columns = [list(column) for column in zip(*items, strict=True)] if isinstance(items[0], tuple) else [items]
    rows = tokenizer(*columns, return_tensors="pt", padding=True)
    with torch.no_grad():
        found = theirs(**rows)
    ours = our_logits(run, items)
    if kind == KINDS[0]:
        right = found.logits if ours.ndim == 2 else found.logits[:, 0]
        torch.testing.assert_close(ours, right, **EXACT)
        return theirs
    windows = frame(run, items)
    places = torch.from_numpy(pad_windows(windows).places)
    for i, each in enumerate(windows):
        at = places[i, : len(each.places)]
        if kind == KINDS[1]:
            torch.testing.assert_close(ours[i, : len(at)], found.logits[i, at], **EXACT)
        else:
            both = torch.stack([found.start_logits[i], found.end_logits[i]], dim=-1)
            torch.testing.assert_close(ours[i, 1 : 1 + len(at)], both[at], **EXACT)
            torch.testing.assert_close(ours[i, 0], both[0], **EXACT)
    return theirs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", STEMS)
def test_a_folder_with_a_head_is_a_run_with_its_logits_and_comes_out_as_it_went_in(
    family: str, kind: str, tmp_path: Path
) -> None:
    write_hf_bert(tmp_path / "theirs", family, kind, **({} if kind == KINDS[2] else LABELS))
    import_run(tmp_path / "theirs", tmp_path / "run")
    run = load_double(tmp_path / "run")
    export_run(regard.load(tmp_path / "run", "cpu"), tmp_path / "again")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "again"))
    assert before.keys() == after.keys()
    assert all(after[name].equal(before[name]) for name in after)
    again = check_same_logits(run, tmp_path / "again", kind, PAIRS if kind == KINDS[2] else TEXTS)
    assert type(again).__name__ == f"{STEMS[family]}{kind}"
    if kind != KINDS[2]:
        assert again.config.id2label == LABELS["id2label"]
        assert again.config.label2id == LABELS["label2id"]
    assert "encoder_from" in (tmp_path / "run" / "config.yaml").read_text()
    assert len(list(run.predict(PAIRS if kind == KINDS[2] else TEXTS))) == len(PAIRS if kind == KINDS[2] else TEXTS)


def write_data(folder: Path, task: str) -> str:
    """Labelled examples of a task in a file."""
    rng = np.random.default_rng(0)
    words = TEXT.replace(".", "").split()
    texts = [" ".join(rng.permutation(words)[:6]) for _ in range(20)]
    if task == "tag":
        path = folder / "data.conll"
        tags = ("O", "B-who")
        lines = ["".join(f"{w} {tags[i % 2]}\n" for i, w in enumerate(text.split())) for text in texts]
        path.write_text("\n".join(lines))
    elif task == "answer":
        path = folder / "data.json"
        answer = [{"text": text.split()[2], "answer_start": text.index(text.split()[2])} for text in texts]
        made = [
            {"context": text, "qas": [{"id": str(i), "question": "The cat?", "answers": [answer[i]]}]}
            for i, text in enumerate(texts)
        ]
        path.write_text(json.dumps({"data": [{"paragraphs": made}]}))
    else:
        path = folder / "data.tsv"
        second = ("\tsecond", "\tthe man") if task == "pair" else ("", "")
        labels = [str(i % 3) for i in range(20)] if task == "rate" else [("good", "bad")[i % 2] for i in range(20)]
        rows = [f"{text}{second[1]}\t{label}\n" for text, label in zip(texts, labels, strict=True)]
        path.write_text(f"text{second[0]}\tlabel\n{''.join(rows)}")
    return str(path)


def train_reader(folder: Path, task: str, encoder: Path, *settings: str) -> Any:
    data = {"train": write_data(folder, task), "p_valid": 0.2, "p_test": 0.2}
    data |= {"second": "second"} if task == "pair" else {}
    given = {**QUICK, "data": data, "encoder_from": str(encoder)}
    return regard.train(given, task="classify" if task == "pair" else task, settings=settings, out=folder / "run")


@pytest.mark.parametrize(
    ("family", "task", "kind"),
    [("bert", "classify", KINDS[0]), ("bert", "pair", KINDS[0]), ("distilbert", "rate", KINDS[0]),
     ("roberta", "tag", KINDS[1]), ("gpt2", "classify", KINDS[0]), ("gpt2", "pair", KINDS[0]),
     ("gpt2", "tag", KINDS[1]), ("bert", "answer", KINDS[2])],
)  # fmt: skip
def test_what_is_trained_here_gives_its_logits_in_transformers_and_goes_in_again(
    family: str, task: str, kind: str, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    write_hf_folder(theirs) if family == "gpt2" else write_hf_bert(theirs, family)
    train_reader(tmp_path, task, theirs)  # by default as it can be exported
    export_run(regard.load(tmp_path / "run", "cpu"), tmp_path / "out")
    run = load_double(tmp_path / "run")
    items = PAIRS if task in ("pair", "answer") else TEXTS
    if task == "rate":  # the spread goes into the weights before they are rounded to float32
        exported = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
        rows = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")(items, return_tensors="pt", padding=True)
        torch.testing.assert_close(exported(**rows).logits[:, 0].double(), our_logits(run, items), rtol=0, atol=1e-5)
        assert exported.config.problem_type == "regression"
        return
    exported = check_same_logits(run, tmp_path / "out", kind, items)
    if task == "tag":
        assert exported.config.id2label == {0: "B-who", 1: "O"}
    again = import_run(tmp_path / "out", tmp_path / "again", is_pair=task == "pair")
    right, found = list(regard.load(tmp_path / "run", "cpu").predict(items)), list(again.predict(items))
    assert [each.to_answer() for each in found] == [each.to_answer() for each in right]
    export_run(again, tmp_path / "twice")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("out", "twice"))
    assert before.keys() == after.keys()
    assert all(after[name].equal(before[name]) for name in after)


def test_the_layer_above_the_first_token_begins_as_berts_own(tmp_path: Path) -> None:
    theirs = write_hf_bert(tmp_path / "theirs", "bert", "ForPreTraining")
    run = train_reader(
        tmp_path, "classify", tmp_path / "theirs", "encoder.pool=pooler", "encoder.frozen=true", "optimizer.lr=1e-12"
    )
    torch.testing.assert_close(run.model.head.answer.hidden[0].weight, theirs.bert.pooler.dense.weight)


@pytest.mark.parametrize(
    ("family", "task", "setting", "sentence"),
    [
        ("bert", "classify", "encoder.pool=mean", "encoder.pool is mean, and its BERT has pooler"),
        ("bert", "classify", "encoder.layers=mix", "encoder.layers is mix, and its heads read the last layer"),
        ("bert", "tag", "head.has_crf=true", "has no conditional random field. Train with head.has_crf=false"),
        ("gpt2", "classify", "head.has_bias=true", "no bias. Train with head.has_bias=false"),
        ("gpt2", "rate", "encoder.pool=last", "no bias, which a number needs"),
        ("gpt2", "classify", "encoder.pool=pooler", "encoder.pool is pooler, the layer above the first token of BERT"),
    ],
)
def test_a_head_that_hugging_face_has_not_is_refused_with_what_to_train(
    family: str, task: str, setting: str, sentence: str, tmp_path: Path
) -> None:
    write_hf_folder(tmp_path / "theirs") if family == "gpt2" else write_hf_bert(tmp_path / "theirs", family)
    with pytest.raises(RegardError, match=sentence):
        export_run(train_reader(tmp_path, task, tmp_path / "theirs", setting), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_head_of_a_foreign_gpt2_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    write_hf_folder(tmp_path / "theirs")
    config = transformers.AutoConfig.from_pretrained(tmp_path / "theirs")
    transformers.GPT2ForSequenceClassification(config).save_pretrained(tmp_path / "theirs")
    notes: list[str] = []
    run = import_run(tmp_path / "theirs", tmp_path / "run", notes.append)
    assert isinstance(run, regard.LanguageModelRun)
    assert "('score.weight') is left out" in notes[0]
    assert "end a text with <|endoftext|>" in notes[0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [({"id2label": {"0": "a", "1": "a", "2": "b"}}, "must name each of the head's 3 labels once"),
     ({"architectures": ["BertForQuestionAnswering"]}, "lack a part of its head: qa_outputs.bias, qa_outputs.weight")],
)  # fmt: skip
def test_a_head_that_cannot_be_read_says_why(changes: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    write_hf_bert(tmp_path / "theirs", "bert", KINDS[0], **LABELS)
    config = json.loads((tmp_path / "theirs" / "config.json").read_text())
    (tmp_path / "theirs" / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(RegardError, match=sentence):
        import_run(tmp_path / "theirs", tmp_path / "run")
