import torch
from torch import nn

from regard.layers.dropout import LockedDropout, sequence_dropout
from regard.layers.recurrent import RecurrentLayer
from regard.mixers.recurrent import Recurrent


def test_a_mask_is_the_same_at_all_steps_and_another_for_each_sequence() -> None:
    torch.manual_seed(0)
    y = LockedDropout(0.5)(torch.ones(3, 7, 40))
    assert torch.equal(y, y[:, :1].expand_as(y))
    assert not torch.equal(y[0], y[1])
    assert set(y.unique().tolist()) == {0.0, 2.0}


def test_plain_dropout_draws_at_every_step() -> None:
    torch.manual_seed(0)
    y = sequence_dropout(0.5, is_variational=False)(torch.ones(3, 7, 40))
    assert not torch.equal(y[:, 0], y[:, 1])


def test_the_share_that_is_dropped_and_the_mean_are_as_asked() -> None:
    torch.manual_seed(0)
    y = LockedDropout(0.2)(torch.ones(100, 2, 500))
    assert abs((y == 0).float().mean().item() - 0.2) < 0.005  # 50,000 masks: three deviations are 0.0054
    assert abs(y.mean().item() - 1) < 0.007


def test_every_call_draws_again_and_evaluation_drops_nothing() -> None:
    torch.manual_seed(0)
    dropout, x = LockedDropout(0.5), torch.randn(2, 3, 50)
    assert not torch.equal(dropout(x), dropout(x))
    assert torch.equal(dropout.eval()(x), x)


def test_a_variational_stack_locks_the_mask_between_layers_and_on_the_output() -> None:
    torch.manual_seed(0)
    stack = Recurrent([RecurrentLayer("lstm", 6, 6), RecurrentLayer("lstm", 6, 6)], 0.5, is_variational=True)
    seen = []
    stack.layers[1].register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    y, _ = stack(torch.randn(4, 9, 6))
    for values in (seen[0], y):
        is_gone = values == 0
        assert torch.equal(is_gone, is_gone[:, :1].expand_as(is_gone))
        assert 0 < is_gone.float().mean() < 1


def test_dropout_has_no_weights_of_its_own() -> None:
    assert not list(nn.Sequential(LockedDropout(0.5)).parameters())
