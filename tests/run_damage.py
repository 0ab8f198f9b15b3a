"""Changes of the files of a run, as a stranger makes them or a bad disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def change(path: Path, **values: Any) -> None:
    """Change what a JSON file says."""
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def flip_bit(path: Path) -> None:
    """Flip the last bit but a few of a file: in weights it is one of a number."""
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
