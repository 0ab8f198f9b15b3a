"""Whether attention explains: how far it agrees with gradients and erasure, and what changing it does to the output.

Classifiers of sentences with attention as their pool over a bag, an LSTM and a Transformer, and a Transformer that
says the next token; or runs of the user's. Each prediction is asked what `regard.lens.faithfulness` asks of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.errors import RegardError
from regard.lens.faithfulness import EPSILON, STILL, Faithfulness, measure_faithfulness
from regard.lens.prediction import Prediction
from regard.studies import brief
from regard.studies.config import FaithfulnessConfig
from regard.studies.finding import Chart, Finding, Numbers, lines_of
from regard.studies.fits import Spread, say_seeds, spread
from regard.studies.trainer import Trainer, Training
from regard.tasks.labelled_run import LabelledRun
from regard.tasks.language_model_run import LanguageModelRun
from regard.tasks.task import reopen_data
from regard.text.learning import Progress

LANGUAGE_MODEL = "language-model"
MEASURES = {
    "τ with gradients": "tau_gradients",
    "τ with erasure": "tau_erasure",
    "τ of gradients with erasure": "tau_gradients_erasure",
    "moved, permuted": "moved_permuted",
    "moved, uniform": "moved_uniform",
    "pushed away": "pushed",
}
"""What is measured of every prediction, by the name that tables give it."""
N_CONTEXT = 32
"""Tokens before a prediction of a language model."""
TWO = "{:.2f}".format
MOVES, TAUS = (1, 2, 5, 10, 20, 40, 70, 100), (-100, -60, -40, -20, 0, 20, 40, 60, 100)
"""Where the figures are measured, in per cent."""


class Measured(NamedTuple):
    """What was measured of one prediction of one model."""

    model: str
    seed: int
    numbers: dict[str, float]
    depends: bool
    explains: bool
    verdict: str


def measure(config: FaithfulnessConfig, runs: Sequence[Any], tell: Progress, n_jobs: int = 1) -> Finding:
    """Measure the faithfulness of attention for `n_texts` predictions of every model, with every seed."""
    found: list[Measured] = []
    trainer = Trainer(tell, n_jobs)
    with brief.open_workplace() as folder:
        for name, seed, run in _models(config, runs, folder, trainer):
            predictions = list(_predictions(config, run, seed))
            for prediction in brief.watch(f"predictions of {name}", predictions, tell):
                found.append(_measure_one(name, seed, prediction, config))
    return _finding(config, runs, found)


def _measure_one(name: str, seed: int, prediction: Prediction, config: FaithfulnessConfig) -> Measured:
    one: Faithfulness = measure_faithfulness(prediction, n_permutations=config.n_permutations, seed=seed)
    numbers = {label: float(getattr(one, field)) for label, field in MEASURES.items()}
    explains = one.depends and one.agrees and not one.has_other
    return Measured(name, seed, numbers, one.depends, explains, one.verdict)


def _models(
    config: FaithfulnessConfig, runs: Sequence[Any], folder: Path, trainer: Trainer
) -> Iterator[tuple[str, int, Any]]:
    """Every model with its seed: the user's runs, or those that are trained for a moment."""
    if runs:
        for run in runs:
            if not isinstance(run, LabelledRun | LanguageModelRun):
                raise RegardError(
                    f"'{run.folder}' is a run that {run.task.summary}; this study takes language models and readers of "
                    "labelled texts, such as classifiers."
                )
        names = brief.name_runs(runs, [run.config.model_name for run in runs])
        yield from ((name, config.seed, run) for name, run in zip(names, runs, strict=True))
        return
    plan = {}
    for name, seed in product(config.models, brief.list_seeds(config)):
        where, given = folder / f"{name}-{seed}", _given(config, name)
        plan[name, seed] = Training(where, given, config.n_steps, seed, f"training {name}")
    trainer.train_ahead(plan.values(), folder / "logs")
    for (name, seed), training in plan.items():
        yield name, seed, trainer.train(training)


def _given(config: FaithfulnessConfig, name: str) -> dict[str, Any]:
    """The plain config of one of the study's own models."""
    if name == LANGUAGE_MODEL:
        wanted = {"d_model": config.d_model, "n_layers": 2, "n_heads": 4, "max_context": N_CONTEXT + 1}
        return {
            "data": {"train": brief.DATA},
            "tokenizer": {"kind": "bpe", "vocab_size": brief.VOCAB_SIZE},
            "model": {"name": "transformer", **brief.choose_settings("transformer", wanted)},
            "optimizer": {"lr": brief.RATE},
            "train": {"n_batch": brief.N_BATCH, "n_context": N_CONTEXT + 1, "max_eval_tokens": 2048},
        }
    wanted = {"d_model": config.d_model, "n_layers": 1, "n_heads": 4, "max_context": 64}
    return {
        "task": "classification",
        "data": {"train": config.data},
        "tokenizer": {"kind": "word", "vocab_size": None},
        "model": {"name": name, **brief.choose_settings(name, wanted)},
        "encoder": {"pool": "attention"},
        "optimizer": {"lr": brief.RATE},
        "train": {"n_batch": 32},
    }


def _predictions(config: FaithfulnessConfig, run: Any, seed: int) -> Iterator[Prediction]:
    """Predictions on texts that the model never learned from."""
    draws = np.random.default_rng(seed)
    if isinstance(run, LanguageModelRun):
        tokens = run.text_of(None, "test")
        tokens = tokens if len(tokens) > 1 else run.text_of(None, "valid")
        n = min(N_CONTEXT, len(tokens), (run.next_token.max_context or N_CONTEXT + 1) - 1)
        for start in draws.integers(0, len(tokens) - n + 1, config.n_texts).tolist():
            text = run.tokenizer.decode(tokens[start : start + n])
            yield run.prediction(text, at=min(n, len(run.tokenizer.encode(text))))
        return
    data = reopen_data(run.task, run.opened, option="--set data=FILE")
    examples = data.test or data.valid
    for i in draws.permutation(len(examples))[: config.n_texts].tolist():
        texts = examples[i].texts
        yield run.prediction(texts[0] if len(texts) == 1 else list(texts))


def _finding(config: FaithfulnessConfig, runs: Sequence[Any], found: Sequence[Measured]) -> Finding:
    names = list(dict.fromkeys(each.model for each in found))
    spreads = {(name, label): _spread(found, name, label) for name in names for label in MEASURES}
    explained = {name: _share(found, name, "explains") for name in names}
    depended = {name: _share(found, name, "depends") for name in names}
    figures = {label: {name: spreads[name, label] for name in names} for label in MEASURES}
    shares = {f"output moves by {STILL:g} or more": depended, "explained by attention": explained}
    short = tuple(
        (label, *(TWO(of[name].mean) if label in MEASURES else f"{of[name].mean:.0%}" for name in names))
        for label, of in {**figures, **shares}.items()
    )
    whole = tuple(
        (label, *(of[name].write(TWO) if label in MEASURES else _percent(of[name]) for name in names))
        for label, of in {**figures, **shares}.items()
    )
    said = ", ".join(f"{explained[name].mean:.0%} in {name}" for name in names)
    moved = ", ".join(f"{spreads[name, 'moved, permuted'].write(TWO)} in {name}" for name in names)
    begins = f"{say_seeds(config.n_seeds)}, attention" if not runs else "Attention"
    return Finding(
        question="Does attention explain what a model says?",
        sentence=f"{begins} explains of the predictions {said}; permuting it moves the output by {moved}.",
        charts=(
            Chart(
                "Attention permuted", "output moves by at least, %", "predictions, %",
                lines_of(_list_shares(found, names, "moved, permuted", MOVES)), is_x_log=True, is_y_log=False,
                measured_at=tuple(map(float, MOVES)), y_limits=(0.0, 100.0),
                note="The median of the permutations, as total variation: at 100% no probability is where it was.",
            ),
            Chart(
                "Attention against erasure", "τ of at least, %", "predictions, %",
                lines_of(_list_shares(found, names, "τ with erasure", TAUS)), is_y_log=False,
                measured_at=tuple(map(float, TAUS)), y_limits=(0.0, 100.0),
                note="100%: the same order of words; 0: nothing in common; below: the opposite.",
            ),
        ),
        summary=Numbers("Means over predictions", ("measure", *names), short),
        tables=(Numbers("Means over predictions, with intervals over seeds", ("measure", *names), whole),),
        method={
            "Models": brief.describe_runs(runs) if runs else _describe_models(config),
            "Predictions": f"{config.n_texts} of each model, on texts that it did not learn from",
            "Agreement": "Kendall's τ_b over the tokens, of attention (mean over heads; of several layers their "
            "rollout) with |gradient · input| and with how far the output moves when the token is erased",
            "Output": "total variation; permuted: the median over "
            f"{config.n_permutations} permutations of the weights; pushed away: Jensen-Shannon divergence over ln 2 of "
            f"weights that move the output by at most {EPSILON:g}",
            **brief.describe_seeds(config, runs),
        },
        numbers={"predictions": [each._asdict() for each in found]},
    )  # fmt: skip


def _describe_models(config: FaithfulnessConfig) -> str:
    return (
        f"{', '.join(config.models)}: width {config.d_model}, {config.n_steps:,} updates; classifiers of {config.data} "
        f"that pool their states by attention, and {LANGUAGE_MODEL}, a Transformer of 2 layers on {brief.DATA}"
    )


def _means(found: Sequence[Measured], name: str, label: str) -> list[float]:
    """The mean over the predictions of each seed that has any."""
    by_seed: dict[int, list[float]] = {}
    for each in found:
        if each.model == name and not math.isnan(each.numbers[label]):
            by_seed.setdefault(each.seed, []).append(each.numbers[label])
    return [float(np.mean(values)) for values in by_seed.values()]


def _spread(found: Sequence[Measured], name: str, label: str) -> Spread:
    return spread(_means(found, name, label) or [math.nan])


def _list_shares(
    found: Sequence[Measured], names: Sequence[str], label: str, limits: Sequence[int]
) -> Iterator[tuple[str, int, float]]:
    """(model, limit, per cent of the predictions of a seed that reach it), for every seed."""
    for name, seed in dict.fromkeys((each.model, each.seed) for each in found):
        values = [each.numbers[label] for each in found if (each.model, each.seed) == (name, seed)]
        there = np.array([value for value in values if not math.isnan(value)])
        for limit in limits:
            if len(there) and name in names:
                yield name, limit, 100 * float(np.mean(there >= limit / 100 - 1e-9))


def _share(found: Sequence[Measured], name: str, field: str) -> Spread:
    by_seed: dict[int, list[float]] = {}
    for each in found:
        if each.model == name:
            by_seed.setdefault(each.seed, []).append(float(getattr(each, field)))
    return spread([float(np.mean(values)) for values in by_seed.values()])


def _percent(share: Spread) -> str:
    """A share of predictions; none is below 0% or above 100%."""
    return share.write(lambda value: f"{min(1.0, max(0.0, value)):.0%}")
