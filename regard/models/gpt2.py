"""GPT-2: the Transformer decoder in its four published sizes."""

from __future__ import annotations

import math

from torch import nn

from regard.errors import RegardError
from regard.mixers.transformer import transformer
from regard.models.gpt2_config import GPT2Config
from regard.models.language_model import LanguageModel

WIDTH_OF_SMALL = 768


def gpt2(config: GPT2Config, vocab_size: int) -> LanguageModel:
    """h = norm(block_L(... block_1(E w + P))),  P(w_{t+1}) = softmax(E h_t)  (Radford et al. 2019).

    block(x):  x = x + attention(norm(x)),  x = x + W_2 gelu(W_1 norm(x))

    It starts as GPT-2 did: N(0, 0.02²), and 0.02²/(2L) for the matrices whose product is added to x. Embeddings that
    are narrower than any of GPT-2's start larger in proportion to 1/√D, as the Transformer's do.
    """
    shape = config.transformer()
    if config.n_rows is not None and config.n_rows < vocab_size:
        raise RegardError(
            f"model.n_rows is {config.n_rows}, and the tokenizer has {vocab_size} tokens: each needs a row. "
            f"Leave n_rows out, or set it to {vocab_size} or more."
        )
    mixer = transformer(shape)
    for part in mixer.modules():
        if isinstance(part, nn.LayerNorm):
            part.eps = config.epsilon
    return LanguageModel(
        vocab_size,
        shape.d_model,
        mixer,
        tie_embeddings=config.tie_embeddings,
        has_bias=False,
        std=0.02 * math.sqrt(max(1.0, WIDTH_OF_SMALL / shape.d_model)),
        n_rows=config.n_rows,
    )
