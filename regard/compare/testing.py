"""Contenders on one test set: what each run answers, who is better, and all that has to be told about it.

OUT/runs.json               of finished runs, the first file
OUT/outputs/, OUT/views/    what every run answered and shows of itself; what is there is not made again
OUT/failures/               tracebacks
OUT/compare.json            what was found
"""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from regard import __version__
from regard.compare.contenders import Entry, FinishedRun, choose_watched, describe_failure, forget_failure
from regard.compare.place import begin_comparison
from regard.compare.rank import choose_examples, rank
from regard.compare.result import FILE, Comparison, Setup, Training, to_json
from regard.compare.result_cache import OUTPUTS, VIEWS, read_answers, read_view, write_answers, write_view
from regard.data.cache import key_of
from regard.data.checksums import sha256_of
from regard.data.split import describe_skipped
from regard.errors import InterruptedRunError, RegardError
from regard.files import remove_old_partial, write_atomically
from regard.lens.views import Views, WindowLosses
from regard.models.outline import count_non_embedding
from regard.run.engine import load
from regard.run.folder import open_folder
from regard.score.figures import duration_text
from regard.score.judges import SAME_CONTEXT, Judge
from regard.score.significance import explain
from regard.tasks.table import AnyRun
from regard.tasks.task import Task
from regard.tasks.test_set import Decoding, TestSet
from regard.text.learning import Progress
from regard.training.checkpoint import MODEL
from regard.training.device import take_free_threads
from regard.training.machine import hardware, versions
from regard.training.progress import Reporter

OWN_CONTEXT = "own"
NOTHING = TestSet(about="", sources=(), fits=np.zeros(0, dtype=bool), fingerprint="")


@dataclass(frozen=True, kw_only=True)
class Request:
    """Contenders with their finished runs, and how they are to be tested."""

    entries: Sequence[Entry]
    task: Task
    decoding: Decoding
    data: Sequence[str] | None = None  # None: the split of their own
    split: str = "test"
    skips_bad: bool = False
    levels: Sequence[float] = ()
    context: str | None = None  # tokens that all see at most in their second score; None: as few as one of them sees
    prompt: str | None = None  # None: chosen from the test set
    training: Training | None = None  # None: they were finished before
    warnings: Sequence[str] = ()  # what of their training makes the comparison less sure
    command: str
    out: Path

    @property
    def runs(self) -> list[FinishedRun]:
        return [run for entry in self.entries for run in entry.runs]


@take_free_threads()
def judge_contenders(request: Request, draw: Progress | None, reporter: Reporter) -> Comparison:
    """Test every run, rank the contenders and write what was found."""
    tell = draw or _show_nothing
    for folder in (request.out, request.out / OUTPUTS, request.out / VIEWS):
        remove_old_partial(folder)
    test_sets = {}
    lender = next((run for run in request.runs if not run.is_imported), None)
    for entry in request.entries:
        for run in entry.runs:
            tell(f"{run.name}: reading", 0, None)
            loaded = load(run.folder, device="cpu")
            if run.is_imported and lender is not None:
                lend_data(loaded, lender)
            test_sets[run.name] = request.task.load_test_set(loaded, request.data, request.split, request.skips_bad)
            if isinstance(loaded.model, nn.Module):
                entry.n_non_embedding = count_non_embedding(loaded.model)
    chosen = _choose_items(request.runs, test_sets)
    request = _share_context(request, test_sets)
    if request.training is None:
        begin_comparison(request.out, [run.folder for run in request.runs])
    for entry in request.entries:
        _ask(entry, test_sets, chosen, request, tell, reporter)
    tell("resampling", 0, None)
    comparison = _rank(test_sets, chosen, request)
    write_atomically(request.out / FILE, to_json(comparison))
    return dataclasses.replace(comparison, folder=request.out)


def lend_data(imported: AnyRun, lender: FinishedRun) -> None:
    """Let a run that has no data of its own read those of another, split into documents in the same way."""
    imported.opened = open_folder(lender.folder)
    imported.config = imported.config.with_section("data", lender.config.data)


def _share_context(request: Request, test_sets: Mapping[str, TestSet]) -> Request:
    """The request with one context for a second score of all: the one asked for, or the smallest of those they have.

    There is none where all see equally far, or nobody is limited.
    """
    sets = [test_sets[run.name] for run in request.runs]
    reaches = [None if s.max_context is None else s.max_context * s.bytes_per_token for s in sets]
    if request.context == OWN_CONTEXT or not sets:
        return request
    context = min((reach for reach in reaches if reach is not None and len(set(reaches)) > 1), default=None)
    if request.context is not None:
        context = int(request.context) * sets[0].bytes_per_token
    return dataclasses.replace(request, decoding=dataclasses.replace(request.decoding, context=context))


def _ask(
    entry: Entry,
    test_sets: Mapping[str, TestSet],
    chosen: list[int],
    request: Request,
    tell: Progress,
    reporter: Reporter,
) -> None:
    """Find what the runs of a contender answer; those that cannot are taken out of it, and why is told."""
    for run in tuple(entry.runs):
        found = _find_answers(run, test_sets[run.name], chosen, request, tell, reporter)
        if isinstance(found, list):
            entry.answers.append(found)
            forget_failure(run.name, request.out)
        else:
            entry.runs.remove(run)
            entry.failures.append(describe_failure(found, run.name, run.config.seed, request.out))
            reporter.note(f"{run.name} failed: {entry.failures[-1].reason}")
    if entry.runs:
        first = test_sets[entry.runs[0].name]
        entry.lossy, entry.baseline = first.lossy, first.baseline
        entry.positions = [_find_positions(run, test_sets[run.name], request) for run in entry.runs]
        entry.views = _find_views(entry.runs[0], first, request, reporter)


def _choose_items(runs: Sequence[FinishedRun], test_sets: Mapping[str, TestSet]) -> list[int]:
    """The items that every run has room for; refuse runs that are not tested on the same."""
    if not runs:
        return []
    first = test_sets[runs[0].name]
    for run in runs[1:]:
        if test_sets[run.name].fingerprint != first.fingerprint:
            what = _find_difference(runs[0], first, run, test_sets[run.name])
            raise RegardError(
                f"These runs are not tested on the same data: {what}. Name test data that all can take with --data, "
                "such as --data test.txt, or --data test.en --data test.de."
            )
    chosen: list[int] = np.flatnonzero(np.all([test_sets[run.name].fits for run in runs], axis=0)).tolist()
    if not chosen:
        raise RegardError("No test item is short enough for all of these models. Name shorter ones with --data.")
    return chosen


def _find_difference(run: FinishedRun, test_set: TestSet, other_run: FinishedRun, other: TestSet) -> str:
    first, second = ([given[0] for given in t.references] or list(t.sources) for t in (test_set, other))
    what = "target" if test_set.references else "document"
    if len(first) != len(second):
        return f"'{run.folder}' has {len(first):,} test {what}s and '{other_run.folder}' {len(second):,}"
    at = next((i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b), 0)
    a, b = (f"'{text if len(text) <= 60 else text[:59] + '…'}'" for text in (first[at], second[at]))
    return f"test {what} {at + 1} is {a} for '{run.folder}' and {b} for '{other_run.folder}'"


def _find_answers(
    run: FinishedRun, test_set: TestSet, chosen: list[int], request: Request, tell: Progress, reporter: Reporter
) -> list[Any] | Exception:
    """What is cached, or what the run answers now, which is then cached; or why it cannot answer."""
    task, out = request.task, request.out
    made_by = (
        _made_by(run, test_set)
        | {"chosen": key_of(chosen)}
        | ({"beam": request.decoding.beam} if task.comparing.searches else {})
        | ({} if request.decoding.context is None else {"context": request.decoding.context})
    )
    if (cached := read_answers(out, run.name, made_by)) is not None:
        if task.comparing.searches:
            reporter.note(f"{run.name}: {len(cached):,} outputs are kept in {out / OUTPUTS}.")
        return cached
    began = time.monotonic()

    def tell_done(n: int) -> None:
        tell(f"{run.name}: {task.comparing.items}", n, len(chosen))

    tell_done(0)
    try:
        loaded = load(run.folder, device=request.decoding.device)
        found = task.answer(loaded, test_set, chosen, request.decoding, tell_done)
    except InterruptedRunError:
        raise
    except Exception as error:  # one contender that fails must not cost the others' hours
        return error
    write_answers(out, run.name, made_by, found)
    if task.comparing.searches:
        reporter.note(f"{run.name}: {len(found):,} outputs in {duration_text(time.monotonic() - began)}.")
    return found


def _made_by(run: FinishedRun, test_set: TestSet) -> dict[str, Any]:
    """What decides the answers of a run."""
    weights = sha256_of(run.folder / MODEL)
    return {"regard": __version__, "weights": weights, "items": test_set.fingerprint}


def _find_views(run: FinishedRun, test_set: TestSet, request: Request, reporter: Reporter) -> Views:
    if test_set.show is None:
        return Views()
    prompt = test_set.prompt if request.prompt is None else request.prompt
    made_by = _made_by(run, test_set) | {"prompt": prompt}
    if (cached := read_view(Views, request.out, run.name, made_by)) is not None:
        return cached
    views = test_set.show(load(run.folder, device=request.decoding.device), prompt, reporter.note)
    write_view(request.out, run.name, made_by, views)
    return views


def _find_positions(run: FinishedRun, test_set: TestSet, request: Request) -> WindowLosses:
    if test_set.measure_positions is None:
        return WindowLosses(n_bytes_before=(), bits_per_byte=(), documents=())
    name, made_by = f"{run.name}.positions", _made_by(run, test_set)
    if (cached := read_view(WindowLosses, request.out, name, made_by)) is not None:
        return cached
    found = test_set.measure_positions(load(run.folder, device=request.decoding.device))
    write_view(request.out, name, made_by, found)
    return found


def _rank(test_sets: Mapping[str, TestSet], chosen: list[int], request: Request) -> Comparison:
    sets = [test_sets[run.name] for run in request.runs]
    judge = request.task.judge(sets[0], chosen) if sets else None
    documents = _find_documents(sets, chosen)
    setup = _describe(request.runs, judge, sets, chosen, request)
    outputs = [entry.answers[0] if entry.answers else [""] * len(chosen) for entry in request.entries]
    examples = choose_examples(sets[0], chosen, outputs) if sets else ()
    lengths = sets[0].lengths if sets else None
    return rank(
        request.entries, judge, setup, documents, levels=request.levels, examples=examples, warnings=request.warnings,
        out=request.out, lengths=None if lengths is None else [lengths[i] for i in chosen],
    )  # fmt: skip


def _find_documents(test_sets: Sequence[TestSet], chosen: Sequence[int]) -> list[int]:
    """From which document each chosen item is."""
    if not test_sets or test_sets[0].documents is None:
        return list(chosen)
    return [test_sets[0].documents[i] for i in chosen]


def _describe(
    runs: Sequence[FinishedRun],
    judge: Judge | None,
    test_sets: Sequence[TestSet],
    chosen: Sequence[int],
    request: Request,
) -> Setup:
    """How it was measured; with no judge where no run has answered."""
    watched, notes = choose_watched(runs)
    task, training, first = request.task, request.training, test_sets[0] if test_sets else NOTHING
    n_seeds = [len(entry.runs) for entry in request.entries if entry.runs and entry.runs[0].has_seeds]
    n_documents = len(set(_find_documents(test_sets, chosen)))
    interval, test = explain(n_documents, len(chosen), task.comparing.items, n_seeds) if judge is not None else ("", "")
    return Setup(
        task=task.name,
        items=task.comparing.items,
        metric="" if judge is None else judge.name,
        is_higher_better=judge is not None and judge.is_higher_better,
        signature="" if judge is None else judge.signature,
        other_signatures={} if judge is None else dict(judge.other_signatures),
        watched=watched.name,
        is_watched_upwards=watched.is_higher_better,
        data=first.about,
        data_hash=first.fingerprint,
        n_tested=len(chosen),
        n_documents=n_documents,
        n_left_out=len(first.fits) - len(chosen),
        decoding=request.decoding.words if task.comparing.searches else "",
        interval=interval,
        test=test,
        training=training,
        passage=first.passage,
        prompt=first.prompt if request.prompt is None else request.prompt,
        sampling=first.sampling,
        notes=(*notes, *_explain_context(request, first), *_write_notes(runs, test_sets)),
        versions=versions(),
        hardware=hardware(),
        date=datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
        command=request.command,
        unit=task.unit,
    )


def _explain_context(request: Request, test_set: TestSet) -> list[str]:
    if (context := request.decoding.context) is None:
        return []
    return [
        f"{SAME_CONTEXT}: the score where every model sees at most the last {context:.0f} bytes (about "
        f"{context / test_set.bytes_per_token:.0f} tokens) and carries no state past them; elsewhere each has its own."
    ]


def _write_notes(runs: Sequence[FinishedRun], test_sets: Sequence[TestSet]) -> list[str]:
    """What limits the comparison."""
    if not test_sets:
        return []
    first, found = test_sets[0], []
    if first.skipped:
        found.append(f"Of the test data, {describe_skipped(first.skipped)}.")
    if len({test_set.watched for test_set in test_sets}) > 1:
        found.append("The runs were watched on different validation data: their curves do not compare with each other.")
    if len({test_set.sources for test_set in test_sets}) > 1:
        found.append(f"The runs read different sources of the same targets; shown are those of {runs[0].name}.")
    return [*found, *first.notes]


def _show_nothing(what: str, done: int, total: int | None) -> None:
    """No progress is shown."""
