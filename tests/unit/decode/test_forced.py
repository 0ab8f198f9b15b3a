"""Forced decoding: a target costs what it cost when it was written, alone, in a batch, or by several models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tiny_pairs import GRID, TEXTS, tiny_prepared
from tiny_translator import MIXED, SOURCES, loud_model, translator_of

from regard.data.pairs import Pairs
from regard.decode.config import BeamConfig, SamplingConfig
from regard.decode.forced import force_targets, read_pair, score_pairs
from regard.decode.translate import Translator
from regard.errors import RegardError
from regard.score.scored import Scored
from regard.tasks.pair_objective import sum_nats


def found_by(translator: Translator, pairs: list[tuple[str, str]], **how: Any) -> list[Scored]:
    """Of pairs that all have a score."""
    found = list(score_pairs(translator, pairs, **how))
    assert None not in found
    return [each for each in found if each is not None]


@pytest.mark.parametrize("variant", sorted(GRID))
def test_all_targets_cost_together_what_evaluation_says(variant: str) -> None:
    prepared = tiny_prepared()
    model = loud_model(prepared, variant)
    texts = [*TEXTS[:9], ("the wug sleeps", "wug rot"), ("bird", "vogel"), ("a <eos> b", "haus <eos>")]
    pairs = Pairs.of(texts, prepared.source_tokenizer, prepared.target_tokenizer)
    translator = Translator([model], prepared.source_tokenizer, prepared.target_tokenizer, BeamConfig())
    found = found_by(translator, texts, max_tokens=25)
    expected, n_tokens = sum_nats(model, pairs, 1000)
    assert sum(each.total for each in found) == pytest.approx(expected, rel=0, abs=1e-9)
    assert sum(len(each.tokens) for each in found) == n_tokens


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("variant", ["lstm to gru", "transformer to transformer", "lstm that copies"])
def test_a_target_costs_what_it_cost_when_it_was_written(variant: str, n: int) -> None:
    """Drawn ones, since they are of all kinds: with copied words, with an end and, where there was no room, without."""
    prepared = tiny_prepared()
    models = [loud_model(prepared, variant, seed) for seed in range(7, 7 + n)]
    config, draws = BeamConfig(n_best=8, max_length=24), SamplingConfig(seed=1)
    translator = Translator(models, prepared.source_tokenizer, prepared.target_tokenizer, config, sampling=draws)
    sources = [source for source in MIXED if source.strip()]
    drawn = translator.all([translator.read(source) for source in sources])
    written = [(source, each) for source, several in zip(sources, drawn, strict=True) for each in several]
    written = [pair for pair in written if len(pair[1].tokens) < 24 or translator.max_target == 24]
    assert len(written) > 20
    assert {token >= prepared.target_tokenizer.vocab_size for _, each in written for token in each.tokens} == (
        {False, True} if "copies" in variant else {False}
    )
    found = found_by(translator, [(source, each.text) for source, each in written])
    expected = [each.log_prob for _, each in written]
    assert [each.log_probability for each in found] == pytest.approx(expected, rel=0, abs=1e-9)


def test_neither_batches_nor_windows_change_a_score() -> None:
    translator = translator_of("lstm to gru")
    pairs = [*TEXTS[:7], (SOURCES[0], "haus"), (SOURCES[1], ""), (SOURCES[2] + " red", TEXTS[3][1])]
    alone = [
        force_targets(translator.models[0], translator.target_tokenizer, [read_pair(translator, *p)]) for p in pairs
    ]
    for max_tokens, window in ((1, 1), (30, 3), (1000, 100)):
        found = found_by(translator, pairs, max_tokens=max_tokens, window=window)
        for each, (nats,) in zip(found, alone, strict=True):
            np.testing.assert_allclose(each.nats, nats, rtol=0, atol=1e-10)


def test_tokens_carry_their_characters_and_the_end_none() -> None:
    (one,) = found_by(translator_of(), [(SOURCES[0], " haus  rot\n")])
    assert [token.text for token in one.tokens] == ["haus  ", "rot", ""]
    assert one.text == "haus  rot"
    (bare,) = found_by(translator_of(), [(SOURCES[0], "")])  # the end is all there is
    assert [token.text for token in bare.tokens] == [""]


def test_two_models_are_the_mean_of_their_probabilities() -> None:
    prepared = tiny_prepared()
    models = [loud_model(prepared, "lstm to gru", seed) for seed in (1, 2)]
    tokenizers = prepared.source_tokenizer, prepared.target_tokenizer
    a, b, both = (
        found_by(Translator(some, *tokenizers, BeamConfig()), [TEXTS[0]])[0].nats
        for some in ([models[0]], [models[1]], models)
    )
    np.testing.assert_allclose(np.exp(-both), (np.exp(-a) + np.exp(-b)) / 2, rtol=0, atol=1e-12)
    assert abs(a - b).max() > 0.1


def test_what_has_no_text_has_no_score() -> None:
    found = list(score_pairs(translator_of(), [("", ""), TEXTS[0], (" ", "\t")]))
    assert [each is None for each in found] == [True, False, True]


@pytest.mark.parametrize(
    ("pair", "fault"),
    [
        (("", "haus"), r"Line 2 has a target and no source\. Change it, or leave it out: --skip-bad"),
        (("the " * 25, "haus"), r"Line 2 has 25 tokens in its source, and the model takes at most 24\."),
        (("the", "haus " * 25), r"Line 2 has 25 tokens in its target, and the model takes at most 24\."),
    ],
)
def test_what_cannot_be_scored_is_an_error_with_its_number_or_is_left_out(pair: tuple[str, str], fault: str) -> None:
    translator = translator_of("transformer to transformer")  # 24 tokens a side
    pairs = [TEXTS[0], pair, TEXTS[1]]
    scores = score_pairs(translator, pairs)
    assert next(scores) is not None
    with pytest.raises(RegardError, match=fault):
        next(scores)
    assert [each is None for each in score_pairs(translator, pairs, skips_bad=True)] == [False, True, False]


def test_the_end_counts_where_there_is_room_for_it() -> None:
    translator = translator_of("transformer to transformer")
    whole, full = found_by(translator, [("the", "haus " * 23), ("the", "haus " * 24)])
    assert (len(whole.tokens), len(full.tokens)) == (24, 24)
    assert whole.nats[:23] == pytest.approx(full.nats[:23], rel=0, abs=1e-10)
    assert not math.isclose(whole.nats[23], full.nats[23])
