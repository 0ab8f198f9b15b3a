from __future__ import annotations

import numpy as np
import pytest

from regard.lens import cells


def test_features_on_a_line_worked_by_hand() -> None:
    text = 'ab "c"\nD4.'
    assert cells.position_in_line(text).tolist() == [1, 2, 3, 4, 5, 6, 0, 1, 2, 3]
    assert cells.inside_quotes(text).tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    assert cells.position_in_word(text).tolist() == [1, 2, 0, 1, 2, 3, 0, 1, 2, 3]
    assert cells.position_in_sentence(text).tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    assert cells.capitals(text).tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 0, 0]
    assert cells.digits(text).tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 1, 0]
    assert cells.indentation("a\n  b\n").tolist() == [0, 0, 2, 2, 2, 2]


def test_brackets_are_closed_by_a_blank_line() -> None:
    assert cells.bracket_depth("((a\n\nb").tolist() == [1, 2, 2, 2, 0, 0]


@pytest.mark.parametrize("name", list(cells.FEATURES))
@pytest.mark.parametrize("text", ["", "a", "\n", "x(\n\n'q' \"z\" 9"])
def test_a_feature_has_one_value_a_character(name: str, text: str) -> None:
    assert cells.FEATURES[name](text).shape == (len(text),)


def test_correlations_are_pearsons_and_zero_for_a_unit_that_rests() -> None:
    rng = np.random.default_rng(0)
    feature = rng.normal(size=50)
    units = np.stack([2 * feature + 1, -feature, np.ones(50), rng.normal(size=50)], axis=1)
    found = cells.correlations(units, feature)
    np.testing.assert_allclose(found[:3], [1.0, -1.0, 0.0], rtol=0, atol=1e-12)
    assert found[3] == pytest.approx(np.corrcoef(units[:, 3], feature)[0, 1], abs=1e-12)


def test_the_best_unit_is_picked_on_one_half_and_scored_on_the_other() -> None:
    # Unit 0 follows the feature on the first half only, unit 1 a little worse but throughout.
    rng = np.random.default_rng(1)
    feature = rng.normal(size=200)
    lucky = np.concatenate([feature[:100], rng.normal(size=100)])
    steady = feature + 0.3 * rng.normal(size=200)
    picked = cells.best_unit(np.stack([lucky, steady], axis=1), feature)
    assert picked is not None
    unit, score = picked
    assert unit == 0
    assert abs(score) < 0.3


def test_a_feature_that_never_changes_has_no_unit() -> None:
    assert cells.best_unit(np.random.default_rng(0).normal(size=(20, 3)), np.zeros(20)) is None
