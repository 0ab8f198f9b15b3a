"""What every trained run has, whatever its task is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError, explain_old_name
from regard.layers.taps import Taps
from regard.lens.trace import Trace
from regard.tasks.task import Ending, OpenRun, Task
from regard.text.tokenizer import Tokenizer


class MissingVerbError(RegardError, AttributeError):
    """A run was asked for something that runs of its task do not have."""


class Run:
    """A trained model in the hands of a user; it may be used from several threads. What the runs of every task add:

    predict(items)              one answer an item, in their order, in bounded memory
    evaluate(data, split=...)   scores on other data, or on a split of those that the run was trained on
    trace(...)                  what the model computed: attention, gates, states and surprise, by token
    """

    verbs: ClassVar[tuple[str, ...]] = ("predict", "evaluate", "trace")
    """What an error says that a run can do."""
    old_names: ClassVar[Mapping[str, str]] = {}
    """Attributes of earlier versions, and what they are called now."""

    def __init__(self, task: Task, opened: OpenRun, model: Any) -> None:
        self.task, self.opened, self.model = task, opened, model
        self.folder, self.config, self.facts = opened.folder, opened.config, opened.facts
        self.tokenizers = opened.tokenizers
        self.ending: Ending | None = None
        """What training ended with, where that was just now; None where the run was loaded."""

    def __repr__(self) -> str:
        name, size = type(self).__name__, f"{self.facts.n_parameters:,}"
        return f"<{name} {self.folder}: {self.config.model_name}, {size} parameters>"

    if not TYPE_CHECKING:  # or every attribute would have a type: any

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or name in self.old_names or "task" not in vars(self):
                raise explain_old_name(self, name, self.old_names)
            raise MissingVerbError(
                f"'{self.folder}' is a run that {self.task.summary}, and has no '{name}'. It can "
                f"{', '.join(self.verbs[:-1])} and {self.verbs[-1]}."
            )

    def use_ctranslate2(self, precision: str) -> None:
        """Decode by CTranslate2 from now on, where the task can."""
        raise RegardError(
            f"'{self.folder}' is a run that {self.task.summary}; only language models and translators decode by "
            "CTranslate2. Leave out --engine (in Python: engine)."
        )

    def test_result(self) -> dict[str, Any] | None:
        """The test scores that were written when training ended; None where there are none."""
        path = self.folder / "test.json"
        found: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        return found


def check_text(text: Any, name: str = "text") -> str:
    """A text, or an error that says what was given instead."""
    if not isinstance(text, str):
        raise RegardError(f"The {name} must be a str, not {text!r:.60}.")
    return text


def list_items(given: Any, name: str, kind: type | tuple[type, ...] = str) -> list[Any]:
    """One item, or several, as a list; an error where one is not of `kind`.

    >>> list_items("A dog runs.", "text"), list_items(("A", "B"), "text")
    (['A dog runs.'], ['A', 'B'])
    """
    if isinstance(given, kind):
        return [given]
    items = list(given) if isinstance(given, Iterable) else None
    if items is None or not all(isinstance(item, kind) for item in items):
        raise RegardError(f"Give one {name} or a list of them, each a str, not {given!r:.60}.")
    return items


def trace_record(tokenizer: Tokenizer, tokens: Sequence[int], nats: NDArray[np.float64], record: Taps) -> Trace:
    """What a decoder computed when it was made to write `tokens`, and their end where `nats` has it."""
    texts = (*(tokenizer.token_text(token) for token in tokens), "")[: len(nats)]
    return Trace(texts, nats, {name: record[name][0].float().cpu().numpy() for name in record})
