"""Every model of the table, in every task it is for, computes the same whether it is recorded or not."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from test_model_contract import BENCHES, GRADIENT, Case, Files, build, files, opened  # noqa: F401

from regard.errors import RegardError
from regard.layers.taps import Taps
from regard.lens.by_hand import Example, view_steps
from regard.lens.logit_lens import read_out
from regard.lens.prediction import Prediction
from regard.lens.recording import trace
from regard.lens.subject import Subject
from regard.lens.view import LookOptions
from regard.tasks.table import task_of

EACH = pytest.mark.parametrize("case", GRADIENT.values(), ids=GRADIENT)
SHOWN_ONLY = ("probabilities.", "logits")
"""What nothing else is computed from."""


def build_run(files: Files, case: Case) -> tuple[Any, Any, Any]:  # noqa: F811
    """A run of float64, the data, and the item that is looked at."""
    config = case.config(files)
    task: Any = task_of(config)
    data = task.prepare(config)
    model = build(config, data).double().eval()
    item = files[case.task][1][1]
    if case.task == "language-model":
        item = " ".join(item.split()[:5])  # as much as all of them see at once
    return task.run_type(task, opened(config, data), model), data, item


def predict_one(run: Any, item: Any, case: Case) -> Prediction:
    """One prediction of the run about an item; of what is written, a later token, which looks at those before it."""
    at = {"translation": 2, "parsing": 3, "captions": 2, "tagging": 1}.get(case.task)
    if case.task == "captions":
        return run.prediction(item, "a red square", at=at)  # type: ignore[no-any-return]
    if case.task == "translation":
        return run.prediction(item, BENCHES[case.task].truth[1], at=at)  # type: ignore[no-any-return]
    return run.prediction(item, at=at)  # type: ignore[no-any-return]


@EACH
def test_recorded_it_loses_and_predicts_as_ever(files: Files, case: Case) -> None:  # noqa: F811
    run, data, _ = build_run(files, case)
    objective, model = run.task.objective(run.config, run.model, data), run.model
    tensors = tuple(t.double() if t.is_floating_point() else t for t in objective.at(0).tensors)
    if case.name != "elmo":  # which embeds the words of both directions at once before it reads them
        with torch.no_grad():
            fast = objective.loss(model, objective.body(model), tensors, None).nats
            with trace(run) as record:
                plain = objective.loss(model, objective.body(model), tensors, None).nats
        torch.testing.assert_close(plain, fast, rtol=0, atol=1e-10)
        assert any(name.endswith(("hidden", "states")) for name in record)
    items, beam = files[case.task][1][:2], {"beam": 2} if "teaching" in run.task.sections else {}
    expected = list(run.predict(items, **beam))
    with trace(run) as record:
        found = list(run.predict(items, **beam))
    np.testing.assert_allclose(_numbers(found), _numbers(expected), rtol=0, atol=1e-10)
    assert list(record)


@EACH
def test_one_prediction_is_the_same_with_taps_and_follows_from_each_of_them(files: Files, case: Case) -> None:  # noqa: F811
    run, _, item = build_run(files, case)
    prediction = predict_one(run, item, case)
    record = Taps()
    with torch.no_grad():
        fast, plain = prediction.compute(None), prediction.compute(record)
    torch.testing.assert_close(plain, fast, rtol=0, atol=1e-10)
    if not prediction.is_number:
        assert float(fast.exp().sum()) == pytest.approx(1)
    n = len(prediction.tokens)
    assert len(prediction.spans) == len(prediction.inputs) == len(prediction.places) == n
    for place in (place for places in prediction.places for place in places):
        assert record[place.tap].shape[1] > place.row
    ignored = {name for name in record if not name.startswith(SHOWN_ONLY) and not _matters(prediction, name, fast)}
    if case.model.get("attention") == "none" and case.task == "translation":  # only the end of the source is heard of
        ignored -= {"encoder.hidden", "encoder.layers.0.hidden"}
    assert ignored == set()


def _matters(prediction: Prediction, name: str, before: torch.Tensor) -> bool:
    """Whether other numbers in a value change the prediction: whoever keeps it goes on with what stands in for it."""
    draws = torch.Generator().manual_seed(0)

    def disturb(value: torch.Tensor) -> torch.Tensor:
        return value + torch.rand(value.shape, generator=draws, dtype=value.dtype)

    changed = prediction.log_probs({name: disturb})
    return bool(np.abs(np.exp(changed) - np.exp(before.numpy())).max() > 1e-12)


@EACH
def test_a_trace_has_a_row_for_every_token(files: Files, case: Case) -> None:  # noqa: F811
    run, _, item = build_run(files, case)
    found = run.trace(item)
    T = len(found.tokens)
    assert len(found.nats) == len(found.spans) == T
    for name, tap in found.taps.items():
        if name.startswith(("layers", "embedding", "hidden")) and not name.endswith(("cross_key", "cross_value")):
            assert T in tap.shape, name
    assert not found.sources or len(found.sources) == len(found.source_spans)


@EACH
def test_steps_by_hand_end_with_the_weights_of_the_model(files: Files, case: Case) -> None:  # noqa: F811
    run, _, item = build_run(files, case)
    picture = {"picture": item} if case.task == "captions" else {}
    text = item if isinstance(item, str) else "" if picture else "\t".join(item)
    target = {"translation": BENCHES["translation"].truth[1], "captions": "a red square"}.get(case.task)
    subject = Subject(run, text, target, **picture)
    view = view_steps(subject, LookOptions(layer=1, head=1))
    taps, kind = subject.trace.taps, "cross_" if subject.is_written else ""
    attending = [name for name in taps if re.fullmatch(rf"layers\.\d+\.{kind}query", name)]
    assert (view is not None) == bool(attending)
    if view is None:
        return
    example = view.data["examples"][0]
    given = {name: example[name] for name in ("scores", "query", "keys", "values", "d", "base")}
    found = Example(title="", note="", words=example["words"], **given).solve()
    before = attending[0].removesuffix("query")
    A, z = taps[f"{before}attention"][0, view.data["token"]], taps[f"{before}z"][0, view.data["token"]]
    np.testing.assert_allclose(found.weights, A[A > 0], rtol=0, atol=1e-3)  # its numbers are rounded
    np.testing.assert_allclose(found.z, z, rtol=0, atol=1e-2)


@EACH
def test_the_last_reading_of_the_layers_is_what_the_model_says(files: Files, case: Case) -> None:  # noqa: F811
    run, _, item = build_run(files, case)
    found = run.trace(item)
    if "logits" not in found.taps or case.task in ("classification", "rating", "tagging", "answering"):
        return
    own = torch.from_numpy(found["logits"]).log_softmax(dim=-1).numpy()
    last = list(read_out(run.model, found).values())[-1]
    np.testing.assert_allclose(last, own, rtol=0, atol=1e-10)


def test_what_computes_nothing_says_so(files: Files) -> None:  # noqa: F811
    config = Case("word-vectors", "skipgram").config(files)
    task: Any = task_of(config)
    run = task.run_type(task, opened(config, task.prepare(config)), object())
    for ask in (run.trace, run.prediction):
        with pytest.raises(RegardError, match="holds vectors of words"):
            ask("the cat")
    with pytest.raises(RegardError, match="Word vectors are looked up"), trace(run):
        pass


def _numbers(found: Any) -> list[float]:
    """All numbers in what was predicted, in their order."""
    if isinstance(found, float):
        return [found]
    if isinstance(found, str | int) or found is None:
        return []
    parts = vars(found).values() if hasattr(found, "__dict__") else found
    return [number for part in (parts.values() if isinstance(parts, dict) else parts) for number in _numbers(part)]
