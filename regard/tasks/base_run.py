"""What every trained run has, whatever its task is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from regard.data.stream import Stream
from regard.errors import RegardError, explain_old_name
from regard.tasks.task import Ending, OpenRun, Task, reopen_data
from regard.text.learning import Progress
from regard.untrusted.small_files import read_object


class MissingVerbError(RegardError, AttributeError):
    """A run was asked for something that runs of its task do not have."""


class Run:
    """A trained model in the hands of a user; it may be used from several threads. What the runs of every task add:

    predict(items)              one answer an item, in their order, in bounded memory
    evaluate(data, split=...)   scores on other data, or on a split of those that the run was trained on
    trace(...)                  what the model computed: attention, gates, states and surprise, by token
    prediction(...)             one prediction, to be explained: attributions, erasure, patching
    """

    verbs: ClassVar[tuple[str, ...]] = ("predict", "evaluate", "trace", "prediction")
    """What an error says that a run can do."""
    old_names: ClassVar[Mapping[str, str]] = {}
    """Attributes of earlier versions, and what they are called now."""

    def __init__(self, task: Task, opened: OpenRun, model: Any) -> None:
        self.task, self.opened, self.model = task, opened, model
        self.folder, self.config, self.facts = opened.folder, opened.config, opened.facts
        self.tokenizers = opened.tokenizers
        self.ending: Ending | None = None
        """What training ended with, where that was just now; None where the run was loaded."""
        self._held_out: tuple[int, str] = (0, "")
        """The held-out text that was asked for last: data sets take seconds to open again."""

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

    def held_out_text(self, n_chars: int) -> str:
        """Up to so many characters that the run was not trained on: its test split, then its validation split.

        Documents, sentences and examples are lines, or stand on lines of their own.
        """
        n_read, text = self._held_out
        if n_chars <= n_read:
            return text[:n_chars]
        data = reopen_data(self.task, self.opened, option="--search FILE (in Python: search_text)")
        text = ""
        for split in ("test", "valid"):
            if len(text) < n_chars:
                text += self._text_of_split(getattr(data, split), n_chars - len(text))
        self._held_out = n_chars, text[:n_chars]
        return text[:n_chars]

    def _text_of_split(self, split: Any, n_chars: int) -> str:
        """The beginning of a split as text; of a stream of tokens here, of other data in the runs of their tasks."""
        if not isinstance(split, Stream):
            raise RegardError(f"'{self.folder}' has no held-out text of its own; name one: --search FILE.")
        tokenizer = self.tokenizers[0]
        ids = split[: 2 * n_chars] if tokenizer.kind in ("char", "byte") else split[:n_chars]
        ends = np.append(np.flatnonzero(ids == tokenizer.eos), len(ids)).tolist()
        parts, begin, n = [], 0, 0
        for end in ends:
            parts.append(tokenizer.decode(ids[begin:end].tolist()))
            begin, n = end + 1, n + len(parts[-1]) + 1
            if n > n_chars:
                break
        return "\n".join(parts)

    def test_result(self) -> dict[str, Any] | None:
        """The test scores that were written when training ended; None where there are none."""
        path = self.folder / "test.json"
        return read_object(path) if path.exists() else None


def count_done(progress: Progress | None, what: str, total: int) -> Callable[[int], None] | None:
    """What is told how many of `total` are done; begins with none, so that a bar is there before the first batch is."""
    if progress is None:
        return None
    progress(what, 0, total)
    return lambda done: progress(what, done, total)


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
