"""The text coloured by what each token cost, and what the model thought would come instead."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from regard.count.ngram import NgramModel
from regard.lens.subject import Subject
from regard.lens.view import LookOptions, View

LINE_END = "\n"
Alternatives = list[tuple[str, float]]


def view_surprise(subject: Subject, options: LookOptions) -> View | None:
    """Bits of every token, with the most probable tokens in its place; None for a run that predicts no tokens."""
    trace = subject.trace
    if not len(trace.nats) or not trace.nats.any():
        return None
    bits = trace.nats / math.log(2)
    others = list_alternatives(subject, options.top_k)
    own = [t for t, span in enumerate(subject.spans) if span is not None] or list(range(len(subject.tokens)))
    of_words = {w: sum(float(bits[t]) for t in own if subject.words[t] == w) for w in {subject.words[t] for t in own}}
    dearest = max(of_words, key=lambda w: of_words[w])
    shown = f"“{subject.word_texts[dearest].replace(LINE_END, '⏎')}” ({of_words[dearest]:.1f} bits"
    n_pieces = sum(subject.words[t] == dearest for t in own)
    shown += f" for its {n_pieces} pieces)" if n_pieces > 1 else ")"
    mean = float(np.mean([bits[t] for t in own]))
    return View(
        name="surprise",
        title="What each token cost",
        note="The stronger the colour of a token, the less the model expected it: bits are -log2 of its probability. "
        "Point at one to see what else was probable there.",
        summary=f"{mean:.2f} bits a token over {len(own)} tokens; most surprising: {shown}.",
        data={"bits": [round(float(b), 3) for b in bits], "alternatives": others},
        table=(
            ("token", "bits", "most probable instead"),
            [(subject.tokens[t], f"{bits[t]:.2f}", _first(others[t])) for t in own],
        ),
    )


def list_alternatives(subject: Subject, n: int) -> list[Alternatives]:
    """For each token the n most probable ones in its place and their probabilities; none where the run has no say."""
    nothing: list[Alternatives] = [[] for _ in subject.tokens]
    probabilities = _probabilities_before(subject)
    if probabilities is None:
        return nothing
    words = subject.run.tokenizers[-1]
    for t, p in enumerate(probabilities):
        if p is not None:
            best = np.argsort(-p, kind="stable")[:n]
            nothing[t] = [
                (words.token_text(int(i)) or "<end>", round(float(p[i]), 5)) for i in best if i < words.vocab_size
            ]
    return nothing


def _probabilities_before(subject: Subject) -> list[NDArray[np.float64] | None] | None:
    """P of every token in the place of each token of the text, given those before it; None where nothing tells."""
    taps = subject.trace.taps
    n = len(subject.tokens)
    if isinstance(subject.run.model, NgramModel):
        ids = subject.run.tokenizer.encode(subject.text)
        return [np.exp(subject.run.model.next_log_probs(ids[:t])) for t in range(n)]
    if "logits" not in taps or len(taps["logits"]) != n:
        return None
    rows = [softmax(row.astype(np.float64)) for row in taps["logits"]]
    # A translator's row t predicts token t itself; a language model's row t has read token t, and predicts the next.
    return list(rows) if subject.is_written else [None, *rows[: n - 1]]


def softmax(row: NDArray[np.float64]) -> NDArray[np.float64]:
    """e^x / Σ e^x."""
    e = np.exp(row - row.max())
    return np.asarray(e / e.sum())


def _first(alternatives: Alternatives) -> str:
    return f"{alternatives[0][0]} ({alternatives[0][1]:.0%})" if alternatives else ""
