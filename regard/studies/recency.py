"""Recency: how far back a token can be and still change the prediction.

In a text w_1 ... w_T the token k places back is replaced by another, drawn from the same text; then

    effect_k = mean over texts of KL(P(· | w_1 ... w_T) ‖ P(· | w_1 ... w' ... w_T))   in nats

and the share of texts whose most probable next token is another one. k = 1 is the last token read. It asks nothing of a
model but its predictions, so counts and networks stand on one axis (after Khandelwal et al. 2018, "Sharp nearby, fuzzy
far away", who permute and drop words of an LSTM's context).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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
from regard.score.figures import join_names
from regard.studies import brief
from regard.studies.config import N_HEADS, RecencyConfig
from regard.studies.finding import Chart, Finding, Line, Numbers, lines_of
from regard.studies.fits import Spread, find_reach, say_seeds, spread, to_text
from regard.studies.trainer import Trainer
from regard.tasks.language_model_run import LanguageModelRun
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress

AT_ONCE = 50  # texts read side by side
N_DRAWS = 1000  # of the texts of one training, for an interval
# Nats that rounding alone can make. KL is about δ²/2 for a change of δ in the logits, and float32 rounds these by some
# 1e-6: between the same weights in float32 and in float64 we measured 1e-13 on average and 6e-13 at most (window, RNN,
# LSTM and Transformer of width 64). The rest is room for larger models.
ROUNDING = 1e-11
N_ORDER, N_WINDOW = 4, 8  # of the n-gram and the window that are made here

Floats = NDArray[np.float64]


@dataclass
class Effects:
    """One model's curves: what replacing the token `distances[i]` back does, in nats, by seed."""

    model: str
    distances: tuple[int, ...]
    samples: list[Floats] = field(default_factory=list)
    """For each seed (texts, distances)."""
    changed: list[Floats] = field(default_factory=list)
    """For each seed the share of texts whose most probable token changed, by distance."""
    is_folded: bool = False
    """Whether words that the model can only copy were counted as <unk>."""

    @property
    def nats(self) -> Floats:
        """The mean over texts, (seeds, distances)."""
        return np.stack([sample.mean(axis=0) for sample in self.samples])

    def by_distance(self, *, is_share: bool = False) -> dict[int, Spread]:
        """The effect at each distance, or its share of the nearest one, with its interval.

        Over seeds by Student's t; of one training over draws of the texts. What rounding alone could have made counts
        as zero.
        """
        rows = self.nats
        if one_training := len(rows) == 1:
            W = len(self.samples[0])
            weights = np.random.default_rng(0).multinomial(W, [1 / W] * W, N_DRAWS) / W
            rows = np.concatenate([rows, weights @ self.samples[0]])
        rows = np.where(rows >= ROUNDING, rows, 0.0)
        if is_share:
            rows = rows / np.where(rows[:, :1] > 0, rows[:, :1], 1.0)
        if one_training:
            ends = np.quantile(rows[1:], (0.025, 0.975), axis=0)
            spreads = [Spread(*map(float, column)) for column in np.stack([rows[0], *ends], axis=1)]
        else:
            spreads = [spread(column.tolist(), is_log=True) for column in rows.T]
        return dict(zip(self.distances, spreads, strict=True))

    @property
    def sight(self) -> int | None:
        """The distance after which nothing changes at all; None: there is none, or the effect faded into rounding."""
        nats = self.nats.max(axis=0)
        seen = [d for d, n in zip(self.distances, nats, strict=True) if n > 0]
        is_faded = bool(((nats > 0) & (nats < ROUNDING)).any())
        return None if is_faded or not seen or seen[-1] == self.distances[-1] else seen[-1]

    def reach(self, threshold: float) -> tuple[int | None, int | None, int | None]:
        """The distance up to which every share is at least the threshold; and that of both ends of its interval."""
        shares = self.by_distance(is_share=True).values()
        ends = zip(*((s.mean, s.low, s.high) for s in shares), strict=True)
        mean, low, high = (find_reach(self.distances, end, threshold) for end in ends)
        return mean, low, high

    def say_reach(self, threshold: float) -> str:
        """The reach for a sentence, with its interval."""
        mean, low, high = self.reach(threshold)
        if mean is None:
            return "–"
        more = " or more" if high == self.distances[-1] else ""
        return f"{mean}{more}" if low == high else f"{mean} ({low or 0} to {high}{more})"


def measure(config: RecencyConfig, runs: Sequence[LanguageModelRun], tell: Progress, n_jobs: int = 1) -> Finding:
    """Briefly trained models of every generation; or the user's own runs, as they are."""
    wanted = {
        "d_model": config.d_model, "d_hidden": 2 * config.d_model, "n_layers": 2, "n_heads": N_HEADS, "order": N_ORDER,
        "n_window": N_WINDOW,
    }  # fmt: skip
    found: dict[str, Effects] = {}
    for seed, subjects in brief.each_seed_of(config, runs, wanted, Trainer(tell, n_jobs)):
        units = name_units([subject.run for subject in subjects])
        for subject in subjects:
            # One of the tokens it sees is the start; where it sees one alone, that is the last token.
            T = max(1, subject.n_readable(config.max_distance + 1) - 1)
            effects = found.setdefault(subject.name, Effects(subject.name, choose_distances(T)))
            _replace_tokens(effects, subject, config, seed, tell)
    return _finding(config, list(found.values()), runs, units)


def name_units(runs: Sequence[LanguageModelRun]) -> str:
    """What a distance is counted in: the tokens of all runs by the name they have in common."""
    kinds = {run.config.section("tokenizer", TokenizerConfig).kind for run in runs}
    return {"char": "characters", "word": "words", "byte": "bytes"}.get(
        kinds.pop() if len(kinds) == 1 else "", "tokens"
    )


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


def _replace_tokens(effects: Effects, subject: brief.Subject, config: RecencyConfig, seed: int, tell: Progress) -> None:
    """Add the curves of one seed."""
    draws = np.random.default_rng(seed)
    texts = brief.draw_stretches(subject, effects.distances[-1], config.n_texts, draws)  # (W, T)
    others = _draw_others(texts, subject.text.tokens, draws)
    n_known = _n_known(subject.run)
    nats, changed = [], []
    with _without_tf32():
        for start in brief.watch(f"replacing tokens for {subject.name}", range(0, len(texts), AT_ONCE), tell):
            part = slice(start, start + AT_ONCE)
            kl, top = measure_replacements(
                subject.run.next_token, texts[part], others[part], effects.distances, n_known
            )
            nats.append(kl)
            changed.append(top)
    effects.samples.append(torch.cat(nats).numpy())
    if not np.isfinite(effects.samples[-1]).all():
        raise RegardError(
            f"'{subject.name}' gives some words no probability at all, so the change cannot be measured in nats. "
            "Use a smoothed model: model.smoothing=kneser-ney."
        )
    effects.changed.append(torch.cat(changed).double().mean(dim=0).numpy())
    effects.is_folded = n_known is not None


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
    """KL in nats, and whether the most probable token changed, for every text and distance.

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


def _finding(config: RecencyConfig, found: list[Effects], runs: Sequence[LanguageModelRun], units: str) -> Finding:
    percent = f"{100 * config.threshold:g}%"
    shown = [k for k in (1, 2, 4, 8, 16, 64) if k <= max(e.distances[-1] for e in found)]
    rows = []
    for e in found:
        nats = dict(zip(e.distances, e.nats.mean(axis=0).tolist(), strict=True))
        rows.append((e.model, *(_cell(nats.get(k)) for k in shown), e.say_reach(config.threshold)))
    return Finding(
        question="How far back can a token be and still change the prediction?",
        sentence=recency_sentence(found, config.threshold),
        charts=_charts(found, units),
        summary=Numbers(
            "Change of the prediction, in nats, by how far back the replaced token is",
            (f"{units} back", *map(str, shown), f"{percent} until"),
            tuple(rows),
            note=f"The last column is the distance up to which every effect is at least {percent} of the nearest "
            "token's, and in brackets where the ends of its 95% interval first fall below that.",
        ),
        notes=tuple(
            f"{e.model} was trained on too few tokens at once for max_distance {config.max_distance}: "
            f"tokens up to {e.distances[-1]} back were replaced."
            for e in found
            if e.distances[-1] < config.max_distance
        ),
        method=_method(config, found, runs),
        numbers={
            "threshold": config.threshold,
            "rounding": ROUNDING,
            "units": units,
            "curves": [
                {
                    "model": e.model, "distances": e.distances, "nats": e.nats.mean(axis=0).tolist(),
                    "nats_by_seed": e.nats.tolist(), "top_changed": np.mean(e.changed, axis=0).tolist(),
                    "reach": e.reach(config.threshold), "n_texts": len(e.samples[0]),
                }
                for e in found
            ],
        },
    )  # fmt: skip


def _cell(nats: float | None) -> str:
    return f"<{ROUNDING:g}" if nats is not None and 0 < nats < ROUNDING else to_text(nats)


def _charts(found: Sequence[Effects], units: str) -> tuple[Chart, ...]:
    kl = []
    for e in found:
        effects = e.by_distance()
        last = max((d for d, effect in effects.items() if effect.mean > 0), default=0)
        gone = next((d for d in e.distances if d > last), last)  # the first zero after which all is zero
        kl.append(Line.over(e.model, {d: effect for d, effect in effects.items() if d <= gone}))
    top = [
        (e.model, d, 100 * float(share))
        for e in found
        for shares in e.changed
        for d, share in zip(e.distances, shares, strict=True)
    ]
    return (
        Chart(
            "Change of the prediction", f"{units} back", "KL divergence, nats", tuple(kl), is_x_log=True,
            note="The prediction before and after one token, so far back, is replaced by another of the text. Bands "
            f"are 95% intervals. A line that falls out of the picture is at zero, or below {ROUNDING:g} nats, where "
            "rounding alone makes such changes.",
        ),
        Chart(
            "Another most probable token", f"{units} back", "% of texts", lines_of(top), is_x_log=True, is_y_log=False,
            note="How often the token with the highest probability becomes another one.",
        ),
    )  # fmt: skip


def recency_sentence(found: Sequence[Effects], threshold: float) -> str:
    """What the numbers say, in one sentence."""
    n_seeds = len(found[0].samples)
    begin = say_seeds(n_seeds) + " (95% intervals over texts in brackets)" * (n_seeds == 1)
    reached = [e for e in found if e.reach(threshold)[0] is not None]
    if not reached:
        return f"{begin}: no replaced token changed any prediction."
    parts = [f"{e.say_reach(threshold)} in {e.model}" for e in reached]
    blind = [f"{e.model} sees nothing beyond {e.sight}" for e in reached if e.sight is not None]
    deaf = [e.model for e in found if e not in reached]
    kept = f"{begin}: a replaced token keeps at least {100 * threshold:g}% of the last token's effect"
    text = f"{kept} up to distance {join_names(parts)}" + (f"; {join_names(blind)}" if blind else "")
    return text + (f"; {join_names(deaf)} heeds no token at all." if deaf else ".")


def _method(config: RecencyConfig, found: Sequence[Effects], runs: Sequence[LanguageModelRun]) -> dict[str, str]:
    given = f"{brief.describe_runs(runs)}; distances are in tokens of each run's own tokenizer"
    text = brief.describe_text(config.data, bool(runs))
    return {
        "Models": given if runs else _made(config),
        "Text": f"{text}; {len(found[0].samples[0])} stretches drawn at random, others for each seed",
        "Effect": "KL(prediction with the true token ‖ prediction with the other), mean over stretches. The other "
        "token is drawn from the text, as often as it occurs there"
        + ("; a word that a model can only copy counts as <unk>" if any(e.is_folded for e in found) else ""),
        "Rounding": f"changes below {ROUNDING:g} nats count as none: predictions are computed in float32",
        "Reach": f"the distance up to which every effect is at least {100 * config.threshold:g}% of the nearest "
        "token's: the curve's first crossing of that line. Its interval is where the ends of the curve's cross it",
        "One training": f"has 95% intervals over {N_DRAWS:,} draws of the stretches with replacement",
        **brief.describe_seeds(config, runs),
    }


def _made(config: RecencyConfig) -> str:
    """The models that the study makes, and how."""
    sizes = {"ngram": f" (order {N_ORDER}: it sees {N_ORDER - 1} tokens)", "window": f" ({N_WINDOW} tokens)"}
    counted = [name + sizes.get(name, "") for name in config.models if model_entry(name).is_counted]
    trained = [name + sizes.get(name, "") for name in config.models if not model_entry(name).is_counted]
    parts = [f"{join_names(counted)}, counted on the whole training text"] if counted else []
    if trained:
        parts.append(f"{join_names(trained)}, of width {config.d_model}, {brief.describe_training(config)}")
    return f"{'; '.join(parts)}; a token is one of {brief.VOCAB_SIZE} of BPE, a short word or a part of one"
