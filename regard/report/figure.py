"""What every picture for a talk or a README is made of, drawn by matplotlib without a display."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

from regard.report.chart import Series
from regard.report.palette import INK, LINE, SOFT
from regard.studies.fits import format_tick
from regard.untrusted.values import make_printable

MARKS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^"}
OWN_FONT = "DejaVu Sans"  # matplotlib brings it: Latin, Greek, Cyrillic, Arabic and more, but no Chinese
FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei", "Droid Sans Fallback", "PingFang SC", "Hiragino Sans", "Apple SD Gothic Neo",
    "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Nirmala UI", "Noto Sans Devanagari", "Arial Unicode MS",
)  # fmt: skip
"""What a letter is drawn in that our own font lacks, where the machine has one of them."""


_DRAWING = RLock()
"""Held while a picture is drawn."""


@contextmanager
def drawing() -> Iterator[None]:
    """Make and save a figure of texts from outside: `$` is no formula, and a letter without a font is a box.

    matplotlib would warn of every such letter, and stop at a formula that is none. Its settings are those of the whole
    process, so that threads draw one after the other.
    """
    import matplotlib  # here: it takes long to start

    texts = matplotlib.rc_context({"text.parse_math": False, "font.family": fonts_of(OWN_FONT)})
    with _DRAWING, texts, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        warnings.filterwarnings("ignore", "constrained_layout not applied")  # a title that leaves no room is cut
        yield


def fonts_of(first: str) -> list[str]:
    """A font, and those of this machine that are asked for letters which it lacks."""
    from matplotlib import font_manager  # here: it takes long to start

    there = set(font_manager.get_font_names())
    return [first, *(name for name in FONTS if name in there)]


def new_figure(width: float, height: float, title: str, note: str, max_title: int) -> Any:
    """An empty figure under a bold title, of lines of at most `max_title` characters, and over a note."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # here: it takes long to start
    from matplotlib.figure import Figure

    lines = fill_evenly(make_printable(title), max_title)
    figure = Figure(figsize=(width, height), dpi=160, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.2, h_pad=0.12)  # type: ignore[union-attr,call-arg]
    figure.suptitle("\n".join(lines), x=0.012, ha="left", fontsize=14, fontweight="bold", color=INK)
    if note:
        figure.supxlabel(make_printable(note), x=0.012, ha="left", fontsize=9.5, color=SOFT)
    return figure


def fill_evenly(sentence: str, most: int) -> list[str]:
    """The sentence in as few lines as fit, of about one length, so that no word stands alone on the last."""
    n_lines = len(textwrap.wrap(sentence, most))
    if n_lines < 2:
        return textwrap.wrap(sentence, most)
    even = -(-len(sentence) // n_lines)  # the spaces at line ends are counted too: it may be more than fits
    widths = range(min(even, most), most + 1)
    return next(lines for width in widths if len(lines := textwrap.wrap(sentence, width)) == n_lines)


def draw_series(axes: Any, series: Sequence[Series], has_dots: bool = False) -> None:
    """The lines in their looks, with their bands, and marks at their ends or at every point."""
    for s in series:
        xs, ys = [x for x, _ in s.points], [y for _, y in s.points]
        style: Any = (0, tuple(0.5 * float(d) for d in s.look.dash.split())) if s.look.dash else "solid"  # in widths
        axes.plot(xs, ys, color=s.look.colour, linewidth=2, linestyle=style, label=s.name, solid_capstyle="round",
                  marker=MARKS[s.look.shape], markersize=5, markevery=None if has_dots else [-1])  # fmt: skip
        if s.band:
            axes.fill_between(*zip(*s.band, strict=True), color=s.look.colour, alpha=0.15, linewidth=0)


def clean_axes(axes: Any, title: str) -> None:
    """A title at the left, a light grid behind, and no frame."""
    axes.set_title(title, loc="left", fontsize=11, color=SOFT, pad=10)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    axes.tick_params(which="both", length=0, colors=SOFT, labelsize=9.5)
    axes.grid(color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)


def log_y(axes: Any) -> None:
    """Make the vertical axis one of powers of ten, written as plain numbers."""
    axes.set_yscale("log", nonpositive="clip")
    axes.yaxis.set_major_formatter(lambda y, _: format_tick(y))
    axes.yaxis.set_minor_formatter(lambda *_: "")


def show_spaces(text: str, most: int = 24) -> str:
    """A token as a label of at most so many letters, in which spaces and line ends can be seen.

    >>> show_spaces(" "), show_spaces(" cost\\n"), show_spaces("characteristics", most=8)
    ('␣', 'cost⏎', 'charact…')
    """
    return make_printable((shorten(text, most).strip(" ") or "␣").replace("\n", "⏎").replace("\t", "→"))


def shorten(text: str, most: int) -> str:
    """At most so many letters of a text."""
    return text if len(text) <= most else text[: most - 1] + "…"
