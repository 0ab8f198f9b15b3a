"""The word vectors that the weights of a trained run stand for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from regard.errors import RegardError
from regard.models.subwords import SubwordIndex, bucket_ids
from regard.models.word_vectors import Matrix, WordVectors
from regard.models.word_vectors_config import GloVeConfig, Word2VecConfig
from regard.settings import Settings
from regard.text.tokenizer import Tokenizer

N_SPECIAL = 2
"""<eos> and <unk>, ids 0 and 1, are no words."""


def compose_vectors(config: Settings, weights: Mapping[str, Tensor], tokenizer: Tokenizer) -> WordVectors:
    """Words and their vectors, most frequent first, without <eos> and <unk>. `config` is that of the model."""
    words = [tokenizer.token_text(i) for i in range(tokenizer.vocab_size)]
    rows = _read_rows(weights, "words")
    if len(rows) != len(words):
        raise RegardError(
            f"The tokenizer has {len(words):,} words, and there are vectors of {len(rows):,}. One of the two files "
            "belongs to another run, or is damaged."
        )
    if isinstance(config, GloVeConfig):
        rows = (rows + _read_rows(weights, "contexts"))[:, :-1]  # the last column is the bias
    if not isinstance(config, Word2VecConfig) or not config.has_subwords:
        return WordVectors(words[N_SPECIAL:], np.ascontiguousarray(rows[N_SPECIAL:].numpy()))
    grams = _read_rows(weights, "subwords")
    index = SubwordIndex.of(words, config.min_n, config.max_n, config.n_buckets)
    composed = [index.compose(rows[ids], grams, ids) for ids in torch.split(torch.arange(len(words)), 4096)]

    def compose(word: str) -> Matrix | None:
        """The mean of the rows of an unseen word's n-grams."""
        ids = bucket_ids(word, config.min_n, config.max_n, config.n_buckets)
        return np.asarray(grams[ids].mean(dim=0).numpy()) if ids else None

    return WordVectors(words[N_SPECIAL:], np.ascontiguousarray(torch.cat(composed)[N_SPECIAL:].numpy()), compose)


def _read_rows(weights: Mapping[str, Tensor], name: str) -> Tensor:
    """One of the matrices of trained vectors."""
    if name not in weights:
        raise RegardError(
            f"The weights have no '{name}', which these vectors are made of. config.yaml or the weights belong to "
            "another run: copy the whole folder again."
        )
    return weights[name].float().cpu()
