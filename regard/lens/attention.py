"""Attention weights of a text, small enough to be saved with a comparison."""

from __future__ import annotations

from regard.count.ngram import NgramModel
from regard.lens.trace import TraceableRun
from regard.lens.views import AttentionView

MAX_TOKENS = 36


def take_attention(run: TraceableRun, text: str, max_tokens: int = MAX_TOKENS) -> AttentionView | None:
    """Every layer and head on the first tokens of `text`; None for a model that does not attend."""
    if isinstance(run.model, NgramModel):
        return None
    _, offsets = run.tokenizer.encode_with_offsets(text)
    limit = run.model.mixer.max_context
    n = max_tokens - 1 if limit is None else min(max_tokens, limit) - 1
    trace = run.trace(text[: offsets[n - 1][1]] if n <= len(offsets) else text)
    if not trace.attention:
        return None
    return AttentionView(
        tokens=trace.tokens,
        weights=tuple(
            tuple(
                tuple(tuple(round(float(w), 3) for w in row[: q + 1]) for q, row in enumerate(head)) for head in weights
            )
            for _, weights in sorted(trace.attention.items(), key=lambda item: int(item[0].split(".")[1]))
        ),
    )
