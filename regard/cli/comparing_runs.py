"""`regard compare` of run folders."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def given_runs(contenders: Sequence[str]) -> bool:
    """Whether run folders are meant; names of models stay names, whatever folders there are."""
    from regard.errors import RegardError
    from regard.models.table import MODELS

    is_run = [
        name not in MODELS and not name.endswith((".yaml", ".yml")) and (os.sep in name or Path(name).is_dir())
        for name in contenders
    ]
    if any(is_run) and not all(is_run):
        run, other = contenders[is_run.index(True)], contenders[is_run.index(False)]
        raise RegardError(
            f"'{run}' is a run folder and '{other}' is none: give run folders, whose training is finished, or names of "
            "models, which are trained to be compared."
        )
    return all(is_run)


def refuse_options(options: Mapping[str, Any], why: str) -> None:
    """Refuse the first option that was given."""
    from regard.errors import RegardError

    for name, value in options.items():
        if value is not None:
            raise RegardError(f"--{name} {why}. Leave it out.")


def compare_finished(
    folders: Sequence[str], data: Sequence[str] | None, out: Path | None, options: Mapping[str, Any]
) -> None:
    """Compare finished runs and print what was found."""
    from rich.text import Text

    from regard.cli import terminal
    from regard.systems.comparing import compare_runs, default_out
    from regard.systems.finished import finished_runs
    from regard.systems.table import SystemsTable
    from regard.training.progress import reporter

    asked = {"beam": options["beam"], "device": options["device"], "max_tokens": options["max-tokens"]}
    place = out or default_out(finished_runs([Path(folder) for folder in folders]))
    comparison = compare_runs(
        folders,
        data=data,
        split=options["split"] or "test",
        **{name: value for name, value in asked.items() if value is not None},
        levels=options["reach"] or (),
        is_each=bool(options["each"]),
        skips_bad=bool(options["skip-bad"]),
        out=place,
        progress=terminal.draw_progress,
        reporter=reporter(),
    )
    terminal.console.print(SystemsTable(comparison))
    terminal.console.print(
        Text(f"\nThe report: {place / 'report.html'}  (a picture: {place / 'overview.png'})"), soft_wrap=True
    )
