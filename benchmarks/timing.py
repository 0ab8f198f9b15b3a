"""What the benchmarks share: their options, the clock, and how figures are printed and kept.

torch is imported where it is needed: some benchmarks measure the memory of a process that has no use for it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def options(doc: str) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark has; `doc` is what its file begins with."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tiny", action="store_true", help="try the script: models and texts of almost no size, seconds on one core"
    )
    parser.add_argument("--out", type=Path, help="also write the figures into this file, as JSON")
    return parser


def pick_device(is_tiny: bool) -> torch.device:
    """The GPU; for a tiny run without one, the CPU."""
    import torch

    if torch.cuda.is_available():
        return torch.device("cuda")
    if is_tiny:
        return torch.device("cpu")
    raise SystemExit("This benchmark needs a GPU, and torch finds none. `--tiny` tries the script on the CPU.")


def describe_machine(rounds: int | None = None) -> str:
    import torch

    where = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {torch.get_num_threads()} threads"
    return f"torch {torch.__version__}, {where}" + ("" if rounds is None else f", {rounds} rounds")


def time_best(step: Callable[[], Any], n: int, n_warm: int = 5) -> tuple[float, float | None]:
    """Seconds a step, the best of three times `n`; and the peak of a GPU's memory in GiB."""
    import torch

    has_gpu = torch.cuda.is_available()
    if has_gpu:  # what a graph takes, it takes when it is captured
        torch.cuda.reset_peak_memory_stats()
    for _ in range(n_warm):
        step()
    if has_gpu:
        torch.cuda.synchronize()
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(n):
            step()
        if has_gpu:
            torch.cuda.synchronize()
        seconds.append((time.perf_counter() - began) / n)
    return min(seconds), torch.cuda.max_memory_allocated() / 2**30 if has_gpu else None


Taken = dict[str, list[tuple[float, float]]]
"""Seconds of every round of each side, on the clock and of the processor."""


def take_turns(sides: Mapping[str, Callable[[], Any]], rounds: int, n_warm: int = 1) -> Taken:
    """Time all sides in every round, so that whatever else the machine does falls on all of them."""
    taken: Taken = {name: [] for name in sides}
    for index in range(n_warm + rounds):
        for name, step in sides.items():
            began = time.perf_counter(), time.process_time()
            step()
            if index >= n_warm:  # before, allocators warm up and kernels are chosen
                taken[name].append((time.perf_counter() - began[0], time.process_time() - began[1]))
    return taken


class OwnProcess:
    """A side in a process of its own, with memory and allocator to itself; a call makes one step there."""

    def __init__(self, script: str, name: str, arguments: Sequence[str]) -> None:
        command = [sys.executable, script, "--side", name, *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self) -> tuple[float, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print("step", file=self._process.stdin, flush=True)
        clock, processor = self._process.stdout.readline().split()
        return float(clock), float(processor)

    def end(self) -> None:
        self._process.communicate()


def serve(step: Callable[[], Any]) -> None:
    """Make a step for each line of standard input, and print its seconds, on the clock and of the processor."""
    for _ in sys.stdin:
        began = time.perf_counter(), time.process_time()
        step()
        print(time.perf_counter() - began[0], time.process_time() - began[1], flush=True)


def take_turns_apart(script: str, names: Sequence[str], arguments: Sequence[str], rounds: int, n_warm: int) -> Taken:
    """Time sides that `script --side NAME` serves, each in a process of its own, in turns."""
    sides = {name: OwnProcess(script, name, arguments) for name in names}
    found = [{name: side() for name, side in sides.items()} for _ in range(n_warm + rounds)][n_warm:]
    for side in sides.values():
        side.end()
    return {name: [times[name] for times in found] for name in names}


class Figures(dict[str, Any]):
    """What was measured, printed as it comes."""

    def note(self, name: str, seconds: float, n_tokens: int, gib: float | None = None) -> None:
        self[name] = {"ms": seconds * 1e3, "tokens_per_second": n_tokens / seconds, "gib": gib}
        memory = "" if gib is None else f" {gib:6.2f} GiB"
        print(f"{name:60s} {seconds * 1e3:9.3f} ms {n_tokens / seconds:12,.0f} tokens/s{memory}", flush=True)

    def note_turns(self, what: str, taken: Taken, n_tokens: int, bar: float) -> None:
        """Median seconds of both sides, and the median over rounds of (their seconds / our seconds)."""
        for who, rounds in taken.items():
            self.note(f"{what}: {who}", median(clock for clock, _ in rounds), n_tokens)
        pairs = list(zip(*taken.values(), strict=True))
        self.note_ratio(f"{what}, ratio", median(theirs[0] / ours[0] for ours, theirs in pairs), bar=bar)
        self.note_ratio(f"{what}, ratio of the processor's time", median(b[1] / a[1] for a, b in pairs))

    def note_ratio(self, name: str, *ratios: float, bar: float | None = None) -> None:
        """Several ratios are of several measurements; the largest is kept."""
        self[name] = max(ratios)
        words = ", ".join(f"{ratio:.2f}x" for ratio in ratios)
        print(f"{name}: {words}" + ("" if bar is None else f" (bar {bar}x)"), flush=True)

    def write(self, path: Path | None) -> None:
        if path is not None:
            path.write_text(json.dumps(self, indent=1) + "\n")
