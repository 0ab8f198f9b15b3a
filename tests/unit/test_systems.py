"""Finished runs beside each other: what scores cost, who is better, and how it is told and drawn."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_systems import HOSTILE, duel, made_up_systems, system, watched
from rich.console import Console

from regard.comparison.result import to_json
from regard.comparison.runner import draw_again
from regard.errors import RegardError
from regard.score.bootstrap import bootstrap_of, paired_bootstrap
from regard.score.translation import bleu
from regard.systems.curves import curves_by, score_range
from regard.systems.judge import BleuJudge, BracketJudge, judge_of
from regard.systems.keep import keep_outputs, kept_outputs
from regard.systems.page import marked, render_systems
from regard.systems.picture import write_overview
from regard.systems.reach import first_at, reached
from regard.systems.result import LOSS, SystemsComparison, holds_systems
from regard.systems.table import SystemsTable
from regard.systems.words import headline

GOLD = "(S (NP (NN dogs)) (VP (VBP bark)) (. .))"
FLAT = "(S (NP (NN dogs)) (VBP bark) (. .))"


def printed(comparison: SystemsComparison, width: int) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as held:
        console.print(SystemsTable(comparison))
    return held.get()


def test_a_score_is_reached_at_the_first_evaluation_that_is_as_good() -> None:
    curve = watched(10, 30, 25, 40)
    assert first_at(curve, 30, is_upwards=True) == curve[1]
    assert first_at(curve, 30.1, is_upwards=True) == curve[3]
    assert first_at(curve, 41, is_upwards=True) is None
    assert first_at(watched(2.0, 1.0), 1.5, is_upwards=False) == watched(2.0, 1.0)[1]


def test_what_a_score_costs_is_told_for_every_system_from_the_easiest_on() -> None:
    rows = reached([watched(10, 20), watched(20, 40, flops=5e12)], [40, 15], is_upwards=True)
    assert [(row.level, row.flops, row.seconds) for row in rows] == [
        (15, (2e12, 5e12), (20.0, 10.0)),
        (40, (None, 1e13), (None, 20.0)),
    ]
    down = reached([watched(2.0, 1.0)], [1.0, 2.0], is_upwards=False)
    assert [(row.level, row.flops) for row in down] == [(2.0, (1e12,)), (1.0, (2e12,))]


@pytest.mark.parametrize("curves", [[], [()], [watched(0.0, 0.0), watched(0.0)]])
def test_where_nothing_was_reached_no_score_has_a_cost(curves: Any) -> None:
    assert reached(curves, is_upwards=True) == ()


def test_the_headline_tells_the_lead_and_what_is_cheaper() -> None:
    made = made_up_systems()
    ranked = [s for s in made.ranked if s.name != HOSTILE]
    found = reached([s.curve for s in ranked], [5.0], is_upwards=True)
    told = headline(ranked, [duel("transformer", "plain", 23.0)], made.setup, found, ranked)
    assert told == (
        "transformer is best at BLEU 35.0, 23.0 ahead of plain (95% interval 22.0 to 24.0).",
        # 5 is reached by transformer at 1 x 2e12, by plain at 2 x 1e12: as much
    )
    found = reached([s.curve for s in ranked], [8.0], is_upwards=True)  # transformer at 4e12, plain at 2e12
    told = headline(ranked, [duel("transformer", "plain", 23.0)], made.setup, found, ranked)
    assert told[1] == (
        "To BLEU 8 on the validation data, plain needs 2.0e12 training FLOPs, transformer 2.0 times as many."
    )


def test_a_lead_that_may_be_luck_is_not_called_one() -> None:
    made = made_up_systems()
    assert made.headline[0] == (
        f"transformer is best at BLEU 35.0, but its lead of 2.0 over {HOSTILE} is not settled (p = 0.200)."
    )
    a, b, c = system("a", 3.0), system("b", 2.0), system("c", 1.0)
    duels = [duel("a", "b", 1.0), duel("b", "c", 1.0, p=0.3), duel("a", "c", 2.0)]
    assert headline([a, b], [duel("a", "b", 0.0, p=1.0)], made.setup, (), [a, b]) == ("a and b are level at BLEU 3.0.",)
    assert headline([a, b, c], duels, made.setup, (), [a, b, c])[1] == (
        "Not told apart by these 100 test items: b and c."
    )


def test_trees_are_judged_by_brackets_that_add_up() -> None:
    """Without the VP one of three brackets is missed: by hand 2 · 2 / (3 + 2) = 80%, and 2 · 5 / (6 + 5) over both."""
    judge = BracketJudge([GOLD, GOLD])
    counts = judge.counts([FLAT, GOLD])
    assert counts.tolist() == [[2, 3, 2], [3, 3, 3]]
    assert judge.score(counts[0]) == 80.0
    assert abs(judge.score(counts.sum(axis=0)) - 1000 / 11) < 1e-12
    assert judge.score(np.zeros(3, dtype=np.int64)) == 0.0
    assert judge.chrf([FLAT, GOLD]) is None


def test_translations_are_judged_as_sacrebleu_does() -> None:
    references, outputs = [("the cat sat on a mat",), ("it is late",)], ["the cat sat on the mat", "it was late now"]
    judge = judge_of("translation", references, has_tags=True)
    expected = bleu(outputs, references)
    assert abs(judge.score(judge.counts(outputs).sum(axis=0)) - expected.score) < 1e-10
    assert judge.signature == expected.signature
    flat = [given[0] for given in references]
    direct = paired_bootstrap(outputs, flat, flat)
    ours = bootstrap_of(
        judge.counts(outputs), judge.counts(flat), judge.score, metric="bleu", signature=judge.signature
    )
    assert ours == direct


def test_captions_are_judged_without_regard_to_case() -> None:
    references = [("A red square top left", "Top left is red")]
    judge = judge_of("captions", references, has_tags=True)
    assert isinstance(judge, BleuJudge)
    assert judge.name == "BLEU-4"
    assert abs(judge.score(judge.counts(["a RED square top left"])[0]) - 100.0) < 1e-10
    assert "case:lc" in judge.signature
    assert "nrefs:2" in judge.signature


def test_outputs_are_kept_for_the_same_weights_data_and_decoding_only(tmp_path: Path) -> None:
    made_by, lines = {"weights": "a", "beam": 5}, ["ein Hund", "", "zwei\u2028Zeilen\x0b"]
    assert kept_outputs(tmp_path, "lstm", made_by) is None
    keep_outputs(tmp_path, "lstm", made_by, lines)
    assert kept_outputs(tmp_path, "lstm", made_by) == lines
    assert kept_outputs(tmp_path, "lstm", made_by | {"beam": 1}) is None
    (tmp_path / "outputs" / "lstm.txt").write_text("ein Hund\n")
    assert kept_outputs(tmp_path, "lstm", made_by) is None


def test_the_table_gives_up_columns_rather_than_numbers() -> None:
    wide, narrow = printed(made_up_systems(), 170), printed(made_up_systems(), 84)
    for word in ("vs best", "chrF", "valid BLEU", "FLOPs", "time", "params", "tokens", "━●━", "-21.00, p = 0.001"):
        assert word in wide, word
    assert "-2.00, p = 0.200 ?" in narrow
    assert "…" not in narrow
    assert "tokens" not in narrow
    assert "longer than one of the models reads: 3." in narrow.replace("\n", " ")
    assert "4.0e12, 20 s" in wide
    assert "20 s" not in printed(made_up_systems(), 60)  # so narrow a terminal has room for FLOPs alone


def test_a_chain_of_neighbours_that_are_not_told_apart_is_one_list() -> None:
    made = made_up_systems(4)
    unsettled = [dataclasses.replace(d, is_clear="further-system-0" in (d.better, d.worse)) for d in made.duels]
    first, second, *_ = headline(made.ranked, unsettled, made.setup, (), made.systems)
    assert "is not settled" in first
    assert second.endswith(
        f"test items, each from the next: {HOSTILE} and plain; further-system-1, further-system-2 and further-system-3."
    )


def test_any_number_of_systems_fits_below_each_other() -> None:
    text = printed(made_up_systems(14), 84)
    reached = text[text.index("to reach") :]
    assert "…" not in reached
    assert all(f"further-system-{i} " in reached for i in range(14))


def test_runs_that_were_not_watched_have_no_curve_and_no_column() -> None:
    made = made_up_systems()
    bare = [dataclasses.replace(s, curve=(), valid=None, chrf=None) for s in made.systems]
    made = dataclasses.replace(made, systems=tuple(bare), reached=())
    text, page = printed(made, 170), render_systems(made)
    assert "valid" not in text.replace("validation", "")
    assert "chrF" not in text
    assert "to reach" not in text
    assert "What a score costs" not in page
    assert 'class="chart"' not in page


def test_a_curve_of_losses_is_drawn_downwards() -> None:
    up = made_up_systems()
    down = made_up_systems(watched=LOSS)
    assert score_range(up, curves_by(up, "flops"))[1] > 36
    assert not down.setup.is_watched_upwards
    assert "lower is better" in render_systems(down)
    assert "bits/byte" in render_systems(down)


def test_the_page_escapes_all_that_comes_from_outside() -> None:
    page = render_systems(made_up_systems())
    assert HOSTILE not in page
    assert page.count("<script") == 2
    assert "A dog &amp; &lt;script&gt;" in page
    assert "(nothing)" in page  # what the third system says
    assert 'Ein Hund <span class="miss">rennt</span>.' in page


def test_words_that_no_reference_has_are_marked() -> None:
    assert marked("Der Hund", ["der Mann", "ein Hund"]) == "Der Hund"
    assert marked("x<y", ["y"]) == '<span class="miss">x</span>&lt;y'


def test_the_picture_has_room_for_many(tmp_path: Path) -> None:
    write_overview(made_up_systems(12), tmp_path / "overview.png")
    assert (tmp_path / "overview.png").read_bytes().startswith(b"\x89PNG")


def test_a_comparison_is_read_back_as_it_was_written_and_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.systems.picture.write_overview", lambda shown, path: path.write_text(shown.headline[0]))
    made = made_up_systems()
    (tmp_path / "compare.json").write_bytes(to_json(made))
    assert holds_systems(tmp_path)
    assert SystemsComparison.load(tmp_path) == made
    assert draw_again(tmp_path) == tmp_path / "report.html"
    assert (tmp_path / "report.html").read_text() == render_systems(made)
    assert (tmp_path / "overview.png").read_text() == made.headline[0]
    (tmp_path / "compare.json").write_text(json.dumps({"kind": "runs", "schema": 99}))
    with pytest.raises(RegardError, match="has schema 99; this version of Regard reads 2"):
        draw_again(tmp_path)
