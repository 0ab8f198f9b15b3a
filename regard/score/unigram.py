"""The simplest language model there is: how often each token stands in the training text, whatever stands before it."""

from __future__ import annotations

import numpy as np

from regard.data.stream import Stream
from regard.score.blocks import TestText
from regard.text.tokenizer import Tokenizer

MAX_TOKENS = 2**24  # of the training text: more hardly move a frequency


def unigram_bits_per_byte(train: Stream, tokenizer: Tokenizer, test: TestText) -> float:
    """Bits per byte of a test text under p(w) = (n(w) + 1) / (N + V), n counted in the training text."""
    counts = np.bincount(train[:MAX_TOKENS], minlength=tokenizer.vocab_size) + 1.0
    ends = test.ends or (True,) * len(test.documents)
    ids = tokenizer.encode_documents(list(zip(test.documents, ends, strict=True)))
    return float(-np.log2(counts / counts.sum())[ids].sum() / test.n_bytes)
