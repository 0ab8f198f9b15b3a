"""One contender, one seed: trained as an ordinary run, then measured on the test text."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import Any

from regard.comparison.measure import block_nats, score_text
from regard.comparison.passages import TestText
from regard.comparison.plan import Contender, Plan
from regard.comparison.result import CurvePoint, Failure, SeedResult
from regard.comparison.width import Matched, matched
from regard.errors import RegardError
from regard.files import write_atomically
from regard.models.outline import outline_model
from regard.models.table import model_config
from regard.run.engine import load
from regard.settings import Settings
from regard.tasks.language_model import LanguageModelRun as Run
from regard.training.device import pick_device
from regard.training.metrics import read_metrics
from regard.training.progress import Reporter

N_EVALUATIONS = 20  # points of a learning curve, about
EVAL_TOKENS = (2_048, 16_384)  # the fewest and the most tokens a point, as the budget allows
FLOPS_PER_SECOND = {"cpu": 1e10, "cuda": 1e13}  # of one core, of one GPU; only to guess how often to evaluate
STEPS_PER_SECOND = 100  # no more than this, however small the model


def sized(contender: Contender, vocab_size: int, plan: Plan) -> Matched:
    """The contender's config with its widths chosen; what sees a bounded past sees one training window of it."""
    model = dict(contender.model)
    default = model_config(contender.model_name).to_dict()
    if "max_context" in default and "max_context" not in model:
        model["max_context"] = plan.train["n_context"]
    return matched(contender.model_name, model, vocab_size, plan.n_parameters)


def run_config(contender: Contender, model: Settings, vocab_size: int, seed: int, plan: Plan) -> dict[str, Any]:
    """The run that `regard train` would make: same batches, same order and same budget for every contender."""
    budget, train = plan.budget, dict(plan.train)
    cost = 0.0
    if not contender.is_counted:
        cost = 3.0 * outline_model(contender.model_name, model, vocab_size).flops_per_token(plan.train["n_context"])
    train |= {"max_tokens": budget.max_tokens(cost), "max_seconds": budget.seconds, "order": "stream"}
    if train["max_tokens"] is None and train["max_seconds"] is None:  # FLOPs do not limit counting: count it all
        train["max_epochs"] = 1.0
    train |= evaluations(plan)
    return {
        "seed": seed,
        "data": plan.data.to_dict(),
        "tokenizer": contender.tokenizer.to_dict(),
        "model": {"name": contender.model_name, **model.to_dict()},
        "optimizer": contender.optimizer.to_dict(),
        "schedule": contender.schedule.to_dict(),
        "train": train,
        "runtime": plan.runtime.to_dict(),
    }


def evaluations(plan: Plan) -> dict[str, int]:
    """How often to evaluate and on how much, from a guess of how far the budget reaches; the same for all contenders.

    A point costs a third of training on as many tokens, so all points together cost about a third of the training.
    """
    tokens_per_step = plan.train["n_batch"] * plan.train["n_context"]
    flops_per_token = 6.0 * plan.n_parameters  # twice the parameters forward, as much again twice for the way back
    device = pick_device(plan.runtime.device).type
    rate = FLOPS_PER_SECOND.get(device, 1e10) * ((os.cpu_count() or 1) if device == "cpu" else 1)
    guesses = []
    if (seconds := plan.budget.seconds) is not None:
        guesses += [seconds * rate / flops_per_token, seconds * STEPS_PER_SECOND * tokens_per_step]
    if (tokens := plan.budget.max_tokens(flops_per_token)) is not None:
        guesses.append(tokens)
    tokens_guess = min(guesses)
    every = max(1, round(tokens_guess / tokens_per_step / N_EVALUATIONS))
    fewest, most = EVAL_TOKENS
    return {"eval_every": every, "max_eval_tokens": int(min(most, max(fewest, tokens_guess / N_EVALUATIONS)))}


def train_and_measure(
    contender: Contender, size: Matched, vocab_size: int, seed: int, plan: Plan, test: TestText, reporter: Reporter
) -> SeedResult:
    """Train (or go on training) the run in `OUT/runs/NAME-seedK` and measure it."""
    from regard import api

    folder = plan.out / "runs" / f"{contender.name}-seed{seed}"
    config = run_config(contender, size.config, vocab_size, seed, plan)
    is_begun = (folder / "config.yaml").exists()
    run = api.train(config, out=folder, resume=is_begun, is_tested=False, reporter=reporter)
    device = pick_device(plan.runtime.device)
    if device.type != "cpu":
        run = load(folder, device=str(device))
    assert isinstance(run, Run)
    return measured(run, seed, plan.out, test)


def measured(run: Run, seed: int, out: Path, test: TestText) -> SeedResult:
    """The score on every block, and what training cost according to the run's own metrics."""
    nats = block_nats(scoring := score_text(run, test), test)
    if not bool((nats < float("inf")).all()):  # NaN too
        raise RegardError("it gives some test text no probability at all, so its bits per byte are infinite")
    lines = read_metrics(run.folder)
    last = lines[-1]
    curve = tuple(
        CurvePoint(
            tokens=int(line["tokens"]),
            flops=float(line["flops"]),
            seconds=float(line["seconds"]),
            bits_per_byte=float(line["bits_per_byte"]),
        )
        for line in lines
        if line["kind"] == "valid" and line.get("bits_per_byte") is not None
    )
    n_ngrams = last.get("n_ngrams")
    return SeedResult(
        seed=seed,
        run=str(run.folder.relative_to(out)),
        n_parameters=int(n_ngrams) if n_ngrams else run.facts.n_parameters,
        block_nats=tuple(float(n) for n in nats),
        n_test_tokens=len(scoring.ids),
        train_tokens=int(last["tokens"]),
        flops=float(last["flops"]),
        seconds=float(last["seconds"]),
        highest_lr=max((float(line["lr"]) for line in lines if line.get("lr") is not None), default=None),
        curve=curve,
    )


def failure_of(error: Exception, contender: str, seed: int, out: Path) -> Failure:
    """Why it failed, in one sentence; the traceback goes into a file for whoever wants to know."""
    details = "".join(traceback.format_exception(error))
    write_atomically(out / "failures" / f"{contender}-seed{seed}.txt", details.encode())
    if isinstance(error, RegardError):
        reason = str(error)
    elif isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        reason = f"out of memory ({str(error).splitlines()[0] if str(error) else 'no more was free'})"
    else:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
    return Failure(seed=seed, reason=reason)
