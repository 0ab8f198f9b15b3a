"""Encoding on all cores: other Python processes that are handed text and hand back ids.

They are plain subprocesses that talk over pipes, not `multiprocessing`: that needs the caller's script to guard its
main module, and forks what must not be forked. A worker ends when its input is closed, so none outlives us, however we
end. Results come back in the order of the batches, so the number of workers changes nothing but the time.
"""

from __future__ import annotations

import contextlib
import os
import queue
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import IO

import numpy as np

from regard.data.pieces import Piece
from regard.errors import RegardError
from regard.text.encoding import Ids
from regard.text.tokenizer import Tokenizer

MAX_WORKERS = 8  # each takes about 80 MB, and eight keep a reader of plain text busy
BYTES_A_WORKER = 16_000_000  # with less text than this, starting one takes longer than it saves

Batch = list[Piece]
_COMMAND = "from regard.data.workers import serve; serve()"


def count_workers(tokenizer: Tokenizer, n_bytes: int) -> int:
    """How many workers to start; 0: encode in this process."""
    if tokenizer.is_quick:
        return 0  # text can hardly be handed over faster than it is encoded
    n_workers = min(count_cores(), n_bytes // BYTES_A_WORKER, MAX_WORKERS)
    return n_workers if n_workers > 1 else 0


def count_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def encode_batches(batches: Iterable[Batch], tokenizer: Tokenizer, n_workers: int) -> Iterator[Ids]:
    """The ids of each batch, in order."""
    if n_workers == 0:
        yield from (tokenizer.encode_documents(batch) for batch in batches)
        return
    idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
    workers = [_Worker(tokenizer.json) for _ in range(n_workers)]
    for worker in workers:
        idle.put(worker)

    def encode(batch: Batch) -> Ids:
        worker = idle.get()
        try:
            return worker.encode(batch)
        finally:
            idle.put(worker)

    waiting: deque[Future[Ids]] = deque()
    with ThreadPoolExecutor(n_workers) as threads:  # a thread waits for a worker
        try:
            for batch in batches:
                waiting.append(threads.submit(encode, batch))
                if len(waiting) > 2 * n_workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            for worker in workers:
                worker.stop()


class _Worker:
    def __init__(self, tokenizer_json: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us to handle
            # One core each: the tokenizers library would start threads for all of them in every worker.
            env=os.environ
            | {"TOKENIZERS_PARALLELISM": "false", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        with contextlib.suppress(BrokenPipeError):  # it has died already, which the first batch tells
            _send(self._to, tokenizer_json.encode())

    def encode(self, batch: Batch) -> Ids:
        texts = [piece.text.encode() for piece in batch]
        try:
            _send(self._to, np.array([len(text) for text in texts], dtype=np.int64).tobytes())
            _send(self._to, bytes(piece.ends for piece in batch))
            _send(self._to, b"".join(texts))
            answer = _receive(self._from)
        except (BrokenPipeError, ValueError):  # it is gone; ValueError: we closed the pipe ourselves
            answer = None
        if answer is None:
            raise RegardError(
                f"An encoding process was stopped (exit code {self._process.wait()}), for lack of memory perhaps. "
                "Nothing half-written is left; start again."
            )
        return np.frombuffer(answer, dtype=np.int32)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):  # text that was never read
            self._to.close()
        self._from.close()


def serve() -> None:
    """A worker's life: the tokenizer, then batches in and ids out until the input is closed."""
    source, answers = sys.stdin.buffer, sys.stdout.buffer
    first = _receive(source)
    if first is None:
        return
    tokenizer = Tokenizer.from_json(first.decode())
    while (lengths := _receive(source)) is not None:
        ends, data = _receive(source), _receive(source)
        if ends is None or data is None:
            return
        bounds = np.concatenate([[0], np.cumsum(np.frombuffer(lengths, dtype=np.int64))]).tolist()
        texts = (data[begin:end].decode() for begin, end in pairwise(bounds))
        pieces = ((text, bool(end)) for text, end in zip(texts, ends, strict=True))
        try:
            _send(answers, tokenizer.encode_documents(pieces).tobytes())
        except BrokenPipeError:  # whoever asked is gone, and no one is left to read a traceback
            os._exit(0)


def _send(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(struct.pack("<q", len(message)))
    pipe.write(message)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes | None:
    """One message, or None where the other side is gone."""
    head = pipe.read(8)
    if len(head) < 8:
        return None
    (length,) = struct.unpack("<q", head)
    message = pipe.read(length)
    return message if len(message) == length else None
