"""What comes next, where a model has little to say."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from tiny_bert import TEXT

from regard.cli.next_word import format_next
from regard.lens.next_word import NextWord, find_next, tell_places
from regard.models.bert_config import BertConfig
from regard.models.table import build_model
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

CONFIG = BertConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_context=16)


def test_a_bert_that_expects_no_beginning_of_a_word_shows_its_pieces() -> None:
    pieces = [SimpleNamespace(text=text, probability=0.2) for text in ("##s", "##ed", "##ing", "##er")]
    words = train_tokenizer(TokenizerConfig(kind="wordpiece", vocab_size=60, has_marks=True), [TEXT])
    run = SimpleNamespace(
        model=build_model("bert", CONFIG, words.vocab_size), folder=Path("made"),
        marks=SimpleNamespace(mask_name="[MASK]"),
        tokenizer=words, fill=lambda text, n: SimpleNamespace(places=[pieces[:n]]),
    )  # fmt: skip
    found = find_next(run, "the [MASK]", n=1)
    assert dict(found.distributions) == {"tokens": [("##s", 0.2)]}
    assert found.best == ("##s", 0.2)


def test_models_that_predict_other_places_say_so() -> None:
    gram, bert = (
        NextWord(name=name, text="a [MASK] b", distributions={"tokens": [("x", 1.0)]}, place=place)
        for name, place in (("gram", "after the text"), ("bert", "in the last [MASK]"))
    )
    assert [each.notes for each in tell_places([gram, gram])] == [(), ()]
    first, second = tell_places([gram, bert])
    assert (first.notes, second.notes) == (
        (),
        ("Another place than that of gram: in the last [MASK], not after the text.",),
    )
    lines = list(format_next([first, second]))
    assert lines[0].split("  ")[0] == "gram (after the text)"
    assert "bert (in the last [MASK])" in lines[0]
