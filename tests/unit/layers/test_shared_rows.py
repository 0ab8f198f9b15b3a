import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_seq2seq import pairs, tiny_seq2seq

from regard.kernels.kv_cache import KVCache
from regard.kernels.state import Shared, reorder
from regard.layers.cross_attention import CrossAttention, SourceKeysAndValues
from regard.layers.source_attention import SourceAttention
from regard.models.seq2seq_next_token import Translating

EXACT = {"rtol": 0, "atol": 1e-12}


def test_hypotheses_of_a_source_share_its_entry_without_a_copy() -> None:
    entries = (torch.tensor([10, 11, 12]),)
    wide = reorder(Shared(entries), torch.tensor([0, 0, 1, 1, 2, 2]))
    assert wide.n_each == 2
    assert wide.entries is entries
    moved = wide.rows(torch.tensor([1, 0, 3, 3, 4, 4]))  # within their sources
    assert moved.entries is entries
    fewer = moved.rows(torch.tensor([0, 1, 5, 4]))  # source 1 is done
    assert (fewer.entries[0].tolist(), fewer.n_each) == ([10, 12], 2)


@pytest.mark.parametrize("rows", [[0, 0, 1], [2, 1, 0, 0], []])
def test_rows_that_make_no_even_groups_get_an_entry_each(rows: list[int]) -> None:
    found = Shared((torch.tensor([10, 11, 12]),)).rows(torch.tensor(rows, dtype=torch.int64))
    assert (found.entries[0].tolist(), found.n_each) == ([10 + row for row in rows], 1)


@given(st.integers(1, 3), st.lists(st.integers(0, 5), min_size=1, max_size=9))
def test_every_row_finds_what_it_looked_at_before(n_each: int, rows: list[int]) -> None:
    before = Shared((torch.arange(6),), n_each)
    after = before.rows(torch.tensor(rows))
    seen = [int(after.entries[0][r // after.n_each]) for r in range(len(rows))]
    assert seen == [row // n_each for row in rows]


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape) + shape[0]), dtype=torch.float64)


MASK = torch.tensor([[True, True, True, False], [True, True, False, False]])
OWN = torch.tensor([0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("wants_weights", [False, True])
def test_cross_attention_to_a_shared_source_equals_that_to_copies(wants_weights: bool) -> None:
    attention = CrossAttention(6, 2).double()
    states, x = drawn(2, 4, 6), drawn(6, 2, 6)
    shared, copied = (
        attention(x, SourceKeysAndValues(*attention.keys_and_values(s), mask), None, wants_weights)
        for s, mask in ((states, MASK), (states[OWN], MASK[OWN]))
    )
    torch.testing.assert_close(shared, copied, **EXACT)


@pytest.mark.parametrize("score", ["dot", "bilinear", "mlp", "scaled-dot"])
def test_a_recurrent_decoders_look_at_a_shared_source_equals_that_at_copies(score: str) -> None:
    attention = SourceAttention(6, score).double()
    states, h = drawn(2, 4, 6), drawn(6, 2, 6)
    shared = attention(h, attention.start(states, MASK))
    torch.testing.assert_close(shared, attention(h, attention.start(states[OWN], MASK[OWN])), **EXACT)


@pytest.mark.parametrize("changes", [{}, {"copies": True}, {"encoder": "gru", "decoder": "lstm", "attention": "mlp"}])
def test_hypotheses_of_shared_sources_are_written_as_those_of_their_own(changes: dict[str, object]) -> None:
    """Two ways to three hypotheses of each source: in order they share it, mixed up they do not."""
    model = tiny_seq2seq(**changes)
    batch = pairs(1, [5, 3], copies=model.copies)
    writer = Translating(model)
    grouped, mixed = OWN, torch.tensor([0, 1, 0, 1, 1, 0])
    found = []
    for rows in (grouped, mixed):
        state = writer.reorder(writer.begin(batch.source, batch.mask, batch.words, 9)[1], rows)
        for token in (4, 2):
            log_probs, state = writer.step(torch.full((6,), token), state)
        found.append(log_probs)
    torch.testing.assert_close(found[0][[0, 3, 1, 4, 5, 2]], found[1], **EXACT)


def test_a_full_cache_grows_and_keeps_what_it_holds() -> None:
    keys, values = drawn(1, 2, 4, 3), drawn(2, 2, 4, 3)[:1]
    cache = KVCache(keys, values, 3)
    assert cache.with_room(1) is cache
    longer, _, n = cache.with_room(2)
    assert (longer.shape[2], n) == (8, 3)
    torch.testing.assert_close(longer[:, :, :4], keys, **EXACT)
    assert cache.with_room(12).keys.shape[2] == 15


def test_a_target_longer_than_the_first_cache_is_written_as_if_read_at_once() -> None:
    model = tiny_seq2seq(max_context=40)
    batch = pairs(2, [4, 6], [37, 37])
    source = model.encode(batch.source, batch.mask)
    whole = model.target.hidden(batch.inputs, source)[0]
    state = model.target.start(source, 37)
    parts = []
    for piece in torch.split(batch.inputs, [1, 1, 20, 1, 14], dim=1):
        h, state = model.target.hidden(piece, source, state)
        parts.append(h)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-10)
