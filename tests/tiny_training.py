"""A text, models and settings small enough to train in a test; also run as a script, to be killed."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from regard.data.checksums import crc32_of
from regard.data.stream import Stream
from regard.models.language_model import LanguageModel
from regard.models.table import MODELS, build_model, model_config
from regard.tasks.text_objective import TextObjective
from regard.training.checkpoint import OWN_CHECKSUM
from regard.training.config import CheckpointConfig, OptimizerConfig, RuntimeConfig, ScheduleConfig, TrainConfig
from regard.training.loop import train_by_gradient
from regard.training.memory import MemoryEstimate, estimate_memory
from regard.training.metrics import WALL_CLOCK, read_metrics
from regard.training.state import TrainResult

VOCAB_SIZE = 11

SIZE = {"d_model": 12, "d_hidden": 12, "n_layers": 2, "n_heads": 2, "max_context": 8, "n_window": 3,
        "p_dropout": 0.0}  # fmt: skip
# Every gradient model of the table: what is added there is trained, stopped and resumed too.
SIZES: dict[str, dict[str, Any]] = {
    name: {line.name: SIZE[line.name] for line in entry.config.help() if line.name in SIZE}
    for name, entry in MODELS.items()
    if "language-model" in entry.tasks and not entry.is_counted
}


@contextmanager
def change_state(checkpoint: Path) -> Iterator[dict[str, Any]]:
    """What state.json of a checkpoint says, to be changed; written without the checksum by which a change is found."""
    path = checkpoint / "state.json"
    written = json.loads(path.read_text())
    written.pop(OWN_CHECKSUM, None)
    yield written
    path.write_text(json.dumps(written))


def exchange_random_numbers(checkpoint: Path, other: Path) -> None:
    """Give a checkpoint the random numbers of another, and their checksum, as nobody but a test would."""
    (checkpoint / "random.safetensors").write_bytes((other / "random.safetensors").read_bytes())
    with change_state(checkpoint) as written:
        written["crc32"]["random.safetensors"] = crc32_of(checkpoint / "random.safetensors")


def tiny_text(n_tokens: int = 600, n_valid: int = 120, fingerprint: str = "tiny") -> Any:
    """Tokens where every second one follows from the one before it, as streams that claim two bytes a token."""
    ids = np.random.default_rng(0).integers(1, VOCAB_SIZE, n_tokens + n_valid)
    ids[1::2] = ids[::2] * 7 % VOCAB_SIZE
    ids[::30] = 0

    def stream(part: Any) -> Stream:
        return Stream.of(part, n_bytes=2 * len(part), n_words=max(1, len(part) // 2))

    tokenizer = SimpleNamespace(vocab_size=VOCAB_SIZE, unk=None, eos=0)
    train, valid = stream(ids[:n_tokens]), stream(ids[n_tokens:])
    return SimpleNamespace(train=train, valid=valid, test=valid, fingerprint=fingerprint, tokenizer=tokenizer)


def tiny_model(name: str = "lstm", **changes: Any) -> LanguageModel:
    torch.manual_seed(7)
    return build_model(name, model_config(name, SIZES[name] | changes), VOCAB_SIZE)


def objective_on(model: LanguageModel, batches: Any) -> TextObjective:
    """To learn from batches of one's own."""
    objective = TextObjective(model, tiny_text(), TrainConfig(n_batch=4, n_context=8), seed=0)
    objective.batches, objective.per_epoch = batches, batches.per_epoch
    objective.carries_state = batches.order == "stream"
    return objective


def memory_of(objective: Any, model: Any, optimizer: OptimizerConfig, runtime: RuntimeConfig) -> MemoryEstimate:
    return estimate_memory(model, objective, objective.train, optimizer, runtime)


def run_tiny(
    folder: Path, model: LanguageModel | None = None, text: Any = None, resume: bool = False, **changes: Any
) -> TrainResult:
    """Train; `changes` are sections ({"train": {...}}) or keywords of `train_by_gradient`."""
    sections: dict[str, Any] = {
        "train": TrainConfig.from_dict(
            {"max_steps": 12, "n_batch": 4, "n_context": 8, "eval_every": 5} | changes.pop("train", {})
        ),
        "optimizer": OptimizerConfig.from_dict({"lr": 0.02} | changes.pop("optimizer", {})),
        "schedule": ScheduleConfig.from_dict({"n_warmup": 3} | changes.pop("schedule", {})),
        "runtime": RuntimeConfig.from_dict({"device": "cpu", "n_threads": 1} | changes.pop("runtime", {})),
        "checkpoint": CheckpointConfig.from_dict(
            {"every_seconds": None, "log_every": 2, "has_tensorboard": False} | changes.pop("checkpoint", {})
        ),
    }
    model, text = model or tiny_model(), text or tiny_text()
    task = TextObjective(model, text, sections["train"], seed=3)
    return train_by_gradient(model, task, folder, seed=3, resume=resume, **sections, **changes)


def lasting_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl without what a clock wrote."""
    return [{k: v for k, v in line.items() if k not in WALL_CLOCK} for line in read_metrics(folder)]


def same_runs(a: Path, b: Path) -> bool:
    """The same weights to the bit, and the same measurements."""
    weights = (a / "model.safetensors").read_bytes() == (b / "model.safetensors").read_bytes()
    return weights and lasting_metrics(a) == lasting_metrics(b)


def stop_at(step: int) -> Callable[[Any], bool]:
    return lambda state: state.step == step


def kill_at(step: int) -> Callable[[Any], bool]:
    def kill(state: Any) -> bool:
        if state.step == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    return kill


def kill_in_checkpoint(n_files: int) -> None:
    """From now on, die when the n-th file has reached the disk: in the midst of a checkpoint, for most n."""
    sync, count = os.fsync, 0

    def fsync(handle: int) -> None:
        nonlocal count
        sync(handle)
        count += 1
        if count >= n_files:
            os.kill(os.getpid(), signal.SIGKILL)

    os.fsync = fsync


def run_job(job: dict[str, Any]) -> None:
    if job.get("kill_file"):
        kill_in_checkpoint(job["kill_file"])
    if job.get("backend"):
        torch.compile = functools.partial(torch.compile, backend=job["backend"])
    on_step = kill_at(job["kill_step"]) if job.get("kill_step") else None
    model = tiny_model(job["model"], **job.get("settings", {}))
    run_tiny(Path(job["folder"]), model, resume=True, on_step=on_step, **job.get("sections", {}))


def main() -> None:
    """Do jobs one after the other, each in a process of its own, and print how each ended: 0, or -9 where killed.

    A job: {"folder": ..., "model": ..., "settings": {...}, "sections": {...}}, and how it is to be killed:
    "kill_step": after that update; "kill_file": when the n-th file reaches the disk; "kill_after": so many seconds.
    "backend" is torch.compile's.
    """
    torch.set_num_threads(1)
    torch.optim.AdamW(tiny_model().parameters())  # what is imported here, no child has to import again
    for job in json.loads(sys.argv[1]):
        child = os.fork()
        if child == 0:
            try:
                run_job(job)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if "kill_after" in job:
            time.sleep(job["kill_after"])
            os.kill(child, signal.SIGKILL)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
