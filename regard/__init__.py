"""Regard trains, compares and looks inside sequence models, from n-grams to the Transformer, on your own text.

    import regard

    run = regard.train({"data": {"train": "my.txt"}, "model": {"name": "lstm"}}, out="runs/mine")
    run.generate("In October, people")
    run.score("A sentence to be surprised by.")
    run.trace("Where does it look?")

Importing is fast and runs nothing: torch is loaded when a model is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["RegardError", "__version__", "compare", "compare_runs", "load", "study", "trace", "train"]

from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.api import compare, load, study, trace, train
    from regard.systems.comparing import compare_runs


def __getattr__(name: str) -> Any:
    """Import the public functions when they are first asked for."""
    if name in ("load", "train", "compare", "study", "trace"):
        from regard import api

        return getattr(api, name)
    if name == "compare_runs":
        from regard.systems.comparing import compare_runs

        return compare_runs
    raise AttributeError(f"module 'regard' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
