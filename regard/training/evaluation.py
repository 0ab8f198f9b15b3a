"""The score on the validation text while a model trains: what `regard eval` computes, on a bounded slice."""

from __future__ import annotations

from regard.data.stream import Stream
from regard.models.gradient_model import GradientModel
from regard.models.gradient_next_token import GradientNextToken
from regard.score.evaluate import Evaluation, evaluate

# Recurrent models read the slice in so many pieces side by side, each with its state carried: 16 times fewer steps, and
# only the first tokens of each piece lack a past.
N_LANES = 16


def evaluate_slice(model: GradientModel, stream: Stream, max_tokens: int | None, eos: int) -> Evaluation:
    """The score of the first `max_tokens` tokens (None: all). The model is left in evaluation mode."""
    return evaluate(GradientNextToken(model, n_lanes=N_LANES, eos=eos), first_tokens(stream, max_tokens))


def first_tokens(stream: Stream, max_tokens: int | None) -> Stream:
    """The beginning of a stream, with its share of the bytes and words: these are known for whole streams only."""
    if max_tokens is None or max_tokens >= len(stream):
        return stream
    share = max_tokens / len(stream)
    n_bytes, n_words = max(1, round(stream.n_bytes * share)), max(1, round(stream.n_words * share))
    return Stream.of(stream[0:max_tokens], n_bytes=n_bytes, n_words=n_words)
