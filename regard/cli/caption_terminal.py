"""What the command line prints of captions."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from regard.cli.terminal import errors


def print_drawn(page: Path) -> None:
    said = f"Where each word looked: {page}; beside it a PNG for each picture, and sheet.png."
    errors.print(Text(said), soft_wrap=True)


def print_skipped(why: str) -> None:
    """Something was left out of what is printed."""
    errors.print(Text(f"regard: {why}"), soft_wrap=True)


def print_n_skipped(n: int, n_given: int) -> None:
    """How much of it that was, in the end."""
    errors.print(Text(f"regard: left out: {n:,} of {n_given:,} pictures."))
