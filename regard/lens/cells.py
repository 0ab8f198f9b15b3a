"""Cells that mean something: units whose value follows a feature of the text that a reader can see.

For every feature the unit with the highest |correlation| is picked on the first half of a text, and its correlation is
reported on the second half, so that luck of the draw among hundreds of units does not flatter it
(after Karpathy, Johnson & Fei-Fei 2015, who found such cells by eye).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from regard.count.ngram import NgramModel
from regard.lens.trace import TraceableRun
from regard.lens.views import CellTrace, CellView
from regard.mixers.recurrent import Recurrent
from regard.mixers.recurrent_attention import RecurrentAttention

Array = NDArray[np.float64]

MAX_CHARS = 6000
MAX_TRACES = 5
WEAKEST = 0.25  # a correlation below this is not worth a picture, unless it is the best there is

_QUOTED = re.compile(r'"[^"\n]{1,200}"|(?<!\w)\'[^\'\n]{1,100}\'(?!\w)|``[^`\n]{1,200}``|“[^”]{1,300}”')


def position_in_line(text: str) -> Array:
    """How far from the start of the line, in characters, up to 100."""
    starts = _since(text, lambda c: c == "\n")
    return np.minimum(starts, 100.0)


def position_in_sentence(text: str) -> Array:
    """How far from the last full stop, up to 200 characters."""
    return np.minimum(_since(text, lambda c: c in ".!?"), 200.0)


def position_in_word(text: str) -> Array:
    """How far from the last white space, up to 12 characters."""
    return np.minimum(_since(text, str.isspace), 12.0)


def inside_quotes(text: str) -> Array:
    """1 between quotation marks, 0 outside."""
    values = np.zeros(len(text))
    for match in _QUOTED.finditer(text):
        values[match.start() : match.end() - 1] = 1.0
    return values


def bracket_depth(text: str) -> Array:
    """How many brackets are open, up to 4; a blank line closes all.

    >>> bracket_depth("a(b[c])").tolist()
    [0.0, 1.0, 1.0, 2.0, 2.0, 1.0, 0.0]
    """
    values, depth = np.zeros(len(text)), 0
    for i, c in enumerate(text):
        depth = depth + 1 if c in "([{" else depth - 1 if c in ")]}" else depth
        depth = 0 if text[i - 1 : i + 1] == "\n\n" else min(max(depth, 0), 4)
        values[i] = depth
    return values


def indentation(text: str) -> Array:
    """How far the line is indented, up to 24 columns."""
    values = [float(min(len(line) - len(line.lstrip(" ")), 24)) for line in text.split("\n") for _ in line + "\n"]
    return np.array(values[: len(text)])


def capitals(text: str) -> Array:
    """1 where the character is a capital letter."""
    return np.array([float(c.isupper()) for c in text])


def digits(text: str) -> Array:
    """1 where the character is a digit."""
    return np.array([float(c.isdigit()) for c in text])


FEATURES: dict[str, Callable[[str], Array]] = {
    "position in the line": position_in_line,
    "inside quotes": inside_quotes,
    "bracket depth": bracket_depth,
    "indentation": indentation,
    "position in the sentence": position_in_sentence,
    "position in the word": position_in_word,
    "capital letters": capitals,
    "digits": digits,
}


def cell_view(run: TraceableRun, text: str, passage: str) -> CellView | None:
    """Search the units of a recurrent run on `text` and show the best on `passage`; None for other models."""
    stack = recurrent_stack(run)
    if stack is None:
        return None
    tap, units, ends = unit_values(run, text[:MAX_CHARS])
    _, passage_units, passage_ends = unit_values(run, passage)
    found = []
    for name, feature in FEATURES.items():
        picked = best_unit(units, feature(text[:MAX_CHARS])[ends - 1])
        if picked is not None:
            found.append((name, *picked))
    found.sort(key=lambda f: -abs(f[2]))
    kept = [f for f in found if abs(f[2]) >= WEAKEST][:MAX_TRACES] or found[:1]
    firsts = np.cumsum([0] + [layer.d_hidden for layer in stack.layers[:-1]])  # unit 0 of each layer
    traces = []
    for name, unit, score in kept:
        values = passage_units[:, unit]
        values = values / max(float(np.abs(np.append(units[:, unit], values)).max()), 1e-9)
        rounded = tuple(round(float(v), 3) for v in values)
        layer = int(np.searchsorted(firsts, unit, side="right")) - 1
        place = {"layer": layer, "unit": unit - int(firsts[layer])}
        traces.append(CellTrace(**place, feature=name, score=score, values=rounded))
    starts = np.concatenate([[0], passage_ends[:-1]])
    tokens = tuple(passage[a:b] for a, b in zip(starts.tolist(), passage_ends.tolist(), strict=True))
    return CellView(tap=tap, tokens=tokens, traces=tuple(traces))


def recurrent_stack(run: TraceableRun) -> Recurrent | None:
    """The recurrent layers of a model, with or without attention above them; None where there are none."""
    mixer = None if isinstance(run.model, NgramModel) else run.model.mixer
    if isinstance(mixer, RecurrentAttention):
        return mixer.recurrent
    return mixer if isinstance(mixer, Recurrent) else None


def best_unit(units: Array, feature: Array) -> tuple[int, float] | None:
    """The unit (a column) that follows `feature` best on the first half, and its correlation on the second.

    None where the feature, or every unit, is constant on a half.
    """
    half = len(feature) // 2
    first, second = slice(0, half), slice(half, None)
    if half < 3 or feature[first].std() == 0 or feature[second].std() == 0:
        return None
    on_first = np.abs(correlations(units[first], feature[first]))
    unit = int(on_first.argmax())
    return unit, float(correlations(units[second, unit : unit + 1], feature[second])[0])


def correlations(units: Array, feature: Array) -> Array:
    """Pearson's r of every column with the feature; 0 for a column that does not move."""
    u = units - units.mean(axis=0)
    f = feature - feature.mean()
    norms = np.sqrt((u**2).sum(axis=0) * (f**2).sum())
    r: Array = np.divide(f @ u, norms, out=np.zeros(units.shape[1]), where=norms > 1e-12)
    return r


def unit_values(run: TraceableRun, text: str) -> tuple[str, Array, NDArray[np.int64]]:
    """(tap, values (T, L x H), the character each token ends at): tanh of LSTM cells, or the states of RNN and GRU."""
    trace = run.trace(text)
    taps, tap = (trace.cells, "cell") if trace.cells else (trace.named("hidden"), "hidden")
    layers = sorted((name for name in taps if name.startswith("layers.")), key=lambda n: int(n.split(".")[1]))
    stack = recurrent_stack(run)
    layers = layers[: len(stack.layers) if stack is not None else None]  # what attention adds above them is no state
    values = np.concatenate([taps[name][1:] for name in layers], axis=1).astype(np.float64)  # row 0 is the start mark
    _, offsets = run.tokenizer.encode_with_offsets(text)
    ends = np.maximum.accumulate(np.array([end for _, end in offsets], dtype=np.int64))
    return tap, np.tanh(values) if tap == "cell" else values, ends


def _since(text: str, is_mark: Callable[[str], bool]) -> Array:
    """Characters since the last mark, the mark itself counting 0."""
    values, n = np.zeros(len(text)), 0
    for i, c in enumerate(text):
        n = 0 if is_mark(c) else n + 1
        values[i] = n
    return values
