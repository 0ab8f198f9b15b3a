"""Text from a masked language model by repeated masking (Wang & Cho 2019).

    begin:   every new place is [MASK]
    repeat:  for each new place i, in random order:  x_i ~ P(x_i | all the others),  x_i masked

This is Gibbs sampling from conditionals that need not be those of any one distribution: what it writes is not drawn
from a probability of texts, as what a left-to-right model writes is, and no log-probability belongs to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from regard.decode.config import SamplingConfig
from regard.decode.generate import next_tokens
from regard.errors import RegardError
from regard.kernels.device import at_least_float32
from regard.models.bert import Bert
from regard.models.next_token import check_numbers
from regard.text.marks import Marks


@torch.no_grad()
def rewrite_masked(
    model: Bert,
    start: Sequence[int],
    marks: Marks,
    vocab_size: int,
    config: SamplingConfig,
    n_sweeps: int,
    number: int = 0,
) -> list[int]:
    """Fill the masks of `start`, then draw each of these places anew, `n_sweeps` times in all.

    `number` is that of the text among several of one seed: each has its own random numbers.
    """
    if n_sweeps < 1:
        raise RegardError(f"n_sweeps is how often each place is drawn, a whole number from 1 on, not {n_sweeps}.")
    if config.beam is not None:
        raise RegardError("A masked language model writes by repeated masking, which has no beam. Leave it out.")
    draws = np.random.default_rng([config.seed, number])
    ids = torch.tensor([list(start)], device=model.embedding.device)  # (1, T)
    places = [i for i, token in enumerate(start) if token == marks.mask]
    for _ in range(n_sweeps):
        draws.shuffle(places)
        for place in places:
            ids[0, place] = marks.mask
            h = model.hidden(ids, None)[:, place]  # (1, D)
            logits = at_least_float32(model.logits(h)[:, :vocab_size])
            logits[:, list(marks.ids)] = -torch.inf
            log_probs = logits.log_softmax(dim=-1)
            check_numbers(log_probs.amax(dim=-1).tolist())
            ids[0, place] = next_tokens(log_probs, config, [draws])[0]
    result: list[int] = ids[0].tolist()
    return result
