"""One contender, one seed: trained as an ordinary run, then measured on the test text."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import Any

from regard.compare.budget import Budget
from regard.compare.measure import block_nats
from regard.compare.passages import TestText
from regard.compare.plan import Contender, Plan
from regard.compare.result import CurvePoint, Failure, SeedResult
from regard.compare.width import Matched, matched
from regard.errors import RegardError
from regard.files import write_atomically
from regard.models.table import build_language_model, model_config
from regard.run import Run
from regard.settings import Settings
from regard.train.device import pick_device
from regard.train.metrics import read_metrics
from regard.train.progress import Reporter

N_EVALUATIONS = 24  # points of a learning curve, about
MAX_EVAL_TOKENS = 16_384  # tokens a point: enough for a curve, little beside the training between two
FLOPS_PER_SECOND = {"cpu": 1e10, "cuda": 1e13}  # of one core, of one GPU; only to guess how often to evaluate


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
        cost = 3.0 * _flops_per_token(contender.model_name, model, vocab_size, plan.train["n_context"])
    train |= {"max_tokens": budget.max_tokens(cost), "max_seconds": budget.seconds, "order": "stream"}
    if train["max_tokens"] is None and train["max_seconds"] is None:  # FLOPs do not limit counting: count it all
        train["max_epochs"] = 1.0
    train |= {"eval_every": evaluate_every(budget, cost, plan), "max_eval_tokens": MAX_EVAL_TOKENS}
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


def evaluate_every(budget: Budget, flops_per_token: float, plan: Plan) -> int:
    """Steps between two points of the learning curve, so that there are about `N_EVALUATIONS` of them."""
    tokens_per_step = plan.train["n_batch"] * plan.train["n_context"]
    device = pick_device(plan.runtime.device).type
    rate = FLOPS_PER_SECOND.get(device, 1e10) * ((os.cpu_count() or 1) if device == "cpu" else 1)
    guesses = []
    if (tokens := budget.max_tokens(flops_per_token)) is not None:
        guesses.append(tokens / tokens_per_step)
    if budget.seconds is not None:
        guesses.append(budget.seconds * rate / max(flops_per_token * tokens_per_step, 1.0))
    return max(1, round(min(guesses, default=1000) / N_EVALUATIONS))


def train_and_measure(
    contender: Contender, size: Matched, vocab_size: int, seed: int, plan: Plan, test: TestText, reporter: Reporter
) -> SeedResult:
    """Train (or go on training) the run in `OUT/runs/NAME-seedK` and measure it."""
    from regard import api

    folder = plan.out / "runs" / f"{contender.name}-seed{seed}"
    config = run_config(contender, size.config, vocab_size, seed, plan)
    is_begun = (folder / "config.yaml").exists()
    run = api.train(config, out=folder, resume=is_begun, reporter=reporter)
    return measured(run, seed, plan.out, test)


def measured(run: Run, seed: int, out: Path, test: TestText) -> SeedResult:
    """The score on every block, and what training cost according to the run's own metrics."""
    nats, n_tokens = block_nats(run, test)
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
        n_test_tokens=n_tokens,
        train_tokens=int(last["tokens"]),
        flops=float(last["flops"]),
        seconds=float(last["seconds"]),
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


def _flops_per_token(name: str, config: Settings, vocab_size: int, n_context: int) -> int:
    import torch

    with torch.device("meta"):
        return build_language_model(name, config, vocab_size).flops_per_token(n_context)
