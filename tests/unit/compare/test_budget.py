from __future__ import annotations

import pytest

from regard.compare.budget import Budget, parse_budget
from regard.errors import RegardError


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("2min", Budget(wished_seconds=120)),
        ("90s", Budget(wished_seconds=90)),
        ("90 sec", Budget(wished_seconds=90)),
        ("1.5h", Budget(wished_seconds=5400)),
        ("2m", Budget(wished_seconds=120)),
        ("3 hours", Budget(wished_seconds=10800)),
        ("5Mtokens", Budget(tokens=5_000_000)),
        ("5 M tokens", Budget(tokens=5_000_000)),
        ("500ktok", Budget(tokens=500_000)),
        ("1_000 tokens", Budget(tokens=1000)),
        ("1e15flops", Budget(flops=1e15)),
        ("2PFLOPs", Budget(flops=2e15)),
        ("1Mparams", Budget(n_parameters=1_000_000)),
        ("1.5M parameters", Budget(n_parameters=1_500_000)),
        ("1Mparams, 2min", Budget(n_parameters=1_000_000, wished_seconds=120)),
        ("1Mparams and 5Mtokens", Budget(n_parameters=1_000_000, tokens=5_000_000)),
    ],
)
def test_a_budget_reads_as_it_is_said(text: str, budget: Budget) -> None:
    assert parse_budget(text) == budget


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("soon", r"The budget 'soon' could not be read\. Write it like \"2min\""),
        ("12", r"The budget '12' could not be read: it has no unit"),
        ("5M", r"The budget '5M' could not be read: the unit 'M' is unknown"),
        ("5Mbananas", r"the unit 'Mbananas' is unknown"),
        ("500ms", r"the unit 'ms' is unknown"),
        ("-2min", r"could not be read"),
        ("1e999tokens", r"The budget '1e999tokens' is too large to be a number"),
        ("0s", r"more than nothing, not 0 seconds"),
        ("2min,30s", r"gives seconds twice"),
        ("2min,1e12flops", r"gives a time and FLOPs, and a time becomes FLOPs: give one of them"),
        ("", r"could not be read"),
    ],
)
def test_a_budget_that_cannot_be_read_says_how_to_write_one(text: str, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        parse_budget(text)


@pytest.mark.parametrize("text", ["2min", "45s", "5Mtokens", "1e+15flops", "1.2345678e13flops", "2min,1234567tokens"])
def test_a_budget_survives_being_typed_again(text: str) -> None:
    budget = parse_budget(text)
    name, typed = budget.words()
    assert name == "--budget"
    assert parse_budget(typed) == budget


def test_a_wish_becomes_a_round_number_of_flops_that_can_be_typed() -> None:
    wish = parse_budget("2min")
    assert wish.is_wish
    granted = wish.with_flops(7.6123e11)
    assert (granted.flops, granted.is_wish, granted.max_tokens(1e6)) == (7.6e11, False, 760_000)
    assert granted.words() == ["--budget", "7.6e11flops"]
    assert str(granted) == "7.6e11 FLOPs"


def test_a_budget_is_kept_to_the_last_digit() -> None:
    assert parse_budget("1234567tokens, 2min").to_dict() == {"wished_seconds": 120.0, "tokens": 1_234_567}


def test_parameters_alone_stop_after_twenty_tokens_a_parameter() -> None:
    assert parse_budget("1Mparams").with_stop(1_000_000).tokens == 20_000_000
    assert parse_budget("1Mparams,2min").with_stop(1_000_000).tokens is None


def test_flops_become_tokens_by_the_cost_of_a_token_and_the_tighter_limit_holds() -> None:
    assert Budget(flops=6e9).max_tokens(6e6) == 1000
    assert Budget(flops=6e9, tokens=10).max_tokens(6e6) == 10
    assert Budget(flops=6e9, tokens=5000).max_tokens(6e6) == 1000
    assert Budget(seconds=1).max_tokens(6e6) is None
    assert Budget(flops=6e9).max_tokens(0) is None  # counting costs no FLOPs, so FLOPs do not stop it
