"""Finished runs beside each other: what scores cost, who is better, and how it is told and drawn."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made_up_translators import HOSTILE, SETUP, made_up_translators, pair, translator, watched
from rich.console import Console

from regard import api
from regard.compare.cost_to_score import cost_to_score, first_at
from regard.compare.headline import find_disagreement, write_headline
from regard.compare.result import Comparison, to_json
from regard.compare.result_cache import read_answers, read_view, write_answers, write_view
from regard.errors import RegardError
from regard.lens.views import Span, Views
from regard.report.comparison import mark_misses, render_comparison
from regard.report.comparison_picture import write_overview
from regard.report.comparison_table import ComparisonTable
from regard.report.curves import learning_series, score_range
from regard.report.palette import looks_of
from regard.score.by_length import LengthScore
from regard.score.judges import Bleu, BracketF1
from regard.score.significance import take_sample
from regard.score.translation import bleu, sample_sentences

GOLD = "(S (NP (NN dogs)) (VP (VBP bark)) (. .))"
FLAT = "(S (NP (NN dogs)) (VBP bark) (. .))"


def printed(comparison: Comparison, width: int) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as held:
        console.print(ComparisonTable(comparison))
    return held.get()


def test_a_score_is_reached_at_the_first_evaluation_that_is_as_good() -> None:
    curve = watched(10, 30, 25, 40)
    assert first_at(curve, 30, is_upwards=True) == curve[1]
    assert first_at(curve, 30.1, is_upwards=True) == curve[3]
    assert first_at(curve, 41, is_upwards=True) is None
    assert first_at(watched(2.0, 1.0), 1.5, is_upwards=False) == watched(2.0, 1.0)[1]


def test_what_a_score_costs_is_told_for_every_system_from_the_easiest_on() -> None:
    rows = cost_to_score([watched(10, 20), watched(20, 40, flops=5e12)], [40, 15], is_upwards=True)
    assert [(row.level, row.flops, row.seconds) for row in rows] == [
        (15, (2e12, 5e12), (20.0, 10.0)),
        (40, (None, 1e13), (None, 20.0)),
    ]
    down = cost_to_score([watched(2.0, 1.0)], [1.0, 2.0], is_upwards=False)
    assert [(row.level, row.flops) for row in down] == [(2.0, (1e12,)), (1.0, (2e12,))]


@pytest.mark.parametrize("curves", [[], [()], [watched(0.0, 0.0), watched(0.0)]])
def test_where_nothing_was_reached_no_score_has_a_cost(curves: Any) -> None:
    assert cost_to_score(curves, is_upwards=True) == ()


def test_the_headline_tells_the_lead_and_what_is_cheaper() -> None:
    made = made_up_translators()
    ranked = [c for c in made.ranked if c.name != HOSTILE]
    costs = cost_to_score([c.curve for c in ranked], [5.0], is_upwards=True)
    told = write_headline(ranked, ranked, [pair("transformer", "plain", 23.0)], costs, made.setup)
    assert told == (
        "transformer is best at BLEU 35.0, 23.0 ahead of plain (95% interval 22.0 to 24.0).",
        # 5 is reached by transformer at 1 x 2e12, by plain at 2 x 1e12: as much
    )
    costs = cost_to_score([c.curve for c in ranked], [8.0], is_upwards=True)  # transformer at 4e12, plain at 2e12
    told = write_headline(ranked, ranked, [pair("transformer", "plain", 23.0)], costs, made.setup)
    assert told[1] == (
        "To BLEU 8 on the validation data, plain needs 2.0e12 training FLOPs, transformer 2.0 times as many."
    )


def test_a_lead_that_may_be_luck_is_not_called_one() -> None:
    made = made_up_translators()
    assert made.headline[0] == (
        f"transformer is best at BLEU 35.0, but its lead of 2.0 over {HOSTILE} is not settled (p = 0.200)."
    )
    a, b, c = translator("a", 3.0), translator("b", 2.0), translator("c", 1.0)
    pairs = [pair("a", "b", 1.0), pair("b", "c", 1.0, p=0.3), pair("a", "c", 2.0)]
    level = write_headline([a, b], [a, b], [pair("a", "b", 0.0, p=1.0)], (), SETUP)
    assert level == ("a and b are level at BLEU 3.0.",)
    same = [pair("a", "b", 0.0, p=1.0), pair("b", "c", 0.0, p=1.0), pair("a", "c", 0.0, p=1.0)]
    assert write_headline([a, b, c], [a, b, c], same, (), SETUP) == ("a, b and c are level at BLEU 3.0.",)
    assert write_headline([a, b, c], [a, b, c], pairs, (), SETUP)[1] == ("The order of b and c is not settled.")


def test_where_validation_and_test_disagree_it_is_said() -> None:
    made = made_up_translators()
    assert find_disagreement(made) == ""
    plain, other, best = made.contenders
    changed = dataclasses.replace(made, contenders=(plain, dataclasses.replace(other, valid=37.5), best))
    told = f"on the validation data {HOSTILE} (37.50) is ahead of transformer (36.00), on the test data behind it."
    assert find_disagreement(changed) == f"Validation and test disagree: {told}"
    assert "Validation and test disagree" in render_comparison(changed)
    assert "Validation and test disagree" in printed(changed, 200)


def test_trees_are_judged_by_brackets_that_add_up() -> None:
    """Without the VP one of three brackets is missed: by hand 2 · 2 / (3 + 2) = 80%, and 2 · 5 / (6 + 5) over both."""
    judge = BracketF1([GOLD, GOLD])
    counts = judge.counts([FLAT, GOLD])
    assert counts.tolist() == [[2, 3, 2], [3, 3, 3]]
    assert judge.score(counts[0]) == 80.0
    assert abs(judge.score(counts.sum(axis=0)) - 1000 / 11) < 1e-12
    assert judge.score(np.zeros(3, dtype=np.int64)) == 0.0
    assert judge.other_scores([[FLAT, GOLD]]) == {}


def test_translations_are_judged_as_sacrebleu_does() -> None:
    references, outputs = [("the cat sat on a mat",), ("it is late",)], ["the cat sat on the mat", "it was late now"]
    judge = Bleu(references)
    expected = bleu(outputs, references)
    assert abs(judge.score(judge.counts(outputs).sum(axis=0)) - expected.score) < 1e-10
    assert judge.signature == expected.signature
    flat = [given[0] for given in references]
    one, other = (take_sample(judge.score, judge.counts(texts)[None], range(2)) for texts in (flat, outputs))
    assert one - other == sample_sentences(flat, flat) - sample_sentences(outputs, flat)


def test_captions_are_judged_without_regard_to_case() -> None:
    judge = Bleu([("A red square top left", "Top left is red")], "BLEU-4", is_lowercase=True)
    assert abs(judge.score(judge.counts(["a RED square top left"])[0]) - 100.0) < 1e-10
    assert "case:lc" in judge.signature
    assert "nrefs:2" in judge.signature


def test_answers_are_kept_for_the_same_weights_data_and_decoding_only(tmp_path: Path) -> None:
    made_by, lines = {"weights": "a", "beam": 5}, ["ein Hund", "", "zwei\u2028Zeilen\x0b"]
    assert read_answers(tmp_path, "lstm", made_by) is None
    write_answers(tmp_path, "lstm", made_by, lines)
    assert read_answers(tmp_path, "lstm", made_by) == lines
    assert read_answers(tmp_path, "lstm", made_by | {"beam": 1}) is None
    (tmp_path / "outputs" / "lstm.txt").write_text("ein Hund\n")
    assert read_answers(tmp_path, "lstm", made_by) is None
    blocks = [{"nats": 1.5, "tokens": 2.0}, {"nats": 0.1, "tokens": 1.0}]
    write_answers(tmp_path, "blocks", made_by, blocks)
    assert read_answers(tmp_path, "blocks", made_by) == blocks
    note = tmp_path / "outputs" / "blocks.json"
    note.write_text(note.read_text().replace('"are_text": false', '"are_text": true'))
    assert read_answers(tmp_path, "blocks", made_by) is None


def test_views_are_kept_for_the_same_run_only(tmp_path: Path) -> None:
    views = Views(sample="goes on", surprise=(Span(start=0, end=2, bits=1.5),))
    write_view(tmp_path, "lstm", {"weights": "a"}, views)
    assert read_view(Views, tmp_path, "lstm", {"weights": "a"}) == views
    assert read_view(Views, tmp_path, "lstm", {"weights": "b"}) is None
    assert read_view(Views, tmp_path, "rnn", {"weights": "a"}) is None


def test_the_table_gives_up_columns_rather_than_numbers() -> None:
    wide, narrow = printed(made_up_translators(), 170), printed(made_up_translators(), 84)
    for word in ("ahead of", "chrF", "valid BLEU", "FLOPs", "time", "params", "tokens", "━●━", "-21.00, p = 0.001"):
        assert word in wide, word
    assert "-2.00, p = 0.200 ?" in narrow
    assert "…" not in narrow
    assert "tokens" not in narrow
    assert "longer than one of the models reads: 3." in narrow.replace("\n", " ")
    assert "4.0e12, 20 s" in wide
    assert "20 s" not in printed(made_up_translators(), 60)  # so narrow a terminal has room for FLOPs alone


def test_any_number_of_systems_fits_below_each_other() -> None:
    text = printed(made_up_translators(14), 84)
    costs = text[text.index("to reach") :]
    assert "…" not in costs
    assert all(f"further-system-{i} " in costs for i in range(14))


def test_runs_that_were_not_watched_have_no_curve_and_no_column() -> None:
    made = made_up_translators()
    bare = [
        dataclasses.replace(c, curve=(), valid=None, score=dataclasses.replace(c.score, others={}))
        for c in made.contenders
        if c.score is not None
    ]
    made = dataclasses.replace(made, contenders=tuple(bare), costs=())
    text, page = printed(made, 170), render_comparison(made)
    assert "valid" not in text.replace("validation", "")
    assert "chrF" not in text
    assert "to reach" not in text
    assert "What a score costs" not in page
    assert 'class="chart"' not in page


def test_a_curve_of_losses_is_drawn_downwards() -> None:
    up, down = made_up_translators(), made_up_translators(watched="bits per byte", is_watched_upwards=False)
    series = learning_series(up, "flops", looks_of(c.name for c in up.contenders))
    assert score_range(up.setup.watched_measure, series)[1] > 36
    page = render_comparison(down)
    assert "Bits per byte on the validation data, lower is better" in page


def test_the_page_escapes_all_that_comes_from_outside() -> None:
    page = render_comparison(made_up_translators())
    assert HOSTILE not in page
    assert page.count("<script") == 2
    assert "A dog &amp; &lt;script&gt;" in page
    assert "(nothing)" in page  # what the third system says
    assert 'Ein Hund <span class="miss">rennt</span>.' in page


def by_length(*scores: float) -> tuple[LengthScore, ...]:
    return tuple(
        LengthScore(shortest=10 * i + 1, longest=10 * i + 10, n_items=25, n_words=10.0 * i + 5, score=score,
                    low=score - 2, high=score + 2)
        for i, score in enumerate(scores)
    )  # fmt: skip


def with_lengths() -> Comparison:
    found = made_up_translators()
    lengths = {"plain": by_length(20, 9, 2), HOSTILE: by_length(34, 33, 31), "transformer": by_length(40, 35, 20)}
    return dataclasses.replace(
        found, contenders=tuple(dataclasses.replace(c, by_length=lengths[c.name]) for c in found.contenders)
    )


def test_the_page_shows_scores_by_the_length_of_the_source() -> None:
    page = render_comparison(with_lengths())
    assert "Who holds up on long sentences?" in page
    lengths = page.split('<section id="lengths">')[1].split("</section>")[0]
    assert "<th>11–20 words</th>" in lengths
    assert "<td>transformer</td><td>40.00 (38.0–42.0)</td><td>35.00 (33.0–37.0)</td>" in lengths
    assert "<td>sentences</td><td>25</td>" in lengths
    assert HOSTILE not in page
    assert "Who holds up on long sentences?" not in render_comparison(made_up_translators())


def test_scores_by_length_are_written_and_comparisons_without_them_are_read() -> None:
    found = with_lengths()
    plain = json.loads(to_json(found))
    assert Comparison.from_dict(plain) == found
    for contender in plain["contenders"]:
        del contender["by_length"]
    assert Comparison.from_dict(plain) == made_up_translators()


def test_words_that_no_reference_has_are_mark_misses() -> None:
    assert mark_misses("Der Hund", ["der Mann", "ein Hund"]) == "Der Hund"
    assert mark_misses("x<y", ["y"]) == '<span class="miss">x</span>&lt;y'


def test_the_picture_has_room_for_many(tmp_path: Path) -> None:
    write_overview(made_up_translators(12), tmp_path / "overview.png")
    assert (tmp_path / "overview.png").read_bytes().startswith(b"\x89PNG")


def test_a_comparison_is_read_back_as_it_was_written_and_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "regard.report.comparison.write_overview", lambda shown, path: path.write_text(shown.headline[0])
    )
    made = made_up_translators()
    (tmp_path / "compare.json").write_text(to_json(made))
    assert Comparison.load(tmp_path) == made
    assert api.report(tmp_path) == tmp_path / "report.html"
    assert (tmp_path / "report.html").read_text().startswith(render_comparison(made))
    assert (tmp_path / "overview.png").read_text() == made.headline[0]
    (tmp_path / "compare.json").write_text(json.dumps({"kind": "runs", "schema": 99}))
    with pytest.raises(RegardError, match="has schema 99; this version of Regard reads 1 to 4"):
        api.report(tmp_path)


def test_a_comparison_is_a_table_in_a_notebook_and_in_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_up_translators()
    html = made._repr_html_()
    assert HOSTILE not in html
    assert "<td>transformer</td><td>35.00</td><td>33.0–37.0</td>" in html
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    first = made.to_frame()[0]
    assert (first["model"], first["BLEU"], first["low"], first["chrF"], first["flops"]) == (
        "transformer", 35.0, 33.0, 55.0, 3e12,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(RegardError, match="needs pandas"):
        made.to_frame()


def test_a_path_without_a_comparison_says_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with pytest.raises(
        RegardError, match=r"There is no folder '.*/run'. Did you mean '.*/runs'\? Give one that `regard"
    ):
        api.report(tmp_path / "run")
    (tmp_path / "runs" / "config.yaml").write_text("")
    with pytest.raises(RegardError, match=r"it is the folder of one run.* Its scores: regard eval"):
        api.report(tmp_path / "runs")
    (tmp_path / "plan.yaml").write_text("")
    with pytest.raises(RegardError, match=r"since it was interrupted. Run the same `regard compare` again"):
        api.report(tmp_path)
