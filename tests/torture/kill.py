"""Kills commands at random moments, goes on with them, and compares what they write with that of one never killed.

    python tests/torture/kill.py --seconds 600 --seed 0 --jobs 2

A case is a command that writes to a disk (`jobs.py` lists them): it is killed by SIGKILL one to four times, before its
n-th change of the disk or after a part of the time that it takes, each time gone on with, and at last left to end. A
case fails where the last command fails, where a bit is not that of a command that was never killed, or where something
half-written stays. Times of the clock alone may differ. `--only 123` runs one case again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from torture.forking import SAID, call_in_fork, fail, find_fast_disk, start, wait_for, warm_up  # noqa: E402
from torture.jobs import CACHE, OUT, Job, build, list_jobs  # noqa: E402

MAX_KILLS = 4
P_BY_CLOCK = 0.35
PARTIAL, BEFORE, LOCK = ".partial-", ".before-", ".lock"
CLOCK = re.compile(r"\w*seconds?\w*|\w*per_second|date|metrics_offset|metrics\.jsonl|run\.json|own_crc32")
"""Keys of JSON that hold times of the clock, the length of lines that do, or checksums of these."""
UNCOMPARED = re.compile(r"/logs/|speeds\.json$|README\.md$|\.(html|png|svg)$")
"""Files that hold times of the clock in other forms: they must be there, and no more."""
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "os.utime", "os.chmod"}


@dataclass(frozen=True)
class Reference:
    """What a job writes that is never killed, in how many changes of the disk, and how long it takes."""

    files: dict[str, str]
    n_changes: int
    seconds: float


@dataclass(frozen=True)
class Outcome:
    number: int
    job: str
    n_kills: int
    fault: str | None


def count_changes(act: Callable[[int], None]) -> None:
    """From now on, call `act` with 1, 2, ... before every change of the disk by this process."""
    n = 0

    def watch(event: str, given: tuple[Any, ...]) -> None:
        nonlocal n
        is_written = event == "open" and isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if is_written or event in CHANGES:
            n += 1
            act(n)

    sys.addaudithook(watch)


def kill_before(n: int) -> None:
    """Die before the n-th change of the disk."""

    def act(now: int) -> None:
        if now >= n:
            os.kill(os.getpid(), signal.SIGKILL)

    count_changes(act)


def summarise(folder: Path, job: Job) -> dict[str, str]:
    """A digest of every file that a job has written, and of what it left in the cache."""
    found = {}
    for name in (*job.out, CACHE):
        for path in sorted([folder / name] if (folder / name).is_file() else (folder / name).rglob("*")):
            if path.is_file() and "tensorboard" not in path.parts and path.name != LOCK:
                found[path.relative_to(folder).as_posix()] = _digest(path, path.relative_to(folder).as_posix())
    return found


def _digest(path: Path, name: str) -> str:
    if UNCOMPARED.search(name):
        return "there"
    data = path.read_bytes()
    if path.suffix in (".json", ".jsonl"):
        lines = data.splitlines() if path.suffix == ".jsonl" else [data]
        data = json.dumps([_without_times(json.loads(line)) for line in lines]).encode()
    return hashlib.sha256(data).hexdigest()


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(each) for key, each in value.items() if not CLOCK.fullmatch(key)}
    return [_without_times(each) for each in value] if isinstance(value, list) else value


def make_place(place: Path, corpus: Path, job: Job) -> Path:
    """A working folder for a job."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    fill_place(place, corpus, job)
    return place


def fill_place(place: Path, corpus: Path, job: Job) -> None:
    """Links to all that jobs read, and what is there when this one begins."""
    for item in corpus.iterdir():
        (place / item.name).symlink_to(item)
    if job.made:
        shutil.copytree(corpus / job.made, place / OUT)
        shutil.copytree(Path(os.environ["REGARD_CACHE"], "known"), place / CACHE / "known")


def begin(job: Job, folder: Path, is_again: bool = False, prepare: Callable[[], None] | None = None) -> int:
    words = shlex.split(job.again if is_again and job.again else job.words)
    return start(words, folder, {"REGARD_CACHE": str(folder / CACHE)}, prepare)


def measure(job: Job, corpus: Path, place: Path) -> Reference:
    """Run a job that nobody kills, twice: what is not the same in both can be compared with nothing."""
    first, second = (make_place(place / name, corpus, job) for name in ("first", "second"))
    counted = os.open(place / "counted", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    if wait_for(begin(job, first, prepare=lambda: count_changes(lambda _: _add_byte(counted)))):
        fail(f"'{job.name}' fails where nobody kills it: {(first / SAID).read_text()[-500:]}")
    os.close(counted)
    began = time.monotonic()
    wait_for(begin(job, second))
    seconds = time.monotonic() - began
    files, other = summarise(first, job), summarise(second, job)
    if files != other:
        fail(f"'{job.name}' does not write the same twice: {tell_difference(files, other)}")
    return Reference(files, (place / "counted").stat().st_size, seconds)


def _add_byte(file: int) -> None:
    os.write(file, b".")  # on an open file: no change that would be counted


def tell_difference(wanted: dict[str, str], found: dict[str, str]) -> str | None:
    """Which files are missing, new or have other bits; None: none."""
    missing, new = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    other = sorted(name for name in wanted.keys() & found.keys() if wanted[name] != found[name])
    told = [f"{what} {', '.join(names[:4])}" for what, names in
            (("missing:", missing), ("new:", new), ("other bits:", other)) if names]  # fmt: skip
    return "; ".join(told) or None


def find_leftovers(folder: Path, job: Job) -> list[str]:
    """What a killed command left, and the one after it should have removed."""
    left = [*folder.glob(f"{PARTIAL}*"), *folder.glob(f"{BEFORE}*")]
    for name in (*job.out, CACHE):
        left += [path for path in (folder / name).rglob("*") if path.name.startswith(PARTIAL) or path.name == LOCK]
    return sorted(path.relative_to(folder).as_posix() for path in left)


def age_leftovers(folder: Path) -> None:
    """Make what was left as old as leftovers are where nobody can be at work on them any more."""
    for path in sorted(folder.rglob(f"{PARTIAL}*")):
        for each in (path, *(path.rglob("*") if path.is_dir() else ())):
            os.utime(each, (time.time() - 2 * 24 * 3600,) * 2, follow_symlinks=False)


def run_case(number: int, seed: int, jobs: list[Job], references: dict[str, Reference], corpus: Path, place: Path,
             is_kept: bool = False) -> Outcome:  # fmt: skip
    """Kill one job some times, let it end, and compare."""
    draw = Random(f"{seed}/{number}")
    job = jobs[number % len(jobs)]
    wanted, folder, n_kills = references[job.name], make_place(place / str(number), corpus, job), 0
    for attempt in range(draw.randint(1, MAX_KILLS)):
        is_killed = _kill_once(job, folder, wanted, draw, is_again=attempt > 0)
        n_kills += is_killed
        if not is_killed:
            break
    age_leftovers(folder)
    fault = _finish(job, folder, wanted)
    if not is_kept or fault is None:
        shutil.rmtree(folder)
    return Outcome(number, job.name, n_kills, fault)


def _kill_once(job: Job, folder: Path, wanted: Reference, draw: Random, is_again: bool) -> bool:
    """Whether the command was killed, and did not end before."""
    if draw.random() < P_BY_CLOCK:
        process, ends = begin(job, folder, is_again), time.monotonic() + draw.uniform(0, 1.1 * wanted.seconds)
        while time.monotonic() < ends:
            time.sleep(0.001)
        os.kill(process, signal.SIGKILL)  # not waited for yet: it is ours, even where it has ended
        return wait_for(process) == -signal.SIGKILL
    n = draw.randint(1, wanted.n_changes)
    return wait_for(begin(job, folder, is_again, lambda: kill_before(n))) == -signal.SIGKILL


def _finish(job: Job, folder: Path, wanted: Reference) -> str | None:
    """Let the command end; what is wrong then, or None."""
    code, said = wait_for(begin(job, folder, is_again=True)), (folder / SAID).read_text()
    is_done = job.is_refused_when_done and tell_difference(wanted.files, summarise(folder, job)) is None
    if code == 2 and is_done:  # killed when all was written
        return None
    if code:
        return f"exit {code}: {said.strip()[-400:]}"
    if wait_for(start(["cache"], folder, {"REGARD_CACHE": str(folder / CACHE)})):
        return f"regard cache fails: {(folder / SAID).read_text()[-400:]}"
    if left := find_leftovers(folder, job):
        return f"left behind: {', '.join(left[:4])}"
    return tell_difference(wanted.files, summarise(folder, job))


def run_cases(numbers: list[int], seed: int, jobs: list[Job], references: dict[str, Reference], corpus: Path,
              place: Path, seconds: float, is_kept: bool = False) -> list[Outcome]:  # fmt: skip
    """Run cases one after the other, until all are done or the time is over."""
    ends, outcomes = time.monotonic() + seconds, []
    for number in numbers:
        if time.monotonic() > ends:
            break
        outcomes.append(run_case(number, seed, jobs, references, corpus, place, is_kept))
        if outcomes[-1].fault:
            print(f"case {number}, {outcomes[-1].job}: {outcomes[-1].fault}", flush=True)
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--job", default="", help="only jobs whose name has this in it")
    parser.add_argument("--only", type=int, help="one case alone")
    parser.add_argument("--keep", type=Path, help="a new folder to work in, where the folders of failed cases stay")
    given = parser.parse_args()
    warm_up()
    jobs = [job for job in list_jobs() if given.job in job.name]
    with tempfile.TemporaryDirectory(dir=find_fast_disk()) as folder:
        place = given.keep or Path(folder)
        (place / "corpus").mkdir(parents=True)
        os.environ["REGARD_CACHE"] = str(place / CACHE)
        call_in_fork(lambda: build(place / "corpus"))
        references = {job.name: measure(job, place / "corpus", place) for job in jobs}
        numbers = [given.only] if given.only is not None else list(range(given.first, given.first + given.cases))
        found = run_cases(numbers, given.seed, jobs, references, place / "corpus", place, given.seconds,
                          given.keep is not None)  # fmt: skip
    kills = Counter[str]()
    for outcome in found:
        kills[outcome.job] += outcome.n_kills
    print(", ".join(f"{name} {n}" for name, n in sorted(kills.items())))
    n_faults = sum(outcome.fault is not None for outcome in found)
    print(
        f"{sum(kills.values())} kills in {len(found)} cases of {len(jobs)} kinds, {n_faults} faults; seed {given.seed}"
    )
    sys.exit(bool(n_faults))


if __name__ == "__main__":
    main()
