"""The two mixers without recurrence or attention, by hand."""

import torch

from regard.mixers.bag import Bag
from regard.mixers.config import BagConfig, WindowConfig
from regard.mixers.window import Window


def test_the_bag_reads_the_running_average() -> None:
    mixer = Bag(BagConfig(d_model=2, d_hidden=2, n_layers=1)).double()
    with torch.no_grad():
        for layer in (mixer.layers[0], mixer.out):
            layer.weight.copy_(torch.eye(2))
            layer.bias.zero_()
    x = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]]).double()  # A A B A
    y, state = mixer(x)
    expected = [[1, 0], [1, 0], [2 / 3, 1 / 3], [3 / 4, 1 / 4]]
    torch.testing.assert_close(y[0], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-15)
    assert state is None


def test_the_order_of_the_past_is_lost_on_a_bag() -> None:
    torch.manual_seed(0)
    mixer = Bag(BagConfig(d_model=4, d_hidden=8)).double()
    x = torch.randn(1, 6, 4, dtype=torch.float64)
    y, _ = mixer(x)
    shuffled, _ = mixer(x[:, [3, 1, 0, 2, 4, 5]])
    torch.testing.assert_close(shuffled[:, 3:], y[:, 3:], rtol=0, atol=1e-14)


def test_the_window_sets_the_last_vectors_side_by_side_oldest_first() -> None:
    mixer = Window(WindowConfig(d_model=1, d_hidden=1, n_window=3)).double()
    with torch.no_grad():
        mixer.hidden.weight.copy_(torch.tensor([[100.0, 10.0, 1.0]]))
        mixer.hidden.bias.zero_()
        mixer.out.weight.fill_(1.0)
        mixer.out.bias.zero_()
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)[None, :, None] / 1000
    y, state = mixer(x)
    expected = torch.tensor([0.001, 0.012, 0.123, 0.234], dtype=torch.float64).tanh()  # zeros stand before the text
    torch.testing.assert_close(y.flatten(), expected, rtol=0, atol=1e-15)
    assert state.flatten().tolist() == x.flatten()[-2:].tolist()


def test_a_window_keeps_each_vector_whole() -> None:
    mixer = Window(WindowConfig(d_model=2, d_hidden=4, n_window=2)).double()
    with torch.no_grad():
        mixer.hidden.weight.copy_(torch.eye(4))
        mixer.hidden.bias.zero_()
        mixer.out.weight.copy_(torch.tensor([[1000.0, 100.0, 10.0, 1.0]] * 2))
        mixer.out.bias.zero_()
    x = torch.tensor([[[1e-9, 2e-9], [3e-9, 4e-9]]], dtype=torch.float64)  # so small that tanh leaves them alone
    y, _ = mixer(x)
    expected = torch.tensor([12e-9, 1234e-9], dtype=torch.float64)  # [0 0; 1 2], then [1 2; 3 4]
    torch.testing.assert_close(y[0, :, 0], expected, rtol=0, atol=1e-20)


def test_a_window_sees_no_further_than_n_tokens() -> None:
    torch.manual_seed(0)
    mixer = Window(WindowConfig(d_model=4, d_hidden=8, n_window=3)).double()
    x = torch.randn(1, 6, 4, dtype=torch.float64)
    changed = x.clone()
    changed[:, 2] += 1
    different = (mixer(x)[0] != mixer(changed)[0]).any(dim=-1)[0]
    assert different.tolist() == [False, False, True, True, True, False]


def test_a_window_of_one_token_has_no_past() -> None:
    mixer = Window(WindowConfig(d_model=4, d_hidden=8, n_window=1))
    _, state = mixer(torch.randn(2, 5, 4))
    assert state.shape == (2, 0, 4)
