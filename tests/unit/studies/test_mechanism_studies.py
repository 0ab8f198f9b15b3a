"""The studies of one mechanism on cases small enough to work out by hand: parts left out, explosions, carried state."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from regard.errors import RegardError
from regard.mixers.config import LSTMConfig
from regard.models.language_model import LanguageModel
from regard.models.table import build_model
from regard.studies import ablate, explode, window
from regard.studies.ablate import Trial, Trials, ablate_sentence, score_pairs
from regard.studies.explode import (
    Fading,
    Lesson,
    draw_network,
    explode_sentence,
    follow,
    measure_factor,
    read_symbols,
    scale_matrix,
    teach,
)
from regard.studies.mechanism_config import AblateConfig, ExplodeConfig, WindowConfig
from regard.studies.window import Losses, choose_bins, window_sentence

Tiny = Callable[..., LanguageModel]
SMALL = ExplodeConfig(d_model=6, max_distance=12, n_texts=3, n_steps=4, n_batch=2, n_seeds=1)

# ablate


def test_only_without_the_mask_do_the_two_losses_differ(tiny_model: Tiny) -> None:
    windows = torch.randint(11, (5, 7), generator=torch.Generator().manual_seed(0))
    for without in ([], ["residual"], ["norm"], ["feed-forward"], ["values"], ["scale"]):
        at_once, by_words = ablate.measure_losses(tiny_model("transformer", without=without), windows)
        assert at_once == pytest.approx(by_words, abs=1e-10)
    at_once, by_words = ablate.measure_losses(tiny_model("transformer", without=["mask"]), windows)
    assert abs(at_once - by_words) > 1e-3


def test_every_part_changes_one_setting_of_the_model() -> None:
    config = AblateConfig()
    models = [ablate._given(config, "text", index, 0.01)["model"] for index in range(1 + len(config.parts))]
    whole = models[0]
    changed = [{key: model[key] for key in model if model.get(key) != whole.get(key)} for model in models[1:]]
    assert changed == [
        {"without": ["residual"]}, {"without": ["norm"]}, {"without": ["feed-forward"]}, {"without": ["values"]},
        {"without": ["scale"]}, {"n_heads": 1}, {"positions": "none"}, {"without": ["mask"]},
    ]  # fmt: skip


@pytest.mark.parametrize("width", [16, 256])
def test_products_of_queries_and_keys_have_the_variance_of_their_width(width: int) -> None:
    pairs = [[score_pairs(width, seed, is_scaled) for is_scaled in (False, True)] for seed in range(20)]
    assert sum(plain.variance for plain, _ in pairs) / 20 == pytest.approx(width, rel=0.1)
    for plain, scaled in pairs:
        assert scaled.variance == pytest.approx(plain.variance / width, rel=1e-4)
        assert scaled.largest < plain.largest


def trial(name: str, seed: int, as_trained: float, word_by_word: float) -> Trial:
    return Trial(name, seed, 0.01, 10, 20, [(1, 2.0)], as_trained, word_by_word)


def test_the_sentence_on_parts_says_what_each_costs_and_that_the_mask_leaks() -> None:
    found = [
        Trials("whole", [trial("whole", 0, 3.0, 3.0)]),
        Trials("no √d", [trial("no √d", 0, 3.25, 3.25)]),
        Trials("no norm", [], n_diverged=1),
        Trials("no residual", [trial("no residual", 0, 5.0, 5.0)]),
        Trials("no mask", [trial("no mask", 0, 0.01, 9.0)]),
    ]
    assert ablate_sentence(found) == (
        "Trained once: a Transformer needs 3.00 nats a token of held-out text, and +2.00 with no residual and +0.25 "
        "with no √d; with no mask training promises 0.010, since the answer is in sight, and word by word it needs "
        "9.00; no norm diverged."
    )
    lost = [Trials("whole", [], n_diverged=1), *found[1:]]
    assert ablate_sentence(lost).endswith("the whole Transformer diverged, and there is nothing to compare with.")


def test_what_a_part_costs_is_compared_within_a_seed() -> None:
    """Differences of 0.5 and 0.7: the mean is 0.6, whatever the seeds themselves differ by."""
    whole = Trials("whole", [trial("whole", 0, 3.0, 3.0), trial("whole", 1, 4.0, 4.0)])
    other = Trials("one head", [trial("one head", 0, 3.5, 3.5), trial("one head", 1, 4.7, 4.7)])
    cost = other.cost(whole)
    assert (cost.mean, cost.high) == pytest.approx((0.6, 0.6 + 12.7062 * 0.1), rel=1e-4)


# explode


@pytest.mark.parametrize("radius", [0.5, 1.0, 1.5])
def test_through_a_linear_network_a_gradient_changes_by_the_spectral_radius_at_every_step(radius: float) -> None:
    norms = follow(SMALL, "linear", radius, 0).norms
    assert len(norms) == SMALL.max_distance + 1
    for k, norm in enumerate(norms):
        assert norm == pytest.approx(norms[0] * radius**k, rel=1e-10)


def test_a_matrix_of_any_kind_has_the_spectral_radius_that_was_asked_for() -> None:
    for kind in ("orthogonal", "gaussian"):
        V = scale_matrix(kind, 8, 1.1, torch.Generator().manual_seed(0))
        assert torch.linalg.eigvals(V).abs().max().item() == pytest.approx(1.1, rel=1e-12)


def test_through_a_gaussian_matrix_the_gradient_is_the_product_of_its_transposes() -> None:
    config = replace(SMALL, matrix="gaussian", n_texts=2)
    V = draw_network(config, 1.1, 0).V.detach()
    network = draw_network(config, 1.1, 0)
    symbols = torch.tensor([[1, 2, 3, 0]])
    states = read_symbols(network, "linear", symbols)
    u = torch.arange(6, dtype=torch.float64)
    first, last = torch.autograd.grad((states[-1] @ u).sum(), [states[0], states[-1]])
    torch.testing.assert_close(last[0], u)
    torch.testing.assert_close(first[0], V.T @ V.T @ V.T @ u, rtol=0, atol=1e-12)


def test_tanh_never_lets_a_gradient_grow_faster() -> None:
    linear, tanh = (follow(SMALL, kind, 1.5, 0).norms for kind in ("linear", "tanh"))
    assert measure_factor(follow(SMALL, "tanh", 1.5, 0)) < 1.5
    assert all(t / tanh[0] <= n / linear[0] * (1 + 1e-12) for t, n in zip(tanh, linear, strict=True))


def test_clipping_moves_all_distances_by_one_factor() -> None:
    found = follow(SMALL, "linear", 1.5, 0)
    factors = [clipped / norm for clipped, norm in zip(found.clipped, found.norms, strict=True)]
    assert factors == pytest.approx([factors[0]] * len(factors), rel=1e-12)
    assert factors[0] < 1
    vanishing = follow(SMALL, "linear", 0.5, 0)
    assert replace(vanishing, clipped=[]) == replace(follow(replace(SMALL, clip=1e9), "linear", 0.5, 0), clipped=[])


def test_clipping_saves_a_linear_network_that_explodes() -> None:
    config = ExplodeConfig(d_model=8, max_distance=40, n_batch=4, n_steps=60)
    broken, saved = (teach(config, "linear", 1.5, 0, is_clipped) for is_clipped in (False, True))
    assert broken.end == math.inf
    assert saved.losses[0] is not None
    assert saved.end < 0.1 * saved.losses[0]
    assert len(broken.losses) == len(saved.losses) == 60


def test_the_sentence_on_explosions_says_who_learns() -> None:
    config = ExplodeConfig(radii=(0.5, 2.0), n_seeds=1, max_distance=4)
    fading = [
        Fading(kind, radius, 0, [radius**k for k in range(5)], []) for kind in explode.KINDS for radius in config.radii
    ]
    lessons = [
        Lesson(kind, radius, 0, is_clipped, [0.1], 1.0)
        for kind in explode.KINDS
        for radius in config.radii
        for is_clipped in (False, True)
        if (kind, radius, is_clipped) != ("linear", 2.0, False)
    ]
    lessons.append(Lesson("linear", 2.0, 0, False, [9.0, None], math.inf))
    assert explode_sentence(config, fading, lessons) == (
        "Trained once: with spectral radius 0.5 and 2 the gradient changes by a factor of 0.50 and 2.00 a step in a "
        "linear network and of 0.50 and 2.00 with tanh; unclipped, the linear network does not learn at 2, and "
        "clipped it does; the tanh network learns at every radius, clipped or not."
    )


# window


def test_a_state_is_worth_what_the_reset_costs() -> None:
    """Beyond T = 2 characters: (0.5 - 0.25 + 0.25 - 0.25) / 2."""
    losses = Losses("rnn", 2, 0, reset=[3.0, 2.0, 0.5, 0.25, 9.0], carried=[1.0, 1.0, 0.25, 0.25, 0.0])
    assert (losses.within, losses.beyond) == (1.5, 0.125)
    assert window_sentence([losses]) == (
        "Trained once: where the gradient is cut every T = 2 characters, state from before the cut still saves 0.125 "
        "nats a character in rnn, at the T characters after all that a gradient could cross was read anew."
    )


def test_carried_is_the_whole_text_and_reset_its_second_half() -> None:
    torch.manual_seed(0)
    model = build_model("lstm", LSTMConfig(d_model=4, n_layers=1), 7).double().eval()
    text = torch.randint(7, (3, 9))
    reset, carried = window.measure_losses(model, text, reach=4)
    with torch.no_grad():
        whole = model.nats_each(model.hidden(text[:, :-1])[0], text[:, 1:])
        half = model.nats_each(model.hidden(text[:, 4:-1])[0], text[:, 5:])
    assert carried == pytest.approx(whole[:, 4:].mean(dim=0).tolist(), abs=1e-12)
    assert reset == pytest.approx(half.mean(dim=0).tolist(), abs=1e-12)


def test_positions_are_averaged_over_ever_longer_stretches_that_end_at_every_cut() -> None:
    assert choose_bins(12, [3]) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 8), (8, 12)]


REFUSED = [
    (AblateConfig, {"parts": []}, "parts must name at least one"),
    (AblateConfig, {"parts": ["mask", "mask"]}, "parts names mask twice"),
    (AblateConfig, {"parts": ["head"]}, "Did you mean 'heads'?"),
    (AblateConfig, {"d_model": 6}, "d_model must be a multiple of 4, the number of heads, not 6"),
    (ExplodeConfig, {"radii": []}, "radii must name at least one"),
    (ExplodeConfig, {"matrix": "sparse"}, "matrix must be one of orthogonal, gaussian, not 'sparse'"),
    (WindowConfig, {"models": ["transformer"]}, "models must be one of rnn, gru, lstm, rnn-attention"),
    (WindowConfig, {"lengths": [40]}, "Make reach 80 or more, or leave out the longest"),
]


@pytest.mark.parametrize(("kind", "given", "message"), REFUSED)
def test_settings_that_cannot_be_measured_are_refused(kind: type, given: dict[str, object], message: str) -> None:
    with pytest.raises(RegardError) as refusal:
        kind.from_dict(given)  # type: ignore[attr-defined]
    assert message in str(refusal.value)
