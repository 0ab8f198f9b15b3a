"""How a run learned: what its snapshots write, look at and cost on one text, beside the curves of its training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.lens.cell_view import choose_search_text, name_unit
from regard.lens.cells import find_cells, search_units, show_cells
from regard.lens.gradients import measure_gradients
from regard.lens.subject import Subject
from regard.lens.units import has_units, read_units
from regard.lens.view import LookOptions, Packed, View
from regard.lens.views import CellTrace, CellView
from regard.models.language_model import LanguageModel
from regard.models.pointer import PointerModel
from regard.training.metrics import read_metrics

Array = NDArray[np.float64]

MAX_HEADS = 6
MAX_TOKENS = 96  # of the text, in pictures of attention
SEARCH_CHARS = 30_000  # read at every step for the correlation of one unit
SAMPLING: dict[str, Any] = {"temperature": 0.8, "top_p": 0.95, "seed": 0, "max_tokens": 120}


@dataclass(frozen=True)
class Snapshots:
    """The weights that a run kept: their steps, and what opens the run with the weights of one."""

    steps: tuple[int, ...]
    open: Callable[[int], Any]


@dataclass
class Moment:
    """What the run was like after one step."""

    step: int
    sample: str = ""
    bits: float | None = None
    """Bits a token of the text."""
    attention: dict[tuple[str, int], Array] = field(default_factory=dict)
    """(T, T) by tap and head."""
    cell: tuple[float, ...] = ()
    cell_r: float | None = None
    gradient: tuple[float, ...] = ()


def view_over_time(subject: Subject, options: LookOptions) -> View | None:
    """A sample, one unit, attention and gradients of every snapshot; `options.extra["snapshots"]` opens them."""
    snapshots: Snapshots | None = options.extra.get("snapshots")
    if snapshots is None:
        return None
    search_text, _ = choose_search_text(subject, options)
    last = snapshots.open(snapshots.steps[-1])
    tokenizer = last.tokenizers[0]
    found = find_cells(last.model, tokenizer, search_text, 1) if has_units(last.model) else None
    trace = None if found is None else found.traces[0]
    moments = [_look_at(snapshots.open(step), step, subject.text, trace, search_text) for step in snapshots.steps]
    heads = choose_heads(moments[0].attention, moments[-1].attention)
    curves = read_curves(read_metrics(subject.run.folder))
    unit = None if trace is None else name_unit(trace, "cell" if trace.tap.endswith("cell") else "unit")
    return View(
        name="over-time",
        title="How it learned",
        note="Move the slider through the weights that the run kept: what it writes, how one unit and the heads that "
        "changed the most read the text, how far the gradient reaches, and where training stood.",
        summary=summarise(moments, unit, "" if trace is None else trace.feature),
        data={
            "steps": list(snapshots.steps),
            "samples": [m.sample for m in moments],
            "bits": [m.bits for m in moments],
            "unit": unit,
            "feature": None if trace is None else trace.feature,
            "cells": [list(m.cell) for m in moments],
            "r": [m.cell_r for m in moments],
            "heads": [_name_head(*head) for head in heads],
            "attention": [Packed(np.stack([m.attention[head] for m in moments])) for head in heads],
            "gradients": [list(m.gradient) for m in moments],
            "curves": curves,
        },
        table=(
            ("step", "bits a token of the text", "r of the unit", "sample"),
            [
                (str(m.step), _show(m.bits, ".2f"), _show(m.cell_r, "+.2f"), m.sample[:60]) for m in moments
            ],
        ),
    )  # fmt: skip


def _look_at(run: Any, step: int, text: str, trace: CellTrace | None, search_text: str) -> Moment:
    """One snapshot; what its task does not have is left empty."""
    moment, model = Moment(step), run.model
    is_language_model = isinstance(model, LanguageModel | PointerModel)
    record = run.trace(text)
    moment.attention = take_heads(record.taps)
    own = record.nats[record.nats != 0]
    moment.bits = float(own.mean() / math.log(2)) if len(own) else None
    if is_language_model:
        prompt = " ".join(text.split()[:4])
        moment.sample = str(run.generate(prompt, **SAMPLING))
        seen = torch.tensor([run.tokenizer.eos, *run.tokenizer.encode(text)[:MAX_TOKENS].tolist()])
        limit = model.mixer.max_context
        seen = (seen if limit is None else seen[: limit + 1]).to(model.embedding.device)
        if len(seen) > 2:
            moment.gradient = tuple(float(f"{v:.4g}") for v in measure_gradients(model, seen, 24).by_distance())
    if trace is not None:
        moment.cell, moment.cell_r = follow_unit(run, trace, text, search_text[:SEARCH_CHARS])
    return moment


def follow_unit(run: Any, trace: CellTrace, text: str, search_text: str) -> tuple[tuple[float, ...], float | None]:
    """One unit's values on a text, and its correlation with its feature over all of another."""
    tokenizer = run.tokenizers[0]
    alone = CellView(tap="", tokens=(), traces=(trace,))
    shown = show_cells(alone, run.model, tokenizer, text).traces[0]
    reading = read_units(run.model, tokenizer, search_text)
    if reading is None or len(reading.ends) < 8:
        return shown.own_values, None
    search, _ = search_units(reading, search_text, (trace.feature,))
    if trace.feature not in search.features:
        return shown.own_values, None
    unit, k = search.number(trace.tap, trace.unit), search.features.index(trace.feature)
    return shown.own_values, round(float((search.picked[k, unit] + search.checked[k, unit]) / 2), 3)


def take_heads(taps: Mapping[str, NDArray[Any]]) -> dict[tuple[str, int], Array]:
    """Every head's weights between the tokens of the text, (T, T); of a long text, the first tokens."""
    found = {}
    for name, weights in taps.items():
        if name.endswith(".attention") and weights.ndim == 3 and weights.shape[1] == weights.shape[2]:
            for head, values in enumerate(weights[:, :MAX_TOKENS, :MAX_TOKENS]):
                found[name, head] = values.astype(np.float64)
    return found


def choose_heads(
    first: Mapping[tuple[str, int], Array], last: Mapping[tuple[str, int], Array]
) -> list[tuple[str, int]]:
    """The heads whose weights moved the most from the first snapshot to the last, in the order of the model."""
    moved = {head: float(np.abs(last[head] - first[head]).sum()) for head in last if head in first}
    chosen = sorted(moved, key=lambda head: -moved[head])[:MAX_HEADS]
    return [head for head in last if head in chosen]


def read_curves(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[list[float]]]:
    """Loss of training and validation and the norm of the gradient by step, thinned to a few hundred points."""
    curves: dict[str, list[list[float]]] = {"train": [], "valid": [], "grad_norm": []}
    for line in lines:
        value = line.get("bits_per_byte")
        if value is None:
            value = line["nats_per_token"]
        if line["kind"] in ("train", "valid"):
            curves[line["kind"]].append([line["step"], value])
        if line.get("grad_norm") is not None:
            curves["grad_norm"].append([line["step"], line["grad_norm"]])
    return {name: points[:: max(1, len(points) // 200)] for name, points in curves.items()}


def summarise(moments: Sequence[Moment], unit: str | None = None, feature: str = "") -> str:
    """What the numbers say, in a sentence."""
    first, last = moments[0], moments[-1]
    text = f"{len(moments)} snapshots, from step {first.step:,} to step {last.step:,}."
    if first.bits is not None and last.bits is not None:
        text += f" The text cost {first.bits:.2f} bits a token at first and {last.bits:.2f} at last."
    if unit is not None and first.cell_r is not None and last.cell_r is not None:
        text += f" The correlation of {unit} with “{feature}” went from {first.cell_r:+.2f} to {last.cell_r:+.2f}."
    return text


def _show(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _name_head(tap: str, head: int) -> str:
    layer = next((part for part in tap.split(".") if part.isdigit()), "0")
    return f"layer {int(layer) + 1}, head {head + 1}"
