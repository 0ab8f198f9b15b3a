"""`regard study`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

import regard
from regard.cli import terminal
from regard.cli.options import Jobs, Quiet, Set
from regard.errors import RegardError
from regard.studies.table import STUDIES, study_entry


class StudyCommand(TyperCommand):
    """`regard study`, whose --help after the name of a study shows that study."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        name = next((word for word in args if word in STUDIES), None)
        if name is not None and {"--help", "-h"} & set(args):
            terminal.print_study_help(name)
            ctx.exit()
        return super().parse_args(ctx, args)


def study(
    name: Annotated[
        str | None, typer.Argument(help="gradients, ab, recency, bottleneck, copying, ...; none: list them.")
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option("--run", "-r", help="A run folder of your own to look at (repeatable); not for every study."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=1, help="Trainings of each model: --set n_seeds=N; not for all."),
    ] = None,
    jobs: Jobs = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder to write (default: study/NAME).")] = None,
    settings: Set = None,
    quiet: Quiet = False,
) -> None:
    """Show what the lectures claim: a small experiment, its figure, its numbers and one sentence.

    Each takes some minutes on two cores, fewer with --seeds 1, and writes report.html, figure.png and numbers.json.

    Examples:
      # what there is, and what can be set
      regard study
      regard study gradients --help
      regard study gradients
      # soon, and without an interval over seeds
      regard study ab --seeds 1
      # four trainings at a time, each in a process of its own
      regard study recency --jobs 4
      # your own models
      regard study recency --run runs/lstm --run runs/transformer
      regard study ab --set lengths="[10, 100, 1000]" --out ab-short
      # your own translations, in files train.en, train.de, train.fr and so on
      regard study zero-shot --set data=FOLDER
    """
    if name is None:
        terminal.print_studies()
        return
    if seeds is not None and not study_entry(name).has_seeds:
        raise RegardError(f"--seeds {seeds}: the study '{name}' has no seeds to repeat it over. Leave --seeds out.")
    given = [*(settings or ()), *([] if seeds is None else [f"n_seeds={seeds}"])]
    with terminal.progress_bar(quiet)() as progress:
        found = regard.study(name, runs=run or (), settings=given, out=out, jobs=jobs or 1, progress=progress)
    terminal.print_study(found, Path(out) if out is not None else regard.api.study_folder(name))
