"""Attention by hand: every number between the scores and the output, for examples that fit on a blackboard.

    s_i = q · k_i,   s'_i = s_i / √d,   a_i = b^s'_i / Σ_j b^s'_j,   z = Σ_i a_i v_i

The base b of the softmax is e, or 3 where one counts in the head.

The same numbers are computed again by the page's script, where they can be edited (`regard/report/views/steps.js`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.errors import RegardError
from regard.lens.attention_view import check_number, choose_head, read_layers
from regard.lens.subject import Subject
from regard.lens.view import LookOptions, Packed, View

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


def view_steps(subject: Subject, options: LookOptions) -> View | None:
    """One row of attention in numbers: q·k, over √d, softmax, weighted v, z. None where the model keeps no q, k, v."""
    taps = subject.trace.taps
    layers = read_layers(taps, len(subject.tokens))
    if (
        not layers
        or subject.is_written
        or not any(name.startswith("layers.") and name.endswith(".query") for name in taps)
    ):
        return None
    layer, head = choose_head(layers, options)
    t = find_token(subject, options.word)
    q, k, v, scores = (_row(taps, layer, head, name) for name in ("query", "key", "value", "scores"))
    seen = np.flatnonzero(np.isfinite(scores[t]) & (layers[layer][head][t] > 0))
    best = seen[np.argsort(-layers[layer][head][t][seen], kind="stable")[:MAX_KEYS]]
    shown = np.sort(best)
    raw = k[shown] @ q[t]
    found = solve(raw, v[shown], float(q.shape[-1]))
    z = layers[layer][head][t] @ v
    word = subject.tokens[t].strip() or subject.tokens[t]
    most = int(shown[found.weights.argmax()])
    left_out = len(seen) - len(shown)
    return View(
        name="steps",
        title="One look, by hand",
        note=f"Layer {layer + 1}, head {head + 1}, from “{word}”: its query times each key, over √{q.shape[-1]}, "
        "through the softmax; the weights times the values give z. Numbers in boxes, the scores, d and the base, can "
        "be changed, and the rest follows."
        + (f" The {left_out} keys with the least weight are left out." if left_out else ""),
        summary=f"“{word}” (token {t + 1}) looks at “{subject.tokens[most].strip()}” with "
        f"{layers[layer][head][t][most]:.3f}; z = {_vector(z)}.",
        data={
            "examples": [
                {
                    "kind": "attend", "title": "", "note": "", "words": [f"{s + 1} {subject.tokens[s]}" for s in shown],
                    "asker": f"“{word}”", "d": q.shape[-1], "base": math.e, "printed": None, "scores": None,
                    "query": q[t].round(4).tolist(), "keys": k[shown].round(4).tolist(),
                    "values": v[shown].round(4).tolist(),
                }
            ],
            "layer": layer, "head": head, "token": t, "z": Packed(z, "float32"),
        },
        table=(
            ("key", "q·k", f"/ √{q.shape[-1]}", "softmax", "v"),
            [
                (f"{s + 1} {subject.tokens[s]}", f"{raw[i]:.3f}", f"{scores[t][s]:.3f}",
                 f"{layers[layer][head][t][s]:.4f}", _vector(v[s]))
                for i, s in enumerate(shown.tolist())
            ],
        ),
    )  # fmt: skip


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


def _row(taps: Any, layer: int, head: int, name: str) -> Array:
    """What one head computed, (T, K) or (T, S). Keys and values may be shared by several heads."""
    layers = sorted({int(n.split(".")[1]) for n in taps if n.startswith("layers.") and n.endswith(".attention")})
    found = taps[f"layers.{layers[layer]}.{name}"]
    n_heads = len(taps[f"layers.{layers[layer]}.attention"])
    return np.asarray(found[head * len(found) // n_heads], dtype=np.float64)


def _vector(v: Array, most: int = 6) -> str:
    shown = " ".join(f"{x:.2f}" for x in v[:most])
    return f"[{shown}{' …' if len(v) > most else ''}]"
