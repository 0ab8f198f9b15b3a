from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
from made_up_comparison import made_up_comparison

import regard
from regard.compare.result import Comparison, to_json
from regard.errors import RegardError
from regard.report.comparison import render_comparison
from regard.score.significance import correct_by_holm


def test_a_comparison_survives_being_written_and_read(tmp_path: Path) -> None:
    comparison = made_up_comparison(("ngram", "bag", "lstm", "transformer"), failing=("bag",))
    (tmp_path / "compare.json").write_text(to_json(comparison))
    assert Comparison.load(tmp_path) == comparison


def test_the_file_is_json_that_any_reader_accepts() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(to_json(made_up_comparison(failing=("rnn",))), parse_constant=refuse)


def test_the_ranking_is_by_bits_per_byte_and_leaves_out_what_failed() -> None:
    comparison = made_up_comparison(("window", "bag", "transformer", "lstm"), failing=("bag",))
    assert comparison.ranking == ("transformer", "lstm", "window")
    assert [c.name for c in comparison.failed] == ["bag"]
    assert [(n.better, n.worse) for n in comparison.neighbours] == [("transformer", "lstm"), ("lstm", "window")]


def test_a_lossy_tokenizer_is_ranked_below_all_others_and_tested_against_none() -> None:
    comparison = made_up_comparison(("transformer", "lstm", "window"), lossy={"transformer": "word 200"})
    assert comparison.ranking == ("lstm", "window", "transformer")
    assert [(n.better, n.worse) for n in comparison.pairs] == [("lstm", "window")]


def test_unequal_lossy_tokenizers_are_never_ranked_together() -> None:
    lossy = {"lstm": "word 20,000", "window": "word 200", "transformer": "word 20,000", "rnn": "word 200"}
    comparison = made_up_comparison(("window", "rnn", "ngram", "lstm", "transformer"), lossy=lossy)
    assert [[c.name for c in group] for group in comparison.groups] == [
        ["ngram"], ["transformer", "lstm"], ["rnn", "window"],
    ]  # fmt: skip
    assert [(p.better, p.worse) for p in comparison.pairs] == [("transformer", "lstm"), ("rnn", "window")]


def test_every_two_contenders_are_tested_with_holms_correction() -> None:
    comparison = made_up_comparison(("ngram", "lstm", "transformer", "gru"))
    assert len(comparison.pairs) == 6
    assert [p.p_holm for p in comparison.pairs] == correct_by_holm([p.p for p in comparison.pairs])
    for pair in comparison.pairs:
        assert pair.is_settled == (pair.p_holm < 0.05)
        worse = comparison.contender(pair.worse).score
        assert worse is not None
        assert pair.relative == pytest.approx(pair.difference / worse.value)
    assert comparison.power.startswith("With 3 seeds this comparison detects differences of 0.")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"n_documents": 1}, "one text was tested: another may say otherwise"),
        ({"n_seeds": 1}, "one seed: other seeds were not tried"),
        ({"n_seeds": 2}, "2 seeds: 3 are needed to know how much they differ"),
    ],
)
def test_one_text_or_few_seeds_settle_nothing(changes: dict[str, int], why: str) -> None:
    pairs = made_up_comparison(**changes).pairs  # type: ignore[arg-type]
    assert not any(pair.is_settled for pair in pairs)
    assert any(pair.why == why for pair in pairs)


def test_a_comparison_of_schema_3_is_read_with_a_warning() -> None:
    """Its pairs stay as they were; which documents there were is not known."""
    given = json.loads(to_json(made_up_comparison(("transformer", "lstm", "window", "rnn"))))
    given["schema"] = 3
    given["setup"] |= {"needs_seeds": True}
    del given["setup"]["n_documents"], given["warnings"], given["power"]
    for contender, is_comparable in zip(given["contenders"], (True, True, False, False), strict=True):
        del contender["lossy"], contender["baseline"]
        contender["is_comparable"] = is_comparable
        contender["views"]["positions"] = [{"n_bytes_before": 1.0, "bits_per_byte": 2.0}]
    given["contenders"][2]["about"] = "window, 64 wide, word 200"
    old = {"difference": 0.1, "low": 0.05, "high": 0.15, "p": 0.001, "wins": 0.99, "is_clear": True}
    names = (("transformer", "lstm"), ("rnn", "window"))
    given["pairs"] = [{"better": a, "worse": b, **old} for a, b in names]
    read = Comparison.from_dict(given)
    assert [(p.better, p.is_settled, p.p_holm, p.n_effective) for p in read.pairs] == [
        ("transformer", True, 0.001, None)
    ]
    assert [c.lossy for c in read.contenders] == ["", "", "word 200", "bpe 4,096"]
    assert "An earlier version tested this" in read.warnings[0]
    assert render_comparison(read)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not a comparison: "),
        ("[]", "it holds no mapping"),
        ('{"schema": 99}', r"has schema 99; this version of Regard reads 1 to 4\. Run the comparison again"),
        ('{"schema": 4, "headline": []}', r"This result is damaged: Comparison lacks setup, contenders"),
        ('{"schema": 3, "headline": []}', r"This result is damaged: Comparison lacks "),
        ('{"schema": 1, "headline": []}', r"This result is damaged: Comparison lacks "),
    ],
)
def test_a_file_that_is_no_comparison_says_what_is_wrong(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "compare.json").write_text(content)
    with pytest.raises(RegardError, match=message):
        Comparison.load(tmp_path)


def test_a_score_says_what_bits_per_byte_are_called_now() -> None:
    score = made_up_comparison().ranked[0].score
    with pytest.raises(AttributeError, match="'Score' has no 'bits_per_byte'; it is called 'value' now"):
        score.bits_per_byte  # type: ignore[union-attr]  # noqa: B018


def test_a_folder_without_a_comparison_says_so(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"There is no comparison at .*compare\.json is missing"):
        Comparison.load(tmp_path)


def test_the_function_keeps_its_name_though_a_package_has_it_too() -> None:
    import_module("regard.compare.result")
    assert regard.compare is regard.api.compare
    assert regard.compare_runs is regard.compare
