"""How good a reader of labelled texts is, as one self-contained page: scores, reliability, confusions, worst errors.

Everything on the page that comes from data, models or the user is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.files import write_atomically
from regard.report.chart import Plot, Series, charts_for_screen_and_phone
from regard.report.figure import clean_axes, draw_series, drawing, new_figure
from regard.report.page_folder import SCORES, begin_page, check_page_folder, finish_page
from regard.report.palette import COLOURS, SOFT, Look
from regard.report.shell import fold, report_page, section, table
from regard.tasks.labelled_run import LabelledEvaluation, LabelledRun

RELIABILITY = (
    "Answers by the probability that they were given with. Where the line lies below the diagonal, the model is "
    "overconfident. Bins with few answers say little: their numbers are in the table."
)
CONFUSIONS = "Rows: the true label. Columns: the label given."
MIX = "What the head reads of each layer of its encoder, as the task learned it."
MAX_OPEN = 20
"""Labels of which the table of confusions is shown at once."""


PICTURE = "reliability.png"


def check_evaluation_folder(run: Any, folder: Path, force: bool = False) -> None:
    """Refuse, before anything is computed, a run that has no such page and a folder with files of somebody else."""
    if not isinstance(run, LabelledRun):
        raise RegardError(
            "A page of scores is drawn for what classifies, rates, tags or answers. Leave out --out, or look inside "
            "the run: regard look"
        )
    check_page_folder(folder, SCORES, force)


def draw_evaluation(found: LabelledEvaluation, name: str, folder: Path, force: bool = False) -> Path:
    """Write report.html, whose path is returned, and of answers with probabilities reliability.png."""
    files = [PICTURE] if "calibration" in found.more else []
    begin_page(folder, SCORES, files, force)
    if files:
        write_atomically(folder / PICTURE, lambda aside: _write_picture(found, name, aside))
    return finish_page(folder, render_evaluation(found, name), SCORES, files)


def render_evaluation(found: LabelledEvaluation, name: str) -> str:
    """The whole page as text; `name` is the run's."""
    measured, more = found.measure(), found.more
    best = measured.best
    return report_page(
        title=f"Regard: {name}",
        kicker=f"Regard · {name}: {measured.counts_text}",
        headline=f"{best.name}: {best.text}",
        lede="Brackets hold 95% intervals over examples.",
        notes=measured.notes,
        sections=[
            section("Scores", "", table(("measure", "value"), [(each.name, each.text) for each in found.figures])),
            section("Can its probabilities be trusted?", RELIABILITY, _reliability(more), "reliability"),
            section("What was taken for what", CONFUSIONS, _confusions(more), "confusions"),
            section("Kinds of phrases", "", _kinds(more), "kinds"),
            section("The worst errors", "", _errors(more), "errors"),
            section("Layers", MIX, _mix(more), "layers"),
        ],
        made="Made by Regard; its numbers are those of regard eval --json.",
    )


def _reliability(more: Mapping[str, Any]) -> str:
    if "calibration" not in more:
        return ""
    bins = more["calibration"]["bins"]
    rows = [(f"{each['confidence']:.3f}", f"{each['accuracy']:.3f}", f"{each['n']:,}") for each in bins]
    numbers = table(("mean probability", "share that is right", "answers"), rows)
    return charts_for_screen_and_phone(_list_series(bins), PLOT) + fold(f"{len(rows)} bins", numbers)


def _list_series(bins: Sequence[Mapping[str, Any]]) -> list[Series]:
    """The reliability curve, and the diagonal that it would lie on were every probability true."""
    measured = tuple((each["confidence"], each["accuracy"]) for each in bins)
    return [
        Series("perfectly calibrated", Look(SOFT, "2 3", "circle"), ((0.0, 0.0), (1.0, 1.0))),
        Series("this run", Look(COLOURS[0], "", "circle"), measured),
    ]


PLOT = Plot(
    title="Reliability", x_label="probability of the answer", y_label="share that is right", x_text="{:.2f}".format,
    x_limits=(0.0, 1.0), y_limits=(0.0, 1.0), is_x_log=False, y_text="{:.2f}".format,
    measured_at=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
)  # fmt: skip


def _confusions(more: Mapping[str, Any]) -> str:
    if "confusions" not in more:
        return ""
    labels = more["labels"]
    rows = [(label, *(f"{n:,}" for n in row)) for label, row in zip(labels, more["confusions"], strict=True)]
    whole = table(("", *labels), rows)
    return whole if len(labels) <= MAX_OPEN else fold(f"{len(labels)} labels", whole)


def _kinds(more: Mapping[str, Any]) -> str:
    kinds: Mapping[str, Mapping[str, float]] = more.get("kinds") or {}
    names = ("f1", "precision", "recall")
    rows = [(kind, *(f"{s[name]:.2f}" for name in names), f"{s['n']:,}") for kind, s in kinds.items()]
    return table(("kind", "F1", "precision", "recall", "true ones"), rows) if rows else ""


def _errors(more: Mapping[str, Any]) -> str:
    rows = [_write_error(error) for error in more.get("errors") or ()]
    return table(("given", "true", "text"), rows) if rows else ""


def _write_error(error: Mapping[str, Any]) -> tuple[str, str, str]:
    """What was given, what is true, and the text; of tagged words those that are wrong."""
    if "words" in error:
        wrong = [each for each in zip(error["words"], error["given"], error["true"], strict=True) if each[1] != each[2]]
        given, true = (" ".join(f"{each[0]}/{each[k]}" for each in wrong) for k in (1, 2))
        return given, true, " ".join(error["words"])
    both = error["given"], error["true"]
    given, true = (f"{value:.3g}" if isinstance(value, float) else str(value) for value in both)
    sure = f" ({error['probability']:.2f})" if "probability" in error else ""
    return given + sure, true, " ⇥ ".join(error["texts"])


def _mix(more: Mapping[str, Any]) -> str:
    """The shares of a learned mix as bars."""
    shares = more.get("mix")
    if not shares:
        return ""
    names = ["embeddings", *(f"layer {i}" for i in range(1, len(shares)))]
    bars = [(name, "█" * max(1, round(40 * share)), f"{share:.2f}") for name, share in zip(names, shares, strict=True)]
    return table(("", "share of the mix", ""), bars)


@drawing()
def _write_picture(found: LabelledEvaluation, name: str, path: Path) -> None:
    calibration = found.more["calibration"]
    title = f"{name}: calibration error {100 * calibration['ece']:.1f}% of {found.n_examples:,} examples"
    figure = new_figure(5.6, 4.9, title, "", 48)
    axes = figure.subplots()
    clean_axes(axes, "")
    draw_series(axes, _list_series(calibration["bins"]), has_dots=True)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(PLOT.x_label, fontsize=9.5, color=SOFT)
    axes.set_ylabel(PLOT.y_label, fontsize=9.5, color=SOFT)
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(path, format="png")
