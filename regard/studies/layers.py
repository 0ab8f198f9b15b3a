"""Which layers of an encoder a task reads best: the first, the last, a sum of them, or a mix that is learned.

The encoder is frozen and a head of one matrix is trained on top, so that what is compared is what the layers hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from regard.models.encoder import Encoder
from regard.studies import brief
from regard.studies.finding import Chart, Finding, Numbers, lines_of
from regard.studies.fits import TENTHS, Spread, say_seeds, spread_of_scores
from regard.studies.reader_config import LayersConfig
from regard.studies.trainer import Trainer, Training
from regard.text.learning import Progress

NEEDED = {"second-to-last": 2, "sum-last-four": 4, "concat-last-four": 4}
"""Layers above the embeddings that a choice takes, where it is more than one."""


class Score(NamedTuple):
    """The score of one training."""

    encoder: str
    layers: str
    measure: str
    value: float
    shares: tuple[float, ...]
    """What each layer is of a learned mix, the embeddings first; empty where none was learned."""


def measure(config: LayersConfig, runs: Sequence[Any], tell: Progress, n_jobs: int = 1) -> Finding:
    """Train a head on each choice of layers of each encoder, with every seed."""
    found: list[Score] = []
    n_seeds = config.n_seeds  # of the heads, also where an encoder is the user's
    trainer = Trainer(tell, n_jobs)
    with brief.open_workplace() as folder:
        plan = [
            (name, layers, _plan_head(config, name, path, layers, seed, folder))
            for seed, encoders in _encoders(config, runs, folder, trainer).items()
            for name, path, n_layers in encoders
            for layers in config.layers
            if NEEDED.get(layers, 1) <= n_layers
        ]
        trainer.train_ahead([training for *_, training in plan], folder / "logs")
        for name, layers, training in brief.watch("heads", plan, tell):
            found.append(_score(name, layers, trainer.train(training)))
    return _finding(config, runs, found, n_seeds)


def _encoders(
    config: LayersConfig, runs: Sequence[Any], folder: Path, trainer: Trainer
) -> dict[int, list[tuple[str, Path, int]]]:
    """By seed the name, the folder and the number of layers of each encoder."""
    seeds = brief.list_seeds(config)
    if runs:
        names = brief.name_runs(runs, [run.config.model_name for run in runs])
        given = [(name, run.folder, _count_layers(run.model)) for name, run in zip(names, runs, strict=True)]
        return dict.fromkeys(seeds, given)
    wanted = {"d_model": config.d_model, "n_layers": config.n_layers}
    of_elmo = {"d_model": config.d_model // 2, "d_hidden": 2 * config.d_model, "filters": [16, 32], "n_vocab": 4096}
    plan = []
    for seed, name in product(seeds, config.models):
        settings = {**wanted, **of_elmo} if name == "elmo" else brief.choose_settings(name, wanted)
        model = {"name": name, **settings}
        plan.append((name, brief.plan_encoder(folder / f"{name}-{seed}", model, config.n_pretrain, seed)))
    trainer.train_ahead([training for _, training in plan], folder / "logs")
    found: dict[int, list[tuple[str, Path, int]]] = {}
    for name, training in plan:
        run = trainer.train(training)
        found.setdefault(training.seed, []).append((name, training.folder, _count_layers(run.model)))
    return found


def _count_layers(model: Any) -> int:
    assert isinstance(model, Encoder)
    return model.n_layers


def _plan_head(config: LayersConfig, name: str, path: Path, layers: str, seed: int, folder: Path) -> Training:
    given = {
        "task": config.task,
        "encoder_from": str(path),
        "encoder": {"frozen": True, "layers": layers},
        "data": {"train": config.data, "test": config.test},
        "optimizer": {"lr": config.lr},
    }
    where = folder / f"{name}-{layers}-{seed}".replace("/", "-")
    return Training(where, given, config.n_steps, seed, f"{name}, {layers}")


def _score(name: str, layers: str, run: Any) -> Score:
    measured, value = brief.score_reader(run)
    model: Any = run.model
    mix = model.choice.mix
    return Score(name, layers, measured, value, () if mix is None else tuple(mix.shares.tolist()))


def _finding(config: LayersConfig, runs: Sequence[Any], found: Sequence[Score], n_seeds: int) -> Finding:
    scores: dict[str, dict[str, list[float]]] = {}
    for score in found:
        scores.setdefault(score.encoder, {}).setdefault(score.layers, []).append(score.value)
    spreads = {name: {layers: spread_of_scores(v) for layers, v in of.items()} for name, of in scores.items()}
    measured = found[0].measure
    rows = tuple(
        (layers, *(of[layers].write(TENTHS) if layers in of else "–" for of in spreads.values()))
        for layers in config.layers
        if any(layers in of for of in spreads.values())
    )
    mixes = tuple(
        (name, n, 100 * share)
        for name in scores
        for score in found
        if score.encoder == name
        for n, share in enumerate(score.shares)
    )
    return Finding(
        question="Which layers hold what a task needs?",
        sentence=_sentence(spreads, measured, n_seeds),
        charts=(_scores_chart(config, found), *((_mix_chart(mixes),) if mixes else ())),
        summary=Numbers(f"{measured} by layers", ("layers", *spreads), rows),
        method=_method(config, runs),
        numbers={"measure": measured, "scores": [score._asdict() for score in found]},
    )


def _sentence(spreads: Mapping[str, Mapping[str, Spread]], measured: str, n_seeds: int) -> str:
    parts = []
    for name, of in spreads.items():
        best = max(of, key=lambda layers: (of[layers].mean, layers == "last"))  # others only where they are better
        parts.append(f"of {name} {best} is best, {of[best].write(TENTHS)}")
        if "last" in of and best != "last":
            parts[-1] += f" against {of['last'].write(TENTHS)} for the last layer"
    return f"{say_seeds(n_seeds)}, {measured}: {'; '.join(parts)}."


def _scores_chart(config: LayersConfig, found: Sequence[Score]) -> Chart:
    there = [layers for layers in config.layers if any(score.layers == layers for score in found)]
    numbers = {layers: n for n, layers in enumerate(there, start=1)}
    return Chart(
        "What a head reads from a frozen encoder",
        "choice of layers, in the order of the table",
        found[0].measure,
        lines_of((score.encoder, numbers[score.layers], score.value) for score in found),
        is_y_log=False,
        measured_at=tuple(float(numbers[layers]) for layers in there),
        note="; ".join(f"{numbers[layers]} {layers}" for layers in there) + ".",
    )


def _mix_chart(rows: Sequence[tuple[str, int, float]]) -> Chart:
    return Chart(
        "The learned mix",
        "layer, 0: the embeddings",
        "% of the mix",
        lines_of(rows),
        is_y_log=False,
        y_limits=(0.0, 100.0),
        measured_at=tuple(sorted({float(n) for _, n, _ in rows})),
        note="The share of each layer in the choice mix, softmax(w), as the task learned it.",
    )


def _method(config: LayersConfig, runs: Sequence[Any]) -> dict[str, str]:
    shape = f"width {config.d_model} and {config.n_layers} layers, {config.n_pretrain:,} updates"
    made = f"{', '.join(config.models)} of {shape}"
    return {
        "Encoders": brief.describe_runs(runs) if runs else f"{made} on the words of {brief.DATA}",
        "Heads": f"one matrix on the frozen encoder, {config.n_steps:,} updates, learning rate {config.lr:g}",
        "Texts": f"{config.data}, for the task {config.task}; scored on {config.test or 'its test examples'}",
        **brief.describe_seeds(config, ()),
    }
