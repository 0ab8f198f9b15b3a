"""What one trained run shows of itself in the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from regard.comparison.measure import by_position, sample, score_text, surprise
from regard.comparison.passages import TestText
from regard.comparison.result import Views
from regard.lens.attention import attention_view
from regard.lens.cells import cell_view
from regard.run.engine import load
from regard.tasks.language_model import LanguageModelRun

T = TypeVar("T")


def look_inside(folder: Path, test: TestText, passage: str, prompt: str, note: Callable[[str], None]) -> Views:
    """Sample, loss by position, surprise, attention and cells. One that cannot be made is told and left out."""
    run = load(folder)
    assert isinstance(run, LanguageModelRun)

    def made(what: str, make: Callable[[], T], otherwise: T) -> T:
        try:
            return make()
        except Exception as error:  # a picture must not cost the hours of training before it
            note(f"{folder.name}: no {what} ({type(error).__name__}: {error})")
            return otherwise

    return Views(
        sample=made("sample", lambda: sample(run, prompt), ""),
        positions=made("loss by position", lambda: by_position(run, score_text(run, test)), ()),
        surprise=made("surprise", lambda: surprise(run, passage), ()),
        attention=made("attention map", lambda: attention_view(run, passage), None),
        cells=made("cells", lambda: cell_view(run, test.text, passage), None),
    )
