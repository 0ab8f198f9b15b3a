"""Vanishing gradients: how much of a prediction's gradient reaches what was read k steps before it.

    g_k = mean over texts of ‖∂L_t/∂x_{t-k}‖,   L_t = -log P(w_{t+1} | w_1 ... w_t),   x = the embeddings

and, where a state is carried, for the state too: ∂L_t/∂h_{t-k} is a product of k Jacobians (Hochreiter 1991;
Bengio et al. 1994; Pascanu et al. 2013), which shrinks or grows with k. An LSTM's state is h and c. Embeddings are
what every model has, so that attention stands on the same axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import torch

from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.lens.gradients import input_norms, state_norms
from regard.mixers.recurrent import Recurrent
from regard.models.gradient_model import GradientModel
from regard.models.table import build_model
from regard.score.figures import join_names
from regard.studies import brief
from regard.studies.config import N_HEADS, GradientsConfig
from regard.studies.finding import Chart, Finding, Numbers, lines_of
from regard.studies.fits import MIN_R2, Fall, Spread, fit_fall, say_seeds, spread, to_text
from regard.studies.trainer import Trainer
from regard.tasks.language_model_run import LanguageModelRun
from regard.text.learning import Progress

AT_ONCE = 64  # texts in one backward pass
FAR = 20  # steps back that the sentence speaks of
CELL = "rnn"  # of rnn-attention, so that attention is all that it has beyond the RNN


@dataclass
class Fading:
    """One model's curves, one for each seed: item k of a curve is the mean norm of the gradient k steps back."""

    model: str
    stage: str
    inputs: list[list[float]] = field(default_factory=list)
    state: list[list[float]] = field(default_factory=list)

    @property
    def farthest(self) -> int:
        return len(self.inputs[0]) - 1

    @property
    def looks_back(self) -> bool:
        """Whether any gradient reaches beyond the token just read."""
        return self.farthest > 0 and any(curve[1] > 0 for curve in self.inputs)

    @property
    def fall(self) -> Fall:
        return fit_fall(range(1, self.farthest + 1), *(curve[1:] for curve in self.inputs))

    def norm(self, k: int) -> Spread:
        """How large the gradient k steps back is, over seeds."""
        return spread([curve[k] for curve in self.inputs], is_log=True)

    def share(self, k: int) -> Spread:
        """How large the gradient k steps back is as a share of the one a step back, over seeds."""
        return spread([divide(curve, k) for curve in self.inputs], is_log=True)


def divide(curve: Sequence[float], k: int) -> float:
    """g_k / g_1; zero where nothing reaches one step back.

    >>> divide([9.0, 4.0, 1.0], 2), divide([9.0, 0.0, 0.0], 2), divide([9.0], 1)
    (0.25, 0.0, 0.0)
    """
    return curve[k] / curve[1] if len(curve) > 1 and curve[1] else 0.0


def measure(config: GradientsConfig, runs: Sequence[LanguageModelRun], tell: Progress, n_jobs: int = 1) -> Finding:
    """Fresh models and briefly trained ones; or the user's own runs, as they are."""
    for run in runs:
        _network(run)
    brief.refuse_counted(() if runs else config.models)
    wanted = {"d_model": config.d_model, "n_layers": config.n_layers, "n_heads": N_HEADS, "cell": CELL}
    found: dict[tuple[str, str], Fading] = {}
    for seed, subjects in brief.each_seed_of(config, runs, wanted, Trainer(tell, n_jobs)):
        for subject in subjects:
            stages = {"trained": _network(subject.run)} if runs or config.n_steps else {}
            if not runs:
                torch.manual_seed(seed)
                fresh = build_model(subject.name, subject.run.config.model, subject.run.facts.vocab_size)
                stages = {"fresh": fresh.to(_network(subject.run).embedding.device), **stages}
            for stage, model in stages.items():
                fading = found.setdefault((stage, subject.name), Fading(subject.name, stage))
                _follow(fading, subject, model, config, seed, tell)
    return _finding(config, list(found.values()), runs)


def _network(run: LanguageModelRun) -> GradientModel:
    if isinstance(run.model, NgramModel):
        raise RegardError(
            f"The model '{run.config.model_name}' is counted: no gradient flows through it. Leave out --run "
            f"{run.folder}, or ask `regard study recency --run {run.folder}`, which takes every model."
        )
    return run.model


def _follow(
    fading: Fading, subject: brief.Subject, model: GradientModel, config: GradientsConfig, seed: int, tell: Progress
) -> None:
    """Add the curves of one seed: means over stretches of the text."""
    T = subject.n_readable(config.max_distance + 1)
    windows = brief.draw_stretches(subject, T + 1, config.n_texts, np.random.default_rng(seed))  # (W, T+1)
    model.eval()
    inputs, states = [], []
    parts = torch.split(torch.from_numpy(windows).to(model.embedding.device), AT_ONCE)
    for part in brief.watch(f"gradients of {fading.model}, {fading.stage}", parts, tell):
        inputs.append(input_norms(model, part))
        if isinstance(model.mixer, Recurrent):
            states.append(state_norms(model, part))
    for norms, curves in ((inputs, fading.inputs), (states, fading.state)):
        if norms:
            curves.append(torch.cat(norms).double().mean(dim=0).flip(0).tolist())  # (T), nearest first


def _finding(config: GradientsConfig, found: list[Fading], runs: Sequence[LanguageModelRun]) -> Finding:
    found = sorted(found, key=lambda f: f.stage)  # fresh models first
    last = [f for f in found if f.stage == found[-1].stage]
    after = "After training" if runs else f"After {config.n_steps} updates"
    titles = {"fresh": "Before any training", "trained": after}
    charts = [
        _chart(titles[stage], {f.model: f.inputs for f in found if f.stage == stage}, _NOTE)
        for stage in dict.fromkeys(f.stage for f in found)
    ]
    charts.append(
        _chart(
            f"{titles[last[0].stage]}, not divided", {f.model: f.inputs for f in last},
            "The same norms as they are: a model can lose little on the way and have little to lose.", is_share=False,
        )
    )  # fmt: skip
    if carried := {f.model: f.state for f in last if f.state}:
        charts.append(_chart("The state that is carried", carried, _STATE_NOTE))
    k = _far(last)
    rows = []
    for f in found:
        norms = (to_text(f.norm(i).mean) if i <= f.farthest else "–" for i in (1, k))
        rest = (str(f.share(k)), str(f.fall).removesuffix(" steps")) if f.looks_back and k <= f.farthest else ("–", "–")
        rows.append((f.model, f.stage, *norms, *rest))
    return Finding(
        question="How far back does the gradient reach?",
        sentence=gradients_sentence(last),
        charts=tuple(charts),
        summary=Numbers(
            f"Norm of the gradient 1 and {k} steps back, the share left, its half-life in steps",
            ("model", "stage", "at 1", f"at {k}", "share", "half-life"),
            tuple(rows),
            note=f"The share is the norm {k} steps back divided by the one a step back, before the mean over seeds; "
            "in brackets 95% intervals over seeds.",
        ),
        notes=tuple(
            f"{f.model} was trained on too few tokens at once for max_distance {config.max_distance}: its gradient was "
            f"followed {f.farthest} steps back."
            for f in last
            if f.farthest < config.max_distance
        ),
        method=_method(config, runs),
        numbers={
            "distances": list(range(max(f.farthest for f in found) + 1)),
            "curves": [{**asdict(f), **asdict(f.fall)} for f in found],
        },
    )


_NOTE = (
    "The gradient of a prediction's loss with respect to the embedding read k steps before it, as a share of the one a "
    "step before it. A straight line is a fall by the same factor at every step. The bag is a control: an average "
    "weighs every step alike, and so its gradient does not fall, though it cannot tell one step from another."
)
_STATE_NOTE = (
    "The gradient of a prediction's loss with respect to the recurrent state k steps before it (of an LSTM, h and c "
    "together): the product of k Jacobians."
)


def _chart(title: str, curves: Mapping[str, Sequence[Sequence[float]]], note: str, is_share: bool = True) -> Chart:
    """Lines from distance 1 on: at 0 there is nothing to remember."""
    rows = [
        (model, k, divide(curve, k) if is_share else curve[k] if k < len(curve) else 0.0)
        for model, of_seeds in curves.items()
        for curve in of_seeds
        for k in range(1, max(2, len(curve)))
    ]
    lines = lines_of(rows, is_log=True)
    return Chart(title, "steps back", f"gradient{', 1 step back = 1' * is_share}", lines, note=note)


def _far(found: Sequence[Fading]) -> int:
    """How many steps back the sentence and the table speak of: as far as all go that look back at all."""
    return max(1, min(FAR, *(f.farthest for f in found if f.looks_back), FAR))


def gradients_sentence(found: Sequence[Fading]) -> str:
    """What the numbers say, in one sentence."""
    begin = say_seeds(len(found[0].inputs))
    looking = [f for f in found if f.looks_back]
    others = join_names([f.model for f in found if not f.looks_back] or [""])
    if not looking:
        return f"{begin}: no gradient reaches back beyond the token just read in {others}."
    k = _far(found)
    shares = [f"{f.share(k)}{' of the one a step back' * (i == 0)} in {f.model}" for i, f in enumerate(looking)]
    halves = [f"{f.fall} in {f.model}" for f in looking if f.fall.half_life is not None]
    ways = [f"halves every {join_names(halves)}"] if halves else []
    for way in ("falls unevenly", "does not fall"):
        such = [f.model for f in looking if str(f.fall) == way]
        ways += [f"{way} in {join_names(such)}"] if such else []
    text = (
        f"{begin}: in {found[0].stage} models the gradient {k} step{'s' * (k > 1)} back is {join_names(shares)}; it "
        f"{', and '.join(ways)}"
    )
    return text + (f"; none reaches back beyond the token just read in {others}." if others else ".")


def _method(config: GradientsConfig, runs: Sequence[LanguageModelRun]) -> dict[str, str]:
    made = (
        f"{', '.join(config.models)}: width {config.d_model}, {config.n_layers} layer{'s' * (config.n_layers > 1)}, "
        f"{brief.describe_training(config) if config.n_steps else 'not trained'}"
        f"{'; rnn-attention is the RNN with attention to its past states' * ('rnn-attention' in config.models)}"
    )
    text = brief.describe_text(config.data, bool(runs))
    return {
        "Models": brief.describe_runs(runs) if runs else made,
        "Text": f"{text}; {config.n_texts} stretches drawn at random, the same for every model of one tokenizer",
        "Gradient": "of -log P(next token) at the last position of a stretch, by automatic differentiation through the "
        "plain path; Euclidean norm, then the mean over stretches. Distance 0 is the token just read",
        "Fit": "log2 of the mean norm over distance, least squares over all distances from 1; its slope gives the "
        "half-life. A curve whose fit falls by less than a factor of two in all does not fall; one of which "
        f"the fit explains less than {MIN_R2:.0%} of the variance falls unevenly, and neither has a half-life",
        **brief.describe_seeds(config, runs),
    }
