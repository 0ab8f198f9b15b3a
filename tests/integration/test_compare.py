"""The main job on a text of a few kilobytes: everything real, everything small."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from tiny_gpt2 import write_hf_folder

import regard
from regard import api
from regard.compare import pace, training
from regard.compare.budget import Budget
from regard.compare.read_plan import read_plan
from regard.compare.result import Comparison
from regard.compare.result_cache import OUTPUTS
from regard.errors import InterruptedRunError, RegardError
from regard.report.comparison_table import ComparisonTable
from regard.run.exchange import import_run
from regard.training.progress import Silent, Status

WORDS = (
    "the cat",
    "a dog",
    "(brown)",
    "ran",
    'said "no"',
    "sat",
    "on the mat",
    "Paris",
    "42 times",
    "again.\n",
    "why?\n",
)


class Notes(Silent):
    """Remembers what was told, and may press Ctrl-C when a certain thing is told, or at a step after it."""

    def __init__(self, stop_at: str | None = None, step: int | None = None) -> None:
        self.told: list[str] = []
        self.stop_at, self.step = stop_at, step

    def note(self, text: str) -> None:
        self.told.append(text)
        if self.stop_at is not None and self.step is None and text.startswith(self.stop_at):
            raise KeyboardInterrupt

    def show(self, status: Status) -> None:
        if self.stop_at is not None and status.step == self.step and self.told[-1].startswith(self.stop_at):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    draw = random.Random(0)
    path = tmp_path_factory.mktemp("text") / "small.txt"
    path.write_text(" ".join(draw.choices(WORDS, k=6000)))
    return path


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def given(text: Path, **changes: Any) -> dict[str, Any]:
    return {
        "contenders": {
            "ngram": {"model": {"name": "ngram", "order": 3}},
            "lstm": {"model": {"name": "lstm", "n_layers": 1}},
            "attention-words": {"model": {"name": "attention", "n_layers": 2}, "tokenizer": "word"},
            "broken": {"model": "rnn", "optimizer": {"name": "sgd", "lr": 1e30, "max_grad_norm": None}},
        },
        "data": str(text),
        "tokenizer": "char",
        "budget": "4ktokens",
        "params": 6000,
        "seeds": 2,
        "train": {"n_batch": 4, "n_context": 32},
        "runtime": {"device": "cpu", "n_threads": 1},
    } | changes


def compare(text: Path, out: Path, reporter: Notes | None = None, **changes: Any) -> Comparison:
    return api.compare(given(text, **changes), out=out, reporter=reporter or Notes())


@pytest.fixture(scope="module")
def done(text: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Comparison]:
    out = tmp_path_factory.mktemp("done") / "out"
    return out, compare(text, out)


def test_everything_is_written(done: tuple[Path, Comparison]) -> None:
    out, comparison = done
    assert Comparison.load(out).ranking == comparison.ranking
    assert (out / "report.html").stat().st_size > 10_000
    assert (out / "overview.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in (out / "runs").iterdir()) == [
        "attention-words-seed0", "attention-words-seed1", "broken-seed0", "broken-seed1", "lstm-seed0", "lstm-seed1",
        "ngram-seed0",
    ]  # fmt: skip


def test_a_contender_that_fails_is_reported_and_the_others_finish(done: tuple[Path, Comparison]) -> None:
    out, comparison = done
    broken = comparison.contender("broken")
    assert broken.score is None
    assert [f.seed for f in broken.failures] == [0, 1]
    assert "Training stopped at step" in broken.failures[0].reason
    assert "Traceback" in (out / "failures" / "broken-seed0.txt").read_text()
    assert set(comparison.ranking) == {"ngram", "lstm", "attention-words"}
    assert "broken did not finish." in comparison.headline


def test_sizes_are_matched_and_counting_is_marked(done: tuple[Path, Comparison]) -> None:
    comparison = done[1]
    assert abs((comparison.contender("lstm").n_parameters or 0) / 6000 - 1) <= 0.02
    assert comparison.contender("lstm").size_note == ""
    assert comparison.contender("ngram").size_note.startswith("as many n-grams")


def test_the_lossy_tokenizer_comes_last_and_is_flagged(done: tuple[Path, Comparison]) -> None:
    comparison = done[1]
    assert comparison.ranking[-1] == "attention-words"
    assert comparison.contender("attention-words").lossy.startswith("word ")


def test_every_contender_was_given_the_same_budget(done: tuple[Path, Comparison]) -> None:
    for contender in done[1].contenders:
        for run in contender.runs:
            assert 4000 <= run.tokens <= 4000 + 4 * 32 or contender.name == "ngram"


def test_the_score_is_that_of_evaluating_the_run(done: tuple[Path, Comparison]) -> None:
    out, comparison = done
    result = comparison.contender("lstm").runs[0]
    run = regard.load(out / result.run, kind=regard.LanguageModelRun)
    evaluation = run.evaluate()  # the test split is smaller than what a comparison reads of it
    blocks = [json.loads(line) for line in (out / OUTPUTS / "lstm-seed0.txt").read_text().splitlines()]
    assert sum(block["nats"] for block in blocks) == pytest.approx(evaluation.nats, rel=1e-5)
    assert sum(block["tokens"] for block in blocks) == pytest.approx(evaluation.n_tokens)
    assert result.score == pytest.approx(evaluation.bits_per_byte, rel=1e-5)


def test_every_model_is_scored_with_the_same_context_too(done: tuple[Path, Comparison]) -> None:
    out, comparison = done
    for contender in comparison.ranked:  # the attention model sees 32 words; the others may see as many bytes
        assert contender.score is not None
        assert set(contender.score.others) == {"perplexity", "same context"}
        assert contender.score.others["same context"] == pytest.approx(contender.score.value, rel=0.02)
    attention = comparison.contender("attention-words").score
    assert attention is not None
    assert attention.others["same context"] == pytest.approx(attention.value, rel=1e-6)
    assert any("same context: the score where every model sees at most the last" in n for n in comparison.setup.notes)
    lines = [json.loads(line) for line in (out / OUTPUTS / "lstm-seed0.txt").read_text().splitlines()]
    assert sum(b["nats_in_context"] for b in lines) != sum(b["nats"] for b in lines)


def test_the_views_show_what_each_model_has(done: tuple[Path, Comparison]) -> None:
    comparison = done[1]
    passage = comparison.setup.passage
    for contender in comparison.ranked:
        assert contender.views.sample
        probabilities = [c.probability for c in contender.views.next_words]
        assert probabilities == sorted(probabilities, reverse=True)
        assert 0 < sum(probabilities) <= 1
        assert contender.views.positions
        assert contender.views.surprise[-1].end >= len(passage) - 1
        assert len(contender.curve) >= 3
    cells = comparison.contender("lstm").views.cells
    assert cells is not None
    for trace in cells.traces:  # each on a passage of its own, on which its feature varies
        assert len(trace.values) == len(trace.tokens) == len(trace.feature_values)
        assert max(map(abs, trace.values)) <= 1
        assert len(set(trace.feature_values)) > 1
    assert cells.n_units > cells.n_explained >= 0
    attention = comparison.contender("attention-words").views.attention
    assert attention is not None
    assert len(attention.weights) == 2
    for row in attention.weights[1][0]:
        assert sum(row) == pytest.approx(1, abs=0.02)
    assert comparison.contender("ngram").views.attention is None
    assert comparison.contender("lstm").views.attention is None


def test_a_finished_comparison_is_not_run_again(done: tuple[Path, Comparison], text: Path) -> None:
    out, comparison = done
    before = {p: p.stat().st_mtime_ns for p in (out / "runs").rglob("*") if "broken" not in str(p)}
    notes = Notes()
    again = compare(text, out, notes)
    assert [line for line in notes.told if ", seed " in line and not line.startswith("broken")] == []
    assert before == {p: p.stat().st_mtime_ns for p in (out / "runs").rglob("*") if "broken" not in str(p)}
    assert (again.ranking, again.pairs) == (comparison.ranking, comparison.pairs)
    assert [c.score for c in again.contenders] == [c.score for c in comparison.contenders]


def test_the_report_is_drawn_again_from_the_file_alone(done: tuple[Path, Comparison], tmp_path: Path) -> None:
    (tmp_path / "compare.json").write_bytes((done[0] / "compare.json").read_bytes())
    assert api.report(tmp_path) == tmp_path / "report.html"
    assert (tmp_path / "overview.png").exists()


@pytest.mark.slow
@pytest.mark.parametrize("step", [None, 7])
def test_an_interrupted_comparison_goes_on_where_it_was(
    done: tuple[Path, Comparison], text: Path, tmp_path: Path, step: int | None
) -> None:
    out = tmp_path / "out"
    with pytest.raises(
        InterruptedRunError, match=r"Stopped with 3 of 7 trainings finished; all is saved\. Go on with: "
    ):
        compare(text, out, Notes("lstm, seed 1", step))  # when every contender has had its first seed
    begun = sorted(path.name for path in (out / "runs").iterdir() if path.name != "lstm-seed1")
    assert begun == ["attention-words-seed0", "broken-seed0", "lstm-seed0", "ngram-seed0"]
    assert (out / "runs" / "lstm-seed1" / "state").exists() == (step is not None)
    notes = Notes()
    resumed = compare(text, out, notes)
    trained = [line.partition(" seed ")[0] + line.partition(" seed ")[2][:1] for line in notes.told if " seed " in line]
    assert [line for line in trained if "broken" not in line] == ["lstm,1", "attention-words,1"]
    straight = done[1]
    assert resumed.ranking == straight.ranking
    assert resumed.pairs == straight.pairs
    for contender in ("ngram", "lstm", "attention-words"):
        mine, theirs = ([run.score for run in c.contender(contender).runs] for c in (resumed, straight))
        assert mine == theirs


def test_a_folder_with_another_comparison_is_refused(done: tuple[Path, Comparison], text: Path) -> None:
    out = done[0]
    with pytest.raises(
        RegardError, match=r"holds another comparison: its budget was {tokens: 4000}, and now is {tokens: 9000}"
    ):
        compare(text, out, budget="9ktokens")
    with pytest.raises(RegardError, match=r"its contenders were [a-z-]+, .*, and now are lstm, rnn\. Choose another"):
        regard.compare(["lstm", "rnn"], data=str(text), out=out)
    assert Comparison.load(out) is not None


def test_a_folder_that_holds_something_else_is_refused(text: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RegardError, match=r"is there already and holds no comparison; choose another --out"):
        compare(text, tmp_path)


def test_a_damaged_plan_is_told_in_a_sentence(text: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("contenders: {lstm: [")
    with pytest.raises(RegardError, match=r"is not valid YAML at line 1.* choose another --out"):
        compare(text, tmp_path)


@pytest.mark.parametrize(
    "changes",
    [{"contenders": {"ngram": None}}, {"contenders": ["ngram"]}, {"contenders": "ngram"}, {"data": "few.txt"}],
    ids=str,
)
def test_a_plan_that_no_comparison_wrote_is_told_in_a_sentence(
    text: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    plan = {"contenders": {"ngram": {"model": {"name": "ngram"}}}, "data": {"train": str(text)}, "budget": "4ktokens"}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan | changes))
    with pytest.raises(RegardError, match=r"is no plan as `regard compare` writes it.* choose another --out"):
        compare(text, tmp_path, contenders=["ngram"])


@pytest.mark.parametrize("budget", [{"steps": 3}, {"tokens": "many"}, {"flops": [1]}], ids=str)
def test_a_budget_that_no_comparison_wrote_is_told_in_a_sentence(
    text: Path, tmp_path: Path, budget: dict[str, Any]
) -> None:
    plan = {"contenders": {"ngram": {"model": {"name": "ngram"}}}, "data": {"train": str(text)}, "budget": budget}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    with pytest.raises(RegardError, match=r"The budget cannot be read: .* choose another --out"):
        compare(text, tmp_path, contenders=["ngram"])


def test_text_that_changed_under_its_name_is_refused(text: Path, tmp_path: Path) -> None:
    changing = tmp_path / "changing.txt"
    changing.write_bytes(text.read_bytes())
    out, how = tmp_path / "out", {"contenders": ["ngram"], "seeds": 1}
    out.mkdir()
    (out / ".partial-plan.yaml-1-0123abcd").touch()  # of a comparison that was killed at once: it is begun again
    first = compare(changing, out, **how)
    (out / "failures").mkdir()
    (out / "failures" / "ngram-seed0.txt").touch()  # of a full disk, say
    assert compare(changing, out, **how).ranking == first.ranking
    assert not (out / "failures").exists()
    changing.write_text(text.read_text().upper())
    with pytest.raises(RegardError, match=r"out' was begun on other data.*; choose another --out"):
        compare(changing, out, **how)
    assert Comparison.load(out).setup.data_hash == first.setup.data_hash
    changing.write_bytes(text.read_bytes())
    assert compare(changing, out, **how).ranking == ("ngram",)


def test_where_every_contender_failed_the_command_says_why_and_fails(text: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "c.yaml"
    broken = {"broken": given(text)["contenders"]["broken"]}
    recipe.write_text(yaml.safe_dump(given(text, contenders=broken, seeds=1)))
    command = [sys.executable, "-m", "regard", "compare", str(recipe), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 1
    assert "No contender finished: broken failed." in done.stderr
    assert "broken, seed 0, did not finish: Training stopped at step" in done.stderr
    assert "The report" not in done.stdout + done.stderr


@pytest.mark.slow
def test_a_flops_budget_gives_dearer_models_fewer_tokens(text: Path, tmp_path: Path) -> None:
    contenders = {"ngram": None, "rnn": {"model": {"name": "rnn", "n_layers": 1}}, "window": None}
    comparison = compare(text, tmp_path / "out", contenders=contenders, budget="2e8flops", seeds=1)
    for name in ("rnn", "window"):
        run = comparison.contender(name).runs[0]
        per_step = run.flops / run.tokens * 4 * 32
        assert 2e8 - per_step <= run.flops <= 2e8 + per_step
    everything, same = comparison.contender("ngram"), comparison.contender("ngram (same tokens)")
    assert everything.flops == same.flops == 0
    assert same.tokens == round(statistics.median(comparison.contender(n).tokens for n in ("rnn", "window")))
    assert everything.tokens > 2 * same.tokens
    assert everything.size_note.startswith("counts ")
    assert same.size_note.endswith("as many as the others read (median)")
    assert [run.run for run in same.runs] == ["runs/ngram-same-tokens-seed0"]


@pytest.mark.slow
def test_a_time_that_is_wished_for_becomes_flops_once(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "measure_speed", lambda config, train: 1000.0)
    contenders = {name: {"model": {"name": name, "n_layers": 1}} for name in ("rnn", "lstm")}
    how, out, notes = {"contenders": contenders, "seeds": 1}, tmp_path / "out", Notes()
    comparison = compare(text, out, notes, **how, budget="3s")
    flops = yaml.safe_load((out / "plan.yaml").read_text())["budget"]["flops"]
    assert flops == float(f"{flops:.2g}")
    for contender in comparison.contenders:
        assert contender.flops == pytest.approx(flops, rel=0.1)
    assert statistics.mean(c.tokens for c in comparison.contenders) == pytest.approx(3000, rel=0.1)
    typed = Budget(flops=flops).words()[1]
    assert f"The same on any machine: --budget {typed}" in notes.told[1]
    assert f"budget='{typed}'" in comparison.setup.command
    monkeypatch.setattr(training, "measure_speed", lambda config, train: 1 / 0)
    for asked in ("3s", typed):  # the same folder: nothing is measured or trained again
        again = Notes()
        assert compare(text, out, again, **how, budget=asked).pairs == comparison.pairs
        assert [line for line in again.told if ", seed" in line] == []
    with pytest.raises(RegardError, match="holds another comparison: its budget was"):
        compare(text, out, **how, budget="4s")


def test_the_speed_of_a_short_training_is_measured(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MEASURED_SECONDS", 0.05)
    plan = read_plan(given(text, contenders={"rnn": {"model": {"name": "rnn", "d_model": 8, "n_layers": 1}}}))
    assert pace.measure_speed(plan.config, plan.train) > 0


@pytest.mark.slow
def test_sizes_can_be_matched_without_embeddings(text: Path, tmp_path: Path) -> None:
    how = {"contenders": ["rnn", "transformer"], "seeds": 1, "budget": "500tokens", "match": "non-embedding"}
    comparison = compare(text, tmp_path / "out", **how)
    for contender in comparison.contenders:
        assert abs((contender.n_non_embedding or 0) / 6000 - 1) <= 0.02
        assert (contender.n_parameters or 0) > 6100
        assert contender.config["model"]["n_layers"] == 1  # so small a model has one
    assert any("updates only" in warning for warning in comparison.warnings)


def test_a_flops_budget_goes_on_as_its_finished_runs_were_charged(text: Path, tmp_path: Path) -> None:
    """What an earlier version began is not cut short, nor made longer, by another formula."""
    contenders = {"bag": {"model": {"name": "bag", "n_layers": 1}}}
    plan = given(text, contenders=contenders, budget="1e8flops") | {"out": str(tmp_path / "c")}
    regard.compare(plan)
    runs = tmp_path / "c" / "runs"
    before = regard.load(runs / "bag-seed1").config.train.max_tokens
    facts = json.loads((runs / "bag-seed0" / "run.json").read_text())
    facts |= {"flops_per_token": 2 * facts["flops_per_token"], "checksums": {}}
    (runs / "bag-seed0" / "run.json").write_text(json.dumps(facts))
    shutil.rmtree(runs / "bag-seed1")
    (tmp_path / "c" / "compare.json").unlink()
    regard.compare(plan)
    assert regard.load(runs / "bag-seed1").config.train.max_tokens == before // 2


def test_only_lossy_contenders_are_still_measured_on_the_text_itself(text: Path, tmp_path: Path) -> None:
    comparison = compare(text, tmp_path / "out", contenders=["ngram"], tokenizer="word", seeds=1)
    assert comparison.setup.n_tested == 10
    assert comparison.contender("ngram").lossy
    assert comparison.ranking == ("ngram",)


def test_two_vocabularies_of_words_are_never_ranked_together(text: Path, tmp_path: Path) -> None:
    contenders = {name: {"model": "ngram", "tokenizer": f"word:{size}"} for name, size in (("few", 5), ("many", 500))}
    comparison = compare(text, tmp_path / "out", contenders=contenders, seeds=1)
    assert comparison.pairs == ()
    assert [len(group) for group in comparison.groups] == [1, 1]
    assert comparison.headline[0].startswith("Nobody can be called best")
    assert not any("is best" in sentence for sentence in comparison.headline)


@pytest.mark.slow
def test_ctrl_c_on_the_command_line_says_how_to_go_on(text: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "c.yaml"
    recipe.write_text(yaml.safe_dump(given(text, seconds=600, budget=None, contenders=["ngram", "lstm"], seeds=1)))
    command = [sys.executable, "-m", "regard", "compare", str(recipe), "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "out/runs/lstm-seed0/metrics.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Stopped with 1 of 2 trainings finished; all is saved. Go on with: regard compare" in errors
    assert "Traceback" not in errors
    assert (tmp_path / "out/runs/ngram-seed0/README.md").exists()


def test_finished_language_models_are_compared_with_intervals(
    done: tuple[Path, Comparison], text: Path, tmp_path: Path
) -> None:
    runs = sorted((done[0] / "runs").glob("[ln]*"))
    found = api.compare(runs, out=tmp_path / "out")
    assert found.ranking == ("ngram-seed0", "lstm ×2")
    same, mine = done[1].contender("lstm").score, found.contender("lstm ×2").score
    assert same is not None
    assert mine is not None
    assert (mine.value, mine.low, mine.high) == (same.value, same.low, same.high)
    assert "same context" not in mine.others  # neither has a limit
    assert found.pairs[0].p == done[1].pairs[0].p
    assert found.setup.training is None
    assert found.contender("lstm ×2").views.cells is not None
    other = tmp_path / "other.txt"
    other.write_text(text.read_text()[:3000])
    again = api.compare(runs, data=str(other), out=tmp_path / "other")
    assert again.setup.data.startswith(str(other))
    assert again.contender("ngram-seed0").score != found.contender("ngram-seed0").score
    with pytest.raises(RegardError, match="--context takes a number of tokens from 2 on, or own, not 'all'"):
        api.compare(runs, context="all", out=tmp_path / "all")
    near = api.compare(runs, context=4, out=tmp_path / "near").contender("lstm ×2").score
    assert near is not None
    assert near.value == same.value < near.others["same context"]
    with pytest.raises(RegardError, match="--beam is for models that search for their answers, and a language-model"):
        api.compare(runs, beam=2, out=tmp_path / "beam")
    words = regard.train({"model": {"name": "ngram", "order": 2}}, data=str(other), out=tmp_path / "words").folder
    with pytest.raises(RegardError, match=r"These runs are not tested on the same data: "):
        api.compare([runs[0], words], out=tmp_path / "differ")


def test_imported_models_are_compared_with_finished_runs_at_a_cost_that_is_not_known(
    done: tuple[Path, Comparison], text: Path, tmp_path: Path
) -> None:
    write_hf_folder(tmp_path / "hub")
    gpt2 = import_run(tmp_path / "hub", tmp_path / "gpt2").folder
    ngram = done[0] / "runs/ngram-seed0"
    found = api.compare([gpt2, ngram], out=tmp_path / "out")
    assert found.ranking == ("ngram-seed0", "gpt2")
    assert found.contender("ngram-seed0").score == done[1].contender("ngram").score
    imported = found.contender("gpt2")
    assert (imported.tokens, imported.flops, imported.seconds, imported.valid) == (None, None, None, None)
    assert imported.has_seeds  # though one was tried: nothing is settled
    assert Comparison.load(tmp_path / "out") == found
    console = Console(file=io.StringIO(), width=120)
    console.print(ComparisonTable(found))
    row = next(line for line in console.file.getvalue().splitlines() if line.startswith("2  gpt2 "))  # type: ignore[attr-defined]
    assert row.split()[-1] == "–"
    named = api.compare([gpt2, ngram], data=str(text), out=tmp_path / "named")
    assert named.setup.data.startswith(str(text))
    with pytest.raises(RegardError, match=r"was imported and has no text of its own\. Name data of yours with --data"):
        api.compare([gpt2, import_run(tmp_path / "hub", tmp_path / "other").folder], out=tmp_path / "none")


def test_a_comparison_without_test_data_is_refused_before_training(text: Path, tmp_path: Path) -> None:
    data = {"train": str(text), "p_test": 0.0}
    found = compare(text, tmp_path / "out", contenders=["ngram", "rnn"], data=data)
    assert found.ranking == ()
    assert "the test split is empty" in found.contender("rnn").failures[0].reason
    assert not (tmp_path / "out" / "runs").exists()


def test_an_imported_model_of_words_is_tested_on_the_text_that_another_lends(text: Path, tmp_path: Path) -> None:
    given = {"data": {"train": str(text)}, "tokenizer": {"kind": "word", "vocab_size": 15}}
    runs = [
        api.train({**given, "model": {"name": name, **more}, **limits}, out=tmp_path / name).folder
        for name, more, limits in (("ngram", {"order": 2}, {}), ("bag", {"d_model": 8}, {"train": {"max_steps": 2}}))
    ]
    api.export(runs[0], tmp_path / "words.arpa")
    imported = import_run(tmp_path / "words.arpa", tmp_path / "imported").folder
    for number, contenders in enumerate(([imported, runs[1]], [runs[1], imported])):
        assert len(api.compare(contenders, out=tmp_path / f"{number}").ranking) == 2
