from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from regard.count import cooccurrence, lsa
from regard.count.cooccurrence import Cooccurrence, count_cooccurrences


def dense(found: Cooccurrence) -> np.ndarray:
    matrix = np.zeros((found.n_words, found.n_words))
    matrix[found.rows, found.columns] = found.values
    return matrix


@pytest.mark.parametrize("is_harmonic", [False, True])
@pytest.mark.parametrize("has_lines", [False, True])
def test_counts_are_those_of_two_loops(is_harmonic: bool, has_lines: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooccurrence, "PIECE", 17)  # so that pairs reach over pieces
    random = np.random.default_rng(0)
    ids, lines = random.integers(0, 6, 100), np.arange(100) // 7
    wanted: Counter[tuple[int, int]] = Counter()
    for t in range(100):
        for s in range(max(0, t - 3), min(100, t + 4)):
            if s != t and (not has_lines or lines[s] == lines[t]):
                wanted[int(ids[t]), int(ids[s])] += 1 / abs(s - t) if is_harmonic else 1  # type: ignore[assignment]
    found = count_cooccurrences(ids, 6, 3, is_harmonic=is_harmonic, segments=lines if has_lines else None)
    for (i, j), value in wanted.items():
        assert dense(found)[i, j] == pytest.approx(value, rel=1e-12)
    assert len(found.values) == len(wanted)
    assert (dense(found) == dense(found).T).all()


def test_mutual_information_is_that_of_the_formula() -> None:
    x = np.array([[0.0, 4, 1], [4, 0, 0], [1, 0, 2]])
    rows, columns = np.nonzero(x)
    found = dense(lsa.positive_mutual_information(Cooccurrence(rows, columns, x[rows, columns], 3), 0.75, 2.0))
    c = x.sum(axis=0) ** 0.75 / (x.sum(axis=0) ** 0.75).sum()
    with np.errstate(divide="ignore"):
        wanted = np.log(x / x.sum() / (x.sum(axis=1) / x.sum())[:, None] / c) - np.log(2.0)
    np.testing.assert_allclose(found, np.maximum(0, wanted), rtol=0, atol=1e-12)


def test_iteration_finds_the_singular_vectors_of_a_direct_svd(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    left, right = np.linalg.qr(random.normal(size=(80, 80)))[0], np.linalg.qr(random.normal(size=(80, 80)))[0]
    matrix = left @ np.diag(0.7 ** np.arange(80)) @ right
    rows, columns = (each.flatten() for each in np.indices((80, 80)))
    given = Cooccurrence(rows, columns, matrix.flatten(), 80)
    direct, _ = lsa.truncated_svd(given, 5)
    monkeypatch.setattr(lsa, "DENSE", 10)
    found, values = lsa.truncated_svd(given, 5)
    assert values.tolist() == pytest.approx((0.7 ** np.arange(5)).tolist(), abs=1e-12)
    assert ((found * direct).sum(dim=0).abs() - 1).abs().max() < 1e-10


def test_a_matrix_of_lower_rank_than_asked_for_is_filled_up_with_zeros() -> None:
    given = Cooccurrence(np.array([0, 1]), np.array([1, 0]), np.array([2.0, 2.0]), 4)
    found = lsa.reduce_by_svd(given, rank=6, power=1.0)
    assert found.shape == (4, 6)
    assert torch.isfinite(found).all()
    assert not found[:, 2:].any()
    torch.testing.assert_close(found[:2, :2].norm(dim=1), torch.full((2,), 2.0, dtype=torch.float64))
