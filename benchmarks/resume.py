"""Kill a training run again and again, and see whether it ends with the bits of a run that was never stopped.

    python benchmarks/resume.py [--kills 20] [--seed 0]

Each kill is a SIGKILL from another process, at a random moment of training or in the midst of writing a checkpoint
(when the folder that is written aside has appeared). Then the run is resumed to its end in a fresh process, and its
`model.safetensors` is compared byte for byte, and `metrics.jsonl` line for line apart from wall-clock fields, with a
run that was never stopped. Models and settings take turns: recurrent and attending, dropout, averages, accumulation,
schedules. Prints a table and exits with 1 where a single bit differs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from regard.data.stream import Stream
from regard.models.table import build_model, model_config
from regard.training.checkpoint import checkpoint_folders
from regard.training.config import CheckpointConfig, OptimizerConfig, RuntimeConfig, ScheduleConfig, TrainConfig
from regard.training.loop import train_gradient
from regard.training.metrics import WALL_CLOCK, read_metrics

VOCAB_SIZE = 200
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


def text() -> Any:
    """Words drawn with Zipf's law, each followed by its own favourites half of the time."""
    draw = np.random.default_rng(0)
    chances = 1 / np.arange(1, VOCAB_SIZE + 1)
    ids = draw.choice(VOCAB_SIZE, 60_000, p=chances / chances.sum())
    ids[1::2] = ids[::2] * 7 % VOCAB_SIZE
    streams = {"train": ids[:50_000], "valid": ids[50_000:54_000], "test": ids[54_000:]}
    made = {name: Stream.of(part, n_bytes=4 * len(part), n_words=len(part)) for name, part in streams.items()}
    return SimpleNamespace(**made, fingerprint="zipf")


def train(folder: Path, contender: dict[str, Any]) -> None:
    """Train to the end, or go on from what is there."""
    torch.manual_seed(0)
    name, settings = contender["model"]
    train_gradient(
        build_model(name, model_config(name, settings), VOCAB_SIZE),
        text(),
        folder,
        train=TrainConfig(
            max_steps=60, n_batch=8, n_context=32, eval_every=10, max_eval_tokens=1000, **contender["train"]
        ),
        optimizer=OptimizerConfig(),
        schedule=ScheduleConfig(n_warmup=10, **contender["schedule"]),
        runtime=RuntimeConfig(device="cpu", n_threads=1),
        checkpoint=CheckpointConfig(every_steps=3, every_seconds=None, has_tensorboard=False),
        resume=True,
    )


def start(folder: Path, contender: dict[str, Any]) -> int:
    """Train in a process of its own; returns its id. Forked: what this process has imported is there already."""
    child = os.fork()
    if child == 0:
        try:
            train(folder, contender)
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
    weights = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    lines = [{k: v for k, v in line.items() if k not in WALL_CLOCK} for line in read_metrics(folder)]
    return weights, lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.optim.AdamW([torch.zeros(1)])  # imported here, so that no child has to
    draw = random.Random(options.seed)
    root = Path(tempfile.mkdtemp(prefix="regard-resume-"))

    expected, seconds = [], []
    for i, contender in enumerate(CONTENDERS):
        began = time.monotonic()
        assert finish(start(root / f"whole-{i}", contender)) == 0
        expected.append(outcome(root / f"whole-{i}"))
        seconds.append(time.monotonic() - began)

    table = Table("kill", "model", "while", "left behind", "resumed from", "weights", "metrics")
    n_same = 0
    for kill in range(options.kills):
        which = kill // 2 % len(CONTENDERS)
        folder = root / f"kill-{kill}"
        for _ in range(20):  # until the kill falls into training, or into the writing of a checkpoint
            shutil.rmtree(folder, ignore_errors=True)
            child = start(folder, CONTENDERS[which])
            if kill % 2:
                kill_while_saving(child, folder, draw.randint(1, 15), draw)
            else:
                kill_while_training(child, draw.uniform(0.05, 0.9) * seconds[which])
            was_killed = finish(child) == -signal.SIGKILL
            left = sorted(p.name for p in folder.rglob(".partial*"))
            if left if kill % 2 else was_killed:
                break
        saved = [f.name for f in checkpoint_folders(folder)]
        assert finish(start(folder, CONTENDERS[which])) == 0
        weights, lines = outcome(folder)
        same = weights == expected[which][0], lines == expected[which][1]
        n_same += was_killed and all(same) and not list(folder.rglob(".partial*"))
        said = ["same" if s else "DIFFERENT" for s in same]
        moment = ("saving" if kill % 2 else "training") if was_killed else "NOT KILLED"
        where = saved[-1] if saved else "the start"
        table.add_row(str(kill + 1), CONTENDERS[which]["model"][0], moment, ", ".join(left) or "nothing", where, *said)
    Console(width=150).print(table)
    print(f"{n_same} of {options.kills} killed runs resumed to the same bits")
    shutil.rmtree(root)
    return 0 if n_same == options.kills else 1


if __name__ == "__main__":
    sys.exit(main())
