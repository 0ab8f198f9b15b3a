"""Targets that are drawn: by the seed and the line alone, whatever stands beside it, and from all models together."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_pairs import tiny_prepared
from tiny_translator import MIXED, SOURCES, loud_model, translator_of

from regard.decode.config import BeamConfig, SamplingConfig
from regard.decode.translate import NOTHING, Translation, Translator
from regard.errors import RegardError

WARM = SamplingConfig(temperature=0.7, seed=5)


def drawing(variant: str = "lstm to gru", n: int = 1, sampling: SamplingConfig = WARM, **beam: Any) -> Translator:
    """A translator that draws; with n > 1, of so many different models."""
    prepared = tiny_prepared()
    models = [loud_model(prepared, variant, seed) for seed in range(7, 7 + n)]
    config = BeamConfig.from_dict({"max_ratio": 1.0, "max_extra": 4} | beam)
    return Translator(models, prepared.source_tokenizer, prepared.target_tokenizer, config, sampling=sampling)


def tokens_of(found: list[list[Translation]]) -> list[list[tuple[int, ...]]]:
    return [[each.tokens for each in several] for several in found]


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("variant", ["lstm to gru", "transformer to transformer", "lstm that copies"])
def test_what_a_line_draws_does_not_depend_on_its_batch_or_window(variant: str, n: int) -> None:
    translator = drawing(variant, n, n_best=2)
    expected = list(translator.lines(MIXED))
    for max_tokens, window in ((1, 1), (20, 5)):
        found = list(translator.lines(iter(MIXED), max_tokens=max_tokens, window=window))
        assert tokens_of(found) == tokens_of(expected)
        for ours, theirs in zip(found, expected, strict=True):
            assert [t.log_prob for t in ours] == pytest.approx([t.log_prob for t in theirs], rel=0, abs=1e-9)
    assert tokens_of(translator.all([translator.read(line) for line in MIXED], 9)) == tokens_of(expected)
    assert expected[1] == [NOTHING]


def test_every_line_and_every_sample_is_drawn_on_its_own() -> None:
    translator = drawing(n_best=4)
    found = tokens_of(list(translator.lines([SOURCES[0]] * 6)))
    assert all(len(several) == 4 for several in found)
    assert len({tokens for several in found for tokens in several}) > 12
    assert tokens_of(list(drawing(n_best=1).lines([SOURCES[0]] * 6))) == [several[:1] for several in found]
    other = drawing(sampling=WARM.replace(seed=6), n_best=4)
    assert tokens_of(list(other.lines([SOURCES[0]] * 6))) != found


@pytest.mark.parametrize("n", [1, 2])
def test_at_temperature_0_a_sample_is_what_a_beam_of_1_finds(n: int) -> None:
    cold, greedy = drawing(n=n, sampling=SamplingConfig(temperature=0.0)), drawing(n=n, beam=1)
    greedy.sampling = None
    for (ours,), (theirs,) in zip(cold.lines(MIXED), greedy.lines(MIXED), strict=True):
        assert (ours.text, ours.tokens) == (theirs.text, theirs.tokens)
        assert (ours.log_prob, ours.score) == pytest.approx((theirs.log_prob, theirs.score), rel=0, abs=1e-9)


def test_twins_draw_as_one_and_others_do_not() -> None:
    one, twins = drawing(n_best=3), translator_of(n=2, n_best=3)
    twins.sampling = WARM
    alone = tokens_of(list(one.lines(MIXED)))
    assert tokens_of(list(twins.lines(MIXED))) == alone
    assert tokens_of(list(drawing(n=2, n_best=3).lines(MIXED))) != alone


def test_guards_and_limits_hold_for_samples() -> None:
    translator = drawing(n_best=5, min_length=4, max_length=6, no_repeat_ngram=1)
    for several in translator.all([translator.read(source) for source in SOURCES[:8]]):
        for each in several:
            assert 3 <= len(each.tokens) <= 6  # the end counts
            assert len(set(each.tokens)) == len(each.tokens)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(RegardError, match=r"sampling draws texts and sampling\.beam searches for them: leave out one"):
        drawing(sampling=SamplingConfig(beam=3))
    with pytest.raises(RegardError, match=r"n_best is null, and sampling could draw texts without end: say how many"):
        drawing(n_best=None)
