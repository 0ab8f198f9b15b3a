"""The worker: requests of one kind together, bounded queues, texts step by step, and those who go away."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from regard.errors import RegardError
from regard.serve.worker import BusyError, Limits, TooLateError, Worker

WAIT = 20.0


class Gate:
    """A computation that waits until it is let go, so that what comes meanwhile piles up."""

    def __init__(self) -> None:
        self.is_in, self.is_open = threading.Event(), threading.Event()

    def __call__(self, items: Sequence[Any]) -> list[Any]:
        self.is_in.set()
        assert self.is_open.wait(WAIT)
        return list(items)


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker(Limits(n_waiting=5, n_batch=3, n_writing=2, n_waiting_to_write=1))
    yield made
    made.close()


def block(worker: Worker) -> tuple[Gate, Future[Any]]:
    gate = Gate()
    answer = worker.ask("gate", None, gate)
    assert gate.is_in.wait(WAIT)
    return gate, answer


def test_requests_of_one_kind_that_wait_are_computed_together(worker: Worker) -> None:
    batches: list[list[Any]] = []

    def compute(items: Sequence[Any]) -> list[Any]:
        batches.append(list(items))
        return [item + 1 for item in items]

    gate, _ = block(worker)
    found = [worker.ask(key, item, compute) for key, item in [("a", 1), ("b", 10), ("a", 2), ("a", 3), ("a", 4)]]
    gate.is_open.set()
    assert [answer.result(WAIT) for answer in found] == [2, 11, 3, 4, 5]
    assert batches == [[1, 2, 3], [10], [4]]  # at most three, of one kind, the longest wait first


def test_long_texts_are_not_put_together_beyond_the_limit() -> None:
    worker = Worker(Limits(n_batch_characters=100))
    sizes: list[int] = []
    gate, _ = block(worker)
    for size in (60, 50, 40):
        worker.ask("a", size, lambda items: sizes.append(sum(items)) or list(items), size)  # type: ignore[func-returns-value]
    gate.is_open.set()
    worker.ask("end", 0, list).result(WAIT)
    worker.close()
    assert sizes == [100, 50]


def test_a_request_that_finds_no_room_is_told_so(worker: Worker) -> None:
    gate, _ = block(worker)
    for item in range(5):
        worker.ask("a", item, list)
    with pytest.raises(BusyError, match="5 requests are waiting already"):
        worker.ask("a", 5, list)
    gate.is_open.set()


def test_one_bad_request_does_not_spoil_its_batch(worker: Worker) -> None:
    def compute(items: Sequence[Any]) -> list[Any]:
        if 0 in items:
            raise RegardError("nought")
        return [10 // item for item in items]

    gate, _ = block(worker)
    found = [worker.ask("a", item, compute) for item in (1, 0, 2)]
    gate.is_open.set()
    assert found[0].result(WAIT) == 10
    assert found[2].result(WAIT) == 5
    with pytest.raises(RegardError, match="nought"):
        found[1].result(WAIT)


def test_who_goes_away_is_not_computed_for(worker: Worker) -> None:
    seen: list[Any] = []
    gate, _ = block(worker)
    gone = worker.ask("a", "gone", lambda items: seen.extend(items) or list(items))  # type: ignore[func-returns-value]
    assert gone.cancel()
    gate.is_open.set()
    worker.ask("b", "here", list).result(WAIT)
    assert seen == []
    assert worker.count()["stopped"] == 1


def test_a_request_that_waits_too_long_is_told_so() -> None:
    worker = Worker(Limits(max_wait_seconds=-1.0))
    with pytest.raises(TooLateError, match="waited"):
        worker.ask("a", 1, list).result(WAIT)
    worker.close()


def test_two_texts_take_turns_token_by_token() -> None:
    worker, said, ended = Worker(Limits(n_writing=2)), [], threading.Semaphore(0)
    gate, _ = block(worker)

    def count(name: str) -> Generator[Any, None, None]:
        yield from (f"{name}{i}" for i in range(2))

    for name in "ab":
        worker.write(lambda name=name: count(name), lambda step: ended.release() if step is None else said.append(step))  # type: ignore[misc]
    gate.is_open.set()
    assert ended.acquire(timeout=WAIT)
    assert ended.acquire(timeout=WAIT)
    worker.close()
    assert said == ["a0", "b0", "a1", "b1"]


def test_a_text_that_nobody_reads_is_written_no_further(worker: Worker) -> None:
    is_closed, steps = threading.Event(), []

    def write() -> Generator[Any, None, None]:
        try:
            yield from range(10**9)
        finally:
            is_closed.set()

    writing = worker.write(write, lambda step: steps.append(step) or (len(steps) == 3 and writing.stop()))  # type: ignore[func-returns-value]
    assert is_closed.wait(WAIT)
    assert steps == [0, 1, 2]


def test_only_so_many_texts_wait_to_be_written(worker: Worker) -> None:
    gate, _ = block(worker)
    endless = worker.write(lambda: iter(()), lambda step: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(BusyError, match="1 texts are waiting to be written"):
        worker.write(lambda: iter(()), lambda step: None)  # type: ignore[arg-type, return-value]
    endless.stop()  # one that was given up makes room
    worker.write(lambda: iter(()), lambda step: None)  # type: ignore[arg-type, return-value]
    gate.is_open.set()


def test_an_error_while_writing_reaches_the_reader(worker: Worker) -> None:
    told: Future[Any] = Future()

    def write() -> Generator[Any, None, None]:
        raise RegardError("no such prompt")
        yield

    worker.write(write, told.set_result)
    assert isinstance(told.result(WAIT), RegardError)


def test_a_worker_that_ends_tells_those_who_wait() -> None:
    worker = Worker()
    gate, _ = block(worker)
    late = worker.ask("a", 1, list)
    closing = threading.Thread(target=worker.close)
    closing.start()
    with worker._changed:
        worker._changed.wait_for(lambda: worker._is_closing, WAIT)
    gate.is_open.set()
    closing.join(WAIT)
    with pytest.raises(TooLateError, match="going down"):
        late.result(WAIT)
    with pytest.raises(TooLateError, match="going down"):
        worker.ask("a", 1, list)


def test_texts_get_as_much_time_as_what_is_computed_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]  # seconds, which only work lets pass
    monkeypatch.setattr("regard.serve.worker.time", SimpleNamespace(monotonic=lambda: clock[0]))
    worker, done, ended = Worker(Limits(n_batch=1)), [], threading.Event()

    def write() -> Generator[Any, None, None]:
        for _ in range(40):
            clock[0] += 1.0
            yield "token"

    def compute(items: Sequence[Any]) -> list[Any]:
        clock[0] += 10.0
        done.append("batch")
        return list(items)

    gate, _ = block(worker)
    worker.write(write, lambda step: ended.set() if step is None else done.append(step))
    answers = [worker.ask("a", item, compute) for item in range(3)]
    gate.is_open.set()
    for answer in answers:
        answer.result(WAIT)
    assert ended.wait(WAIT)
    worker.close()
    first, second, third = (i for i, what in enumerate(done) if what == "batch")
    assert second - first - 1 == 10
    assert third - second - 1 == 10
