"""Recency: how far back a word can be and still change the prediction.

In a text w_1 ... w_T the word k places back is replaced by another, drawn from the same text; then

    effect_k = mean over texts of KL(P(· | w_1 ... w_T) ‖ P(· | w_1 ... w' ... w_T))   in nats

and the share of texts whose most probable next word is another one. k = 1 is the last word read. It asks nothing of a
model but its predictions, so counts and networks stand on one axis (after Khandelwal et al. 2018, "Sharp nearby, fuzzy
far away", who permute and drop words of an LSTM's context).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from regard.errors import RegardError
from regard.layers.copying import UNK
from regard.models.next_token import NextToken
from regard.models.pointer import PointerModel
from regard.models.table import model_entry
from regard.studies import brief
from regard.studies.config import N_HEADS, RecencyConfig
from regard.studies.finding import Chart, Finding, Line, Numbers
from regard.studies.fits import find_reach, join_words, to_text
from regard.tasks.language_model_run import LanguageModelRun
from regard.text.learning import Progress

AT_ONCE = 50  # texts read side by side
# Nats that rounding alone can make. KL is about δ²/2 for a change of δ in the logits, and float32 rounds these by some
# 1e-6: between the same weights in float32 and in float64 we measured 1e-13 on average and 6e-13 at most (window, RNN,
# LSTM and Transformer of width 64). The rest is room for larger models.
ROUNDING = 1e-11
N_ORDER, N_WINDOW = 4, 8  # of the n-gram and the window that are made here


@dataclass(frozen=True)
class Effects:
    """One model's curve: what replacing the word `distances[i]` back does."""

    model: str
    distances: tuple[int, ...]
    nats: tuple[float, ...]
    top_changed: tuple[float, ...]
    n_texts: int
    is_folded: bool = False
    """Whether words that the model can only copy were counted as <unk>."""

    @property
    def nats_above_rounding(self) -> tuple[float, ...]:
        """The nats with zero in the place of what rounding alone could have made."""
        return tuple(n if n >= ROUNDING else 0.0 for n in self.nats)

    @property
    def sight(self) -> int | None:
        """The distance after which nothing changes at all; None: there is none, or the effect faded into rounding."""
        seen = [d for d, n in zip(self.distances, self.nats, strict=True) if n > 0]
        is_faded = any(0 < n < ROUNDING for n in self.nats)
        return None if is_faded or not seen or seen[-1] == self.distances[-1] else seen[-1]

    def reach(self, threshold: float) -> int | None:
        return find_reach(self.distances, self.nats_above_rounding, threshold)


def measure(config: RecencyConfig, runs: Sequence[LanguageModelRun], tell: Progress) -> Finding:
    """Briefly trained models of every generation; or the user's own runs, as they are."""
    wanted = {
        "d_model": config.d_model,
        "d_hidden": 2 * config.d_model,
        "n_layers": 2,
        "n_heads": N_HEADS,
        "max_context": config.max_distance + 1,  # and the mark that every text begins after
        "order": N_ORDER,
        "n_window": N_WINDOW,
    }
    models = {} if runs else {name: brief.choose_settings(name, wanted) for name in config.models}
    with brief.subjects_of(
        runs, models, data=config.data, n_steps=config.n_steps, n_context=config.max_distance, seed=config.seed,
        tell=tell,
    ) as subjects:  # fmt: skip
        return _finding(config, [_effects(subject, config, tell) for subject in subjects], runs)


def choose_distances(farthest: int) -> tuple[int, ...]:
    """Distances to look at: each of the first eight, then ever sparser, the farthest last.

    >>> choose_distances(30)
    (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 30)
    """
    distances, step = list(range(1, min(8, farthest) + 1)), 2
    while distances[-1] + step <= farthest:
        distances.append(distances[-1] + step)
        if distances[-1] == 8 * step:
            step *= 2
    return (*distances, farthest) if distances[-1] < farthest else tuple(distances)


def _effects(subject: brief.Subject, config: RecencyConfig, tell: Progress) -> Effects:
    model = subject.run.next_token
    limit = model.max_context
    # One of the tokens it sees is the start; where it sees one alone, that is the last word.
    T = config.max_distance if limit is None else max(1, min(config.max_distance, limit - 1))
    draws = np.random.default_rng(config.seed)
    texts = brief.draw_stretches(subject, T, config.n_texts, draws)  # (W, T)
    others = _draw_others(texts, subject.text.tokens, draws)
    distances, n_known = choose_distances(T), _n_known(subject.run)
    nats, changed = [], []
    with _without_tf32():
        for part in brief.report_batches(f"replacing words for {subject.name}", range(len(texts)), AT_ONCE, tell):
            kl, top = measure_replacements(model, texts[part], others[part], distances, n_known)
            nats.append(kl)
            changed.append(top)
    means = torch.cat(nats).mean(dim=0)  # (distances)
    if not bool(torch.isfinite(means).all()):
        raise RegardError(
            f"'{subject.name}' gives some words no probability at all, so the change cannot be measured in nats. "
            "Use a smoothed model: model.smoothing=kneser-ney."
        )
    shares = torch.cat(changed).double().mean(dim=0)
    effects = tuple(means.tolist()), tuple(shares.tolist())
    return Effects(subject.name, distances, *effects, len(texts), is_folded=n_known is not None)


@contextmanager
def _without_tf32() -> Iterator[None]:
    """cuDNN's recurrent kernels round products to 10 bits by default, and that would look like an effect."""
    was_allowed = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = was_allowed


def _n_known(run: LanguageModelRun) -> int | None:
    """How many words the model knows, where it knows fewer than its tokenizer and copies the others."""
    model = run.model
    return model.n_vocab if isinstance(model, PointerModel) and model.n_vocab < model.vocab_size else None


def _draw_others(texts: NDArray[np.int64], pool: NDArray[Any], draws: np.random.Generator) -> NDArray[np.int64]:
    """For every token another one, drawn as often as it occurs in the text."""
    others = pool[draws.integers(0, len(pool), texts.shape)].astype(np.int64)
    for _ in range(100):
        same = others == texts
        if not same.any():
            return others
        others[same] = pool[draws.integers(0, len(pool), int(same.sum()))]
    raise RegardError("The text consists of one word alone, so there is no other to put in its place.")


@torch.inference_mode()
def measure_replacements(
    model: NextToken,
    texts: NDArray[np.int64],
    others: NDArray[np.int64],
    distances: Sequence[int],
    n_known: int | None = None,
) -> tuple[Float[Tensor, "W K"], Tensor]:
    """KL in nats, and whether the most probable word changed, for every text and distance.

    Whole batches are compared row by row: a row that reads the same words goes through the same arithmetic, so that
    what a model cannot see changes exactly nothing. Words from `n_known` on count as <unk> (see `fold_copied_words`).
    """
    before = fold_copied_words(_log_probs(model, torch.from_numpy(texts)), n_known)
    nats, changed = [], []
    for k in distances:
        other = texts.copy()
        other[:, -k] = others[:, -k]
        after = fold_copied_words(_log_probs(model, torch.from_numpy(other)), n_known)
        nats.append(divergence(before, after))
        changed.append(before.argmax(dim=-1) != after.argmax(dim=-1))
    return torch.stack(nats, dim=1), torch.stack(changed, dim=1)


def _log_probs(model: NextToken, texts: Int[Tensor, "W T"]) -> Float[Tensor, "W V"]:
    """In float64 and summing to one there: rounding must not look like an effect."""
    log_probs, _ = model.start(texts)
    return log_probs.double().log_softmax(dim=-1).cpu()


def fold_copied_words(log_probs: Float[Tensor, "W V"], n_known: int | None) -> Float[Tensor, "W U"]:
    """With all words from `n_known` on counted as <unk>: one that can only be copied has no probability at all where it
    was not read, and its KL would be infinite.
    """
    if n_known is None:
        return log_probs
    known, others = log_probs[:, :n_known].clone(), log_probs[:, n_known:]
    known[:, UNK] = torch.logaddexp(known[:, UNK], others.logsumexp(dim=-1))
    return known


def divergence(p: Float[Tensor, "W V"], q: Float[Tensor, "W V"]) -> Float[Tensor, " W"]:
    """KL(p ‖ q) = Σ p (log p - log q) of log-probabilities; a word that p never predicts adds nothing."""
    terms = torch.where(torch.isinf(p), 0.0, p.exp() * (p - q))
    return terms.sum(dim=-1).clamp_min(0.0)


def _finding(config: RecencyConfig, found: list[Effects], runs: Sequence[LanguageModelRun]) -> Finding:
    percent = f"{100 * config.threshold:g}%"
    shown = [k for k in (1, 2, 4, 8, 16, 32, 64) if k <= max(e.distances[-1] for e in found)]
    rows = []
    for e in found:
        by_distance = dict(zip(e.distances, e.nats, strict=True))
        farthest = e.reach(config.threshold)
        until = "–" if farthest is None else f"{farthest}{' or more' if farthest == e.distances[-1] else ''}"
        rows.append((e.model, *(_cell(by_distance.get(k)) for k in shown), until))
    return Finding(
        question="How far back can a word be and still change the prediction?",
        sentence=recency_sentence(found, config.threshold),
        charts=_charts(found),
        summary=Numbers(
            "Change of the prediction, in nats, by how far back the replaced word is",
            ("words back", *map(str, shown), f"{percent} until"),
            tuple(rows),
            note=f"The last column is the farthest distance with at least {percent} of the nearest word's effect.",
        ),
        notes=tuple(
            f"{e.model} reads too few tokens at once for max_distance {config.max_distance}: "
            f"words up to {e.distances[-1]} back were replaced."
            for e in found
            if e.distances[-1] < config.max_distance
        ),
        method=_method(config, found, runs),
        numbers={
            "threshold": config.threshold,
            "rounding": ROUNDING,
            "curves": [
                {
                    "model": e.model, "distances": e.distances, "nats": e.nats, "top_changed": e.top_changed,
                    "reach": e.reach(config.threshold), "n_texts": e.n_texts,
                }
                for e in found
            ],
        },
    )  # fmt: skip


def _cell(nats: float | None) -> str:
    return f"<{ROUNDING:g}" if nats is not None and 0 < nats < ROUNDING else to_text(nats)


def _charts(found: Sequence[Effects]) -> tuple[Chart, ...]:
    kl = tuple(Line(e.model, _until_gone(e.distances, e.nats_above_rounding)) for e in found)
    top = tuple(
        Line(e.model, tuple((float(d), 100 * s) for d, s in zip(e.distances, e.top_changed, strict=True)))
        for e in found
    )
    return (
        Chart(
            "Change of the prediction", "words back", "KL divergence, nats", kl, is_x_log=True,
            note="The prediction before and after one word, so far back, is replaced by another word of the text. "
            f"A line that falls out of the picture is at zero, or below {ROUNDING:g} nats, where rounding alone "
            "makes such changes.",
        ),
        Chart(
            "Another most probable word", "words back", "% of texts", top, is_x_log=True, is_y_log=False,
            note="How often the word with the highest probability becomes another one.",
        ),
    )  # fmt: skip


def _until_gone(distances: Sequence[int], nats: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """The points up to the first zero after which all is zero."""
    last = max((i for i, n in enumerate(nats) if n > 0), default=0)
    return tuple((float(d), n) for d, n in list(zip(distances, nats, strict=True))[: last + 2])


def recency_sentence(found: Sequence[Effects], threshold: float) -> str:
    """What the numbers say, in one sentence."""
    reached = {e.model: e.reach(threshold) for e in found}
    if not any(reached.values()):
        return "No replaced word changed any prediction."
    parts, blind, deaf = [], [], []
    for e in found:
        farthest = reached[e.model]
        if farthest is None:
            deaf.append(e.model)
            continue
        parts.append(f"{farthest}{' or more' if farthest == e.distances[-1] else ''} in {e.model}")
        if e.sight is not None:
            blind.append(f"{e.model} sees nothing beyond {e.sight}")
    kept = f"A replaced word keeps at least {100 * threshold:g}% of the last word's effect"
    text = f"{kept} up to distance {join_words(parts)}" + (f"; {join_words(blind)}" if blind else "")
    return text + (f"; {join_words(deaf)} heeds no word at all." if deaf else ".")


def _method(
    config: RecencyConfig, found: Sequence[Effects], runs: Sequence[LanguageModelRun]
) -> tuple[tuple[str, str], ...]:
    given = f"{brief.describe_runs(runs)}; distances are in tokens of each run's own tokenizer"
    return (
        ("Models", given if runs else _made(config)),
        ("Text", f"{brief.describe_text(config.data, bool(runs))}; {found[0].n_texts} stretches drawn at random"),
        (
            "Effect",
            "KL(prediction with the true word ‖ prediction with the other), mean over stretches. The other word is "
            "drawn from the text, as often as it occurs there"
            + ("; a word that a model can only copy counts as <unk>" if any(e.is_folded for e in found) else ""),
        ),
        ("Rounding", f"changes below {ROUNDING:g} nats count as none: predictions are computed in float32"),
        ("Reach", f"the farthest distance whose effect is at least {100 * config.threshold:g}% of the nearest word's"),
        ("Seed", str(config.seed)),
    )


def _made(config: RecencyConfig) -> str:
    """The models that the study makes, and how."""
    sizes = {"ngram": f" (order {N_ORDER}: it sees {N_ORDER - 1} words)", "window": f" ({N_WINDOW} words)"}
    counted = [name + sizes.get(name, "") for name in config.models if model_entry(name).is_counted]
    trained = [name + sizes.get(name, "") for name in config.models if not model_entry(name).is_counted]
    parts = [f"{join_words(counted)}, counted on the whole training text"] if counted else []
    if trained:
        parts.append(
            f"{join_words(trained)}, of width {config.d_model}, trained for {config.n_steps:,} updates of "
            f"{brief.N_BATCH} x {config.max_distance} tokens by `regard train`, learning rate {brief.RATE:g}"
        )
    return f"{'; '.join(parts)}; a word is one of {brief.VOCAB_SIZE} tokens of BPE"
