from __future__ import annotations

import io
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from tiny_training import run_tiny, stop_at

from regard.training.progress import Bar, Lines, Silent, Status, reporter


def status(step: int = 5) -> Status:
    return Status(
        step=step, progress=0.25, seconds=30.0, nats_per_token=2.5, bits_per_byte=1.25, tokens_per_second=12345.6
    )


def test_a_status_reads_as_loss_bits_speed_and_time_left() -> None:
    assert status().text() == "step 5  train 1.250 bits/byte (2.500 nats/token)  12,346 tokens/s  1:30 left"
    bare = Status(step=0, progress=0.0, seconds=0.0, nats_per_token=2.5, bits_per_byte=None, tokens_per_second=None)
    assert bare.text() == "step 0  train 2.500 nats/token"
    assert replace(bare, split="valid").text() == "step 0  valid 2.500 nats/token"


def test_a_status_names_what_the_loss_is_a_mean_of() -> None:
    of_texts = replace(status(), bits_per_byte=None, unit="example")
    assert of_texts.text() == "step 5  train 2.500 nats/example  12,346 examples/s  1:30 left"


def test_a_status_shows_the_score_that_decides_and_not_the_loss_beside_it() -> None:
    by_bleu = replace(status(), valid_bits_per_byte=3.994, best_score=("BLEU", 31.24))
    assert "best BLEU 31.2" in by_bleu.text()
    assert "best valid" not in by_bleu.text()
    assert "best valid 3.994" in replace(by_bleu, best_score=None).text()


def test_lines_come_seldom_and_the_last_one_always() -> None:
    out = io.StringIO()
    lines = Lines(out, every_seconds=3600.0)
    lines.start("title")
    lines.show(status(1))
    lines.show(status(2))
    lines.stop()
    assert out.getvalue().splitlines() == ["title", f" 25%  {status(2).text()}"]


def test_lines_come_as_often_as_asked() -> None:
    out = io.StringIO()
    lines = Lines(out, every_seconds=0.0)
    lines.start("title")
    lines.show(status(1))
    lines.show(status(2))
    lines.stop()
    assert len(out.getvalue().splitlines()) == 3


def test_a_bar_shows_the_share_and_the_status() -> None:
    out = io.StringIO()
    bar = Bar(Console(file=out, force_terminal=True, width=160, color_system=None))
    bar.start("training")
    bar.show(status())
    bar.note("a sentence [with brackets]")
    bar.stop()
    assert "a sentence [with brackets]" in out.getvalue()
    assert " 25%" in out.getvalue()
    assert "1.250 bits/byte" in out.getvalue()


def test_only_a_terminal_gets_a_bar() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert isinstance(reporter(io.StringIO()), Lines)
    assert isinstance(reporter(Terminal(), Console()), Bar)
    assert isinstance(reporter(io.StringIO(), Console()), Lines)


@pytest.mark.parametrize("kind", ["lines", "silent"])
def test_a_run_tells_its_reporter_what_happens(kind: str, tmp_path: Path) -> None:
    out = io.StringIO()
    told = Lines(out, every_seconds=0.0) if kind == "lines" else Silent()
    run_tiny(tmp_path, reporter=told, on_step=stop_at(6))
    text = out.getvalue()
    if kind == "silent":
        assert text == ""
        return
    assert "parameters on cpu" in text.splitlines()[0]
    assert "step 6" in text
    assert "best valid" in text


def test_the_last_status_has_the_best_of_all_evaluations(tmp_path: Path) -> None:
    """The evaluation after the last update too."""

    class Statuses(Silent):
        def show(self, status: Status) -> None:
            self.last = status

    told = Statuses()
    result = run_tiny(tmp_path, reporter=told)
    assert told.last.valid_bits_per_byte == result.bits_per_byte


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_the_bar_and_what_matters_fit_the_terminal(width: int) -> None:
    out = io.StringIO()
    bar = Bar(Console(file=out, force_terminal=True, width=width, color_system=None))
    bar.start("12,345,678 parameters on cuda:0, from step-00012000")
    full = replace(status(), step=123456, seconds=4e4, valid_bits_per_byte=1.234, tokens_per_second=1234567.8)
    bar.show(full)
    bar.stop()
    drawn = [line for line in out.getvalue().split("\n")[-2].split("\r") if "step" in line][-1]
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn).rstrip()
    assert len(shown) <= width
    assert "━" in shown
    for part in ("step 123456", "1.250 bits/byte", "left", " 25%"):
        assert part in shown
    assert ("tokens/s" in shown) == (width >= 120)


def test_a_line_that_is_too_long_leaves_out_what_matters_least() -> None:
    full = replace(status(), valid_bits_per_byte=1.234)
    assert full.text(60) == "step 5  train 1.250 bits/byte  best valid 1.234  1:30 left"
    assert full.text(40) == "step 5  1.250 bits/byte  1:30 left"
    assert full.text(30) == "step 5  1.250 bits/byte"
    assert full.text(3) == "step 5"


def test_a_loss_that_exploded_is_not_written_out() -> None:
    text = replace(status(), nats_per_token=1.2345e35, bits_per_byte=6e34).text()
    assert text.startswith("step 5  train 6e+34 bits/byte (1.23e+35 nats/token)")


def test_a_notebook_gets_one_line_that_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def python(config: dict[str, object]) -> SimpleNamespace:
        return SimpleNamespace(get_ipython=lambda: SimpleNamespace(config=config))

    monkeypatch.setattr("time.monotonic", iter(range(100)).__next__)
    written = []
    for app in ("IPKernelApp", "TerminalIPythonApp"):
        monkeypatch.setitem(sys.modules, "IPython", python({app: {}}))
        out = io.StringIO()
        told = reporter(out)
        told.start("title")
        told.show(status(1))
        told.show(status(2))
        told.note("a sentence")
        told.stop()
        written.append(out.getvalue().split("\n"))
    line = [f" 25%  {status(n).text():<94}" for n in (1, 2)]
    assert written[0] == ["title", f"\r{line[0]}\r{line[1]}", "a sentence", ""]
    assert written[1] == ["title", "a sentence", f" 25%  {status(2).text()}", ""]
