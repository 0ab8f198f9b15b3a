"""What a system wrote is kept, so that a comparison that is made again, or with one system more, need not wait for it.

OUT/outputs/NAME.txt    one translation, tree or caption a line
OUT/outputs/NAME.json   of which weights, data and decoding they are, and a hash of the lines
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.files import write_atomically
from regard.systems.material import digest

OUTPUTS = "outputs"


def keep_outputs(folder: Path, name: str, made_by: Mapping[str, Any], lines: Sequence[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    write_atomically(folder / OUTPUTS / f"{name}.txt", text.encode("utf-8"))
    note = {**made_by, "lines": digest(lines)}
    write_atomically(folder / OUTPUTS / f"{name}.json", (json.dumps(note, indent=1) + "\n").encode("utf-8"))


def kept_outputs(folder: Path, name: str, made_by: Mapping[str, Any]) -> list[str] | None:
    """The lines, or None where there are none that were made just so, or they are not whole."""
    try:
        note = json.loads((folder / OUTPUTS / f"{name}.json").read_text(encoding="utf-8"))
        with open(folder / OUTPUTS / f"{name}.txt", encoding="utf-8", newline="\n") as file:
            lines = [line.removesuffix("\n") for line in file]
    except (OSError, ValueError):
        return None
    return lines if note == {**made_by, "lines": digest(lines)} else None
