"""Run the commands of a page from top to bottom and say which worked: `make lineage`, `make lectures`.

    python docs/run_page.py lineage                 all of docs/lineage.md, at most ten minutes each
    python docs/run_page.py lectures --brief        each learns for a moment only: whether it runs, not what it shows
    python docs/run_page.py lineage --only lstm     those with these letters in them (and what they read must be there)

A command that reads a folder which the page asks you to bring is left out where that is not there. One that takes
too long is stopped, what it has written is removed, and those that need it are left out too. What is in the folder of
the page, `lineage/` or `lectures/`, already is not made again. Two times are told: by the clock, and of the processor.
"""

from __future__ import annotations

import argparse
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from regard.config import read_yaml
from regard.studies.table import STUDIES
from regard.tasks.table import build_config

ROOT = Path(__file__).parents[1]
PAGES = ("lineage", "lectures")
"""Pages of docs/; the commands of each write under the folder that is called like it."""
BROUGHT = ("gpt2", "elmo-small")
"""Folders that a page asks the reader to bring."""
MOMENT = {"max_steps": 4, "eval_every": 4}  # of the section train


@dataclass(frozen=True)
class Command:
    """A line of the page: what is typed, and the files and folders that it reads and writes."""

    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)

    @property
    def writes(self) -> str | None:
        """The folder or file after --out or >, if it writes one; of `regard caption` that of its pictures."""
        options = ("--draw",) if self.words[1] == "caption" else ("--out", ">")
        return next((after for word, after in pairwise(self.words) if word in options), None)

    @property
    def reads(self) -> list[str]:
        """What of the reader's, or of earlier commands, is needed: paths under a page's folder, and what is brought."""
        folders = tuple(f"{name}/" for name in PAGES)
        given = [word.split("=", 1)[-1] for word in self.words[1:]]
        return [word for word in given if (word.startswith(folders) or word in BROUGHT) and word != self.writes]

    @property
    def is_endless(self) -> bool:
        """Whether it goes on until Ctrl-C."""
        return self.words[:2] == ["regard", "serve"]


def list_commands(page: str) -> list[Command]:
    """Every command of the page in its order: those in tables and sentences, and the lines of blocks of shell."""
    return [Command(text) for text in _find_commands(page)]


def _find_commands(page: str) -> Iterator[str]:
    is_shell = False
    for line in page.splitlines():
        if line.startswith("```"):
            is_shell = line == "```sh"
        elif is_shell and line.strip():
            yield line.split("  #")[0].strip()
        elif not is_shell:
            for text in re.findall(r"`(regard [^`\n]+)`", line):
                if len(text.split()) > 2 and "NAME" not in text:
                    yield text


def shorten(command: Command) -> Command:
    """A command that learns for a moment only, from one that learns for minutes."""
    words = command.words
    if words[:2] == ["regard", "train"] and "--dry-run" not in words:
        recipe = next((word for word in words if word.endswith(".yaml")), None)
        known = build_config(read_yaml(ROOT / recipe)).to_dict().get("train") if recipe else MOMENT
        given = [f"--set train.{name}={value}" for name, value in MOMENT.items() if name in (known or {})]
        return Command(" ".join([command.text, *given]))
    if words[:2] == ["regard", "study"]:
        fields = STUDIES[words[2]].config.__dataclass_fields__
        small = {"n_steps": 4, "n_pretrain": 4, "n_seeds": 1, "n_texts": 20, "n_repeats": 1, "n_pairs": 60}
        of_made = ("n_steps", "n_pretrain", "n_seeds") if "--run" in words else ()  # with --run it makes no models
        given = [f"--set {name}={value}" for name, value in small.items() if name in fields and name not in of_made]
        return Command(" ".join([command.text, *given]))
    return Command(re.sub(r"--budget \S+", "--budget 2s", command.text))


def run(command: Command, seconds: float) -> str:
    """Run one command in the clone; what became of it: done, too long, or its last line on stderr."""
    typed = re.sub(r"^regard ", f"{shlex.quote(sys.executable)} -m regard ", command.text)
    try:
        done = subprocess.run(
            ["bash", "-c", typed], cwd=ROOT, timeout=seconds, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return f"stopped after {seconds:.0f} s"
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        return f"failed: {last[0]}"
    return "done"


def _remove(name: str | None) -> None:
    """What a command that did not end has left under the page's folder."""
    if name is not None and name.startswith(tuple(f"{page}/" for page in PAGES)):
        shutil.rmtree(ROOT / name, ignore_errors=True)
        (ROOT / name).unlink(missing_ok=True)


def _spent() -> float:
    """Seconds of processor time of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Run what is asked for; 1 where a command failed or took too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", choices=PAGES, help="the page of docs/ to run")
    parser.add_argument("--brief", action="store_true", help="let each learn for a moment only")
    parser.add_argument("--only", default="", help="only commands with these letters in them")
    parser.add_argument("--seconds", type=float, default=600.0, help="limit of each command")
    given = parser.parse_args()
    page = (ROOT / "docs" / f"{given.page}.md").read_text(encoding="utf-8")
    commands = [command for command in list_commands(page) if given.only in command.text]
    (ROOT / given.page).mkdir(exist_ok=True)
    found = {}
    for number, command in enumerate(commands, 1):
        began, spent = time.monotonic(), _spent()
        missing = [name for name in command.reads if not (ROOT / name).exists()]
        if command.writes is not None and (ROOT / command.writes).exists():
            found[command.text] = "there already"
        elif command.is_endless:
            found[command.text] = "left out: it goes on until Ctrl-C"
        elif missing:
            found[command.text] = f"left out: there is no {missing[0]}"
        else:
            found[command.text] = run(shorten(command) if given.brief else command, given.seconds)
            if found[command.text] != "done":
                _remove(command.writes)
        times = f"{time.monotonic() - began:6.1f} s {_spent() - spent:6.1f} s CPU"
        print(f"{number:3}/{len(commands)} {times}  {found[command.text]:<14} {command.text}", flush=True)
    wrong = [text for text, end in found.items() if end.startswith(("failed", "stopped"))]
    left_out = sum(end.startswith("left out") for end in found.values())
    print(f"{len(found) - len(wrong) - left_out} worked, {len(wrong)} did not, {left_out} were left out.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
