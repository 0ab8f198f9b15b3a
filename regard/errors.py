"""The one exception that means "what you gave cannot work", as opposed to a bug of ours."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

MAX_NAME = 100  # characters; nobody means a name by a longer text


class RegardError(Exception):
    """A mistake in the input, the config or the environment.

    Its text says what was given, what is allowed and what to change, in one or two sentences. The command line
    prints it without a traceback and exits with code 2; Python callers may catch it.
    """


class MissingTextError(RegardError):
    """A file or folder of text that is not there."""


class DivergedRunError(RegardError):
    """A training whose loss or gradient was no number any more, or whose loss exploded."""


class InterruptedRunError(Exception):
    """Ctrl-C or SIGTERM ended a run early; all is saved, and the text says how to go on."""


@contextmanager
def naming_recipe(recipe: object) -> Iterator[None]:
    """Inside this block, a text that is missing was asked for by `recipe`: where that is a file, it is named."""
    try:
        yield
    except MissingTextError as error:
        if not isinstance(recipe, str | Path):
            raise
        own = "or give your own: --data (in Python: data)"
        raise RegardError(f"{error} See {recipe} for where to get it, {own}.") from None


def nearest(given: str, allowed: Iterable[str], before: str = "") -> str:
    """`" Did you mean 'lstm'?"` for the closest allowed name, or an empty string where none is close.

    Hidden files are suggested only for a name that begins with a dot. `before` is put before the suggestion.

    >>> nearest("lsmt", ["rnn", "lstm"])
    " Did you mean 'lstm'?"
    >>> nearest("qqq", ["rnn", "lstm"]), nearest("gpt2", [".gpt2"])
    ('', '')
    """
    if len(given) > MAX_NAME:
        return ""
    shown = [name for name in allowed if given.startswith(".") or not name.startswith(".")]
    close = difflib.get_close_matches(given, shown, n=1, cutoff=0.6)
    return f" Did you mean '{before}{close[0]}'?" if close else ""


def suggest_path(path: Path, known: Iterable[str] = (), *, is_folder: bool = False) -> str:
    """`" Did you mean 'texts/my.txt'?"` for a file or folder that is missing; of a link to nowhere, that it is one.

    `known` are names without a folder that would do as well. With `is_folder` no file is suggested.
    """
    if path.is_symlink() and not os.path.exists(path):
        return " There is a link of this name, and what it points to is not there."
    folder, beside = path.parent, list[str]()
    with suppress(OSError):  # no folder, or one that may not be listed
        is_there = os.path.isdir if is_folder else os.path.exists
        beside = [name for name in os.listdir(folder) if is_there(folder / name)]
    return nearest(path.name, [*beside, *known], "" if folder == Path() else str(folder / "_")[:-1])


def explain_old_name(thing: object, name: str, renamed: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that a thing does not have: what it is called now, where it had another name."""
    hint = f"; it is called '{renamed[name]}' now" if name in renamed else ""
    return AttributeError(f"'{type(thing).__name__}' has no '{name}'{hint}")
