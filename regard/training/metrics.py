"""What a run measured: a line of JSON a measurement in `metrics.jsonl`, and the same as TensorBoard events.

    {"kind": "train" | "valid", "step", "tokens", "flops", "seconds", "nats_per_token", "bits_per_byte",
     "lr", "grad_norm", "tokens_per_second"}

`nats_per_token` is -log P of the true tokens, of both kinds: what training adds to it, label smoothing or a penalty, is
left out. On a line of kind "train" it is measured while parts of the model are dropped.

`seconds` and `tokens_per_second` are wall-clock; every other number is the same in a run that was killed and resumed.
`tokens_per_second` is that of the last updates (`Speed`), and what the progress bar shows at that moment.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from regard.errors import RegardError
from regard.files import write_atomically
from regard.untrusted.fields import is_count, is_measure
from regard.untrusted.small_files import COPY_AGAIN, DamagedFileError, open_regular, parse_json
from regard.untrusted.values import quote

METRICS = "metrics.jsonl"
MAX_LINES = 2**19  # measurements of a run, which take some 300 MB
MAX_BYTES = 2**16  # of a line
WALL_CLOCK = ("seconds", "tokens_per_second")


class Speed:
    """Tokens a second over the last `window` updates.

    One update alone says little: a GPU works on the next while this one is read, which may then take no time at all.
    """

    def __init__(self, window: int = 20) -> None:
        self._updates: deque[tuple[int, float]] = deque(maxlen=window)
        self._is_after_break = False

    def count(self, n_tokens: int, seconds: float) -> None:
        """Count an update. One of no seconds, in which something was compiled, is left out, and so is the one after it.

        A GPU has worked on that one meanwhile, and it seems to take no time.
        """
        if seconds and not self._is_after_break:
            self._updates.append((n_tokens, seconds))
        self._is_after_break = not seconds

    @property
    def tokens_per_second(self) -> float | None:
        """None before the second update."""
        if len(self._updates) < 2:
            return None
        return sum(n for n, _ in self._updates) / sum(seconds for _, seconds in self._updates)


class Metrics:
    """Appends to a run's `metrics.jsonl`; `offset` is where the checkpoint says that its lines end."""

    def __init__(self, run_folder: Path, *, step: int, offset: int, has_tensorboard: bool) -> None:
        self._path = path = run_folder / METRICS
        path.touch()
        if path.stat().st_nlink > 1:  # a backup of hard links: what is written here must not change there
            write_atomically(path, path.read_bytes())
        # Lines after the checkpoint belong to steps that are about to be made again.
        os.truncate(path, min(offset, path.stat().st_size))
        self._file: BinaryIO = path.open("ab")
        self._events = _tensorboard(run_folder / "tensorboard", step) if has_tensorboard else None

    def write(self, kind: str, step: int, **values: float | int | None) -> None:
        self._check_there()
        known = {name: value for name, value in values.items() if value is not None}
        finite = {name: value if math.isfinite(value) else None for name, value in known.items()}  # JSON: no infinity
        self._file.write(json.dumps({"kind": kind, "step": step} | finite).encode() + b"\n")
        self._file.flush()
        if self._events is not None:
            for name, value in known.items():
                if name not in ("tokens", "flops", "seconds"):
                    self._events.add_scalar(f"{kind}/{name}", value, step)

    def sync(self) -> int:
        """Force what was written onto the disk; returns the offset to put into a checkpoint."""
        self._check_there()
        self._file.flush()
        os.fsync(self._file.fileno())
        if self._events is not None:
            self._events.flush()
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        if self._events is not None and self._path.exists():
            self._events.close()

    def _check_there(self) -> None:
        """Refuse to go on where the folder is gone: what is written would be lost, or half a folder made anew."""
        if not self._path.exists():
            raise RegardError(
                f"'{self._path.parent}' was deleted or moved while it was trained. Train it again, or put it back and "
                "resume it."
            )


def check_metrics(run_folder: Path, offset: int) -> None:
    """Refuse to go on with measurements that are damaged before `offset`: at the end they would have a checksum."""
    path, number = run_folder / METRICS, 1
    if not path.exists():
        return
    try:
        for number, line in enumerate(_read_lines(path, offset), start=1):
            if line:
                _read_line(path, number, line)
        is_whole = _ends_line(path, offset)
    except DamagedFileError:
        is_whole = False
    if not is_whole:
        raise DamagedFileError(
            f"'{path}' is not as it was when the run was saved, in line {number} or after it. Take it from a copy; or "
            "remove it, and what was measured until then is lost."
        )


def _ends_line(path: Path, offset: int) -> bool:
    """Whether `offset` is where a line ends."""
    with open_regular(path) as file:
        file.seek(max(0, offset - 1))
        return offset == 0 or file.read(1) == b"\n"


def read_metrics(run_folder: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """The measurements of a run, in order; of one kind where it is given. A last line that is cut short is left out."""
    path = run_folder / METRICS
    if not path.exists():
        return []
    wanted = None if kind is None else json.dumps(kind)
    found = []
    for number, line in enumerate(_read_lines(path), start=1):
        if not line or (wanted is not None and wanted not in line):
            continue
        measured = _read_line(path, number, line)
        if kind in (None, measured["kind"]):
            found.append(measured)
        if len(found) > MAX_LINES:
            raise DamagedFileError(
                f"'{path}' has more than {MAX_LINES:,} measurements, and a run has fewer. Leave some lines out, and "
                f"say so (regard check {run_folder} --trust). A run with a larger checkpoint.log_every writes fewer."
            )
    return found


def _read_lines(path: Path, end: int | None = None) -> Iterator[str]:
    """The whole lines of a file that begin before `end`, one held at a time; one that is cut short is left out."""
    line = b""
    try:
        with open_regular(path) as file:
            while (end is None or file.tell() < end) and (line := file.readline(MAX_BYTES + 1)).endswith(b"\n"):
                yield line.decode("utf-8").rstrip("\r\n")
        if len(line) > MAX_BYTES:
            raise DamagedFileError(f"{path} has a line of more than {MAX_BYTES:,} bytes. {COPY_AGAIN}.")
    except OSError as error:
        raise RegardError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise DamagedFileError(f"{path} cannot be read: it is not UTF-8 text ({error.reason}).") from None


def _read_line(path: Path, number: int, line: str) -> dict[str, Any]:
    """One measurement: a kind, and numbers by name."""
    way_out = f"Remove that line, and say so: regard check {path.parent} --trust"
    found: dict[str, Any] = parse_json(line, f"{path}, line {number}", way_out)
    is_whole = isinstance(found, dict) and isinstance(found.get("kind"), str) and is_count(found.get("step"))
    if not is_whole or not all(value is None or is_measure(value) for key, value in found.items() if key != "kind"):
        raise DamagedFileError(f"{path}, line {number} is no measurement: {quote(found)}. {way_out}.")
    return found


def _tensorboard(folder: Path, step: int) -> Any:
    """A writer that hides events after `step`, left by a run that was killed; None where tensorboard is missing."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    # TensorBoard reads event files in the order of their names, which begin with the second; within one second file 10
    # would be read before file 9.
    now = time.time()
    if any(folder.glob(f"events.out.tfevents.{int(now):010d}.*")):
        time.sleep(1 - now % 1)
    return SummaryWriter(str(folder), purge_step=step + 1 if step else None)
