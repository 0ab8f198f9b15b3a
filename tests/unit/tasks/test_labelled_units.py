"""What trainings of labelled texts count."""

from typing import Any

import pytest

from regard.tasks.labelled import LabelledTask
from regard.tasks.labelled_objective import LabelledObjective
from regard.tasks.table import TASKS, build_config

DATA = {"classification": "grammar:en-sentiment:40", "rating": "grammar:en-stars:40", "tagging": "grammar:en-ner:40",
        "answering": "grammar:questions:40"}  # fmt: skip


def plain(task: str) -> dict[str, Any]:
    return {"task": task, "data": {"train": DATA[task]}, "model": {"name": "lstm", "d_model": 8, "n_layers": 1}}


@pytest.mark.parametrize("name", DATA)
def test_a_task_is_told_in_what_its_head_counts(name: str) -> None:
    task = TASKS[name]
    assert isinstance(task, LabelledTask)
    config = build_config(plain(name), is_new=True)
    data = task.prepare(config)
    found = task.rehearse(task.complete(config), data, None)
    model = task.build(found.config, (data.tokenizer,))
    objective = task.objective(found.config, model, data)
    assert isinstance(objective, LabelledObjective)
    assert task.unit == objective.unit == found.unit
    n_epoch = sum(objective.at(index).n_tokens for index in range(objective.per_epoch))
    assert found.n_units["train"] == n_epoch
    assert dict(found.lines())[f"{task.unit}s"].startswith(f"train {n_epoch:,}")
