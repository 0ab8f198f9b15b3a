"""One passage, and under every character how surprised each contender was by the token it belongs to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

from regard.compare.result import Comparison
from regard.lens.views import Span
from regard.report.palette import Look, shade

Piece = tuple[int, int]

MAX_STRIPS = 5  # under a line of text: more of them say nothing, and the tip holds all numbers
MAX_PIECE = 32  # characters that may not be parted by a line end: what fits a phone


def surprise_figure(comparison: Comparison, looks: Mapping[str, Look]) -> tuple[str, dict[str, object]]:
    """The figure, and what the page's script needs to show numbers under the pointer.

    Tokenizers may differ, so contenders are aligned by characters. The passage is cut into words that stay whole when
    lines wrap; each carries one strip for each of the best contenders, cut where that contender's tokens are cut.
    """
    shown = [(c, looks[c.name].colour) for c in comparison.ranked if c.views.surprise]
    if not shown:
        return "", {}
    passage = comparison.setup.passage
    top = strongest([c.views.surprise for c, _ in shown])
    chips = "".join(
        f'<button data-colour-by="{k}"{" class=on" if k == 0 else ""} style="--c:{colour}">{escape(c.name)}</button>'
        for k, (c, colour) in enumerate(shown)
    )
    strips = [(c.views.surprise, colour) for c, colour in shown[:MAX_STRIPS]]
    words = [_word(passage, piece, strips, top) for piece in pieces(passage)]
    data = {
        "passage": passage,
        "top": top,
        "contenders": [
            {"name": c.name, "colour": colour, "spans": [[s.start, s.end, round(s.bits, 2)] for s in c.views.surprise]}
            for c, colour in shown
        ],
    }
    scale = "".join(f'<i style="background:{shade("#555555", k / 6)}"></i>' for k in range(7))
    legend = f'<span class="scale">0 {scale} {top:.0f}+ bits a token</span>'
    return (
        f'<div class="tabs chips"><span>colour the text by</span>{chips}{legend}</div>'
        f'<div class="passage" id="surprise" style="column-width:{column_width(passage)}ch">{"".join(words)}</div>',
        data,
    )


def pieces(passage: str) -> list[Piece]:
    """Words with the white space before them, since that is how subword tokens are cut; line ends close a piece.

    >>> [("ab c\\n\\n d")[a:b] for a, b in pieces("ab c\\n\\n d")]
    ['ab', ' c\\n\\n', ' d']
    """
    found = [m.span() for m in re.finditer(r"[^\S\n]*\S+\n*|[^\S\n]*\n+|[^\S\n]+", passage)]
    return [(k, min(b, k + MAX_PIECE)) for a, b in found for k in range(a, b, MAX_PIECE)]


def column_width(passage: str) -> int:
    """Characters a column of this text needs: verse and code stand in two columns where there is room for them."""
    return min(100, max(len(line) for line in passage.split("\n")) + 4)


def strongest(rows: Sequence[Sequence[Span]]) -> float:
    """The surprise that gets the full colour: the 95th percentile, so that one odd token does not fade the rest."""
    bits = sorted(s.bits for row in rows for s in row)
    return max(2.0, bits[min(len(bits) - 1, int(0.95 * len(bits)))]) if bits else 2.0


def _word(passage: str, piece: Piece, strips: Sequence[tuple[Sequence[Span], str]], top: float) -> str:
    """One piece of the text, coloured by the first of the strips, and all strips below it."""
    start, end = piece
    spans, colour = strips[0]
    text = "".join(
        f'<span style="background:{shade(colour, 0.6 * bits / top)}">{escape(_show_spaces(passage[a:b]))}</span>'
        for a, b, bits in _cut(spans, start, end)
    )
    lines = "".join(
        '<span class="s">'
        + "".join(
            f'<i style="width:{len(_show_spaces(passage[a:b]))}ch;background:{shade(colour, bits / top)}"></i>'
            for a, b, bits in _cut(spans, start, end)
        )
        + "</span>"
        for spans, colour in strips
    )
    line_end = "<br>" if passage[start:end].endswith("\n") else ""
    return f'<span class="w" data-at="{start}" data-end="{end}"><span class="t">{text}</span>{lines}</span>{line_end}'


def _cut(spans: Sequence[Span], start: int, end: int) -> list[tuple[int, int, float]]:
    """The parts of `spans` inside [start, end), with what no token covers as parts of no surprise."""
    parts: list[tuple[int, int, float]] = []
    at = start
    for span in spans:
        a, b = max(span.start, at), min(span.end, end)
        if b <= a:
            continue
        if a > at:
            parts.append((at, a, 0.0))
        parts.append((a, b, span.bits))
        at = b
    if at < end:
        parts.append((at, end, 0.0))
    return parts


def _show_spaces(text: str) -> str:
    return text.replace("\n", "⏎").replace("\t", "    ").replace(" ", "\u00a0")
