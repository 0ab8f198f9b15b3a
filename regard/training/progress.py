"""What a person sees of a run: a bar on a terminal, one line in a notebook, lines in a log, or nothing."""

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
    split: str = "train"
    """The data that `nats_per_token` and `bits_per_byte` are of."""
    unit: str = "token"
    """What the loss is a mean of, as `Objective.unit`."""

    @property
    def seconds_left(self) -> float | None:
        return self.seconds * (1 - self.progress) / self.progress if self.progress > 0 else None

    def text(self, width: int | None = None) -> str:
        """One line; where it may have `width` characters only, what matters least is left out of it."""
        left, speed = self.seconds_left, self.tokens_per_second
        best = "" if self.valid_bits_per_byte is None else f"best valid {loss_text(self.valid_bits_per_byte)}"
        if self.best_score is not None:
            best = f"best {self.best_score[0]} {self.best_score[1]:.1f}"
        nats, bits = f"{loss_text(self.nats_per_token)} nats/{self.unit}", self.bits_per_byte
        parts = {  # what is kept longest has the lowest number
            f"step {self.step}": 0,
            self.split: 3,
            nats if bits is None else f"{loss_text(bits)} bits/byte": 1,
            "" if bits is None else f"({nats})": 6,
            best: 4,
            "" if speed is None else f"{speed:,.0f} {self.unit}s/s": 5,
            "" if left is None else f"{clock(left)} left": 2,
        }
        parts.pop("", None)
        while width is not None and len("  ".join(parts)) > width and len(parts) > 1:
            del parts[max(parts, key=lambda part: parts[part])]
        return "  ".join(parts).replace(f"{self.split}  ", f"{self.split} ").replace("  (", " (")


class Reporter(Protocol):
    """Shows how training goes: `note` takes sentences, `show` the status after every update."""

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


class Once:
    """Hands everything on to another reporter, each note only the first time."""

    def __init__(self, reporter: Reporter) -> None:
        self.start, self.show, self.stop = reporter.start, reporter.show, reporter.stop
        self._note, self._told = reporter.note, set[str]()

    def note(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._note(text)


class Lines:
    """A line every `every_seconds`, for logs and pipes; in a notebook one line that is written over itself."""

    def __init__(self, out: TextIO | None = None, every_seconds: float = 10.0, width: int | None = None) -> None:
        """`width` is that of the one line; None: one line after the other."""
        self._out, self._every, self._width, self._last = out or sys.stdout, every_seconds, width, 0.0
        self._shown: Status | None = None
        self._latest: Status | None = None
        self._is_mid_line = False

    def start(self, title: str) -> None:
        self._last = time.monotonic()
        self.note(title)

    def show(self, status: Status) -> None:
        self._latest = status
        if time.monotonic() - self._last >= self._every:
            self._print(status)

    def note(self, text: str) -> None:
        print("\n" * self._is_mid_line + text, file=self._out, flush=True)
        self._is_mid_line = False

    def stop(self) -> None:
        if self._latest is not None and self._latest is not self._shown:
            self._print(self._latest)
        if self._is_mid_line:
            print(file=self._out, flush=True)

    def _print(self, status: Status) -> None:
        if self._width is None:
            self.note(f"{status.progress:4.0%}  {status.text()}")
        else:
            line = f"{status.progress:4.0%}  {status.text(self._width - 6)}"
            print(f"\r{line:<{self._width}}", end="", file=self._out, flush=True)
            self._is_mid_line = True
        self._last, self._shown = time.monotonic(), status


class Bar:
    """A rich bar that stays one line, also where a terminal has 60 columns."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        self._console = console
        self._bar_width = min(24, max(8, self._console.width - 88))
        columns = BarColumn(bar_width=self._bar_width), TextColumn("{task.percentage:3.0f}%")
        text = TextColumn("{task.fields[text]}", markup=False)
        self._bar = Progress(*columns, text, console=self._console, refresh_per_second=4)
        self._task: Any = None

    def start(self, title: str) -> None:
        self.note(title)
        self._bar.start()
        self._task = self._bar.add_task("", total=1.0, text="")

    def show(self, status: Status) -> None:
        room = self._console.width - self._bar_width - 7  # a blank, four characters for the share, a blank, an edge
        self._bar.update(self._task, completed=status.progress, text=status.text(room))

    def note(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False)

    def stop(self) -> None:
        self._bar.stop()


def reporter(out: TextIO | None = None, console: Any = None) -> Reporter:
    """A bar where `out` (standard output) is a terminal, one updating line in a notebook, lines anywhere else.

    The bar is drawn on rich's `console`.
    """
    out = out or sys.stdout
    if console is not None and out.isatty():
        return Bar(console)
    return Lines(out, every_seconds=0.25, width=100) if _is_in_notebook() else Lines(out)


def python_reporter() -> Reporter:
    """The reporter of a Python call that names none: one updating line in a notebook, silence elsewhere."""
    return reporter() if _is_in_notebook() else Silent()


def _is_in_notebook() -> bool:
    """Whether this process is the kernel of a notebook (Jupyter, Colab, VS Code), whose output is no terminal."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def loss_text(loss: float) -> str:
    """A loss to read: three digits after the point, or a power of ten where it has exploded.

    >>> loss_text(2.5), loss_text(1.2345e35)
    ('2.500', '1.23e+35')
    """
    return f"{loss:.3f}" if loss < 1e4 else f"{loss:.3g}"


def clock(seconds: float) -> str:
    """A length of time to read, in minutes or hours.

    >>> clock(75), clock(4000)
    ('1:15', '1:06:40')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
