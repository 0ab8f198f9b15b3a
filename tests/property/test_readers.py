"""What every encoder from scratch must keep to: padding and batch-mates change nothing, and windows lose no token."""

from itertools import chain

import numpy as np
import pytest
import tokenizers
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from regard.data.labelled_batches import LabelledBatches, pad_windows
from regard.data.labelled_windows import TextFramer, cut_windows
from regard.models.encoder import Encoder
from regard.models.encoder_from_scratch import FROM_SCRATCH, build_encoder
from regard.models.heads import ClassHead
from regard.models.reader import LayerChoice, Reader
from regard.models.table import model_config
from regard.tasks.labelled_objective import read_windows, to_tensors
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.marks import BERT_MARKS, ROBERTA_MARKS
from regard.text.tokenizer import Tokenizer

TINY = {"d_model": 8, "n_layers": 2, "d_hidden": 6, "n_heads": 2, "max_context": 12}


def build(name: str, is_bidirectional: bool = True) -> Encoder:
    torch.manual_seed(0)
    keys = model_config(name).to_dict()
    config = model_config(
        name, {key: value for key, value in TINY.items() if key in keys and (name, key) != ("lstm", "d_hidden")}
    )
    return build_encoder(name, config, 20, has_segments=True, is_bidirectional=is_bidirectional)


@pytest.mark.parametrize("name", FROM_SCRATCH)
def test_padding_and_batch_mates_change_no_state(name: str) -> None:
    encoder = build(name).double().eval()  # type: ignore[attr-defined]
    tokens = torch.randint(0, 20, (3, 9))
    mask = torch.arange(9) < torch.tensor([9, 5, 2])[:, None]
    segments = torch.randint(0, 2, (3, 9))
    whole = encoder.encode(tokens, mask, segments)
    assert len(whole) == encoder.n_layers + 1
    for b, n in enumerate((9, 5, 2)):
        alone = encoder.encode(tokens[b : b + 1, :n], mask[b : b + 1, :n], segments[b : b + 1, :n])
        for together, single in zip(whole, alone, strict=True):
            torch.testing.assert_close(together[b, :n], single[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["lstm", "convolution", "transformer"])
def test_a_state_hears_of_both_sides(name: str) -> None:
    encoder = build(name).double().eval()  # type: ignore[attr-defined]
    tokens, mask = torch.arange(5)[None], torch.ones(1, 5, dtype=torch.bool)
    changed = tokens.clone()
    changed[0, 4] = 11
    assert not torch.equal(encoder.encode(tokens, mask)[-1][0, 3], encoder.encode(changed, mask)[-1][0, 3])


def test_one_direction_does_not_hear_of_what_follows() -> None:
    encoder = build("lstm", is_bidirectional=False).double().eval()  # type: ignore[attr-defined]
    tokens, mask = torch.arange(5)[None], torch.ones(1, 5, dtype=torch.bool)
    changed = tokens.clone()
    changed[0, 4] = 11
    assert torch.equal(encoder.encode(tokens, mask)[-1][0, :4], encoder.encode(changed, mask)[-1][0, :4])


@given(st.integers(0, 60), st.integers(2, 12), st.integers(1, 14))
@settings(deadline=None)
def test_windows_keep_every_token_once_and_in_order(n: int, room: int, stride: int) -> None:
    kept = []
    for start, first, last, end in cut_windows(n, room, stride):
        assert start <= first <= last <= end
        assert end - start <= room
        kept += range(first, last)
    assert kept == list(range(n))


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=30), st.integers(3, 9))
@settings(deadline=None, max_examples=50)
def test_framed_words_have_places_of_their_own(words: list[str], limit: int) -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["a b c d e f g h"])
    windows = TextFramer(tokenizer, limit, None).frame_words(" ".join(words))
    found = [int(windows.tokens[w][t]) for w, t in windows.places]
    assert found == tokenizer.encode(" ".join(words)).tolist()
    assert all(len(row) <= limit for row in windows.tokens)
    assert all(windows.keeps[w][t] for w, t in windows.places)


def test_a_word_is_told_by_its_first_piece_or_by_its_last() -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="char", vocab_size=None), ["abc de f"])
    first, last = (TextFramer(tokenizer, None, takes_last=takes).frame_words("abc de f") for takes in (False, True))
    assert [t for _, t in first.places] == [0, 4, 7]
    assert [t for _, t in last.places] == [2, 5, 7]


def test_segments_tell_the_case_of_each_token_in_every_window() -> None:
    words = TokenizerConfig(kind="word", vocab_size=None, lowercase=True)
    framer = TextFramer(train_tokenizer(words, ["ann saw bbc iphone"]), 6, 2, has_case=True)
    windows = framer.frame(["Ann", "BBC saw Ann iPhone"])
    # twice the case, and one in the second text: Ann <eos> | BBC saw Ann <eos>, and Ann <eos> | Ann iPhone <eos>
    assert [row.tolist() for row in windows.segments] == [[2, 0, 5, 1, 3, 1], [2, 0, 3, 7, 1]]


def test_a_question_stands_in_every_window_of_its_passage() -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["who a b c d e f g h"])
    windows = TextFramer(tokenizer, 7, None).frame_question("who a", "a b c d e f g h")
    question = [*tokenizer.encode("who a").tolist(), tokenizer.eos]
    assert len(windows.tokens) > 1
    assert all(row[:3].tolist() == question for row in windows.tokens)
    passage = [int(windows.tokens[w][t]) for w, t in windows.places]
    assert passage == tokenizer.encode("a b c d e f g h").tolist()


def test_a_text_in_windows_is_read_the_same_alone_and_beside_others() -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["a b c d e f g h"])
    framer = TextFramer(tokenizer, 6, None)
    encoder = build_encoder(
        "transformer",
        model_config("transformer", {**{k: TINY[k] for k in ("d_model", "n_layers", "n_heads")}, "max_context": 6}),
        tokenizer.vocab_size,
    )
    torch.manual_seed(1)
    model = Reader(encoder, LayerChoice("last", 2, 8), ClassHead(8, 3, "mean", 0.0)).double()
    items = [framer.frame([text]) for text in ("a b c d e f g h a b c d e", "a", "b c d e f g h")]
    together = read_windows(model, items, False)
    for i, item in enumerate(items):
        torch.testing.assert_close(read_windows(model, [item], False)[0], together[i], rtol=0, atol=1e-12)


def test_batches_hold_every_text_once_an_epoch_and_depend_on_their_number_alone() -> None:
    lengths = [int(n) for n in np.random.default_rng(0).integers(1, 50, 103)]
    batches, again = LabelledBatches(lengths, 8, seed=3), LabelledBatches(lengths, 8, seed=3)
    epoch = [batches.indices(i).tolist() for i in range(batches.per_epoch)]
    assert sorted(chain.from_iterable(epoch)) == list(range(103))
    assert again.indices(20).tolist() == [*batches.indices(20)]
    assert epoch != [batches.indices(i + batches.per_epoch).tolist() for i in range(batches.per_epoch)]


def test_a_frozen_encoder_has_no_gradient_and_drops_nothing() -> None:
    encoder = build("lstm")
    model = Reader(encoder, LayerChoice("mix", 2, 8), ClassHead(8, 3, "attention", 0.0), is_frozen=True).train()
    tokenizer = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["a b c"])
    tokens, mask, keep, places, segments = to_tensors(pad_windows([TextFramer(tokenizer, None).frame(["a b", "c"])]))
    model(tokens, mask, keep, places, segments).sum().backward()
    assert all(p.grad is None for p in encoder.parameters())  # type: ignore[attr-defined]
    assert all(p.grad is not None for p in (*model.choice.parameters(), *model.head.parameters()))
    assert not encoder.training  # type: ignore[attr-defined]


def framed(*texts: str, marks: tuple[str, ...]) -> tuple[str, list[int]]:
    """What a vocabulary that begins with some marks makes of texts, as words, and the segment of each."""
    words = [*marks, *"abcde"]
    hf = tokenizers.Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token=marks[1]))
    hf.pre_tokenizer = WhitespaceSplit()
    windows = TextFramer(Tokenizer(hf), None).frame(texts)
    return " ".join(words[i] for i in windows.tokens[0]), windows.segments[0].tolist()


def test_texts_stand_between_the_marks_of_their_vocabulary() -> None:
    plain = ("<eos>", "<unk>")
    assert framed("a b", marks=plain) == ("a b <eos>", [0, 0, 0])
    assert framed("a b", "c", marks=plain) == ("a b <eos> c <eos>", [0, 0, 0, 1, 1])
    assert framed("a", "c d", marks=BERT_MARKS) == ("[CLS] a [SEP] c d [SEP]", [0, 0, 0, 1, 1, 1])
    assert framed("a", "c", marks=ROBERTA_MARKS) == ("<s> a </s> </s> c </s>", [0, 0, 0, 0, 0, 0])
