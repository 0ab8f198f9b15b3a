"""`regard recipes`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.terminal import bold, console, dim, plain_table
from regard.data.recipes import copy_recipes, list_recipes, read_recipe


def _complete(begun: str) -> list[str]:
    return [name for name in list_recipes() if name.startswith(begun)]


def recipes(
    name: Annotated[str | None, typer.Argument(help="A recipe to print or to copy.", autocompletion=_complete)] = None,
    copy: Annotated[
        Path | None, typer.Option("--copy", help="Copy it here: a folder, or a file that ends in .yaml.")
    ] = None,
) -> None:
    """List the recipes that come with Regard; with a name, print one; with --copy, make it your own.

    Examples:
      regard recipes
      regard recipes lstm
      regard recipes lstm --copy mine.yaml
      # all of them, into a folder
      regard recipes --copy recipes
    """
    if copy is not None:
        for path in copy_recipes(name, copy):
            typer.echo(path)
    elif name is not None:
        typer.echo(read_recipe(name), nl=False)
    else:
        table = plain_table("recipe", "what it is")
        for key, sentence in list_recipes().items():
            table.add_row(bold(key), sentence)
        console.print(table)
        console.print(dim("`regard recipes NAME --copy mine.yaml` makes one your own."))
