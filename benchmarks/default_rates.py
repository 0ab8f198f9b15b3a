"""Are the default learning rates good at every width, and on texts that they were not chosen on?

    python benchmarks/default_rates.py widths --out widths.json
    python benchmarks/default_rates.py trials my.txt other.txt --params 300k --flops 7.6e11 --out trials.json

`widths`: every language model at several widths, each at a quarter, half, once, twice and four times its default rate,
on one text: the best rate should stay within a factor of two of the default. `trials`: on each text the default
settings with three seeds, against the best of 20 trials whose rate (a quarter to four times the default), depth and
weight decay are drawn at random: how many bits per byte does tuning gain? Scores are of validation text. Several
trainings run at once as branches of one CUDA graph, in several processes; a CPU takes hours.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from side_by_side import Job, Trained, train_side_by_side
from timing import describe_machine, options, pick_device

from regard.compare.budget import parse_budget
from regard.compare.width import match_width, with_depth
from regard.data.config import DataConfig
from regard.data.prepared_text import PreparedText, prepare_text
from regard.models.outline import outline_model
from regard.models.table import MODELS, model_config, models_for
from regard.text.config import TokenizerConfig
from regard.training.config import OptimizerConfig

WIDTHS = (64, 128, 256, 512)
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
DECAYS = (0.0, 0.03, 0.1, 0.3)
N_TRIALS = 20
NAMES = [name for name in models_for("language-model") if MODELS[name].lr is not None]
Row = dict[str, Any]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("what", nargs="?", choices=("widths", "trials"), default="trials")
    parser.add_argument("texts", nargs="*", default=[], help="files; default: python-docs")
    parser.add_argument("--models", nargs="*", default=NAMES, choices=NAMES, metavar="NAME")
    parser.add_argument("--params", default="300k")
    parser.add_argument("--flops", type=float, default=7.6e11)
    parser.add_argument("--batch", type=int, nargs=2, default=(8, 64), metavar=("ROWS", "TOKENS"))
    parser.add_argument("--updates", type=int, default=1000, help="of `widths`")
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--part", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.texts = given.texts or ["python-docs"]
    if given.tiny:
        given.models, given.processes, given.batch = NAMES[-2:], 1, (2, 8)
    began = time.perf_counter()
    if given.part is not None or given.processes == 1:
        rows = list(run_part(given, *(given.part or (0, 1))))
    else:
        rows = run_parts(given)
    if given.out is not None:
        given.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if given.part is None:
        print(f"{describe_machine()}; {len(rows)} trainings, {time.perf_counter() - began:.0f} s")
        (print_widths if given.what == "widths" else print_trials)(rows)


def run_parts(given: argparse.Namespace) -> list[Row]:
    """Share the jobs between processes, each of which starts this script again."""
    for text in given.texts:
        prepare(text, given.tiny)  # once, into the cache
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{i}.jsonl" for i in range(given.processes)]
        part = [sys.executable, *sys.argv]
        running = [
            subprocess.Popen([*part, "--part", str(i), str(given.processes), "--out", str(file)])
            for i, file in enumerate(files)
        ]
        for process in running:
            process.wait()
        return [json.loads(line) for file in files if file.exists() for line in file.read_text().splitlines()]


def run_part(given: argparse.Namespace, part: int, n_parts: int) -> Iterator[Row]:
    """The rows of every n_parts-th job; a job that fails is told and left out."""
    device = pick_device(given.tiny)
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    data: dict[str, PreparedText] = {}
    for number, (text, kind, job) in enumerate(list_jobs(given)):
        if number % n_parts != part:
            continue
        data.setdefault(text, prepare(text, given.tiny))
        try:
            found = train_side_by_side(job, data[text], device)
        except (RuntimeError, ValueError) as error:
            print(f"{job.model} on {text} failed: {error}", file=sys.stderr)
            continue
        yield from (describe(text, kind, job, trained) for trained in found)


def prepare(text: str, is_tiny: bool) -> PreparedText:
    tokenizer = TokenizerConfig(vocab_size=300 if is_tiny else 4096)
    return prepare_text(DataConfig(train=text, max_bytes=50_000 if is_tiny else None), tokenizer)


def list_jobs(given: argparse.Namespace) -> Iterator[tuple[str, str, Job]]:
    return list_widths(given) if given.what == "widths" else list_trials(given)


def list_widths(given: argparse.Namespace) -> Iterator[tuple[str, str, Job]]:
    for width in (16,) if given.tiny else sorted(WIDTHS, reverse=True):
        for name in given.models:
            settings = {"d_model": width, **({"d_hidden": 4 * width} if name in ("bag", "window") else {})}
            config = model_config(name, limit_context(name, settings, given.batch[1]))
            rates = [optimizer_of(name, width, factor) for factor in FACTORS]
            n_updates = 4 if given.tiny else given.updates
            yield given.texts[0], "width", job_of(given, name, config, rates, n_updates=n_updates)


def list_trials(given: argparse.Namespace) -> Iterator[tuple[str, str, Job]]:
    draw = random.Random(0)
    target = 20_000 if given.tiny else parse_budget(f"{given.params}params").n_parameters
    assert target is not None
    flops = 1e9 if given.tiny else given.flops
    for text in given.texts:
        vocab_size = prepare(text, given.tiny).tokenizer.vocab_size
        for name in given.models:
            default = with_depth(name, {}, target)
            config = solve(name, default, target, vocab_size, given.batch[1])
            optimizer = optimizer_of(name, config.d_model)
            yield text, "default", job_of(given, name, config, [optimizer], flops=flops, seeds=(0, 1, 2))
            depth = "n_window" if name == "window" else "n_layers"
            choices = (4, 8, 12) if name == "window" else (1, 2, 4)
            drawn = [
                (draw.choice(choices), 2 ** draw.uniform(-2, 2), draw.choice(DECAYS))
                for _ in range(2 if given.tiny else N_TRIALS)
            ]
            for choice in choices:
                chosen = [(factor, decay) for c, factor, decay in drawn if c == choice]
                if chosen:
                    config = solve(name, {depth: choice}, target, vocab_size, given.batch[1])
                    optimizers = [optimizer_of(name, config.d_model, *pair) for pair in chosen]
                    yield text, "trial", job_of(given, name, config, optimizers, flops=flops)


def job_of(given: argparse.Namespace, name: str, config: Any, optimizers: Iterable[Any], **changes: Any) -> Job:
    rows, tokens = given.batch
    return Job(model=name, config=config, optimizers=tuple(optimizers), n_batch=rows, n_context=tokens, **changes)


def optimizer_of(name: str, d_model: int, factor: float = 1.0, decay: float | None = None) -> OptimizerConfig:
    """The default settings of the model's optimiser, with another rate or decay."""
    entry = MODELS[name]
    assert entry.lr is not None
    complete = OptimizerConfig().complete(False, factor * entry.lr, entry.embedding_rate_at(d_model))
    return complete if decay is None else complete.replace(weight_decay=decay)


def solve(name: str, settings: dict[str, Any], target: int, vocab_size: int, n_context: int) -> Any:
    def count(config: Any) -> int:
        return sum(p.numel() for p in outline_model(name, config, vocab_size).parameters())

    return match_width(name, limit_context(name, settings, n_context), target, count).config


def limit_context(name: str, settings: dict[str, Any], n_context: int) -> dict[str, Any]:
    return settings | ({"max_context": n_context} if "max_context" in model_config(name).to_dict() else {})


def describe(text: str, kind: str, job: Job, trained: Trained) -> Row:
    settings = job.config.to_dict()
    return {
        "text": Path(text).stem,
        "kind": kind,
        "model": job.model,
        "d_model": settings["d_model"],
        "depth": settings.get("n_layers", settings.get("n_window")),
        "lr": trained.optimizer.lr,
        "weight_decay": trained.optimizer.weight_decay,
        "seed": trained.seed,
        "n_parameters": trained.n_parameters,
        "n_updates": trained.n_updates,
        "bits_per_byte": trained.bits_per_byte,
    }


def print_widths(rows: list[Row]) -> None:
    print("\n| model | width | " + " | ".join(f"{f:g} x" for f in FACTORS) + " | best |")
    print("|---" * (len(FACTORS) + 3) + "|")
    for name, width in sorted({(row["model"], row["d_model"]) for row in rows}):
        found = sorted((r["lr"], r["bits_per_byte"]) for r in rows if (r["model"], r["d_model"]) == (name, width))
        best = min(found, key=lambda pair: pair[1])[0]
        print(f"| {name} | {width} | " + " | ".join(f"{score:.3f}" for _, score in found) + f" | {best:.2g} |")


def print_trials(rows: list[Row]) -> None:
    print("\n| model | text | default, mean of seeds | best trial | gap | its rate, depth, decay |")
    print("|---" * 6 + "|")
    for name, text in sorted({(row["model"], row["text"]) for row in rows}):
        mine = [row for row in rows if (row["model"], row["text"]) == (name, text)]
        default = fmean(row["bits_per_byte"] for row in mine if row["kind"] == "default")
        best = min((row for row in mine if row["kind"] == "trial"), key=lambda row: row["bits_per_byte"])
        gap = default - best["bits_per_byte"]
        how = f"{best['lr']:.2g}, {best['depth']}, {best['weight_decay']:g}"
        print(f"| {name} | {text} | {default:.3f} | {best['bits_per_byte']:.3f} | {gap:+.3f} | {how} |")


if __name__ == "__main__":
    main()
