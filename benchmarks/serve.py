"""`regard serve` under load: requests a second in batches and one at a time, waits, memory, and made-up requests.

    python benchmarks/serve.py                                  # batched against one at a time, 3 seconds each
    python benchmarks/serve.py --clients 200 --seconds 300      # 200 clients for five minutes, all verbs mixed
    python benchmarks/serve.py --cases 600 --run runs/a --run runs/b   # schemathesis on the OpenAPI document
    python benchmarks/serve.py --run runs/lstm                  # a run of your own

Without --run a character LSTM of two layers of width 512 is trained for a moment: how good it is makes no difference
to how fast it is served. The server has a process of its own, and so do the clients. Figures in docs/serving.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

WORDS = "the cat sat on a mat and then my old aunt left with her dog in the boat under the moon".split()  # noqa: SIM905
TINY = {
    "tokenizer": {"kind": "char"},
    "model": {"name": "lstm", "d_model": 512, "n_layers": 2},
    "train": {"max_steps": 3, "n_batch": 4, "n_context": 32, "eval_every": 3},
    "checkpoint": {"has_tensorboard": False},
    "data": {"train": "python-docs", "max_bytes": 300_000},
}
ALLOWED = (200, 429, 503)
MIX = ("score", "embed", "next", "generate", "leave")


@dataclass
class Load:
    """What clients saw."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    n_left: int = 0
    took: float = 0.0

    def describe(self) -> str:
        waits = 1e3 * np.array(self.seconds or [0.0])
        n = self.statuses[200]
        said = ", ".join(f"{count:,} x {status}" for status, count in sorted(self.statuses.items()))
        left = f", {self.n_left:,} went away" if self.n_left else ""
        return (
            f"{n / self.took:8.1f} answers a second   p50 {np.percentile(waits, 50):7.1f} ms   "
            f"p99 {np.percentile(waits, 99):7.1f} ms   ({said}{left})"
        )


@contextmanager
def serve(*runs: Path, n_batch: int) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: (its port, its process id)."""
    folders = map(str, runs)
    command = [sys.executable, "-m", "regard", "serve", *folders, "--no-browser", "--port", "0", "--device", "cpu"]
    process = subprocess.Popen([*command, "--max-batch", str(n_batch)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield int(line.strip().rstrip("/").rpartition(":")[2]), process.pid
    finally:
        process.terminate()
        process.wait(timeout=20)


def resident(pid: int) -> float:
    """Megabytes of a process that are in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def processor_seconds(pid: int) -> float:
    """Seconds of a CPU that a process has had, on a busy machine the steadier measure."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Client:
    """One connection that is kept; as little work as can be, so that the server is what is measured."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, path: str, body: dict[str, Any], *, leaves: bool = False) -> int:
        """The status of an answer that was read to its end; with `leaves`, the client goes away before it is there."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        assert self.reader is not None
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        if leaves:
            await asyncio.sleep(0.02)
            self.close()
            return 0
        status = int((await self.reader.readline()).split()[1])
        length, is_chunked = 0, False
        while (line := await self.reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            length = int(value) if name.lower() == "content-length" else length
            is_chunked |= name.lower() == "transfer-encoding"
        if is_chunked:
            while (size := int(await self.reader.readline(), 16)) > 0:
                await self.reader.readexactly(size + 2)
            await self.reader.readline()
        else:
            await self.reader.readexactly(length)
        return status

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


def question(verb: str, draw: random.Random) -> dict[str, Any]:
    text = " ".join(draw.choices(WORDS, k=20))
    if verb in ("generate", "leave"):
        return {"text": text[:20], "max_tokens": 20 if verb == "generate" else 500, "stream": True}
    return {"text": text}


async def press(port: int, name: str, verbs: tuple[str, ...], n_clients: int, seconds: float) -> Load:
    """So many clients at once, each asking again as soon as it has its answer."""
    load, end = Load(), time.perf_counter() + seconds

    async def be_client(number: int) -> None:
        draw, client = random.Random(number), Client(port)
        while time.perf_counter() < end:
            verb = draw.choice(verbs)
            began = time.perf_counter()
            path = f"/api/runs/{name}/{'generate' if verb == 'leave' else verb}"
            status = await client.ask(path, question(verb, draw), leaves=verb == "leave")
            if status == 0:
                load.n_left += 1
                continue
            load.seconds.append(time.perf_counter() - began)
            load.statuses[status] += 1
            if status in (429, 503):
                await asyncio.sleep(draw.uniform(0.5, 1.5))  # what Retry-After asks for
        client.close()

    began = time.perf_counter()
    await asyncio.gather(*(be_client(number) for number in range(n_clients)))
    load.took = time.perf_counter() - began
    return load


def compare_batching(run: Path, n_clients: int, seconds: float) -> dict[str, float]:
    """Score and embed in batches and one at a time; how many times as many requests a second."""
    rates: dict[tuple[str, int], float] = {}
    for n_batch in (1, 64):
        with serve(run, n_batch=n_batch) as (port, pid):
            for verb in ("score", "embed"):
                asyncio.run(press(port, run.name, (verb,), n_clients, min(1.0, seconds)))  # warm
                before = processor_seconds(pid)
                load = asyncio.run(press(port, run.name, (verb,), n_clients, seconds))
                cost = 1e3 * (processor_seconds(pid) - before) / max(1, load.statuses[200])
                assert set(load.statuses) <= set(ALLOWED), load.statuses
                rates[verb, n_batch] = load.statuses[200] / load.took
                told = f"{verb:6} {'one at a time' if n_batch == 1 else 'in batches':14} {load.describe()}"
                print(f"{told}   {cost:.2f} ms of a CPU each", flush=True)
    gains = {verb: rates[verb, 64] / rates[verb, 1] for verb in ("score", "embed")}
    print("   ".join(f"{verb}: {gain:.1f} times as many" for verb, gain in gains.items()))
    return gains


def endure(run: Path, n_clients: int, seconds: float) -> dict[str, Any]:
    """All verbs mixed, some clients going away; memory at tenths of the time."""
    with serve(run, n_batch=64) as (port, pid):
        asyncio.run(press(port, run.name, MIX, n_clients, min(10.0, seconds / 10)))
        whole, memory = Load(), [resident(pid)]
        for _ in range(10):
            load = asyncio.run(press(port, run.name, MIX, n_clients, seconds / 10))
            whole.seconds += load.seconds
            whole.statuses += load.statuses
            whole.n_left += load.n_left
            whole.took += load.took
            memory.append(resident(pid))
        print(f"{n_clients} clients, {whole.took:.0f} s: {whole.describe()}")
        print("memory, MB: " + " ".join(f"{size:.0f}" for size in memory))
    wrong = set(whole.statuses) - set(ALLOWED)
    if wrong:
        sys.exit(f"Answers that are not documented: {sorted(wrong)}")
    return {"seconds": whole.took, "statuses": dict(whole.statuses), "megabytes": memory}


def make_up_requests(runs: list[Path], n_cases: int) -> None:
    """schemathesis: requests made up from the OpenAPI document, right and wrong; none may be answered with a 500."""
    program = shutil.which("schemathesis", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        sys.exit("Requests are made up by schemathesis, which is not installed: pip install schemathesis")
    with serve(*runs, n_batch=64) as (port, _):
        command = [
            program, "run", f"http://127.0.0.1:{port}/api/openapi.json",
            "--checks", "not_a_server_error", "--max-examples", str(n_cases), "--phases", "fuzzing", "--seed", "1",
            "--suppress-health-check", "all", "--request-timeout", "60",
        ]  # fmt: skip
        done = subprocess.run(command, check=False)
    sys.exit(done.returncode)


def train_tiny(folder: Path) -> Path:
    from regard import api

    return Path(api.train(TINY, out=folder / "characters", is_tested=False).folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--run", type=Path, action="append", help="a run folder of a language model (default: a tiny one is trained); "
        "with --cases as many as you like, of any kind"
    )  # fmt: skip
    parser.add_argument("--clients", type=int, help="this many clients with all verbs mixed (default: the comparison)")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--tiny", action="store_true", help="a moment only, to see that it runs")
    parser.add_argument("--out", type=Path, help="write the figures as JSON too")
    parser.add_argument("--cases", type=int, help="this many made-up requests an address, by schemathesis")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = given.run or [train_tiny(Path(folder))]
        run = runs[0]
        if given.cases is not None:
            make_up_requests(runs, given.cases)
        elif given.clients is not None:
            figures = endure(run, given.clients, given.seconds)
        else:
            figures = compare_batching(run, 4 if given.tiny else 64, 0.2 if given.tiny else given.seconds)
        if given.out is not None:
            given.out.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
