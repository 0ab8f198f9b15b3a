"""Runs that start from a Hugging Face GPT-2 folder, or from another run."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file
from tiny_gpt2 import write_hf_folder

import regard as package
from regard.errors import InterruptedRunError, RegardError
from regard.models.table import MODELS
from regard.training.metrics import read_metrics

pytest.importorskip("transformers")
QUICK = ["train.max_steps=4", "train.n_batch=2", "train.n_context=16", "train.eval_every=2",
         "checkpoint.has_tensorboard=false"]  # fmt: skip


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "gpt2"
    write_hf_folder(folder)
    return folder


def sets(*more: str) -> list[str]:
    return [word for setting in [*QUICK, *more] for word in ("--set", setting)]


def test_one_command_fine_tunes_a_hugging_face_folder(
    regard: Callable[..., Any], gpt2: Path, text: Path, tmp_path: Path
) -> None:
    done = regard("train", "--from", gpt2, "--data", text, "--out", tmp_path / "mine", *sets())
    assert done.code == 0, done.err
    config = yaml.safe_load((tmp_path / "mine" / "config.yaml").read_text())
    assert config["start_from"] == str(gpt2)
    assert config["optimizer"]["lr"] == 5e-5
    assert (config["model"]["name"], config["model"]["d_model"], config["model"]["n_rows"]) == ("gpt2", 12, 307)
    assert config["tokenizer"]["path"] == str(gpt2)
    facts = json.loads((tmp_path / "mine" / "run.json").read_text())
    card = (tmp_path / "mine" / "README.md").read_text()
    assert f"| started from | {gpt2}; weights sha256 {facts['started_weights']} |" in card
    assert regard("generate", tmp_path / "mine", "--prompt", "the cat", "--max-tokens", 5).out.startswith("the cat")
    assert regard("eval", tmp_path / "mine").code == 0
    assert regard("export", tmp_path / "mine", tmp_path / "out").code == 0
    assert (tmp_path / "out" / "model.safetensors").exists()


def test_the_weights_are_those_of_the_folder_until_they_are_trained(gpt2: Path, text: Path, tmp_path: Path) -> None:
    """One step at a rate of next to nothing leaves them as they were."""
    import hashlib

    settings = [*QUICK, "train.max_steps=1", "optimizer.lr=1e-30", "optimizer.weight_decay=0"]
    run = package.train(start_from=gpt2, data=str(text), settings=settings, out=tmp_path / "run")
    theirs = load_file(gpt2 / "model.safetensors")
    model = run.model
    torch.testing.assert_close(model.embedding.data, theirs["transformer.wte.weight"], rtol=0, atol=0)
    layer = model.mixer.layers[1].feed_forward.up.weight.data
    torch.testing.assert_close(layer, theirs["transformer.h.1.mlp.c_fc.weight"].t(), rtol=0, atol=0)
    assert run.facts.started_weights == hashlib.sha256((gpt2 / "model.safetensors").read_bytes()).hexdigest()


def test_validation_while_training_begins_texts_with_the_tokenizers_own_end_mark(
    gpt2: Path, text: Path, tmp_path: Path
) -> None:
    run = package.train(start_from=gpt2, data=str(text), settings=[*QUICK, "train.max_steps=1"], out=tmp_path / "run")
    scores = [line for line in read_metrics(tmp_path / "run") if line["kind"] == "valid"]
    assert scores[-1]["nats_per_token"] == pytest.approx(run.evaluate(split="valid").nats_per_token, rel=1e-12)


def test_fine_tuning_defaults_are_small_steps_and_few_passes(gpt2: Path, text: Path) -> None:
    from regard import api

    config = api.resolve(None, data=str(text), start_from=gpt2)
    assert (config.optimizer.lr, config.train.max_epochs, config.train.n_batch) == (5e-5, 3.0, 8)
    given = api.resolve({"train": {"max_steps": 7}, "optimizer": {"lr": 1e-4}}, data=str(text), start_from=gpt2)
    assert (given.optimizer.lr, given.train.max_epochs, given.train.max_steps) == (1e-4, None, 7)


def test_a_dry_run_shows_where_it_would_start(regard: Callable[..., Any], gpt2: Path, text: Path) -> None:
    done = regard("train", "--from", gpt2, "--data", text, "--dry-run", *sets())
    assert done.code == 0, done.err
    shown = " ".join(done.out.split())
    assert "starts from" in shown
    assert "(a Hugging Face folder; weights sha256" in shown.replace(" ( a", " (a")
    assert f"start_from: {gpt2}" in done.out


def test_any_run_can_be_trained_further(lstm_run: Path, text: Path, tmp_path: Path) -> None:
    before = package.load(lstm_run)
    run = package.train(start_from=lstm_run, data=str(text), settings=QUICK, out=tmp_path / "more")
    assert run.tokenizer.hash == before.tokenizer.hash
    assert run.config.model == before.config.model
    assert run.config.optimizer.lr == pytest.approx(0.1 * LSTM_RATE)  # a tenth of what it is trained with
    text_sample = text.read_text()[:500]
    assert run.score(text_sample).bits_per_byte < before.score(text_sample).bits_per_byte * 1.05
    again = package.train(start_from=tmp_path / "more", data=str(text), settings=QUICK, out=tmp_path / "third")
    assert again.facts.started_from == str(tmp_path / "more")


LSTM_RATE = MODELS["lstm"].lr or 0.0
AWD = {
    "optimizer": {"name": "sgd", "lr": 30.0, "weight_decay": 1.2e-6, "max_grad_norm": 0.25, "decays_vectors": True},
    "schedule": {"name": "constant"},
    "train": {"max_steps": 2, "n_batch": 2, "n_context": 16, "varies_context": True, "average": "nt-asgd",
              "average_patience": 7},
}  # fmt: skip


@pytest.fixture(scope="module")
def sgd_run(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = {"tokenizer": {"kind": "char"}, "model": {"name": "lstm", "d_model": 8, "n_layers": 1}, **AWD}
    settings = ["checkpoint.has_tensorboard=false"]
    return package.train(given, data=str(text), settings=settings, out=tmp_path_factory.mktemp("sgd") / "run").folder


def test_a_run_is_trained_further_as_it_was_at_a_tenth_of_its_rate(sgd_run: Path, text: Path) -> None:
    from regard import api

    config = api.resolve(None, data=str(text), start_from=sgd_run)
    assert config.optimizer.to_dict() == api.load(sgd_run).config.optimizer.to_dict() | {"lr": pytest.approx(3.0)}
    assert config.schedule.name == "constant"
    own = config.train
    assert (own.varies_context, own.average, own.average_patience, own.n_batch) == (True, "nt-asgd", 7, 2)
    assert (own.max_steps, own.max_epochs) == (None, 3.0)


def test_what_is_given_wins_over_how_the_run_was_trained(sgd_run: Path, text: Path) -> None:
    from regard import api

    given = {"optimizer": {"max_grad_norm": 1.0}, "train": {"average": "none"}}
    config = api.resolve(given, data=str(text), start_from=sgd_run)
    assert (config.optimizer.max_grad_norm, config.optimizer.weight_decay) == (1.0, 1.2e-6)
    assert config.train.average == "none"
    named = api.resolve({"optimizer": {"lr": 0.5}}, data=str(text), start_from=sgd_run)
    assert named.optimizer.lr == 0.5


def test_another_update_rule_comes_with_its_own_rate_and_decay(sgd_run: Path, gpt2: Path, text: Path) -> None:
    """A rate and a decay mean nothing under another rule: a tenth of what the rule itself would take."""
    from regard import api

    config = api.resolve({"optimizer": {"name": "adamw"}}, data=str(text), start_from=sgd_run)
    assert (config.optimizer.lr, config.optimizer.weight_decay) == (pytest.approx(0.1 * LSTM_RATE), 0.1)
    config = api.resolve({"optimizer": {"name": "sgd"}}, data=str(text), start_from=gpt2)
    assert config.optimizer.lr == pytest.approx(0.05)


def test_a_run_that_was_fine_tuned_keeps_its_rate(sgd_run: Path, text: Path, tmp_path: Path) -> None:
    from regard import api

    settings = ["train.max_steps=1", "train.max_epochs=null", "checkpoint.has_tensorboard=false"]
    package.train(start_from=sgd_run, data=str(text), settings=settings, out=tmp_path / "second")
    assert api.resolve(None, data=str(text), start_from=tmp_path / "second").optimizer.lr == pytest.approx(3.0)
    again = {"start_from": sgd_run, "data": str(text), "settings": settings}
    package.train(**again, out=tmp_path / "second", resume=True)  # the same config, so it is not refused


def test_imported_runs_can_be_trained_further(
    gpt2: Path, text: Path, tmp_path: Path, regard: Callable[..., Any]
) -> None:
    assert regard("import", gpt2, "--out", tmp_path / "imported").code == 0
    run = package.train(start_from=tmp_path / "imported", data=str(text), settings=QUICK, out=tmp_path / "run")
    direct = package.train(start_from=gpt2, data=str(text), settings=QUICK, out=tmp_path / "direct")
    assert all(torch.equal(a, b) for a, b in zip(run.model.parameters(), direct.model.parameters(), strict=True))
    card = (tmp_path / "imported" / "README.md").read_text()
    assert "started from" in card
    assert "Name data of yours with --data" in regard("eval", tmp_path / "imported").err
    assert regard("eval", tmp_path / "imported", "--data", text).code == 0


def test_resuming_needs_the_folder_no_more(
    gpt2: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after two steps, with the folder gone, it ends with the bits of the run that was never stopped."""
    folder = shutil.copytree(gpt2, tmp_path / "gpt2")
    whole = package.train(start_from=folder, data=str(text), settings=QUICK, out=tmp_path / "whole")
    from regard.training import loop

    learner_launch = loop.Learner.launch
    steps: list[int] = []

    def stopped(self: Any, step: int, lr: float) -> Any:
        if len(steps) == 2:
            raise KeyboardInterrupt
        steps.append(step)
        return learner_launch(self, step, lr)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Learner, "launch", stopped)
        with pytest.raises((KeyboardInterrupt, InterruptedRunError)):
            package.train(
                start_from=folder, data=str(text), settings=[*QUICK, "checkpoint.every_steps=1"], out=tmp_path / "run"
            )
    shutil.rmtree(folder)
    package.train(out=tmp_path / "run", resume=True)
    ours, theirs = (load_file(tmp_path / name / "model.safetensors") for name in ("run", "whole"))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    again = [*QUICK, "checkpoint.every_steps=1"]
    asked_again = package.train(start_from=folder, data=str(text), settings=again, out=tmp_path / "run", resume=True)
    assert asked_again.facts.started_weights == whole.facts.started_weights


def test_weights_that_changed_before_the_first_state_was_saved(gpt2: Path, text: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(gpt2, tmp_path / "gpt2")
    package.train(start_from=folder, data=str(text), settings=QUICK, out=tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "state")  # as if it had been killed before
    shutil.rmtree(folder)
    write_hf_folder(folder, seed=5)
    with pytest.raises(RegardError, match=r"are not those that .* was begun with"):
        package.train(out=tmp_path / "run", resume=True)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            ["model.d_model=24"],
            r"model\.d_model is 24 here and 12 in .*gpt2', which the run starts from\. Leave it out",
        ),
        (["model.name=lstm"], r"model\.name is 'lstm' here and 'gpt2' in"),
        (["tokenizer.kind=char"], r"tokenizer\.kind is 'char' here and 'bpe' in .* the tokenizer comes from there\."),
        (["model.d_modle=3"], r"Unknown key 'model\.d_modle'"),
        (["start_from=3"], r"'start_from' must be a folder"),
    ],
)
def test_what_contradicts_the_start_is_named(gpt2: Path, text: Path, settings: list[str], sentence: str) -> None:
    given = {"start_from": str(gpt2), "data": {"train": str(text)}}
    with pytest.raises(RegardError, match=sentence):
        package.train(given, settings=settings)


def test_dropout_alone_may_differ(gpt2: Path, text: Path) -> None:
    from regard import api

    config = api.resolve({"start_from": str(gpt2), "model": {"p_dropout": 0.3}}, data=str(text))
    assert config.model.to_dict()["p_dropout"] == 0.3


def test_counts_are_no_weights_to_start_from(ngram_run: Path, text: Path) -> None:
    with pytest.raises(RegardError, match="is a run of ngram: counts are no weights to start from"):
        package.train(start_from=ngram_run, data=str(text))


def test_an_n_gram_model_refuses_a_tokenizer_that_ends_texts_otherwise(gpt2: Path, text: Path, tmp_path: Path) -> None:
    given = {"model": {"name": "ngram"}, "tokenizer": {"path": str(gpt2)}, "data": {"train": str(text)}}
    with pytest.raises(RegardError, match=r"ends a text with <\|endoftext\|>, id 299, and an n-gram model counts"):
        package.train(given, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_model_is_trained_from_scratch_with_gpt_2s_tokenizer(gpt2: Path, text: Path, tmp_path: Path) -> None:
    given = {"model": {"name": "lstm", "d_model": 12}, "tokenizer": {"path": str(gpt2)}, "data": {"train": str(text)}}
    run = package.train(given, settings=QUICK, out=tmp_path / "run")
    assert run.tokenizer.eos == 299
    assert run.generate("the", max_tokens=4)
    assert run.trace("the cat").tokens[0] == "<|endoftext|>"


@pytest.mark.parametrize("use", [{"start_from": "run"}, {"task": "classification", "encoder_from": "run"}], ids=str)
def test_a_run_whose_weights_were_damaged_begins_nothing(
    lstm_run: Path, text: Path, tmp_path: Path, use: dict[str, str]
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(lstm_run, copy)
    data = bytearray((copy / "model.safetensors").read_bytes())
    data[-5] ^= 64
    (copy / "model.safetensors").write_bytes(data)
    reviews = tmp_path / "reviews.tsv"
    reviews.write_text(
        "".join(f"the {thing} was {word}\t{word}\n" for word in ("fine", "dull") for thing in "abcdefgh")
    )
    named = {key: str(copy) if value == "run" else value for key, value in use.items()}
    source = reviews if "task" in use else text
    with pytest.raises(RegardError, match=r"model\.safetensors' has changed since it was written"):
        package.plan({**named, "data": {"train": str(source)}})
