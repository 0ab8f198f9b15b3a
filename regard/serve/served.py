"""The runs that a server has loaded, by the names that requests call them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.errors import RegardError, nearest
from regard.lens.look import VIEWS
from regard.report.looking import name_apart
from regard.report.palette import looks_of
from regard.run.exchange import open_model
from regard.serve.looking import list_views
from regard.serve.verbs import list_verbs
from regard.tasks.labelled_run import LabelledRun
from regard.tasks.pair_run import PairRun


class UnknownRunError(RegardError):
    """A request names a run that is not served."""


class ServedRuns:
    """Loaded runs by name. Requests reach these and nothing else of the machine's files."""

    def __init__(self, runs: Sequence[Any]) -> None:
        if not runs:
            raise RegardError("There is no run to serve. Name one or more run folders: regard serve runs/lstm")
        folders = [Path(run.folder).resolve() for run in runs]  # "." is called as it is from outside
        names = [name.replace("/", "-") for name in name_apart(folders)]
        self.runs: dict[str, Any] = {}
        for name, run in zip(names, runs, strict=True):
            number = sum(other == name or other.startswith(f"{name}:") for other in self.runs)
            self.runs[f"{name}:{number + 1}" if number else name] = run
        self.verbs = {name: list_verbs(run) for name, run in self.runs.items()}
        """What each can be asked."""

    @classmethod
    def open(cls, runs: Sequence[Any], device: str = "auto") -> ServedRuns:
        """Loaded runs as they are, and folders of runs or of Hugging Face, which are loaded."""
        return cls([open_model(run, device) if isinstance(run, str | Path) else run for run in runs])

    def find(self, name: str) -> Any:
        """The run of this name."""
        if name not in self.runs:
            known = ", ".join(self.runs)
            raise UnknownRunError(f"There is no run {name!r:.80}.{nearest(name[:80], self.runs)} There are: {known}.")
        return self.runs[name]

    def hide_folders(self, text: str) -> str:
        """An error's text in which runs are called by their names: where they lie concerns nobody who asks."""
        folders = [(str(f), name) for name, run in self.runs.items() for f in (run.folder, run.opened.folder)]
        for folder, name in sorted(folders, key=lambda pair: -len(pair[0])):
            text = text.replace(f"'{folder}'", f"'{name}'")
            if "/" in folder or "\\" in folder:  # a folder that is one word, or ".", may be part of any sentence
                text = text.replace(folder, name)
        return text

    @cached_property
    def colours(self) -> dict[str, str]:
        """What each run is drawn in, wherever it is drawn: the colour of its model where no other run has that."""
        models = [run.config.model_name for run in self.runs.values()]
        known_as = {n: m if models.count(m) == 1 else n for n, m in zip(self.runs, models, strict=True)}
        looks = looks_of(known_as.values())
        return {name: looks[known_as[name]].colour for name in self.runs}

    def describe(self) -> dict[str, Any]:
        """What is served and what it can be asked."""
        return {
            "runs": [
                _describe(name, run, self.verbs[name]) | {"colour": self.colours[name]}
                for name, run in self.runs.items()
            ],
            "views": {name: entry.summary for name, entry in VIEWS.items()},
            "slow_views": [name for name, entry in VIEWS.items() if entry.is_slow],
        }


def _describe(name: str, run: Any, verbs: list[str]) -> dict[str, Any]:
    is_labelled = isinstance(run, LabelledRun)
    n_texts = run.task.n_texts(run.config) if is_labelled else 1
    return {
        "name": name,
        "task": run.task.name,
        "summary": run.task.summary,
        "model": run.config.model_name,
        "n_parameters": run.facts.n_parameters,
        "verbs": verbs,
        "tags": list(run.reader.tags) if isinstance(run, PairRun) else [],
        "n_texts": n_texts,
        "columns": run.task.columns if n_texts > 1 else "a text",
        "views": list_views(run) if "trace" in verbs else [],
    }
