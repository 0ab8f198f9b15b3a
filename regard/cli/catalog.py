"""`regard models` and `regard data`: what there is, one line each."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.cli import terminal
from regard.config import mapping, with_settings
from regard.errors import RegardError


def models(
    name: Annotated[str | None, typer.Argument(help="A model, for everything that can be set.")] = None,
) -> None:
    """List the models; with a name, everything that can be set in its recipe.

    [bold]Examples[/bold]

      regard models

      regard models lstm
    """
    terminal.print_models(name)


def data(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE", help="A file, folder, built-in or hub:NAME; or two aligned files of pairs."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", metavar="KEY=VALUE", help="Change how it is read: data.field=body (repeatable)."),
    ] = None,
) -> None:
    """List the built-in texts and the forms a source may have; with a source, its size, splits and first lines.

    [bold]Examples[/bold]

      regard data

      regard data python-docs

      regard data 'notes/*.md'

      regard data train.en train.de

      regard data posts.csv --set data.field=body
    """
    given = with_settings({}, settings or [], "data.field=body")
    if unknown := given.keys() - {"data"}:
        raise RegardError(f"--set {unknown.pop()}: only settings of data are used here, such as data.field=body.")
    terminal.print_data(sources or [], mapping(given, "data"))
