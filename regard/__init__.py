"""Regard trains, compares and looks inside sequence models, from n-grams to the Transformer, on your own text.

    import regard

    run = regard.train({"data": {"train": "my.txt"}, "model": {"name": "lstm"}}, out="runs/mine")
    run.generate("In October, people")
    run.score("A sentence to be surprised by.")
    run.trace("Where does it look?")

Importing is fast and runs nothing: torch is loaded when a model is.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

from regard.errors import RegardError

if TYPE_CHECKING:
    from regard import api
    from regard.api import compare, compare_runs, load, look, plan, predict_next, study, trace, train
    from regard.compare.result import Comparison
    from regard.lens.trace import Trace
    from regard.score.scored import Scored
    from regard.serve.notebook import show
    from regard.tasks.answering import AnsweringRun
    from regard.tasks.bidirectional_run import BidirectionalRun
    from regard.tasks.caption_run import CaptionRun
    from regard.tasks.classification import ClassificationRun
    from regard.tasks.language_model_run import LanguageModelRun
    from regard.tasks.masked_language_model_run import MaskedLanguageModelRun
    from regard.tasks.parsing import ParsingRun
    from regard.tasks.rating import RatingRun
    from regard.tasks.table import AnyRun as Run
    from regard.tasks.tagging import TaggingRun
    from regard.tasks.translation import TranslationRun
    from regard.tasks.word_vectors_run import WordVectorsRun

_HOMES = {
    "regard.api": ("compare", "compare_runs", "load", "look", "plan", "predict_next", "study", "trace", "train"),
    "regard.compare.result": ("Comparison",),
    "regard.lens.trace": ("Trace",),
    "regard.score.scored": ("Scored",),
    "regard.serve.notebook": ("show",),
    "regard.tasks.answering": ("AnsweringRun",),
    "regard.tasks.classification": ("ClassificationRun",),
    "regard.tasks.rating": ("RatingRun",),
    "regard.tasks.tagging": ("TaggingRun",),
    "regard.tasks.bidirectional_run": ("BidirectionalRun",),
    "regard.tasks.caption_run": ("CaptionRun",),
    "regard.tasks.language_model_run": ("LanguageModelRun",),
    "regard.tasks.masked_language_model_run": ("MaskedLanguageModelRun",),
    "regard.tasks.parsing": ("ParsingRun",),
    "regard.tasks.table": ("Run",),
    "regard.tasks.translation": ("TranslationRun",),
    "regard.tasks.word_vectors_run": ("WordVectorsRun",),
}
"""Where each public name lives: it is imported when it is first asked for."""

__all__ = [
    "AnsweringRun",
    "BidirectionalRun",
    "CaptionRun",
    "ClassificationRun",
    "Comparison",
    "LanguageModelRun",
    "MaskedLanguageModelRun",
    "ParsingRun",
    "RatingRun",
    "RegardError",
    "Run",
    "Scored",
    "TaggingRun",
    "Trace",
    "TranslationRun",
    "WordVectorsRun",
    "__version__",
    "api",
    "compare",
    "compare_runs",
    "load",
    "look",
    "plan",
    "predict_next",
    "show",
    "study",
    "trace",
    "train",
]


def __getattr__(name: str) -> Any:
    if name == "api":  # so that the command line need not import it, and torch with it, to print its help
        return import_module("regard.api")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), "AnyRun" if name == "Run" else name)
    raise AttributeError(f"module 'regard' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """`regard.compare` is the function; Python would put the package of that name in its place once it is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name == "compare" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
