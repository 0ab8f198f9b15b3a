"""`regard train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import regard
from regard.cli import terminal
from regard.cli.options import Force, Quiet, Set, SkipBad

Recipe = Annotated[
    Path | None,
    typer.Argument(help="A YAML recipe (`regard recipes`) or a model (`regard models`); with --task also a run."),
]
Model = Annotated[str | None, typer.Option("--model", "-m", help="Which model: a name of `regard models`.")]
Task = Annotated[
    str | None, typer.Option("--task", "-t", help="What it is for: classify, rate, tag, answer (default: by the data).")
]
Data = Annotated[
    list[str] | None,
    typer.Option("--data", "-d", help="Text: file, folder, glob, built-in name, hub:NAME or - (repeatable)."),
]
StartFrom = Annotated[
    Path | None,
    typer.Option("--from", metavar="FOLDER", help="Start from a language model: a run, or a Hugging Face GPT-2."),
]
TrainDevice = Annotated[str | None, typer.Option("--device", help="auto, cpu, cuda or cuda:N (default: auto).")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="The run folder to write (default: runs/NAME).")]


def train(
    recipe: Recipe = None,
    model: Model = None,
    task: Task = None,
    data: Data = None,
    start_from: StartFrom = None,
    out: Out = None,
    settings: Set = None,
    skip_bad: SkipBad = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the out folder.")] = False,
    force: Force = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print config, size, cost and the first batch; train nothing.")
    ] = False,
    device: TrainDevice = None,
    quiet: Quiet = False,
) -> None:
    """Train one model and write a run folder that explains itself.

    `regard models lstm` lists every key that --set and a recipe take.

    Examples:
      # a recipe, on your own text
      regard train recipes/lstm.yaml --data my.txt --out runs/mine
      # no recipe, every default
      regard train transformer --data 'notes/*.md'
      # change settings; print the plan and train nothing
      regard train recipes/lstm.yaml --set model.d_model=512 --dry-run
      # fine-tune GPT-2, from a Hugging Face folder, or any run
      regard train --from gpt2 --data my.txt --out runs/mine
      # a classifier of your reviews: from scratch, or on a language model
      regard train lstm --task classify --data reviews.tsv
      regard train runs/lm --task classify --data reviews.tsv --out runs/mine
      # a translator whose decoder begins as a language model of yours
      regard train recipes/multi30k-lstm.yaml --set decoder_from=runs/lm
      # go on where it stopped, by Ctrl-C or kill -9
      regard train --resume --out runs/lstm
      # train a finished run longer
      regard train --resume --out runs/lstm --set train.max_steps=5000
    """
    settings = [*(settings or ()), *(["data.skips_bad=true"] if skip_bad else [])]
    settings += [] if device is None else [f"runtime.device={device}"]
    if dry_run:
        terminal.print_plan(
            regard.plan(
                recipe, model=model, task=task, data=data, start_from=start_from, settings=settings, out=out,
                resume=resume,
            )
        )  # fmt: skip
        return
    run = regard.train(
        recipe, model=model, task=task, data=data, start_from=start_from, settings=settings, out=out,
        resume=resume, force=force, progress=terminal.progress_bar(quiet), reporter=terminal.reporter(quiet),
    )  # fmt: skip
    if not quiet:
        terminal.print_trained(run)
