"""Terminals that no text commands: an escape sequence in a text could hide lines or type commands of its own."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any

from rich.console import Console
from rich.segment import Segment

from regard.untrusted.values import make_printable


class SafeConsole(Console):
    """A console on which no text commands the terminal: what is not rich's own is written as \\xNN.

    Nor does a text choose how it is shown: brackets are brackets, where rich would read [bold] as a style and drop it
    (and end in an error at [/bold]), and :cat: stays what it is. What is to be bold or dim is a `Text`. `has_markup` is
    for typer, which writes styles in brackets and hands texts of users on as `Text`.
    """

    def __init__(self, *, has_markup: bool = False, **settings: Any) -> None:
        super().__init__(**{"markup": has_markup, "emoji": False, "highlight": False, **settings})

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        safe = [s if s.control else Segment(make_printable(s.text), s.style) for s in buffer]
        return super()._render_buffer(safe)

    @property
    def file(self) -> IO[str]:
        """The stream itself: rich's own commands to the terminal pass."""
        found = super().file
        return found.stream if isinstance(found, SafeStream) else found

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file


class SafeStream:
    """A terminal to which texts of users are printed: characters that would command it are written as \\xNN.

    A pipe or a file gets every text as it is.
    """

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(make_printable(text))
        return len(text)

    def write_again(self, text: str) -> None:
        """Write a line of our own over the one that the cursor is in, of which nothing stays."""
        self.stream.write("\r" + make_printable(text) + "\x1b[K")
        self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def guard_terminal() -> Iterator[None]:
    """Inside this block, no text that is printed commands the terminal.

    Colours and cursor moves of rich pass through a `SafeConsole` alone: what typer prints goes through one, too.
    """
    before = sys.stdout, sys.stderr
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):  # names of files may hold bytes that are no text
            stream.reconfigure(errors="backslashreplace")
        if stream is not None and stream.isatty():
            setattr(sys, name, SafeStream(stream))
    if any(isinstance(stream, SafeStream) for stream in (sys.stdout, sys.stderr)):
        import typer.rich_utils  # lazy: only help and errors of arguments need it

        typer.rich_utils.Console = partial(SafeConsole, has_markup=True)  # type: ignore[assignment, attr-defined]
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
