from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from tiny_training import run_tiny, stop_at

from regard.training.progress import Bar, Lines, Silent, Status, reporter


def status(step: int = 5) -> Status:
    return Status(
        step=step, progress=0.25, seconds=30.0, nats_per_token=2.5, bits_per_byte=1.25, tokens_per_second=12345.6
    )


def test_a_status_reads_as_loss_bits_speed_and_time_left() -> None:
    assert status().text() == "step 5  2.500 nats/token  1.250 bits/byte  12,346 tokens/s  1:30 left"
    bare = Status(step=0, progress=0.0, seconds=0.0, nats_per_token=2.5, bits_per_byte=None, tokens_per_second=None)
    assert bare.text() == "step 0  2.500 nats/token"


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
    assert isinstance(reporter(Terminal()), Bar)


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
