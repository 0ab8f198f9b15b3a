from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
from made_up_comparison import made_up_comparison

import regard
from regard.compare.result import Comparison, to_json
from regard.errors import RegardError


def test_a_comparison_survives_being_written_and_read(tmp_path: Path) -> None:
    comparison = made_up_comparison(("ngram", "bag", "lstm", "transformer"), failing=("bag",))
    (tmp_path / "compare.json").write_bytes(to_json(comparison))
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
    comparison = made_up_comparison(("transformer", "lstm", "window"), lossy=("transformer",))
    assert comparison.ranking == ("lstm", "window", "transformer")
    assert [(n.better, n.worse) for n in comparison.neighbours] == [("lstm", "window")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not a comparison: "),
        ("[]", "it holds no mapping"),
        ('{"schema": 99}', r"has schema 99; this version of Regard reads 1 to 3\. Run the comparison again"),
        ('{"schema": 3, "headline": []}', r"This result is damaged: Comparison lacks setup, contenders"),
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
