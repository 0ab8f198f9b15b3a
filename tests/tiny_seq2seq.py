"""Small encoder-decoder models and pairs for tests."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from regard.models.seq2seq import Seq2Seq
from regard.models.seq2seq_assemblies import seq2seq
from regard.models.seq2seq_config import Seq2SeqConfig

V, V_SOURCE = 11, 13
TINY = {"d_model": 8, "n_layers": 2, "n_heads": 2, "d_ff": 12, "max_context": 9, "p_dropout": 0.0}

VARIANTS: list[dict[str, object]] = [
    {},
    {"norm": "post", "positions": "learned", "activation": "gelu", "tying": "none"},
    {"copies": True, "positions": "none", "n_layers": [1, 2]},
    {"encoder": "lstm", "decoder": "lstm", "attention": "none"},
    {"encoder": "rnn", "decoder": "gru", "attention": "none", "is_bidirectional": False, "n_layers": [1, 3]},
    {"encoder": "gru", "decoder": "rnn", "attention": "dot", "n_layers": [3, 1]},
    {"encoder": "lstm", "decoder": "lstm", "attention": "bilinear", "input_feeding": True, "tying": "none"},
    {"encoder": "rnn", "decoder": "rnn", "attention": "mlp", "input_feeding": True, "copies": True},
    {"encoder": "gru", "decoder": "gru", "attention": "scaled-dot", "copies": True, "input_feeding": True},
    {"encoder": "transformer", "decoder": "lstm", "attention": "mlp", "norm": "post"},
    {"encoder": "lstm", "decoder": "transformer", "is_bidirectional": False},
    {"encoder": "convolution", "decoder": "transformer", "norm": "post"},
    {"encoder": "convolution", "decoder": "gru", "attention": "dot", "n_layers": 3},
    {"encoder": "convolution", "decoder": "convolution"},
    {"encoder": "lstm", "decoder": "convolution", "copies": True, "n_layers": [1, 3], "tying": "none"},
    {"encoder": "bag", "decoder": "transformer"},
    {"encoder": "bag", "decoder": "rnn", "attention": "none"},
    {"encoder": "bag", "decoder": "lstm", "attention": "mlp", "copies": True},
]


def tiny_config(**changes: object) -> Seq2SeqConfig:
    return Seq2SeqConfig.from_dict(TINY | changes)


def tiny_seq2seq(seed: int = 0, **changes: object) -> Seq2Seq:
    """In float64, and with weights large enough to matter."""
    config = tiny_config(**changes)
    model = seq2seq(config, V, V if config.tying == "all" else V_SOURCE).double()
    draws = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=draws)
    return model


class Pair(NamedTuple):
    source: Tensor
    mask: Tensor
    words: Tensor | None
    inputs: Tensor
    targets: Tensor
    target_mask: Tensor


def pairs(
    seed: int, lengths: list[int], target_lengths: list[int] | None = None, copies: bool = False, n_padded: int = 0
) -> Pair:
    """A row for each length; words of copying models go up to two beyond the vocabulary."""
    draws = torch.Generator().manual_seed(seed)
    target_lengths = lengths if target_lengths is None else target_lengths
    B, S, T = len(lengths), max(lengths) + n_padded, max(target_lengths) + n_padded
    source = torch.randint(V, (B, S), generator=draws)
    mask = torch.arange(S) < torch.tensor(lengths)[:, None]
    words = torch.randint(V + 2, (B, S), generator=draws).where(mask, -1) if copies else None
    targets = torch.randint(V + 2 if copies else V, (B, T), generator=draws)
    inputs = torch.cat([torch.zeros(B, 1, dtype=torch.int64), targets[:, :-1]], dim=1)
    return Pair(source, mask, words, inputs, targets, torch.arange(T) < torch.tensor(target_lengths)[:, None])
