"""Hands thousands of broken and hostile files to the command line: each must end in a sentence, soon, in little memory.

    python tests/torture/mutate.py --seconds 600 --seed 0 --jobs 2

A case is a good file of the corpus, a mutation drawn from its number, and a command that reads it; it runs in a forked
process, whose memory and time are measured. A case fails where it ends in a traceback or a signal, with an exit code
other than 0, 1, 2 and 130, after more than 30 seconds, or with more than 2 GB. `--only 123` runs one case again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from torture.corpus import Kind, build, list_kinds  # noqa: E402
from torture.mutations import SETS, mutation_of  # noqa: E402

MAX_SECONDS = 30
MAX_BYTES = 2 * 2**30
CODES = (0, 1, 2, 130)
P_SETTING = 0.08  # of the cases are a hostile --set and no file


@dataclass(frozen=True)
class Case:
    """One broken input: `folder` is where the command runs, `words` are its arguments."""

    number: int
    folder: Path
    words: list[str]
    about: str


@dataclass(frozen=True)
class Outcome:
    case: Case
    code: int
    seconds: float
    n_bytes: int
    said: str

    @property
    def fault(self) -> str | None:
        if self.code == -signal.SIGKILL or self.seconds > MAX_SECONDS:
            return "hang"
        if "Traceback (most recent call last)" in self.said or self.code not in CODES:
            last = [line for line in self.said.strip().splitlines() if line.strip()][-1:]
            return (
                f"traceback: {(last or [''])[0][:150]}"
                if self.code == 1
                else f"exit {self.code}: {(last or [''])[0][:150]}"
            )
        if self.n_bytes > MAX_BYTES:
            return f"memory: {self.n_bytes / 2**30:.1f} GB"
        return "terminal: an escape sequence was printed" if "\x1b" in self.said else None


def make_case(number: int, seed: int, corpus: Path, place: Path) -> Case:
    """Case `number`: the same for the same seed and corpus; of files that the corpus lacks there is none."""
    draw = Random(f"{seed}/{number}")
    folder = place / str(number)
    folder.mkdir(parents=True)
    for item in corpus.iterdir():
        (folder / item.name).symlink_to(item)
    kind: Kind = draw.choice([kind for kind in list_kinds() if (corpus / kind.file).exists()])
    if draw.random() < P_SETTING:
        command = draw.choice(("train recipe.yaml --dry-run", "compare ngram bag --data data/few.txt --out out"))
        option = "--data" if command.startswith("compare") else "--set"
        value = draw.choice(SETS)
        return Case(number, folder, [*shlex.split(command), option, value], f"{command} {option} {value[:60]!r}")
    given = Path(kind.folder or kind.file)
    (folder / "mine").mkdir()
    copy = folder / "mine" / given.name
    if kind.folder:
        shutil.copytree(corpus / given, copy)
        broken = copy / Path(kind.file).relative_to(kind.folder)
    else:
        shutil.copyfile(corpus / given, copy)
        broken = copy
    if kind.folder:
        forget_checksums(copy)
    broken.write_bytes(mutation_of(kind.file)(broken.read_bytes(), draw))
    command = draw.choice(kind.commands)
    words = [word.replace("{}", str(copy.relative_to(folder))) for word in shlex.split(command)]
    return Case(number, folder, words, f"{kind.file}: {command}")


def forget_checksums(folder: Path) -> None:
    """What a stranger changes has the checksums of what they made of it, or none."""
    for path in (folder / "run.json", *folder.glob("state/*/state.json")):
        if path.exists():
            found = json.loads(path.read_text())
            kept = {key: value for key, value in found.items() if key not in ("checksums", "crc32")}
            path.write_text(json.dumps(kept))


def start(case: Case) -> int:
    """Fork a process that runs the case; returns its id."""
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        os.chdir(case.folder)
        said = os.open(case.folder / "said", os.O_WRONLY | os.O_CREAT)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        resource.setrlimit(resource.RLIMIT_DATA, (8 * 2**30, 8 * 2**30))
        sys.argv = ["regard", *case.words]
        code = _run()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    finally:
        os._exit(99)


def _run() -> int:
    from regard import cli

    try:
        cli.main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def run_cases(
    numbers: list[int], seed: int, corpus: Path, n_jobs: int, seconds: float, keep: Path | None = None
) -> list[Outcome]:
    """Run cases, some at a time, until all are done or the time is over."""
    ends, outcomes, waiting = time.monotonic() + seconds, [], list(numbers)
    running: dict[int, tuple[Case, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        while running or (waiting and time.monotonic() < ends):
            while waiting and len(running) < n_jobs and time.monotonic() < ends:
                case = make_case(waiting.pop(0), seed, corpus, Path(place))
                running[start(case)] = case, time.monotonic()
            child, status, used = os.wait4(-1, os.WNOHANG)
            if not child:
                for process, (_, began) in running.items():
                    if time.monotonic() - began > MAX_SECONDS + 1:
                        os.killpg(process, signal.SIGKILL)
                time.sleep(0.002)
                continue
            case, began = running.pop(child)
            said = (case.folder / "said").read_text(errors="replace")
            code = os.waitstatus_to_exitcode(status)
            outcome = Outcome(case, code, time.monotonic() - began, used.ru_maxrss * 1024, said)
            outcomes.append(outcome)
            if outcome.fault and keep is not None:
                shutil.copytree(case.folder, keep / str(case.number), symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(case.folder, ignore_errors=True)
    return outcomes


def make_corpus(folder: Path) -> Path:
    """The corpus, made in a process of its own: this one must have no threads, or it could not be forked."""
    child = os.fork()
    if not child:
        code = 1
        try:
            folder.mkdir(parents=True)
            build(folder)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1]:
        raise SystemExit("The corpus could not be made; see above.")
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int)
    parser.add_argument("--corpus", type=Path, help="a corpus that is there already, beside its cache")
    parser.add_argument("--keep", type=Path, help="copy failing cases here")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with tempfile.TemporaryDirectory() as folder:
        place = given.corpus or Path(folder)
        os.environ["REGARD_CACHE"] = f"{place}/cache"
        corpus = place / "corpus" if given.corpus else make_corpus(place / "corpus")
        import regard.api
        import regard.cli
        import regard.compare.comparing  # noqa: F401 (imported once here, and not in every case)

        numbers = [given.only] if given.only is not None else list(range(given.first, given.first + given.cases))
        found = run_cases(numbers, given.seed, corpus, given.jobs, given.seconds, given.keep)
    if given.only is not None:
        print(found[0].case.words, found[0].said, sep="\n")
    faults = Counter(outcome.fault for outcome in found if outcome.fault)
    for fault, n in faults.most_common():
        shown = [o for o in found if o.fault == fault][:3]
        print(f"{n:5}  {fault}")
        for outcome in shown:
            cost = f"{outcome.seconds:.1f} s, {outcome.n_bytes / 2**20:.0f} MB"
            print(f"         case {outcome.case.number}: {outcome.case.about} ({cost})")
    codes = Counter(outcome.code for outcome in found)
    print(f"{len(found)} cases, {sum(faults.values())} faults; exit codes {dict(codes)}; seed {given.seed}")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
