"""Pictures in, captions out, a batch at a time; and which places of a picture each word attends to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.decode.beam import beam_search
from regard.decode.config import BeamConfig
from regard.layers.taps import Taps
from regard.models.captioner import Captioner
from regard.models.seq2seq_next_token import Translating
from regard.text.tokenizer import Tokenizer

MAX_LENGTH = 50
"""The longest caption in tokens, unless told otherwise."""


@dataclass(frozen=True)
class Caption:
    """What is said of a picture. `tokens` are without the end mark; `score` is log P over the length penalty."""

    text: str
    tokens: tuple[int, ...]
    log_prob: float
    score: float


@torch.inference_mode()
def write_captions(model: Captioner, tokenizer: Tokenizer, seen: Tensor, config: BeamConfig) -> list[list[Caption]]:
    """Write the best captions of each of B pictures, best first; `seen` is what `Captioner.encode` takes."""
    limit = config.max_length or MAX_LENGTH  # a picture has no length that a caption could be a multiple of
    limit = limit if model.max_context is None else min(limit, model.max_context)
    stepper = Translating(model.eval().target, start=tokenizer.eos)
    log_probs, state = stepper.begin_from(model.encode(seen.to(model.embedding.device)), limit)
    found = beam_search(stepper, log_probs, state, config, max_lengths=limit, stop=tokenizer.eos)
    return [[_make_caption(h.tokens, h.log_prob, h.score, tokenizer) for h in best] for best in found]


def _make_caption(tokens: Sequence[int], log_prob: float, score: float, tokenizer: Tokenizer) -> Caption:
    kept = tuple(token for token in tokens if token != tokenizer.eos)
    return Caption(tokenizer.decode(kept).strip(), kept, log_prob, score)


@torch.inference_mode()
def measure_attention(
    model: Captioner, tokenizer: Tokenizer, seen: Tensor, tokens: Sequence[int]
) -> NDArray[np.float64]:
    """Find the weights (T, S) on the places of one picture, a row for each token; without any, one for the end.

    They are the mean over the heads of the last layer that attends to the picture.
    """
    device = model.embedding.device
    inputs = torch.tensor([[tokenizer.eos, *tokens[:-1]]], device=device)
    record = Taps()
    model.eval().target.hidden(inputs, model.encode(seen.to(device)), None, record)
    layers = list(record.named("cross_attention").values())  # (1, N, T, S) each, the lowest layer first
    assert layers, "this model attends to nothing"
    weights: NDArray[np.float64] = layers[-1][0].mean(dim=0).double().cpu().numpy()
    return weights
