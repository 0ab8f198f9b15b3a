"""What a masked language model is asked: how much is masked, how, and which texts follow each other."""

import json

import numpy as np
import pytest

from regard.data.masked_batches import MaskedBatches
from regard.data.masked_config import MaskingConfig
from regard.data.stream import Stream
from regard.errors import RegardError
from regard.text.bert_tokenizer import wordpiece_json
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.marks import BERT_MARKS
from regard.text.tokenizer import Tokenizer

N_DOCUMENTS, N_SENTENCES = 40, 30


DOCUMENTS = [" ".join(f"d{i} s{j} and unhappily it was so ." for j in range(N_SENTENCES)) for i in range(N_DOCUMENTS)]
TOKENIZER = train_tokenizer(TokenizerConfig(kind="wordpiece", vocab_size=120, has_marks=True), DOCUMENTS)
STREAM = Stream.of(TOKENIZER.encode_documents([(text, True) for text in DOCUMENTS]))
MARKS = TOKENIZER.marks
assert MARKS is not None


def batches(masking: MaskingConfig | None = None, n_batch: int = 64, **changes: object) -> MaskedBatches:
    options: dict[str, object] = {"n_context": 64, "has_pairs": True, "seed": 0} | changes
    return MaskedBatches(STREAM, TOKENIZER, masking or MaskingConfig(), n_batch=n_batch, **options)  # type: ignore[arg-type]


def test_fifteen_in_a_hundred_are_asked_for_and_of_these_eighty_hidden_ten_wrong_and_ten_kept() -> None:
    made = batches()
    read, targets, n_tokens = [], [], 0
    for index in range(40):
        batch = made.at(index)
        assert batch.is_there.all()
        read.append(np.take_along_axis(batch.tokens, batch.places, axis=1))
        targets.append(batch.targets)
        n_tokens += batch.tokens.size - 3 * len(batch.tokens)
    seen, right = np.concatenate(read).ravel(), np.concatenate(targets).ravel()
    assert abs(len(right) / n_tokens - 0.15) < 0.005  # 9 of 61 in every row
    n, hidden, kept = len(right), seen == MARKS.mask, seen == right
    for share, expected in ((hidden.mean(), 0.8), (kept.mean(), 0.1), ((~hidden & ~kept).mean(), 0.1)):
        assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / n)
    wrong = seen[~hidden & ~kept]
    assert not np.isin(wrong, MARKS.ids).any()
    assert len(set(wrong.tolist())) > 0.9 * (TOKENIZER.vocab_size - 5)


def test_no_mark_is_asked_for_and_nothing_is_padding() -> None:
    batch = batches().at(3)
    assert not np.isin(batch.targets, MARKS.ids).any()
    assert not (batch.tokens == MARKS.padding).any()
    assert (batch.tokens[:, 0] == MARKS.first).all()
    assert (batch.tokens[:, -1] == MARKS.separator).all()


def test_what_is_masked_differs_from_epoch_to_epoch_and_not_from_call_to_call() -> None:
    made = batches()
    assert all(
        np.array_equal(a, b) for a, b in zip(vars(made.at(5)).values(), vars(batches().at(5)).values(), strict=True)
    )
    first, later = made.at(0), made.at(made.per_epoch)
    assert not np.array_equal(first.places, later.places)
    assert not np.array_equal(first.tokens, batches(seed=1).at(0).tokens)


def test_half_of_the_second_texts_follow_the_first_and_the_others_are_of_other_documents() -> None:
    masking = MaskingConfig(p_masked=0.02, p_mark=0.0, p_wrong=0.0)  # what is read is what stood there
    made, n, n_next = batches(masking), 0, 0
    for index in range(40):
        batch = made.at(index)
        for row, segments, is_next in zip(batch.tokens, batch.segments, batch.is_next, strict=True):
            border = int(segments.argmax())
            a, b = (TOKENIZER.decode(part).split() for part in (row[:border], row[border:]))
            assert row[border - 1] == MARKS.separator
            documents = [[w for w in part if w.startswith("d")] for part in (a, b)]
            assert documents[0]
            assert documents[1]
            follows = documents[0][-1] == documents[1][0]
            assert follows == bool(is_next), TOKENIZER.decode(row)
        n, n_next = n + len(batch.tokens), n_next + int(batch.is_next.sum())
    assert abs(n_next / n - 0.5) < 4 * np.sqrt(0.25 / n)


def test_borders_are_ends_of_sentences() -> None:
    batch = batches(MaskingConfig(p_masked=0.02, p_mark=0.0, p_wrong=0.0)).at(0)
    stop = TOKENIZER.id_of(".")
    borders = batch.segments.argmax(axis=1)
    assert (batch.tokens[np.arange(len(borders)), borders - 2] == stop).all()


def test_whole_words_are_masked_with_all_their_pieces() -> None:
    masking = MaskingConfig(takes_words=True, p_mark=1.0, p_wrong=0.0)
    pieces = [TOKENIZER.token_text(i).startswith("##") for i in range(TOKENIZER.vocab_size)]
    n_there = n_places = 0
    for index in range(10):
        batch = batches(masking).at(index)
        whole = batch.tokens.copy()
        np.put_along_axis(whole, batch.places, batch.targets, axis=1)
        hidden = batch.tokens == MARKS.mask
        continues = np.array(pieces)[whole][:, 1:] & ~np.isin(whole[:, :-1], MARKS.ids)  # a row may begin within a word
        assert (hidden[:, 1:] == hidden[:, :-1])[continues].all()
        n_there, n_places = n_there + int(batch.is_there.sum()), n_places + batch.is_there.size
    assert n_there > 0.8 * n_places


def test_without_pairs_a_row_is_one_text() -> None:
    batch = batches(has_pairs=False).at(0)
    assert not batch.segments.any()
    assert batch.tokens.shape == (64, 64)
    assert (batch.tokens[:, 0] == MARKS.first).all()


def test_a_text_of_one_document_has_places_elsewhere_too() -> None:
    ids = TOKENIZER.encode_documents([(" ".join(DOCUMENTS), True)])
    made = MaskedBatches(Stream.of(ids), TOKENIZER, MaskingConfig(), n_batch=64, n_context=64, has_pairs=True)
    assert 0.3 < made.at(0).is_next.mean() < 0.7


def test_what_cannot_be_masked_is_refused() -> None:
    with pytest.raises(RegardError, match="more than 0"):
        MaskingConfig(p_masked=0.0)
    with pytest.raises(RegardError, match="more than all of it together"):
        MaskingConfig(p_mark=0.8, p_wrong=0.3)
    with pytest.raises(RegardError, match="leaves no room"):
        batches(n_context=6)


def test_a_vocabulary_of_marks_alone_is_refused() -> None:
    bare = Tokenizer.from_json(json.dumps(wordpiece_json({name: i for i, name in enumerate(BERT_MARKS)}, {})), "bare")
    stream = Stream.of(bare.encode_documents([(text, True) for text in DOCUMENTS]))
    with pytest.raises(RegardError, match=r"holds marks such as \[MASK\] alone, .* nothing can be masked"):
        MaskedBatches(stream, bare, MaskingConfig(), n_batch=4, n_context=16, has_pairs=False).at(0)
