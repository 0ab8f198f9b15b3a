"""The page of an evaluation of a task with labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.report.evaluation import check_evaluation_folder, draw_evaluation, render_evaluation
from regard.score.calibration import calibrate
from regard.score.measured import Figure
from regard.tasks.labelled_run import LabelledEvaluation


def made_up(**more: object) -> LabelledEvaluation:
    return LabelledEvaluation((Figure("accuracy, %", 75.0),), "accuracy, %", 4, {"errors": [], **more})


def test_a_page_shows_the_curve_the_confusions_and_the_errors_and_escapes_them() -> None:
    calibration = calibrate([0.9, 0.9, 0.5, 0.5], [True, False, True, True]).to_dict()
    error = {"texts": ("<b>dull</b>",), "true": "bad", "given": "good", "probability": 0.9}
    page = render_evaluation(
        made_up(calibration=calibration, labels=["bad", "good"], confusions=[[1, 7], [0, 2]], errors=[error]), "mine"
    )
    assert page.count('aria-label="Reliability"') == 2  # for a screen and for a phone
    assert "<td>0.900</td><td>0.500</td><td>2</td>" in page
    assert "<td>bad</td><td>1</td><td>7</td>" in page
    assert "<td>good (0.90)</td><td>bad</td><td>&lt;b&gt;dull&lt;/b&gt;</td>" in page
    assert "<b>dull" not in page


def test_wrong_tags_are_told_by_their_words_and_a_mix_by_its_layers() -> None:
    error = {"words": ("Anna", "sat"), "true": ("B-PER", "O"), "given": ("O", "O")}
    page = render_evaluation(made_up(errors=[error], mix=[0.25, 0.75]), "mine")
    assert "<td>Anna/O</td><td>Anna/B-PER</td><td>Anna sat</td>" in page
    assert f"<td>layer 1</td><td>{'█' * 30}</td><td>0.75</td>" in page
    assert "Reliability" not in page


def test_a_page_has_a_picture_of_the_curve_and_is_for_labels_alone(tmp_path: Path) -> None:
    page = draw_evaluation(made_up(calibration=calibrate([0.9], [True]).to_dict()), "mine", tmp_path / "new")
    assert page == tmp_path / "new" / "report.html"
    assert (tmp_path / "new" / "reliability.png").read_bytes().startswith(b"\x89PNG")
    draw_evaluation(made_up(), "mine", tmp_path / "new")  # once more, over a page of its own
    with pytest.raises(RegardError, match=r"for what classifies, rates, tags or answers"):
        check_evaluation_folder(object(), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_page_is_drawn_over_no_file_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(RegardError, match=r"holds files that Regard did not draw \(report.html\).*--force"):
        draw_evaluation(made_up(), "mine", tmp_path)
    assert (tmp_path / "report.html").read_text() == "mine"
    draw_evaluation(made_up(), "mine", tmp_path, force=True)
    assert "<html" in (tmp_path / "report.html").read_text()
