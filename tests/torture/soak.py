"""Pipes millions of lines through `regard translate` and `regard predict`: the memory they take must stay flat.

    python tests/torture/soak.py --lines 10000000 --seconds 3600

Each command reads from a pipe that has no end in sight and is asked how much memory it holds after every twentieth of
the lines. It fails where a line is lost, or where it holds 16 MB more at the end than after the first fifth: a leak of
two bytes a line is seen in ten million.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from torture.forking import call_in_fork, fail, fork, run_command, wait_for, warm_up  # noqa: E402
from torture.jobs import build  # noqa: E402

MAX_GROWTH = 16 * 2**20
N_SAMPLES = 20
WIDE = "--window 8000 --max-tokens 65536"
COMMANDS = {
    "translate": f"translate runs/translation --beam 1 --max-length 2 {WIDE}",
    "translate by CTranslate2": f"translate runs/translation --engine ctranslate2 --beam 1 --max-length 2 {WIDE}",
    "predict": f"predict runs/classify {WIDE}",
}
WORDS = ("mat", "hat", "boat", "garden", "moon", "new", "strange", "ünknown")


@dataclass(frozen=True)
class Soaked:
    """How many lines went through in how many seconds, and how many bytes the command held on the way."""

    n_lines: int
    seconds: float
    held: list[int]

    @property
    def growth(self) -> int:
        """From after the first fifth to the end."""
        return self.held[-1] - self.held[len(self.held) // 5]

    @property
    def fault(self) -> str | None:
        return None if self.growth <= MAX_GROWTH else f"it holds {self.growth / 2**20:.0f} MB more than after a fifth"


def write_lines(pipe: int, n: int, ends: float) -> int:
    """Write up to `n` lines of changing words and lengths until the time is over; returns how many."""
    block = 1000
    with os.fdopen(pipe, "w", encoding="utf-8") as file:
        for first in range(0, n, block):
            if time.monotonic() > ends:
                return first
            # New numbers for ever: a cache of words that is never emptied would grow.
            file.write("".join(
                f"The {WORDS[i % 8]} {WORDS[i // 8 % 8]} {i if i % 5 == 0 else ''} was fine.\n"
                for i in range(first, min(n, first + block))
            ))  # fmt: skip
    return n


def held_by(process: int) -> int:
    """The bytes of memory that a process holds at this moment."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def soak(command: str, folder: Path, n: int, seconds: float) -> Soaked:
    """Pipe `n` lines through a command, or as many as the time allows."""
    to_child, from_parent = os.pipe()
    to_parent, from_child = os.pipe()

    def act() -> int:
        os.chdir(folder)
        for ours, theirs in ((to_child, 0), (from_child, 1)):
            os.dup2(ours, theirs)
        for each in (to_child, from_parent, to_parent, from_child):
            os.close(each)
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
        sys.argv = ["regard", *shlex.split(command)]
        return run_command()

    process, began = fork(act), time.monotonic()
    os.close(to_child)
    os.close(from_child)
    written: list[int] = []
    writer = threading.Thread(target=lambda: written.append(write_lines(from_parent, n, began + seconds)))
    writer.start()
    n_read, held = 0, list[int]()
    with os.fdopen(to_parent, "rb") as answers:
        for block in iter(lambda: answers.read1(2**16), b""):
            n_read += block.count(b"\n")
            if n_read * N_SAMPLES >= n * (len(held) + 1) and (bytes_now := held_by(process)):  # none: it has ended
                held.append(bytes_now)
    writer.join()
    if (code := wait_for(process)) or n_read != written[0]:
        fail(f"'{command}' ended with {code} after {n_read:,} answers to {written[0]:,} lines.")
    return Soaked(n_read, time.monotonic() - began, held)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=3600, help="for each command")
    parser.add_argument("--only", choices=COMMANDS, help="one command alone")
    given = parser.parse_args()
    warm_up()
    n_faults = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["REGARD_CACHE"] = f"{folder}/cache"
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        call_in_fork(lambda: build(corpus, {"translation", "classify"}))
        for name, command in COMMANDS.items():
            if given.only not in (None, name):
                continue
            found = soak(command, corpus, given.lines, given.seconds)
            n_faults += found.fault is not None
            rate = f"{found.n_lines / found.seconds:,.0f} a second"
            memory = " ".join(f"{held / 2**20:.0f}" for held in found.held)
            print(f"{name}: {found.n_lines:,} lines, {rate}; MB held: {memory}; {found.fault or 'flat'}", flush=True)
    sys.exit(bool(n_faults))


if __name__ == "__main__":
    main()
