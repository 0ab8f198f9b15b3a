"""`regard export` and `regard import`: models out to other tools, and in from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export_run(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder of an n-gram model.")],
    file: Annotated[Path, typer.Argument(help="The ARPA file to write; .gz packs it.")],
) -> None:
    """Write an n-gram run as an ARPA file that KenLM and others read.

    [bold]Example[/bold]

      regard export runs/ngram words.arpa.gz
    """
    from regard import api
    from regard.weights.arpa import export_arpa

    export_arpa(api.load(run), file)
    typer.echo(f"Wrote {file}")


def import_run(
    file: Annotated[Path, typer.Argument(help="An ARPA file of any maker, packed by gzip or not.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder to write.")],
) -> None:
    """Make a run folder of an ARPA file, to score and generate with.

    [bold]Example[/bold]

      regard import words.arpa.gz --out runs/words
    """
    from regard.weights.arpa import import_arpa

    typer.echo(f"Wrote {import_arpa(file, out).folder}")
