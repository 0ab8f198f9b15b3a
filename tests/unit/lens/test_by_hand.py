"""The worked examples of the lectures come out exactly."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from regard.lens.by_hand import regress, solve, view_steps
from regard.lens.subject import Subject
from regard.lens.trace import trace_text
from regard.lens.view import LookOptions
from regard.mixers.config import RecurrentAttentionConfig
from regard.models.table import build_model
from regard.studies.by_hand import list_examples, measure
from regard.studies.config import ByHandConfig
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

EXAMPLES = {example.title: example for example in list_examples(ByHandConfig())}


def test_a_a_b_a_with_e_taken_as_three() -> None:
    found = EXAMPLES["A A B A"].solve()
    assert found.scores.tolist() == [0, 0, 1, 0]
    assert found.weights == pytest.approx([1 / 6, 1 / 6, 1 / 2, 1 / 6])
    assert found.z is not None
    assert found.z == pytest.approx([0.5, 0.5])


def test_a_longer_query_finds_the_b() -> None:
    found = EXAMPLES["A A B A, a query ten times as long"].solve()
    assert found.weights[2] > 0.999


@pytest.mark.parametrize(
    ("title", "weights"),
    [
        ("112, 96, 16, 8 over √64", [0.881, 0.119, 0.000, 0.000]),
        ("92, 124, 22, 8 over √64", [0.018, 0.982, 0.000, 0.000]),
        ("1.5, .9, .2, -.5", [0.511, 0.280, 0.139, 0.069]),
    ],
)
def test_softmax_weights_of_the_slides(title: str, weights: list[float]) -> None:
    assert EXAMPLES[title].solve().weights.round(3).tolist() == weights


def test_misprinted_weights_stand_beside_the_true_ones() -> None:
    assert EXAMPLES["112, 96, 16, 8 over √64"].printed == (0.87, 0.12, 0.01, 0.0)
    assert EXAMPLES["92, 124, 22, 8 over √64"].printed == (0.08, 0.91, 0.01, 0.0)


def test_scores_may_be_as_large_as_they_like() -> None:
    assert solve([1e5, 0.0]).weights.tolist() == [1.0, 0.0]


def test_a_narrow_kernel_gives_the_nearest_point_and_a_wide_one_the_mean() -> None:
    xs, ys = [0.0, 1.0, 2.0], [3.0, 9.0, 6.0]
    assert regress(0.9, xs, ys, h=0.01)[1] == pytest.approx(9.0)
    assert regress(0.9, xs, ys, h=1e4)[1] == pytest.approx(6.0)


def test_the_study_says_the_true_numbers_and_shows_every_example() -> None:
    finding = measure(ByHandConfig(), (), lambda *_: None)
    assert "0.881 0.119 0.000 0.000 and not .87" in finding.sentence
    kinds = [example["kind"] for example in finding.views[0].data["examples"]]
    assert kinds == ["attend"] * 5 + ["project", "regress"]
    matrices = finding.views[0].data["examples"][5]
    Q, K = (np.array(matrices["X"]) @ np.array(matrices[name]) for name in ("WQ", "WK"))
    assert (Q @ K.T).tolist() == [[0, 1, 1], [1, 1, 2], [1, 2, 3]]


@pytest.mark.parametrize(
    ("score", "d", "columns"),
    [
        ("scaled-dot", 8, ["key", "q·k", "/ √8", "softmax", "v"]),
        ("dot", None, ["key", "q·k", "softmax", "v"]),
        ("bilinear", None, ["key", "score", "softmax", "v"]),
        ("mlp", None, ["key", "score", "softmax", "v"]),
    ],
)
def test_the_steps_of_a_model_are_those_of_its_score_function(score: str, d: int | None, columns: list[str]) -> None:
    torch.manual_seed(0)
    words = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["the cat sat on the mat\n"])
    config = RecurrentAttentionConfig(d_model=8, n_layers=1, score=score)
    model = build_model("rnn-attention", config, words.vocab_size).double()
    torch.nn.init.normal_(model.embedding, std=1.0)  # states that differ, so that scores do
    run = SimpleNamespace(
        model=model, folder=Path("run"), tokenizer=words, task=SimpleNamespace(verb="generate"),
        trace=lambda text: trace_text(model, words, text),
    )  # fmt: skip
    subject = Subject(run, "the cat sat on the mat")
    view = view_steps(subject, LookOptions())
    assert view is not None
    assert view.table is not None
    assert list(view.table[0]) == columns
    example, t = view.data["examples"][0], view.data["token"]
    assert example["d"] == d
    scores = example["scores"] if d is None and score != "dot" else np.array(example["keys"]) @ example["query"]
    found = solve(scores, example["values"], d)
    A = subject.trace["layers.1.attention"][0, t]
    np.testing.assert_allclose(found.weights, A[A > 0], rtol=0, atol=1e-3)
    np.testing.assert_allclose(found.z, subject.trace["layers.1.z"][0, t], rtol=0, atol=1e-3)
