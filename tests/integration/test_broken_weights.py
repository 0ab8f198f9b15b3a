"""Weights that are no numbers, no whole file or a pickle: each is refused in one sentence that says what to do."""

import math
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_gpt2 import write_hf_folder

import regard as package
from regard.errors import RegardError

pytest.importorskip("transformers")
Command = Callable[..., Any]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "gpt2"
    write_hf_folder(folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return shutil.copytree(whole, tmp_path / "gpt2")


@pytest.fixture
def broken_run(lstm_run: Path, tmp_path: Path) -> Path:
    """A run whose output matrix has become NaN."""
    run = shutil.copytree(lstm_run, tmp_path / "broken")
    spoil(run / "model.safetensors", "embedding", math.nan)
    return run


def spoil(file: Path, name: str, value: float, n: int | None = None) -> None:
    weights = load_file(file)
    weights[name].view(-1)[:n] = value
    save_file(weights, file)
    if (file.parent / "run.json").exists():
        package.api.check(file.parent, is_trusted=True)  # or its checksum would refuse it


def refused(done: Any, *parts: str) -> None:
    assert done.code == 2, done
    assert "Traceback" not in done.err
    for part in parts:
        assert part in " ".join(done.err.split()), done.err


@pytest.mark.parametrize(("value", "n"), [(math.nan, 1), (math.inf, 5)])
def test_weights_that_are_no_numbers_are_not_imported(
    regard: Command, folder: Path, text: Path, tmp_path: Path, value: float, n: int
) -> None:
    spoil(folder / "model.safetensors", "transformer.h.1.mlp.c_fc.weight", value, n)
    for words in (["import", folder], ["train", "--from", folder, "--data", text]):
        found = f"'transformer.h.1.mlp.c_fc.weight' in '{folder}/model.safetensors' has {n:,} of 576 values that are"
        refused(regard(*words, "--out", tmp_path / "run"), found, "NaN or infinite", "Copy or download")
        assert not (tmp_path / "run" / "config.yaml").exists()


def test_a_run_with_weights_that_are_no_numbers_is_not_trained_further(
    regard: Command, broken_run: Path, text: Path, tmp_path: Path
) -> None:
    done = regard("train", "--from", broken_run, "--data", text, "--out", tmp_path / "run")
    refused(done, "'embedding' in", "values that are NaN or infinite")


@pytest.mark.parametrize("more", [[], ["--temperature", 0], ["--beam", 2], ["--n", 2]])
def test_a_model_that_predicts_no_numbers_generates_nothing(regard: Command, broken_run: Path, more: list[Any]) -> None:
    done = regard("generate", broken_run, "--prompt", "the", *more)
    refused(done, "The model's predictions are not numbers (NaN)", "model.safetensors", "train it again")


def test_a_prediction_that_becomes_no_number_on_the_way_is_told(lstm_run: Path, tmp_path: Path) -> None:
    """Only what is read after 'c' is spoilt: the first predictions are numbers."""
    run = package.load(lstm_run)
    vocabulary = run.tokenizer.hf.get_vocab()
    spoilt = vocabulary["c"]
    step = run.next_token.step

    def broken(tokens: torch.Tensor, state: Any) -> Any:
        log_probs, state = step(tokens, state)
        return torch.where((tokens == spoilt)[:, None], math.nan, log_probs), state

    def start(prompts: torch.Tensor, capacity: int | None = None) -> Any:
        log_probs, state = type(run.next_token).start(run.next_token, prompts, capacity)
        return torch.full_like(log_probs, -50.0).index_fill(1, torch.tensor([spoilt]), 0.0), state

    run.next_token.step, run.next_token.start = broken, start  # type: ignore[method-assign]
    for sampling in ({}, {"temperature": 0.0}, {"beam": 2}):
        with pytest.raises(RegardError, match="predictions are not numbers"):
            run.generate("the", max_tokens=4, **sampling)


def test_a_model_that_predicts_no_numbers_scores_nothing(regard: Command, broken_run: Path, text: Path) -> None:
    for words in (["score", broken_run, text], ["score", broken_run, text, "--json"], ["eval", broken_run]):
        refused(regard(*words), "The model's predictions are not numbers (NaN)")


def test_a_pointer_of_git_lfs_is_recognised(regard: Command, folder: Path, text: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 548105171\n"
    )
    for words in (["import", folder], ["train", "--from", folder, "--data", text]):
        refused(regard(*words, "--out", tmp_path / "run"), "is a pointer of Git LFS", "git lfs pull")


@pytest.mark.parametrize("n_bytes", [0, 1000])
def test_a_download_that_was_cut_short_is_downloaded_again(
    regard: Command, folder: Path, tmp_path: Path, n_bytes: int
) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:n_bytes])
    done = regard("import", folder, "--out", tmp_path / "run")
    refused(done, f"({n_bytes} bytes) is no whole safetensors file", "copy or download it again")
    assert "train again" not in done.err


def test_the_command_for_a_lone_pickle_is_one_that_works(regard: Command, folder: Path, tmp_path: Path) -> None:
    torch.save({"state_dict": load_file(folder / "model.safetensors")}, folder / "weights.pt")
    (folder / "model.safetensors").unlink()
    for source in (folder, folder / "weights.pt"):
        done = regard("import", source, "--out", tmp_path / "run")
        refused(done, "weights.pt' is a pickle", "python -c", "weights_only=True")
    command = shlex.split(done.err[done.err.index("python -c") :].splitlines()[0])
    subprocess.run([sys.executable, *command[1:3]], check=True, timeout=120)
    assert regard("import", folder, "--out", tmp_path / "run").code == 0


def test_a_lone_pickle_without_a_config_says_what_is_needed(regard: Command, tmp_path: Path) -> None:
    torch.save({}, tmp_path / "weights.pt")
    done = regard("import", tmp_path / "weights.pt", "--out", tmp_path / "run")
    refused(done, "is a pickle", "config.json", "tokenizer.json")


def test_a_model_of_the_hub_that_is_not_there_is_told_where_to_get_it(
    regard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in ("gpt2", "openai-community/gpt2"):
        done = regard("import", name, "--out", "run")
        refused(done, f"There is no folder '{name}'.", f"hf download {name} config.json", f"--local-dir {name}")
        assert "Did you mean" not in done.err


def test_a_contender_that_gives_no_answers_is_listed_with_the_reason(
    lstm_run: Path, broken_run: Path, tmp_path: Path
) -> None:
    found = package.compare([broken_run, lstm_run], out=tmp_path / "compared")
    broken = found.contender("broken")
    assert broken.model == "lstm"
    assert broken.score is None
    assert [failure.seed for failure in broken.failures] == [0]


def test_at_most_ten_thousand_texts_are_written_at_once(regard: Command, lstm_run: Path) -> None:
    for n in (10_001, 10**21):
        done = regard("generate", lstm_run, "--n", n, "--max-tokens", 2)
        refused(done, "--n", "10000")
    run = package.load(lstm_run)
    with pytest.raises(RegardError, match=r"a whole number from 1 to 10,000, not 10001\. For more, ask again"):
        run.generate(n=10_001)
    with pytest.raises(RegardError, match=r"a whole number from 1 to 10,000, not 0\."):
        next(run.stream(n=0))


@pytest.mark.parametrize("more", [[], ["--view", "surprise"], ["--view", "gradients"], ["--view", "cells"]])
def test_what_overflows_in_a_model_is_not_drawn(
    regard: Command, lstm_run: Path, tmp_path: Path, more: list[Any]
) -> None:
    run = shutil.copytree(lstm_run, tmp_path / "hot")
    spoil(run / "model.safetensors", "embedding", 1e38)
    done = regard("look", run, "--text", "the cat sat", *more, "--out", tmp_path / "page")
    refused(done, "What the model computed ('embedding') cannot be shown, its numbers overflow", "model.safetensors")
    assert not (tmp_path / "page").exists()
