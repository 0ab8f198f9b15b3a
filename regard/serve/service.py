"""What the addresses of the API share: the runs, the workers that compute for them, and clients that go away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import Future
from typing import Any

from fastapi import Request

from regard.errors import RegardError
from regard.serve.heads import KeptHeads
from regard.serve.questions import Question
from regard.serve.served import ServedRuns
from regard.serve.verbs import VERBS
from regard.serve.worker import Limits, Worker, Writing

SLOW_LIMITS = Limits(n_waiting=8, n_batch=1, max_wait_seconds=120.0)
"""Of views that take seconds: few may wait, and they may wait longer."""


class Service:
    """What routes share: the runs, the workers that compute for all of them, and the heads that may be asked for."""

    def __init__(self, runs: ServedRuns, limits: Limits | None = None) -> None:
        self.runs = runs
        self.worker = Worker(limits)
        self.slow_worker = Worker(SLOW_LIMITS, yields=True)
        self.heads = KeptHeads()

    def stop(self) -> None:
        """Tell what still waits that it is too late, so that nobody holds up the server's end."""
        self.slow_worker.stop()
        self.worker.stop()

    def close(self) -> None:
        """Stop, and end both workers."""
        self.stop()
        self.slow_worker.close()
        self.worker.close()

    def count(self) -> dict[str, int]:
        """What waits and what has been done."""
        return self.worker.count() | {"waiting_for_slow_views": self.slow_worker.count()["waiting"]}

    def find(self, name: str, verb: str) -> Any:
        """The run of a request, checked to know the verb."""
        run = self.runs.find(name)
        if verb not in (known := self.runs.verbs[name]):
            can = f"It can be asked to {', '.join(known)}."
            raise RegardError(f"'{name}' is a run that {run.task.summary}, and cannot be asked to {verb}. {can}")
        return run

    async def ask(self, name: str, verb_name: str, question: Question) -> Any:
        """Answer a question together with others of its kind."""
        verb, run = VERBS[verb_name], self.find(name, verb_name)
        options = question.options()
        future = self.worker.ask(
            (name, verb_name, *options.values()),
            question.items(),
            lambda items: verb.answer(run, items, **options),
            question.size(),
        )
        return await asyncio.wrap_future(future)

    async def compute(self, request: Request, work: Callable[[], Any], size: int = 0, *, is_slow: bool = False) -> Any:
        """Do one thing by itself in a worker, in the second one where it is slow."""
        worker = self.slow_worker if is_slow else self.worker
        return await wait_for(request, worker.ask(object(), None, lambda _: [work()], size))


class GoneError(Exception):
    """Whoever asked went away: nobody reads the answer."""


async def wait_until_gone(request: Request) -> None:
    """Return when the client has gone away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def wait_for(request: Request, future: Future[Any]) -> Any:
    """The answer of the worker; where the client goes away before, the worker need not compute it."""
    answer = asyncio.wrap_future(future)
    gone = asyncio.ensure_future(wait_until_gone(request))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        answer.cancel()
        raise GoneError
    finally:
        gone.cancel()


async def follow(
    request: Request, worker: Worker, steps: Callable[[], Generator[Any, None, None]]
) -> AsyncIterator[Any]:
    """Everything that the worker writes, step by step; it stops writing when the client goes away."""
    loop, arrived = asyncio.get_running_loop(), asyncio.Queue[Any]()

    def tell(step: Any) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(arrived.put_nowait, step)

    writing: Writing = worker.write(steps, tell)
    gone = asyncio.ensure_future(wait_until_gone(request))
    gone.add_done_callback(lambda done: None if done.cancelled() else arrived.put_nowait(GoneError()))
    try:
        while (step := await arrived.get()) is not None:
            if isinstance(step, Exception):
                raise step
            yield step
    finally:
        gone.cancel()
        writing.stop()
