"""`regard parse`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def parse(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run that was trained on trees.")],
    file: Annotated[Path | None, typer.Argument(help="One sentence a line (default: standard input).")] = None,
    others: Annotated[
        list[Path] | None, typer.Option("--with", metavar="RUN", help="Average with this run too (repeatable).")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TAG", help="The kind of trees, where it was trained with tags.")
    ] = None,
    beam: Annotated[int, typer.Option("--beam", "-b", min=1, help="Width of the beam search; 1 is greedy.")] = 5,
    draw: Annotated[
        bool, typer.Option("--draw", help="Draw each tree over several lines, a blank line between two.")
    ] = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="DIR", help="Write each tree as a picture too, DIR/1.svg, ...")
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Lines that cannot be read give an empty line.")] = False,
    window: Annotated[
        int | None, typer.Option("--window", min=1, help="Lines read ahead (default: 2000; 1 at a terminal).")
    ] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Tokens of a batch.")] = 4096,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with log-probabilities.")] = False,
    precision: Annotated[str, typer.Option("--precision", help="float32 or bf16.")] = "float32",
) -> None:
    """Parse sentences: one tree in brackets a line, in their order.

    A sentence is its words with spaces between them, punctuation split off. Every tree is whole and holds exactly these
    words; brackets among them are written -LRB- and -RRB-. An empty line gives an empty line.

    [bold]Examples[/bold]

      echo "The dog barks ." | regard parse runs/treebank --draw

      regard parse runs/treebank sentences.txt > trees.txt

      [dim]pictures for a page, and one JSON object a line:[/dim]
      regard parse runs/treebank sentences.txt --svg pictures --json
    """
    from regard import line_terminal, terminal
    from regard.data.tree_lines import to_brackets
    from regard.decode.config import BeamConfig
    from regard.errors import RegardError
    from regard.files import write_atomically
    from regard.lens.tree_picture import tree_svg, tree_text
    from regard.pair_run import load_pair_run

    if draw and as_json:
        raise RegardError("--draw draws trees for people, --json writes objects for programs. Leave one of them out.")
    loaded = load_pair_run(run, precision=precision)
    config = BeamConfig(beam=beam)
    more = [load_pair_run(other, precision=precision) for other in others or ()]
    parser = loaded.parser(config, others=more, tag=loaded.wanted_tag(to))
    if svg is not None:
        try:
            svg.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RegardError(f"The folder '{svg}' cannot be made: {error.strerror}. Give --svg another.") from None
    is_typed, is_below_another = line_terminal.is_typed(file), False
    with line_terminal.source_lines(file, skip_bad) as lines, line_terminal.lines_progress(lines) as progress:
        found = parser.lines(
            lines,
            max_tokens=max_tokens,
            window=window or (1 if is_typed else 2000),
            skips_long=skip_bad,
            progress=progress,
        )
        for number, (tree, log_prob) in enumerate(((parse.tree, parse.log_prob) for parse in found), start=1):
            text = "" if tree is None else to_brackets(tree)
            if svg is not None and tree is not None:
                write_atomically(svg / f"{number}.svg", tree_svg(tree).encode())
            if as_json:
                line = {"line": number, "tree": text, "log_prob": log_prob}
                print(json.dumps(line, ensure_ascii=False), flush=is_typed)
            elif draw and tree is not None:
                gap = "\n" if is_below_another else ""
                print(gap + tree_text(tree, terminal.console.width), flush=is_typed)
            else:
                print(text, flush=is_typed)
            is_below_another = tree is not None
