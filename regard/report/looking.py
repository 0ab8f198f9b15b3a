"""Look inside runs: open them, make their views, and hand back a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.lens.look import check_shown, check_views, look_at
from regard.lens.next_word import NextWord, find_next, tell_places
from regard.lens.over_time import Snapshots
from regard.lens.subject import Subject
from regard.lens.view import LookOptions
from regard.report.look import Look
from regard.run.engine import load
from regard.run.exchange import open_model
from regard.tasks.run_facts import check_file
from regard.tasks.table import AnyRun
from regard.text.learning import Progress
from regard.training.metrics import METRICS
from regard.training.snapshots import list_snapshots, say_how_to_keep

Models = AnyRun | str | Path | Sequence[AnyRun | str | Path]
"""Runs that are loaded, or their folders; those of Hugging Face too. One, or several."""


def look(
    runs: Models,
    text: str | Sequence[str] = "",
    *,
    target: str | None = None,
    picture: str | Path | None = None,
    last: int | None = None,
    tag: str | None = None,
    views: Sequence[str] | None = None,
    over_time: bool = False,
    device: str = "auto",
    command: str = "",
    progress: Progress | None = None,
    **options: Any,
) -> Look:
    """Look inside one run or several, loaded or given by their folders, on one text, or of captioners on one `picture`.

    `target` is what a translator or a captioner is made to write; without it, it writes its own. `last` looks at so
    many tokens of the end of a text that is longer than a model sees. `views` are names of `regard look --help`, all by
    default; `options` are those of LookOptions. `over_time` goes through the weights that a run kept on its way
    (`checkpoint.snapshots`). Several texts are for the view of one `word` in all of them. What comes back shows itself
    in a notebook, and can be saved as a page with pictures.

        regard.look("runs/transformer", "In October, people").save("look")
    """
    check_views(views)
    texts = (text,) if isinstance(text, str) else tuple(text)
    asked = LookOptions(**options, texts=texts)
    if len(texts) > 1:
        if asked.word is None:
            raise RegardError(f"{len(texts)} texts are compared by a word that is in all of them: add --word WORD.")
        views = ["vectors"] if views is None else views
    opened = open_models(runs, device)
    first = texts[0] if texts else ""
    subjects = [Subject(run, first, target, name, picture=picture, last=last, tag=tag) for name, run in opened]
    if over_time:
        views = ["over-time"] if views is None else [*views, "over-time"]
        panels = tuple(
            look_at(s, views, replace(asked, extra={**asked.extra, "snapshots": _open_snapshots(s.run)}), progress)
            for s in subjects
        )
    else:
        panels = tuple(look_at(subject, views, asked, progress) for subject in subjects)
    check_shown(panels)
    return Look(panels, command)


def _open_snapshots(run: AnyRun) -> Snapshots:
    """The weights that a run kept on its way; an error that says how to keep some, where there are none."""
    steps = list_snapshots(run.folder)
    if not steps:
        raise RegardError(f"'{run.folder}' kept no weights on its way: nothing to see over time. {say_how_to_keep()}")
    check_file(run.folder, run.facts, METRICS)  # whose curves are drawn beside them
    return Snapshots(tuple(steps), lambda step: load(run.folder, step=step))


def look_alignments(
    run: AnyRun,
    pairs: Sequence[tuple[str, str]],
    *,
    tag: str | None = None,
    gold: Sequence[str] = (),
    command: str = "",
) -> Look:
    """Where a translator looks in each source for the words of its target, pair by pair; `gold` has the right links."""
    panels = []
    for i, (source, target) in enumerate(pairs):
        subject = Subject(run, source, target, f"line {i + 1}", tag=tag)
        panel = look_at(subject, ["alignment"], LookOptions(gold=gold[i] if gold else None))
        panels.append(replace(panel, model=run.folder.name))
    check_shown(panels)
    return Look(tuple(panels), command)


def predict_next(
    runs: Models, text: str, *, target: str | None = None, n: int = 10, device: str = "auto"
) -> list[NextWord]:
    """What each run says comes after `text`: its n most probable tokens and whole words, and where they come from.

    A BERT fills [MASK], or the place after the text; a translator translates `text` and goes on `target`.

        regard.predict_next(["runs/ngram", "runs/lstm"], "In October, people in the US celebrate")
    """
    opened = open_models(runs, device)
    return tell_places([find_next(run, text, target=target, n=n, name=name) for name, run in opened])


def open_models(runs: Models, device: str = "auto") -> list[tuple[str, AnyRun]]:
    """One run or several, loaded where folders of runs or of Hugging Face are given, by names that tell them apart."""
    given = list(runs) if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
    if not given:
        raise RegardError("Give at least one run: a folder that `regard train` wrote, or a Hugging Face GPT-2 or BERT.")
    loaded = [open_model(run, device) if isinstance(run, str | Path) else run for run in given]
    return list(zip(name_apart([run.folder for run in loaded]), loaded, strict=True))


def name_apart(folders: Sequence[Path]) -> list[str]:
    """The last part of each folder's name, and as many before it as are needed to tell them apart.

    >>> name_apart([Path("a/lstm"), Path("b/lstm"), Path("c/gru")])
    ['a/lstm', 'b/lstm', 'gru']
    """
    names = []
    for i, folder in enumerate(folders):
        others = [other.parts for k, other in enumerate(folders) if k != i and other != folder]
        n = next((n for n in range(1, len(folder.parts)) if all(o[-n:] != folder.parts[-n:] for o in others)), 0)
        names.append("/".join(folder.parts[-n:]))
    return names
