import pytest
import torch
from table_stepper import TableStepper

from regard.decode.stepper import Ensemble, mean_log_probs
from regard.errors import RegardError


def test_an_ensemble_means_probabilities_and_not_their_logarithms() -> None:
    first, second = torch.tensor([[0.9, 0.1, 0.0]]), torch.tensor([[0.1, 0.3, 0.6]])
    mean = mean_log_probs([first.log(), second.log()]).exp()
    torch.testing.assert_close(mean, torch.tensor([[0.5, 0.2, 0.3]]))


def test_each_model_keeps_its_own_state() -> None:
    one, other = TableStepper(V=3, seed=1), TableStepper(V=3, seed=2)
    both = Ensemble([one, other])
    _, state = both.start([one.start([7, 8]), other.start([7, 8])])
    rows, tokens = torch.tensor([1, 1, 0]), torch.tensor([0, 1, 2])
    log_probs, state = both.step(tokens, both.reorder(state, rows))
    assert state == (((8, 0), (8, 1), (7, 2)),) * 2
    expected = (one.row((8, 1)).exp() + other.row((8, 1)).exp()) / 2
    torch.testing.assert_close(log_probs[1].exp(), expected, rtol=0, atol=1e-12)


def test_models_with_other_vocabularies_are_refused() -> None:
    one, other = TableStepper(V=3, seed=1), TableStepper(V=4, seed=2)
    with pytest.raises(RegardError, match=r"must share one vocabulary; these have 3, 4 tokens.*the same tokenizer"):
        Ensemble([one, other]).start([one.start([0]), other.start([0])])


def test_an_ensemble_of_none_is_refused() -> None:
    with pytest.raises(RegardError, match="An ensemble needs one model at least"):
        Ensemble([])
