"""Measures of classes, numbers, tags, spans and probabilities, worked by hand or against scikit-learn and seqeval."""

import numpy as np
import pytest

from regard.score.calibration import calibrate
from regard.score.classes import Classes, count_confusions
from regard.score.correlation import Correlation
from regard.score.significance import take_sample
from regard.score.spans import Spans
from regard.score.tags import Tags, score_by_kind
from regard.tasks.labelled_run import measure_figure


def score(judge: object, answers: list[object]) -> float:
    return judge.score(judge.counts(answers).sum(axis=0))  # type: ignore[attr-defined, no-any-return]


def test_classes_agree_with_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    generator, labels = np.random.default_rng(0), ["a", "b", "c", "d"]
    gold, given = ([labels[k] for k in generator.integers(0, 4, 200)] for _ in range(2))
    wanted = {
        "accuracy": metrics.accuracy_score(gold, given),
        "macro-f1": metrics.f1_score(gold, given, average="macro"),
        "matthews": metrics.matthews_corrcoef(gold, given),
    }
    for name, value in wanted.items():
        assert score(Classes(gold, labels, name), list(given)) == pytest.approx(100 * value, rel=1e-12)
    assert count_confusions(gold, given, labels) == metrics.confusion_matrix(gold, given, labels=labels).tolist()


def test_correlations_agree_with_numpy_on_numbers_and_on_ranks() -> None:
    generator = np.random.default_rng(0)
    gold, given = generator.normal(3, 1, 50).round(1), generator.normal(0, 4, 50).round(0)
    assert score(Correlation(gold.tolist()), given.tolist()) == pytest.approx(100 * np.corrcoef(gold, given)[0, 1])
    assert score(Correlation([1, 2, 3, 4], "spearman"), [10.0, 20.0, 20.0, 99.0]) == pytest.approx(94.8683298)
    assert score(Correlation([1, 2, 3]), [5.0, 5.0, 5.0]) == 0.0


def test_phrases_agree_with_seqeval() -> None:
    metrics = pytest.importorskip("seqeval.metrics")
    generator, tags = np.random.default_rng(0), ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    gold, given = ([[tags[k] for k in generator.integers(0, 5, 12)] for _ in range(40)] for _ in range(2))
    assert score(Tags(gold), [" ".join(each) for each in given]) == pytest.approx(100 * metrics.f1_score(gold, given))
    report = metrics.classification_report(gold, given, output_dict=True)
    for kind, found in score_by_kind(gold, given).items():
        assert found["precision"] == pytest.approx(100 * report[kind]["precision"])
        assert found["recall"] == pytest.approx(100 * report[kind]["recall"])
    right = sum(a == b for g, t in zip(given, gold, strict=True) for a, b in zip(g, t, strict=True))
    assert score(Tags(gold, "accuracy"), list(given)) == pytest.approx(100 * right / 480)


def test_spans_are_scored_by_the_best_of_several_answers() -> None:
    gold = [["the old town", "town hall"], [], ["Anna"]]
    judge = Spans(gold)
    assert judge.counts(["town hall!", "", "dog"])[:, :2].tolist() == [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    assert score(judge, ["hall", "x", "anna"]) == pytest.approx(100 * (2 / 3 + 0 + 1) / 3)
    assert score(Spans(gold, "exact"), ["hall", "x", "anna"]) == pytest.approx(100 / 3)


def test_an_interval_of_accuracy_is_that_of_a_mean() -> None:
    gold, given = ["a"] * 100, ["a"] * 80 + ["b"] * 20
    judge = Classes(gold, ["a", "b"])
    estimate = take_sample(judge.score, judge.counts(given)[None], range(100)).estimate
    assert estimate.value == 80
    assert estimate.variance == pytest.approx(100**2 * 0.8 * 0.2 / 99)


@pytest.mark.parametrize(("given", "wanted"), [("a", (73.5, 100.0)), ("b", (0.0, 26.5))])
def test_all_right_and_all_wrong_have_the_exact_interval_of_a_share(given: str, wanted: tuple[float, float]) -> None:
    figure = measure_figure(Classes(["a"] * 12, ["a", "b"]), [given] * 12, "accuracy, %")
    assert figure.interval == pytest.approx(wanted, abs=0.05)  # 0.025^(1/12) = 0.735
    assert measure_figure(Classes(["a"] * 12, ["a", "b"], "macro-f1"), [given] * 12, "macro F1").interval is None


def test_calibration_is_the_gap_between_probability_and_accuracy() -> None:
    found = calibrate([0.95, 0.95, 0.55, 1.0], [True, False, True, True])
    assert [(each.n, each.accuracy) for each in found.bins] == [(1, 1.0), (3, pytest.approx(2 / 3))]
    assert found.ece == pytest.approx((0.45 + 3 * abs(2 / 3 - 2.9 / 3)) / 4)


def test_a_reliability_curve_is_drawn_bin_by_bin() -> None:
    *_, low, high = calibrate([0.5, 0.9, 0.9, 0.9, 0.9], [False, True, True, True, False]).draw()
    assert low.split() == ["0.500", "0.000", "1"]
    assert high.split() == ["0.900", "0.750", "4", "█" * 15]
