"""Kill a training run again and again, and see whether it ends with the bits of a run that was never stopped.

    python benchmarks/resume.py [--kills 20] [--seed 0] [--tiny]

Each kill is a SIGKILL from another process, at a random moment of training or in the midst of writing a checkpoint
(when the folder that is written aside has appeared). Then the run is resumed to its end in a fresh process, and its
`model.safetensors` is compared byte for byte, and `metrics.jsonl` line for line apart from wall-clock fields, with a
run that was never stopped. Models and settings take turns: recurrent and attending, dropout, averages, accumulation,
schedules. Prints a table and exits with 1 where a single bit differs.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from timing import options

import regard

WALL_CLOCK = ("seconds", "tokens_per_second")
N_WORDS = 200
CONTENDERS: list[dict[str, Any]] = [
    {"model": ("lstm", {"d_model": 64, "p_dropout": 0.2}), "train": {}, "schedule": {}},
    {
        "model": ("transformer", {"d_model": 32, "n_layers": 2, "max_context": 32, "p_dropout": 0.1}),
        "train": {"average": "ema", "average_decay": 0.95},
        "schedule": {"name": "linear"},
    },
    {
        "model": ("gru", {"d_model": 64, "p_dropout": 0.1}),
        "train": {"n_accumulate": 4, "average": "ema"},
        "schedule": {"name": "plateau", "patience": 1},
    },
    {
        "model": ("window", {"d_model": 32, "d_hidden": 64}),
        "train": {"n_accumulate": 2},
        "schedule": {"name": "inverse-sqrt"},
    },
]


def write_text(path: Path, n_words: int) -> None:
    """Words drawn with Zipf's law, each followed by its own favourite half of the time."""
    draw = np.random.default_rng(0)
    chances = 1 / np.arange(1, N_WORDS + 1)
    ids = draw.choice(N_WORDS, n_words, p=chances / chances.sum())
    ids[1::2] = ids[::2] * 7 % N_WORDS
    path.write_text("\n".join(" ".join(f"w{i}" for i in line) for line in np.array_split(ids, n_words // 10)) + "\n")


def recipe(contender: dict[str, Any], data: Path, n_steps: int) -> dict[str, Any]:
    name, settings = contender["model"]
    return {
        "data": {"train": str(data)},
        "tokenizer": {"kind": "word", "vocab_size": None},
        "model": {"name": name, **settings},
        "schedule": {"n_warmup": 10, **contender["schedule"]},
        "train": {
            "max_steps": n_steps, "n_batch": 8, "n_context": 32, "eval_every": 10, "max_eval_tokens": 1000,
            **contender["train"],
        },
        "runtime": {"device": "cpu", "n_threads": 1},
        "checkpoint": {"every_steps": 3, "every_seconds": None, "has_tensorboard": False},
    }  # fmt: skip


def start(folder: Path, given: dict[str, Any]) -> int:
    """Train to the end, or go on from what is there, in a process of its own; returns its id.

    Forked: what this process has imported is there already.
    """
    child = os.fork()
    if child == 0:
        try:
            regard.train(given, out=folder, resume=True, is_tested=False)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def finish(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_while_training(child: int, seconds: float) -> None:
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)


def kill_while_saving(child: int, folder: Path, n_saves: int, draw: random.Random) -> None:
    """Wait until the n-th checkpoint is being written aside, then kill within the time that writing takes."""
    seen: set[str] = set()
    running = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while len(seen) < n_saves and os.waitid(os.P_PID, child, running) is None:
        seen |= {p.name for p in (folder / "state").glob(".partial-step-*")}
    time.sleep(draw.uniform(0, 0.003))
    os.kill(child, signal.SIGKILL)


def outcome(folder: Path) -> tuple[str, list[dict[str, Any]]]:
    """The weights as a hash, and the lines of metrics without what a clock wrote."""
    weights = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return weights, [{k: v for k, v in line.items() if k not in WALL_CLOCK} for line in lines]


def kill_once(folder: Path, given: dict[str, Any], is_saving: bool, seconds: float, draw: random.Random) -> bool:
    """Begin a run and kill it; tried again until the kill falls into training, or into writing a checkpoint."""
    was_killed = False
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        child = start(folder, given)
        if is_saving:
            kill_while_saving(child, folder, draw.randint(1, given["train"]["max_steps"] // 4), draw)
        else:
            kill_while_training(child, draw.uniform(0.05, 0.9) * seconds)
        was_killed = finish(child) == -signal.SIGKILL
        if any(folder.rglob(".partial*")) if is_saving else was_killed:
            break
    return was_killed


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    n_kills, n_steps, n_contenders = (2, 8, 1) if given.tiny else (given.kills, 60, len(CONTENDERS))
    torch.set_num_threads(1)
    torch.optim.AdamW([torch.zeros(1)])  # imported here, so that no child has to
    train = regard.train  # which imports the rest
    assert train is not None
    draw = random.Random(given.seed)
    with tempfile.TemporaryDirectory(prefix="regard-resume-") as name:
        root = Path(name)
        os.environ["REGARD_CACHE"] = str(root / "cache")
        write_text(root / "text.txt", 2_000 if given.tiny else 60_000)
        recipes = [recipe(contender, root / "text.txt", n_steps) for contender in CONTENDERS[:n_contenders]]
        table, n_same = kill_all(root, recipes, n_kills, draw)
    Console(width=150).print(table)
    print(f"{n_same} of {n_kills} killed runs resumed to the same bits")
    if given.out is not None:
        given.out.write_text(json.dumps({"killed": n_kills, "same": n_same}) + "\n")
    return 0 if n_same == n_kills else 1


def kill_all(root: Path, recipes: list[dict[str, Any]], n_kills: int, draw: random.Random) -> tuple[Table, int]:
    """A line for each kill, and how many runs ended as if nothing had been."""
    expected, seconds = [], []
    for i, given in enumerate(recipes):
        began = time.monotonic()
        assert finish(start(root / f"whole-{i}", given)) == 0
        expected.append(outcome(root / f"whole-{i}"))
        seconds.append(time.monotonic() - began)
    table = Table("kill", "model", "while", "left behind", "resumed from", "weights", "metrics")
    n_same = 0
    for kill in range(n_kills):
        which, is_saving, folder = kill // 2 % len(recipes), kill % 2 == 1, root / f"kill-{kill}"
        was_killed = kill_once(folder, recipes[which], is_saving, seconds[which], draw)
        left = ", ".join(sorted(path.name for path in folder.rglob(".partial*"))) or "nothing"
        saved = max((path.name for path in folder.glob("state/step-*")), default="the start")
        assert finish(start(folder, recipes[which])) == 0
        same = [ours == theirs for ours, theirs in zip(outcome(folder), expected[which], strict=True)]
        n_same += was_killed and all(same) and not any(folder.rglob(".partial*"))
        moment = ("saving" if is_saving else "training") if was_killed else "NOT KILLED"
        words = ("same" if is_same else "DIFFERENT" for is_same in same)
        table.add_row(str(kill + 1), recipes[which]["model"]["name"], moment, left, saved, *words)
    return table, n_same


if __name__ == "__main__":
    sys.exit(main())
