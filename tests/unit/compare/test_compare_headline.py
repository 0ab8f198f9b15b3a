from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from made_up_comparison import made_up_comparison

from regard.compare.headline import write_headline
from regard.compare.result import Comparison, Contender, CostToScore, PairResult

ONE_SEED = "one seed: other seeds were not tried"


def test_the_headline_names_the_best_its_score_and_its_lead() -> None:
    comparison = made_up_comparison()
    best, lead = comparison.ranked[0].score, comparison.neighbours[0]
    assert best is not None
    words = f"at {best.value:.3f} bits per byte, {lead.difference:.2f} ahead of lstm"
    low, high = comparison.setup.measure.gap(lead.low), comparison.setup.measure.gap(lead.high)
    interval = f"(95% interval {low} to {high})."
    assert comparison.headline[0] == f"transformer is best {words} {interval}"


def test_the_headline_says_who_is_nearly_as_good_for_little_time() -> None:
    assert any(s.startswith("ngram comes within ") and "1/39 of the training time" in s for s in headline_of())


def test_an_ngram_that_counts_all_is_not_ahead_of_itself() -> None:
    comparison = made_up_comparison(("transformer", "lstm", "ngram"))
    twin = "ngram (same tokens)"
    for order, words in (
        (("ngram", twin, "lstm"), "and is still ahead of them."),
        (("ngram", "lstm", twin), "behind lstm."),
    ):
        places = dict(zip(comparison.ranking, order, strict=True))
        ranked = [replace(c, name=places[c.name]) for c in comparison.ranked]
        pairs = [replace(p, better=places[p.better], worse=places[p.worse]) for p in comparison.pairs]
        first, second, *rest = told(comparison, ranked, pairs)
        assert "ahead of lstm (95% interval" in first
        assert second.startswith("It counts more text than the others read: with as many tokens as they, it reaches ")
        assert second.endswith(words)
        assert not any("same tokens" in sentence for sentence in (first, *rest))


def test_an_ngram_with_the_same_tokens_is_called_ahead_only_where_that_is_settled() -> None:
    comparison = made_up_comparison(("transformer", "lstm", "ngram"))
    twin = "ngram (same tokens)"
    for order, open_pair, words in (
        (("ngram", twin, "lstm"), (twin, "lstm"), "and whether it is still ahead of lstm is not settled (p = 0.200)."),
        (("ngram", "lstm", twin), ("lstm", twin), "behind lstm, which is not settled (p = 0.200)."),
    ):
        places = dict(zip(comparison.ranking, order, strict=True))
        ranked = [replace(c, name=places[c.name]) for c in comparison.ranked]
        named = [replace(p, better=places[p.better], worse=places[p.worse]) for p in comparison.pairs]
        pairs = [
            replace(p, is_settled=False, why="p = 0.200") if (p.better, p.worse) == open_pair else p for p in named
        ]
        assert told(comparison, ranked, pairs)[1].endswith(words)


def test_a_bargain_is_comparable_and_not_far_off() -> None:
    assert not any("of the training time" in s for s in headline_of(lossy={"ngram": "word 200"}))
    comparison = made_up_comparison(("transformer", "ngram"))
    best, cheap = comparison.ranked
    assert best.score is not None
    assert cheap.score is not None
    for factor, share in ((1.2, "20%"), (1.114, "12%"), (1.24, "24%"), (1.26, "")):
        score = replace(cheap.score, value=factor * best.score.value)
        sentences = told(comparison, [best, replace(cheap, score=score)], comparison.neighbours)
        assert any(f"ngram comes within {share} of it" in s for s in sentences) == bool(share)
        assert any("of the training time" in s for s in sentences) == bool(share)


def test_a_score_that_the_first_evaluation_had_is_not_called_what_it_needs() -> None:
    comparison = made_up_comparison(("lstm", "transformer"))
    points = comparison.ranked[0].curve
    soon, late = points[0], replace(points[0], flops=3 * points[0].flops)
    before = replace(points[0], score=9.0, flops=2 * points[0].flops)
    level = CostToScore(level=points[0].score, flops=(soon.flops, late.flops), seconds=(1.0, 3.0))
    first, second = comparison.ranked
    for curve, is_told in (((late,), False), ((before, late), True)):
        contenders = [replace(first, curve=(soon,)), replace(second, curve=curve)]
        said = write_headline(contenders, contenders, comparison.neighbours, [level], comparison.setup)
        assert any("3.0 times as many" in sentence for sentence in said) == is_told


def test_who_uses_a_long_past_is_comparable() -> None:
    assert not any(s.startswith("transformer gains") for s in headline_of(lossy={"transformer": "word 200"}))


def test_the_headline_says_who_uses_a_long_past() -> None:
    # 0.9 e^(-16/6) + 0.8 (e^(-16/160) - e^(-1024/160)) = 0.0625 + 0.7225
    assert (
        "transformer gains most from a long past: 0.79 bits per byte between 16 and 1024 bytes of it." in headline_of()
    )


def test_a_lead_that_is_not_settled_is_not_claimed() -> None:
    comparison = made_up_comparison(("lstm", "transformer"))
    doubtful = replace(comparison.neighbours[0], is_settled=False, why="p = 0.200")
    first = told(comparison, comparison.ranked, [doubtful])[0]
    assert "but its lead of 0." in first
    assert "over lstm is not settled (p = 0.200)." in first


def test_one_seed_settles_no_order_and_says_so() -> None:
    comparison = made_up_comparison(n_seeds=1)
    assert not any(n.is_settled for n in comparison.neighbours)
    assert "is not settled (one seed: other seeds were not tried)." in comparison.headline[0]
    assert comparison.headline[1] == "The order of the 4 behind it is not settled either."


def test_neighbours_further_down_that_are_not_settled_are_named() -> None:
    comparison = made_up_comparison()
    doubtful = [replace(n, is_settled=n.better != "ngram", why="p = 0.2") for n in comparison.neighbours]
    sentences = told(comparison, comparison.ranked, doubtful)
    assert "The order of ngram and rnn is not settled." in sentences


@pytest.mark.parametrize(
    ("open_places", "sentence"),
    [
        ((2,), "The order of m2 and m3 is not settled."),
        ((2, 3), "The order of m2, m3 and m4 is not settled."),
        ((2, 3, 4, 5), "The order of the 5 from m2 to m6 is not settled."),
        ((3, 5, 6), "The order of m3 and m4 and of m5, m6 and m7 is not settled."),
        (
            (2, 4, 8, 9, 10),
            "The order of m2 and m3, of m4 and m5 and of the 4 from m8 to m11 is not settled.",
        ),
        ((2, 4, 6, 8), "Further down, 4 of 10 pairs of neighbours are not settled."),
        (tuple(range(2, 12)), "The order of the 11 behind it is not settled."),
    ],
)
def test_what_is_not_settled_among_twelve_is_told_in_groups(open_places: tuple[int, ...], sentence: str) -> None:
    assert twelve(open_places)[1] == sentence


def test_one_seed_is_given_as_the_reason_once() -> None:
    said = twelve(tuple(range(2, 12)), ONE_SEED)
    assert said[1] == "The order of the 11 behind it is not settled (one seed: other seeds were not tried)."
    both = twelve(tuple(range(1, 12)), ONE_SEED)
    assert both[0].endswith("over m2 is not settled (one seed: other seeds were not tried).")
    assert both[1] == "The order of the 11 behind it is not settled either."


def test_failures_and_lossy_tokenizers_are_told() -> None:
    assert "window and rnn did not finish." in headline_of(failing=("window", "rnn"))
    lossy = (
        "ngram uses a tokenizer that loses text, word 200: what is lost costs nothing, so its bits per byte compare "
    )
    assert lossy + "with no other's." in headline_of(lossy={"ngram": "word 200"})


def test_no_lossy_contender_is_called_best_over_others() -> None:
    lossy = {"rnn": "word 200", "lstm": "word 20,000", "transformer": "word 200"}
    first, *rest = headline_of(("rnn", "lstm", "transformer"), lossy=lossy)
    assert first.startswith("Nobody can be called best: every tokenizer loses text, not the same")
    assert not any("is best" in line for line in rest)
    assert any("rnn and transformer" in line or "transformer and rnn" in line for line in rest)


def test_contenders_that_all_lose_text_are_compared_with_each_other() -> None:
    said = headline_of(("rnn", "lstm"), lossy={"rnn": "word 200", "lstm": "word 200"})
    assert any("their bits per byte compare with each other alone" in line for line in said)


def test_nothing_finished_is_said_plainly() -> None:
    assert headline_of(("rnn",), failing=("rnn",)) == ("No contender finished: rnn failed.",)


def test_a_single_contender_is_best_of_nothing() -> None:
    assert headline_of(("lstm",))[0].startswith("lstm reaches 2.1")


def twelve(open_places: tuple[int, ...], why: str = "p = 0.200") -> tuple[str, ...]:
    """The headline when m1 to m12 finished in this order, and the steps after `open_places` are not settled."""
    comparison = made_up_comparison(("lstm",))
    lstm = comparison.ranked[0]
    ranked = [replace(lstm, name=f"m{place}") for place in range(1, 13)]
    steps = [
        PairResult(
            better=f"m{place}", worse=f"m{place + 1}", difference=0.1, relative=0.05, low=0.05, high=0.15, p=0.01,
            p_holm=0.2, n_effective=30.0, is_settled=place not in open_places, why=why if place in open_places else "",
        )
        for place in range(1, 12)
    ]  # fmt: skip
    return told(comparison, ranked, steps)


def told(comparison: Comparison, ranked: Sequence[Contender], pairs: Sequence[PairResult]) -> tuple[str, ...]:
    return write_headline(ranked, ranked, pairs, (), comparison.setup)


def headline_of(*args: tuple[str, ...], **kwargs: Any) -> tuple[str, ...]:
    return made_up_comparison(*args, **kwargs).headline
