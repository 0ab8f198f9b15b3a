"""A loaded model and what is kept for it can be used from several threads."""

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import torch
from tiny_seq2seq import pairs, tiny_seq2seq

from regard.decode.beam import beam_search
from regard.decode.config import BeamConfig
from regard.kernels.cuda_graph import Pool
from regard.kernels.device import sdpa_backend_for_any_shape
from regard.models.gradient_next_token import GradientNextToken
from regard.models.language_model import LanguageModel
from regard.models.seq2seq_next_token import Translating

N_THREADS = 4
Tiny = Callable[..., LanguageModel]


def at_once(call: Callable[[int], object]) -> list[object]:
    """What `call` gives in each of several threads that begin together."""
    barrier = Barrier(N_THREADS)

    def run(index: int) -> object:
        barrier.wait()
        return call(index)

    with ThreadPoolExecutor(N_THREADS) as threads:
        return list(threads.map(run, range(N_THREADS)))


def test_blocks_that_overlap_leave_the_attention_backend_as_it_was() -> None:
    before = torch.backends.cuda.cudnn_sdp_enabled()
    outer, inner = sdpa_backend_for_any_shape(), sdpa_backend_for_any_shape()
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)  # the first to begin is the first to end
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    inner.__exit__(None, None, None)
    assert torch.backends.cuda.cudnn_sdp_enabled() == before


def test_nothing_out_of_a_pool_is_in_two_hands() -> None:
    pool: Pool[list[int]] = Pool(lambda: N_THREADS)

    def borrow_often(index: int) -> bool:
        was_alone = True
        for _ in range(200):
            borrowed = pool.borrow("key", list)
            borrowed.thing.append(index)
            was_alone &= borrowed.thing == [index]
            borrowed.thing.clear()
            del borrowed
        return was_alone

    assert all(at_once(borrow_often))
    assert 1 <= len(pool.idle) <= N_THREADS


def test_a_pool_forgets_what_was_used_longest_ago() -> None:
    pool: Pool[list[int]] = Pool(lambda: 2)
    held = [pool.borrow(key, lambda key=key: [key]) for key in range(3)]  # type: ignore[misc]
    while held:
        held.pop(0)
    gc.collect()
    assert [thing for _, thing in pool.idle] == [[1], [2]]
    assert pool.borrow(1, lambda: [9]).thing == [1]
    assert pool.borrow(0, lambda: [9]).thing == [9]


def test_threads_read_with_one_language_model_as_if_alone(tiny_model: Tiny) -> None:
    for name in ("transformer", "lstm"):
        reader = GradientNextToken(tiny_model(name))

        def write(index: int, reader: GradientNextToken = reader) -> list[list[int]]:
            return list(reader.greedy(*reader.start(torch.tensor([[index + 1, 2]]), capacity=30), 20))

        assert at_once(write) == [write(index) for index in range(N_THREADS)]


def test_threads_write_with_one_translator_as_if_alone() -> None:
    writer = Translating(tiny_seq2seq(max_context=24), is_static=True)
    batches = [pairs(index, [5, 2, 4]) for index in range(N_THREADS)]

    def search(index: int) -> list[list[list[int]]]:
        batch = batches[index]
        begun = writer.begin(batch.source, batch.mask, None, 20)
        found = beam_search(writer, *begun, BeamConfig(beam=3), max_lengths=[20, 18, 16], stop=0)
        return [[hypothesis.tokens for hypothesis in each] for each in found]

    assert at_once(search) == [search(index) for index in range(N_THREADS)]
