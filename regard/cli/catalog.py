"""`regard models` and `regard data`: what there is, one line each."""

from __future__ import annotations

from typing import Annotated

import typer


def models(
    name: Annotated[str | None, typer.Argument(help="A model, for everything that can be set.")] = None,
) -> None:
    """List the models; with a name, everything that can be set in its recipe.

    [bold]Examples[/bold]

      regard models

      regard models lstm
    """
    from regard.cli import terminal

    terminal.print_models(name)


def data(
    source: Annotated[str | None, typer.Argument(help="A source to look at: file, folder, built-in, hub:NAME.")] = None,
) -> None:
    """List the built-in texts and the forms a source may have; with a source, its size, splits and first lines.

    [bold]Examples[/bold]

      regard data

      regard data python-docs

      regard data 'notes/*.md'
    """
    from regard.cli import terminal

    terminal.print_data(source)
