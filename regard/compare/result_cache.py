"""Answers are kept on disk by what made them, so that a comparison that is made again need not wait for them.

OUT/outputs/NAME.txt    one answer a line: a translation, tree or caption; of other tasks a JSON value
OUT/outputs/NAME.json   of which weights, test set and decoding they are, and a hash of the lines and their form
OUT/views/NAME.json     what a run shows of itself; NAME.positions.json: its loss by position
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from regard.compare.result import to_json
from regard.data.cache import key_of
from regard.errors import RegardError
from regard.files import write_atomically
from regard.untrusted.fields import decode_fields
from regard.untrusted.small_files import open_regular, parse_json, read_json

T = TypeVar("T")

OUTPUTS, VIEWS = "outputs", "views"
DAMAGED = (OSError, ValueError, TypeError, KeyError, RegardError)


def write_answers(folder: Path, name: str, made_by: Mapping[str, Any], answers: Sequence[Any]) -> None:
    lines = [answer if isinstance(answer, str) else json.dumps(answer) for answer in answers]
    write_atomically(folder / OUTPUTS / f"{name}.txt", "".join(f"{line}\n" for line in lines))
    are_text = all(isinstance(answer, str) for answer in answers)
    _write_json(folder / OUTPUTS / f"{name}.json", {**made_by, **_describe(lines, are_text)})


def read_answers(folder: Path, name: str, made_by: Mapping[str, Any]) -> list[Any] | None:
    """The answers, or None where there are none that were made just so, or they are not whole."""
    try:
        note = read_json(folder / OUTPUTS / f"{name}.json")
        answers = open_regular(folder / OUTPUTS / f"{name}.txt")
        with io.TextIOWrapper(answers, encoding="utf-8", newline="\n") as file:
            lines = [line.removesuffix("\n") for line in file]
        if note != {**made_by, **_describe(lines, note["are_text"])}:
            return None
        return lines if note["are_text"] else [parse_json(line, name) for line in lines]
    except DAMAGED:
        return None


def _describe(lines: Sequence[str], are_text: bool) -> dict[str, Any]:
    """What is noted of answers: a hash by which damage is found, of the lines and of how they are read."""
    return {"lines": key_of(["text" if are_text else "JSON", *lines]), "are_text": are_text}


def write_view(folder: Path, name: str, made_by: Mapping[str, Any], view: Any) -> None:
    views = json.loads(to_json(view))
    _write_json(folder / VIEWS / f"{name}.json", {"made_by": made_by, "views": views, "hash": key_of(views)})


def read_view(kind: type[T], folder: Path, name: str, made_by: Mapping[str, Any]) -> T | None:
    """What a run shows of itself, or None where there is nothing that was made just so."""
    try:
        found = read_json(folder / VIEWS / f"{name}.json")
        is_whole = found["made_by"] == made_by and found["hash"] == key_of(found["views"])
        return decode_fields(kind, found["views"]) if is_whole else None
    except DAMAGED:
        return None


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_atomically(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")
