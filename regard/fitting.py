"""A model that is trained by gradients, as the config of its run says."""

from __future__ import annotations

from pathlib import Path

from regard.config import RunConfig
from regard.errors import InterruptedRunError
from regard.training.checkpoint import latest_checkpoint
from regard.training.loop import train_task
from regard.training.progress import Reporter
from regard.training.task import Task
from regard.training.trainable import TrainableModel


def fit(
    config: RunConfig, network: TrainableModel, task: Task, folder: Path, *, resume: bool, reporter: Reporter
) -> None:
    """Train to the end; InterruptedRunError where a person ended it before."""
    before = latest_checkpoint(folder)
    result = train_task(
        network,
        task,
        folder,
        train=config.train,
        optimizer=config.optimizer,
        schedule=config.schedule,
        runtime=config.runtime,
        checkpoint=config.checkpoint,
        seed=config.seed,
        resume=resume,
        reporter=reporter,
    )
    if not result.is_finished:
        raise InterruptedRunError(
            f"Stopped at step {result.step}; all is saved. Continue with: regard train --resume --out {folder}"
        )
    if before is not None and before == latest_checkpoint(folder):
        reporter.note(f"Nothing was left to do: the run ended at step {result.step} ({result.reason}).")
    elif result.reason == "patience":
        n = config.train.patience
        reporter.note(
            f"Stopped after step {result.step}: no better score in {n} evaluation{'' if n == 1 else 's'} "
            f"(train.patience). The best was at step {result.best_step}, whose weights are kept."
        )
