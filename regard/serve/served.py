"""The runs that a server has loaded, by the names that requests call them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from regard import api
from regard.count.ngram import NgramModel
from regard.errors import RegardError, nearest
from regard.lens.logit_lens import can_read_out
from regard.lens.look import VIEWS, Panel, check_views
from regard.lens.positions import find_tables
from regard.lens.units import has_units
from regard.lens.view import Packed
from regard.models.language_model import LanguageModel
from regard.models.pointer import PointerModel
from regard.report.looking import name_apart
from regard.report.palette import looks_of
from regard.serve.heads import SENT_BYTES, KeptHeads
from regard.serve.packing import Arrays
from regard.serve.questions import MAX_EXPLAINED
from regard.serve.verbs import list_verbs
from regard.tasks.labelled_run import LabelledRun
from regard.tasks.pair_run import PairRun
from regard.tasks.translation import TranslationRun
from regard.training.snapshots import list_snapshots


class UnknownRunError(RegardError):
    """A request names a run that is not served."""


class ServedRuns:
    """Loaded runs by name. Requests reach these and nothing else of the machine's files."""

    def __init__(self, runs: Sequence[Any]) -> None:
        if not runs:
            raise RegardError("There is no run to serve. Name one or more run folders: regard serve runs/lstm")
        names = [name.replace("/", "-") for name in name_apart([run.folder for run in runs])]
        self.runs: dict[str, Any] = {}
        for name, run in zip(names, runs, strict=True):
            number = sum(other == name or other.startswith(f"{name}:") for other in self.runs)
            self.runs[f"{name}:{number + 1}" if number else name] = run
        self.verbs = {name: list_verbs(run) for name, run in self.runs.items()}
        """What each can be asked."""

    @classmethod
    def open(cls, runs: Sequence[Any], device: str = "auto") -> ServedRuns:
        """Loaded runs as they are, and folders, which are loaded."""
        return cls([api.load(run, device) if isinstance(run, str | Path) else run for run in runs])

    def find(self, name: str) -> Any:
        """The run of this name."""
        if name not in self.runs:
            known = ", ".join(self.runs)
            raise UnknownRunError(f"There is no run {name!r:.80}.{nearest(name[:80], self.runs)} There are: {known}.")
        return self.runs[name]

    def hide_folders(self, text: str) -> str:
        """An error's text in which runs are called by their names: where they lie concerns nobody who asks."""
        for name, run in sorted(self.runs.items(), key=lambda pair: -len(str(pair[1].folder))):
            text = text.replace(str(run.folder), name)
        return text

    def describe(self) -> dict[str, Any]:
        """What is served and what it can be asked."""
        models = [run.config.model_name for run in self.runs.values()]
        known_as = {n: m if models.count(m) == 1 else n for n, m in zip(self.runs, models, strict=True)}
        looks = looks_of(known_as.values())  # a model has one colour on every page
        return {
            "runs": [
                _describe(name, run, self.verbs[name]) | {"colour": looks[known_as[name]].colour}
                for name, run in self.runs.items()
            ],
            "views": {name: entry.summary for name, entry in VIEWS.items()},
            "slow_views": [name for name, entry in VIEWS.items() if entry.is_slow],
        }


def _describe(name: str, run: Any, verbs: list[str]) -> dict[str, Any]:
    is_labelled = isinstance(run, LabelledRun)
    return {
        "name": name,
        "task": run.task.name,
        "summary": run.task.summary,
        "model": run.config.model_name,
        "n_parameters": run.facts.n_parameters,
        "verbs": verbs,
        "tags": list(run.reader.tags) if isinstance(run, PairRun) else [],
        "n_texts": run.task.n_texts(run.config) if is_labelled else 1,
        "columns": run.task.columns if is_labelled else "a text",
        "views": list_views(run) if "trace" in verbs else [],
    }


def list_views(run: Any) -> list[str]:
    """The views that a run may have something for; what it surely has not is found without computing anything."""
    model, reads_units = run.model, has_units(run.model)
    is_counted = isinstance(model, NgramModel)
    absent = {
        "picture": True,
        "alignment": not isinstance(run, PairRun),
        "over-time": not list_snapshots(run.folder),
        "layers": not can_read_out(model),
        "cells": not reads_units,
        "vectors": not reads_units,
        "positions": is_counted or not find_tables(model),
        "gradients": not isinstance(model, LanguageModel | PointerModel),
        **dict.fromkeys(("attention", "steps", "influence", "faithfulness"), is_counted),
    }
    return [name for name in VIEWS if not absent.get(name)]


def trace_run(run: Any, asked: Mapping[str, Any]) -> bytes:
    """What a run computed on a text: the names and shapes of all arrays, and those that were asked for."""
    text, target = asked["text"], asked["target"]
    if not text.strip():
        raise RegardError("There is no text to trace. Send one with at least one word.")
    if isinstance(run, TranslationRun):
        found = run.trace(text, run.translate(text, asked["tag"]) if target is None else target, asked["tag"])
    elif target is not None or asked["tag"] is not None:
        raise RegardError(f"'{run.folder}' does not translate: leave out target and tag.")
    else:
        found = run.trace(text)
    for name in asked["taps"]:
        if name not in found.taps:
            hint = nearest(name, found.taps)
            raise RegardError(f"The model computed nothing called {name!r:.80}.{hint} It has: {', '.join(found.taps)}.")
    arrays = Arrays()
    sent = {name: arrays.add(Packed(_make_finite(found.taps[name]), asked["kind"])) for name in asked["taps"]}
    value = {
        "tokens": list(found.tokens),
        "nats": found.nats.tolist(),
        "shapes": {name: list(array.shape) for name, array in found.taps.items()},
        "arrays": sent,
    }
    return arrays.write(value)


def _make_finite(array: Any) -> Any:
    """Scores of what may not be looked at are -inf; they are sent as the lowest number that float16 has."""
    return np.nan_to_num(np.asarray(array, dtype=np.float64), nan=0.0, posinf=65504.0, neginf=-65504.0)


def look_inside(
    runs: Mapping[str, Any], texts: Sequence[str], asked: Mapping[str, Any], heads: KeptHeads | None = None
) -> bytes:
    """The views of some runs, by name, on a text, with their arrays as bytes; heads that are not sent go to `heads`."""
    if not texts:
        raise RegardError("There is no text to look at. Send one as text, or several as texts with a word.")
    if len(texts[0]) > MAX_EXPLAINED and (again := {"influence", "faithfulness"} & set(check_views(asked["views"]))):
        raise RegardError(
            f"{' and '.join(sorted(again))}: the text is computed again for every word of it, so it has at most "
            f"{MAX_EXPLAINED} characters here, not {len(texts[0]):,}. Shorten it, or use regard look."
        )
    options = {name: asked[name] for name in ("top_k", "layer", "head", "word")}
    if heads is not None:
        options["extra"] = {"sent_bytes": SENT_BYTES}
    views, is_over_time = asked["views"], "over-time" in (asked["views"] or ())
    if is_over_time:
        views = [name for name in views if name != "over-time"]
    found = api.look(
        list(runs.values()), texts, target=asked["target"], views=views, over_time=is_over_time, **options
    )  # fmt: skip
    if heads is not None:
        panels = zip(runs, found.panels, strict=True)
        kept = [_keep_heads(heads, (name, texts[0], asked["target"]), panel) for name, panel in panels]
        found = replace(found, panels=tuple(kept))
    arrays = Arrays()
    return arrays.write(found.to_json(arrays.add))


def _keep_heads(heads: KeptHeads, key: Hashable, panel: Panel) -> Panel:
    views = tuple(heads.keep(key, view) if view.name == "attention" else view for view in panel.views)
    return replace(panel, views=views)


def find_head(name: str, run: Any, asked: Mapping[str, Any], heads: KeptHeads) -> bytes:
    """The attention of one head, computed anew where it is no longer kept."""
    key = (name, asked["text"], asked["target"])
    place = (asked["stack"], asked["layer"], asked["head"])
    found = heads.find(key, *place)
    if found is None:
        extra = {"sent_bytes": SENT_BYTES}
        looked = api.look(run, asked["text"], target=asked["target"], views=["attention"], extra=extra)
        heads.keep(key, looked.views["attention"])
        found = heads.find(key, *place)
    assert found is not None
    return found


MIN_BEFORE = 20


def choose_passage(run: Any, seed: int, n_before: int, n: int) -> dict[str, str]:
    """A passage of the test split that begins at the end of a word, so that tokens of every kind begin there too."""
    stream = run.text_of(None, "test")
    draw = np.random.default_rng(seed)
    n_tokens = min(len(stream), 4 * (n_before + n))
    for _ in range(20):
        at = int(draw.integers(0, max(1, len(stream) - n_tokens + 1)))
        text = run.tokenizer.decode(stream[at : at + n_tokens].tolist())
        text = "".join(c for c in text if c.isprintable() or c == "\n")
        breaks = [i for i in range(MIN_BEFORE, len(text) - 1) if text[i] == " " and text[i - 1].isalnum()]
        begin = next((i for i in breaks if i >= n_before), breaks[-1] if breaks and not n_before else None)
        if begin is not None and begin + min(n, 20) <= len(text):
            return {"before": text[max(0, begin - n_before) : begin], "text": text[begin : begin + n]}
    raise RegardError(f"The test split of '{run.folder}' is too short for a passage. Train on more text.")
