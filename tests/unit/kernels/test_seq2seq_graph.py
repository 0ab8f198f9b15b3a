"""Writing in memory that stays in its place equals writing that copies its state about."""

import gc
import weakref
from typing import Any

import pytest
import torch
from tiny_seq2seq import VARIANTS, pairs, tiny_seq2seq

from regard.decode.beam import beam_search
from regard.decode.config import BeamConfig, SamplingConfig
from regard.decode.generate import sample_texts
from regard.kernels import seq2seq_graph
from regard.kernels.seq2seq_graph import pool_of, round_up
from regard.kernels.state import n_bytes
from regard.kernels.step_attention import plain_step_attention, plain_step_cross_attention
from regard.layers.attention import masked_attention
from regard.models.seq2seq_next_token import Translating

STEPS = 20
EACH = pytest.mark.parametrize("changes", VARIANTS, ids=lambda changes: "-".join(map(str, changes.values())) or "base")


def found(model: Any, lengths: list[int], is_static: bool, beam: int = 3, seed: int = 0, copies: bool = False) -> Any:
    batch = pairs(seed, lengths, copies=copies)
    writer = Translating(model, is_static=is_static)
    log_probs, state = writer.begin(batch.source, batch.mask, batch.words, STEPS)
    limits = [STEPS - 2 * i for i in range(len(lengths))]  # so that sources end one after another
    config = BeamConfig(beam=beam, n_best=2)
    return beam_search(writer, log_probs, state, config, max_lengths=limits, stop=0)


def assert_same(one: Any, other: Any) -> None:
    for first, second in zip(one, other, strict=True):
        assert [h.tokens for h in first] == [h.tokens for h in second]
        assert [h.log_prob for h in first] == pytest.approx([h.log_prob for h in second], rel=0, abs=1e-10)


@EACH
def test_a_search_finds_the_same(changes: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_seq2seq(**changes | {"max_context": 24})
    filled = []
    fill = seq2seq_graph.Seq2SeqGraph.fill
    monkeypatch.setattr(seq2seq_graph.Seq2SeqGraph, "fill", lambda *given: (filled.append(1), fill(*given)))
    copies = bool(changes.get("copies"))
    for seed, lengths in enumerate([[5, 2, 4], [3, 3, 1, 6, 2], [4, 1, 2]]):
        usual = found(model, lengths, is_static=False, seed=seed, copies=copies)
        assert not filled
        assert_same(found(model, lengths, is_static=True, seed=seed, copies=copies), usual)
        assert len(filled) == (0 if copies else 1)  # what copies needs its weights on the source each step
        filled.clear()


def test_batches_that_fit_share_their_memory_and_leave_nothing_in_it() -> None:
    model = tiny_seq2seq(max_context=24)
    usual = [
        found(model, lengths, is_static=False, seed=i) for i, lengths in enumerate([[9, 8, 7], [2, 1, 2], [9, 3, 8]])
    ]
    made = []
    original = seq2seq_graph.Seq2SeqGraph.__init__

    def counted(self: Any, *given: Any) -> None:
        made.append(self)
        original(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seq2seq_graph.Seq2SeqGraph, "__init__", counted)
        for i, lengths in enumerate([[9, 8, 7], [2, 1, 2], [9, 3, 8]]):
            assert_same(found(model, lengths, is_static=True, seed=i), usual[i])
    assert len(made) == 1


def test_one_text_each_is_the_same_too() -> None:
    for changes in ({}, {"encoder": "lstm", "decoder": "lstm", "attention": "mlp"}):
        model = tiny_seq2seq(**changes | {"max_context": 24})
        batch = pairs(1, [5, 2, 4, 3])
        texts = []
        for is_static in (False, True):
            writer = Translating(model, is_static=is_static)
            begun = writer.begin(batch.source, batch.mask, None, STEPS)
            config = SamplingConfig(temperature=0.0)
            texts.append(sample_texts(writer, *begun, config, max_lengths=[20, 4, 9, 13], stop=0))
        for one, other in zip(*texts, strict=True):
            assert one.tokens == other.tokens
            assert one.log_prob == pytest.approx(other.log_prob, rel=0, abs=1e-10)


def test_several_samples_of_a_source_are_the_same_too() -> None:
    """Each source is read once, and its row repeated before the first step."""
    for changes in ({}, {"encoder": "lstm", "decoder": "lstm", "attention": "mlp"}):
        model, batch, rows = tiny_seq2seq(**changes | {"max_context": 24}), pairs(1, [5, 2]), [0, 0, 0, 1, 1, 1]
        texts = []
        for is_static in (False, True):
            writer = Translating(model, is_static=is_static)
            log_probs, state = writer.begin(batch.source, batch.mask, None, STEPS)
            state = writer.reorder(state, torch.tensor(rows))
            config, limits = SamplingConfig(seed=2), [20, 20, 20, 9, 9, 9]
            texts.append(sample_texts(writer, log_probs[rows], state, config, max_lengths=limits, stop=0))
        assert [text.tokens for text in texts[0]] == [text.tokens for text in texts[1]]
        assert len({tuple(text.tokens) for text in texts[0]}) > 3


def test_short_targets_and_large_memory_go_the_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seq2seq_graph, "Seq2SeqGraph", None)  # nothing may be made
    model, batch = tiny_seq2seq(max_context=24), pairs(0, [3, 2])
    writer = Translating(model, is_static=True)
    _, state = writer.begin(batch.source, batch.mask, None, seq2seq_graph.MIN_STEPS - 1)
    state = writer.reorder(state, torch.tensor([1, 1, 0]))
    log_probs, state = writer.step(torch.tensor([1, 2, 3]), state)
    assert len(log_probs) == 3
    assert state.graph is None
    monkeypatch.setattr(seq2seq_graph, "CPU_BYTES", 1)
    found(model, [3, 2], is_static=True)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_seq2seq(max_context=24)
    for n in (1, 3, 5):
        found(model, [2] * n, is_static=True)
    pool = pool_of(model.target)
    assert [graph.static.room.n_sources for _, graph in pool.idle] == [1, 3, 5]
    largest = max(n_bytes(graph.static.state) for _, graph in pool.idle)
    monkeypatch.setattr(seq2seq_graph, "CPU_BYTES", largest)
    found(model, [2] * 3, is_static=True)
    assert [graph.static.room.n_sources for _, graph in pool.idle] == [3]


def test_what_is_kept_keeps_neither_the_model_nor_a_batch() -> None:
    model = tiny_seq2seq(max_context=24)
    found(model, [3, 2], is_static=True)
    graph = pool_of(model.target).idle[0][1]
    assert graph.source.states.untyped_storage().nbytes() == 0
    model_is_there, graph_is_there = weakref.ref(model.target), weakref.ref(graph)
    del model, graph
    gc.collect()
    assert model_is_there() is None
    assert graph_is_there() is None


def test_sizes_are_rounded_up_by_a_quarter_at_most() -> None:
    for n in range(1, 2000):
        assert n <= round_up(n) <= max(n, 1.25 * n)
    assert len({round_up(n) for n in range(1, 1025)}) < 45


def test_a_past_that_lies_in_other_rows() -> None:
    """Row 0 came from row 1 after the first position; its past is put together by hand."""
    draws = torch.Generator().manual_seed(0)
    keys, values = (torch.randn(2, 1, 4, 3, generator=draws, dtype=torch.float64) for _ in range(2))
    q, k, v = (torch.randn(2, 1, 1, 3, generator=draws, dtype=torch.float64) for _ in range(3))
    where = torch.tensor([[0, 1, 0, 7], [1, 1, 1, 7]], dtype=torch.int32)
    where[:, 3] = 0  # beyond the past, never read
    y = plain_step_attention(q, k, v, keys, values, torch.tensor([2]), where)
    for row, past in enumerate([[(0, 0), (1, 1)], [(1, 0), (1, 1)]]):
        own_k = torch.stack([keys[r, 0, t] for r, t in past] + [k[row, 0, 0]])
        own_v = torch.stack([values[r, 0, t] for r, t in past] + [v[row, 0, 0]])
        weights = (own_k @ q[row, 0, 0] / 3**0.5).softmax(dim=0)
        torch.testing.assert_close(y[row, 0, 0], weights @ own_v, rtol=0, atol=1e-12)


def test_rows_look_at_the_entries_they_are_told() -> None:
    draws = torch.Generator().manual_seed(1)
    k, v = (torch.randn(2, 2, 5, 4, generator=draws, dtype=torch.float64) for _ in range(2))
    q = torch.randn(3, 2, 1, 4, generator=draws, dtype=torch.float64)
    is_there = torch.arange(5) < torch.tensor([[5], [2]])
    y = plain_step_cross_attention(q, k, v, is_there, torch.tensor([1, 0, 1]))
    for row, entry in enumerate([1, 0, 1]):
        n = int(is_there[entry].sum())
        own = masked_attention(
            q[row : row + 1], k[entry : entry + 1, :, :n], v[entry : entry + 1, :, :n], is_there[entry : entry + 1, :n]
        )[0]
        torch.testing.assert_close(y[row : row + 1], own, rtol=0, atol=1e-12)
