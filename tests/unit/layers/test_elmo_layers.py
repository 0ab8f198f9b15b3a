"""The layers that ELMo is made of, against their equations written out."""

import pytest
import torch
from torch import Tensor

from regard.layers.character_cnn import CharacterCNN
from regard.layers.highway import Highway
from regard.layers.projected_lstm import ProjectedLSTM
from regard.layers.scalar_mix import ScalarMix
from regard.layers.taps import Taps


def test_a_closed_highway_carries_and_an_open_one_transforms() -> None:
    highway = Highway(2).double()
    with torch.no_grad():
        highway.transform.weight.copy_(torch.tensor([[2.0, 0.0], [0.0, -3.0]]))
        highway.gate.weight.zero_()
        highway.gate.bias.copy_(torch.tensor([0.0, 0.0]))
    x = torch.tensor([[1.0, 4.0]], dtype=torch.float64)
    # half of relu(2, -12) = (2, 0), half of (1, 4)
    torch.testing.assert_close(highway(x), torch.tensor([[1.5, 2.0]], dtype=torch.float64), rtol=0, atol=1e-15)


def test_the_character_cnn_is_a_maximum_over_all_windows() -> None:
    torch.manual_seed(0)
    cnn = CharacterCNN(7, 3, [(1, 2), (2, 4)], 1, 5, "tanh").double()
    word = torch.tensor([[1, 4, 2, 6, 6]])
    E = cnn.embedding[word[0]]  # (5, 3)
    found = []
    for convolution in cnn.convolutions:
        width = convolution.kernel_size[0]  # type: ignore[union-attr]
        values = [
            torch.einsum("nec,ce->n", convolution.weight, E[i : i + width]) + convolution.bias  # type: ignore[operator]
            for i in range(5 - width + 1)
        ]
        found.append(torch.stack(values).amax(dim=0).tanh())
    expected = cnn.project(cnn.highways[0](torch.cat(found)))
    torch.testing.assert_close(cnn(word)[0], expected, rtol=0, atol=1e-14)


def plain_steps(layer: ProjectedLSTM, x: Tensor, cell_clip: float, clip: float) -> Tensor:
    W, U, b, b2, P = layer.kernel.all_weights[0]
    h, c, H = x.new_zeros(layer.d_out), x.new_zeros(layer.d_hidden), layer.d_hidden
    outputs = []
    for each in x:
        z = W @ each + b + U @ h + b2
        c = z[H : 2 * H].sigmoid() * c + z[:H].sigmoid() * z[2 * H : 3 * H].tanh()
        c = c.clamp(-cell_clip, cell_clip)
        h = (P @ (z[3 * H :].sigmoid() * c.tanh())).clamp(-clip, clip)
        outputs.append(h)
    return torch.stack(outputs)


def test_cells_and_projections_are_clipped_at_every_step() -> None:
    torch.manual_seed(0)
    layer = ProjectedLSTM(3, 6, 2, cell_clip=0.3, projection_clip=0.05).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    x, taps = torch.randn(2, 7, 3, dtype=torch.float64), Taps()
    y, (h, c) = layer(x, None, taps)
    for row in range(2):
        torch.testing.assert_close(y[row], plain_steps(layer, x[row], 0.3, 0.05), rtol=0, atol=1e-14)
    assert y.abs().max() == 0.05
    assert taps["cell"].abs().max() == 0.3
    torch.testing.assert_close(c, taps["cell"][:, -1], rtol=0, atol=0)
    torch.testing.assert_close(h, y[:, -1], rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
def test_without_clipping_it_is_the_lstm_of_torch() -> None:
    torch.manual_seed(0)
    layer = ProjectedLSTM(3, 6, 2).double()
    x, state = torch.randn(2, 7, 3, dtype=torch.float64), (torch.randn(2, 2).double(), torch.randn(2, 6).double())
    y, after = layer.kernel(x, tuple(part[None] for part in state))
    ours, (h, c) = layer(x, state)
    torch.testing.assert_close((ours, h[None], c[None]), (y, *after), rtol=0, atol=1e-13)


def test_a_mix_weighs_layers_by_their_softmax_and_scales_the_sum() -> None:
    mix = ScalarMix(3).double()
    layers = [torch.full((1, 1, 2), float(n), dtype=torch.float64) for n in (1, 2, 6)]
    torch.testing.assert_close(mix(layers), torch.full((1, 1, 2), 3.0, dtype=torch.float64), rtol=0, atol=1e-15)
    with torch.no_grad():
        mix.weight.copy_(torch.tensor([0.0, 2.0, 1.0]).log())
        mix.scale.fill_(10.0)
    torch.testing.assert_close(mix.shares, torch.tensor([0, 2 / 3, 1 / 3], dtype=torch.float64), rtol=0, atol=1e-7)
    torch.testing.assert_close(mix(layers)[0, 0, 0].item(), 10 * (2 * 2 / 3 + 6 / 3), rtol=0, atol=1e-5)
