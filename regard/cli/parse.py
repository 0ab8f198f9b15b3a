"""`regard parse`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import regard
from regard.cli import lines, options
from regard.cli.terminal import console, print_note
from regard.data.tree_lines import to_brackets
from regard.decode.config import BeamConfig, search_trees
from regard.errors import RegardError
from regard.files import check_not_there, make_folder, write_atomically
from regard.report.page_folder import TREES
from regard.report.parses import write_parses
from regard.report.trees import is_tree_svg, tree_svg, tree_text

if TYPE_CHECKING:
    from regard.decode.parse import Parse

Draw = Annotated[bool, typer.Option("--draw", help="Draw each tree over several lines, a blank line between two.")]
Svg = Annotated[
    Path | None, typer.Option("--svg", metavar="DIR", help="Write each tree as a picture too, DIR/1.svg, ...")
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write a page with all trees drawn, DIR/report.html.")
]
Beam = Annotated[
    int | None, typer.Option("--beam", "-b", min=1, help="Width of the beam search; 1 is greedy (default: 5).")
]


def parse(
    run: options.RunFolder,
    file: options.Lines = None,
    others: options.OtherRuns = None,
    to: options.Tag = None,
    beam: Beam = None,
    n_best: options.NBest = 1,
    draw: Draw = False,
    svg: Svg = None,
    out: Out = None,
    force: options.Force = False,
    skip_bad: options.SkipBad = False,
    window: options.Window = None,
    max_tokens: options.BatchTokens = 4096,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
    precision: options.Precision = "float32",
) -> None:
    """Parse sentences: one tree in brackets a line, in their order.

    A sentence is its words with spaces between them, punctuation split off. Every tree is whole and holds exactly these
    words; brackets among them are written -LRB- and -RRB-. An empty line gives an empty line. With --n-best the most
    probable trees stand each on a line of its own: the number of the sentence, from 1 on, tree and probability, with
    tabs between.

    Examples:
      echo "The dog barks ." | regard parse runs/treebank --draw
      regard parse runs/treebank sentences.txt > trees.txt
      # both readings, drawn in the terminal and on a page
      regard parse runs/ambiguous elephant.txt --n-best 2 --draw --out elephant
      # pictures for a page, and one JSON object a line
      regard parse runs/treebank sentences.txt --svg pictures --json
    """
    if draw and as_json:
        raise RegardError("--draw draws trees for people, --json writes objects for programs. Leave one of them out.")
    if out is not None:
        regard.api.check_page_folder(out, TREES, force)
    loaded, *more = (
        regard.load(folder, device, precision, kind=regard.ParsingRun) for folder in (run, *(others or ()))
    )
    search = BeamConfig.from_dict(search_trees(n_best=n_best, beam=beam))
    parser = loaded.parser(search, others=more, tag=loaded.reader.choose_tag(to))
    if svg is not None:
        make_folder(svg)
    is_typed, is_below_another = lines.is_typed(file), False
    shown: list[tuple[str, Parse]] = []
    found = lines.answer_lines(parser.lines, file, skip_bad=skip_bad, window=window, max_tokens=max_tokens)
    for number, sentence, parsed in found:
        if svg is not None:
            _write_pictures(svg, number, parsed, n_best, force)
        if out is not None and parsed.tree is not None:
            shown.append((sentence, parsed))
        for text in _texts(number, parsed, n_best, draw, as_json):
            print("\n" * (draw and is_below_another) + text, flush=is_typed)
            is_below_another = bool(text)
    if out is not None:
        print_note(f"The trees are drawn in {write_parses(shown, loaded.folder, out)}.")


def _write_pictures(folder: Path, number: int, parsed: Parse, n_best: int, force: bool) -> None:
    """1.svg for the tree of line 1; 1-1.svg, 1-2.svg where several trees are asked for."""
    for rank, each in enumerate(parsed.all, 1):
        assert each.tree is not None
        name = f"{number}.svg" if n_best == 1 else f"{number}-{rank}.svg"
        if (folder / name).exists() and not is_tree_svg(folder / name):
            check_not_there(folder / name, force)
        write_atomically(folder / name, tree_svg(each.tree))


def _texts(number: int, parsed: Parse, n_best: int, draw: bool, as_json: bool) -> Iterator[str]:
    """The trees of a sentence as they are printed, one after the other; an empty line where there was no sentence."""
    if n_best == 1 or not parsed.all:
        yield _text(number, parsed, draw, as_json)
        return
    for rank, each in enumerate(parsed.all, 1):
        text = _text(number, each, draw, as_json)
        if draw:
            yield f"{number}.{rank}  probability {each.probability:.3f}\n{text}"
        else:
            yield text if as_json else f"{number}\t{text}\t{each.probability:.3g}"


def _text(number: int, parsed: Parse, draw: bool, as_json: bool) -> str:
    """One tree as it is printed."""
    text = "" if parsed.tree is None else to_brackets(parsed.tree)
    if as_json:
        line = {"line": number, "tree": text, "log_prob": parsed.log_prob, "probability": parsed.probability}
        return json.dumps(line, ensure_ascii=False)
    return tree_text(parsed.tree, console.width) if draw and parsed.tree is not None else text
