"""The decoder of convolutions: how far it hears, and that every layer looks at the source."""

import torch

from regard.kernels.state import Shared
from regard.mixers.convolution_decoder import ConvolutionDecoder, Written


def tiny_decoder(n_layers: int, seed: int = 0) -> ConvolutionDecoder:
    torch.manual_seed(seed)
    decoder = ConvolutionDecoder(4, n_layers).double()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return decoder


def test_a_word_hears_of_as_many_words_before_it_as_the_windows_reach() -> None:
    """Windows of 3, 1 and 2 steps apart, reach 2 + 4 = 6 words back: position 9 hears of 3 and not of 2."""
    decoder, mask = tiny_decoder(2), torch.ones(1, 3, dtype=torch.bool)
    states, x = torch.randn(1, 3, 4, dtype=torch.float64), torch.randn(1, 10, 4, dtype=torch.float64)
    y, _, _ = decoder(x, decoder.start(states, mask, (), None))
    for changed, is_heard in ((2, False), (3, True)):
        other = x.clone()
        other[:, changed] += 1
        z, _, _ = decoder(other, decoder.start(states, mask, (), None))
        assert torch.equal(z[:, 9], y[:, 9]) is not is_heard
        assert torch.equal(z[:, :changed], y[:, :changed])


def test_every_layer_adds_what_it_finds_in_the_source() -> None:
    """With silent convolutions and values of (1, 2, 3, 4), two layers add them twice, whatever the weights are."""
    decoder = ConvolutionDecoder(4, 2).double()
    for parameter in decoder.parameters():
        torch.nn.init.zeros_(parameter)
    found = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    for block in decoder.layers:
        with torch.no_grad():
            block.cross_attention.kv.bias[4:] = found
            block.cross_attention.out.weight.copy_(torch.eye(4))
    decoder.norm = torch.nn.Identity()  # type: ignore[assignment]
    x, mask = torch.zeros(1, 2, 4, dtype=torch.float64), torch.tensor([[True, True, False]])
    sources = tuple(block.cross_attention.keys_and_values(torch.randn(1, 3, 4).double()) for block in decoder.layers)
    pasts = tuple(block.past.convolution.start(1, x) for block in decoder.layers)
    y, _, _ = decoder(x, Written(pasts, Shared((sources, mask))))
    torch.testing.assert_close(y, (2 * found).expand(1, 2, 4), rtol=0, atol=1e-12)


def test_its_state_does_not_grow_with_the_target() -> None:
    decoder, mask = tiny_decoder(3), torch.ones(2, 3, dtype=torch.bool)
    state = decoder.start(torch.randn(2, 3, 4, dtype=torch.float64), mask, (), 100)
    sizes = [tuple(past.shape) for past in state.pasts]
    assert sizes == [(2, 2, 4), (2, 4, 4), (2, 8, 4)]
    _, _, after = decoder(torch.randn(2, 5, 4, dtype=torch.float64), state)
    assert [tuple(past.shape) for past in after.pasts] == sizes
