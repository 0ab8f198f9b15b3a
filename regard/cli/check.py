"""`regard check`: whether the files of a run are as they were written, and whether its data may be read here."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.text import Text

import regard
from regard.cli import options, terminal

Trust = Annotated[
    bool,
    typer.Option("--trust", help="Take its files as they are now, and let its data be read here."),
]


def check(run: options.RunFolder, trust: Trust = False, as_json: options.AsJson = False) -> None:
    """Compare the files of a run with the checksums that were written when its training ended.

    Also says whether this machine may read the data that the run names: a folder that was trained elsewhere can name
    any file. Nothing in the folder is executed.

    Examples:
      regard check runs/lstm
      # a run from elsewhere, whose config.yaml you have read
      regard check downloads/run --trust
    """
    found = regard.api.check(run, is_trusted=trust)
    if as_json:
        print(json.dumps(found.to_dict()))
    else:
        table = terminal.plain_table("file", "state")
        for file in found.files:
            table.add_row(file.name, Text(file.state, "bold red" if file.is_damaged else ""))
        terminal.console.print(table)
        terminal.console.print(Text(found.describe_data()), soft_wrap=True)
    if found.refusal:
        terminal.print_note(f"regard: {found.refusal}")
    if found.is_damaged:
        terminal.print_note(
            "regard: some files are not those that were written. Take them from a copy, or train again."
        )
    if found.is_damaged or found.refusal:
        sys.exit(2)
