"""One study from its name to its page.

OUT/report.html   the figure, the numbers, how they were measured, the sentence; one file that loads nothing
OUT/figure.png    the figure alone
OUT/numbers.json  everything that was measured
"""

from __future__ import annotations

import datetime
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from regard.config import with_settings
from regard.data.cache import be_silent
from regard.errors import InterruptedRunError, RegardError
from regard.files import check_can_be_made, write_atomically
from regard.report.page_folder import begin_page, check_page_folder, finish_page, study_drawing
from regard.run.engine import load
from regard.score.figures import join_names
from regard.studies.finding import Study
from regard.studies.table import STUDIES, study_config, study_entry
from regard.tasks.language_model_run import LanguageModelRun
from regard.tasks.translation import TranslationRun
from regard.training.machine import hardware, versions

if TYPE_CHECKING:
    from regard.text.learning import Progress


PAGE, FILES = "report.html", ("numbers.json", "figure.png")


def run_study(
    name: str,
    *,
    runs: Sequence[str | Path] = (),
    settings: Sequence[str] = (),
    out: Path,
    n_jobs: int = 1,
    tell: Progress | None = None,
) -> Study:
    """Run the study called `name`, `n_jobs` trainings at a time; its files go into `out` when all is measured."""
    entry = study_entry(name)
    if n_jobs > 1 and entry.measures_time:
        raise RegardError(
            f"--jobs lets processes share a machine, and the study '{name}' measures times. Leave it out."
        )
    given = with_settings({}, settings, example=entry.example)
    config = study_config(name, given)
    if runs:
        _check_runs(name, runs, given)
    _check_place(out, name)
    kinds = {"pairs": TranslationRun, "text": LanguageModelRun}
    loaded = [load(run, kind=kinds.get(entry.reads)) for run in runs]
    began = time.monotonic()
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):  # the caller's numbers are not ours
            together = {"n_jobs": n_jobs} if n_jobs > 1 else {}
            finding = entry.measure(config, loaded, tell or be_silent, **together)
    except (KeyboardInterrupt, InterruptedRunError):
        raise InterruptedRunError(f"Interrupted: the study '{name}' wrote nothing. Start it again.") from None
    study = Study(
        name=name,
        finding=finding,
        command=_command(name, loaded, settings, out),
        settings={key: v for key, v in config.to_dict().items() if not (runs and key in (entry.making or ()))},
        hardware=hardware(),
        versions=versions(),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        seconds=time.monotonic() - began,
        folder=out,
    )
    _write(study, out)
    return study


def _check_runs(name: str, runs: Sequence[str | Path], given: Mapping[str, Any]) -> None:
    """Refuse runs where a study takes none, one run twice, and settings of models that would not be made."""
    making = study_entry(name).making
    if making is None:
        takers = join_names([key for key, entry in STUDIES.items() if entry.takes_runs])
        raise RegardError(
            f"The study '{name}' makes its own models and takes no --run; {takers} do. "
            "To score a run, ask `regard eval RUN`."
        )
    folders = [Path(run).resolve() for run in runs]
    for i, run in enumerate(runs):
        if folders[i] in folders[:i]:
            raise RegardError(f"The run '{run}' is given twice; leave one --run out.")
    unused = [key for key in given if key in making]
    if unused:
        raise RegardError(
            f"--set {unused[0]} is about the models that the study makes, and with --run it makes none. "
            f"Leave out one of the two; with --run, {', '.join(making)} have no meaning."
        )


def _write(study: Study, out: Path) -> None:
    from regard.report.study import render_study, write_picture  # here: studies that fail need no matplotlib

    page = render_study(study)
    drawing = study_drawing(study.name)
    begin_page(out, drawing, FILES, force=True)  # the folder was checked before anything was measured
    write_atomically(out / "numbers.json", study.to_json())
    write_atomically(out / "figure.png", lambda aside: write_picture(study, aside))
    finish_page(out, page, drawing, FILES)


def _check_place(out: Path, name: str) -> None:
    """Refuse a folder that holds anything but an earlier page of the same study, with files that the page lists."""
    if not out.exists():
        check_can_be_made(out)
        return
    check_page_folder(out, study_drawing(name), way_out="Choose another --out.")


def _command(name: str, runs: Sequence[Any], settings: Sequence[str], out: Path) -> str:
    given = [word for run in runs for word in ("--run", str(run.folder))]
    given += [word for assignment in settings for word in ("--set", assignment)]
    return shlex.join(["regard", "study", name, *given, "--out", str(out)])
