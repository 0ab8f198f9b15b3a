"""Hands thousands of broken and hostile files to the command line: each must end in a sentence, soon, in little memory.

    python tests/torture/mutate.py --seconds 600 --seed 0 --jobs 2

A case is a good file of the corpus, a mutation drawn from its number, and a command that reads it; it runs in a forked
process, whose memory and time are measured. In some folders a file is not broken but replaced: by a link to a file of
the user's or to a device, by a pipe, by a folder. A case fails where it ends in a traceback or a signal, with an exit
code other than 0, 1, 2 and 130, after more than 30 seconds by the clock, with more than 2 GB, or where that file of the
user's has changed: give it a machine that does nothing else. `--only 123` runs one case again, and `--unchanged` every
command on good files.
"""

from __future__ import annotations

import argparse
import faulthandler
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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from torture.corpus import build  # noqa: E402
from torture.forking import run_command  # noqa: E402
from torture.kinds import Kind, list_kinds  # noqa: E402
from torture.mutations import mutation_of  # noqa: E402
from torture.options import BASES, draw_words  # noqa: E402

MAX_SECONDS = 30
MAX_BYTES = 2 * 2**30
CODES = (0, 1, 2, 130)
N_SLOWEST = 5  # that are named, to see how far from the limit they are
TOLD_EVERY = 1000  # cases
PRINTED, SAID = ".stdout", ".stderr"
P_REPLACED = 0.08  # of the cases with a folder: something in it is replaced by something else
OWN_ERRORS = ("regard.errors.", "regard.untrusted.", "regard.training.learner.DivergedError")
OWN_TEXT, OWN_MODE = "of the user's\n", 0o600
P_WORDS = 0.2  # of the cases are a hostile value on the command line, and no file


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
    is_harmed: bool
    """Whether a file of the user's has changed."""

    @property
    def fault(self) -> str | None:
        if self.is_harmed:
            return "a file of the user's was changed"
        if self.code == -signal.SIGKILL or self.seconds > MAX_SECONDS:
            return "hang"
        if "Traceback (most recent call last)" in self.said or self.code not in CODES:
            last = [line for line in self.said.strip().splitlines() if line.strip()][-1:]
            return f"{'traceback' if self.code == 1 else f'exit {self.code}'}: {(last or [''])[0][:150]}"
        if self.n_bytes > MAX_BYTES:
            return f"memory: {self.n_bytes / 2**30:.1f} GB"
        return "terminal: an escape sequence was printed" if "\x1b" in self.said else None


def make_case(number: int, seed: int, corpus: Path, place: Path) -> Case:
    """Case `number`: the same for the same seed and corpus; of files that the corpus lacks there is none."""
    draw = Random(f"{seed}/{number}")
    if draw.random() < P_WORDS:
        words = draw_words(draw, corpus)
        return Case(number, _lay_out(corpus, place / str(number)), words, shlex.join(words)[:150])
    kind: Kind = draw.choice([kind for kind in list_kinds() if (corpus / kind.file).exists()])
    case, broken = copy_kind(number, kind, draw.choice(kind.commands), corpus, place)
    if kind.folder and draw.random() < P_REPLACED:
        below = broken.parents[len(Path(kind.file).relative_to(kind.folder).parts) - 1]
        others = [below / ".lock", *sorted(below.rglob("*"))]
        replace_file(draw.choice((broken, draw.choice(others))), case.folder, draw)
    else:
        broken.write_bytes(mutation_of(kind.file)(broken.read_bytes(), draw))
    return case


def replace_file(path: Path, folder: Path, draw: Random) -> None:
    """Put something else in the place of a file, a folder or nothing."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    form = draw.choice(("own", "own", "device", "nowhere", "folder", "pipe"))
    if form == "folder":
        path.mkdir()
    elif form == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to({"own": folder / "taken" / "file", "device": "/dev/zero", "nowhere": "/nowhere/x"}[form])


def is_unharmed(folder: Path) -> bool:
    """Whether the file of the user's in a working folder is as it was laid out."""
    try:
        path = folder / "taken" / "file"
        return path.read_text() == OWN_TEXT and path.stat().st_mode & 0o777 == OWN_MODE
    except OSError:
        return False


def copy_kind(number: int, kind: Kind, command: str, corpus: Path, place: Path) -> tuple[Case, Path]:
    """A case with a good copy of a file, and where that file is."""
    folder = _lay_out(corpus, place / str(number))
    given = Path(kind.folder or kind.file)
    copy = folder / "mine" / given.name
    copy.parent.mkdir()
    if kind.folder:
        shutil.copytree(corpus / given, copy)
        forget_checksums(copy)
    else:
        shutil.copyfile(corpus / given, copy)
    words = [word.replace("{}", str(copy.relative_to(folder))) for word in shlex.split(command)]
    case = Case(number, folder, words, f"{kind.file}: {command}")
    return case, copy / Path(kind.file).relative_to(kind.folder) if kind.folder else copy


def _lay_out(corpus: Path, folder: Path) -> Path:
    """A working folder in which the corpus can be read, and in which some names are taken."""
    folder.mkdir(parents=True)
    for item in corpus.iterdir():
        (folder / item.name).symlink_to(item)
    (folder / "taken").mkdir()
    (folder / "taken" / "file").write_text(OWN_TEXT)
    (folder / "taken" / "file").chmod(OWN_MODE)
    (folder / "link").symlink_to("taken/file")
    return folder


def forget_checksums(folder: Path) -> None:
    """What a stranger changes has the checksums of what they made of it, or none."""
    for path in (*folder.rglob("run.json"), *folder.rglob("state.json")):
        found = json.loads(path.read_text())
        kept = {key: value for key, value in found.items() if key not in ("checksums", "crc32", "own_crc32")}
        path.write_text(json.dumps(kept))
    for path in folder.rglob("*.safetensors"):
        forget_mark(path)


def forget_mark(path: Path) -> None:
    """Take the checksum of weights out of the head of their file, which stays as long as it is."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    head = json.loads(data[8:end])
    if head.pop("__metadata__", None) is not None:
        path.write_bytes(data[:8] + json.dumps(head, separators=(",", ":")).encode().ljust(end - 8) + data[end:])


def start(case: Case) -> int:
    """Fork a process that runs the case; returns its id."""
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        os.chdir(case.folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(case.folder / PRINTED, os.O_WRONLY | os.O_CREAT), 1)
        os.dup2(os.open(case.folder / SAID, os.O_WRONLY | os.O_CREAT), 2)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        resource.setrlimit(resource.RLIMIT_DATA, (8 * 2**30, 8 * 2**30))
        faulthandler.dump_traceback_later(MAX_SECONDS - 1, file=2)  # where a command hangs, in the case that is kept
        sys.argv = ["regard", *case.words]
        code = run_command()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    finally:
        os._exit(99)


def run_cases(cases: Iterator[Case], n_jobs: int, seconds: float, keep: Path | None = None) -> Iterator[Outcome]:
    """Run cases, some at a time, until all are done or the time is over."""
    ends = time.monotonic() + seconds
    running: dict[int, tuple[Case, float]] = {}
    while True:
        while len(running) < n_jobs and time.monotonic() < ends and (case := next(cases, None)) is not None:
            running[start(case)] = case, time.monotonic()
        if not running:
            return
        child, status, used = os.wait4(-1, os.WNOHANG)
        if not child:
            for process, (_, began) in running.items():
                if time.monotonic() - began > MAX_SECONDS:
                    os.killpg(process, signal.SIGKILL)
            time.sleep(0.002)
            continue
        case, began = running.pop(child)
        said = (case.folder / SAID).read_text(errors="replace") + read_failures(case)
        code = os.waitstatus_to_exitcode(status)
        is_harmed = not is_unharmed(case.folder)
        outcome = Outcome(case, code, time.monotonic() - began, used.ru_maxrss * 1024, said, is_harmed)
        if outcome.fault and keep is not None:
            shutil.copytree(case.folder, keep / str(case.number), symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(case.folder, ignore_errors=True)
        yield outcome


def read_failures(case: Case) -> str:
    """The tracebacks that a comparison wrote of contenders which failed by none of our own errors."""
    if case.words[:1] != ["compare"]:
        return ""
    found = [path.read_text(errors="replace") for path in case.folder.rglob("failures/*.txt") if path.is_file()]
    return "".join(text for text in found if "Traceback" in text and not text.splitlines()[-1].startswith(OWN_ERRORS))


def list_unchanged(corpus: Path, place: Path) -> Iterator[Case]:
    """Every command on the good file: one that fails here never reads what is broken."""
    first = {(kind.folder or kind.file, command): kind for kind in list_kinds() for command in kind.commands}
    for number, ((_, command), kind) in enumerate(first.items()):
        yield copy_kind(number, kind, command, corpus, place)[0]
    for verb, lines in BASES.items():
        for number, line in enumerate(lines, start=len(first)):
            yield Case(
                number, _lay_out(corpus, place / verb / str(number)), shlex.split(f"{verb} {line}"), f"{verb} {line}"
            )


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
    parser.add_argument("--unchanged", action="store_true", help="every command on good files, and how it ends")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with tempfile.TemporaryDirectory() as folder:
        home = given.corpus or Path(folder)
        os.environ["REGARD_CACHE"] = f"{home}/cache"
        corpus = home / "corpus" if given.corpus else make_corpus(home / "corpus")
        import regard.api
        import regard.cli
        import regard.compare.comparing
        import regard.report.look
        import regard.serve.server  # noqa: F401 (imported once here, and not in every case)

        place = Path(folder, "cases")
        wanted = [kind.file for kind in list_kinds() if not is_optional(kind)]
        if lacking := [file for file in wanted if not (corpus / file).exists()]:
            raise SystemExit(f"The corpus lacks files that are to be broken: {', '.join(lacking)}")
        numbers = [given.only] if given.only is not None else range(given.first, given.first + given.cases)
        cases = (make_case(number, given.seed, corpus, place) for number in numbers)
        cases = list_unchanged(corpus, place) if given.unchanged else cases
        found = list(tell(run_cases(cases, given.jobs, given.seconds, given.keep)))
    if given.only is not None:
        print(found[0].case.words, found[0].said, sep="\n")
    refused = []
    if given.unchanged:
        refused = [outcome for outcome in found if outcome.code and outcome.case.words[0] != "serve"]
        for outcome in (*refused, *(outcome for outcome in found if outcome.seconds > 5)):
            print(f"{outcome.code} {outcome.seconds:.1f} s: {outcome.case.about}: {outcome.said[-300:]}")
    sys.exit(report(found, given.seed) or bool(refused))


def is_optional(kind: Kind) -> bool:
    """Whether a file is made by a library that may be missing."""
    return kind.file.startswith("elmo")


def tell(outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
    """Say every fault when it is found, and now and then how far the run is: it takes most of an hour."""
    for n_done, outcome in enumerate(outcomes, start=1):
        if outcome.fault:
            print(f"case {outcome.case.number}: {outcome.fault}: {outcome.case.about}", file=sys.stderr, flush=True)
        if n_done % TOLD_EVERY == 0:
            print(f"{n_done:,} cases", file=sys.stderr, flush=True)
        yield outcome


def report(found: list[Outcome], seed: int) -> bool:
    """Print what went wrong; whether anything did."""
    faults = Counter(outcome.fault for outcome in found if outcome.fault)
    for fault, n in faults.most_common():
        print(f"{n:5}  {fault}")
        for outcome in [o for o in found if o.fault == fault][:3]:
            cost = f"{outcome.seconds:.1f} s, {outcome.n_bytes / 2**20:.0f} MB"
            print(f"         case {outcome.case.number}: {outcome.case.about} ({cost})")
    for outcome in sorted(found, key=lambda o: -o.seconds)[:N_SLOWEST]:
        print(f"{outcome.seconds:5.1f} s  case {outcome.case.number}: {outcome.case.about}")
    codes = Counter(outcome.code for outcome in found)
    print(f"{len(found)} cases, {sum(faults.values())} faults; exit codes {dict(codes)}; seed {seed}")
    return bool(faults)


if __name__ == "__main__":
    main()
