"""Starts many commands at the same moment on one cache: none may fail, and none may spoil what another one makes.

    python tests/torture/starts.py --starts 1000 --wide 40 --seed 0

Commands start in waves. Those of a wave wait for one another, and read data that nobody has read before, so that all of
them make the same entries of the cache at once. A few are killed on the way, and a few empty the cache meanwhile
(`regard cache --clean`). A start fails where it ends with another exit code than 0 and was not killed, or where it
writes other bits than the others of its wave.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from torture.forking import SAID, call_in_fork, find_fast_disk, start, wait_for, warm_up  # noqa: E402
from torture.jobs import CACHE, OUT, build  # noqa: E402

P_KILLED, P_CLEANING = 0.03, 0.02
COMMANDS = (
    "train recipes/lstm.yaml --dry-run",
    "train recipes/bert.yaml --dry-run",
    "train recipes/translation.yaml --dry-run",
    "train recipes/parsing.yaml --dry-run",
    "train recipes/captions.yaml --dry-run",
    f"train recipes/ngram.yaml --out {OUT} --quiet",
    f"train recipes/classify.yaml --out {OUT} --quiet",
)
CLEAN = "cache --clean --json"


@dataclass(frozen=True)
class Started:
    """One command of a wave; `kill_after` are the seconds after which it is killed, None: it is not."""

    process: int
    folder: Path
    command: str
    kill_after: float | None


@dataclass(frozen=True)
class Counts:
    """How many starts there were, what was wrong with some of them, and how many were killed."""

    n_starts: int
    faults: list[str]
    n_killed: int


def make_data(corpus: Path, place: Path, wave: int) -> Path:
    """Data as in the corpus, with one line more: nobody has read them before."""
    folder = place / f"data-{wave}"
    folder.mkdir()
    for item in corpus.iterdir():
        if item.name != "data":
            (folder / item.name).symlink_to(item)
    shutil.copytree(corpus / "data", folder / "data")
    for name, line in (("few.txt", "wave {}."), ("pairs.tsv", "Wave {}.\tevaw {}."), ("reviews.tsv", "wave {}\tgood"),
                       ("few.mrg", "(S (NP (NN wave)) (VP (VBZ {})) (. .))")):  # fmt: skip
        with open(folder / "data" / name, "a") as file:
            file.write(line.replace("{}", str(wave)) + "\n")
    return folder


def run_wave(wave: int, n: int, seed: int, corpus: Path, place: Path) -> Counts:
    """Start `n` commands at once, kill some, and compare what the others wrote."""
    draw, data, gate = Random(f"{seed}/{wave}"), make_data(corpus, place, wave), os.pipe()
    started = [_start(i, draw, data, place / f"wave-{wave}", place / CACHE, gate) for i in range(n)]
    os.close(gate[0])
    os.close(gate[1])  # all that wait for it go
    began, waiting, codes = time.monotonic(), list(started), dict[int, int]()
    while waiting:
        for each in list(waiting):
            if each.kill_after is not None and time.monotonic() - began > each.kill_after:
                os.kill(each.process, signal.SIGKILL)
            found, status = os.waitpid(each.process, os.WNOHANG)
            if found:
                codes[each.process] = os.waitstatus_to_exitcode(status)
                waiting.remove(each)
        time.sleep(0.005)
    faults = [fault for each in started if (fault := _judge(each, codes[each.process])) is not None]
    whole = [each for each in started if codes[each.process] == 0]
    for command in COMMANDS:
        written = Counter(_digest(each.folder) for each in whole if each.command == command)
        faults += [f"wave {wave}, {command}: {len(written)} different results"] if len(written) > 1 else []
    shutil.rmtree(place / f"wave-{wave}")
    shutil.rmtree(data)
    return Counts(n, faults, sum(code == -signal.SIGKILL for code in codes.values()))


def _start(number: int, draw: Random, data: Path, place: Path, cache: Path, gate: tuple[int, int]) -> Started:
    command = CLEAN if draw.random() < P_CLEANING else draw.choice(COMMANDS)
    folder = place / str(number)
    folder.mkdir(parents=True)
    for item in data.iterdir():
        (folder / item.name).symlink_to(item)

    def wait_for_others() -> None:
        os.close(gate[1])
        os.read(gate[0], 1)

    process = start(shlex.split(command), folder, {"REGARD_CACHE": str(cache)}, wait_for_others)
    return Started(process, folder, command, draw.uniform(0, 3) if draw.random() < P_KILLED else None)


def _judge(started: Started, code: int) -> str | None:
    if code == 0 or (code == -signal.SIGKILL and started.kill_after is not None):
        return None
    said = (started.folder / SAID).read_text(errors="replace").strip()
    return f"{started.folder.parent.name}, {started.command}: exit {code}: {said[-400:]}"


def _digest(folder: Path) -> str:
    """Of the weights that a command wrote, or of what it printed where it trained nothing."""
    weights = folder / OUT / "model.safetensors"
    return hashlib.sha256((weights if weights.exists() else folder / SAID).read_bytes()).hexdigest()


def run_waves(n_starts: int, n_wide: int, seed: int, corpus: Path, place: Path, seconds: float) -> Counts:
    """Start wave after wave until enough have started or the time is over; then look at what the cache holds."""
    ends, found = time.monotonic() + seconds, Counts(0, [], 0)
    wave = 0
    while found.n_starts < n_starts and time.monotonic() < ends:
        n = min(n_wide, n_starts - found.n_starts)
        counts = run_wave(wave, n, seed, corpus, place)
        for fault in counts.faults:
            print(fault, flush=True)
        found = Counts(found.n_starts + n, found.faults + counts.faults, found.n_killed + counts.n_killed)
        wave += 1
    return Counts(found.n_starts, found.faults + check_cache(place), found.n_killed)


def check_cache(place: Path) -> list[str]:
    """What is wrong with the cache after all: a damaged entry, or leftovers of those that were killed an hour ago."""
    for path in (place / CACHE).rglob("*"):
        if any(part.startswith(".partial-") for part in path.parts):
            os.utime(path, (time.time() - 7200,) * 2)
    if wait_for(start(["cache", "--check", "--json"], place, {"REGARD_CACHE": str(place / CACHE)})):
        return [f"regard cache --check: {(place / SAID).read_text()[-400:]}"]
    damaged = '"removed": 0' not in (place / SAID).read_text()
    left = [path.name for path in (place / CACHE).rglob(".partial-*")]
    return ["the cache had damaged entries"] * damaged + [f"left behind: {', '.join(left[:4])}"] * bool(left)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=1000)
    parser.add_argument("--wide", type=int, default=40, help="how many start at once")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warm_up()
    with tempfile.TemporaryDirectory(dir=find_fast_disk()) as folder:
        place = Path(folder)
        (place / "corpus").mkdir()
        os.environ["REGARD_CACHE"] = str(place / "cache-of-corpus")
        call_in_fork(lambda: build(place / "corpus", {"captions"}))
        found = run_waves(given.starts, given.wide, given.seed, place / "corpus", place, given.seconds)
    killed = f"{found.n_killed} of them killed on purpose"
    print(f"{found.n_starts} starts, {given.wide} at a time, {killed}, {len(found.faults)} failures; seed {given.seed}")
    sys.exit(bool(found.faults))


if __name__ == "__main__":
    main()
