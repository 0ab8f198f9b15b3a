"""`regard score` of pairs: how probable a model finds targets that it did not write."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_pairs import TEXTS, write_pairs

from regard import api
from regard.errors import RegardError
from regard.tasks.translation import TranslationRun

Regard = Callable[..., Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> TranslationRun:
    folder = tmp_path_factory.mktemp("scoring")
    model = {"name": "seq2seq", "encoder": "transformer", "d_model": 16, "n_layers": 1, "d_ff": 16, "max_context": 12}
    loaded: TranslationRun = api.train(
        {
            "data": {"train": [str(path) for path in write_pairs(folder)], "p_valid": 0, "p_test": 0},
            "tokenizer": {"kind": "word", "vocab_size": None},
            "model": model,
            "train": {"max_steps": 20},
            "checkpoint": {"has_tensorboard": False},
        },
        out=folder / "run",
    )
    return loaded


def written(folder: Path, sources: list[str], targets: list[str]) -> tuple[Path, Path]:
    paths = folder / "some.en", folder / "some.de"
    for path, lines in zip(paths, (sources, targets), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


def test_a_line_a_pair_and_the_sum_at_the_end(regard: Regard, run: TranslationRun, tmp_path: Path) -> None:
    files = write_pairs(tmp_path, TEXTS[:5])
    done = regard("score", run.folder, *files)
    rows = [line.split("\t") for line in done.out.splitlines()]
    expected = [run.force(*pair).nats for pair in TEXTS[:5]]
    assert [tuple(row[3:]) for row in rows] == TEXTS[:5]
    assert [float(row[0]) for row in rows] == pytest.approx([-nats.sum() for nats in expected], rel=0, abs=2e-4)
    assert [int(row[1]) for row in rows] == [4] * 5
    assert [float(row[2]) for row in rows] == pytest.approx([math.exp(nats.mean()) for nats in expected], rel=1e-4)
    whole = run.evaluate([str(file) for file in files], is_translated=False)
    assert done.err == (
        f"5 pairs, 20 target tokens, log-probability {-whole.nats:,.2f} nats, {whole.nats_per_token:.3f} nats a token, "
        f"perplexity {whole.perplexity:,.2f}\n"
    )


def test_json_says_what_each_token_costs(regard: Regard, run: TranslationRun, tmp_path: Path) -> None:
    done = regard("score", run.folder, *write_pairs(tmp_path, TEXTS[:3]), "--json")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [row["line"] for row in found] == [1, 2, 3]
    for row, (source, target) in zip(found, TEXTS, strict=False):
        assert (row["source"], row["target"], row["n_tokens"]) == (source, target, 4)
        assert "".join(token["text"] for token in row["tokens"]) == target
        assert sum(token["nats"] for token in row["tokens"]) == pytest.approx(-row["log_prob"], rel=0, abs=1e-9)
        assert row["perplexity"] == pytest.approx(math.exp(-row["log_prob"] / 4), rel=1e-9)
        assert run.score(source, target).log_probability == pytest.approx(row["log_prob"], rel=0, abs=1e-4)


def test_translations_can_be_scored_by_another_run(regard: Regard, run: TranslationRun, tmp_path: Path) -> None:
    """As n-best lists are rescored: the number of a line leads to its source."""
    sources = written(tmp_path, [source for source, _ in TEXTS[:3]], [])[0]
    rows = [line.split("\t") for line in regard("translate", run.folder, sources, "--n-best", 4).out.splitlines()]
    files = written(tmp_path, [TEXTS[int(number) - 1][0] for number, *_ in rows], [text for _, text, _ in rows])
    found = [line.split("\t") for line in regard("score", run.folder, *files).out.splitlines()]
    assert len(found) == 12
    for (_, _, score), (log_prob, n_tokens, *_) in zip(rows, found, strict=True):
        assert float(log_prob) / int(n_tokens) == pytest.approx(float(score), rel=0, abs=2e-4)


def test_a_pair_that_cannot_be_scored(regard: Regard, run: TranslationRun, tmp_path: Path) -> None:
    files = written(tmp_path, [TEXTS[0][0], "the " * 13, "", TEXTS[1][0]], [TEXTS[0][1], "haus", "", TEXTS[1][1]])
    done = regard("score", run.folder, *files)
    assert (done.code, len(done.out.splitlines())) == (2, 1)  # the one before it is not lost
    assert "Line 2 has 13 tokens in its source, and the model takes at most 12. Change it, or leave it" in done.err
    done = regard("score", run.folder, *files, "--skip-bad")
    assert (done.code, [bool(line) for line in done.out.splitlines()]) == (0, [True, False, False, True])
    assert done.err.startswith("2 pairs, 8 target tokens")
    assert done.err.endswith("; left out, each an empty line: 1\n")
    done = regard("score", run.folder, *files, "--skip-bad", "--json")
    assert json.loads(done.out.splitlines()[1]) == {"line": 2, "log_prob": None}


def test_eval_leaves_out_lines_that_cannot_be_used_where_it_is_told_to(
    regard: Regard, run: TranslationRun, lstm_run: Path, tmp_path: Path
) -> None:
    sources, targets = (list(side) for side in zip(*TEXTS[:3], strict=True))
    files = written(tmp_path, [*sources, "the", "bird"], [*targets, "", "x" * 100_001])
    words = ["eval", run.folder, "--data", files[0], "--data", files[1]]
    done = regard(*words)
    assert done.code == 2
    assert "line 4 has an empty target" in done.err
    assert "--skip-bad" in done.err
    done = regard(*words, "--skip-bad")
    assert done.code == 0, done.err
    assert "2 lines left out (empty side: 1, too long: 1)." in done.out
    found = json.loads(regard(*words, "--skip-bad", "--json").out)
    assert (found["n_pairs"], found["skipped"]) == (3, {"empty side": 1, "too long": 1})
    assert run.evaluate([str(file) for file in files], skips_bad=True).to_dict() == found
    assert run.evaluate([str(file) for file in write_pairs(tmp_path, TEXTS[:3])]).nats == found["nats"]
    done = regard("eval", run.folder, "--skip-bad")
    assert (done.code, "--skip-bad is for what --data names" in done.err) == (2, True)
    done = regard("eval", lstm_run, "--data", files[0], "--skip-bad")
    assert (done.code, "--skip-bad does not apply to" in done.err) == (2, True)


def test_what_is_wrong_with_the_files_is_said(
    regard: Regard, run: TranslationRun, lstm_run: Path, text: Path, tmp_path: Path
) -> None:
    english, german = written(tmp_path, ["the", "bird", "falls"], ["haus"])
    for words, parts in (
        ([run.folder, english, german], ["some.de' ends after line 1, and ", "some.en' goes on"]),
        ([run.folder, english], ["translates: give the sources and their targets"]),
        ([run.folder, english, english, "--to", "<2de>"], ["does not know the tag <2de>"]),
        ([lstm_run, text, text], ["is a language model and scores one text: leave out '"]),
        ([lstm_run, text, "--skip-bad"], ["scores one text: leave out --skip-bad"]),
    ):
        done = regard("score", *words)
        assert done.code == 2
        for part in parts:
            assert part in done.err, done.err


def test_lists_of_equal_length_are_scored_in_python(run: TranslationRun) -> None:
    sources, targets = (list(side) for side in zip(*TEXTS[:3], strict=True))
    found = run.score(sources, targets)
    assert [each.text for each in found] == targets
    assert run.score("", "") is None
    for wrong in ((sources, targets[:2]), (sources[0], targets)):
        with pytest.raises(RegardError, match=r"Sources and targets come in twos, and . and . were given"):
            run.score(*wrong)
