"""A decoder of our own learns to say what is where, through every encoder that is trained from nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from regard.layers.bridge import Bridge, mean_state
from regard.models.captioner_config import CaptionerConfig
from regard.models.picture_encoder import picture_encoder, source_of
from regard.models.seq2seq_assemblies import conditional_language_model
from regard.models.seq2seq_config import Seq2SeqConfig
from regard.models.source import Source

SIZE, D = 16, 32
COLOURS = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
CONVOLUTION = CaptionerConfig(encoder="convolution", d_model=D, d_first=16, n_halvings=2)
PATCHES = CaptionerConfig(encoder="patches", d_model=D, patch=4, n_encoder_layers=2, n_heads=4)


def scenes() -> tuple[Tensor, Tensor, Tensor]:
    """A square of one of three colours in one of four corners; said as `colour corner <eos>`, words 1-3 and 4-7."""
    pictures, said = [], []
    for colour, rgb in enumerate(COLOURS):
        for corner in range(4):
            picture = torch.full((3, SIZE, SIZE), 0.5)
            y, x = corner // 2 * 10 + 1, corner % 2 * 10 + 1
            picture[:, y : y + 4, x : x + 4] = torch.tensor(rgb)[:, None, None]
            pictures.append(picture)
            said.append([1 + colour, 4 + corner, 0])
    targets = torch.tensor(said)
    inputs = torch.cat([torch.zeros_like(targets[:, :1]), targets[:, :-1]], dim=1)
    return torch.stack(pictures), inputs, targets


@pytest.mark.parametrize(
    ("config", "decoder"), [(CONVOLUTION, "lstm"), (PATCHES, "transformer")], ids=["convolution", "patches"]
)
def test_colour_and_place_are_learned_and_said(config: CaptionerConfig, decoder: str) -> None:
    torch.manual_seed(0)
    encoder = picture_encoder(config, SIZE)
    settings = Seq2SeqConfig(decoder=decoder, d_model=D, n_layers=1, n_heads=4, p_dropout=0.0, max_context=8)
    language = conditional_language_model(settings, vocab_size=8)
    bridge = Bridge(D, 1, 1, has_cell=True)
    pictures, inputs, targets = scenes()
    mask = torch.ones_like(targets, dtype=torch.bool)

    def read() -> Source:
        source = source_of(encoder(pictures))
        start = bridge((mean_state(source.states, source.mask),)) if decoder == "lstm" else ()
        return source._replace(start=start)

    optimizer = torch.optim.Adam(nn.ModuleList([encoder, language, bridge]).parameters(), lr=5e-3)
    for _ in range(150):
        h, _ = language.hidden(inputs, read())
        nats, n = language.goal_of(h, targets, mask)[1], mask.sum()
        optimizer.zero_grad()
        (nats / n).backward()
        optimizer.step()
        if nats / n < 0.02:
            break
    with torch.no_grad():
        log_probs = language(inputs, read())
    assert (log_probs.argmax(dim=-1) == targets).all()
    assert nats / n < 0.02
