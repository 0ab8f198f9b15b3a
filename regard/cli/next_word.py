"""`regard next`: what comes after a text, for several models side by side."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import regard
from regard.cli import options, terminal
from regard.errors import RegardError
from regard.lens.view import show_token
from regard.report.page_folder import LOOK

if TYPE_CHECKING:
    from regard.lens.next_word import NextWord

WIDTH = 80
PER_ROW = 3  # columns side by side

Words = Annotated[
    list[str], typer.Argument(metavar="RUN... TEXT", help="One run or several, and the text that is gone on.")
]
Target = Annotated[str | None, typer.Option("--target", help="What a translator has written so far for the text.")]
By = Annotated[str, typer.Option("--by", help="words, put together from their pieces, or tokens.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Write a page and pictures into this folder too.")]


def predict_next(
    given: Words,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="How many continuations.")] = 10,
    target: Target = None,
    by: By = "words",
    out: Out = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
) -> None:
    """Show what comes next after a text: the most probable tokens and whole words of every model, side by side.

    A model that copies shows its vocabulary, what it copies, and the mixture; an n-gram model what it counted, and how
    far it backed off. A BERT fills [MASK], or the place after the text; a translator goes on --target.

    Examples:
      regard next runs/ngram runs/lstm "In October, people in the US celebrate"
      # a page with bars, and pictures
      regard next runs/pointer "Yellen said that Mrs." --out next
      regard next runs/bert-tiny "The [MASK] barked." --top-k 5
      regard next runs/multi30k "A dog runs." --target "Ein Hund"
    """
    runs, text = _split(given)
    if by not in ("words", "tokens"):
        raise RegardError(f"--by is words or tokens, not '{by}'.")
    if out is not None:
        regard.api.check_page_folder(out, LOOK, force)  # before anything is computed
    found = regard.predict_next(runs, text, target=target, n=top_k, device=device)
    if out is not None:
        page = regard.api.look_next(found, terminal.command_line()).save(out, force)
    if as_json:
        print(json.dumps({"text": text, "models": [each.to_dict() for each in found]}, ensure_ascii=False))
        return
    for line in format_next([_choose(each, by) for each in found]):
        print(line)
    if out is not None:
        terminal.console.print(f"\nThe page: {page}", soft_wrap=True)


def _split(given: list[str]) -> tuple[list[str], str]:
    """The runs, and the text behind them."""
    if len(given) < 2:
        raise RegardError(
            'Give one run or several, then the text: regard next runs/lstm "In October, people". '
            f"{'Here is one word only: ' + repr(given[0]) + '.' if given else ''}"
        )
    if _is_run(given[-1]):
        raise RegardError(f"'{given[-1]}' is a run; put the text that is gone on behind all runs, in quotation marks.")
    return given[:-1], given[-1]


def _is_run(text: str) -> bool:
    """Whether a text names a run folder; one that is too long to be the name of a file does not."""
    try:
        return (Path(text) / "config.yaml").exists()
    except (OSError, ValueError):
        return False


def _choose(found: NextWord, by: str) -> NextWord:
    """Only the distribution that is asked for, where the model has several of the kind."""
    kinds = {name: ranked for name, ranked in found.distributions.items() if name not in ("words", "tokens")}
    kinds |= {by: found.distributions[by]} if by in found.distributions else {}
    return replace(found, distributions=kinds or found.distributions)


def format_next(found: list[NextWord], width: int = WIDTH) -> Iterator[str]:
    """Lines of bars: a column for each distribution of each model, as many side by side as fit."""
    has_places = len({each.place for each in found}) > 1
    names = [f"{each.name} ({each.place})" if has_places else each.name for each in found]
    columns = [
        (f"{name}: {kind}" if len(each.distributions) > 1 else name, ranked)
        for name, each in zip(names, found, strict=True)
        for kind, ranked in each.distributions.items()
    ]
    n = min(PER_ROW, len(columns))
    wide = (width - 2 * (n - 1)) // n
    for first in range(0, len(columns), n):
        some = columns[first : first + n]
        if first:
            yield ""
        yield "  ".join(_fit(name, wide) for name, _ in some).rstrip()
        most = max((p for _, ranked in some for _, p in ranked), default=1.0)
        cells = [[_bar(text, p, most, wide) for text, p in ranked] for _, ranked in some]
        for row in zip_longest(*cells, fillvalue=" " * wide):
            yield "  ".join(row).rstrip()
    for each in found:
        for note in each.notes:
            yield ""
            yield from textwrap.wrap(f"{each.name}: {note}", width)
        for token, why in (each.reasons or {}).items():
            yield f"  “{show_token(token)}” {show_token(why)}"


def _bar(text: str, p: float, most: float, wide: int) -> str:
    """A word, a bar and its probability.

    >>> _bar("Halloween", 0.25, 0.5, 32)
    'Halloween        ████      25.0%'
    """
    most_bar = wide // 4
    room = wide - most_bar - 8
    filled = round(most_bar * p / most) if most > 0 else 0
    return f"{_fit(show_token(text), room)} {'█' * filled:<{most_bar}} {p:6.1%}"


def _fit(text: str, wide: int) -> str:
    return text[: wide - 1] + "…" if len(text) > wide else text.ljust(wide)
