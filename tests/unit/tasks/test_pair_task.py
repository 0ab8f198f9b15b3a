"""What models that read pairs learn from, and what they are judged by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_pairs import GRID, TEXTS, run_tiny_pairs, tiny_pair_model, tiny_prepared, tiny_task
from tiny_training import lasting_metrics, memory_of, stop_at

from regard.decode.config import BeamConfig
from regard.decode.translate import Translator
from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.score.translation import bleu
from regard.tasks.pair_objective import PairObjective, readable_pairs, sum_nats
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.learner import Learner
from regard.training.teaching_config import TeachingConfig
from regard.training.weights import named_weights, read_tensors

CPU = RuntimeConfig(device="cpu")
LONG = ("the red house sleeps " * 20, "haus rot schläft " * 20)
SOME = pytest.mark.parametrize("variant", ["lstm to gru", "transformer to transformer", "lstm that copies"])


def built(variant: str, texts: Any = None, valid: Any = None, **changes: Any) -> tuple[Seq2Seq, Any]:
    prepared = tiny_prepared(texts, valid)
    return tiny_pair_model(prepared, GRID[variant][0], **(GRID[variant][1] | changes)), prepared


@SOME
def test_parts_of_a_batch_give_the_update_of_the_whole(variant: str) -> None:
    """Rows have different lengths, so parts have different numbers of tokens."""
    texts = [(f"{source} {source}" if i % 3 else source, target) for i, (source, target) in enumerate(TEXTS)]
    weights = []
    for n_accumulate in (1, 3, 5):
        model, prepared = built(variant, texts, [])
        task = tiny_task(model.double(), prepared, {"n_accumulate": n_accumulate}, max_tokens=200)
        assert task.at(0).n_tokens % 3
        learner = Learner(
            model, task, train=TrainConfig(n_accumulate=n_accumulate),
            optimizer=OptimizerConfig(name="sgd", max_grad_norm=None), runtime=CPU,
        )  # fmt: skip
        learner.update(0, lr=1.0)
        weights.append(named_weights(model))
    for others in weights[1:]:
        for name, weight in weights[0].items():
            torch.testing.assert_close(others[name], weight, rtol=0, atol=1e-10)


@SOME
def test_smoothed_labels_by_hand(variant: str) -> None:
    """(1-ε) (-log P(y)) + ε mean_v(-log p(v)), with all V probabilities written out; p is the vocabulary's own."""
    model, prepared = built(variant)
    model = model.double().eval()
    objective = tiny_task(model, prepared, smoothing=0.3)
    source, source_mask, inputs, targets, mask, *rest = objective.at(0).tensors
    h, _ = model.target.hidden(inputs, model.encode(source, source_mask, rest[0] if rest else None))
    states = h.h if model.copies else h
    log_p = (
        states @ model.target.output_weight.T + (0 if model.target.bias is None else model.target.bias)
    ).log_softmax(dim=-1)
    log_P = model(source, source_mask, inputs, rest[0] if rest else None)
    true = -log_P.gather(2, targets[..., None])[..., 0]
    expected = (0.7 * true + 0.3 * -log_p.mean(dim=-1))[mask].sum()
    found = objective.loss(model, objective.body(model), objective.at(0).tensors, None)
    assert abs(found.goal - expected) < 1e-10 * expected
    assert abs(found.nats - true[mask].sum()) < 1e-10 * expected


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_nats_of_lessons_are_the_sum_that_is_evaluated(smoothing: float) -> None:
    model, prepared = built("lstm to gru")
    task = tiny_task(model.double().eval(), prepared, smoothing=smoothing)
    objective = task
    total = sum(
        objective.loss(model, objective.body(model), objective.at(i).tensors, None).nats.item()
        for i in range(objective.per_epoch)
    )
    nats, n_tokens = sum_nats(model, prepared.train, max_tokens=1000)
    assert abs(total - nats) < 1e-9
    assert n_tokens == sum(len(target.split()) + 1 for i, (_, target) in enumerate(TEXTS) if i % 6)


def test_how_pairs_are_put_into_batches_changes_no_score() -> None:
    model, prepared = built("transformer that copies")
    found = [sum_nats(model.double(), prepared.train, max_tokens) for max_tokens in (1, 37, 10_000)]
    assert found[0][1] == found[1][1] == found[2][1]
    assert max(nats for nats, _ in found) - min(nats for nats, _ in found) < 1e-9


def test_a_task_counts_tokens_bytes_and_cost() -> None:
    """Two pairs of 4 and 8 source tokens, 3 and 5 target tokens; <eos> makes 4 and 6."""
    texts = [("the red house sleeps", "haus rot schläft"), ("the red house sleeps " * 2, "haus rot haus rot fällt")]
    model, prepared = built("lstm to gru", texts, [])
    task = tiny_task(model, prepared)
    assert (task.n_source, task.n_target) == (6, 5)
    assert task.flops_per_token == model.flops_per_pair(6, 5) // 5
    n_bytes = len("haus rot schläft".encode()) + len("haus rot haus rot fällt".encode())
    assert task.bytes_per_token == n_bytes / 10


def test_bleu_is_that_of_greedy_translations_of_some_pairs() -> None:
    valid = TEXTS[::2]
    model, prepared = built("bag to rnn", TEXTS, valid)
    score = tiny_task(model, prepared, select_by="bleu", max_select_items=5).evaluate(model)
    assert score is not None
    translator = Translator(
        [model], prepared.source_tokenizer, prepared.target_tokenizer, BeamConfig(beam=1, max_ratio=2.0)
    )
    some = [valid[i * len(valid) // 5] for i in range(5)]
    best = translator.all([translator.read(source) for source, _ in some])
    expected = bleu([found[0].text for found in best], [target for _, target in some]).score
    assert score.more == {"bleu": expected}
    assert score.criterion == -expected
    assert score.nats_per_token == tiny_task(model, prepared).evaluate(model).criterion  # type: ignore[union-attr]


def test_judged_by_bleu_the_weights_with_the_highest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted, seen = iter([10.0, 30.0, 30.0, 20.0]), []

    def scores(model: Seq2Seq, *_: Any) -> float:
        seen.append({name: weight.clone() for name, weight in named_weights(model).items()})
        return next(scripted)

    monkeypatch.setattr("tiny_pairs.greedy_bleu", scores)
    model, prepared = built("lstm to gru")
    result = run_tiny_pairs(
        tmp_path, model, prepared, train={"max_steps": 8, "eval_every": 2}, teaching={"select_by": "bleu"}
    )
    assert result.best_step == 4
    kept = read_tensors(tmp_path / "model.safetensors")
    assert all(torch.equal(kept[name], seen[1][name]) for name in kept)
    assert not all(torch.equal(kept[name], seen[3][name]) for name in kept)
    valid = [line for line in lasting_metrics(tmp_path) if line["kind"] == "valid"]
    assert [line["bleu"] for line in valid] == [10.0, 30.0, 30.0, 20.0]
    losses = [line["nats_per_token"] for line in valid]
    assert losses.index(min(losses)) != 1  # by loss others would have been kept


def test_without_validation_pairs_the_last_weights_are_kept(tmp_path: Path) -> None:
    model, prepared = built("lstm to gru", TEXTS, [])
    assert tiny_task(model, prepared).evaluate(model) is None
    for select_by in ("loss", "bleu"):
        model, prepared = built("lstm to gru", TEXTS, [])
        folder = tmp_path / select_by
        result = run_tiny_pairs(folder, model, prepared, teaching={"select_by": select_by})
        assert (result.reason, result.best_step) == ("max_steps", None)
        kept = read_tensors(folder / "model.safetensors")
        last = read_tensors(folder / "state" / "step-00000006" / "model.safetensors")
        assert all(torch.equal(kept[name], last[name]) for name in kept)


@pytest.mark.parametrize("select_by", ["loss", "bleu"])
def test_a_validation_pair_that_is_too_long_does_not_end_a_run(select_by: str, tmp_path: Path) -> None:
    short = TEXTS[:3]
    model, prepared = built("transformer to transformer", TEXTS, [*short, LONG, (LONG[0], "haus"), ("the", LONG[1])])
    task = tiny_task(model, prepared, select_by=select_by)
    assert len(task.valid) == 3
    alone = tiny_task(model, tiny_prepared(TEXTS, short), select_by=select_by)
    assert task.evaluate(model) == alone.evaluate(model)
    result = run_tiny_pairs(tmp_path, model, prepared, teaching={"select_by": select_by})
    assert result.is_finished
    model, prepared = built("transformer to transformer", TEXTS, [LONG])
    assert tiny_task(model, prepared).evaluate(model) is None


def test_a_model_without_a_limit_is_evaluated_on_all() -> None:
    model, prepared = built("lstm to gru", TEXTS, [*TEXTS[:3], LONG])
    assert len(tiny_task(model, prepared).valid) == 4


def test_training_pairs_longer_than_the_model_or_the_setting_are_left_out() -> None:
    """The model has room for 24 tokens, of which a target's end is one: what is learned from is what can be scored."""
    texts = [*TEXTS[:4], ("the " * 24, "haus"), ("the " * 25, "haus"), ("the", "haus " * 23), ("the", "haus " * 24)]
    model, prepared = built("transformer to transformer", texts, [])
    task = tiny_task(model, prepared)
    assert task.batches.n_left_out == 2
    assert list(task.batches.pairs.rows) == list(readable_pairs(model, prepared.train).rows)
    arguments = model, prepared, TrainConfig(), TeachingConfig(), 3
    assert PairObjective(*arguments, max_length=23).batches.n_left_out == 3
    assert PairObjective(*arguments, max_length=22).batches.n_left_out == 4
    assert PairObjective(*arguments, max_length=100).batches.n_left_out == 2
    model, prepared = built("lstm to gru", texts, [])
    assert tiny_task(model, prepared).batches.n_left_out == 0
    for size in (1, 3):
        model, prepared = built("transformer to transformer", TEXTS[:5], [], max_context=size)
        with pytest.raises(
            RegardError, match=f"all 5 have more than {size} tokens in the source or more than {size - 1} tok"
        ):
            tiny_task(model, prepared)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"teaching": {"max_tokens": 61}}, "its max_tokens was 60 and is 61 now"),
        ({"train": {"n_accumulate": 2}}, "its n_accumulate was 1 and is 2 now"),
        ({"train": {"average": "ema"}}, "its average was none and is ema now"),
    ],
)
def test_a_run_is_not_resumed_as_another(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    run_tiny_pairs(tmp_path, *built("lstm to gru"), on_step=stop_at(1))
    with pytest.raises(RegardError, match=message):
        run_tiny_pairs(tmp_path, *built("lstm to gru"), resume=True, **changes)


def kept_for_backward(model: Seq2Seq, task: PairObjective) -> int:
    """Bytes that a whole batch keeps for its backward pass, the weights left out."""
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    source, source_mask, inputs, _, _, *rest = task.at(0).tensors
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.target.hidden(inputs, model.encode(source, source_mask, rest[0] if rest else None))
    return sum(tensor.untyped_storage().nbytes() for address, tensor in kept.items() if address not in own)


@SOME
def test_memory_is_estimated_within_a_factor_of_two(variant: str) -> None:
    model, prepared = built(variant, TEXTS * 4, [], d_model=128)  # narrower, the fixed room of a fused LSTM counts most
    task = tiny_task(model, prepared, max_tokens=700)
    estimate = memory_of(task, model.train(), OptimizerConfig(), CPU)
    n = 4 * model.n_parameters
    assert (estimate.weights, estimate.gradients, estimate.optimizer, estimate.average) == (n, n, 2 * n, 0)
    assert 0.5 < estimate.activations / kept_for_backward(model, task) < 2


@SOME
def test_memory_grows_with_batches_and_falls_with_parts(variant: str) -> None:
    model, prepared = built(variant, TEXTS * 10, [])
    sizes = [memory_of(tiny_task(model, prepared, max_tokens=n), model, OptimizerConfig(), CPU) for n in (90, 900)]
    assert np.isclose(sizes[1].activations / sizes[0].activations, 10, rtol=0.05)
    parts = memory_of(tiny_task(model, prepared, {"n_accumulate": 5}, max_tokens=900), model, OptimizerConfig(), CPU)
    assert np.isclose(5 * parts.activations / sizes[1].activations, 1, rtol=0.05)
    assert parts.loss < sizes[1].loss


def test_a_batch_that_does_not_fit_says_what_to_lower(tmp_path: Path) -> None:
    model, prepared = built("lstm to gru")
    with pytest.raises(RegardError, match=r"Raise train.n_accumulate, lower teaching.max_tokens, or take a smaller"):
        run_tiny_pairs(tmp_path, model, prepared, runtime={"max_memory_gb": 1e-6})


def test_what_is_judged_comes_evenly_from_all() -> None:
    """Files may be sorted, and their first sentences are no sample of them."""
    prepared = tiny_prepared(TEXTS)
    pairs = prepared.train
    texts = [pairs.source_text(i) for i in range(len(pairs))]
    some = pairs.take_evenly(5)
    assert [some.source_text(i) for i in range(5)] == [texts[i * len(texts) // 5] for i in range(5)]
    assert len(pairs.take_evenly(len(texts))) == len(pairs.take_evenly(10 * len(texts))) == len(texts)
