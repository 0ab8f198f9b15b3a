"""What pre-training gains, by the number of labelled examples: the same model from its weights, and from scratch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from regard.models.encoder_from_scratch import FROM_SCRATCH
from regard.studies import brief
from regard.studies.finding import Chart, Finding, Numbers, lines_of
from regard.studies.fits import TENTHS, say_seeds, spread_of_scores
from regard.studies.reader_config import TransferConfig
from regard.studies.trainer import Trainer, Training
from regard.text.learning import Progress

Row = tuple[str, int, float]
"""Which way, how many examples, the score."""


def measure(config: TransferConfig, runs: Sequence[Any], tell: Progress, n_jobs: int = 1) -> Finding:
    """Train on every number of examples, from pre-trained weights and from scratch, with every seed."""
    rows: list[Row] = []
    measured = ""
    trainer = Trainer(tell, n_jobs)
    with brief.open_workplace() as folder:
        plan = []
        for seed, encoders in _encoders(config, runs, folder, trainer).items():
            for (name, run), size in product(encoders, config.sizes):
                for way, given in _ways(config, name, run, size).items():
                    where = folder / f"{way}-{size}-{seed}".replace("/", "-")
                    what = f"{way}, {size:,} examples"
                    plan.append((way, size, Training(where, given, config.n_steps, seed, what)))
        trainer.train_ahead([training for *_, training in plan], folder / "logs")
        for way, size, training in brief.watch("trainings", plan, tell):
            measured, value = brief.score_reader(trainer.train(training))
            rows.append((way, size, value))
    return _finding(config, runs, rows, measured)


def _encoders(
    config: TransferConfig, runs: Sequence[Any], folder: Path, trainer: Trainer
) -> dict[int, list[tuple[str, Any]]]:
    """By seed the name and the run of each encoder."""
    seeds = brief.list_seeds(config)
    if runs:
        named = list(zip(brief.name_runs(runs, [run.config.model_name for run in runs]), runs, strict=True))
        return dict.fromkeys(seeds, named)
    model = {"name": "lstm", "d_model": config.d_model, "n_layers": 2}
    plan = [brief.plan_encoder(folder / f"encoder-{seed}", model, config.n_pretrain, seed) for seed in seeds]
    trainer.train_ahead(plan, folder / "logs")
    return {training.seed: [("lstm", trainer.train(training))] for training in plan}


def _ways(config: TransferConfig, name: str, run: Any, size: int) -> dict[str, dict[str, Any]]:
    """The plain configs of both trainings: the same model, vocabulary and head."""
    shared: dict[str, Any] = {
        "task": config.task,
        "data": {"train": config.data, "max_examples": size},
        "optimizer": {"lr": config.lr},
        "tokenizer": {**run.config.tokenizer.to_dict(), "path": str(run.folder)},
    }
    model = {"name": run.config.model_name, **run.config.model.to_dict()}
    # From scratch these would read both ways, and what was pre-trained reads one.
    encoder = {"is_bidirectional": False} if run.config.model_name in FROM_SCRATCH else {}
    return {
        f"{name}, pre-trained": {**shared, "encoder_from": str(run.folder)},
        f"{name}, from scratch": {**shared, "model": model, "encoder": encoder},
    }


def _finding(config: TransferConfig, runs: Sequence[Any], rows: Sequence[Row], measured: str) -> Finding:
    ways = list(dict.fromkeys(way for way, _, _ in rows))
    spreads = {
        (way, size): spread_of_scores([value for w, s, value in rows if (w, s) == (way, size)])
        for way in ways
        for size in config.sizes
    }
    table = tuple((f"{size:,}", *(spreads[way, size].write(TENTHS) for way in ways)) for size in config.sizes)
    least = min(config.sizes)
    compared = " and ".join(f"{way} {spreads[way, least].write(TENTHS)}" for way in ways)
    most = " and ".join(spreads[way, max(config.sizes)].write(TENTHS) for way in ways)
    return Finding(
        question="What does pre-training gain, and when?",
        sentence=f"{say_seeds(config.n_seeds)}, {measured} with {least:,} labelled examples: {compared}; with "
        f"{max(config.sizes):,}: {most}.",
        charts=(
            Chart(
                "By the number of labelled examples", "labelled examples", measured, lines_of(rows), is_x_log=True,
                is_y_log=False, measured_at=tuple(map(float, config.sizes)),
                note="The same model, vocabulary, head and number of updates: from pre-trained weights, or at random.",
            ),
        ),
        summary=Numbers(f"{measured} by labelled examples", ("examples", *ways), table),
        method={
            "Encoders": brief.describe_runs(runs) if runs
            else f"an LSTM of width {config.d_model} and 2 layers, {config.n_pretrain:,} updates on the words of "
            f"{brief.DATA}",
            "Training": f"all weights, {config.n_steps:,} updates, learning rate {config.lr:g}",
            "Texts": f"{config.data}, for the task {config.task}; scored on its test examples",
            **brief.describe_seeds(config, ()),
        },
        numbers={"measure": measured, "scores": [list(row) for row in rows]},
    )  # fmt: skip
