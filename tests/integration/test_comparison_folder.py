"""The folder of a comparison: one from elsewhere leads nowhere else, and no file of the user's is replaced."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from made_up_comparison import made_up_comparison

import regard
from regard import api
from regard.compare import place, testing, training
from regard.compare.place import hold_place
from regard.compare.result import to_json
from regard.data.locks import lock
from regard.errors import RegardError
from regard.report.page_folder import TREES, finish_page

BAG = {"name": "bag", "d_model": 8, "n_layers": 1}


def plan_of(text: Path, **changes: Any) -> dict[str, Any]:
    """A comparison that is trained in a second."""
    return {
        "contenders": {"a": {"model": {"name": "ngram", "order": 2}}, "b": {"model": BAG}},
        "data": {"train": str(text)},
        "tokenizer": {"kind": "char", "vocab_size": None},
        "budget": "200tokens",
        "match": "none",
        "seeds": 1,
        "train": {"n_batch": 2, "n_context": 8},
        "runtime": {"device": "cpu", "n_threads": 1},
    } | changes


def compare_plan(text: Path, out: Path, jobs: int | None = None, **changes: Any) -> Any:
    return regard.compare(plan_of(text, **changes), out=out, jobs=jobs)


@pytest.fixture(autouse=True)
def no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing one takes more time than all else here."""
    monkeypatch.setattr("regard.report.comparison.write_overview", lambda _, path: path.write_bytes(b"drawn"))


@pytest.fixture(scope="module")
def trained(text: Path, tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> Path:
    """A comparison whose contenders were trained."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("regard.report.comparison.write_overview", lambda _, path: path.write_bytes(b"drawn"))
        out = tmp_path_factory.mktemp("compared") / "out"
        compare_plan(text, out)
    return out


@pytest.fixture
def elsewhere(trained: Path, tmp_path: Path) -> Path:
    """A comparison of the same plan that came from elsewhere, with nothing in it but its plan."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in ("plan.yaml", "data.json", "pace.json"):
        shutil.copy(trained / name, folder)
    return folder


@pytest.fixture
def runs(ngram_run: Path, transformer_run: Path) -> list[Path]:
    return [ngram_run, transformer_run]


LINK = "is a link, and a comparison has files and folders of its own only"


def test_logs_are_written_over_no_file_that_a_link_leads_to(elsewhere: Path, text: Path, tmp_path: Path) -> None:
    mine = tmp_path / "bashrc"
    mine.write_text("mine")
    (elsewhere / "logs").mkdir()
    (elsewhere / "logs" / "b-seed0.txt").symlink_to(mine)
    with pytest.raises(RegardError, match=LINK):
        compare_plan(text, elsewhere, jobs=2)
    assert mine.read_text() == "mine"


def test_logs_are_written_over_no_file_that_has_two_names(elsewhere: Path, text: Path, tmp_path: Path) -> None:
    mine = tmp_path / "bashrc"
    mine.write_text("mine")
    (elsewhere / "logs").mkdir()
    (elsewhere / "logs" / "b-seed0.txt").hardlink_to(mine)
    compare_plan(text, elsewhere, jobs=2)
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("name", ["outputs", "views", "failures", "logs", "runs", "runs/b-seed0", "results"])
def test_no_folder_of_a_comparison_is_a_link(
    elsewhere: Path, runs: list[Path], text: Path, tmp_path: Path, name: str
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    files = [f"{run.name}{kind}" for run in runs for kind in (".txt", ".json")]
    files += ["b-seed0.txt", "model.safetensors", "tokenizer.json"]
    for file in files:
        (mine / file).write_text("my thesis")
    (elsewhere / name).parent.mkdir(exist_ok=True)
    (elsewhere / name).symlink_to(mine)
    with pytest.raises(RegardError, match=f"{name}' {LINK}"):
        compare_plan(text, elsewhere)
    for old in ("plan.yaml", "data.json", "pace.json"):
        (elsewhere / old).unlink()
    if not name.startswith(("runs", "logs", "results")):  # which finished runs have not
        with pytest.raises(RegardError, match=f"{name}' {LINK}"):
            regard.compare(runs, device="cpu", out=elsewhere)
    assert {path.name: path.read_text() for path in mine.iterdir()} == dict.fromkeys(files, "my thesis")


@pytest.mark.parametrize("name", ["plan.yaml", "compare.json", "runs.json", "data.json", "outputs/ngram.txt"])
def test_no_file_of_a_comparison_is_a_link_or_a_pipe(
    elsewhere: Path, runs: list[Path], text: Path, tmp_path: Path, name: str
) -> None:
    mine, there = tmp_path / "mine", elsewhere / name
    mine.write_text("mine")
    there.parent.mkdir(exist_ok=True)
    there.unlink(missing_ok=True)
    there.symlink_to(mine)
    for compare in (lambda: compare_plan(text, elsewhere), lambda: regard.compare(runs, out=elsewhere)):
        with pytest.raises(RegardError, match=f"{name}' {LINK}"):
            compare()
    there.unlink()
    os.mkfifo(there)
    for compare in (lambda: compare_plan(text, elsewhere), lambda: regard.compare(runs, out=elsewhere)):
        with pytest.raises(RegardError, match=f"{name}' is no regular file but a pipe"):
            compare()
    assert mine.read_text() == "mine"


def test_a_run_is_not_begun_where_files_of_the_user_are(elsewhere: Path, text: Path) -> None:
    """However many are trained at a time."""
    mine = elsewhere / "runs" / "b-seed0"
    mine.mkdir(parents=True)
    for name in ("model.safetensors", "tokenizer.json"):
        (mine / name).write_text("mine")
    for jobs in (1, 2):
        with pytest.raises(RegardError, match=r"b-seed0' holds files, and no run.* choose another --out"):
            compare_plan(text, elsewhere, jobs=jobs)
    assert {path.name: path.read_text() for path in mine.iterdir()} == {
        "model.safetensors": "mine", "tokenizer.json": "mine",
    }  # fmt: skip


def test_folders_with_the_names_of_a_comparison_are_no_comparison(runs: list[Path], tmp_path: Path) -> None:
    mine = [tmp_path / folder / f"{runs[0].name}.txt" for folder in ("outputs", "failures")]
    for path in mine:
        path.parent.mkdir()
        path.write_text("mine")
    with pytest.raises(RegardError, match=r"is not empty \(it holds failures\); choose another --out"):
        regard.compare(runs, device="cpu", out=tmp_path)
    assert [path.read_text() for path in mine] == ["mine", "mine"]


def test_a_comparison_of_runs_that_was_killed_goes_on(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(testing, "write_view", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            regard.compare(runs, device="cpu", out=out)
    assert (out / "outputs").is_dir()
    assert not (out / "compare.json").exists()
    with pytest.raises(RegardError, match="Run the same `regard compare` again to go on with it"):
        api.report(out)
    assert len(regard.compare(runs, device="cpu", out=out).ranking) == 2
    (out / "compare.json").unlink()
    (out / "runs.json").write_text("my own file")
    with pytest.raises(RegardError, match="is not empty"):
        regard.compare(runs, device="cpu", out=out)


@pytest.mark.parametrize("name", ["report.html", "overview.png"])
def test_a_report_is_drawn_over_no_page_or_picture_of_the_user(
    runs: list[Path], text: Path, elsewhere: Path, tmp_path: Path, name: str
) -> None:
    report = tmp_path / "report"
    report.mkdir()
    (report / "compare.json").write_text(to_json(made_up_comparison()))
    for folder in (report, elsewhere):
        (folder / name).write_text("mine")
    told = f"holds {name}, which Regard did not draw there for a comparison"
    with pytest.raises(RegardError, match=told):
        api.report(report)
    with pytest.raises(RegardError, match=told):
        compare_plan(text, elsewhere)
    assert [(folder / name).read_text() for folder in (report, elsewhere)] == ["mine", "mine"]
    api.report(report, force=True)
    assert (report / name).read_text() != "mine"
    api.report(report)
    finish_page(report, "<p>Made by Regard.", TREES)
    with pytest.raises(RegardError, match=r"holds report\.html, which Regard did not draw there for a comparison"):
        api.report(report)


def test_a_report_by_force_is_an_option_of_the_command(
    regard: Callable[..., Any], trained: Path, tmp_path: Path
) -> None:
    shutil.copy(trained / "compare.json", tmp_path)
    (tmp_path / "report.html").write_text("mine")
    refused = regard("report", tmp_path)
    assert (refused.code, "add --force" in refused.err) == (2, True)
    assert regard("report", tmp_path, "--force").code == 0


@pytest.mark.parametrize("key", ["encoder_from", "tokenizer", "data"])
def test_a_plan_from_elsewhere_has_nothing_read_that_the_user_did_not_name(
    regard: Callable[..., Any], elsewhere: Path, text: Path, tmp_path: Path, key: str
) -> None:
    secret, recipe = tmp_path / "secret", tmp_path / "c.yaml"
    secret.mkdir()
    (secret / "config.json").write_text('{"model_type": "hunter2"}')
    (secret / "tokenizer.json").write_text('{"model": "hunter2"}')
    plan = yaml.safe_load((elsewhere / "plan.yaml").read_text())
    if key == "encoder_from":
        plan["contenders"]["a"]["encoder_from"] = str(secret)
    elif key == "tokenizer":
        plan["contenders"]["a"]["tokenizer"] = {"path": str(secret / "tokenizer.json")}
    else:
        plan["data"]["valid"] = str(secret / "config.json")
    (elsewhere / "plan.yaml").write_text(yaml.safe_dump(plan))
    recipe.write_text(yaml.safe_dump(plan_of(text)))
    done = regard("compare", recipe, "--out", elsewhere)
    told = " ".join(done.err.split())
    assert (done.code, "holds another comparison: " in told, "hunter2" in told) == (2, True, False), told
    assert "to read" in told


def test_a_finished_run_of_another_config_is_no_contender(elsewhere: Path, text: Path, trained: Path) -> None:
    shutil.copytree(trained / "runs", elsewhere / "runs")
    assert compare_plan(text, elsewhere).ranking
    run = elsewhere / "runs" / "b-seed0"
    config = (run / "config.yaml").read_text()
    assert "seed: 0" in config
    (run / "config.yaml").write_text(config.replace("seed: 0", "seed: 7"))
    api.check(run, is_trusted=True)
    with pytest.raises(RegardError, match=r"b-seed0' was begun with seed = 7, and now seed = 0 is asked for"):
        compare_plan(text, elsewhere)
    shutil.rmtree(run)
    shutil.copytree(elsewhere / "runs" / "a-seed0", run)
    with pytest.raises(RegardError, match=r"b-seed0' was begun with model"):
        compare_plan(text, elsewhere)
    facts = json.loads((run / "run.json").read_text())
    assert facts["model"] == "ngram"


@pytest.mark.parametrize("name", ["metrics.jsonl", "model.safetensors", "state/x"])
def test_no_file_of_a_run_of_a_comparison_is_a_link(trained: Path, text: Path, tmp_path: Path, name: str) -> None:
    out, secret = Path(shutil.copytree(trained, tmp_path / "out")), tmp_path / "secret"
    secret.write_text('{"api_key": "hunter2"}\n')
    there = out / "runs" / "b-seed0" / name
    there.parent.mkdir(exist_ok=True)
    there.unlink(missing_ok=True)
    there.symlink_to(secret)
    with pytest.raises(RegardError, match=f"{name}' is a link, and a run has files") as refused:
        compare_plan(text, out)
    assert "hunter2" not in str(refused.value)


def test_nobody_else_compares_where_one_compares(trained: Path, text: Path, runs: list[Path], tmp_path: Path) -> None:
    done = Path(shutil.copytree(trained, tmp_path / "done"))
    for out, act in (
        (done, lambda: compare_plan(text, done)),
        (tmp_path / "runs", lambda: regard.compare(runs, device="cpu", out=tmp_path / "runs")),
    ):
        with hold_place(out), pytest.raises(RegardError, match=f"Another process compares in '{out}'"):
            act()
    assert not (tmp_path / "runs").exists()
    (done / ".lock").touch()  # of one that was killed
    compare_plan(text, done)
    assert not (done / ".lock").exists()


def test_a_folder_that_is_removed_empty_as_another_takes_it_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, make = tmp_path / "out", place.make_folder

    def remove_first(folder: Path) -> None:
        make(folder)
        monkeypatch.setattr(place, "make_folder", make)
        folder.rmdir()

    monkeypatch.setattr(place, "make_folder", remove_first)
    with hold_place(out):
        assert (out / ".lock").exists()
    assert not out.exists()


def test_what_an_earlier_version_left_that_was_killed_is_named(
    trained: Path, elsewhere: Path, text: Path, runs: list[Path], tmp_path: Path
) -> None:
    run = elsewhere / "runs" / "b-seed0"
    run.mkdir(parents=True)
    (run / ".lock").touch()
    for name in ("run.json", "tokenizer.json"):
        shutil.copy(trained / "runs" / "b-seed0" / name, run)
    with pytest.raises(RegardError, match=r"If an earlier .* remove what it left: run\.json, tokenizer\.json\.$"):
        compare_plan(text, elsewhere)
    old = tmp_path / "old"
    (old / "outputs").mkdir(parents=True)
    with pytest.raises(RegardError, match=r"If an earlier .* as it compared here, remove what it left: outputs\.$"):
        regard.compare(runs, out=old)


def test_a_run_goes_on_with_as_much_evaluated_as_before(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a limit of the clock another machine guesses otherwise how far the budget reaches."""
    out, seconds = tmp_path / "out", {"budget": None, "seconds": 0.5}
    compare_plan(text, out, **seconds)
    run = out / "runs" / "b-seed0"
    before = yaml.safe_load((run / "config.yaml").read_text())["train"]["max_eval_tokens"]
    (run / "README.md").unlink()  # its training had not ended
    monkeypatch.setattr(training, "FLOPS_PER_SECOND", {"cpu": 1e13})
    assert compare_plan(text, out, **seconds).contender("b").score is not None
    assert yaml.safe_load((run / "config.yaml").read_text())["train"]["max_eval_tokens"] == before


def test_word_vectors_are_compared_once_they_are_trained(text: Path, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"A run that holds a vector for every word is not trained under a budget"):
        regard.compare(["lsa", "skipgram"], data=str(text), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_trainings_of_their_own_processes_keep_the_folder(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one that goes on after its comparison was killed is met by the next one as a stranger."""
    pytest.importorskip("fcntl")
    kept, start = list[tuple[int, ...]](), subprocess.Popen

    def record(*words: Any, pass_fds: tuple[int, ...] = (), **more: Any) -> Any:
        kept.append(pass_fds)
        with pytest.raises(BlockingIOError):
            lock(os.open(tmp_path / "out", os.O_RDONLY), is_waiting=False)
        return start(*words, pass_fds=pass_fds, **more)

    monkeypatch.setattr("regard.run.jobs.subprocess.Popen", record)
    compare_plan(text, tmp_path / "out", jobs=2)
    assert [len(locks) for locks in kept] == [2]
