"""Runs whose decoder begins as a trained language model."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_captions import THINGS, said, write_pictures
from tiny_pairs import TEXTS, write_pairs

from regard import api
from regard.errors import InterruptedRunError, RegardError
from regard.models.language_model import LanguageModel
from regard.tasks.table import build_config
from regard.tasks.translation import TranslationRun
from regard.text.config import TokenizerConfig
from regard.training.metrics import read_metrics
from regard.training.progress import Silent, Status

SHAPE = {"d_model": 16, "n_layers": 1}
QUICK: dict[str, Any] = {
    "train": {"max_steps": 3},
    "runtime": {"device": "cpu", "n_threads": 1},
    "checkpoint": {"has_tensorboard": False},
}
PAIRS: dict[str, Any] = QUICK | {
    "tokenizer": {"kind": "word", "vocab_size": None},
    "model": {"name": "seq2seq", "encoder": "gru", "decoder": "gru", "attention": "mlp", **SHAPE},
    "teaching": {"max_tokens": 200},
}
STANDING_STILL = {"optimizer": {"lr": 1e-30, "weight_decay": 0}, "train": {"max_steps": 1}}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return [str(path) for path in write_pairs(tmp_path_factory.mktemp("pairs"))]


def language_model(folder: Path, text: str, name: str = "gru", **sections: Any) -> Path:
    model = {"name": name} if name == "ngram" else {"name": name, **SHAPE}
    given = QUICK | {"tokenizer": {"kind": "word", "vocab_size": None}, "model": model, "data": {"train": text}}
    given["train"] = {"max_steps": 5, "n_batch": 2, "n_context": 8}
    return Path(api.train(given | sections, out=folder).folder)


@pytest.fixture(scope="module")
def lm(files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the German side."""
    return language_model(tmp_path_factory.mktemp("runs") / "lm", files[1])


def pair_run(files: list[str], out: Path, decoder_from: Path | None, **sections: Any) -> TranslationRun:
    given = PAIRS | {"data": {"train": files, "p_valid": 0.2, "p_test": 0.2}, **sections}
    if decoder_from is not None:
        given["decoder_from"] = str(decoder_from)
    run = api.train(given, out=out)
    assert isinstance(run, TranslationRun)
    return run


def test_the_first_weights_of_the_decoder_are_the_language_models(files: list[str], lm: Path, tmp_path: Path) -> None:
    run = pair_run(files, tmp_path / "run", lm, **STANDING_STILL)
    before = api.load(lm)
    assert isinstance(before.model, LanguageModel)
    assert torch.equal(run.model.target.embedding, before.model.embedding)
    ours, theirs = run.model.state_dict(), before.model.state_dict()
    layers = {name.removeprefix("mixer."): value for name, value in theirs.items() if name.startswith("mixer.")}
    assert len(layers) == 4
    assert all(torch.equal(ours[f"target.decoder.recurrent.{name}"], value) for name, value in layers.items())
    assert run.target_tokenizer.hash == before.tokenizer.hash
    assert run.source_tokenizer.hash != before.tokenizer.hash


def test_everything_else_begins_as_without_it(files: list[str], lm: Path, tmp_path: Path) -> None:
    """The random numbers of a seed are those of the encoder and the attention, with a language model or without."""
    begun = pair_run(files, tmp_path / "begun", lm, **STANDING_STILL)
    target = {"target_tokenizer": {"path": str(lm)}}
    plain = pair_run(files, tmp_path / "plain", None, **STANDING_STILL, **target)
    own = begun.model.state_dict()
    same = {name for name, value in plain.model.state_dict().items() if torch.allclose(value, own[name], atol=1e-20)}
    assert {name for name in own if name.startswith(("encoder.", "bridge.", "source_embedding"))} <= same
    assert {name for name in own if ".attention." in name} <= same
    assert "target.embedding" not in same


def test_the_folder_is_named_and_needed_no_more(files: list[str], lm: Path, tmp_path: Path) -> None:
    mine = tmp_path / "lm"
    shutil.copytree(lm, mine)
    run = pair_run(files, tmp_path / "run", mine)
    digest = run.facts.started_weights
    shutil.rmtree(mine)
    again = api.load(tmp_path / "run")
    assert again.translate(TEXTS[0][0]) == run.translate(TEXTS[0][0])
    assert len(again.evaluate(split="valid").to_dict())
    written = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (written["started_from"], written["started_weights"]) == (str(mine), digest)
    card = (tmp_path / "run" / "README.md").read_text()
    assert f"| its decoder began as | {mine}; weights sha256 {digest} |" in card
    assert again.config.folders == {"decoder_from": str(mine)}
    assert again.config.section("target_tokenizer", TokenizerConfig).path == str(mine)


class StopAt(Silent):
    """As Ctrl-C would, after an update."""

    def __init__(self, step: int) -> None:
        self.step = step

    def show(self, status: Status) -> None:
        if status.step == self.step:
            os.kill(os.getpid(), signal.SIGINT)


def test_a_run_goes_on_without_the_folder(files: list[str], lm: Path, tmp_path: Path) -> None:
    mine = tmp_path / "lm"
    shutil.copytree(lm, mine)
    data = {"data": {"train": files, "p_valid": 0.2, "p_test": 0.2}, "decoder_from": str(mine)}
    whole = api.train(PAIRS | data, out=tmp_path / "whole")
    with pytest.raises(InterruptedRunError):
        api.train(PAIRS | data, out=tmp_path / "run", reporter=StopAt(1))
    shutil.rmtree(mine)
    resumed = api.train(PAIRS | data, out=tmp_path / "run", resume=True)  # the recipe, which names no vocabulary
    assert read_metrics(resumed.folder)[-1]["nats_per_token"] == read_metrics(whole.folder)[-1]["nats_per_token"]
    for name, value in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], value), name


def test_a_run_without_a_saved_state_wants_the_very_same_language_model(
    files: list[str], lm: Path, tmp_path: Path
) -> None:
    mine, out = tmp_path / "lm", tmp_path / "run"
    shutil.copytree(lm, mine)
    pair_run(files, out, mine)
    shutil.rmtree(out / "state")
    other = language_model(tmp_path / "other", files[1], seed=5)
    for name in ("model.safetensors", "config.yaml", "run.json"):
        shutil.copy(other / name, mine / name)
    with pytest.raises(RegardError, match=r"are not those that .* was begun with"):
        api.train(out=out, resume=True)


def test_one_vocabulary_may_be_both_sides(files: list[str], lm: Path, tmp_path: Path) -> None:
    run = pair_run(files, tmp_path / "run", lm, tokenizer={"path": str(lm)})
    assert run.config.sections["target_tokenizer"] is None
    assert run.source_tokenizer.hash == run.target_tokenizer.hash == api.load(lm).tokenizer.hash


def test_what_is_on_the_command_line_is_enough(files: list[str], lm: Path) -> None:
    config = api.resolve(PAIRS, data=files, settings=[f"decoder_from={lm}"])
    assert config.folders == {"decoder_from": str(lm)}
    target = config.section("target_tokenizer", TokenizerConfig)
    assert (target.kind, target.path) == ("word", str(lm))
    assert build_config(config.to_dict()) == config
    assert list(config.to_dict())[:3] == ["task", "seed", "decoder_from"]


def test_a_dry_run_tells_what_the_decoder_begins_as(files: list[str], lm: Path) -> None:
    plan = api.plan(PAIRS, data=files, settings=[f"decoder_from={lm}"])
    name, value = plan.lines()[0]
    assert name == "decoder begins as"
    assert value.startswith(f"{lm} (a run; weights sha256 ")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"decoder_from": 3}, "'decoder_from' must be a folder, a run's or a Hugging Face GPT-2's, or null, not 3"),
    ({"decoder_from": "nowhere"}, "There is no folder 'nowhere'"),
    (
        {"target_tokenizer": {"kind": "char"}},
        r"lm', whose vocabulary \(word, \d+ tokens\) is not that of the targets \(char, \d+ tokens\). Leave out "
        "target_tokenizer, or set its path to ",
    ),
    (
        {"model": PAIRS["model"] | {"d_model": 24, "n_layers": 2}},
        "cannot begin as this language model: n_layers is 2 in the decoder and 1 in the language model, d_model is 24",
    ),
    ({"model": {"name": "seq2seq", **SHAPE}}, "the kind of layer is transformer in the decoder and gru in the"),
    (
        {"model": {"name": "vaswani", "n_heads": 2, **SHAPE}},
        "model.tying is all, and source and target have vocabularies of their own.* Set tokenizer.path to .*lm, or",
    ),
    ({"model": {"name": "lstm"}, "teaching": None}, "'decoder_from' is only for translation, parsing and captions"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), REFUSED)
@pytest.mark.parametrize("verb", ["train", "plan"])
def test_what_does_not_fit_is_refused_before_anything_is_written(
    files: list[str], lm: Path, tmp_path: Path, verb: str, changes: dict[str, Any], message: str
) -> None:
    given = PAIRS | {"data": {"train": files}, "decoder_from": str(lm)} | changes
    if changes.get("model", {}).get("name") == "lstm":
        given["data"] = {"train": files[1]}
    with pytest.raises(RegardError, match=message):
        api.train(given, out=tmp_path / "run") if verb == "train" else api.plan(given)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ngram", "is a run of ngram: counts are no weights to start from"),
        ("pointer", "The decoder cannot begin as a pointer, .* Give a run of rnn, gru, lstm, transformer or gpt2"),
        ("elmo", "The decoder cannot begin as ELMo, which reads both sides and does not write. Give a run of rnn"),
        ("bag", "the kind of layer is gru in the decoder and Bag in the language model"),
    ],
)
def test_models_that_no_decoder_can_begin_as_are_refused(
    files: list[str], tmp_path: Path, name: str, message: str
) -> None:
    other = language_model(tmp_path / name, files[1], name)
    with pytest.raises(RegardError, match=message):
        pair_run(files, tmp_path / "run", other)


def test_a_run_of_pairs_is_no_language_model(files: list[str], lm: Path, tmp_path: Path) -> None:
    pairs = pair_run(files, tmp_path / "pairs", None)
    with pytest.raises(RegardError, match="is a run of seq2seq for translation, and no language model"):
        pair_run(files, tmp_path / "run", pairs.folder)
    with pytest.raises(RegardError, match=r"'start_from' is for language models, and seq2seq is none. .*decoder_from"):
        api.train(PAIRS, data=files, start_from=lm, out=tmp_path / "run")
    with pytest.raises(RegardError, match="is a run of seq2seq for translation, and no language model"):
        api.train(start_from=pairs.folder, data=files, out=tmp_path / "run")


def test_the_decoder_of_a_captioner_begins_as_one_too(tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text("".join(f"{text}\n" for thing in THINGS for text in said(*thing)))
    model = language_model(tmp_path / "lm", str(tmp_path / "said.txt"), "lstm")
    pictures, captions = map(str, write_pictures(tmp_path / "pictures"))
    data = {"pictures": pictures, "captions": captions, "size": 32, "p_valid": 0.2, "p_test": 0.2}
    own = {"name": "captioner", "d_first": 8, "n_halvings": 2, **SHAPE}
    given = QUICK | {"data": data, "model": own, "decoder_from": str(model)} | STANDING_STILL
    run = api.train(given, out=tmp_path / "run", is_tested=False)
    before = api.load(model)
    assert run.config.tokenizer.path == str(model)
    assert torch.equal(run.model.target.embedding, before.model.embedding)
    assert run.facts.started_from == str(model)
    assert "| its decoder began as |" in (run.folder / "README.md").read_text()
    with pytest.raises(RegardError, match=r"is not that of the targets .* set tokenizer.path to"):
        api.plan(given | {"tokenizer": {"kind": "char"}})
