"""Attention by hand: every number between the scores and the output, for examples that fit on a blackboard.

    s_i = q · k_i,   s'_i = s_i / √d,   a_i = b^s'_i / Σ_j b^s'_j,   z = Σ_i a_i v_i

The base b of the softmax is e, or 3 where one counts in the head.

The same numbers are computed again by the page's script, where they can be edited (`regard/report/views/steps.js`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.errors import RegardError
from regard.lens.attention_view import check_number, choose_head
from regard.lens.subject import Subject
from regard.lens.view import LookOptions, Packed, Rows, View

Array = NDArray[np.float64]

MAX_KEYS = 60  # rows of a table that is still read


@dataclass(frozen=True, kw_only=True)
class Example:
    """Words that are looked at, and what a query scores them with: vectors, or the scores themselves."""

    title: str
    note: str
    words: tuple[str, ...]
    query: tuple[float, ...] | None = None
    keys: tuple[tuple[float, ...], ...] | None = None
    values: tuple[tuple[float, ...], ...] | None = None
    scores: tuple[float, ...] | None = None
    d: float | None = None
    """What the scores are divided by the root of; None: by nothing."""
    base: float = math.e
    printed: tuple[float, ...] | None = None
    """Weights that circulate and are wrong."""
    asker: str = "the query"

    def solve(self) -> Solution:
        """Work it out."""
        if self.scores is not None:
            s = np.array(self.scores, dtype=np.float64)
        else:
            assert self.query is not None, "or scores are given"
            assert self.keys is not None, "or scores are given"
            s = np.array(self.keys, dtype=np.float64) @ np.array(self.query, dtype=np.float64)
        return solve(s, self.values, self.d, self.base)

    def to_json(self) -> dict[str, Any]:
        """What the page's script computes from."""
        return {
            "kind": "attend", "title": self.title, "note": self.note, "words": self.words, "query": self.query,
            "keys": self.keys, "values": self.values, "scores": self.scores, "d": self.d, "base": self.base,
            "printed": self.printed, "asker": self.asker,
        }  # fmt: skip


@dataclass(frozen=True)
class Solution:
    """Scores, scores over √d, weights, and the weighted sum of the values where there are any."""

    scores: Array
    scaled: Array
    weights: Array
    z: Array | None = field(default=None)


def solve(scores: ArrayLike, values: ArrayLike | None = None, d: float | None = None, base: float = math.e) -> Solution:
    """The equations above.

    >>> solve([0, 0, 1, 0], [[1, 0], [1, 0], [0, 1], [1, 0]], base=3).z.round(3).tolist()
    [0.5, 0.5]
    """
    s = np.asarray(scores, dtype=np.float64)
    scaled = s if d is None else s / math.sqrt(d)
    e = np.exp((scaled - scaled.max()) * math.log(base))
    a = e / e.sum()
    return Solution(s, scaled, a, None if values is None else a @ np.asarray(values, dtype=np.float64))


def regress(x: float, xs: Sequence[float], ys: Sequence[float], h: float) -> tuple[Array, float]:
    """Nadaraya-Watson regression as attention with a Gaussian kernel: the weights of the points, and ŷ.

    s_i = -(x - x_i)² / 2h²,   a = softmax(s),   ŷ = Σ_i a_i y_i   (Nadaraya 1964; Watson 1964)

    >>> weights, y = regress(0.5, [0.0, 1.0], [2.0, 4.0], h=1.0)
    >>> weights.tolist(), y
    ([0.5, 0.5], 3.0)
    """
    scores = [-((x - x_i) ** 2) / (2 * h**2) for x_i in xs]
    found = solve(scores, [[y] for y in ys])
    assert found.z is not None
    return found.weights, float(found.z[0])


class HeadRow(NamedTuple):
    """One row of one head: its query (K,), the S keys and values (S, K), and what the model made of them (S,)."""

    layer: int
    head: int
    t: int
    query: Array
    keys: Array
    values: Array
    scores: Array
    weights: Array
    names: tuple[str, ...]
    """The tokens that are looked at."""

    def divisor(self, seen: NDArray[np.int64]) -> float | None:
        """What q·k is divided by the root of to give the model's scores: the width of a head, or 1; None: neither.

        None stands for score functions that are no plain product, such as qᵀ W k or w·tanh(W [q; k]).
        """
        raw, scores = self.keys[seen] @ self.query, self.scores[seen]
        room = 1e-3 * (1 + np.abs(raw))
        for d in (float(len(self.query)), 1.0):
            if np.all(np.abs(raw / math.sqrt(d) - scores) <= room):
                return d
        return None


def view_steps(subject: Subject, options: LookOptions) -> View | None:
    """One row of attention in numbers: q·k, over √d, softmax, weighted v, z. None where the model keeps no q, k, v.

    Of a decoder, its look at the source. Where scores are no product of q and k, the scores themselves come first.
    """
    row = read_row(subject, options)
    if row is None:
        return None
    seen = np.flatnonzero(np.isfinite(row.scores) & (row.weights > 0))
    shown = np.sort(seen[np.argsort(-row.weights[seen], kind="stable")[:MAX_KEYS]])
    d, width = row.divisor(seen), len(row.query)
    z = row.weights @ row.values
    word = subject.tokens[row.t].strip() or subject.tokens[row.t]
    names = [f"{s + 1} {row.names[s]}" for s in shown.tolist()]
    vectors: dict[str, Any] = {"query": None, "keys": None, "scores": row.scores[shown].round(4).tolist()}
    if d is not None:
        vectors = {"query": row.query.round(4).tolist(), "keys": row.keys[shown].round(4).tolist(), "scores": None}
    most = int(row.weights.argmax())
    return View(
        name="steps",
        title="One look, by hand",
        note=f"Layer {row.layer + 1}, head {row.head + 1}, from “{word}”: {_say_score(d, width)} "
        "through the softmax; the weights times the values give z. Numbers in boxes, the scores, d and the base, can "
        "be changed, and the rest follows."
        + (f" The {len(seen) - len(shown)} keys with the least weight are left out." if len(seen) > len(shown) else ""),
        summary=f"“{word}” (token {row.t + 1}) looks at “{row.names[most].strip()}” with {row.weights[most]:.3f}; "
        f"z = {_vector(z)}.",
        data={
            "examples": [
                {
                    "kind": "attend", "title": "", "note": "", "words": names, "asker": f"“{word}”", **vectors,
                    "d": width if d == width else None, "base": math.e, "printed": None,
                    "values": row.values[shown].round(4).tolist(),
                }
            ],
            "layer": row.layer, "head": row.head, "token": row.t, "z": Packed(z, "float32"),
        },
        table=_list_steps(row, shown, names, d),
    )  # fmt: skip


def _say_score(d: float | None, width: int) -> str:
    if d is None:
        return "its score for each key, by the model's own score function,"
    return f"its query times each key, over √{width}," if d == width else "its query times each key,"


def _list_steps(row: HeadRow, shown: NDArray[np.int64], names: Sequence[str], d: float | None) -> Rows:
    """The numbers of each key: q·k and what it is divided by, where there are such, then the weight and the value."""
    columns = ["key", *([] if d is None else ["q·k"]), *([f"/ √{d:g}"] if d not in (None, 1.0) else [])]
    columns += [*(["score"] if d is None else []), "softmax", "v"]
    rows = []
    for name, s in zip(names, shown.tolist(), strict=True):
        numbers = [] if d is None else [f"{row.keys[s] @ row.query:.3f}"]
        numbers += [f"{row.scores[s]:.3f}"] if d != 1.0 else []
        rows.append((name, *numbers, f"{row.weights[s]:.4f}", _vector(row.values[s])))
    return columns, rows


def read_row(subject: Subject, options: LookOptions) -> HeadRow | None:
    """The row that is asked for: of a reader in its attention to its own tokens, of a decoder in that to its source."""
    taps, trace = subject.trace.taps, subject.trace
    kind = "cross_" if subject.is_written else ""
    layers = sorted(int(m[1]) for name in taps if (m := re.fullmatch(rf"layers\.(\d+)\.{kind}attention", name)))
    if not layers or any(f"layers.{layer}.{kind}query" not in taps for layer in layers):
        return None
    weights = [taps[f"layers.{layer}.{kind}attention"] for layer in layers]
    layer, head = _choose_look(weights, options) if kind else choose_head(weights, options)
    t = find_token(subject, options.word)

    def take(name: str) -> Array:
        """What one head computed, (T, K) or (T, S); keys and values may be shared by several heads."""
        found = taps[f"layers.{layers[layer]}.{kind}{name}"]
        return np.asarray(found[head * len(found) // len(weights[layer])], dtype=np.float64)

    return HeadRow(
        layer, head, t, take("query")[t], take("key"), take("value"), take("scores")[t],
        np.asarray(weights[layer][head][t], dtype=np.float64), trace.sources if kind else subject.tokens,
    )  # fmt: skip


def _choose_look(weights: Sequence[Array], options: LookOptions) -> tuple[int, int]:
    """A decoder's layer and head that are asked for, from 0 on; else the last layer and its sharpest head."""
    check_number("layer", options.layer, len(weights))
    layer = len(weights) - 1 if options.layer is None else options.layer - 1
    check_number("head", options.head, len(weights[layer]))
    sharpest = int(weights[layer].max(axis=-1).mean(axis=-1).argmax())
    return layer, sharpest if options.head is None else options.head - 1


def find_token(subject: Subject, word: str | None) -> int:
    """The token that is asked about: the last piece of a word that is given by its text, or by its number from 1 on."""
    own = [t for t, span in enumerate(subject.spans) if span is not None]
    if not own:
        raise RegardError("The model's vocabulary leaves nothing of this text, so there is no word to ask about.")
    if word is None:
        return own[-1]
    found = [w for w, text in enumerate(subject.word_texts) if text == word]
    found = found or [w for w, text in enumerate(subject.word_texts) if text.lower() == word.lower()]
    if not found and word.isascii() and word.isdigit():
        check_number("word", int(word), len(subject.word_texts), "the text")
        found = [int(word) - 1]
    if not found:
        shown = ", ".join(f"“{text}”" for text in dict.fromkeys(subject.word_texts))
        raise RegardError(
            f"--word {word}: the text has no such word. It has {shown[:300]}; or give a number from 1 on."
        )
    return max(t for t, w in enumerate(subject.words) if w == found[-1])


def _vector(v: Array, most: int = 6) -> str:
    shown = " ".join(f"{x:.2f}" for x in v[:most])
    return f"[{shown}{' …' if len(v) > most else ''}]"
