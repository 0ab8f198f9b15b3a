"""A trace block records whatever the model computes in it, by whichever of its methods; and a trace shows itself."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_captions import SIZE, tiny_captioner, tiny_captions
from tiny_exported import tiny_pair_run
from tiny_seq2seq import VARIANTS, V, pairs, tiny_seq2seq

from regard.errors import RegardError
from regard.layers.taps import Taps, is_recorded
from regard.lens.recording import trace
from regard.lens.trace import Trace
from regard.mixers.config import LSTMConfig, TransformerConfig
from regard.models.gradient_next_token import GradientNextToken
from regard.models.table import build_model

IDS = np.array([3, 1, 4, 1, 5])


@pytest.fixture(params=["lstm", "transformer"])
def model(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    config: Any = {
        "lstm": LSTMConfig(d_model=8, n_layers=1),
        "transformer": TransformerConfig(d_model=8, n_layers=1, n_heads=2, max_context=8),
    }[request.param]
    return build_model(request.param, config, V).double()


def recorded(model: torch.nn.Module, *inputs: Any) -> dict[str, torch.Tensor]:
    """What the model keeps where it is handed a record."""
    record = Taps()
    model(*inputs, taps=record)
    return {name: record[name] for name in record}


def test_what_a_score_computes_is_recorded(model: Any) -> None:
    scorer = GradientNextToken(model)
    plain = scorer.nats(IDS)
    with trace(model) as record:
        traced = scorer.nats(IDS)
    np.testing.assert_allclose(traced, plain, rtol=0, atol=1e-12)
    expected = recorded(model, torch.tensor([[0, *IDS[:-1]]]))
    assert set(record) == set(expected) - {"logits"}  # a score holds only a few logits at a time
    for name in record:
        torch.testing.assert_close(record[name], expected[name], rtol=0, atol=1e-12)


def test_after_the_block_nothing_is_recorded_and_the_model_is_as_before(model: Any) -> None:
    ids = torch.tensor([[0, 3, 1]])
    with trace(model) as record:
        model(ids)
    kept = record["hidden"]
    model(torch.tensor([[5]]))
    assert record["hidden"] is kept
    assert not {"hidden", "forward"} & set(vars(model))


def test_a_block_inside_another_records_into_both(model: Any) -> None:
    with trace(model) as outer, trace(model) as inner:
        model(torch.tensor([[0, 3, 1]]))
    assert set(inner) == set(outer) >= {"embedding", "hidden", "logits"}


def test_what_another_thread_computes_is_neither_recorded_nor_replaced(model: Any) -> None:
    ids, scorer = torch.tensor([[0, 3, 1, 4]]), GradientNextToken(model)
    plain = scorer.nats(IDS)
    with ThreadPoolExecutor(1) as other, trace(model, replace={"hidden": 0.0}) as record:
        found = other.submit(scorer.nats, IDS).result()
        model(torch.tensor([[0, 3]]))
        kept = record["hidden"]
        other.submit(model, ids).result()
        assert record["hidden"] is kept
    np.testing.assert_allclose(found, plain, rtol=0, atol=0)
    assert kept.abs().max() == 0


def test_what_a_task_hands_to_another_thread_is_neither_recorded_nor_replaced(model: Any) -> None:
    """`asyncio.to_thread` takes the context along."""
    scorer = GradientNextToken(model)
    plain = scorer.nats(IDS)

    async def hand_on() -> tuple[Any, Any]:
        with trace(model, replace={"hidden": 0.0}):
            return scorer.nats(IDS), await asyncio.to_thread(scorer.nats, IDS)

    inside, outside = asyncio.run(hand_on())
    assert not np.array_equal(inside, plain)
    np.testing.assert_array_equal(outside, plain)


def test_blocks_of_two_threads_may_end_in_the_order_in_which_they_began(model: Any) -> None:
    ids, own = torch.tensor([[0, 3, 1]]), dict(vars(model))
    first, second = trace(model, replace={"hidden": 0.0}), trace(model)
    with ThreadPoolExecutor(1) as other:
        first.__enter__()
        record = other.submit(second.__enter__).result()
        model(ids)
        first.__exit__(None, None, None)
        other.submit(model, ids).result()
        other.submit(second.__exit__, None, None, None).result()
    assert record["hidden"].abs().max() > 0
    assert dict(vars(model)) == own


def test_a_method_that_was_looked_up_in_a_block_goes_on_after_it(model: Any) -> None:
    ids = torch.tensor([[0, 3, 1]])
    with trace(model):
        forward, expected = model.forward, model(ids)[0]
    torch.testing.assert_close(forward(ids)[0], expected, rtol=0, atol=0)


def test_engines_and_replays_of_other_threads_go_on_computing(model: Any) -> None:
    with ThreadPoolExecutor(1) as other, trace(model) as record:
        assert is_recorded(model)
        assert not other.submit(is_recorded, model).result()
        model(torch.tensor([[0, 3]]))
    assert list(record)


def test_a_record_of_the_callers_own_is_filled_too(model: Any) -> None:
    own = Taps()
    with trace(model) as record:
        model(torch.tensor([[0, 3, 1]]), None, own)
    assert set(own) == set(record)


@pytest.mark.parametrize("variant", VARIANTS[:8:3])
def test_a_translator_is_recorded_with_all_its_inputs(variant: dict[str, object]) -> None:
    model = tiny_seq2seq(**variant).eval()
    given = pairs(1, [4, 3], copies=model.copies)
    inputs = (given.source, given.mask, given.inputs, given.words)
    plain = model(*inputs)
    with trace(SimpleNamespace(model=model)) as record:
        traced = model(*inputs)
    torch.testing.assert_close(traced, plain, rtol=0, atol=1e-10)
    expected = recorded(model, *inputs)
    assert {"encoder.hidden", "hidden", "logits"} <= set(record) == set(expected)
    with trace(model) as by_parts:  # as scoring and decoding call it
        model.target.hidden(given.inputs, model.encode(given.source, given.mask, given.words))
    assert set(by_parts) == set(expected) - {"logits"}


def test_a_captioner_is_recorded() -> None:
    model = tiny_captioner(tiny_captions(), "convolution to lstm").eval()
    seen = torch.randint(256, (1, 3, SIZE, SIZE), dtype=torch.uint8)
    inputs = torch.tensor([[0, 1, 2]])
    with trace(model) as record:
        traced = model(seen, inputs)
    torch.testing.assert_close(traced, model(seen, inputs), rtol=0, atol=1e-5)
    assert record["layers.0.cross_attention"].shape[:3] == (1, 1, 3)


def test_a_block_in_which_the_model_never_ran_says_so(model: Any) -> None:
    with pytest.raises(RegardError, match="Nothing was recorded: the model did not run inside the block"), trace(model):
        pass


def test_an_error_inside_the_block_is_not_hidden_by_the_empty_record(model: Any) -> None:
    with pytest.raises(ZeroDivisionError), trace(model):
        raise ZeroDivisionError


FOUND = Trace(
    ("<eos>", "<b>", "sat"),
    np.array([0.0, 1.5, 2.5]),
    {"order": np.array([1, 2, 3]), "layers.0.cell": np.eye(3, 2), "layers.0.attention": np.ones((2, 3, 3)) / 3},
)


def test_a_notebook_shows_a_short_table_in_which_all_is_escaped() -> None:
    html = FOUND._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert "layers.0.attention" in html
    assert "2 × 3 × 3" in html
    long = Trace(("w",) * 500, np.zeros(500), {})._repr_html_()
    assert long.count("<tr>") < 30
    assert "480 more" in long


class FakePandas(ModuleType):
    """As much of pandas as `to_frame` calls."""

    @staticmethod
    def DataFrame(data: Any, index: Any = None, columns: Any = None) -> Any:  # noqa: N802
        return SimpleNamespace(data=data, index=index, columns=columns)

    class MultiIndex:
        @staticmethod
        def from_product(parts: Any, names: Any) -> Any:
            return SimpleNamespace(parts=parts, names=names)


def test_a_frame_has_a_row_for_every_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", FakePandas("pandas"))
    frame: Any = FOUND.to_frame()
    assert frame.data["token"] == ["<eos>", "<b>", "sat"]
    assert frame.data["nats"].tolist() == [0.0, 1.5, 2.5]
    assert frame.data["order"].tolist() == [1, 2, 3]
    assert set(frame.data) == {"token", "nats", "order"}
    cells: Any = FOUND.to_frame("layers.0.cell")
    assert (cells.data.shape, cells.index) == ((3, 2), ["<eos>", "<b>", "sat"])
    heads: Any = FOUND.to_frame("layers.0.attention")
    assert (heads.data.shape, heads.index.names) == ((6, 3), ["head", "token"])
    with pytest.raises(RegardError, match=r"There is no tap 'layers\.0\.cel'"):
        FOUND.to_frame("layers.0.cel")


def test_a_notebook_draws_the_last_layers_attention() -> None:
    html = FOUND._repr_html_()
    assert html.count("<rect") == 9
    assert "&lt;b&gt; → &lt;eos&gt;: 0.333" in html
    assert "<svg" not in Trace(("w",), np.zeros(1), {})._repr_html_()


def test_the_columns_of_a_decoders_attention_are_its_source_and_its_inputs() -> None:
    found = Trace(
        ("das", "haus", ""),
        np.zeros(3),
        {"layers.0.cross_attention": np.ones((1, 3, 2)), "layers.0.attention": np.ones((1, 3, 3))},
        inputs=("<eos>", "das", "haus"),
        sources=("the", "house"),
    )
    assert found.columns_of("layers.0.cross_attention") == ["the", "house"]
    assert found.columns_of("layers.0.attention") == ["<eos>", "das", "haus"]
    assert found.rows_of("encoder.layers.0.hidden") == ["the", "house"]
    assert found.rows_of("layers.0.cross_key") == ["the", "house"]


def test_without_pandas_a_frame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(RegardError, match="to_frame needs pandas, which is not installed: pip install pandas"):
        FOUND.to_frame()


def test_a_value_that_is_replaced_changes_what_a_score_computes(model: Any) -> None:
    scorer = GradientNextToken(model)
    plain = scorer.nats(IDS)
    with trace(model, replace={"hidden": lambda h: 0 * h}):
        flat = scorer.nats(IDS)
    np.testing.assert_allclose(flat, np.full(len(IDS), np.log(V)), rtol=0, atol=1e-12)  # b is 0: all tokens alike
    np.testing.assert_allclose(scorer.nats(IDS), plain, rtol=0, atol=0)
    own = Taps()
    with trace(model, replace={"hidden": 0.0}):
        model(torch.tensor([[0, 3, 1]]), None, own)
    assert own["hidden"].abs().max() == 0  # also where a caller keeps a record of its own


def test_replacing_what_the_model_never_computes_is_an_error(model: Any) -> None:
    with (
        pytest.raises(RegardError, match=r"no value 'layers\.7\.hidden' to replace"),
        trace(model, replace={"layers.7.hidden": 0.0}),
    ):
        model(torch.tensor([[0, 3, 1]]))


def test_while_it_is_recorded_no_other_engine_and_no_replay_computes(model: Any) -> None:
    with trace(model) as outer, trace(model):
        model(torch.tensor([[0, 3]]))
        assert is_recorded(model)
    assert list(outer)
    assert not is_recorded(model)
    with pytest.raises(RegardError, match="A Linear cannot be recorded"), trace(torch.nn.Linear(2, 2)):
        pass


def test_an_engine_that_hides_its_values_is_left_aside_while_recording() -> None:
    run: Any = tiny_pair_run()

    def refuse(*given: Any) -> Any:
        raise AssertionError("the engine was asked")

    run.engine = SimpleNamespace(search=refuse)
    with trace(run) as record:
        run.translate("the dog sleeps", beam=1)
    assert "encoder.hidden" in record
    with pytest.raises(AssertionError, match="the engine was asked"):
        run.translate("the dog sleeps", beam=1)
