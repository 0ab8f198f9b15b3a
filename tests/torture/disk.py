"""Runs commands on disks that become full: each must end in a sentence, and be gone on with once there is room.

    sudo python tests/torture/disk.py --seconds 300 --seed 0

A case is a command that writes to a disk (`jobs.py` lists them) on a file system in memory that has room for a part of
what it writes, cache included. It fails where the command ends by a signal, in a traceback, without a word or with an
exit code other than 0, 1 and 2; where it cannot be gone on with when the disk is made larger; and where a bit is not
that of a command that had room. Who may not mount gets a limit on the size of a file instead. `--only 123` runs one
case again.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from torture.forking import call_in_fork, fail, start, wait_for, warm_up  # noqa: E402
from torture.jobs import CACHE, Job, build, list_jobs  # noqa: E402
from torture.kill import age_leftovers, fill_place, find_leftovers, summarise, tell_difference  # noqa: E402

PAGE = 4096  # bytes: a file system in memory counts in these
ROOM = "size=512m"
CODES = (0, 1, 2)


@dataclass(frozen=True)
class Reference:
    """What a job writes where there is room, how many bytes that is, and how large its largest file."""

    files: dict[str, str]
    n_bytes: int
    largest: int


@dataclass(frozen=True)
class Outcome:
    number: int
    job: str
    code: int
    fault: str | None


def can_mount() -> bool:
    """Whether this user may mount a file system."""
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "none", folder], capture_output=True).returncode:
            return False
        subprocess.run(["umount", folder], check=True)
        return True


@contextmanager
def mount(folder: Path, options: str) -> Iterator[Callable[[str], None]]:
    """A file system in memory at `folder`; gives a function that changes its options."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True)
    try:
        yield lambda changed: _remount(folder, changed)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


def _remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)


@contextmanager
def no_mount(folder: Path, _: str = "") -> Iterator[Callable[[str], None]]:
    """A plain folder, for who may not mount."""
    folder.mkdir(parents=True)
    try:
        yield lambda options: None
    finally:
        shutil.rmtree(folder)


def run(job: Job, folder: Path, is_again: bool = False, max_file: int | None = None) -> tuple[int, str]:
    """The exit code of a job, and what it said; `max_file` limits the bytes of a file."""

    def limit() -> None:
        if max_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (max_file, resource.RLIM_INFINITY))

    said = folder.with_name("said")  # not on the full disk
    words = shlex.split(job.again if is_again and job.again else job.words)
    code = wait_for(start(words, folder, {"REGARD_CACHE": str(folder / CACHE)}, limit, said))
    return code, said.read_text(errors="replace")


def measure(job: Job, corpus: Path, place: Path) -> Reference:
    with no_mount(place / "disk") as _:
        fill_place(place / "disk", corpus, job)
        n_before = count_pages(place / "disk", job)
        code, said = run(job, place / "disk")
        if code:
            fail(f"'{job.name}' fails where there is room: {said[-500:]}")
        n_pages = max(1, count_pages(place / "disk", job) - n_before // 2)  # what was there before is partly replaced
        largest = max(size for size in list_sizes(place / "disk", job))
        return Reference(summarise(place / "disk", job), PAGE * n_pages, largest)


def list_sizes(folder: Path, job: Job) -> list[int]:
    """The sizes of all files that a job writes, and of those in their place before."""
    paths = [path for name in (*job.out, CACHE) for path in ((folder / name), *(folder / name).rglob("*"))]
    return [path.stat().st_size for path in paths if path.is_file()]


def count_pages(folder: Path, job: Job) -> int:
    return sum(-(-size // PAGE) for size in list_sizes(folder, job))


def run_case(number: int, seed: int, jobs: list[Job], references: dict[str, Reference], corpus: Path, place: Path,
             mounts: bool) -> Outcome:  # fmt: skip
    """Run a job on a disk that has room for a part, make the disk larger, and go on."""
    draw = Random(f"{seed}/{number}")
    job = jobs[number % len(jobs)]
    wanted = references[job.name]
    room, largest = draw.randint(1, wanted.n_bytes // PAGE + 1), draw.randint(1, wanted.largest)
    with (mount if mounts else no_mount)(place / "disk", ROOM) as change:
        fill_place(place / "disk", corpus, job)
        change(f"size={(count_pages(place / 'disk', job) + room) * PAGE}")
        code, said = run(job, place / "disk", max_file=None if mounts else largest)
        fault = judge(code, said)
        if fault is None:
            change(ROOM)
            age_leftovers(place / "disk")
            fault = _go_on(job, place / "disk", wanted)
    return Outcome(number, job.name, code, fault)


def judge(code: int, said: str) -> str | None:
    """What is wrong with the end of a command on a full disk; None: nothing."""
    if "Traceback (most recent call last)" in said or code not in CODES:
        return f"exit {code}: {said.strip()[-400:]}"
    return None if code == 0 or said.strip() else f"exit {code} without a word"


def _go_on(job: Job, folder: Path, wanted: Reference) -> str | None:
    code, said = run(job, folder, is_again=True)
    difference = tell_difference(wanted.files, summarise(folder, job))
    if code and not (code == 2 and job.is_refused_when_done and difference is None):
        return f"cannot be gone on with, exit {code}: {said.strip()[-400:]}"
    left = find_leftovers(folder, job)
    return f"left behind: {', '.join(left[:4])}" if left else difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--job", default="", help="only jobs whose name has this in it")
    parser.add_argument("--only", type=int, help="one case alone")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing stays mounted
    warm_up()
    jobs, outcomes, mounts = [job for job in list_jobs() if given.job in job.name], list[Outcome](), can_mount()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "corpus").mkdir()
        os.environ["REGARD_CACHE"] = str(place / CACHE)
        call_in_fork(lambda: build(place / "corpus"))
        references = {job.name: measure(job, place / "corpus", place) for job in jobs}
        ends = time.monotonic() + given.seconds
        for number in [given.only] if given.only is not None else range(given.first, given.first + given.cases):
            if time.monotonic() > ends:
                break
            outcomes.append(run_case(number, given.seed, jobs, references, place / "corpus", place, mounts))
            if outcomes[-1].fault:
                print(f"case {number}, {outcomes[-1].job}: {outcomes[-1].fault}", flush=True)
    codes, n_faults = Counter(outcome.code for outcome in outcomes), sum(o.fault is not None for o in outcomes)
    how = "full disks" if mounts else "limits on the size of a file (to mount a full disk, be root)"
    print(f"{len(outcomes)} {how}, {n_faults} faults; exit codes {dict(codes)}; seed {given.seed}")
    sys.exit(bool(n_faults))


if __name__ == "__main__":
    main()
