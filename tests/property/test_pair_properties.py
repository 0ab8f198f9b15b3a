"""What holds for the batches of any pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regard.data.pair_batches import PairBatches, read_in_order
from regard.data.pairs import Pairs
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

BYTES = train_tokenizer(TokenizerConfig(kind="byte"), [])
LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=60)
ROOM = st.integers(81, 400)  # the longest pair has 40 + 40 + 1 tokens


def pairs_of(lengths: list[tuple[int, int]]) -> Pairs:
    """Every pair has letters of its own, as far as they go."""
    return Pairs.of([(chr(65 + i) * s, chr(66 + i) * t) for i, (s, t) in enumerate(lengths)], BYTES)


@given(LENGTHS, ROOM, st.integers(0, 2**63 - 1), st.integers(0, 5))
def test_every_pair_comes_exactly_once_an_epoch(
    lengths: list[tuple[int, int]], max_tokens: int, seed: int, epoch: int
) -> None:
    batches = PairBatches(pairs_of(lengths), max_tokens=max_tokens, seed=seed)
    seen: list[int] = []
    for step in range(batches.per_epoch):
        index = epoch * batches.per_epoch + step
        batch, numbers = batches.at(index), batches.indices(index)
        assert batch.source.size + batch.targets.size <= max_tokens
        for row, i in enumerate(numbers):
            assert batch.source[row][batch.source_mask[row]].tolist() == batches.pairs.source_ids(i).tolist()
            target = batches.pairs.target_ids(i).tolist()
            assert batch.inputs[row][batch.mask[row]].tolist() == [0, *target]
            assert batch.targets[row][batch.mask[row]].tolist() == [*target, 0]
        seen += numbers.tolist()
    assert sorted(seen) == list(range(len(lengths)))


@given(LENGTHS, ROOM, st.integers(0, 100))
def test_padding_is_zero_masked_and_at_the_end(lengths: list[tuple[int, int]], max_tokens: int, index: int) -> None:
    batch = PairBatches(pairs_of(lengths), max_tokens=max_tokens).at(index)
    for array, mask in ((batch.source, batch.source_mask), (batch.inputs, batch.mask), (batch.targets, batch.mask)):
        assert (array[~mask] == 0).all()
        assert (np.diff(mask.astype(int), axis=1) <= 0).all()
        assert mask.any(axis=0).all()  # no column is padding alone


@given(LENGTHS, ROOM, st.lists(st.integers(0, 200), min_size=1, max_size=8))
def test_a_batch_depends_on_its_number_alone(lengths: list[tuple[int, int]], max_tokens: int, asked: list[int]) -> None:
    pairs = pairs_of(lengths)
    used = PairBatches(pairs, max_tokens=max_tokens, seed=3)
    for index in asked:
        found, fresh = used.at(index), PairBatches(pairs, max_tokens=max_tokens, seed=3).at(index)
        for name in ("source", "source_mask", "inputs", "targets", "mask"):
            assert np.array_equal(getattr(found, name), getattr(fresh, name))


@given(LENGTHS, ROOM)
def test_batches_in_order_hold_every_pair_once(lengths: list[tuple[int, int]], max_tokens: int) -> None:
    pairs = pairs_of(lengths)
    seen: list[int] = []
    for numbers, batch in read_in_order(pairs, max_tokens):
        assert batch.source.size + batch.targets.size <= max_tokens
        assert batch.mask.sum(axis=1).tolist() == (pairs.target_lengths[numbers] + 1).tolist()
        seen += numbers.tolist()
    assert sorted(seen) == list(range(len(lengths)))
