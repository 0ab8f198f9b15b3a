"""One word in several contexts as a view, layer by layer."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.lens.contexts import MAX_POOL, WordInTexts, read_word
from regard.lens.subject import Subject
from regard.lens.view import LookOptions, View


def view_vectors(subject: Subject, options: LookOptions) -> View | None:
    """A word in its texts: type against token, occurrence against occurrence, neighbours and a map; None: no --word."""
    if options.word is None:
        return None
    texts = options.texts or (subject.text,)
    more = _more_text(subject)
    found = read_word(subject.run.model, subject.run.tokenizers[0], options.word, texts, more)
    if found is None or len(found.words) < 3:
        return None
    layers = range(len(found.layers))
    return View(
        name="vectors",
        title=f"“{options.word}” in context",
        note="A word has one vector as a type, its embedding; as a token, it has another in every text and at every "
        "layer. Cosines of words in context are taken after the mean of the layer is subtracted; the dashed line says "
        "how alike any two words are when it is not.",
        summary=summarise(found, bool(more)),
        data={
            "word": options.word,
            "occurrences": [{"text": texts[o.text], "start": o.start, "end": o.end} for o in found.occurrences],
            "layers": [name_layer(name) for name in found.layers],
            "alike": [found.alike(layer).round(3).tolist() for layer in layers],
            "anyTwo": [round(found.any_two(layer), 3) for layer in layers],
            "toType": found.to_type.round(3).tolist(),
            "nearTypes": [[n.word, round(n.cosine, 3)] for n in found.near_types],
            "neighbours": [
                [[_neighbour(found, layer, k, i) for i in found.neighbours(layer, k)]
                 for k in range(len(found.occurrences))]
                for layer in layers
            ],
            "maps": [_map(found, layer) for layer in layers],
        },
        table=(
            ("layer", "occurrence", "cosine with its type", "nearest words"),
            [
                (name_layer(found.layers[layer]), str(k + 1),
                 f"{found.to_type[layer][k]:+.3f}" if found.to_type.size else "–",
                 ", ".join(found.words[i] for i in found.neighbours(layer, k)))
                for layer in layers
                for k in range(len(found.occurrences))
            ],
        ),
    )  # fmt: skip


def _more_text(subject: Subject) -> str:
    """Some held-out text of the run, among whose words neighbours are looked for; nothing where there is none."""
    try:
        return str(subject.run.held_out_text(5 * MAX_POOL))
    except RegardError:
        return ""


def summarise(found: WordInTexts, has_more: bool = True) -> str:
    """What the numbers say, in a sentence or two."""
    last, n = len(found.layers) - 1, len(found.occurrences)
    text = f"{n} occurrence{'s' * (n > 1)} among {len(found.words):,} words in context."
    if not has_more:
        text += " These are the words of your texts alone: the run's held-out text cannot be read."
    if n > 1:
        off = ~np.eye(n, dtype=bool)
        place = explain_first(found)
        first, end = (float(found.alike(layer)[off].mean()) for layer in (0, last))
        text += (
            f" Their mean cosine is {first:+.2f} at {name_layer(found.layers[0])}{place} and {end:+.2f} after "
            f"{name_layer(found.layers[last])}."
        )
    near = [i for i in found.neighbours(last, 0) if found.cosine(last, 0, i) > 0]
    if not near:
        return f"{text} No word is near to the first after {name_layer(found.layers[last])}: no cosine is above 0."
    shown = ", ".join(f"“{found.words[i]}”" for i in near[:3])
    return f"{text} Nearest to the first after {name_layer(found.layers[last])}: {shown}."


def explain_first(found: WordInTexts) -> str:
    """Why one word has several vectors at the lowest layer, where it has: it is spelled in several ways, or placed."""
    n, alike = len(found.occurrences), found.alike(0)
    if float(alike.min()) >= 0.999:
        return ""
    same = np.array([[found.words[a] == found.words[b] for b in range(n)] for a in range(n)])
    if float(alike[same].min()) >= 0.999:
        return " (it is spelled in several ways)"
    return " (to which the vector of the place may be added)"


def name_layer(tap: str) -> str:
    """What a layer is called.

    >>> name_layer("embedding"), name_layer("layers.2.hidden")
    ('the embedding', 'layer 3')
    """
    match = re.search(r"layers\.(\d+)", tap)
    return f"layer {int(match[1]) + 1}" if match else "the embedding"


def _neighbour(found: WordInTexts, layer: int, occurrence: int, other: int) -> list[Any]:
    return [found.words[other], found.around[other], round(found.cosine(layer, occurrence, other), 3)]


def _map(found: WordInTexts, layer: int) -> list[dict[str, Any]]:
    chosen, plane = found.map(layer)
    n, top = len(found.occurrences), max(float(np.abs(plane).max()), 1e-12)
    return [
        {"x": round(float(x / top), 4), "y": round(float(y / top), 4), "word": found.words[i],
         "around": found.around[i], "occurrence": i if i < n else None}
        for i, (x, y) in zip(chosen, plane, strict=True)
    ]  # fmt: skip
