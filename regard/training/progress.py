"""What a person sees of a run: a bar on a terminal, a line now and then elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any, Protocol, TextIO


@dataclass(frozen=True)
class Status:
    """Where a run stands after an update. `progress` is the share of the budget that is spent."""

    step: int
    progress: float
    seconds: float
    nats_per_token: float
    bits_per_byte: float | None
    tokens_per_second: float | None
    valid_bits_per_byte: float | None = None
    best_score: tuple[str, float] | None = None
    """BLEU or F1 of the best evaluation and its name, where that decides which weights are kept."""

    @property
    def seconds_left(self) -> float | None:
        return self.seconds * (1 - self.progress) / self.progress if self.progress > 0 else None

    def text(self) -> str:
        parts = [f"step {self.step}", f"{self.nats_per_token:.3f} nats/token"]
        if self.bits_per_byte is not None:
            parts.append(f"{self.bits_per_byte:.3f} bits/byte")
        if self.best_score is not None:
            name, score = self.best_score
            parts.append(f"best {name} {score:.1f}")
        elif self.valid_bits_per_byte is not None:
            parts.append(f"best valid {self.valid_bits_per_byte:.3f}")
        if self.tokens_per_second is not None:
            parts.append(f"{self.tokens_per_second:,.0f} tokens/s")
        if self.seconds_left is not None:
            parts.append(f"{clock(self.seconds_left)} left")
        return "  ".join(parts)


class Reporter(Protocol):
    """Is told what happens; `note` is for sentences, `show` for every update."""

    def start(self, title: str) -> None: ...

    def show(self, status: Status) -> None: ...

    def note(self, text: str) -> None: ...

    def stop(self) -> None: ...


class Silent:
    """Says nothing."""

    def start(self, title: str) -> None:
        pass

    def show(self, status: Status) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def stop(self) -> None:
        pass


class Lines:
    """A line every `every_seconds`, for logs and pipes."""

    def __init__(self, out: TextIO | None = None, every_seconds: float = 10.0) -> None:
        self._out, self._every, self._last = out or sys.stdout, every_seconds, 0.0
        self._shown: Status | None = None
        self._latest: Status | None = None

    def start(self, title: str) -> None:
        self._last = time.monotonic()
        self.note(title)

    def show(self, status: Status) -> None:
        self._latest = status
        if time.monotonic() - self._last >= self._every:
            self._print(status)

    def note(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def stop(self) -> None:
        if self._latest is not None and self._latest is not self._shown:
            self._print(self._latest)

    def _print(self, status: Status) -> None:
        self._last, self._shown = time.monotonic(), status
        self.note(f"{status.progress:4.0%}  {status.text()}")


class Bar:
    """A rich bar that stays one line."""

    def __init__(self, console: Any = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._console = console or Console()
        columns = TextColumn("[bold]{task.description}"), BarColumn(bar_width=24), TextColumn("{task.percentage:3.0f}%")
        self._bar = Progress(*columns, TextColumn("{task.fields[text]}"), console=self._console, refresh_per_second=4)
        self._task: Any = None

    def start(self, title: str) -> None:
        self._bar.start()
        self._task = self._bar.add_task(title, total=1.0, text="")

    def show(self, status: Status) -> None:
        self._bar.update(self._task, completed=status.progress, text=status.text())

    def note(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False)

    def stop(self) -> None:
        self._bar.stop()


def reporter(out: TextIO | None = None) -> Reporter:
    """A bar where `out` (standard output) is a terminal, lines where it is not."""
    out = out or sys.stdout
    return Bar() if out.isatty() else Lines(out)


def clock(seconds: float) -> str:
    """A length of time to read.

    >>> clock(75), clock(4000)
    ('1:15', '1:06:40')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
