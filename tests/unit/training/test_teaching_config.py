"""How a model that reads pairs is taught: what may be set, and what changes nothing."""

import pytest

from regard.errors import RegardError
from regard.training.teaching_config import TeachingConfig


def test_every_setting_says_what_it_means() -> None:
    assert all(line.doc for line in TeachingConfig.help())


def test_it_round_trips_through_plain_values() -> None:
    config = TeachingConfig(mode="scheduled", decay="linear", n_half=7, p_lowest=0.25, smoothing=0.0)
    assert TeachingConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mode": "student"}, r"teaching.mode must be one of teacher, free, scheduled, not 'student'"),
        ({"decay": "cosine"}, r"teaching.decay must be one of linear, exponential, inverse-sigmoid, not 'cosine'"),
        ({"n_half": 0}, r"teaching.n_half must be at least 1, not 0"),
        ({"p_lowest": 1.5}, r"teaching.p_lowest must be between 0 and 1, not 1.5"),
        ({"smoothing": 1.0}, r"teaching.smoothing must be between 0 and 0.9, not 1"),
        ({"max_tokens": 0}, r"teaching.max_tokens must be at least 1, not 0"),
        ({"select_by": "ter"}, r"teaching.select_by must be one of loss, bleu, .*not 'ter'"),
        ({"smothing": 0.1}, r"Unknown key 'teaching.smothing'. Did you mean 'teaching.smoothing'\?"),
    ],
)
def test_a_wrong_value_is_refused_by_name(given: dict[str, object], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        TeachingConfig.from_dict(given, "teaching")


def test_what_changes_nothing_is_noted() -> None:
    assert TeachingConfig().notes() == []
    assert TeachingConfig(mode="scheduled", decay="linear", n_half=3, p_lowest=0.5).notes() == []
    assert TeachingConfig(select_by="bleu", max_select_items=9).notes() == []
    assert TeachingConfig(max_select_items=9).notes() == [
        "max_select_items changes nothing: it is for select_by bleu or f1, and select_by is loss."
    ]
    assert TeachingConfig(mode="free", n_half=3, p_lowest=0.5).notes() == [
        "n_half, p_lowest change nothing: they are for mode scheduled, and mode is free."
    ]


def test_the_names_of_version_0_1_still_work() -> None:
    old = TeachingConfig.from_dict({"judged_by": "bleu", "max_judged": 7}, "teaching")
    assert old == TeachingConfig(select_by="bleu", max_select_items=7)
    assert "judged_by" not in old.to_dict()
