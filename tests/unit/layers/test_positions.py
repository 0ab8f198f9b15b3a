import math

import torch

from regard.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions, positions, sinusoids


def test_sinusoids_are_those_of_the_paper() -> None:
    table = sinusoids(2, 4)
    expected = [[0, 1, 0, 1], [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)]]
    torch.testing.assert_close(table, torch.tensor(expected), rtol=0, atol=1e-7)


def test_an_odd_width_keeps_the_last_sine() -> None:
    assert sinusoids(3, 5).shape == (3, 5)


def test_sinusoidal_positions_scale_the_embedding_by_the_root_of_its_width() -> None:
    y = SinusoidalPositions(3, 4)(torch.ones(1, 1, 4), 0)
    torch.testing.assert_close(y[0, 0], torch.tensor([2.0, 3.0, 2.0, 3.0]))


def test_positions_go_on_where_the_cache_ends() -> None:
    for name in ("learned", "sinusoidal"):
        layer = positions(name, 6, 4)
        x = torch.randn(1, 5, 4)
        torch.testing.assert_close(layer(x[:, 2:], 2), layer(x, 0)[:, 2:], rtol=0, atol=0)


def test_no_positions_change_nothing() -> None:
    layer = positions("none", 6, 4)
    x = torch.randn(1, 5, 4)
    assert isinstance(layer, NoPositions)
    assert layer(x, 3) is x


def test_only_learned_positions_are_saved() -> None:
    assert list(LearnedPositions(3, 4).state_dict()) == ["table"]
    assert list(SinusoidalPositions(3, 4).state_dict()) == []
