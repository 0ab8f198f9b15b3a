"""Where a translator looks in its source for each word that it writes, and where it should, if that is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regard.data.pair_grammar import find_links
from regard.data.pairs_config import PairsConfig
from regard.lens.attention_view import check_number
from regard.lens.subject import Side, Subject
from regard.lens.view import LookOptions, Packed, View
from regard.score.alignment import Alignment, AlignmentScore, alignment_error_rate, hard_alignment, word_weights

Array = NDArray[np.float64]


def view_alignment(subject: Subject, options: LookOptions) -> View | None:
    """Cross-attention between words, by layer and head and their mean; None for what looks at no source of words."""
    trace = subject.trace
    taps = sorted(trace.named("cross_attention").items(), key=lambda item: item[0])
    if not taps or subject.picture is not None or not subject.written:
        return None
    target = Side.of(subject.written, subject.tokens, subject.spans, is_spaced=True)
    source = Side.of(subject.text.strip(), trace.sources, trace.source_spans, is_spaced=True)
    rows = [w if subject.spans[t] is not None else None for t, w in enumerate(target.words)]
    columns = [w if trace.source_spans[s] is not None else None for s, w in enumerate(source.words)]
    n_before = next((w for w in columns if w is not None), 0)  # tags stand before the first word
    columns = [None if w is None else w - n_before for w in columns]
    names = subject.written.split(), subject.text.split()
    layers = [[word_weights(head.astype(np.float64), rows, columns) for head in weights] for _, weights in taps]
    mean = np.mean(layers[-1], axis=0)
    shown = _choose(layers, mean, options)
    found, gold = hard_alignment(mean), _find_gold(subject, options, names)
    score = None if gold is None else alignment_error_rate([found], [gold])
    return View(
        name="alignment",
        title="Where each word comes from",
        note="A row is a word that was written, a column a word of the source; the stronger the colour, the more "
        "was looked at it." + (" Frames mark the words that truly belong together." if gold is not None else ""),
        summary=_summarise(mean, names, score),
        data={
            "rows": names[0], "columns": names[1], "mean": Packed(mean),
            "layers": [[Packed(head) for head in heads] for heads in layers], "first": shown,
            "links": sorted([t, s] for s, t in found.sure),
            "gold": None if gold is None else _list_links(gold),
        },
        table=(
            ("written", "looks at", "weight"),
            [(word, names[1][int(row.argmax())], f"{row.max():.3f}") for word, row in zip(names[0], mean, strict=True)],
        ),
    )  # fmt: skip


def explain_no_alignment(subject: Subject, options: LookOptions) -> str:
    """Why there is no view of an alignment."""
    if subject.picture is not None:
        return "its source is a picture and has no words: see picture"
    return "it wrote nothing" if subject.trace.named("cross_attention") else "it attends to no source"


def _choose(layers: list[list[Array]], mean: Array, options: LookOptions) -> list[int] | None:
    """The head that is asked for, or None for the mean over the heads of the last layer."""
    if options.layer is None and options.head is None:
        return None
    layer = len(layers) if options.layer is None else options.layer
    check_number("layer", layer, len(layers))
    check_number("head", options.head, len(layers[layer - 1]))
    return [layer - 1, (options.head or 1) - 1]


def _find_gold(subject: Subject, options: LookOptions, names: tuple[list[str], list[str]]) -> Alignment | None:
    """The links that are given, or those that the built-in grammar knows of this pair."""
    if options.gold is not None:
        gold = Alignment.of(options.gold, "--gold")
        gold.check(len(names[1]), len(names[0]), "--gold")
        return gold
    if not subject.is_translator:
        return None
    for part in subject.run.config.section("data", PairsConfig).parts("train"):
        for source in part.names:
            if (links := find_links(source, names[1], names[0])) is not None:
                return Alignment(frozenset(links))
    return None


def _list_links(gold: Alignment) -> list[tuple[int, int, str]]:
    """(row, column, whether it is sure or possible)."""
    return sorted((t, s, "sure" if (s, t) in gold.sure else "possible") for s, t in gold.possible)


def _summarise(mean: Array, names: tuple[list[str], list[str]], score: AlignmentScore | None) -> str:
    if not mean.size:
        return "Nothing was written."
    t = int(mean.max(axis=1).argmax())
    s = int(mean[t].argmax())
    said = f"“{names[0][t]}” looks at “{names[1][s]}” ({mean[t, s]:.0%}), the surest of all."
    return said if score is None else f"{said} Alignment error rate {score.error_rate:.2f} against what is right."
