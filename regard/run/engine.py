"""From a config to a trained run: rehearse, begin, fit, finish; and from a run folder to a model one can use."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from regard.config import RunConfig
from regard.data.known_sources import remember_sources, remember_starts
from regard.errors import RegardError, nearest
from regard.files import write_atomically
from regard.run import folder as run_folder
from regard.run.card import write_card
from regard.run.checksums import check_sealed, seal, unseal
from regard.run.folder import open_folder, read_weights
from regard.run.initial_weights import find_initial_weights
from regard.tasks.initial_weights import InitialWeights
from regard.tasks.table import TASKS, AnyRun, task_of
from regard.tasks.task import Ending, Fitting, OpenRun, ProgressBar, Rehearsal, check_starts, reopen_data
from regard.training.checkpoint import forget_ending, latest_checkpoint
from regard.training.device import pick_device
from regard.training.progress import Reporter, Silent
from regard.training.snapshots import read_snapshot
from regard.weights.ctranslate2_engine import check_precision

PRECISIONS = {"float32": torch.float32, "bf16": torch.bfloat16}
ENGINES = ("torch", "ctranslate2")


@dataclass(frozen=True)
class _Prepared:
    """What is known of a training before a file of it is written."""

    begun: OpenRun | None
    """The run that is gone on with."""
    data: Any
    start: InitialWeights | None
    rehearsal: Rehearsal


def rehearse(config: RunConfig, progress: ProgressBar = nullcontext, folder: Path | None = None) -> Rehearsal:
    """The size, cost and first batch of a run; nothing is trained and no run folder is written.

    `folder` is that of a run which is to go on.
    """
    return _prepare(config, folder, progress).rehearsal


def _prepare(config: RunConfig, folder: Path | None, progress: ProgressBar) -> _Prepared:
    """Read the data, and what the run begins with: as they are named, or as those of the run that is in `folder`."""
    task = task_of(config)
    begun = open_folder(folder) if folder is not None and (folder / "config.yaml").exists() else None
    if begun is not None and latest_checkpoint(begun.folder) is None:
        check_starts(begun)
    config = task.complete(config if begun is None else config.take_open(begun.config))
    with progress() as draw:
        data = task.prepare(config, draw) if begun is None else reopen_data(task, begun, draw)
    start = find_initial_weights(config, folder)
    planned = config if folder is None else _leave_out_vectors(config, folder)
    rehearsal = task.rehearse(planned, data, start)
    if planned is not config:
        rehearsal = replace(rehearsal, config=rehearsal.config.with_section("train", config.train))
    return _Prepared(begun, data, start, rehearsal)


def train(
    config: RunConfig,
    folder: Path,
    *,
    resume: bool = False,
    force: bool = False,
    is_tested: bool = True,
    progress: ProgressBar = nullcontext,
    reporter: Reporter | None = None,
) -> AnyRun:
    """Train into `folder`, which is free or holds this very run; the run, loaded, with its test score and card written.

    `is_tested` scores the test split at the end; `force` writes into a folder that holds other files.
    """
    task, reporter = task_of(config), reporter or Silent()
    prepared = _prepare(config, folder, progress)
    begun, data, start, rehearsal = prepared.begun, prepared.data, prepared.start, prepared.rehearsal
    config = rehearsal.config
    for note in ([start.note] if start is not None and start.note else []) + list(rehearsal.notes):
        reporter.note(note)
    rehearsal.check_memory()
    if start is not None:
        _ = start.weights  # read now: broken weights are refused before a run folder is written
    with run_folder.lock_folder(folder):
        fitting = Fitting(folder, start, resume, progress, reporter)
        if begun is None:
            tokenizers = task.tokenizers(data)
            sizes = rehearsal.n_parameters, rehearsal.flops_per_token
            facts = run_folder.state_facts(config, tokenizers, data.fingerprint, *sizes, start, rehearsal.facts)
            run_folder.begin(folder, config, tokenizers, facts, force)
            remember_sources(config.data.to_dict(), data.fingerprint)
            remember_starts(config.to_dict(), data.fingerprint)
        else:
            fitting = replace(fitting, begin_writing=_compare_begun(begun, config))
        task.fit(config, data, fitting)
        fitting.begin_writing()  # where nothing was left to do its limits may have been raised all the same
        return _finish(folder, data, is_tested)


def _compare_begun(begun: OpenRun, config: RunConfig) -> Callable[[], None]:
    """Refuse a run whose files have changed; returns what is to be called before one is written.

    It takes the checksums out of run.json, once, so that a run that is killed then goes on by the same command, and
    removes the card and the test score, which say that training has ended. Until then a resume may still be refused,
    and the files are those that the checksums are of. Call this in the lock.
    """
    folder, now = begun.folder, open_folder(begun.folder)
    if now.config != begun.config:
        raise RegardError(f"'{folder}' was changed by another process while this one began. Start this command again.")
    check_sealed(folder, now.facts, has_state=latest_checkpoint(folder) is not None)

    @cache
    def begin_writing() -> None:
        unseal(folder, now.facts)
        forget_ending(folder)
        if config != now.config:  # trained longer, say: the folder says what its weights come from
            run_folder.write_config(folder, config)

    return begin_writing


def _leave_out_vectors(config: RunConfig, folder: Path) -> RunConfig:
    """The config without a file of word vectors, where a saved state has taken their place: it is not read again."""
    if latest_checkpoint(folder) is None or config.train.vectors is None:
        return config
    return config.with_section("train", config.train.replace(vectors=None))


def _finish(folder: Path, data: Any, is_tested: bool) -> AnyRun:
    """Load the run that was trained, score it on its test split, and write its card."""
    run = load(folder)
    task = task_of(run.config)
    seal(folder, run.facts)  # counting alone knows how large a model it has made
    test = task.test(run, data) if is_tested else None
    if test is not None:
        write_atomically(folder / "test.json", (json.dumps(test.to_dict(), indent=2) + "\n").encode())
    write_card(replace(open_folder(folder), facts=run.facts), data, test)
    run.ending = Ending(test, task.usage(run.config, folder, data))
    return run


def load(
    folder: str | Path,
    device: str = "auto",
    precision: str = "float32",
    kind: type[Any] | None = None,
    engine: str = "torch",
    step: int | None = None,
) -> AnyRun:
    """Open a run folder. Nothing in it is executed: weights are safetensors, the rest is YAML and JSON.

    `precision="bf16"` rounds the weights to bfloat16: half the memory, and faster on a GPU. With `kind`, a class of
    runs, any other run is refused. `engine="ctranslate2"` decodes by CTranslate2, on the CPU, in float32 or int8.
    `step` opens the weights that were kept after that step (`checkpoint.snapshots`) instead of the best ones.
    """
    _check_engine(engine, device, precision)
    opened = open_folder(Path(folder))
    task = task_of(opened.config)
    if kind is not None and task.run_type is not kind:
        wanted = next((other for other in TASKS.values() if other.run_type is kind), None)
        if wanted is None:
            names = ", ".join(f"regard.{other.run_type.__name__}" for other in TASKS.values())
            raise RegardError(f"kind must be one of {names}, or be left out for any run, not {kind!r}.")
        raise RegardError(
            f"'{folder}' is a run of {opened.config.model_name} that {task.summary}, and one that {wanted.summary} is "
            f"needed here. Use this one with: regard {task.verb} {folder}"
        )
    weights = read_weights(opened.folder, opened.facts) if step is None else read_snapshot(opened.folder, step)
    if engine == "torch":
        run: AnyRun = task.load(opened, weights, pick_device(device), PRECISIONS[precision])
    else:
        run = task.load(opened, weights, pick_device("cpu"), PRECISIONS["float32"])
        run.use_ctranslate2(precision)
    return run


def _check_engine(engine: str, device: str, precision: str) -> None:
    if engine not in ENGINES:
        raise RegardError(f"engine must be one of {', '.join(ENGINES)}, not '{engine}'.{nearest(engine, ENGINES)}")
    if engine == "torch":
        if precision == "int8":
            raise RegardError("Eight bits are computed by CTranslate2: add --engine ctranslate2 (in Python: engine).")
        if precision not in PRECISIONS:
            raise RegardError(f"precision must be one of {', '.join(PRECISIONS)}, not '{precision}'.")
        return
    check_precision(precision)
    if device not in ("auto", "cpu"):
        raise RegardError(f"CTranslate2 decodes on the CPU here, not on '{device}': leave out --device, or --engine.")
