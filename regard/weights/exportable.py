"""What is written for other programs: any trained run that has these."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from regard.config import RunConfig
from regard.text.tokenizer import Tokenizer


class Exportable(Protocol):
    """A trained run as exporters see it."""

    @property
    def folder(self) -> Path: ...
    @property
    def config(self) -> RunConfig: ...
    @property
    def model(self) -> Any: ...
    @property
    def tokenizers(self) -> tuple[Tokenizer, ...]: ...
