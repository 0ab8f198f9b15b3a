"""Masked language models side by side: the same rows with the same places masked, for all runs of one vocabulary.

Nats of masked tokens are no nats of a text: they compare where the tokens are the same ones, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from regard.data.cache import key_of
from regard.data.masked_batches import MaskedBatch, MaskedBatches
from regard.data.masked_config import MaskingConfig
from regard.data.stream import Stream
from regard.errors import RegardError
from regard.tasks.masked_objective import EVALUATION_SEED, score_places, take_places
from regard.tasks.test_set import TestSet

N_CONTEXT = 128
"""Tokens of a row, marks included, where the models read as many."""
MAX_TOKENS = 200_000
N_BATCH = 32


def build_masked_test(run: Any, stream: Stream, about: str) -> TestSet:
    """Rows of a text with masked places, as a run of its vocabulary reads them."""
    limit = run.config.train.n_context or run.model.max_positions
    n_context = min(N_CONTEXT, limit)
    stream = Stream.of(stream[0 : min(MAX_TOKENS, len(stream))])
    n_rows = (len(stream) - 1) // (n_context - run.marks.count_in_frame())
    if n_rows < 1:
        raise RegardError(
            f"The text has {len(stream)} tokens, less than one row of {n_context}. Name more with --data."
        )
    batches = MaskedBatches(
        stream, run.tokenizer, MaskingConfig(),
        n_batch=min(N_BATCH, n_rows), n_context=n_context, has_pairs=False, seed=EVALUATION_SEED,
    )  # fmt: skip
    made = [batches.at(i) for i in range(batches.per_epoch)]
    rows = tuple(_spell(run, batch, row) for batch in made for row in range(len(batch.tokens)))
    return TestSet(
        about=f"{about}: {len(rows):,} rows of {n_context} tokens, {MaskingConfig().p_masked:.0%} of them masked",
        sources=rows,
        fits=np.ones(len(rows), dtype=bool),
        fingerprint=key_of(run.tokenizer.hash, rows, [batch.places.tolist() for batch in made]),
        own=made,
    )


def _spell(run: Any, batch: MaskedBatch, row: int) -> str:
    """The tokens of a row as they are before any is masked."""
    tokens = batch.tokens[row].copy()
    tokens[batch.places[row]] = batch.targets[row]
    return " ".join(run.tokenizer.token_text(int(token)) for token in tokens[1:-1])


@torch.no_grad()
def answer_masked(run: Any, test_set: TestSet, chosen: Sequence[int], tell: Callable[[int], None]) -> list[Any]:
    """What each chosen row costs: {"nats", "right", "masked"}."""
    model, found = run.model.eval(), []
    for batch in test_set.own:
        tokens, places, targets = (
            torch.from_numpy(array).to(model.embedding.device) for array in (batch.tokens, batch.places, batch.targets)
        )
        h = take_places(model.hidden(tokens, None), places)
        nats, best = (part.view(targets.shape).cpu() for part in score_places(model, h, targets.flatten()))
        there, is_right = torch.from_numpy(batch.is_there), best == targets.cpu()
        for row_nats, row_right, kept in zip(nats, is_right, there, strict=True):
            counts = {"right": int(row_right[kept].sum()), "masked": int(kept.sum())}
            found.append({"nats": float(row_nats[kept].sum()), **counts})
        tell(len(found))
    return [found[i] for i in chosen]
