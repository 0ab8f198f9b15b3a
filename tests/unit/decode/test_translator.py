"""Sources in, targets out: batches change nothing, lines stay in order, and what is copied is spelled as it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_pairs import GRID, tiny_pair_model, tiny_prepared
from tiny_translator import MIXED, SOURCES, loud_model, translator_of

from regard.data.pair_copying import NOT_COPIED
from regard.data.pairs import Pairs, add_tags
from regard.decode.config import BeamConfig
from regard.decode.lines import LinesDone
from regard.decode.translate import NOTHING, Translator
from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("variant", ["lstm to gru", "transformer to transformer", "lstm that copies", "bag to rnn"])
def test_a_batch_gives_what_each_source_gives_alone(variant: str, beam: int) -> None:
    translator = translator_of(variant, beam=beam, n_best=beam)
    sentences = [translator.read(source) for source in MIXED if source.strip()]
    together = translator.translate(sentences)
    assert len({best[0].text for best in together}) > 3
    for sentence, found in zip(sentences, together, strict=True):
        alone = translator.translate([sentence])[0]
        assert [(t.text, t.tokens) for t in found] == [(t.text, t.tokens) for t in alone]
        assert all(abs(a.log_prob - b.log_prob) < 1e-9 for a, b in zip(found, alone, strict=True))


@pytest.mark.parametrize(("max_tokens", "window"), [(1, 1), (9, 3), (20, 5), (1000, 100)])
def test_lines_keep_their_order_whatever_the_batches(max_tokens: int, window: int) -> None:
    translator = translator_of(beam=1)
    alone = [translator.all([translator.read(line)])[0][0].text for line in MIXED]
    found = translator.lines(iter(MIXED), max_tokens=max_tokens, window=window)
    assert [best[0].text for best in found] == alone


def test_an_empty_line_gives_an_empty_line() -> None:
    translator = translator_of()
    found = list(translator.lines(["", SOURCES[0], " \t ", ""]))
    assert [best == [NOTHING] for best in found] == [True, False, True, True]
    assert translator.all([]) == []


def test_lines_are_answered_as_soon_as_their_window_is_full() -> None:
    asked = []

    def typed() -> Any:
        for line in SOURCES[:3]:
            asked.append(line)
            yield line

    found = translator_of(beam=1).lines(typed(), window=1)
    next(found)
    assert len(asked) == 1


def test_a_line_that_is_too_long_is_an_error_with_its_number_or_is_skipped() -> None:
    translator = translator_of("transformer to transformer")  # reads 24 tokens
    assert translator.max_source == 24
    lines = [SOURCES[0], "the " * 24, "the " * 25, SOURCES[1]]
    with pytest.raises(RegardError, match="Line 3 has 25 tokens; at most 24 can be read"):
        list(translator.lines(lines))
    done: list[LinesDone] = []
    found = list(translator.lines(lines, skips_long=True, progress=done.append))
    assert [best == [NOTHING] for best in found] == [False, False, True, False]
    assert (done[-1].n_lines, done[-1].n_skipped) == (4, 1)
    with pytest.raises(RegardError, match="given a source of 25 tokens and reads at most 24"):
        translator.all([translator.read(line) for line in lines])
    assert translator_of("lstm to gru").max_source is None


def test_no_target_is_longer_than_the_model_has_room_for() -> None:
    translator = translator_of("transformer to transformer", max_ratio=50.0, max_length=500, beam=1)
    found = translator.all([translator.read(source) for source in SOURCES])
    assert max(len(best[0].tokens) for best in found) == 24


def test_a_target_of_bytes_may_be_as_long_as_its_source_asks_for() -> None:
    """A model that never ends: 3 S + 10 tokens are written, of 80 bytes 250, and no 200 of them."""
    prepared = tiny_prepared(kind="byte")
    model = loud_model(prepared, "bag to rnn")
    assert model.target.bias is not None
    with torch.no_grad():
        model.target.bias[prepared.target_tokenizer.eos] = -1000.0
    translator = Translator([model], prepared.source_tokenizer, prepared.target_tokenizer, BeamConfig(beam=1))
    (best,) = translator.translate([translator.read("r" * 80)])[0]
    assert len(best.tokens) == 250


@pytest.mark.parametrize("variant", ["lstm to gru", "lstm that copies"])
def test_two_equal_models_translate_as_one(variant: str) -> None:
    one, two = translator_of(variant, n_best=3), translator_of(variant, n=2, n_best=3)
    for a, b in zip(*(t.all([t.read(line) for line in MIXED]) for t in (one, two)), strict=True):
        assert [x.text for x in a] == [x.text for x in b]
        assert all(abs(x.log_prob - y.log_prob) < 1e-9 for x, y in zip(a, b, strict=True))


def test_two_models_are_the_mean_of_their_probabilities() -> None:
    """P("" | source) is the probability of the end as the first token."""
    prepared = tiny_prepared()
    models = [loud_model(prepared, "lstm to gru", seed) for seed in (1, 2)]

    def ends_at_once(models: list[Seq2Seq]) -> float:
        config = BeamConfig(beam=30, n_best=None, max_length=1, length_penalty="none")
        translator = Translator(models, prepared.source_tokenizer, prepared.target_tokenizer, config)
        found = translator.translate([translator.read(SOURCES[0])])[0]
        return float(torch.tensor(next(t.log_prob for t in found if t.tokens == ())).exp())

    a, b, both = (ends_at_once(some) for some in ([models[0]], [models[1]], models))
    assert abs(a - b) > 1e-4
    assert abs(both - (a + b) / 2) < 1e-6


def test_models_that_copy_and_others_do_not_translate_together() -> None:
    prepared = tiny_prepared()
    models = [loud_model(prepared, variant) for variant in ("lstm that copies", "lstm to gru")]
    with pytest.raises(RegardError, match="Some of these models copy words and some do not"):
        Translator(models, prepared.source_tokenizer, prepared.target_tokenizer, BeamConfig())


def test_the_best_targets_come_first_and_are_different() -> None:
    translator = translator_of(beam=6, n_best=6)
    for best in translator.all([translator.read(source) for source in SOURCES[:5]]):
        assert len(best) == 6
        assert [t.score for t in best] == sorted((t.score for t in best), reverse=True)
        assert len({t.tokens for t in best}) == 6


def copying(translator: Translator) -> Translator:
    """Models made to copy, always: the gate is all but shut."""
    for model in translator.models:
        gate = model.target.gate
        assert gate is not None
        torch.nn.init.zeros_(gate.weight)
        torch.nn.init.constant_(gate.bias, -60.0)
    return translator


@pytest.mark.parametrize("variant", ["lstm that copies", "transformer that copies"])
def test_unknown_words_are_copied_as_they_are_spelled(variant: str) -> None:
    translator = copying(translator_of(variant, beam=2))
    # Both rows have one unknown word with the same id, V, and each gets its own back.
    lines = ["Wug-9 Wug-9 Wug-9", "blick", "the red house"]
    first, second, third = (best[0].text for best in translator.all([translator.read(line) for line in lines]))
    assert set(first.split()) == {"Wug-9"}
    assert set(second.split()) == {"blick"}
    assert set(third.split()) <= {"the", "red", "house"}


def test_a_tag_is_read_before_its_source_and_is_not_copied() -> None:
    prepared = tiny_prepared()
    tokenizer = add_tags(prepared.source_tokenizer, ["<2de>", "<2fr>"])
    model = tiny_pair_model(prepared, **GRID["lstm that copies"][1])
    translator = Translator([model], tokenizer, prepared.target_tokenizer, BeamConfig(), tag="<2de>")
    plain = Translator([model], tokenizer, prepared.target_tokenizer, BeamConfig()).read("the red wug")
    tagged, other = translator.read("the red wug"), translator.read(" the red wug\n", "<2fr>")
    assert tagged.ids.tolist() == [tokenizer.id_of("<2de>"), *plain.ids.tolist()]
    assert other.ids.tolist() == [tokenizer.id_of("<2fr>"), *plain.ids.tolist()]
    assert plain.words is not None
    assert tagged.words is not None
    assert tagged.words.tolist() == [NOT_COPIED, *plain.words.tolist()]
    assert (tagged.text, tagged.unknown) == ("the red wug", ("wug",))
    assert len(translator.read("  ")) == 0  # nothing to translate, whatever into
    with pytest.raises(RegardError, match=r"The tag <2da> is not in the vocabulary. Did you mean '<2de>'\?.*<2fr>"):
        translator.read("the", "<2da>")


@pytest.mark.parametrize("variant", ["lstm to gru", "lstm that copies"])
def test_an_end_mark_that_is_spelled_out_is_read_as_in_training(variant: str) -> None:
    """An unknown word: the end of a source is no word of it."""
    translator = translator_of(variant)
    for text in ("the <eos> house", "<eos>", "<eos> <eos>"):
        prepared = Pairs.of([(text, "haus")], translator.source_tokenizer, translator.target_tokenizer)
        found = translator.read(text)
        assert found.ids.tolist() == prepared.source_ids(0).tolist()
        assert translator.source_tokenizer.eos not in found.ids
        assert found.words is None or len(found.words) == len(found.ids)


def test_a_target_is_always_one_line() -> None:
    """A model of bytes that writes nothing but line ends."""
    translator = translator_of("bag to rnn", kind="byte", beam=1)
    tokenizer, bias = translator.target_tokenizer, translator.models[0].target.bias
    assert bias is not None
    for text in ("\n", "\r"):
        torch.nn.init.zeros_(bias)
        with torch.no_grad():
            bias[tokenizer.encode(text)] = 1000.0
        written = translator.translate([translator.read("red")])[0][0]
        assert tokenizer.decode(written.tokens) == text * 7
        assert written.text == " " * 7
