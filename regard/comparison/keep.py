"""Measurements that are done are kept in files, so that an interrupted comparison does not do them again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar, cast

from regard.comparison.result import decoded, to_json
from regard.errors import RegardError
from regard.files import write_atomically

T = TypeVar("T")


def keep(value: Any, path: Path) -> None:
    """Write a result dataclass as JSON, whole or not at all."""
    write_atomically(path, to_json(value))


def kept(kind: type[T], path: Path) -> T | None:
    """Read it back; None where it is not there, or not readable any more, and so has to be made again."""
    try:
        return cast(T, decoded(kind, json.loads(path.read_text(encoding="utf-8"))))
    except (FileNotFoundError, ValueError, RegardError):
        return None
