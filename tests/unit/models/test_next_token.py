from collections.abc import Callable

import numpy as np
import pytest
import torch

from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.models.gradient_next_token import GradientNextToken, as_next_token, windows
from regard.models.language_model import LanguageModel
from regard.models.next_token import CountNextToken, NextToken, context_length

Tiny = Callable[..., LanguageModel]
STREAM = np.array([1, 2, 3, 0, 1, 2, 2, 0, 3, 3, 1, 0])


def counted(order: int = 3) -> NgramModel:
    return NgramModel.fit(NgramConfig(order=order), STREAM, vocab_size=4, unk=None)


def test_a_full_context_drops_its_older_half() -> None:
    assert [context_length(n, limit=4, stride=2) for n in (4, 5, 6, 7)] == [4, 3, 4, 3]
    assert [context_length(n, limit=5, stride=1) for n in (4, 5, 6, 7)] == [4, 5, 5, 5]
    assert [context_length(n, limit=1, stride=1) for n in (1, 2, 3)] == [1, 1, 1]


@pytest.mark.parametrize(("limit", "stride"), [(4, 2), (5, 1), (3, 3), (1, 1), (7, 4)])
@pytest.mark.parametrize("T", [1, 3, 4, 5, 8, 23])
def test_windows_score_every_token_once_with_the_context_of_the_rule(T: int, limit: int, stride: int) -> None:
    seen: dict[tuple[int, int], int] = {}
    for rows, starts, length, skip in windows(2, T, limit, stride):
        for row, start in zip(rows.tolist(), starts.tolist(), strict=True):
            for offset in range(skip, length):
                assert (row, start + offset) not in seen
                seen[row, start + offset] = offset + 1
    expected = {(row, t): context_length(t + 1, limit, stride) for row in range(2) for t in range(T)}
    assert seen == expected


def test_a_stride_beyond_the_window_is_refused(tiny_model: Tiny) -> None:
    model = as_next_token(tiny_model("transformer"))
    with pytest.raises(RegardError, match="stride must be between 1 and the model's max_context 7, not 8"):
        model.nats(STREAM, stride=8)


def test_a_smaller_stride_gives_every_token_at_least_as_much_context(tiny_model: Tiny) -> None:
    model = tiny_model("transformer")
    ids = np.random.default_rng(0).integers(0, 11, 20)
    nats = GradientNextToken(model).nats(ids, stride=1)
    text = torch.tensor([0, *ids.tolist()])
    for t in range(7, 20):  # a stride of one: always the last 7 tokens
        log_probs = model(text[None, t - 6 : t + 1])[0][0, -1].log_softmax(-1)
        assert abs(nats[t] + log_probs[ids[t]].item()) < 1e-12


def test_the_first_token_is_predicted_from_eos(tiny_model: Tiny) -> None:
    model = tiny_model("lstm")
    log_probs = model(torch.tensor([[0]]))[0][0, 0].log_softmax(-1)
    assert abs(as_next_token(model).nats(np.array([5]))[0] + log_probs[5].item()) < 1e-12


@pytest.mark.parametrize("name", ["lstm", "transformer", "ngram"])
def test_an_empty_text_costs_nothing(tiny_model: Tiny, name: str) -> None:
    model: NextToken = as_next_token(counted() if name == "ngram" else tiny_model(name))
    assert model.nats(np.zeros(0, dtype=np.int64)).shape == (0,)
    assert model.nats_of_windows(np.zeros((0, 5), dtype=np.int64)).shape == (0, 4)


def test_lanes_change_only_what_each_lane_cannot_know(tiny_model: Tiny) -> None:
    model = tiny_model("window")  # sees three tokens, so a lane has caught up after two
    ids = np.random.default_rng(0).integers(0, 11, 21)
    one, three = GradientNextToken(model).nats(ids), GradientNextToken(model, n_lanes=3).nats(ids)
    is_same = np.isclose(one, three, rtol=0, atol=1e-12)
    assert (~is_same).nonzero()[0].tolist() == [7, 8, 14, 15]


def test_lanes_that_do_not_divide_the_text_score_all_of_it(tiny_model: Tiny) -> None:
    model = tiny_model("lstm")
    ids = np.random.default_rng(0).integers(0, 11, 20)
    assert GradientNextToken(model, n_lanes=3).nats(ids).shape == (20,)


def test_windows_are_scored_given_their_own_tokens_alone(tiny_model: Tiny) -> None:
    model = tiny_model("gru")
    pieces = np.random.default_rng(0).integers(0, 11, (3, 6))
    log_probs = model(torch.from_numpy(pieces[:, :-1]))[0].log_softmax(-1)
    expected = -log_probs.gather(2, torch.from_numpy(pieces[:, 1:, None])).squeeze(2)
    given = as_next_token(model).nats_of_windows(pieces)
    torch.testing.assert_close(torch.from_numpy(given), expected.detach(), rtol=0, atol=1e-12)


def test_ngrams_and_networks_share_one_protocol() -> None:
    model = as_next_token(counted())
    assert isinstance(model, CountNextToken)
    log_probs, state = model.start(torch.tensor([[1, 2], [3, 0]]))
    np.testing.assert_array_equal(log_probs[0].numpy(), counted().next_log_probs([1, 2]))
    _, state = model.step(torch.tensor([3, 1]), model.reorder(state, torch.tensor([1, 0])))
    assert state == ((0, 3), (2, 1))


def test_windows_of_an_ngram_model_drop_the_first_token() -> None:
    pieces = np.stack([STREAM[:4], STREAM[4:8]])
    given = as_next_token(counted()).nats_of_windows(pieces)
    np.testing.assert_array_equal(given[1], counted().nats(STREAM[4:8])[1:])


def test_the_adapter_reads_a_model_as_it_is_evaluated(tiny_model: Tiny) -> None:
    model = tiny_model("lstm", p_dropout=0.5).train()
    adapter = as_next_token(model)
    assert not model.training
    np.testing.assert_array_equal(adapter.nats(STREAM), adapter.nats(STREAM))


@pytest.mark.parametrize("name", ["gru", "transformer"])
def test_room_for_many_tokens_changes_the_layout_of_weights_and_nothing_else(tiny_model: Tiny, name: str) -> None:
    model = GradientNextToken(tiny_model(name))
    prompt = torch.tensor([[1, 2]])
    (some, short), (same, long) = model.start(prompt), model.start(prompt, capacity=100)
    assert short.head.is_contiguous()
    assert not long.head.is_contiguous()
    for token in range(10):
        torch.testing.assert_close(some, same, rtol=0, atol=1e-12)
        some, short = model.step(torch.tensor([token]), short)
        same, long = model.step(torch.tensor([token]), long)
