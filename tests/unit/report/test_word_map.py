from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.errors import RegardError
from regard.models.word_vectors import WordVectors
from regard.report.word_map import MappedWord, place_labels, project, write_word_map

VECTORS = WordVectors(["<b>bold", "$x$", "cat", "dog"], np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32))


def test_pca_keeps_distances_of_what_lies_in_a_plane() -> None:
    angles = np.array([0.1, 0.5, 1.2, 2.0, 2.9])
    plane = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 2)))[0]
    rows = (np.stack([np.cos(angles), np.sin(angles)], axis=1) @ plane.T).astype(np.float32)
    points, kept = project(rows * 7, "pca", seed=0)  # lengths do not matter
    assert kept == pytest.approx(1.0, abs=1e-6)
    for i in range(5):
        for j in range(5):
            assert np.linalg.norm(points[i] - points[j]) == pytest.approx(np.linalg.norm(rows[i] - rows[j]), abs=1e-5)


def test_names_at_one_place_do_not_lie_on_each_other() -> None:
    words = [
        MappedWord("same", 0, 0, None, None),
        MappedWord("place", 0, 0, None, None),
        MappedWord("far", 9, 9, None, None),
    ]
    first, second, _ = place_labels(words)
    assert abs(first.text_x - second.text_x) > 30 or abs(first.text_y - second.text_y) >= 12


def test_words_are_escaped_on_the_page_and_no_formula_in_the_picture(tmp_path: Path) -> None:
    page = write_word_map(VECTORS, "a <file>", [], n=3, by="pca", seed=0, out=tmp_path / "map").read_text()
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold" in page
    assert "a &lt;file&gt;" in page
    assert (tmp_path / "map" / "figure.png").stat().st_size > 1000


def test_a_way_that_is_not_there_and_too_few_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="--by must be one of pca, umap, not 'tsne'"):
        write_word_map(VECTORS, "f", [], n=3, by="tsne", seed=0, out=tmp_path)
    with pytest.raises(RegardError, match="three words at least, and there are 1: raise --n"):
        write_word_map(VECTORS, "f", ["cat"], n=0, by="pca", seed=0, out=tmp_path)
