"""Hugging Face datasets by name (extra `hub`): hub:NAME[/CONFIG][@SPLIT]."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from regard.errors import RegardError, nearest
from regard.files import write_atomically


def write_hub_rows(name: str, field: str, path: Path) -> Path:
    """Write the texts of a named set to `path`, as JSON lines; empty rows are left out."""
    rows = load_rows(name)

    def write(aside: Path) -> None:
        with open(aside, "w", encoding="utf-8") as file:
            for row in rows:
                if text := _text_of(row, field, f"hub:{name}"):
                    file.write(json.dumps({field: text}, ensure_ascii=False) + "\n")

    write_atomically(path, write)
    if path.stat().st_size == 0:
        raise RegardError(f"hub:{name} has no text in field '{field}'. Set data.field or take another split.")
    return path


def _text_of(row: Mapping[str, Any], field: str, where: str) -> str:
    if field not in row:
        raise RegardError(
            f"{where} has no field '{field}'.{nearest(field, row)} It has: {', '.join(row)}. Set data.field."
        )
    text = row[field]
    if text is not None and not isinstance(text, str):
        raise RegardError(f"{where}: field '{field}' holds {type(text).__name__}, not text. Set data.field.")
    return text or ""


def load_rows(name: str) -> Iterable[Mapping[str, Any]]:
    """The rows of OWNER/NAME, OWNER/NAME/CONFIG or NAME/CONFIG, of the split after @ (train where none is named)."""
    try:
        import datasets
    except ImportError:
        raise RegardError(f"hub:{name} needs the package datasets. Install it: pip install 'regard[hub]'.") from None
    base, _, split = name.partition("@")
    parts = base.split("/")
    readings: list[tuple[str, str | None]] = [(base, None)] if len(parts) < 3 else []
    if len(parts) > 1:
        readings.append(("/".join(parts[:-1]), parts[-1]))
    reasons = []
    for dataset, config in readings:
        try:
            rows: Iterable[Mapping[str, Any]] = datasets.load_dataset(dataset, config, split=split or "train")
            return rows
        except Exception as error:  # every kind: not found, no network, no such config or split
            reasons.append(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    raise RegardError(
        f"hub:{name} cannot be loaded ({reasons[0]}). Check the name (hub:OWNER/NAME/CONFIG@SPLIT) and the network, "
        "or give a file."
    )
