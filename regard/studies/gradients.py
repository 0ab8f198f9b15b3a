"""Vanishing gradients: how much of a prediction's gradient reaches what was read k steps before it.

    g_k = mean over texts of ‖∂L_t/∂x_{t-k}‖,   L_t = -log P(w_{t+1} | w_1 ... w_t),   x = the embeddings

and, where a state is carried, the same for the state: ∂L_t/∂h_{t-k} is a product of k Jacobians (Hochreiter 1991;
Bengio et al. 1994; Pascanu et al. 2013), which shrinks or grows with k. An LSTM's state is h and c. Embeddings are
what every model has, so that attention stands on the same axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.layers.record import Record
from regard.mixers import mixer as mixers
from regard.mixers.recurrent import Recurrent
from regard.models.gradient_model import GradientModel
from regard.models.table import build_model, model_entry
from regard.studies.brief import DATA, N_BATCH, RATE, Subject, brief_runs, check_length, subjects
from regard.studies.config import N_HEADS, GradientsConfig
from regard.studies.finding import Chart, Finding, Line, Numbers
from regard.studies.fits import MIN_R2, Fall, fall_of, listed, short
from regard.studies.small import small
from regard.tasks.language_model import LanguageModelRun as Run

if TYPE_CHECKING:
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
        return fall_of(range(1, len(self.inputs)), self.inputs[1:])


def study_gradients(config: GradientsConfig, runs: Sequence[Run], tell: Progress) -> Finding:
    """Fresh models and briefly trained ones; or the user's own runs, as they are."""
    found: list[Fading]
    if runs:
        networks = [_network(run) for run in runs]
        taken = zip(subjects(runs, config.data), networks, strict=True)
        found = [_fading(subject, network, "trained", config, tell) for subject, network in taken]
        return _finding(config, found, [f"{run.folder} ({run.config.model_name})" for run in runs])
    for name in config.models:
        if model_entry(name).is_counted:
            raise RegardError(f"{_NO_GRADIENT.format(name=name)} Leave '{name}' out of models.")
    settings = {name: _small(name, config) for name in config.models}
    # The text and the tokenizer are the same whether there is training or not.
    n_steps = max(1, config.n_steps)
    with brief_runs(
        settings, data=config.data or DATA, n_steps=n_steps, n_context=_n_read(config), seed=config.seed, tell=tell
    ) as trained:
        found = []
        for subject in subjects(trained, None, list(config.models)):
            network = _network(subject.run)
            torch.manual_seed(config.seed)
            fresh = build_model(subject.name, subject.run.config.model, subject.run.facts.vocab_size)
            fresh.to(network.embedding.device)
            found.append(_fading(subject, fresh, "fresh", config, tell))
            if config.n_steps:
                found.append(_fading(subject, network, "trained", config, tell))
    return _finding(config, found, [])


_NO_GRADIENT = "The model '{name}' is counted: no gradient flows through it."


def _network(run: Run) -> GradientModel:
    if isinstance(run.model, NgramModel):
        raise RegardError(
            f"{_NO_GRADIENT.format(name=run.config.model_name)} Leave out --run {run.folder}, or ask "
            f"`regard study recency --run {run.folder}`, which takes every model."
        )
    return run.model


def _small(name: str, config: GradientsConfig) -> dict[str, Any]:
    """The settings of a small model of any kind: width, layers and context, where it has them."""
    wanted = {"d_model": config.d_model, "n_layers": config.n_layers, "n_heads": N_HEADS}
    return small(name, {**wanted, "max_context": _n_read(config)})


def _n_read(config: GradientsConfig) -> int:
    return config.max_distance + 1


def _fading(subject: Subject, model: GradientModel, stage: str, config: GradientsConfig, tell: Progress) -> Fading:
    limit = model.mixer.max_context
    T = _n_read(config) if limit is None else min(_n_read(config), limit)
    check_length(subject, T + 1)
    draws = np.random.default_rng(config.seed)
    starts = draws.integers(0, len(subject.text) - T, config.n_texts)
    windows = torch.from_numpy(np.stack([subject.text[s : s + T + 1] for s in starts.tolist()]))  # (W, T+1)
    model.eval()
    inputs, states = [], []
    what = f"gradients of {subject.name}, {stage}"
    for done, part in enumerate(torch.split(windows.to(model.embedding.device), AT_ONCE)):
        tell(what, done * AT_ONCE, len(windows))
        inputs.append(input_norms(model, part))
        if isinstance(model.mixer, Recurrent):
            states.append(state_norms(model, part))
    tell(what, len(windows), len(windows))
    return Fading(subject.name, stage, _mean(inputs), _mean(states) if states else None)


def _mean(parts: list[Tensor]) -> tuple[float, ...]:
    """The mean over texts, nearest first."""
    means = torch.cat(parts).double().mean(dim=0).flip(0)  # (T)
    return tuple(float(m) for m in means)


def input_norms(model: GradientModel, windows: Int[Tensor, "B S"]) -> Float[Tensor, "B T"]:
    """‖∂L_T/∂x_s‖ for s = 1 ... T: L_T is the loss at the last position of each text, x_s an embedding."""
    record = Record()
    h, _ = model.hidden(windows[:, :-1], None, record)
    loss = model.nats_each(mixers.positions(h, slice(-1, None)), windows[:, -1:]).sum()
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
        h, state = model.hidden(token, state, Record())
        kept.append([s for s in mixers.tensors_of(state) if s.requires_grad])
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


def _finding(config: GradientsConfig, found: list[Fading], folders: list[str]) -> Finding:
    stages = list(dict.fromkeys(f.stage for f in found))
    names = list(dict.fromkeys(f.model for f in found))
    titles = {"fresh": "Before any training", "trained": "After training"}
    if not folders:
        titles["trained"] = f"After {config.n_steps} updates"
    charts = [_chart(titles[stage], [f for f in found if f.stage == stage], names, "inputs") for stage in stages]
    carried = [f for f in found if f.stage == stages[-1] and f.state is not None]
    if carried:
        charts.append(_chart("The state that is carried", carried, names, "state"))
    columns = ("model", "stage", "at 1", *(f"at {k}" for k in _columns(found)), "halves every")
    rows = []
    for f in found:
        at = dict(enumerate(shares(f.inputs), start=1))
        halves = str(f.fall) if f.looks_back else "–"
        first = f.inputs[1] if f.looks_back else 0.0
        rows.append((f.model, f.stage, short(first), *(short(at.get(k)) for k in _columns(found)), halves))
    return Finding(
        question="How far back does the gradient reach?",
        sentence=gradients_sentence([f for f in found if f.stage == stages[-1]]),
        charts=tuple(charts),
        summary=Numbers(
            "Norm of the gradient one step back, and farther back as a share of that", columns, tuple(rows)
        ),
        notes=_notes(config, found),
        method=_method(config, folders),
        numbers={
            "distances": list(range(max(len(f.inputs) for f in found))),
            "curves": [
                {
                    "model": f.model, "stage": f.stage, "inputs": f.inputs, "state": f.state,
                    "half_life": f.fall.half_life, "falls": f.fall.falls,
                }
                for f in found
            ],
        },
    )  # fmt: skip


def _notes(config: GradientsConfig, found: Sequence[Fading]) -> tuple[str, ...]:
    farthest = {f.model: len(f.inputs) - 1 for f in found}
    return tuple(
        f"{model} reads too few tokens at once for max_distance {config.max_distance}: its gradient was followed "
        f"{n} steps back."
        for model, n in farthest.items()
        if n < config.max_distance
    )


def _columns(found: Sequence[Fading]) -> list[int]:
    farthest = max(len(f.inputs) for f in found) - 1
    return [k for k in (5, FAR, 60) if k <= farthest]


def _chart(title: str, found: Sequence[Fading], names: Sequence[str], what: str) -> Chart:
    lines = []
    for f in found:
        norms = f.inputs if what == "inputs" else f.state
        assert norms is not None
        # From 1 on: at 0 there is nothing to remember.
        points = tuple((float(k), share) for k, share in enumerate(shares(norms), start=1))
        lines.append(Line(f.model, points))
    where = "an embedding" if what == "inputs" else "the state"
    note = {
        "inputs": "The gradient of a prediction's loss with respect to the embedding read k steps before it, "
        "as a share of the one a step before it. A straight line is a fall by the same factor at every step.",
        "state": "The same with respect to the recurrent state (of an LSTM, h and c together): the product of k "
        "Jacobians.",
    }[what]
    return Chart(title, "steps back", f"gradient of {where}, 1 step back = 1", tuple(lines), note=note)


def gradients_sentence(found: Sequence[Fading]) -> str:
    """What the numbers say, in one sentence."""
    looking = [f for f in found if f.looks_back]
    others = [f.model for f in found if not f.looks_back]
    if not looking:
        return f"No gradient reaches back beyond the token just read in {listed(others)}."
    k = min(FAR, *(len(f.inputs) - 1 for f in looking))
    parts = [
        f"{short(shares(f.inputs)[k - 1])} {'of the one a step back' if i == 0 else ''}".strip() + f" in {f.model}"
        for i, f in enumerate(looking)
    ]
    halves = [f"{f.fall} in {f.model}" for f in looking if f.fall.half_life is not None]
    ways = [f"halves every {listed(halves)}"] if halves else []
    for way in ("falls unevenly", "does not fall"):
        such = [f.model for f in looking if str(f.fall) == way]
        ways += [f"{way} in {listed(such)}"] if such else []
    which = f"{found[0].stage} model{'s' * (len(found) > 1)}"
    text = f"In the {which} the gradient {k} step{'s' * (k > 1)} back is {listed(parts)}; it {', and '.join(ways)}"
    return text + (f"; none reaches back beyond the token just read in {listed(others)}." if others else ".")


def _training(config: GradientsConfig) -> str:
    if not config.n_steps:
        return "not trained"
    return (
        f"each trained for {config.n_steps:,} updates of {N_BATCH} x {_n_read(config)} tokens by `regard train`, "
        f"learning rate {RATE:g}"
    )


def _method(config: GradientsConfig, folders: Sequence[str]) -> tuple[tuple[str, str], ...]:
    text = config.data or ("each run's own held-out text" if folders else f"{DATA}, its test part")
    models = (
        f"your runs: {', '.join(folders)}"
        if folders
        else f"{', '.join(config.models)}: width {config.d_model}, {config.n_layers} layer"
        f"{'s' * (config.n_layers > 1)}, {_training(config)}"
    )
    return (
        ("Models", models),
        ("Text", f"{text}; {config.n_texts} stretches drawn at random, the same for every model of one tokenizer"),
        (
            "Gradient",
            "of -log P(next token) at the last position of a stretch, by automatic differentiation through the plain "
            "path; Euclidean norm, then the mean over stretches. Distance 0 is the token just read",
        ),
        ("Fit", "log2 of the mean norm over distance, least squares over all distances from 1; its slope gives the "
                "half-life. A curve whose fit falls by less than a factor of two in all does not fall; one of which "
                f"the fit explains less than {MIN_R2:.0%} of the variance falls unevenly, and neither has a half-life"),
        ("Seed", str(config.seed)),
    )  # fmt: skip
