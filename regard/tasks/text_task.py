"""What jobs share that learn from plain text: where it comes from, how it is prepared, and what they may start from."""

from __future__ import annotations

from typing import Any

from regard.config import RunConfig
from regard.data.config import DataConfig
from regard.data.prepared_text import PreparedText, open_text, prepare_text
from regard.tasks import gradient
from regard.tasks.task import Fitting, join_names
from regard.text.learning import Progress

MAX_TEST_TOKENS = 200_000
"""A run is scored on so much of its test text when it ends; `regard eval` scores all of it."""


class TextTask(gradient.GradientTask):
    """A task whose data are a text, in one vocabulary. What it learns from the text is left to the task."""

    folders: tuple[str, ...] = ("start_from",)
    example = "--data my.txt"

    def describe_sources(self, config: RunConfig) -> str:
        return join_names(config.section("data", DataConfig).train)

    def prepare(self, config: RunConfig, progress: Progress | None = None) -> PreparedText:
        return prepare_text(config.section("data", DataConfig), config.tokenizer, progress=progress)

    def reopen(self, config: RunConfig, fingerprint: str) -> PreparedText | None:
        return open_text(fingerprint)

    def initialise(self, config: RunConfig, model: Any, fitting: Fitting) -> None:
        if fitting.start is not None:
            fitting.start.load_into(model)
