"""One word in several contexts: its vector as a type, before anything is read, and as a token, at every layer.

    cos(a, b) = a·b / (‖a‖ ‖b‖)

"green" has one embedding, whatever it means; what a layer gives for it differs from text to text. States of one layer
all lie in one direction (Ethayarajh 2019), so that any two of them look alike: words in context are compared after the
mean of the layer is subtracted, and the cosine of any two words is told beside.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.lens.subject import number_words
from regard.lens.units import has_units, pick_states, read_units
from regard.models.reader import Reader
from regard.text.tokenizer import Tokenizer

Array = NDArray[np.float64]

MAX_OCCURRENCES = 12
MAX_POOL = 1500  # words in context among which neighbours are looked for
N_NEIGHBOURS = 6
N_NEAR = 10  # other words that a map shows around each occurrence


class Occurrence(NamedTuple):
    """Where the word stands: characters [start, end) of text number `text`."""

    text: int
    start: int
    end: int


class Neighbour(NamedTuple):
    """Another word, some of the text around it, and its cosine."""

    word: str
    around: str
    cosine: float


@dataclass(frozen=True)
class WordInTexts:
    """`states[l]` (n, D) are the vectors of n words in context after layer l, the occurrences first.

    Layer 0 is what the first layer reads.
    `words` and `around` are those of each row. `to_type[l]` has the cosine of each occurrence with its type vector,
    and `near_types` the neighbours of the type vector in the vocabulary; both are empty where there is no such table.
    """

    occurrences: tuple[Occurrence, ...]
    layers: tuple[str, ...]
    states: tuple[Array, ...]
    words: tuple[str, ...]
    around: tuple[str, ...]
    to_type: Array
    near_types: tuple[Neighbour, ...]

    def alike(self, layer: int) -> Array:
        """Cosines between the occurrences, from the mean of the layer, (n, n)."""
        unit = self._unit(layer)[: len(self.occurrences)]
        return np.asarray(unit @ unit.T)

    def any_two(self, layer: int) -> float:
        """The mean cosine of two words in context, with the mean of the layer left in."""
        unit = normalise(self.states[layer])
        n = len(unit)
        total = float((unit.sum(axis=0) ** 2).sum() - n)
        return total / max(1, n * (n - 1))

    def neighbours(self, layer: int, occurrence: int) -> list[int]:
        """The words in context nearest to an occurrence, each word once and the word itself left out."""
        unit = self._unit(layer)
        cosines = unit @ unit[occurrence]
        found: dict[str, int] = {self.words[0].lower(): occurrence}
        for i in np.argsort(-cosines, kind="stable").tolist():
            found.setdefault(self.words[i].lower(), i)
            if len(found) > N_NEIGHBOURS:
                break
        return list(found.values())[1:]

    def cosine(self, layer: int, a: int, b: int) -> float:
        """The cosine of two words in context, from the mean of the layer."""
        unit = self._unit(layer)
        return float(unit[a] @ unit[b])

    def map(self, layer: int) -> tuple[list[int], Array]:
        """The occurrences and the words nearest to them in the plane in which they differ the most (PCA)."""
        unit, n = self._unit(layer), len(self.occurrences)
        near = np.argsort(-(unit @ unit[:n].T), axis=0, kind="stable")[: n + N_NEAR].T.reshape(-1)
        chosen = list(dict.fromkeys([*range(n), *near.tolist()]))
        return chosen, project(self.states[layer][chosen])

    def _unit(self, layer: int) -> Array:
        states = self.states[layer]
        return normalise(states - states.mean(axis=0))


def normalise(rows: Array) -> Array:
    """Every row divided by its length."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


def project(rows: Array) -> Array:
    """The first two principal components of rows, (n, 2); each is turned so that the first row is not negative."""
    centred = rows - rows.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    plane = centred @ axes[:2].T if len(axes) > 1 else np.pad(centred @ axes.T, ((0, 0), (0, 1)))
    return np.asarray(plane * np.where(plane[:1] < 0, -1.0, 1.0))


def find_word(word: str, texts: Sequence[str]) -> tuple[Occurrence, ...]:
    """Where a word stands in texts, capital or not; an error for a text that it is not in."""
    found: list[Occurrence] = []
    for number, text in enumerate(texts):
        here = [m.span() for m in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)]
        if not here:
            raise RegardError(f"The word '{word}' is not in the text {text[:60]!r}. Give texts that it is in: --text.")
        found += [Occurrence(number, a, b) for a, b in here]
    return tuple(found[:MAX_OCCURRENCES])


def read_word(model: Any, tokenizer: Tokenizer, word: str, texts: Sequence[str], more: str = "") -> WordInTexts | None:
    """The vectors of a word in its texts, of the other words there, and of those of another text; None: no layers."""
    if not has_units(model):
        return None
    occurrences = find_word(word, texts)
    read = [_read_text(model, tokenizer, text) for text in texts]
    own, ids = [], []
    for number, start, end in occurrences:
        spans, states, tokens = read[number]
        inside = [t for t, (a, b) in enumerate(spans) if a < end and start < b]
        own.append({name: values[inside].mean(axis=0) for name, values in states.items()})
        ids.append([tokens[t] for t in inside])
    pool: list[tuple[str, str, dict[str, Array]]] = []
    for text, reading in zip(texts, read, strict=True):
        pool += _gather_words(text, *reading[:2])
    if more:
        pool += _gather_words(more, *_read_text(model, tokenizer, more)[:2])
    own_words = [texts[o.text][o.start : o.end] for o in occurrences]
    others = [item for item in pool if item[0].lower() != word.lower()][:MAX_POOL]
    names = tuple(own[0])
    to_type, near = _compare_types(model, tokenizer, ids, own, names)
    return WordInTexts(
        occurrences=occurrences,
        layers=tuple("embedding" if name.endswith("embedding") else name for name in names),
        states=tuple(np.stack([o[name] for o in own] + [state[name] for _, _, state in others]) for name in names),
        words=tuple(own_words + [w for w, _, _ in others]),
        around=tuple([texts[o.text] for o in occurrences] + [around for _, around, _ in others]),
        to_type=to_type,
        near_types=near,
    )


Read = tuple[list[tuple[int, int]], dict[str, Array], list[int]]


def _read_text(model: Any, tokenizer: Tokenizer, text: str) -> Read:
    """Spans of the tokens of a text, their states by layer, the two directions side by side, and their ids."""
    reading = read_units(model, tokenizer, text, n_lanes=1, pick=pick_states)
    assert reading is not None, "asked before"
    n = len(reading.ends)
    states: dict[str, Array] = {}
    for rows, units in reading.chunks:
        for name, found in units.items():
            states.setdefault(name, np.zeros((n, found.shape[1])))[rows] = found
    joined: dict[str, Array] = {}
    for name, values in states.items():
        label = re.sub(r"^(ahead|back|encoder)\.", "", name)
        joined[label] = np.concatenate([joined[label], values], axis=1) if label in joined else values
    spans = [(int(a), int(b)) for a, b in zip(reading.starts, reading.ends, strict=True)]
    return spans, joined, tokenizer.encode(text).tolist()


def _gather_words(
    text: str, spans: Sequence[tuple[int, int]], states: dict[str, Array]
) -> list[tuple[str, str, dict[str, Array]]]:
    """Every word of a text, what stands around it, and the mean of the states of its pieces."""
    numbers = np.array(number_words(text, spans))
    found = []
    for number in range(int(numbers.max()) + 1 if len(numbers) else 0):
        pieces = np.flatnonzero(numbers == number)
        a, b = spans[pieces[0]][0], spans[pieces[-1]][1]
        word = text[a:b].strip()
        if re.search(r"\w", word):
            around = text[max(0, a - 30) : b + 30].replace("\n", " ")
            found.append((word, around, {name: values[pieces].mean(axis=0) for name, values in states.items()}))
    return found


def _compare_types(
    model: Any,
    tokenizer: Tokenizer,
    ids: Sequence[Sequence[int]],
    own: Sequence[dict[str, Array]],
    names: Sequence[str],
) -> tuple[Array, tuple[Neighbour, ...]]:
    """Cosines of occurrences with their rows of the embedding table, (L, n), and the rows nearest to the first's."""
    table = _find_table(model)
    if table is None or any(i >= len(table) for row in ids for i in row):
        return np.zeros((0, 0)), ()
    types = normalise(np.stack([table[list(row)].mean(axis=0) for row in ids]))
    to_type = [[float(normalise(o[name][None])[0] @ kind) for o, kind in zip(own, types, strict=True)] for name in names
               if own[0][name].shape == types[0].shape]  # fmt: skip
    if len(to_type) < len(names):
        to_type = []
    cosines = normalise(table) @ types[0]
    order = [int(i) for i in np.argsort(-cosines, kind="stable")[: 4 * N_NEIGHBOURS] if int(i) not in ids[0]]
    texts = [(tokenizer.token_text(i), float(cosines[i])) for i in order if i < tokenizer.vocab_size]
    return np.array(to_type), tuple(Neighbour(text, "", cosine) for text, cosine in texts[:N_NEIGHBOURS])


def _find_table(model: Any) -> Array | None:
    """The embedding of every token, (V, D), where a model has such a table."""
    inner = model.encoder if isinstance(model, Reader) else model
    table = getattr(inner, "source_embedding", None)
    table = getattr(inner, "embedding", None) if table is None else table
    return table.detach().double().cpu().numpy() if isinstance(table, torch.Tensor) else None
