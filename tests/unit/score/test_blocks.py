from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.compare.rank import join_positions
from regard.data.stream import Stream
from regard.errors import RegardError
from regard.lens.passage import choose_passage, choose_prompt, measure_positions, surprise
from regard.lens.views import PositionPoint
from regard.score.blocks import (
    TestText,
    add_up_blocks,
    between,
    sample_documents,
    sample_stream,
    score_text,
)
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer

TEXT = "The cat sat on the mat. Ωμέγα – naïve café!\nA dog (brown) ran.\n" * 30


def tokenizer(kind: str) -> Tokenizer:
    size = {"bpe": 300, "wordpiece": 200}.get(kind)
    return train_tokenizer(TokenizerConfig(kind=kind, vocab_size=size), [TEXT])


def fake_run(kind: str, nats_per_token: float = 1.0) -> Any:
    """A run whose model gives every token the same number of nats."""
    model = SimpleNamespace(nats=lambda ids: np.full(len(ids), nats_per_token))
    return SimpleNamespace(tokenizer=tokenizer(kind), next_token=model)


def test_a_token_across_a_border_gives_each_side_its_share() -> None:
    # Tokens end at 4 and 10 and cost 8 and 12 nats: 2 nats a byte up to 4, then 2 nats a byte.
    found = between(np.array([0.0, 5.0, 10.0]), np.array([4.0, 10.0]), np.array([8.0, 12.0]))
    assert found.tolist() == [10.0, 10.0]
    found = between(np.array([0.0, 1.0, 10.0]), np.array([4.0, 10.0]), np.array([8.0, 12.0]))
    assert found.tolist() == [2.0, 18.0]


def test_a_token_without_length_counts_once() -> None:
    # <eos> at byte 4 costs 100 nats; wherever it falls, the total stays.
    for border in (3.0, 4.0, 5.0):
        ends, nats = np.array([4.0, 4.0, 8.0]), np.array([4.0, 100.0, 4.0])
        assert between(np.array([0.0, border, 8.0]), ends, nats).sum() == 108.0


@pytest.mark.parametrize("kind", ["char", "byte", "bpe", "word", "wordpiece"])
def test_blocks_hold_every_nat_of_the_text_whatever_the_tokens_are(kind: str) -> None:
    run = fake_run(kind)
    documents = (TEXT, "A dog ran", TEXT[:100])
    n_bytes = sum(len(d.encode()) for d in documents)
    test = TestText(documents, np.linspace(0, n_bytes, 8).round())
    scoring = score_text(run.next_token, run.tokenizer, test)
    blocks = add_up_blocks(scoring, test)
    nats = np.array([block["nats"] for block in blocks])
    assert sum(block["tokens"] for block in blocks) == pytest.approx(len(scoring.ids), abs=1e-9)
    ids = run.tokenizer.encode_documents([(d, True) for d in documents])
    assert scoring.ids.tolist() == ids.tolist()
    assert nats.sum() == pytest.approx(len(ids), abs=1e-9)
    assert sum(test.block_bytes) == n_bytes


def test_blocks_mean_the_same_text_for_different_tokens() -> None:
    # Every byte costs one nat under a byte tokenizer, so a block's nats are its bytes.
    test = TestText((TEXT,), np.linspace(0, len(TEXT.encode()), 6).round())
    run = fake_run("byte")
    scoring = score_text(run.next_token, run.tokenizer, test)
    nats = np.array([block["nats"] for block in add_up_blocks(scoring, test)])
    nats[-1] -= 1.0  # the <eos> of the document
    np.testing.assert_allclose(nats, test.block_bytes, rtol=0, atol=4)  # a character's bytes stay together


@pytest.mark.parametrize("kind", ["char", "byte", "bpe", "word", "wordpiece"])
def test_surprise_covers_the_passage_and_adds_up_to_its_cost(kind: str) -> None:
    run = fake_run(kind, nats_per_token=math.log(2))
    spans = surprise(run, TEXT[:80])
    assert sum(s.bits for s in spans) == pytest.approx(len(run.tokenizer.encode(TEXT[:80])), abs=1e-9)
    assert spans[0].start == 0
    assert all(a.end == b.start for a, b in itertools.pairwise(spans))
    assert spans[-1].end >= 79


def byte_run(nats_of: Callable[[NDArray[Any]], NDArray[np.float64]]) -> Any:
    learned = train_tokenizer(TokenizerConfig(kind="byte", vocab_size=None), ["abcdefgh "])
    return SimpleNamespace(tokenizer=learned, next_token=SimpleNamespace(nats=nats_of))


def by_position(run: Any, text: str) -> tuple[PositionPoint, ...]:
    return join_positions([measure_positions(run, TestText((text,), np.array([0.0, len(text)])))])


def test_loss_by_position_of_a_model_without_memory_is_flat_however_hard_the_text_is_in_places() -> None:
    run = byte_run(lambda ids: ids.astype(np.float64))  # some bytes always cost more than others
    text = "abcdefgh " * 500 + "zzzzzz" * 500
    points = by_position(run, text)
    assert [p.n_bytes_before for p in points] == [2, 6, 12, 24, 48, 96, 192, 384, 768]
    ids = run.tokenizer.encode(text)  # the end mark, id 0, costs nothing
    mean = ids.sum() / len(text) / math.log(2)
    assert [p.bits_per_byte for p in points] == pytest.approx([mean] * 9, abs=1e-9)


def test_loss_by_position_of_a_model_with_memory_falls_to_its_mean() -> None:
    # A token costs 3 nats where fewer than 100 tokens were seen, and 1 nat from then on.
    run = byte_run(lambda ids: np.where(np.arange(len(ids)) < 100, 3.0, 1.0))
    text = "abcdefgh " * 2000
    points = {p.n_bytes_before: p.bits_per_byte * math.log(2) for p in by_position(run, text)}
    mean = 1 + 2 * 100 / 18_000 + 1 / 18_000
    n = 48  # windows; the first begins where the text begins, so nothing is lost there
    assert points[6] == pytest.approx(mean + 2 * (n - 1) / n, abs=1e-6)
    assert points[96] == pytest.approx(mean + 2 * (n - 1) / n * (100 - 64) / 64, abs=1e-6)
    assert points[384] == pytest.approx(mean, abs=1e-6)


def stream_of(documents: list[str], kind: str) -> tuple[Stream, Tokenizer]:
    words = tokenizer(kind)
    return Stream.of(words.encode_documents([(d, True) for d in documents])), words


def test_the_test_text_is_what_the_stream_holds() -> None:
    documents = [TEXT[:700], "second document", TEXT[100:900]]
    found = sample_stream(*stream_of(documents, "byte"))
    assert found.documents == tuple(documents)
    assert (found.n_documents, found.n_documents_in_split) == (3, 3)
    assert found.ends == (True, True, True)


@pytest.mark.parametrize("kind", ["char", "byte", "bpe"])
def test_a_long_test_text_is_sampled_across_all_documents_alike_for_every_tokenizer(kind: str) -> None:
    documents = [f"Document {i}\n" + TEXT * (i + 1) for i in range(6)]
    found, same = sample_stream(*stream_of(documents, kind), max_bytes=9000), sample_documents(documents, 9000)
    assert (found.documents, found.ends, found.borders.tolist()) == (same.documents, same.ends, same.borders.tolist())
    assert len(found.documents) == 6
    assert 7000 < found.n_bytes <= 9000
    for part, whole, is_end in zip(found.documents, documents, found.ends, strict=True):
        assert part in whole
        assert whole.endswith(part) or not is_end
    sizes = [len(part.encode()) for part in found.documents]
    assert max(sizes) <= 9000 // 6  # an equal share of each, so that no long document decides alone
    assert min(sizes[2:]) > 1000
    assert sum(whole.startswith(part) for part, whole in zip(found.documents, documents, strict=True)) < 4


def test_of_very_many_documents_some_are_taken_evenly() -> None:
    documents = [f"Story {i:04d}. {'once upon a time ' * 5}\n" for i in range(1000)]
    found = sample_documents(documents, max_bytes=10_000)
    numbers = [int(text.split()[1][:4]) for text in found.documents]
    assert 90 < len(numbers) <= 103
    assert numbers[0] == 0
    assert numbers[-1] == 999
    assert {b - a for a, b in itertools.pairwise(numbers)} <= {9, 10, 11}
    assert all(found.ends)
    assert (
        found.describe() == f"{found.n_bytes:,} bytes in {len(numbers)} blocks from {len(numbers)} of 1,000 documents"
    )


def test_blocks_never_lie_across_a_document_border_and_say_whose_they_are() -> None:
    documents = [TEXT, "A dog ran.\n", TEXT[:1500]]
    found = sample_documents(documents)
    ends = np.cumsum([len(d.encode()) for d in documents])
    assert set(ends.tolist()) <= set(found.borders.tolist())
    assert list(found.document_of_block) == sorted(found.document_of_block)
    for number, size in enumerate(len(d.encode()) for d in documents):
        own = [n for n, i in zip(found.block_bytes, found.document_of_block, strict=True) if i == number]
        assert sum(own) == size
    assert found.document_of_block.count(1) == 1


@pytest.mark.parametrize("kind", ["byte", "word"])
def test_a_stretch_from_the_middle_is_not_ended_by_an_end_that_is_not_there(kind: str) -> None:
    run = fake_run(kind)
    test = TestText(("A dog ran", "A dog ran\n"), np.array([0.0, 9.0, 19.0]), (False, True))
    scoring = score_text(run.next_token, run.tokenizer, test)
    assert (scoring.ids == run.tokenizer.eos).sum() == 2  # the first keeps the two apart
    assert scoring.is_scored.tolist().count(False) == 1
    n_tokens = [len(run.tokenizer.encode("A dog ran"))] * 2
    assert [block["nats"] for block in add_up_blocks(scoring, test)] == [
        n_tokens[0],
        n_tokens[1] + (1 if kind == "word" else 2),  # <eos>, and the line end where that is not the same
    ]


def test_a_test_text_too_short_to_compare_on_says_so() -> None:
    chars = tokenizer("char")
    with pytest.raises(RegardError, match=r"The test text has 9 bytes, too few to compare models on"):
        sample_stream(Stream.of(chars.encode_documents([("A dog ran", True)])), chars)


def test_the_passage_is_read_from_a_line_start_to_a_word_end() -> None:
    text = "1 2 3 | 4 5 6 | 7\n" * 40 + "\n\n" + "Some prose that a person would read, with words in it. " * 20
    passage = choose_passage(text)
    assert passage.startswith("Some prose")
    assert 300 < len(passage) <= 460
    assert text[text.index(passage) + len(passage)] == " "
    assert choose_prompt(passage) == "Some prose that a"
