"""Batches: a pure function of the index, over a stream that is a ring."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from regard.data.batches import Batches, permute, vary_lengths
from regard.data.stream import Stream
from regard.errors import RegardError


def counting(n: int) -> Stream:
    """Tokens 1 .. n-1 and <eos>, so that a token tells its place."""
    return Stream.of([*range(1, n), 0])


def test_targets_follow_inputs_around_the_ring() -> None:
    stream = counting(50)
    for order in ("stream", "shuffle"):
        batches = Batches(stream, n_batch=3, n_context=7, seed=1, order=order)
        for i in range(3 * batches.per_epoch):
            batch = batches.at(i)
            assert batch.inputs.shape == batch.targets.shape == batch.mask.shape == (3, 7)
            assert batch.inputs.dtype == batch.targets.dtype == np.int64
            np.testing.assert_array_equal(batch.targets, (batch.inputs + 1) % 50)
            assert batch.mask.all()


def test_the_first_token_is_predicted_from_eos() -> None:
    batches = Batches(counting(12), n_batch=1, n_context=11, seed=0)
    seen = {(int(i), int(t)) for n in range(40) for i, t in zip(*_flat(batches.at(n)), strict=True)}
    assert (0, 1) in seen
    assert len(seen) == 12


def _flat(batch: object) -> tuple[np.ndarray, np.ndarray]:
    return batch.inputs.ravel(), batch.targets.ravel()  # type: ignore[attr-defined]


def test_rows_continue_in_stream_order_until_the_epoch_ends() -> None:
    batches = Batches(counting(101), n_batch=4, n_context=5, seed=3)
    assert batches.per_epoch == 5
    for i in range(15):
        batch, after = batches.at(i), batches.at(i + 1)
        assert batch.is_fresh == (i % 5 == 0)
        if not after.is_fresh:
            np.testing.assert_array_equal(after.inputs[:, 0], batch.targets[:, -1])


def test_an_epoch_shows_no_token_twice() -> None:
    for order in ("stream", "shuffle"):
        batches = Batches(counting(103), n_batch=4, n_context=5, seed=3, order=order)
        targets = np.concatenate([batches.at(i).targets.ravel() for i in range(batches.per_epoch)])
        assert len(np.unique(targets)) == len(targets) == 100


def test_epochs_differ_in_offset_and_order() -> None:
    for order in ("stream", "shuffle"):
        batches = Batches(counting(101), n_batch=4, n_context=5, seed=3, order=order)
        starts = {tuple(batches.at(e * batches.per_epoch).inputs[:, 0]) for e in range(8)}
        assert len(starts) == 8


def test_a_batch_depends_on_its_index_and_seed_alone() -> None:
    stream = counting(101)
    forwards = Batches(stream, n_batch=4, n_context=5, seed=3, order="shuffle")
    backwards = Batches(stream, n_batch=4, n_context=5, seed=3, order="shuffle")
    expected = [forwards.at(i).inputs for i in range(12)]
    for i in reversed(range(12)):
        np.testing.assert_array_equal(backwards.at(i).inputs, expected[i])
    other = Batches(stream, n_batch=4, n_context=5, seed=4, order="shuffle")
    assert any((other.at(i).inputs != expected[i]).any() for i in range(12))


def test_shuffled_batches_are_all_fresh() -> None:
    batches = Batches(counting(101), n_batch=4, n_context=5, order="shuffle")
    assert all(batches.at(i).is_fresh for i in range(10))


@pytest.mark.parametrize("order", ["stream", "shuffle"])
def test_a_text_smaller_than_a_batch_still_gives_one(order: str) -> None:
    batches = Batches(counting(9), n_batch=4, n_context=8, order=order)
    assert batches.per_epoch == 1
    np.testing.assert_array_equal(batches.at(5).targets, (batches.at(5).inputs + 1) % 9)


def test_a_text_shorter_than_one_window_is_refused_with_the_numbers() -> None:
    with pytest.raises(
        RegardError, match=r"The text has 5 tokens, and one window needs n_context \+ 1 = 9. .*n_context at most 4"
    ):
        Batches(counting(5), n_batch=1, n_context=8)


def test_wrong_orders_and_sizes_are_refused() -> None:
    with pytest.raises(
        RegardError, match=r"order must be one of stream, shuffle, not 'shufle'. Did you mean 'shuffle'"
    ):
        Batches(counting(5), n_batch=1, n_context=2, order="shufle")
    with pytest.raises(RegardError, match="n_batch and n_context must be at least 1, not 0 and 2"):
        Batches(counting(5), n_batch=0, n_context=2)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 17, 1000])
def test_permuted_is_a_permutation_and_another_seed_is_another(n: int) -> None:
    found = permute(np.arange(n), n, seed=7)
    assert sorted(found.tolist()) == list(range(n))
    np.testing.assert_array_equal(permute(np.arange(n)[n // 2 :], n, seed=7), found[n // 2 :])
    if n > 4:
        assert (permute(np.arange(n), n, seed=8) != found).any()


def test_permuted_mixes_well() -> None:
    found = permute(np.arange(10_000), 10_000, seed=1)
    assert abs(np.corrcoef(found, np.arange(10_000))[0, 1]) < 0.03
    assert np.mean(np.abs(np.diff(found)) == 1) < 0.002


def test_a_stream_over_shards_reads_like_one_array() -> None:
    ids = np.arange(20, dtype=np.uint16)
    stream = Stream((ids[:7], ids[7:8], ids[8:20]))
    assert len(stream) == 20
    for a in range(21):
        for b in range(a, 21):
            np.testing.assert_array_equal(stream[a:b], ids[a:b])
    np.testing.assert_array_equal(stream[-5:], ids[-5:])
    np.testing.assert_array_equal(stream.tokens, ids)
    assert stream[2:9].dtype == np.int64


def test_an_empty_stream_is_empty() -> None:
    stream = Stream(())
    assert (len(stream), len(stream[:]), len(stream.tokens), stream.bytes_per_token) == (0, 0, 0, 0.0)


def test_varied_lengths_fill_a_lane_and_have_the_mean_and_the_spread_of_the_paper() -> None:
    n_tokens, n_context = 700_000, 70
    lengths = vary_lengths(n_tokens, n_context, seed=1)
    assert lengths.sum() == n_tokens
    # 0.95 of 70 and 0.05 of 35: mean 68.25, variance 25 + 0.95 * 0.05 * 35^2 = 83.2; a mean of 10,000 is off by 0.09.
    assert abs(lengths.mean() - 68.25) < 0.3
    assert abs(lengths.std() - 83.2**0.5) < 0.3
    assert abs((lengths < 52).mean() - 0.05) < 0.008
    assert lengths.min() >= 5
    assert vary_lengths(10_000, 8, seed=1).min() == 5
    assert vary_lengths(100, 2, seed=1).min() >= 2
    assert (vary_lengths(7000, 70, seed=2)[:50] != vary_lengths(7000, 70, seed=3)[:50]).any()


@pytest.mark.parametrize("n_tokens", [2, 5, 9, 31, 100])
def test_varied_lengths_of_a_short_lane_add_up_too(n_tokens: int) -> None:
    for seed in range(20):
        lengths = vary_lengths(n_tokens, 9, seed)
        assert lengths.sum() == n_tokens
        assert lengths.min() >= min(5, n_tokens)


def test_windows_of_varying_length_show_every_token_once_an_epoch_and_continue_each_other() -> None:
    batches = Batches(counting(2001), n_batch=4, n_context=20, seed=3, varies_context=True)
    seen_lengths = []
    for epoch in range(3):
        indices = range(epoch * batches.per_epoch, (epoch + 1) * batches.per_epoch)
        found = [batches.at(i) for i in indices]
        targets = np.concatenate([batch.targets.ravel() for batch in found])
        assert len(np.unique(targets)) == len(targets) == 2000
        assert [batch.is_fresh for batch in found] == [True] + [False] * (len(found) - 1)
        for batch, after in pairwise(found):
            np.testing.assert_array_equal(after.inputs[:, 0], batch.targets[:, -1])
            assert batch.mask.shape == batch.inputs.shape
        lengths = [batch.inputs.shape[1] for batch in found]
        assert [batches.rate_factor(i) for i in indices] == [length / 20 for length in lengths]
        seen_lengths.append(lengths)
    assert sorted(seen_lengths[0]) == sorted(seen_lengths[1])  # the same lengths, in another order
    assert seen_lengths[0] != seen_lengths[1]
    assert len(set(seen_lengths[0])) > 5


def test_a_batch_of_varying_length_depends_on_its_index_and_seed_alone() -> None:
    stream = counting(501)
    forwards, backwards = (Batches(stream, n_batch=4, n_context=10, seed=3, varies_context=True) for _ in range(2))
    n = 4 * forwards.per_epoch
    expected = [forwards.at(i).inputs for i in range(n)]
    for i in reversed(range(n)):
        np.testing.assert_array_equal(backwards.at(i).inputs, expected[i])


def test_windows_of_one_length_leave_the_learning_rate_alone() -> None:
    for order in ("stream", "shuffle"):
        assert Batches(counting(50), n_batch=2, n_context=7, order=order).rate_factor(3) == 1.0


def test_shuffled_windows_of_varying_length_are_refused() -> None:
    with pytest.raises(RegardError, match="varies_context needs order stream, not shuffle"):
        Batches(counting(50), n_batch=2, n_context=7, order="shuffle", varies_context=True)
