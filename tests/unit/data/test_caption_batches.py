"""Batches of captions: every caption once an epoch, pictures cut and mirrored by (seed, epoch, caption) alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.caption_batches import CaptionBatches
from regard.data.caption_config import CaptionConfig
from regard.data.pictures import Pictures
from regard.data.prepared_captions import CaptionData, CaptionSet
from regard.errors import RegardError
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer

CAPTIONS = (("a dog runs", "dog"), ("two cats",), ("the left cat", "a cat sits here", "cat"))
WORDS = train_tokenizer(
    TokenizerConfig(kind="word", vocab_size=None), [f"{text}\n" for texts in CAPTIONS for text in texts]
)
SIZE = 8


def made_up(n_margin: int = 0, flips: bool = False) -> CaptionData:
    """Three pictures whose pixels tell their number, row and column."""
    side = SIZE + n_margin
    pixels = np.zeros((4, side, side, 3), dtype=np.uint8)
    pixels[..., 0] = np.arange(4)[:, None, None]
    pixels[..., 1] = np.arange(side)[:, None]
    pixels[..., 2] = np.arange(side)
    config = CaptionConfig(pictures="p", captions="c", size=SIZE, n_margin=n_margin, flips=flips)
    train = CaptionSet(("x", "y", "z"), (0, 2, 3), CAPTIONS)  # picture 1 could not be read
    none = CaptionSet((), (), ())
    return CaptionData(train, none, none, Pictures(pixels, {1: "why"}, tuple("abcd")), config, {})


def batches(data: CaptionData, n_batch: int = 2, tokenizer: Tokenizer = WORDS, **more: int | bool) -> CaptionBatches:
    return CaptionBatches(data, data.train, tokenizer, n_batch=n_batch, **more)  # type: ignore[arg-type]


def said(made: CaptionBatches, epoch: int) -> list[tuple[int, str]]:
    """(number of the picture, caption) of every row of an epoch."""
    found = []
    for i in range(made.per_epoch):
        batch = made.at(epoch * made.per_epoch + i)
        for number, targets, mask in zip(batch.numbers, batch.targets, batch.mask, strict=True):
            found.append((int(number), WORDS.decode(targets[mask]).strip()))
    return found


@given(n_batch=st.integers(1, 9), seed=st.integers(0, 5), epoch=st.integers(0, 40))
def test_every_epoch_says_every_caption_once_beside_its_picture(n_batch: int, seed: int, epoch: int) -> None:
    made = batches(made_up(), n_batch, seed=seed)
    wanted = [(number, text) for number, texts in zip((0, 2, 3), CAPTIONS, strict=True) for text in texts]
    assert sorted(said(made, epoch)) == sorted(wanted)
    assert made.per_epoch == -(-6 // n_batch)


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    orders = {tuple(said(batches(made_up(), seed=seed), epoch)) for seed in range(3) for epoch in range(4)}
    assert len(orders) >= 10


def test_a_caption_is_read_from_eos_on_and_predicts_eos_last() -> None:
    made = batches(made_up(), n_batch=6)
    batch = made.at(0)
    row = next(r for r in range(6) if WORDS.decode(batch.targets[r][batch.mask[r]]) == "two cats\n")
    two, cats = (WORDS.id_of(word) for word in ("two", "cats"))
    assert batch.inputs[row].tolist() == [0, two, cats, 0, 0]
    assert batch.targets[row].tolist() == [two, cats, 0, 0, 0]
    assert batch.mask[row].tolist() == [True, True, True, False, False]
    assert batch.inputs.dtype == batch.targets.dtype == np.int64


def test_a_batch_depends_on_its_number_alone() -> None:
    data = made_up(n_margin=5, flips=True)
    one, other = batches(data, seed=7), batches(data, seed=7)
    forward = [one.at(i) for i in range(9)]
    backward = [other.at(i) for i in reversed(range(9))][::-1]
    for a, b in zip(forward, backward, strict=True):
        for field in ("pictures", "numbers", "inputs", "targets", "mask"):
            np.testing.assert_array_equal(getattr(a, field), getattr(b, field))


def test_pictures_are_cut_out_anywhere_and_mirrored_half_of_the_time() -> None:
    made = batches(made_up(n_margin=2, flips=True), n_batch=6)
    corners, n_mirrored, n = set(), 0, 0
    for epoch in range(60):
        batch = made.at(epoch)
        assert batch.pictures.shape == (6, 3, SIZE, SIZE)
        for picture, number, targets in zip(batch.pictures, batch.numbers, batch.targets, strict=True):
            assert (picture[0] == number).all()
            top, first, last = int(picture[1, 0, 0]), int(picture[2, 0, 0]), int(picture[2, 0, -1])
            assert (picture[1] == top + np.arange(SIZE)[:, None]).all()
            assert abs(last - first) == SIZE - 1
            corners.add((top, min(first, last)))
            if "left" in WORDS.decode(targets):
                assert first < last  # a mirrored picture would make the caption wrong
            else:
                n, n_mirrored = n + 1, n_mirrored + (first > last)
    assert corners == {(i, j) for i in range(3) for j in range(3)}
    assert 0.4 < n_mirrored / n < 0.6


def test_outside_of_training_the_middle_is_seen() -> None:
    data = made_up(n_margin=4, flips=True)
    (seen,) = data.squares(data.train.numbers[2:])
    assert (seen[1, 0, 0], seen[2, 0, 0]) == (2, 2)


def test_long_captions_are_cut_and_then_have_no_end() -> None:
    batch = batches(made_up(), n_batch=6, max_tokens=3).at(0)
    assert batch.targets.shape == (6, 3)
    texts = {WORDS.decode(t[m]) for t, m in zip(batch.targets, batch.mask, strict=True)}
    assert {"a cat sits", "two cats\n", "a dog runs"} <= texts


def test_batches_of_nothing_are_refused() -> None:
    data = made_up()
    with pytest.raises(RegardError, match="The split has no pictures"):
        CaptionBatches(data, data.valid, WORDS, n_batch=2)
    with pytest.raises(RegardError, match="n_batch must be at least 1, not 0"):
        batches(data, 0)
