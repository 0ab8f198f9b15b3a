"""Run folders and comparisons of earlier versions open, score, write and resume as they did when they were made."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from compatibility.old_folders import COMPARISON, HALVES, RUNS, copy_folders, machine, recipe, use, write_data
from safetensors.torch import load_file

import regard
from regard.data.known_sources import remember_sources
from regard.run.folder import open_folder

VERSION = Path(__file__).parent / "0.1.0"
EXPECTED = json.loads((VERSION / "expected.json").read_text(encoding="utf-8"))
IS_SAME_MACHINE = machine() == EXPECTED["machine"]
"""Other processors and other releases of torch round otherwise, and are held to some digits instead of to the bit."""
WALL_CLOCK = ("seconds", "tokens_per_second")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old")
    copy_folders(VERSION, folder)
    write_data(folder)
    for run in (folder / "runs").iterdir():  # this machine did not train them: say once that their data may be read
        opened = open_folder(run)
        remember_sources(opened.config.data.to_dict(), opened.facts.data, folder / "cache")
    return folder


@pytest.fixture(autouse=True)
def _work_there(place: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("REGARD_CACHE", str(place / "cache"))
        yield


def check_close(found: float, expected: float, name: str) -> None:
    assert found == pytest.approx(expected, rel=1e-12 if IS_SAME_MACHINE else 1e-4, abs=1e-12), name


def check_weights(found: Path, expected: Path) -> None:
    ours, theirs = load_file(found / "model.safetensors"), load_file(expected / "model.safetensors")
    assert ours.keys() == theirs.keys()
    for name, weights in theirs.items():
        if IS_SAME_MACHINE:
            assert torch.equal(ours[name], weights), name
        else:
            torch.testing.assert_close(ours[name], weights, rtol=1e-3, atol=1e-4)


def check_metrics(found: Path, expected: Path, ignore: tuple[str, ...] = WALL_CLOCK) -> None:
    ours, theirs = (
        [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        for folder in (found, expected)
    )
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True):
        for key in their.keys() - set(ignore):
            if isinstance(their[key], float):
                check_close(our[key], their[key], key)
            else:
                assert our[key] == their[key], key


@pytest.mark.parametrize("name", RUNS)
def test_an_old_run_scores_and_writes_what_it_did(name: str) -> None:
    found, expected = use(regard.load(f"runs/{name}", device="cpu")), EXPECTED["runs"][name]
    for key, score in expected["scores"].items():
        check_close(found["scores"][key], score, key)
    assert found["texts"] == expected["texts"]


@pytest.mark.parametrize("name", HALVES)
def test_an_old_run_that_was_stopped_resumes_to_the_bits_of_one_that_was_not(name: str, place: Path) -> None:
    regard.train(out=f"runs/{name}.half", resume=True)
    check_weights(place / "runs" / f"{name}.half", place / "runs" / name)
    check_metrics(place / "runs" / f"{name}.half", place / "runs" / name)


def test_an_old_run_resumes_with_the_recipe_that_it_was_begun_with(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "runs" / "gru", tmp_path / "gru")
    (tmp_path / "gru" / "model.safetensors").unlink()
    regard.train(recipe("gru"), out=tmp_path / "gru", resume=True, is_tested=False)
    check_weights(tmp_path / "gru", place / "runs" / "gru")
    assert regard.load(tmp_path / "gru").config.data.to_dict()["split"] == "tail"


def test_an_old_run_whose_rate_was_left_open_resumes_with_its_recipe_at_the_rate_of_then(
    place: Path, tmp_path: Path
) -> None:
    shutil.copytree(place / "runs" / "gru", tmp_path / "gru")
    (tmp_path / "gru" / "model.safetensors").unlink()
    written = tmp_path / "gru" / "config.yaml"
    written.write_text(written.read_text().replace("lr: 0.05", "lr: null"))
    given = {key: value for key, value in recipe("gru").items() if key != "optimizer"}
    run = regard.train(given, out=tmp_path / "gru", resume=True, is_tested=False)
    assert (run.config.optimizer.lr, run.config.optimizer.follows_width) == (0.005, False)


# Attention without feed-forward layers starts with another spread since (`regard.mixers.attention.initialise`), and
# under BPE dropout pairs are put together by other lengths (`regard.data.pair_dropout_order`).
@pytest.mark.parametrize(
    "name", [name for name in RUNS if name not in ("attention", "restricted", "translator-vaswani")]
)
def test_an_old_recipe_trains_to_the_bits_of_the_old_run(name: str, place: Path, tmp_path: Path) -> None:
    """What is held out of a text has changed since: `data.split: tail` does what 0.1.0 did.

    The FLOPs of a new run are those of today's formulas: attention is no longer charged for what is masked.
    """
    given = recipe(name)
    if regard.load(f"runs/{name}", device="cpu").config.task == "language-model":
        given = given | {"data": given["data"] | {"split": "tail"}}
    regard.train(given, out=tmp_path / "run", is_tested=False)
    check_weights(tmp_path / "run", place / "runs" / name)
    check_metrics(tmp_path / "run", place / "runs" / name, ignore=(*WALL_CLOCK, "flops"))


@pytest.mark.parametrize(
    ("name", "contenders"),
    [("comparison", ("lstm", "transformer")), ("systems", ("translator-lstm", "translator-transformer"))],
)
def test_an_old_comparison_is_drawn_again(name: str, contenders: tuple[str, ...], place: Path) -> None:
    report = [sys.executable, "-m", "regard", "report", name]
    done = subprocess.run(report, cwd=place, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    page = (place / name / "report.html").read_text(encoding="utf-8")
    assert all(contender in page for contender in contenders)
    assert (place / name / "overview.png").stat().st_size > 1000


def test_an_old_comparison_has_its_scores_in_the_new_form(place: Path) -> None:
    found = regard.Comparison.load(place / "comparison")
    assert {c.name: c.score.value for c in found.ranked if c.score} == EXPECTED["comparison"]
    old = json.loads((place / "systems" / "compare.json").read_text(encoding="utf-8"))
    systems = regard.Comparison.load(place / "systems")
    assert [c.score.value for c in systems.contenders if c.score] == [s["score"] for s in old["systems"]]
    assert [pair.p for pair in systems.pairs] == [duel["p"] for duel in old["duels"]]


def test_an_old_comparison_that_was_stopped_goes_on(place: Path, tmp_path: Path) -> None:
    """Trainings whose folders are there are not made again; the others give the same bits as before."""
    shutil.copytree(place / "comparison", tmp_path / "comparison")
    weights = tmp_path / "comparison" / "runs" / "lstm-seed0" / "model.safetensors"
    written = weights.stat().st_mtime_ns
    (tmp_path / "comparison" / "compare.json").unlink()
    (tmp_path / "comparison" / "results" / "transformer-seed1.json").unlink()
    given: dict[str, Any] = COMPARISON | {"out": str(tmp_path / "comparison")}
    found = {contender.name: contender.score.value for contender in regard.compare(given).ranked}
    assert list(found) == list(EXPECTED["comparison"])
    for name, score in EXPECTED["comparison"].items():
        check_close(found[name], score, name)
    trained = sorted(path.name for path in (tmp_path / "comparison" / "runs").iterdir())
    assert trained == ["lstm-seed0", "lstm-seed1", "transformer-seed0", "transformer-seed1"]
    assert weights.stat().st_mtime_ns == written
