"""`regard fill`: what stands in the masked places of a text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

import typer

import regard
from regard.cli import lines, options
from regard.errors import RegardError

Text = Annotated[
    str, typer.Argument(help="A text with [MASK] where a word is to be found; - reads one a line from standard input.")
]
Beside = Annotated[
    Path | None,
    typer.Option(
        "--beside", metavar="RUN", help="A left-to-right run: what it says at each place, from the left alone."
    ),
]


def fill(
    run: options.RunFolder,
    text: Text = "-",
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="How many tokens a place.")] = 5,
    beside: Beside = None,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
) -> None:
    """Fill masked places with a trained BERT: the most probable tokens of each, and their probabilities.

    Several places are filled independently of each other. A piece that continues a word begins with ##.

    Examples:
      regard fill runs/bert-tiny "Return the [MASK] of the string."
      # beside what a left-to-right model says there, which sees nothing after it
      regard fill runs/bert-tiny "The [MASK] barked" --beside runs/lstm
      # a text a line, JSON lines out
      regard fill runs/bert-tiny - --json < texts.txt
    """
    loaded = regard.load(run, device, kind=regard.MaskedLanguageModelRun)
    other = None if beside is None else regard.load(beside, device, kind=regard.LanguageModelRun)
    for filled in loaded.predict(_read_input() if text == "-" else iter([text]), top_k):
        found = filled.to_dict()
        if other is not None:
            found["beside"] = [
                [{"token": token, "probability": chance} for token, chance in other.predict_next(prefix, top_k)]
                for prefix in _find_prefixes(filled, loaded.marks.mask_name)
            ]
        print(json.dumps(found, ensure_ascii=False) if as_json else _format(found, None if other is None else beside))


def _read_input() -> Iterator[str]:
    if lines.is_typed(None):
        raise RegardError('Give a text, such as "The [MASK] barked", or pipe one a line into standard input.')
    with lines.open_lines(None) as found:
        yield from found


def _find_prefixes(filled: Any, mask: str) -> list[str]:
    """What stands before each place, with the most probable tokens in the places before it."""
    parts = re.split(rf"{re.escape(mask)}|\[MASK\]", filled.text)
    prefixes, text = [], ""
    for part, place in zip(parts, filled.places, strict=False):
        text += part
        prefixes.append(text.rstrip())
        best = place[0].text
        text = text.rstrip() + best.removeprefix("##") if best.startswith("##") else text + best.strip()
    return prefixes


def _format(found: dict[str, Any], beside: Path | None) -> str:
    """A line a token, its probability first; with a second column for the left-to-right run."""
    shown = [found["best"]]
    for number, place in enumerate(found["places"]):
        shown.append(f"\nplace {number + 1}" + (f"{'':<24}{beside}, from the left alone" if beside is not None else ""))
        others = found["beside"][number] if beside is not None else []
        cells = zip_longest(map(_cell, place), map(_cell, others), fillvalue="")
        shown += [f"{here:<32}{there}".rstrip() for here, there in cells]
    return "\n".join(shown)


def _cell(candidate: dict[str, Any]) -> str:
    """
    >>> _cell({"token": "dog", "probability": 0.25})
    ' 25.00%  dog'
    """
    return f"{candidate['probability']:7.2%}  {candidate['token']}"
