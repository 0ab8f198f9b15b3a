from __future__ import annotations

from typing import Any

import pytest

from regard.compare.width import Matched, match_width, with_depth
from regard.errors import RegardError
from regard.models.outline import count_non_embedding, outline_model
from regard.models.table import MODELS, build_model, model_config
from regard.settings import Settings

GRADIENT = [name for name, entry in MODELS.items() if "language-model" in entry.tasks and not entry.is_counted]


def n_parameters(name: str, config: Settings, *sizes: int | None) -> int:
    return int(outline_model(name, config, *sizes).n_parameters)


def matched(name: str, given: dict[str, Any], vocab_size: int, target: int) -> Matched:
    return match_width(name, given, target, lambda config: n_parameters(name, config, vocab_size))


@pytest.mark.parametrize(("target", "vocab_size"), [(300_000, 97), (1_000_000, 4096), (3_000_000, 1000)])
@pytest.mark.parametrize("name", GRADIENT)
def test_every_model_comes_within_two_percent_of_its_size(name: str, target: int, vocab_size: int) -> None:
    found = matched(name, {}, vocab_size, target)
    assert found.n_parameters is not None
    assert abs(found.n_parameters / target - 1) <= 0.02
    assert found.note == ""


@pytest.mark.parametrize("name", GRADIENT)
def test_sizes_counted_without_numbers_are_those_of_the_real_model(name: str) -> None:
    config = matched(name, {}, 61, 50_000).config
    assert n_parameters(name, config, 61) == sum(p.numel() for p in build_model(name, config, 61).parameters())


def test_what_the_user_sets_stays_as_it_was_set() -> None:
    config = matched("transformer", {"n_layers": 3, "n_heads": 2, "norm": "post"}, 1000, 500_000).config.to_dict()
    assert (config["n_layers"], config["n_heads"], config["norm"]) == (3, 2, "post")
    assert config["d_model"] % 2 == 0


def test_a_width_set_by_hand_leaves_the_inner_width_to_match() -> None:
    found = matched("transformer", {"d_model": 64}, 1000, 500_000)
    assert found.config.to_dict()["d_model"] == 64
    assert abs((found.n_parameters or 0) / 500_000 - 1) <= 0.02


def test_all_widths_set_by_hand_are_kept_and_marked() -> None:
    found = matched("lstm", {"d_model": 64}, 1000, 500_000)
    assert found.config.to_dict()["d_model"] == 64
    assert found.note == "-74% off the target; its widths were set by hand"


def test_counting_cannot_be_matched_and_says_so() -> None:
    found = matched("ngram", {"order": 3}, 1000, 500_000)
    assert found.n_parameters is None
    assert "cannot be matched" in found.note


def test_a_vocabulary_too_large_for_the_size_says_what_to_change() -> None:
    with pytest.raises(RegardError, match=r"'lstm' cannot have 10k parameters with this vocabulary: at width 1"):
        matched("lstm", {}, 50_000, 10_000)


def test_fewer_heads_are_taken_where_only_they_let_the_width_fit() -> None:
    # 40 numbers a token and a vocabulary of 20,000: steps of 4 in width would be steps of 10%.
    found = matched("attention", {"n_layers": 1}, 20_000, 850_000)
    assert abs((found.n_parameters or 0) / 850_000 - 1) <= 0.02
    assert model_config("attention").to_dict()["n_heads"] > found.config.to_dict()["n_heads"]


@pytest.mark.parametrize(
    "given", [{"encoder": "gru", "decoder": "gru"}, {}, {"encoder": "lstm", "decoder": "transformer"}]
)
def test_translators_are_matched_too_and_widths_that_they_lack_are_left_alone(given: dict[str, Any]) -> None:
    found = match_width("seq2seq", given, 2_000_000, lambda config: n_parameters("seq2seq", config, 3000, None))
    assert abs((found.n_parameters or 0) / 2_000_000 - 1) <= 0.02
    assert (found.config.to_dict()["d_ff"] is None) == ("transformer" not in given.values() and bool(given))


@pytest.mark.parametrize(
    ("size", "n_layers"), [(300_000, 1), (1_000_000, 1), (2_000_000, 2), (12_000_000, 4), (60_000_000, 6)]
)
def test_the_number_of_layers_follows_the_size_where_nobody_has_chosen_it(size: int, n_layers: int) -> None:
    for name in ("rnn", "lstm", "transformer", "attention", "restricted", "bag"):
        assert with_depth(name, {"p_dropout": 0.1}, size) == {"p_dropout": 0.1, "n_layers": n_layers}
    assert with_depth("lstm", {"n_layers": 3}, size) == {"n_layers": 3}
    assert with_depth("gpt2", {"size": "small"}, size) == {"size": "small"}
    assert with_depth("convolution", {}, size) == {"n_layers": 2 * n_layers}
    assert with_depth("window", {}, size) == ({"n_window": 5} if n_layers == 1 else {})
    assert with_depth("window", {"n_window": 3}, size) == {"n_window": 3}


@pytest.mark.parametrize("name", GRADIENT)
def test_non_embedding_parameters_do_not_grow_with_the_vocabulary(name: str) -> None:
    config = matched(name, {}, 61, 50_000).config
    small, large = (count_non_embedding(outline_model(name, config, n)) for n in (61, 1061))
    assert 0 < small == large < n_parameters(name, config, 61)
