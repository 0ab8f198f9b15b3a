"""A few seconds of every driver that forks, in one process; prints what each found as JSON.

python tests/torture/brief.py
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from torture import disk, kill, soak, starts  # noqa: E402
from torture.forking import call_in_fork, find_fast_disk, warm_up  # noqa: E402
from torture.jobs import CACHE, Job, build, list_jobs  # noqa: E402

KILLED = ("train transformer", "encode translation", "look")
ON_FULL_DISKS = ("train captions", "train ngram", "next")


def pick(names: tuple[str, ...]) -> list[Job]:
    return [job for job in list_jobs() if job.name in names]


def kill_some(corpus: Path, place: Path) -> dict[str, Any]:
    jobs = pick(KILLED)
    references = {job.name: kill.measure(job, corpus, place) for job in jobs}
    found = kill.run_cases(list(range(6)), 0, jobs, references, corpus, place, 120)
    return {"n": sum(outcome.n_kills for outcome in found), "faults": [o.fault for o in found if o.fault]}


def fill_disks(corpus: Path, place: Path) -> dict[str, Any]:
    jobs, mounts = pick(ON_FULL_DISKS), disk.can_mount()
    references = {job.name: disk.measure(job, corpus, place) for job in jobs}
    found = [disk.run_case(number, 0, jobs, references, corpus, place, mounts) for number in range(3)]
    return {"n": sum(outcome.code != 0 for outcome in found), "faults": [o.fault for o in found if o.fault]}


def main() -> None:
    warm_up()
    with tempfile.TemporaryDirectory(dir=find_fast_disk()) as folder:
        place = Path(folder)
        corpus = place / "corpus"
        corpus.mkdir()
        os.environ["REGARD_CACHE"] = str(place / CACHE)
        call_in_fork(lambda: build(corpus, {"transformer", "ngram", "classify"}))
        killed, filled = kill_some(corpus, place), fill_disks(corpus, place)
        started = starts.run_waves(16, 16, 0, corpus, place, 120)
        soaked = soak.soak(soak.COMMANDS["predict"], corpus, 20_000, 60)
    found = {
        "kills": killed,
        "full disks": filled,
        "starts": {"n": started.n_starts, "faults": started.faults},
        "lines": {"n": soaked.n_lines, "faults": [soaked.fault] if soaked.fault else []},
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
