"""One direction against two: recurrent layers that read a text from its beginning, or from both ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.studies import brief
from regard.studies.finding import Chart, Finding, Numbers, lines_of
from regard.studies.fits import TENTHS, say_seeds, spread_of_scores
from regard.studies.reader_config import DirectionsConfig
from regard.studies.trainer import Trainer, Training
from regard.text.learning import Progress

WAYS = {"one direction": False, "two directions": True}
VOCAB_SIZE = 1000  # words that are embedded, so that the layers are most of the parameters


def measure(config: DirectionsConfig, runs: Sequence[Any], tell: Progress, n_jobs: int = 1) -> Finding:
    """Train every number of layers, one way and both ways, with every seed."""
    sizes = {(way, n): choose_width(config, n, WAYS[way]) for way in WAYS for n in config.layers}
    rows: list[tuple[str, int, float]] = []
    measured = ""
    trainer = Trainer(tell, n_jobs)
    with brief.open_workplace() as folder:
        plan = [
            (way, n, Training(
                folder / f"{way}-{n}-{seed}", _given(config, n, WAYS[way], width), config.n_steps, seed,
                f"{way}, {n} layers",
            ))
            for seed in brief.list_seeds(config)
            for (way, n), (width, _) in sizes.items()
        ]  # fmt: skip
        trainer.train_ahead([training for *_, training in plan], folder / "logs")
        for way, n, training in brief.watch("trainings", plan, tell):
            measured, value = brief.score_reader(trainer.train(training))
            rows.append((way, n, value))
    return _finding(config, rows, sizes, measured)


def choose_width(config: DirectionsConfig, n_layers: int, is_bidirectional: bool) -> tuple[int, int]:
    """The even width whose model has the number of parameters nearest to what is wanted, and that number."""
    return brief.find_width(lambda width: _given(config, n_layers, is_bidirectional, width), config.n_parameters)


def _given(config: DirectionsConfig, n_layers: int, is_bidirectional: bool, width: int) -> dict[str, Any]:
    return {
        "task": config.task,
        "data": {"train": config.data},
        "tokenizer": {"kind": "word", "vocab_size": VOCAB_SIZE},
        "model": {"name": config.model, "d_model": width, "n_layers": n_layers},
        "encoder": {"is_bidirectional": is_bidirectional},
        "optimizer": {"lr": config.lr},
    }


def _finding(
    config: DirectionsConfig,
    rows: Sequence[tuple[str, int, float]],
    sizes: dict[tuple[str, int], tuple[int, int]],
    measured: str,
) -> Finding:
    spreads = {key: spread_of_scores([value for way, n, value in rows if (way, n) == key]) for key in sizes}
    table = tuple(
        (way, n, width, f"{n_parameters:,}", spreads[way, n].write(TENTHS))
        for (way, n), (width, n_parameters) in sizes.items()
    )
    best = {way: max((n for w, n in sizes if w == way), key=lambda n: spreads[way, n].mean) for way in WAYS}
    said = ", ".join(f"{way} {spreads[way, n].write(TENTHS)} with {n} layer{'s' * (n != 1)}" for way, n in best.items())
    return Finding(
        question="Does it help to read a text from both ends?",
        sentence=f"{say_seeds(config.n_seeds)}, the best {measured} at about {config.n_parameters:,} parameters: "
        f"{said}.",
        charts=(
            Chart(
                f"{config.model}, by directions and layers", "layers", measured, lines_of(rows), is_y_log=False,
                measured_at=tuple(map(float, config.layers)),
                note="Each model has the width that gives it the same number of parameters, embeddings included.",
            ),
        ),
        summary=Numbers(
            f"{measured} at equal parameters", ("directions", "layers", "width", "parameters", measured), table
        ),
        method={
            "Models": f"{config.model} from scratch on words, the {VOCAB_SIZE:,} most frequent",
            "Training": f"{config.n_steps:,} updates, learning rate {config.lr:g}",
            "Texts": f"{config.data}, for the task {config.task}; scored on its test examples",
            **brief.describe_seeds(config, ()),
        },
        numbers={"measure": measured, "scores": [list(row) for row in rows]},
    )  # fmt: skip
