"""Vanishing gradients: how much of a prediction's gradient reaches what was read k steps before it.

    g_k = mean over texts of ‖∂L_t/∂x_{t-k}‖,   L_t = -log P(w_{t+1} | w_1 ... w_t),   x = the embeddings

and, where a state is carried, for the state too: ∂L_t/∂h_{t-k} is a product of k Jacobians (Hochreiter 1991;
Bengio et al. 1994; Pascanu et al. 2013), which shrinks or grows with k. An LSTM's state is h and c. Embeddings are
what every model has, so that attention stands on the same axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.kernels.state import tensors_of
from regard.layers.taps import Taps
from regard.mixers.mixer import select_positions
from regard.mixers.recurrent import Recurrent
from regard.models.gradient_model import GradientModel
from regard.models.table import build_model, model_entry
from regard.studies import brief
from regard.studies.config import N_HEADS, GradientsConfig
from regard.studies.finding import Chart, Finding, Line, Numbers
from regard.studies.fits import MIN_R2, Fall, fit_fall, join_words, to_text
from regard.tasks.language_model_run import LanguageModelRun
from regard.text.learning import Progress

AT_ONCE = 64  # texts in one backward pass
FAR = 20  # steps back that the sentence speaks of


@dataclass(frozen=True)
class Fading:
    """One model's curve: norms[k] is the mean norm of the gradient k steps back."""

    model: str
    stage: str
    inputs: tuple[float, ...]
    state: tuple[float, ...] | None

    @property
    def looks_back(self) -> bool:
        """Whether any gradient reaches beyond the token just read."""
        return len(self.inputs) > 1 and self.inputs[1] > 0

    @property
    def fall(self) -> Fall:
        return fit_fall(range(1, len(self.inputs)), self.inputs[1:])


def measure(config: GradientsConfig, runs: Sequence[LanguageModelRun], tell: Progress) -> Finding:
    """Fresh models and briefly trained ones; or the user's own runs, as they are."""
    for run in runs:
        _network(run)
    for name in () if runs else config.models:
        if model_entry(name).is_counted:
            raise RegardError(f"{_NO_GRADIENT.format(name=name)} Leave '{name}' out of models.")
    wanted = {
        "d_model": config.d_model,
        "n_layers": config.n_layers,
        "n_heads": N_HEADS,
        "max_context": _n_read(config),
    }
    models = {} if runs else {name: brief.choose_settings(name, wanted) for name in config.models}
    found: list[Fading] = []
    with brief.subjects_of(
        # The text and the tokenizer are the same whether there is training or not.
        runs, models, data=config.data, n_steps=max(1, config.n_steps), n_context=_n_read(config), seed=config.seed,
        tell=tell,
    ) as subjects:  # fmt: skip
        for subject in subjects:
            network = _network(subject.run)
            if not runs:
                torch.manual_seed(config.seed)
                fresh = build_model(subject.name, subject.run.config.model, subject.run.facts.vocab_size)
                found.append(_fading(subject, fresh.to(network.embedding.device), "fresh", config, tell))
            if runs or config.n_steps:
                found.append(_fading(subject, network, "trained", config, tell))
    return _finding(config, found, runs)


_NO_GRADIENT = "The model '{name}' is counted: no gradient flows through it."


def _network(run: LanguageModelRun) -> GradientModel:
    if isinstance(run.model, NgramModel):
        raise RegardError(
            f"{_NO_GRADIENT.format(name=run.config.model_name)} Leave out --run {run.folder}, or ask "
            f"`regard study recency --run {run.folder}`, which takes every model."
        )
    return run.model


def _n_read(config: GradientsConfig) -> int:
    return config.max_distance + 1


def _fading(
    subject: brief.Subject, model: GradientModel, stage: str, config: GradientsConfig, tell: Progress
) -> Fading:
    limit = model.mixer.max_context
    T = _n_read(config) if limit is None else min(_n_read(config), limit)
    windows = brief.draw_stretches(subject, T + 1, config.n_texts, np.random.default_rng(config.seed))  # (W, T+1)
    model.eval()
    inputs, states = [], []
    for part in brief.report_batches(f"gradients of {subject.name}, {stage}", range(len(windows)), AT_ONCE, tell):
        here = torch.from_numpy(windows[part]).to(model.embedding.device)
        inputs.append(input_norms(model, here))
        if isinstance(model.mixer, Recurrent):
            states.append(state_norms(model, here))
    return Fading(subject.name, stage, _mean(inputs), _mean(states) if states else None)


def _mean(parts: list[Tensor]) -> tuple[float, ...]:
    """The mean over texts, nearest first."""
    means = torch.cat(parts).double().mean(dim=0).flip(0)  # (T)
    return tuple(float(m) for m in means)


def input_norms(model: GradientModel, windows: Int[Tensor, "B S"]) -> Float[Tensor, "B T"]:
    """‖∂L_T/∂x_s‖ for s = 1 ... T: L_T is the loss at the last position of each text, x_s an embedding."""
    record = Taps()
    h, _ = model.hidden(windows[:, :-1], None, record)
    loss = model.nats_each(select_positions(h, slice(-1, None)), windows[:, -1:]).sum()
    (gradient,) = torch.autograd.grad(loss, record["embedding"])  # (B, T, D)
    norms: Tensor = torch.linalg.vector_norm(gradient, dim=-1)
    return norms


def state_norms(model: GradientModel, windows: Int[Tensor, "B S"]) -> Float[Tensor, "B T"]:
    """‖∂L_T/∂h_s‖ for s = 1 ... T, h_s being all that the model carries from step s to the next.

    The text is read token by token, so that every state is a tensor of its own that all later ones come from; by the
    plain path, where what the head reads is made from the state itself.
    """
    h: Any = None
    state, kept = None, []
    for token in torch.split(windows[:, :-1], 1, dim=1):
        h, state = model.hidden(token, state, Taps())
        kept.append([s for s in tensors_of(state) if s.requires_grad])
    loss = model.nats_each(h, windows[:, -1:]).sum()
    flat = torch.autograd.grad(loss, [s for step in kept for s in step], allow_unused=True)
    norms, at = [], 0
    for step in kept:
        parts = flat[at : at + len(step)]
        at += len(step)
        squares = [g.flatten(1).square().sum(1) for g in parts if g is not None]
        norms.append(torch.stack(squares).sum(0).sqrt())  # (B)
    return torch.stack(norms, dim=1)


def shares(norms: Sequence[float]) -> tuple[float, ...]:
    """g_k / g_1 for k = 1, 2, ...; zeros where nothing reaches one step back.

    >>> shares([8.0, 4.0, 1.0]), shares([8.0])
    ((1.0, 0.25), (0.0,))
    """
    if len(norms) < 2 or norms[1] == 0:
        return (0.0,) * max(1, len(norms) - 1)
    return tuple(g / norms[1] for g in norms[1:])


def _finding(config: GradientsConfig, found: list[Fading], runs: Sequence[LanguageModelRun]) -> Finding:
    stages = list(dict.fromkeys(f.stage for f in found))
    last = [f for f in found if f.stage == stages[-1]]
    after = "After training" if runs else f"After {config.n_steps} updates"
    titles = {"fresh": "Before any training", "trained": after}
    charts = [_chart(titles[stage], {f.model: f.inputs for f in found if f.stage == stage}) for stage in stages]
    if carried := {f.model: f.state for f in last if f.state is not None}:
        charts.append(_chart("The state that is carried", carried, of_state=True))
    farthest = max(len(f.inputs) for f in found) - 1
    columns = [k for k in (5, FAR, 60) if k <= farthest]
    rows = []
    for f in found:
        at = dict(enumerate(shares(f.inputs), start=1))
        first, halves = (f.inputs[1], str(f.fall)) if f.looks_back else (0.0, "–")
        rows.append((f.model, f.stage, to_text(first), *(to_text(at.get(k)) for k in columns), halves))
    return Finding(
        question="How far back does the gradient reach?",
        sentence=gradients_sentence(last),
        charts=tuple(charts),
        summary=Numbers(
            "Norm of the gradient one step back, and farther back as a share of that",
            ("model", "stage", "at 1", *(f"at {k}" for k in columns), "halves every"),
            tuple(rows),
        ),
        notes=tuple(
            f"{model} reads too few tokens at once for max_distance {config.max_distance}: its gradient was followed "
            f"{n} steps back."
            for model, n in {f.model: len(f.inputs) - 1 for f in found}.items()
            if n < config.max_distance
        ),
        method=_method(config, runs),
        numbers={
            "distances": list(range(farthest + 1)),
            "curves": [{**asdict(f), "half_life": f.fall.half_life, "falls": f.fall.falls} for f in found],
        },
    )


def _chart(title: str, norms: Mapping[str, Sequence[float]], of_state: bool = False) -> Chart:
    """Lines from distance 1 on: at 0 there is nothing to remember."""
    lines = tuple(
        Line(model, tuple((float(k), share) for k, share in enumerate(shares(values), start=1)))
        for model, values in norms.items()
    )
    note = (
        "The gradient of a prediction's loss with respect to the recurrent state k steps before it (of an LSTM, h and "
        "c together): the product of k Jacobians."
        if of_state
        else "The gradient of a prediction's loss with respect to the embedding read k steps before it, as a share of "
        "the one a step before it. A straight line is a fall by the same factor at every step."
    )
    return Chart(title, "steps back", "gradient, 1 step back = 1", lines, note=note)


def gradients_sentence(found: Sequence[Fading]) -> str:
    """What the numbers say, in one sentence."""
    looking = [f for f in found if f.looks_back]
    others = [f.model for f in found if not f.looks_back]
    if not looking:
        return f"No gradient reaches back beyond the token just read in {join_words(others)}."
    k = min(FAR, *(len(f.inputs) - 1 for f in looking))
    parts = [
        f"{to_text(shares(f.inputs)[k - 1])} {'of the one a step back' if i == 0 else ''}".strip() + f" in {f.model}"
        for i, f in enumerate(looking)
    ]
    halves = [f"{f.fall} in {f.model}" for f in looking if f.fall.half_life is not None]
    ways = [f"halves every {join_words(halves)}"] if halves else []
    for way in ("falls unevenly", "does not fall"):
        such = [f.model for f in looking if str(f.fall) == way]
        ways += [f"{way} in {join_words(such)}"] if such else []
    which = f"{found[0].stage} model{'s' * (len(found) > 1)}"
    text = f"In the {which} the gradient {k} step{'s' * (k > 1)} back is {join_words(parts)}; it {', and '.join(ways)}"
    return text + (f"; none reaches back beyond the token just read in {join_words(others)}." if others else ".")


def _method(config: GradientsConfig, runs: Sequence[LanguageModelRun]) -> tuple[tuple[str, str], ...]:
    trained = (
        f"each trained for {config.n_steps:,} updates of {brief.N_BATCH} x {_n_read(config)} tokens by `regard train`, "
        f"learning rate {brief.RATE:g}"
    )
    made = (
        f"{', '.join(config.models)}: width {config.d_model}, {config.n_layers} layer{'s' * (config.n_layers > 1)}, "
        f"{trained if config.n_steps else 'not trained'}"
    )
    text = brief.describe_text(config.data, bool(runs))
    return (
        ("Models", brief.describe_runs(runs) if runs else made),
        ("Text", f"{text}; {config.n_texts} stretches drawn at random, the same for every model of one tokenizer"),
        (
            "Gradient",
            "of -log P(next token) at the last position of a stretch, by automatic differentiation through the plain "
            "path; Euclidean norm, then the mean over stretches. Distance 0 is the token just read",
        ),
        (
            "Fit",
            "log2 of the mean norm over distance, least squares over all distances from 1; its slope gives the "
            "half-life. A curve whose fit falls by less than a factor of two in all does not fall; one of which "
            f"the fit explains less than {MIN_R2:.0%} of the variance falls unevenly, and neither has a half-life",
        ),
        ("Seed", str(config.seed)),
    )
