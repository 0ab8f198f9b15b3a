"""Finished runs compared as a user does it: train a few, `regard compare runs/*`, and what can be wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from made_up_comparison import made_up_comparison
from tiny_captions import write_pictures
from tiny_pairs import TEXTS as SHORT
from tiny_pairs import write_pairs
from tiny_parsing import LINES

import regard as package
from regard import api
from regard.api import compare_runs
from regard.compare.result import Comparison, to_json
from regard.errors import RegardError
from regard.score.translation import bleu, chrf
from regard.training.weights import read_tensors, write_weights

Regard = Callable[..., Any]
GIVEN: dict[str, Any] = {
    "tokenizer": {"kind": "word", "vocab_size": None},
    "model": {
        "name": "seq2seq", "encoder": "gru", "decoder": "gru", "attention": "mlp", "d_model": 24, "n_layers": 1,
        "p_dropout": 0.0,
    },
    "teaching": {"max_tokens": 400, "smoothing": 0.0, "select_by": "bleu"},
    "optimizer": {"lr": 0.02},
    "runtime": {"device": "cpu", "n_threads": 1},
    "checkpoint": {"has_tensorboard": False},
}  # fmt: skip
# BLEU counts four words in a row.
TEXTS = [(f"{source} here today", f"{target} hier heute") for source, target in SHORT]
LONG = ("the " * 20, "haus " * 20)


def trained(folder: Path, data: dict[str, Any], n_steps: int = 1, is_tested: bool = False, **sections: Any) -> Path:
    given = {**GIVEN, "data": data, "train": {"max_steps": n_steps, "eval_every": max(1, n_steps // 4)}}
    for name, section in sections.items():
        given[name] = given.get(name, {}) | section if isinstance(section, dict) else section
    found: Path = api.train(given, out=folder, is_tested=is_tested).folder
    return found


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All are tested on what they learned from: one remembers it, the others have hardly begun."""
    folder = tmp_path_factory.mktemp("pairs")
    texts = {"train": TEXTS, "valid": TEXTS[::-1], "test": [*TEXTS, LONG]}
    return {name: [str(path) for path in write_pairs(folder, some, name)] for name, some in texts.items()}


@pytest.fixture(scope="module")
def runs(pairs: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    transformer = {"encoder": "transformer", "decoder": "transformer", "attention": "scaled-dot", "n_heads": 2}
    return [
        trained(folder / "plain", pairs, 4, model={"attention": "none"}, train={"eval_every": 4}),
        trained(folder / "attentive", pairs, 40),
        trained(folder / "transformer", pairs, model=transformer | {"max_context": 60}, tokenizer={"kind": "char"},
                teaching={"max_select_items": 1}),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def parsers(tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> list[Path]:
    folder = tmp_path_factory.mktemp("parsers")
    data = {name: str(folder / f"{name}.mrg") for name in ("train", "valid", "test")}
    for i, path in enumerate(data.values()):
        Path(path).write_text("\n".join(LINES[i:] + LINES[:i]) + "\n")
    data |= {"tree_words": "tag"}
    how: dict[str, Any] = {"teaching": {"select_by": "f1", "max_select_items": 1}, "train": {"eval_every": 30}}
    return [
        trained(folder / "poor", data, 1, **how),
        trained(folder / "good", data, 30, is_tested=True, **how),
    ]


@pytest.fixture(scope="module")
def by_loss(pairs: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> Path:
    """Judged by its loss, with fewer test pairs than the others and the validation pairs in another order."""
    folder = tmp_path_factory.mktemp("runs")
    changed = {"test": TEXTS[1:], "valid": [*TEXTS[1:], TEXTS[0]]}
    data = {name: [str(path) for path in write_pairs(folder, some, name)] for name, some in changed.items()}
    return trained(folder / "by-loss", pairs | data, teaching={"select_by": "loss"})


def with_other_weights(run: Path, copy: Path) -> Path:
    """A copy of a run that says other things."""
    shutil.copytree(run, copy)
    draws = torch.Generator().manual_seed(1)
    weights = read_tensors(run / "model.safetensors")
    write_weights(
        {name: torch.randn(w.shape, generator=draws) for name, w in weights.items()}, copy / "model.safetensors"
    )
    api.check(copy, is_trusted=True)  # or its checksum would refuse it
    return copy


@pytest.fixture(autouse=True)
def no_picture(monkeypatch: pytest.MonkeyPatch, compared: Any) -> None:
    """One picture is drawn, by `compared`; more of them take more time than all else here."""
    monkeypatch.setattr("regard.report.comparison.write_overview", lambda _, path: path.write_bytes(b""))


@pytest.fixture(scope="module")
def compared(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, Path]:
    out = tmp_path_factory.mktemp("compare") / "out"
    return compare_runs(runs[:2], beam=2, device="cpu", levels=[50.0], out=out), out


def test_the_run_that_learned_is_best_and_it_is_told_at_what_cost(
    compared: tuple[Comparison, Path], runs: list[Path]
) -> None:
    found, out = compared
    assert found.ranking == ("attentive", "plain")
    best, plain = found.ranked
    assert best.score is not None
    assert plain.score is not None
    assert best.score.value > 70 > 40 > plain.score.value
    assert best.score.low <= best.score.value <= best.score.high
    (pair,) = found.pairs
    assert (pair.better, pair.worse, pair.is_settled) == ("attentive", "plain", False)
    assert pair.p < 0.05
    assert pair.why == "one seed: other seeds were not tried"
    assert found.pairs[0].difference == best.score.value - plain.score.value
    last = json.loads((runs[1] / "metrics.jsonl").read_text().splitlines()[-1])
    assert (best.flops, best.seconds, best.tokens) == (last["flops"], last["seconds"], last["tokens"])
    assert found.setup.watched == "BLEU"
    assert [point.step for point in best.curve] == [10, 20, 30, 40]
    first = next(point for point in best.curve if point.score >= 50)
    assert [(row.level, row.flops) for row in found.costs] == [(50.0, (None, first.flops))]
    assert Comparison.load(out) == found
    for name in ("report.html", "overview.png"):
        assert (out / name).stat().st_size > 10_000


def test_translations_are_scored_by_the_length_of_their_sources_too(runs: list[Path], tmp_path: Path) -> None:
    short, long = TEXTS[0], (" ".join(["the house"] * 6), " ".join(["das haus"] * 6))
    data = [str(path) for path in write_pairs(tmp_path, [short, long] * 22, "test")]
    found = compare_runs(runs[:2], data=data, beam=1, device="cpu", out=tmp_path / "out")
    lines = (tmp_path / "out" / "outputs" / "attentive.txt").read_text().splitlines()
    brief, tall = found.contender("attentive").by_length
    n = len(short[0].split())
    assert (brief.shortest, brief.longest, brief.n_items, brief.n_words) == (n, n, 22, float(n))
    assert (tall.shortest, tall.longest, tall.n_items) == (12, 12, 22)
    assert brief.score == pytest.approx(bleu(lines[::2], [short[1]] * 22).score)
    assert tall.score == pytest.approx(bleu(lines[1::2], [long[1]] * 22).score)
    assert brief.low <= brief.score <= brief.high
    assert 'id="lengths"' in (tmp_path / "out" / "report.html").read_text()


def test_scores_are_those_of_the_lines_that_are_kept(compared: tuple[Comparison, Path]) -> None:
    found, out = compared
    references = [target for _, target in [*TEXTS, LONG]]
    for contender in found.contenders:
        assert contender.score is not None
        lines = (out / "outputs" / f"{contender.name}.txt").read_text().splitlines()
        assert abs(contender.score.value - bleu(lines, [text.strip() for text in references]).score) < 1e-9
        assert contender.score.others == {"chrF": chrf(lines, [text.strip() for text in references]).score}
    assert found.setup.n_tested == len(references)
    for example in found.examples:
        assert (example.source, example.references) == (
            [*TEXTS, LONG][example.number - 1][0].strip(),
            ([*TEXTS, LONG][example.number - 1][1].strip(),),
        )


def test_what_is_kept_is_not_translated_again(
    compared: tuple[Comparison, Path], runs: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found, out = compared[0], tmp_path / "out"
    shutil.copytree(compared[1], out)
    monkeypatch.setattr("regard.tasks.pairs.answer_in_batches", lambda *_: pytest.fail("it translates again"))
    again = compare_runs(runs[:2], beam=2, device="cpu", out=out)
    assert again.contenders == found.contenders
    with pytest.raises(pytest.fail.Exception, match="it translates again"):
        compare_runs(runs[:2], beam=1, device="cpu", out=out)


def test_the_command_line_prints_the_table_and_where_the_report_is(
    regard: Regard, runs: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = regard("compare", *runs, "--out", out, "--beam", 1, "--device", "cpu", "--max-tokens", 300)
    assert done.code == 0, done.err
    for part in ("attentive is best at BLEU", "vs next better", "to reach", "nrefs:1|case:mixed", "report.html"):
        assert part in done.out, part
    assert "Test items left out, since they are longer than one of the models reads: 1." in done.out
    found = Comparison.load(out)
    assert (found.setup.n_tested, found.setup.n_left_out) == (len(TEXTS), 1)
    assert len(found.pairs) == 3  # second and third against the best, third against the second
    assert found.setup.command.endswith(f"--beam 1 --out {out}")
    page = (out / "report.html").read_text()
    again = regard("report", out)
    assert again.code == 0
    assert (out / "report.html").read_text() == page


def test_other_test_data_and_other_splits_are_asked_for_as_in_eval(runs: list[Path], tmp_path: Path) -> None:
    files = [str(path) for path in write_pairs(tmp_path, TEXTS[:6])]
    found = package.compare_runs(runs[:2], data=files, beam=1, device="cpu", out=tmp_path / "other")
    assert (found.setup.n_tested, found.setup.data) == (6, ", ".join(files))
    found = compare_runs(runs[:2], split="valid", beam=1, device="cpu", out=tmp_path / "valid")
    assert found.setup.n_tested == len(TEXTS)
    Path(files[1]).write_text("\n".join(["", *(target for _, target in TEXTS[1:6])]) + "\n")
    with pytest.raises(RegardError, match=r"line 1 has an empty target.*--skip-bad"):
        compare_runs(runs[:2], data=files, beam=1, device="cpu", out=tmp_path / "bad")
    found = compare_runs(runs[:2], data=files, beam=1, device="cpu", skips_bad=True, out=tmp_path / "bad")
    assert found.setup.n_tested == 5
    assert "Of the test data, 1 line left out (empty side: 1)." in found.setup.notes
    assert "--skip-bad" in found.setup.command


def test_runs_that_were_not_all_judged_by_bleu_are_shown_by_their_loss(
    runs: list[Path], by_loss: Path, tmp_path: Path
) -> None:
    found = compare_runs([runs[0], by_loss], split="train", beam=1, device="cpu", out=tmp_path / "out")
    assert found.setup.watched == "bits per byte"
    assert any("by-loss was not watched by BLEU (teaching.select_by: bleu)" in note for note in found.setup.notes)
    lines = [json.loads(line) for line in (by_loss / "metrics.jsonl").read_text().splitlines()]
    assert found.contender("by-loss").valid == min(line["bits_per_byte"] for line in lines if line["kind"] == "valid")


def test_parsers_are_compared_by_f1(parsers: list[Path], tmp_path: Path) -> None:
    found = compare_runs(parsers, beam=5, device="cpu", out=tmp_path / "out")
    assert (found.setup.metric, found.setup.watched, found.setup.task) == ("F1", "F1", "parsing")
    assert found.ranking == ("good", "poor")
    told = json.loads((parsers[1] / "test.json").read_text())["parses"]  # by the same beam, on the same trees
    good = found.contender("good").score
    assert good is not None
    assert abs(good.value - 100 * told["f1"]) < 1e-9
    assert good.others == {}


def test_captioners_are_compared_by_bleu_with_their_pictures(tmp_path: Path, own_cache: Path) -> None:
    pictures, captions = write_pictures(tmp_path / "drawn")
    given = {
        "data": {"pictures": str(pictures), "captions": str(captions), "size": 32, "p_valid": 0.2, "p_test": 0.2},
        "tokenizer": {"kind": "word", "vocab_size": None},
        "model": {"name": "captioner", "d_model": 16, "n_halvings": 3, "d_first": 8},
        "train": {"max_steps": 2, "n_batch": 4, "eval_every": 2},
        "teaching": {"select_by": "bleu", "max_select_items": 1},
        "checkpoint": {"has_tensorboard": False},
    }
    run = api.train(given, out=tmp_path / "one", is_tested=False).folder
    runs = [run, with_other_weights(run, tmp_path / "other")]
    found = compare_runs(runs, beam=1, device="cpu", out=tmp_path / "out")
    assert (found.setup.metric, found.setup.task) == ("BLEU-4", "captions")
    assert found.examples[0].picture is not None
    assert found.examples[0].picture in (tmp_path / "out" / "report.html").read_text()
    assert len(found.examples[0].references) == 2


def test_runs_that_cannot_be_compared_are_told_why(
    regard: Regard,
    runs: list[Path],
    parsers: list[Path],
    by_loss: Path,
    lstm_run: Path,
    tmp_path: Path,
) -> None:
    unfinished = tmp_path / "unfinished"
    shutil.copytree(runs[0], unfinished)
    (unfinished / "README.md").unlink()
    without = tmp_path / "without"
    shutil.copytree(runs[0], without)
    (without / "metrics.jsonl").unlink()
    first, parser = runs[0], parsers[0]
    comparison = tmp_path / "comparison"
    comparison.mkdir()
    (comparison / "compare.json").write_text("{}")
    for words, told in (
        ([first], f"needs at least two runs, and '{first}' is one. Its own scores: regard eval"),
        ([first, first], f"The run '{first}' is given twice"),
        ([first, lstm_run], f"'{first}' translates and '{lstm_run}' predicts the next token of a text: only runs of"),
        ([lstm_run, lstm_run.parent], f"'{lstm_run.parent}' is not a run folder"),
        ([comparison], f"'{comparison}' holds a comparison, not a run."),
        ([first, comparison], f"'{comparison}' holds a comparison, not a run."),
        ([first, unfinished], f"'{unfinished}' is not finished"),
        ([first, without], f"'{without}' holds no metrics.jsonl"),
        ([first, parser], f"'{first}' translates and '{parser}' parses: only runs of one task can be compared"),
        ([first, by_loss], f"'{first}' has 25 test targets and '{by_loss}' 23"),
        ([first, by_loss, "--split", "valid"],
         f"test target 1 is 'vogel blau fällt hier heute' for '{first}' and 'haus rot fällt"),
        ([first, "lstm"], f"'{first}' is a run folder and 'lstm' is none: give run folders"),
        ([first, runs[0].parent / "attentiv"], "There is no run folder '", ),
        ([first, runs[1], "--budget", "2min"], "--budget is for models that are trained to be compared"),
        (["lstm", "rnn", "--data", "x", "--beam", "2"], "--beam is for models that search for their answers"),
        (["lstm", "rnn", "--data", "x", "--split", "valid"], "--split is for finished runs, and these are to be"),
        ([first, runs[1], "--device", "cuda:99"], "The device 'cuda:99' was asked for"),
        ([first, runs[1], "--split", "tset"], "split must be train, valid or test, not 'tset'"),
        ([first, runs[1], "--out", runs[0]], f"'{runs[0]}' is not empty (it holds README.md); choose another --out"),
    ):  # fmt: skip
        done = regard("compare", *words, *(() if "--out" in map(str, words) else ("--out", tmp_path / "out")))
        assert done.code == 2, (words, done)
        assert told in done.err, (told, done.err)
    assert not (tmp_path / "out").exists()


def test_a_comparison_is_drawn_over_no_page_of_the_user(runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(RegardError, match=r"is not empty \(it holds report.html\); choose another --out"):
        api.compare(runs, out=tmp_path)
    assert (tmp_path / "report.html").read_text() == "mine"


def test_a_comparison_that_was_trained_is_not_written_over(runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "compare.json").write_text(to_json(made_up_comparison()))
    with pytest.raises(RegardError, match=r"holds a comparison of models that were trained for it; choose another"):
        compare_runs(runs[:2], out=tmp_path)


def test_seeds_of_one_system_are_compared_together(
    regard: Regard, runs: list[Path], pairs: dict[str, Any], tmp_path: Path
) -> None:
    seeds = [tmp_path / f"again-s{seed}" for seed in (1, 2)]
    for seed, folder in enumerate(seeds, start=1):
        trained(folder, pairs, 4, model={"attention": "dot"}, seed=seed)
    done = regard("compare", runs[1], *seeds, "--beam", 1, "--out", tmp_path / "out")
    assert done.code == 0, done
    found = Comparison.load(tmp_path / "out")
    alone, together = found.contenders
    assert together.score is not None
    assert (alone.name, together.name) == ("attentive", "again ×2")
    assert tuple(run.run for run in together.runs) == tuple(map(str, seeds))
    scores = [run.score for run in together.runs]
    assert together.score.value == pytest.approx(sum(scores) / 2, abs=1e-9)
    assert f"again ×2, seed by seed: {scores[0]:.2f}, {scores[1]:.2f}" in done.out
    assert "one seed: other seeds were not tried" in done.out.replace("\n", " ")
    each = compare_runs([runs[1], *seeds], beam=1, is_each=True, out=tmp_path / "out")
    assert [c.score.value for c in each.contenders[1:] if c.score] == pytest.approx(scores, abs=1e-9)
    assert "--each" in each.setup.command
    same = compare_runs(seeds, beam=1, out=tmp_path / "same")  # nothing else is there to compare
    assert [contender.name for contender in same.contenders] == ["again-s1", "again-s2"]


def budgeted(pairs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Two translators that are to be trained under one budget."""
    gru = {"name": "seq2seq", "encoder": "gru", "decoder": "gru", "n_layers": 1}
    return {
        "contenders": {
            "plain": {"model": gru | {"attention": "none"}},
            "attentive": {"model": gru | {"attention": "mlp"}, "optimizer": {"lr": 0.02}},
        },
        "data": pairs,
        "tokenizer": {"kind": "word", "vocab_size": None},
        "teaching": {"max_tokens": 400, "smoothing": 0.0},
        "budget": "3e7flops",
        "params": "9k",
        "seeds": 2,
        "runtime": {"device": "cpu", "n_threads": 1},
    } | changes


def test_translators_are_trained_under_one_budget(pairs: dict[str, Any], tmp_path: Path, own_cache: Path) -> None:
    found = package.compare(budgeted(pairs), beam=1, out=tmp_path / "out")
    assert (found.setup.task, found.setup.metric, found.setup.decoding) == ("translation", "BLEU", "greedy")
    assert sorted(found.ranking) == ["attentive", "plain"]
    for contender in found.contenders:
        assert len(contender.runs) == 2
        assert abs((contender.n_parameters or 0) / 9000 - 1) <= 0.1 or contender.size_note
        for run in contender.runs:
            per_step = run.flops / run.tokens * 250
            assert 3e7 - per_step <= run.flops <= 3e7 + per_step
        assert len(contender.curve) >= 3
    assert found.setup.training is not None
    assert found.setup.training.budget == "3e7 FLOPs"
    assert found.examples
    assert "one budget: 3e7 FLOPs each" in (tmp_path / "out" / "report.html").read_text()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").rglob("*")}
    again = package.compare(budgeted(pairs), beam=1, out=tmp_path / "out")  # all of it is there already
    assert [c.score for c in again.contenders] == [c.score for c in found.contenders]
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").rglob("*")}


def test_parsers_are_trained_under_one_budget(tmp_path: Path, own_cache: Path) -> None:
    data = {name: str(tmp_path / f"{name}.mrg") for name in ("train", "valid", "test")}
    for i, path in enumerate(data.values()):
        Path(path).write_text("\n".join(LINES[i:] + LINES[:i]) + "\n")
    given = budgeted(data | {"tree_words": "tag"}, seeds=1, budget="600tokens", params=None)
    found = package.compare(given, beam=1, levels=[10.0], out=tmp_path / "out")
    assert (found.setup.task, found.setup.metric) == ("parsing", "F1")
    assert len(found.ranking) == 2
    assert [row.level for row in found.costs] == [10.0]


def test_captioners_are_trained_under_one_budget(tmp_path: Path, own_cache: Path) -> None:
    pictures, captions = write_pictures(tmp_path / "drawn")
    small = {"name": "captioner", "d_model": 16, "n_halvings": 3, "d_first": 8}
    given = {
        "contenders": {"lstm": {"model": small}, "gru": {"model": small | {"decoder": "gru"}}},
        "data": {"pictures": str(pictures), "captions": str(captions), "size": 32, "p_valid": 0.2, "p_test": 0.2},
        "tokenizer": {"kind": "word", "vocab_size": None},
        "train": {"n_batch": 4},
        "budget": "100tokens",
        "seeds": 1,
        "runtime": {"device": "cpu", "n_threads": 1},
    }
    found = package.compare(given, beam=1, out=tmp_path / "out")
    assert (found.setup.task, found.setup.metric) == ("captions", "BLEU-4")
    assert len(found.ranking) == 2
    assert found.examples[0].picture is not None
