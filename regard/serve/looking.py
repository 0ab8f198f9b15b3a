"""What a model computed on a text or a picture, as bytes for a page: traces, views, single heads, picture files."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from regard import api
from regard.count.ngram import NgramModel
from regard.errors import RegardError, nearest
from regard.layers.attention import MultiHeadAttention
from regard.layers.copy_attention import CopyAttention
from regard.layers.cross_attention import CrossAttention
from regard.layers.source_attention import SourceAttention
from regard.lens.logit_lens import can_read_out
from regard.lens.look import VIEWS, Panel, check_views
from regard.lens.positions import find_tables
from regard.lens.units import has_units
from regard.lens.view import Packed
from regard.mixers.recurrent_attention import RecurrentAttention
from regard.models.language_model import LanguageModel
from regard.models.pointer import PointerModel
from regard.models.pooling import Pooling
from regard.report.look_pictures import PICTURES, draw_picture
from regard.serve.heads import SENT_BYTES, KeptHeads
from regard.serve.packing import Arrays
from regard.serve.pictures import keep_picture
from regard.serve.questions import MAX_EXPLAINED
from regard.tasks.caption_run import CaptionRun
from regard.tasks.labelled_run import LabelledRun
from regard.tasks.pair_run import PairRun
from regard.tasks.translation import TranslationRun
from regard.training.snapshots import list_snapshots

Asked = Mapping[str, Any]
"""The fields of a question."""


def list_views(run: Any) -> list[str]:
    """The views that a run may have something for; what it surely has not is found without computing anything."""
    model = run.model
    if isinstance(model, NgramModel):
        return ["next", "surprise"]
    reads_units, is_labelled = has_units(model), isinstance(run, LabelledRun)
    is_captioner = isinstance(run, CaptionRun)
    attends = _has_part(model, MultiHeadAttention, RecurrentAttention, CopyAttention)
    looks_elsewhere = _has_part(model, CrossAttention, SourceAttention) or any(
        part.kind == "attention" for part in model.modules() if isinstance(part, Pooling)
    )
    absent = {
        "next": is_labelled or isinstance(run, PairRun) or is_captioner,
        "surprise": is_labelled,
        "attention": not attends,
        "steps": not (looks_elsewhere if isinstance(run, PairRun) or is_captioner else attends),
        "faithfulness": not (attends or looks_elsewhere) or run.task.name == "rating",
        "picture": not (is_captioner and looks_elsewhere),
        "alignment": not (isinstance(run, PairRun) and looks_elsewhere),
        "over-time": not list_snapshots(run.folder),
        "layers": not can_read_out(model),
        "cells": not reads_units,
        "vectors": not reads_units or is_captioner,
        "positions": not find_tables(model),
        "gradients": not isinstance(model, LanguageModel | PointerModel),
    }
    return [name for name in VIEWS if not absent.get(name)]


def _has_part(model: Any, *kinds: type) -> bool:
    return any(isinstance(part, kinds) for part in model.modules())


def trace_run(run: Any, asked: Asked) -> bytes:
    """What a run computed: the names and shapes of all arrays, and those that were asked for."""
    with keep_picture(asked["picture"]) as picture:
        found = _trace(run, asked, picture)
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


def _trace(run: Any, asked: Asked, picture: Path | None) -> Any:
    text, target, tag = asked["text"], asked["target"], asked["tag"]
    if isinstance(run, CaptionRun):
        if picture is None or text is not None or tag is not None:
            raise RegardError(f"'{run.folder}' says what is in pictures: send a picture, and no text or tag.")
        return run.trace(picture, target)
    if picture is not None:
        raise RegardError(f"'{run.folder}' is a run that {run.task.summary}, and looks at no picture: leave it out.")
    if text is None or not text.strip():
        raise RegardError("There is no text to trace. Send one with at least one word.")
    if isinstance(run, TranslationRun):
        return run.trace(text, run.translate(text, tag) if target is None else target, tag)
    if target is not None or tag is not None:
        raise RegardError(f"'{run.folder}' does not translate: leave out target and tag.")
    return run.trace(text)


def _make_finite(array: Any) -> Any:
    """Scores of what may not be looked at are -inf; they are sent as the lowest number that float16 has."""
    return np.nan_to_num(np.asarray(array, dtype=np.float64), nan=0.0, posinf=65504.0, neginf=-65504.0)


def look_inside(
    runs: Mapping[str, Any],
    texts: Sequence[str],
    asked: Asked,
    heads: KeptHeads | None = None,
    colours: Mapping[str, str] | None = None,
) -> bytes:
    """The views of some runs, by name, with their arrays as bytes; heads that are not sent go to `heads`."""
    found = _look(runs, texts, asked, {} if heads is None else {"sent_bytes": SENT_BYTES})
    if heads is not None:
        panels = zip(runs, found.panels, strict=True)
        found = replace(found, panels=tuple(_keep_heads(heads, key_of(name, asked, texts), p) for name, p in panels))
    arrays = Arrays()
    value = found.to_json(arrays.add)
    for name, panel in zip(runs, value["panels"], strict=True):
        panel |= {"name": name} | ({} if colours is None else {"colour": colours[name]})
    return arrays.write(value)


def _look(runs: Mapping[str, Any], texts: Sequence[str], asked: Asked, extra: Mapping[str, Any]) -> Any:
    """The views of some runs, as `regard look` makes them."""
    if not texts and asked["picture"] is None:
        raise RegardError("There is no text to look at. Send one as text, or several as texts with a word.")
    views = asked["views"]
    if texts and len(texts[0]) > MAX_EXPLAINED and (again := {"influence", "faithfulness"} & set(check_views(views))):
        raise RegardError(
            f"{' and '.join(sorted(again))}: the text is computed again for every word of it, so it has at most "
            f"{MAX_EXPLAINED} characters here, not {len(texts[0]):,}. Shorten it, or use regard look."
        )
    is_over_time = "over-time" in (views or ())
    if is_over_time:
        views = [name for name in views if name != "over-time"]
    options = {name: asked[name] for name in ("top_k", "layer", "head", "word")}
    with keep_picture(asked["picture"]) as picture:
        return api.look(
            list(runs.values()), texts, target=asked["target"], tag=asked["tag"], picture=picture, views=views,
            over_time=is_over_time, extra=extra, **options,
        )  # fmt: skip


def draw_view(name: str, run: Any, texts: Sequence[str], asked: Asked, colour: str) -> bytes:
    """One view of a run as a picture file, drawn for print."""
    panel = _look({name: run}, texts, asked, {}).panels[0]
    view = panel.views[0]
    if view.name not in PICTURES:
        raise RegardError(f"The view {view.name} is a page of numbers and has no picture.")
    with tempfile.TemporaryDirectory(prefix="regard-drawn-") as folder:
        path = Path(folder) / "view"
        draw_picture(view, replace(panel, name=name), path, colour)
        return path.with_name(f"view.{asked['kind']}").read_bytes()


def key_of(name: str, asked: Asked, texts: Sequence[str] = ()) -> Hashable:
    """What heads are kept by: all that their weights depend on."""
    return name, texts[0] if texts else asked["text"], asked["picture"], asked["target"], asked["tag"]


def _keep_heads(heads: KeptHeads, key: Hashable, panel: Panel) -> Panel:
    views = tuple(heads.keep(key, view) if view.name == "attention" else view for view in panel.views)
    return replace(panel, views=views)


def find_head(name: str, run: Any, asked: Asked, heads: KeptHeads) -> bytes:
    """The attention of one head, computed anew where it is no longer kept."""
    key, place = key_of(name, asked), (asked["stack"], asked["layer"], asked["head"])
    found = heads.find(key, *place)
    if found is None:
        texts = [] if asked["text"] is None else [asked["text"]]
        options = {"views": ["attention"], "top_k": 1, "layer": None, "head": None, "word": None}
        looked = _look({name: run}, texts, {**asked, **options}, {"sent_bytes": SENT_BYTES})
        heads.keep(key, looked.views["attention"])
        found = heads.find(key, *place)
    assert found is not None
    return found
