from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from regard.compare import testing
from regard.compare.contenders import FinishedRun
from regard.compare.result_cache import read_answers, write_answers
from regard.tasks.test_set import Decoding, TestSet
from regard.training.progress import Silent


def test_answers_to_other_items_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many may be chosen when the run is compared with another one, and not the same."""
    (tmp_path / "model.safetensors").write_bytes(b"")
    monkeypatch.setattr(testing, "load", lambda folder, device: None)
    task = SimpleNamespace(
        comparing=SimpleNamespace(searches=True, items="lines"),
        answer=lambda run, test_set, chosen, decoding, tell: [f"answer {i}" for i in chosen],
    )
    run = FinishedRun("run", tmp_path, cast(Any, None), cast(Any, None), [])
    test_set = TestSet(about="", sources=("a", "b", "c"), fits=np.ones(3, dtype=bool), fingerprint="f")
    request = testing.Request(entries=(), task=cast(Any, task), decoding=Decoding(), command="", out=tmp_path)
    for chosen in ([0, 1], [0, 2]):
        found = testing._find_answers(run, test_set, chosen, request, lambda *_: None, Silent())
        assert found == [f"answer {i}" for i in chosen]


def test_a_pipe_in_place_of_answers_is_no_answer(tmp_path: Path) -> None:
    """One without a writer was waited for without end."""
    write_answers(tmp_path, "run", {"of": "a"}, ["one", "two"])
    assert read_answers(tmp_path, "run", {"of": "a"}) == ["one", "two"]
    (tmp_path / "outputs" / "run.txt").unlink()
    os.mkfifo(tmp_path / "outputs" / "run.txt")
    assert read_answers(tmp_path, "run", {"of": "a"}) is None
