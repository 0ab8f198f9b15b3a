"""`regard parse`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import regard
from regard.cli import lines, options
from regard.cli.terminal import console
from regard.data.tree_lines import to_brackets
from regard.decode.config import BeamConfig
from regard.errors import RegardError
from regard.files import make_folder, write_atomically
from regard.report.trees import tree_svg, tree_text

if TYPE_CHECKING:
    from regard.decode.parse import Parse

Draw = Annotated[bool, typer.Option("--draw", help="Draw each tree over several lines, a blank line between two.")]
Svg = Annotated[
    Path | None, typer.Option("--svg", metavar="DIR", help="Write each tree as a picture too, DIR/1.svg, ...")
]


def parse(
    run: options.RunFolder,
    file: options.Lines = None,
    others: options.OtherRuns = None,
    to: options.Tag = None,
    beam: options.Beam = 5,
    draw: Draw = False,
    svg: Svg = None,
    skip_bad: options.SkipBad = False,
    window: options.Window = None,
    max_tokens: options.BatchTokens = 4096,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
    precision: options.Precision = "float32",
) -> None:
    """Parse sentences: one tree in brackets a line, in their order.

    A sentence is its words with spaces between them, punctuation split off. Every tree is whole and holds exactly these
    words; brackets among them are written -LRB- and -RRB-. An empty line gives an empty line.

    Examples:
      echo "The dog barks ." | regard parse runs/treebank --draw
      regard parse runs/treebank sentences.txt > trees.txt
      # pictures for a page, and one JSON object a line
      regard parse runs/treebank sentences.txt --svg pictures --json
    """
    if draw and as_json:
        raise RegardError("--draw draws trees for people, --json writes objects for programs. Leave one of them out.")
    loaded, *more = (
        regard.load(folder, device, precision, kind=regard.ParsingRun) for folder in (run, *(others or ()))
    )
    parser = loaded.parser(BeamConfig(beam=beam), others=more, tag=loaded.reader.choose_tag(to))
    if svg is not None:
        make_folder(svg)
    is_typed, is_below_another = lines.is_typed(file), False
    found = lines.answer_lines(parser.lines, file, skip_bad=skip_bad, window=window, max_tokens=max_tokens)
    for number, _, parsed in found:
        if svg is not None and parsed.tree is not None:
            write_atomically(svg / f"{number}.svg", tree_svg(parsed.tree).encode())
        print(_text(number, parsed, draw, as_json, is_below_another), flush=is_typed)
        is_below_another = parsed.tree is not None


def _text(number: int, parsed: Parse, draw: bool, as_json: bool, is_below_another: bool) -> str:
    """One parse as it is printed."""
    text = "" if parsed.tree is None else to_brackets(parsed.tree)
    if as_json:
        return json.dumps({"line": number, "tree": text, "log_prob": parsed.log_prob}, ensure_ascii=False)
    if draw and parsed.tree is not None:
        return ("\n" if is_below_another else "") + tree_text(parsed.tree, console.width)
    return text
