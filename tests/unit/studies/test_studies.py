"""Fits, sentences and measurements of the studies, on cases small enough to work out by hand."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_up_study import made_up_study

from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.layers.attention import plain_attention
from regard.layers.taps import Taps
from regard.lens.gradients import input_norms, state_norms
from regard.mixers.config import LSTMConfig, RNNConfig, WindowConfig
from regard.models.gradient_next_token import as_next_token
from regard.models.language_model import LanguageModel
from regard.models.table import build_model
from regard.report.figure import new_figure
from regard.report.study import ALONE, PER_CHART, plots_of, render_study, y_limits
from regard.studies import ab, cost
from regard.studies.ab import Attempt, ab_sentence, choose_rates, draw_sequences, worked_example
from regard.studies.brief import choose_settings
from regard.studies.config import ABConfig, CostConfig
from regard.studies.cost import LAYERS, Point, cost_sentence, count_kept_bytes, exponents
from regard.studies.finding import Chart, Line
from regard.studies.fits import PowerLaw, Spread, find_reach, fit_fall, fit_power_law, spread, wilson_interval
from regard.studies.gradients import Fading, gradients_sentence
from regard.studies.recency import (
    Effects,
    choose_distances,
    divergence,
    fold_copied_words,
    measure_replacements,
    recency_sentence,
)
from regard.studies.table import STUDIES, study_config, study_entry

# Fits


def test_an_exponent_is_the_slope_in_log_log_over_the_largest_sizes() -> None:
    sizes = [10, 100, 1000, 10_000]
    values = [50.0, 50.0, 5_000.0, 500_000.0]  # flat at first, then quadratic
    law = fit_power_law(sizes, values, n_largest=3)
    assert law is not None
    assert (law.exponent, law.off) == pytest.approx((2.0, 0.0))
    assert fit_power_law(sizes, values) is None  # there is a kink


def test_how_far_a_power_law_is_off_is_told_and_one_that_is_far_off_is_none() -> None:
    # Powers of 2 of the values 0, 1 + 3a, 2 at sizes 0, 1, 2: the slope is 1, the middle lies 2a above the line, the
    # ends a below it.
    law = fit_power_law([1, 2, 4], [1, 2 * 1.06**3, 4])
    assert law is not None
    assert (law.exponent, law.off) == pytest.approx((1.0, 1.06**2 - 1))
    assert fit_power_law([1, 2, 4], [1, 2 * 1.08**3, 4]) is None  # 1.08² - 1 is more than 15%


@pytest.mark.parametrize("values", [(0.22, 0.69, 0.25), (4.0, 2.6, 1.7), (1.0, 2.0)])
def test_no_exponent_is_told_of_a_kink_a_fall_or_two_points(values: tuple[float, ...]) -> None:
    assert fit_power_law([16, 32, 64][: len(values)], values) is None


def test_a_half_life_is_how_long_halving_takes_and_none_where_nothing_falls() -> None:
    assert str(fit_fall([1, 3, 5], [1.0, 0.5, 0.25])) == "2.0 steps"
    assert str(fit_fall([1, 2, 3], [1.0, 0.25, 0.0])) == "0.50 steps"  # a zero has no logarithm
    for values in ([1.0, 1.5, 2.0], [1.0, 0.999, 0.998], [4.9, 0.96, 7.7]):
        assert str(fit_fall([5, 20, 60], values)) == "does not fall"
    uneven = fit_fall(range(1, 9), [64.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert (uneven.falls, uneven.half_life, str(uneven)) == (True, None, "falls unevenly")


def test_reach_ends_where_the_line_is_crossed_first() -> None:
    assert find_reach([1, 2, 4, 8], [1.0, 0.005, 0.02, 0.001], 0.01) == 1  # and not 4, behind a gap
    assert find_reach([1, 2, 4], [1.0, 0.5, 0.01], 0.01) == 4
    assert find_reach([1, 2], [0.0, 0.0], 0.01) is None


def test_an_interval_over_seeds_is_students() -> None:
    """Of 1, 2 and 3: the mean is 2, the standard error 1/√3, and t of two degrees of freedom 4.3027."""
    found = spread([1.0, 2.0, 3.0])
    assert (found.low, found.high) == pytest.approx((2 - 4.30265 / 3**0.5, 2 + 4.30265 / 3**0.5), rel=1e-4)
    by_factors = spread([math.e, math.e**2, math.e**3], is_log=True)
    assert by_factors.mean == pytest.approx(math.e**2)
    assert math.log(by_factors.high or 0) == pytest.approx(found.high)
    assert spread([0.0, 0.5], is_log=True) == Spread(0.0, 0.0, 0.5)
    assert spread([3.0]) == Spread(3.0)  # one training has no interval


def test_a_half_life_over_seeds_is_that_of_the_mean_slope() -> None:
    """Slopes -1 and -1/3 have the mean -2/3 and the standard error 1/3; t of one degree of freedom is 12.7."""
    found = fit_fall([0, 1, 2, 3], [8, 4, 2, 1], [2.0 ** (-d / 3) for d in range(4)]).half_life
    assert found is not None
    assert found.mean == pytest.approx(1.5)
    assert found.low == pytest.approx(1 / (2 / 3 + 12.7062 / 3), rel=1e-4)
    assert found.high == math.inf  # the interval of the slope holds zero


def test_wilsons_interval_by_hand() -> None:
    """For 1 of 4 and z = 1.96: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)."""
    n, p, z = 4, 0.25, 1.959964
    middle, half = p + z * z / 8, z * math.sqrt(p * 0.75 / n + z * z / (4 * n * n))
    assert wilson_interval(1, 4) == pytest.approx(
        ((middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n))
    )


# Sentences


def test_the_sentence_on_gradients_says_what_the_numbers_say() -> None:
    rnn = Fading("rnn", "trained", [[2.0**-k for k in range(22)]])
    level = Fading("attention", "trained", [[9.0, *[0.5] * 21]])
    assert gradients_sentence([rnn, level]) == (
        "Trained once: in trained models the gradient 20 steps back is 1.9e-6 of the one a step back in rnn and 1.0 in "
        "attention; it halves every 1.0 steps in rnn, and does not fall in attention."
    )


def test_the_sentence_on_gradients_has_intervals_over_seeds() -> None:
    rnn = Fading("rnn", "trained", [[1.0, 1.0, 0.25], [1.0, 3.0, 0.9]])
    assert gradients_sentence([rnn]) == (
        "Over 2 seeds (95% intervals in brackets): in trained models the gradient 2 steps back is 0.27 (0.086 to 0.87) "
        "of the one a step back in rnn; it halves every 0.54 (0.28 to 5.1) steps in rnn."
    )


def test_the_sentence_on_gradients_tells_who_sees_one_token_alone() -> None:
    rnn = Fading("rnn", "trained", [[2.0**-k for k in range(4)]])
    short_sighted = [Fading("window", "trained", [[1.0, 0.0, 0.0]]), Fading("one", "trained", [[1.0]])]
    assert gradients_sentence([rnn, *short_sighted]) == (
        "Trained once: in trained models the gradient 3 steps back is 0.25 of the one a step back in rnn; it halves "
        "every 1.0 steps in rnn; none reaches back beyond the token just read in window and one."
    )
    assert gradients_sentence(short_sighted) == (
        "Trained once: no gradient reaches back beyond the token just read in window and one."
    )


def attempt(model: str, length: int, n_right: int, seed: int = 0, rate: float = 0.01, n_chosen: int = 50) -> Attempt:
    return Attempt(model, length, seed, rate, n_chosen, n_right, n_test=100, n_steps=50)


def test_the_sentence_on_ab_names_the_longest_length_that_each_learned() -> None:
    found = [attempt("rnn", 10, 100), attempt("rnn", 1000, 52), attempt("attention", 1000, 100)]
    assert ab_sentence(choose_rates(found)) == (
        "Trained once: at length 1,000 rnn is right in 52% and attention in 100% of the sequences; the longest that "
        "was learned: rnn 10."
    )


def test_the_sentence_on_ab_counts_the_seeds_that_solved_it() -> None:
    """Wilson's interval of 1 of 2 is 9 to 91%, that of 2 of 2 34 to 100%."""
    found = [attempt(name, n, 100, seed) for name in ("rnn", "lstm") for n in (10, 1000) for seed in (0, 1)]
    found[2] = attempt("rnn", 1000, 52)
    assert ab_sentence(choose_rates(found)) == (
        "Over 2 seeds (95% intervals in brackets): length 1,000 is solved by rnn in 1 (9 to 91%) and lstm in 2 (34 to "
        "100%); the longest that every seed solved: rnn 10."
    )


def test_a_rate_is_chosen_by_other_sequences_than_those_that_are_counted() -> None:
    found = [attempt("rnn", 10, 100, rate=0.1, n_chosen=60), attempt("rnn", 10, 70, rate=0.01, n_chosen=80)]
    (trials,) = choose_rates(found)
    assert [a.rate for a in trials.attempts] == [0.01]
    assert trials.n_solved == 0


def effects(model: str, *nats: tuple[float, ...]) -> Effects:
    """Curves of one text for each seed."""
    samples = [np.array([curve]) for curve in nats]
    return Effects(model, tuple(range(1, len(nats[0]) + 1)), samples, [np.zeros(len(nats[0])) for _ in nats])


def test_the_sentence_on_recency_names_reach_and_where_sight_ends() -> None:
    found = [effects("ngram", (2.0, 0.5, 0.0, 0.0)), effects("lstm", (2.0, 1.0, 0.5, 0.2))]
    assert recency_sentence(found, 0.01) == (
        "Trained once (95% intervals over texts in brackets): a replaced token keeps at least 1% of the last token's "
        "effect up to distance 2 in ngram and 4 or more in lstm; ngram sees nothing beyond 2."
    )


def test_reach_has_an_interval_where_the_ends_of_the_curves_interval_cross_the_line() -> None:
    """At distance 3 the shares are 0.005 and 0.05: their geometric mean, 0.016, is above 1%, and the low end below."""
    found = effects("rnn", (1.0, 0.5, 0.005, 1e-4), (2.0, 1.0, 0.1, 2e-4))
    assert found.reach(0.01) == (3, 2, 3)
    assert "Over 2 seeds (95% intervals in brackets)" in recency_sentence([found], 0.01)
    assert "up to distance 3 (2 to 3) in rnn" in recency_sentence([found], 0.01)


def test_one_training_has_an_interval_over_its_texts() -> None:
    draws = np.random.default_rng(0)
    samples = np.stack([np.ones(400), draws.exponential(0.5, 400)], axis=1)  # mean 0.5, standard error 0.5 / 20
    nats = Effects("rnn", (1, 2), [samples], [np.zeros(2)]).by_distance()[2]
    assert nats.mean == pytest.approx(samples[:, 1].mean())
    assert (nats.high or 0) - (nats.low or 0) == pytest.approx(2 * 1.96 * samples[:, 1].std() / 20, rel=0.1)


def test_what_rounding_alone_makes_is_no_effect() -> None:
    rnn, deaf = effects("rnn", (2.0, 1e-6, 6e-14, 2e-14)), effects("deaf", (3e-14, 2e-14))
    assert [effect.mean for effect in rnn.by_distance().values()] == [2.0, 1e-6, 0.0, 0.0]
    assert recency_sentence([rnn, deaf], 1e-7).endswith(
        "keeps at least 1e-05% of the last token's effect up to distance 2 in rnn; deaf heeds no token at all."
    )


def laws(law: PowerLaw | None, **other: PowerLaw | None) -> dict[str, PowerLaw | None]:
    return {f"{what}_by_{size}": law for what in ("time", "memory", "flops") for size in "nd"} | other


def test_the_sentence_on_cost_holds_the_fitted_exponents() -> None:
    found = laws(PowerLaw(1.96, 0.01), time_by_d=PowerLaw(1.04, 0.01))
    text = cost_sentence({layer.name: found for layer in LAYERS}, CostConfig())
    assert text.startswith(
        "Measured once on this machine, with n up to 4,096 and d up to 1,024: time grew as attention n^2.0 d^1.0, "
        "fused n^2.0 d^1.0"
    )
    assert text.endswith("; memory with n as n^2.0 in plain attention and n^2.0 in fused attention.")


def test_the_sentence_on_cost_names_what_follows_no_power_law() -> None:
    law = PowerLaw(1.0, 0.01)
    fitted = {layer.name: laws(law) for layer in LAYERS} | {"fused": laws(law, memory_by_n=None)}
    assert cost_sentence(fitted, CostConfig()).endswith(
        "; memory with n as n^1.0 in plain attention; no power law fits the memory of fused attention with n."
    )
    none = {layer.name: laws(None) for layer in LAYERS}
    assert cost_sentence(none, CostConfig(lengths=(8, 16), widths=(4, 8))) == (
        "Measured once on this machine, with n up to 16 and d up to 8: neither time nor memory followed a power law."
    )


# Gradients


def one_dimensional_rnn(w: float, v: float) -> LanguageModel:
    """h_t = tanh(w x_t + v h_{t-1}), logits of two words (2 h, -h), embeddings 1 and -0.5."""
    model = build_model("rnn", RNNConfig(d_model=1, n_layers=1, tie_embeddings=False), 2).double()
    values = {"embedding": [[1.0], [-0.5]], "head": [[2.0], [-1.0]], "weight_ih": [[w]], "weight_hh": [[v]]}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = next((value for key, value in values.items() if key in name), None)
            parameter.copy_(torch.zeros_like(parameter) if value is None else torch.tensor(value, dtype=torch.float64))
    return model.eval()


def test_gradients_of_a_one_dimensional_rnn_are_the_product_of_its_jacobians() -> None:
    w, v, words, target = 0.7, 0.9, [0, 1, 0, 0], 1
    model = one_dimensional_rnn(w, v)
    h, hs = 0.0, []
    for word in words:
        h = math.tanh(w * (1.0, -0.5)[word] + v * h)
        hs.append(h)
    p_first = 1 / (1 + math.exp(-3 * h))  # of logits 2h and -h
    reached = abs(2 * p_first - (1 - p_first) + 1)  # dL/dh_T = Σ (p - target) W = 2 p_0 - (p_1 - 1)
    by_state, by_input = [], []
    for s in reversed(range(4)):
        by_state.insert(0, reached)
        by_input.insert(0, reached * (1 - hs[s] ** 2) * w)
        reached *= (1 - hs[s] ** 2) * v  # dh_s/dh_{s-1}
    windows = torch.tensor([[*words, target]])
    assert state_norms(model, windows)[0].tolist() == pytest.approx(by_state, abs=1e-12)
    assert input_norms(model, windows)[0].tolist() == pytest.approx(by_input, abs=1e-12)


def test_the_state_of_an_lstm_is_its_cell_too() -> None:
    """With no weights from h to the next step, what reaches back can only have gone through c."""
    torch.manual_seed(0)
    model = build_model("lstm", LSTMConfig(d_model=4, n_layers=1), 5).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "weight_hh" in name:
                parameter.zero_()
    norms = state_norms(model, torch.randint(0, 5, (3, 9)))
    assert (norms > 0).all()


# A/B


def test_half_of_the_sequences_have_one_b_and_places_are_even() -> None:
    tokens, has_b = draw_sequences(4000, 10, torch.Generator().manual_seed(0))
    assert has_b.sum() == 2000
    assert (tokens.sum(1) == has_b.long()).all()
    counts = tokens[has_b].sum(0)
    assert counts.min() > 150  # 200 expected
    assert counts.max() < 250


def test_the_worked_example_of_the_lecture_comes_out() -> None:
    average, as_three, plain, sharp = worked_example()
    assert average[1] == [0.25] * 4
    assert average[2] == [0.75, 0.25]
    assert as_three[1] == pytest.approx([1 / 6, 1 / 6, 1 / 2, 1 / 6], abs=1e-15)
    assert as_three[2] == pytest.approx([1 / 2, 1 / 2], abs=1e-15)
    assert plain[1] == pytest.approx([x / (3 + math.e) for x in (1, 1, math.e, 1)], abs=1e-15)
    assert sharp[1][2] > 0.999


def test_a_bag_learns_short_sequences_with_every_seed() -> None:
    config = ABConfig(models=("bag",), lengths=(4,), n_test=50, n_steps=100, rates=(0.01, 1e-6), n_seeds=2)
    numbers = ab.measure(config, (), lambda *_: None).numbers
    assert [(a["seed"], a["rate"], a["is_solved"]) for a in numbers["attempts"]] == [
        (0, 0.01, True), (0, 1e-6, False), (1, 0.01, True), (1, 1e-6, False),
    ]  # fmt: skip
    assert [(s["n"], s["mean"]) for s in numbers["solved"]] == [(2, 100.0)]


# Recency


def small_ngram(order: int) -> NgramModel:
    ids = np.random.default_rng(0).integers(1, 8, 400)
    ids[::40] = 0
    return NgramModel.fit(NgramConfig(order=order), ids, vocab_size=9, unk=None)


@pytest.mark.parametrize("name", ["ngram", "window"])
def test_beyond_what_a_model_sees_a_replaced_word_changes_exactly_nothing(name: str) -> None:
    sight = 3
    torch.manual_seed(0)
    model = (
        small_ngram(order=sight + 1)
        if name == "ngram"
        else build_model("window", WindowConfig(d_model=6, d_hidden=9, n_window=sight), 9)
    )
    draws = np.random.default_rng(1)
    texts = draws.integers(1, 8, (40, 12))
    others = texts % 7 + 1
    nats, changed = measure_replacements(as_next_token(model), texts, others, range(1, 13))
    assert (nats[:, sight:] == 0).all()
    assert not changed[:, sight:].any()
    assert (nats[:, :sight].mean(0) > 0).all()


def test_divergence_by_hand() -> None:
    p, q = torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([[0.25, 0.5, 0.25]])
    assert divergence(p.log(), q.log()).item() == pytest.approx(0.5 * math.log(2))
    assert divergence(q.log(), p.log()).item() == math.inf


def test_words_that_are_only_copied_count_as_unk_together() -> None:
    p = torch.tensor([[0.1, 0.2, 0.3, 0.4, 0.0]]).log()
    assert fold_copied_words(p, 3).exp()[0].tolist() == pytest.approx([0.1, 0.6, 0.3])
    assert fold_copied_words(p, None) is p


def test_distances_are_dense_near_by_and_end_at_the_farthest() -> None:
    assert choose_distances(3) == (1, 2, 3)
    assert choose_distances(64)[-4:] == (40, 48, 56, 64)
    assert choose_distances(65)[-1] == 65


# Settings of the models that are made


def test_small_settings_reach_widths_that_are_null_because_a_size_decides_them() -> None:
    wanted = {"d_model": 8, "d_hidden": 16, "n_layers": 1, "n_heads": 4, "max_context": 9}
    assert choose_settings("gpt2", wanted) == {"d_model": 8, "n_layers": 1, "n_heads": 4, "max_context": 9}
    assert choose_settings("lstm", wanted) == {"d_model": 8, "n_layers": 1}  # its d_hidden follows from d_model
    assert choose_settings("window", wanted) == {"d_model": 8, "d_hidden": 16}


# Cost


def test_plain_attention_keeps_its_weights_and_the_fused_one_does_not() -> None:
    n, d = 640, 8  # longer than what the blocked path is taken for
    config, cpu = CostConfig(), torch.device("cpu")
    by_name = {layer.name: layer for layer in LAYERS}
    x = torch.randn(1, n, d, requires_grad=True)
    plain = count_kept_bytes(*_swapped(by_name["attention"].make(d, config, cpu), x))
    fused = count_kept_bytes(*_swapped(by_name["fused"].make(d, config, cpu), x))
    assert plain >= 4 * n * n
    assert fused < 4 * n * n / 8


def _swapped(made: tuple[cost.Forward, list[torch.nn.Parameter]], x: torch.Tensor) -> tuple[object, ...]:
    return made[0], x, made[1]


def test_exponents_of_made_up_times_are_found_by_layer() -> None:
    by_n = [Point("recurrent", n, 4, 1e-3 * n, 8 * n, 10 * n) for n in (10, 20, 40)]
    by_d = [Point("recurrent", 8, d, 1e-6 * d**2, 8 * d, 10 * d**2) for d in (10, 20, 40)]
    found = exponents("recurrent", by_n, by_d, n_largest=3)
    keys = ("time_by_n", "time_by_d", "memory_by_n", "memory_by_d", "flops_by_d")
    assert [law and law.exponent for law in map(found.get, keys)] == pytest.approx([1, 2, 1, 1, 2])


def test_a_gpu_that_is_not_there_is_refused_by_the_key_of_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RegardError, match="Use device=cpu or auto"):
        cost.measure(CostConfig(device="cuda"), (), lambda *_: None)


def test_what_is_timed_is_the_causal_attention_of_the_models() -> None:
    x = torch.randn(1, 6, 4)
    forward, _ = LAYERS[1].make(4, CostConfig(), torch.device("cpu"))
    expected = plain_attention(x[:, None], x[:, None], x[:, None], 0.0, Taps())
    assert torch.allclose(forward(x), expected, rtol=0, atol=1e-6)


# The page


def test_the_page_escapes_everything_and_loads_nothing() -> None:
    html = render_study(made_up_study(name="<script>alert(1)</script>"))
    assert "<script>alert(1)" not in html
    assert "Lines &lt;fall&gt; &amp; stay." in html
    assert not re.search(r"""(?:src|href)=|@import|https?://(?!www\.w3\.org)""", html)
    assert html.count("<svg") == 2  # for a screen and for a phone


def test_a_zero_on_a_logarithmic_axis_falls_out_of_the_picture() -> None:
    chart = made_up_study().finding.charts[0]
    low, high = y_limits([chart])
    assert 0 < low < 0.1
    assert high > 1
    html = render_study(made_up_study())
    heights = [float(y) for y in re.findall(r'class="line" points="[^"]*,([\d.]+)" stroke="#009e73"', html)]
    assert heights[0] > 440  # below the frame, where the clip path hides it


def test_charts_that_label_an_axis_alike_share_its_limits() -> None:
    near, far = (Line("rnn", ((1.0, 0.1), (x, 0.5))) for x in (4.0, 64.0))
    before, after = Chart("Before", "steps", "share", (near,)), Chart("After", "steps", "share", (far,))
    other = Chart("Other", "steps", "nats", (Line("rnn", ((1.0, 7.0),)),), y_limits=(0.0, 9.0))
    plots = plots_of([before, after, other])
    assert [p.x_limits for p in plots] == [(1.0, 64.0)] * 3
    assert plots[0].y_limits == plots[1].y_limits == y_limits([before, after])
    assert plots[2].y_limits == (0.0, 9.0)


def test_what_is_typed_stands_in_code_and_notes_stand_below_the_sentence() -> None:
    study = made_up_study()
    finding = replace(study.finding, method={"How": "by `regard <x>`"}, notes=("b was cut short.",))
    html = render_study(replace(study, finding=finding))
    assert "by <code>regard &lt;x&gt;</code>" in html
    assert "`" not in html.partition("<script")[0].partition("</style>")[2]
    assert '<p class="note">b was cut short.</p>' in html


def test_few_sizes_are_marked_one_by_one() -> None:
    study = made_up_study()
    chart = replace(study.finding.charts[0], is_x_log=True, measured_at=(1.0, 2.0, 4.0))
    html = render_study(replace(study, finding=replace(study.finding, charts=(chart,))))
    wide = html.partition('<div class="wide">')[2].partition("</svg>")[0]
    assert re.findall(r'text-anchor="middle">(\d+)<', wide) == ["1", "2", "4"]
    assert wide.count('r="3.5"') == 5  # of three points and of two


def test_numbers_json_holds_the_sentence_the_settings_and_the_numbers() -> None:
    found = json.loads(made_up_study().to_json())
    assert (found["study"], found["settings"], found["numbers"]) == ("gradients", {"seed": 0}, {"x": [1, 2]})
    assert found["sentence"] == "Lines <fall> & stay."


def test_unknown_names_are_refused_with_the_nearest_one() -> None:
    with pytest.raises(RegardError, match=r"There is no study 'gradient'\. Did you mean 'gradients'\?"):
        study_entry("gradient")
    with pytest.raises(RegardError, match=r"Unknown key 'n_step'\. Did you mean 'n_steps'\?"):
        study_config("ab", {"n_step": 3})


@pytest.mark.parametrize(
    ("name", "key", "example"),
    [
        ("gradients", "models", "[rnn, lstm]"),
        ("ab", "models", "[rnn, lstm]"),
        ("ab", "lengths", "[10, 100]"),
        ("ab", "rates", "[0.01]"),
        ("recency", "models", "[rnn, lstm]"),
    ],
)
def test_lists_that_name_nothing_or_one_thing_twice_are_refused(name: str, key: str, example: str) -> None:
    with pytest.raises(RegardError, match=re.escape(f"{key} must name at least one, such as {key}={example}, not [].")):
        study_config(name, {key: []})
    one = {"models": "lstm", "lengths": 10, "rates": 0.01}[key]
    with pytest.raises(RegardError, match=f"{key} names {one} twice; leave one out"):
        study_config(name, {key: [one, one]})


@pytest.mark.parametrize("name", STUDIES)
def test_every_setting_of_a_study_is_documented(name: str) -> None:
    assert all(line.doc for line in STUDIES[name].config.help())


@pytest.mark.parametrize(("n_charts", "width", "per_line"), [(1, 6.6, ALONE), (2, 9.2, 2 * PER_CHART)])
def test_the_sentence_above_the_charts_stays_inside_the_picture(n_charts: int, width: float, per_line: int) -> None:
    brackets = "26.9 (0.0 to 100.0)"
    sentence = (
        "Over 2 seeds (95% intervals in brackets), entity F1 with 10 labelled examples: lm (lstm), pre-trained "
        f"{brackets} and lm (lstm), from scratch 0.0; with 50: {brackets} and 0.0."
    )
    sentence = " ".join([sentence] * n_charts)
    figure = new_figure(width, 4.9, sentence, "", per_line)
    figure.draw_without_rendering()
    assert figure._suptitle.get_window_extent().x1 <= figure.bbox.x1


def test_a_notebook_shows_the_page_of_a_study_or_its_sentence(tmp_path: Path) -> None:
    study = made_up_study("<b> & c.")
    assert study._repr_html_() == "<p><b>&lt;b&gt; &amp; c.</b></p>"
    placed = replace(study, folder=tmp_path)
    assert placed._repr_html_() == study._repr_html_()  # nothing was written there
    (tmp_path / "report.html").write_text(render_study(study), encoding="utf-8")
    assert placed._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert placed.to_json() == study.to_json()


@pytest.mark.parametrize("name", [name for name in STUDIES if STUDIES[name].has_seeds])
def test_no_study_lists_more_than_a_thousand_seeds(name: str) -> None:
    with pytest.raises(RegardError, match="n_seeds must be between 1 and 1000, not 100000000"):
        study_config(name, {"n_seeds": 10**8})
