"""Ablation: what each part of a Transformer is for, measured by leaving it out (after Vaswani et al. 2017, table 3).

    loss as trained      -log P(w_{t+1} | a stretch that is read at once, as in training)
    loss word by word    -log P(w_{t+1} | w_1 ... w_t), with nothing after w_t in sight

Both are one number, unless the causal mask is what was left out: then the first one sees the word that it is asked for.
Beside it, why scores are divided by √d: for q and k of d independent numbers of variance one, q·k has variance d.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.data.config import DataConfig
from regard.data.prepared_text import prepare_text
from regard.decode.config import SamplingConfig
from regard.decode.generate import generate_all
from regard.errors import DivergedRunError
from regard.layers.attention import MultiHeadAttention, cut_heads
from regard.models.gradient_model import GradientModel
from regard.score.figures import join_names
from regard.studies import brief
from regard.studies.config import N_HEADS
from regard.studies.finding import Chart, Finding, Numbers, lines_of
from regard.studies.fits import Spread, say_seeds, spread, to_text
from regard.studies.mechanism_config import AblateConfig
from regard.studies.trainer import Trainer, Training
from regard.tasks.language_model_run import LanguageModelRun
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress
from regard.training.metrics import read_metrics

WHOLE = "whole"
NAMES = {
    "residual": "no residual", "norm": "no norm", "feed-forward": "no feed-forward", "values": "no values",
    "scale": "no √d", "heads": "one head", "positions": "no positions", "mask": "no mask",
}  # fmt: skip
CHANGES: dict[str, dict[str, Any]] = {"heads": {"n_heads": 1}, "positions": {"positions": "none"}}
"""Parts that other settings leave out; all else is named in `without`."""
N_POINTS = 20  # of a curve of the training loss
N_SHOWN = 30  # tokens of a text that is shown
N_VECTORS = 256  # of which all pairs are scored
AT_ONCE = 64  # stretches read side by side


@dataclass
class Trial:
    """One model of one seed, as it came out at the better learning rate."""

    name: str
    seed: int
    rate: float
    n_parameters: int
    flops_per_token: int
    curve: list[tuple[int, float]]
    """Updates, and the training loss in nats a token."""
    as_trained: float
    word_by_word: float
    own: float = math.inf
    """What its own texts cost a token under the whole model of the same seed."""
    text: str = ""


@dataclass
class Trials:
    """All that was found about one variant, by seed; where no rate was good enough it diverged."""

    name: str
    of_seeds: list[Trial] = field(default_factory=list)
    n_diverged: int = 0

    def spread(self, what: str) -> Spread:
        """The mean of a figure over seeds, and its interval."""
        return spread([getattr(trial, what) for trial in self.of_seeds])

    def cost(self, whole: Trials) -> Spread:
        """By how much its held-out loss, word by word, is above that of the whole model of the same seed."""
        base = {trial.seed: trial.word_by_word for trial in whole.of_seeds}
        return spread([trial.word_by_word - base[trial.seed] for trial in self.of_seeds if trial.seed in base])


def measure(config: AblateConfig, runs: Sequence[Any], tell: Progress, n_jobs: int = 1) -> Finding:
    """Train the whole model and each less one part, with every seed and rate; then look at the scores of heads."""
    found = {name: Trials(name) for name in (WHOLE, *(NAMES[part] for part in config.parts))}
    trainer, data = Trainer(tell, n_jobs), config.data or brief.DATA
    prepare_text(DataConfig(train=data), TokenizerConfig(**_tokenizer()), progress=tell)
    with brief.open_workplace() as folder:
        plan = {
            (seed, name): [
                Training(
                    folder / f"{index}-{rate:g}-{seed}", _given(config, data, index, rate), config.n_steps, seed,
                    f"training {name}",
                )
                for rate in config.rates
            ]
            for seed in brief.list_seeds(config)
            for index, name in enumerate(found)
        }  # fmt: skip
        trainer.train_ahead([training for trainings in plan.values() for training in trainings], folder / "logs")
        whole: LanguageModelRun | None = None
        for (seed, name), trainings in brief.watch("models", list(plan.items()), tell):
            best = _try_rates(name, trainings, config, trainer)
            if best is None:
                found[name].n_diverged += 1
                whole = None if name == WHOLE else whole
                continue
            trial, run = best
            whole = run if name == WHOLE else whole
            if whole is not None:
                trial.own, trial.text = _judge_own_texts(run, whole, config, seed)
            found[name].of_seeds.append(trial)
    return _finding(config, list(found.values()), measure_scores(config))


def _tokenizer() -> dict[str, Any]:
    return {"kind": "bpe", "vocab_size": brief.VOCAB_SIZE}


def _given(config: AblateConfig, data: str, index: int, rate: float) -> dict[str, Any]:
    """The plain config of a training: the whole model for 0, else less part number `index`."""
    part = None if index == 0 else config.parts[index - 1]
    change = {} if part is None else CHANGES.get(part, {"without": [part]})
    return {
        "data": {"train": data},
        "tokenizer": _tokenizer(),
        "model": {
            "name": "transformer", "d_model": config.d_model, "n_layers": config.n_layers, "n_heads": N_HEADS,
            "max_context": config.n_context, **change,
        },
        "optimizer": {"lr": rate},
        "train": {"n_batch": brief.N_BATCH, "n_context": config.n_context, "max_eval_tokens": 2048},
        "checkpoint": {"log_every": max(1, config.n_steps // N_POINTS)},
    }  # fmt: skip


def _try_rates(
    name: str, trainings: Sequence[Training], config: AblateConfig, trainer: Trainer
) -> tuple[Trial, LanguageModelRun] | None:
    """The training with the lowest loss as trained, on the validation text; measured on the test text."""
    best: tuple[float, Training, LanguageModelRun] | None = None
    for training in trainings:
        try:
            run = trainer.train(training)
        except DivergedRunError:
            continue
        assert isinstance(run, LanguageModelRun)
        loss, _ = measure_losses(_network(run), _draw(run, "valid", config, training.seed))
        if math.isfinite(loss) and (best is None or loss < best[0]):
            best = loss, training, run
    if best is None:
        return None
    _, training, run = best
    model = _network(run)
    losses = measure_losses(model, _draw(run, "test", config, training.seed))
    curve = [(line["step"], line["nats_per_token"]) for line in read_metrics(training.folder, "train")]
    rate = training.given["optimizer"]["lr"]
    n_flops = model.flops_per_token(config.n_context)
    return Trial(name, training.seed, rate, model.n_parameters, n_flops, curve, *losses), run


def _network(run: LanguageModelRun) -> Any:
    return run.model


def _draw(run: LanguageModelRun, split: str, config: AblateConfig, seed: int) -> Int[Tensor, "W S"]:
    """Stretches of the run's own held-out text, the same for every variant of a seed."""
    text = run.text_of(None, split)
    subject = brief.Subject(WHOLE, run, text if len(text) else run.text_of(None, "valid"))
    draws = np.random.default_rng(seed)
    return torch.from_numpy(brief.draw_stretches(subject, config.n_context + 1, config.n_texts, draws))


@torch.no_grad()
def measure_losses(model: GradientModel, windows: Int[Tensor, "W S"]) -> tuple[float, float]:
    """Nats a token of stretches: read at once, as in training, and word by word, through caches."""
    model.eval()
    found = []
    for is_at_once in (True, False):
        nats = []
        for part in torch.split(windows.to(model.embedding.device), AT_ONCE):
            inputs = part[:, :-1]
            h: Any = model.hidden(inputs, None if is_at_once else model.start(*inputs.shape))[0]
            nats.append(model.nats_each(h, part[:, 1:]).double().mean(dim=1))
        found.append(float(torch.cat(nats).mean()))
    return found[0], found[1]


def _judge_own_texts(
    run: LanguageModelRun, whole: LanguageModelRun, config: AblateConfig, seed: int
) -> tuple[float, str]:
    """Let a model write texts by chance, and ask the whole one how surprising they are; the first of them."""
    sampling = SamplingConfig(max_tokens=config.n_context - 1, seed=seed)
    nothing = torch.zeros(config.n_texts, 0, dtype=torch.int64)
    texts = generate_all(run.next_token, nothing, sampling)
    nats = whole.next_token.nats_of_windows(np.array([[run.tokenizer.eos, *text] for text in texts]))
    return float(nats.mean()), run.tokenizer.decode(texts[0][:N_SHOWN])


@dataclass(frozen=True)
class Scores:
    """The scores of fresh heads of one width: their variance, and the largest weight that a softmax gives."""

    width: int
    seed: int
    is_scaled: bool
    variance: float
    largest: float


def measure_scores(config: AblateConfig) -> list[Scores]:
    """q·k of one fresh head by its width, with √d and without, for inputs of variance one."""
    return [
        score_pairs(width, seed, is_scaled)
        for width in sorted(config.widths)
        for seed in brief.list_seeds(config)
        for is_scaled in (False, True)
    ]


@torch.no_grad()
def score_pairs(width: int, seed: int, is_scaled: bool) -> Scores:
    """Matrices whose rows have length one keep the variance of what they read, so that q and k have it too."""
    draws = torch.Generator().manual_seed(seed)
    layer = MultiHeadAttention(width, 1, is_scaled=is_scaled)
    nn.init.normal_(layer.qkv.weight, std=width**-0.5, generator=draws)
    nn.init.zeros_(layer.qkv.bias)
    x = torch.randn(1, N_VECTORS, width, generator=draws)
    q, k, _ = cut_heads(layer.qkv(x), 3, 1)
    scores = (q @ k.transpose(-2, -1) / (math.sqrt(width) if is_scaled else 1.0))[0, 0]  # (S, S)
    largest = scores.softmax(dim=-1).max(dim=-1).values.mean()
    return Scores(width, seed, is_scaled, float(scores.var()), float(largest))


def _finding(config: AblateConfig, found: Sequence[Trials], scores: Sequence[Scores]) -> Finding:
    learned = [trials for trials in found if trials.of_seeds]
    curves = [
        (trials.name, step, nats) for trials in learned for trial in trials.of_seeds for step, nats in trial.curve
    ]
    lines = {True: "q·k/√d", False: "q·k"}
    return Finding(
        question="What is each part of a Transformer for?",
        sentence=ablate_sentence(found),
        charts=(
            Chart("Training loss", "updates", "nats a token", lines_of(curves, is_log=True), note=_CURVE_NOTE),
            Chart(
                "Variance of the scores", "width d", "variance",
                lines_of([(lines[s.is_scaled], s.width, s.variance) for s in scores], is_log=True), is_x_log=True,
                measured_at=tuple(map(float, sorted(config.widths))), note=_VARIANCE_NOTE,
            ),
            Chart(
                "Largest weight", "width d", "share of the weight",
                lines_of([(lines[s.is_scaled], s.width, s.largest) for s in scores]), is_x_log=True, is_y_log=False,
                y_limits=(0.0, 1.02), measured_at=tuple(map(float, sorted(config.widths))), note=_WEIGHT_NOTE,
            ),
        ),
        summary=_summary(config, found),
        tables=(
            Numbers(
                "What they write", ("model", "a text of its own"),
                tuple((trials.name, trials.of_seeds[0].text) for trials in learned),
                note=f"The first {N_SHOWN} tokens of a text that each model of seed {learned[0].of_seeds[0].seed} "
                "wrote, every token drawn by its probability.",
            ),
        ) if learned else (),
        notes=tuple(
            f"{trials.name} diverged at every rate with {trials.n_diverged} of {config.n_seeds} seeds."
            for trials in found if trials.n_diverged
        ),
        method=_method(config),
        numbers={
            "variants": [
                {"name": trials.name, "n_diverged": trials.n_diverged, "trials": [asdict(t) for t in trials.of_seeds]}
                for trials in found
            ],
            "scores": [asdict(s) for s in scores],
        },
    )  # fmt: skip


_CURVE_NOTE = (
    "What training makes small, by update. A curve that falls below all others is no better model: without the mask "
    "every position sees the word that it is to predict."
)
_VARIANCE_NOTE = (
    "All pairs of 256 random vectors through a fresh head of this width, whose queries and keys have variance one: "
    "q·k is a sum of d products, so that its variance is d; divided by √d it is one at every width."
)
_WEIGHT_NOTE = (
    "The largest of 256 weights that the softmax makes of these scores, mean over queries: scores that differ widely "
    "leave one weight near 1, and hardly any gradient for the others."
)


def _summary(config: AblateConfig, found: Sequence[Trials]) -> Numbers:
    whole = found[0]
    rows: list[tuple[str, ...]] = []
    for trials in found:
        if not trials.of_seeds:
            rows.append((trials.name, "diverged", *["–"] * 4))
            continue
        first = trials.of_seeds[0]
        cost = "" if trials is whole or not whole.of_seeds else write_difference(trials.cost(whole))
        rows.append(
            (
                trials.name, trials.spread("as_trained").write(_nats), trials.spread("word_by_word").write(_nats), cost,
                trials.spread("own").write(_nats), f"{first.n_parameters:,}",
            )
        )  # fmt: skip
    return Numbers(
        f"Held-out loss after {config.n_steps:,} updates, in nats a token",
        ("model", "as trained", "word by word", "above whole", "own text", "parameters"),
        tuple(rows),
        note="As trained: stretches are read at once, with the mask or without. Word by word: nothing later is in "
        "sight. Own text: what a token of the texts that the model writes costs under the whole one. In brackets 95% "
        "intervals over seeds.",
    )


def _nats(value: float) -> str:
    """
    >>> _nats(3.14159), _nats(0.004)
    ('3.14', '0.0040')
    """
    return f"{value:.2f}" if abs(value) >= 0.1 else to_text(value)


def write_difference(cost: Spread) -> str:
    """
    >>> write_difference(Spread(0.25, 0.125, 0.375)), write_difference(Spread(-0.04))
    ('+0.25 (+0.12 to +0.38)', '-0.04')
    """
    return cost.write("{:+.2f}".format)


def ablate_sentence(found: Sequence[Trials]) -> str:
    """What the numbers say, in one sentence."""
    whole, others = found[0], [trials for trials in found[1:] if trials.of_seeds]
    begin = say_seeds(max(len(trials.of_seeds) + trials.n_diverged for trials in found))
    if not whole.of_seeds:
        return f"{begin}: the whole Transformer diverged, and there is nothing to compare with."
    honest = sorted((t for t in others if t.name != NAMES["mask"]), key=lambda t: -t.cost(whole).mean)
    parts = [f"{write_difference(trials.cost(whole))} with {trials.name}" for trials in honest]
    text = f"{begin}: a Transformer needs {whole.spread('word_by_word').write(_nats)} nats a token of held-out text"
    text += f", and {join_names(parts)}" if parts else ""
    leak = next((trials for trials in others if trials.name == NAMES["mask"]), None)
    if leak is not None:
        text += (
            f"; with {leak.name} training promises {leak.spread('as_trained').write(_nats)}, since the answer is in "
            f"sight, and word by word it needs {leak.spread('word_by_word').write(_nats)}"
        )
    diverged = [trials.name for trials in found if not trials.of_seeds]
    return text + (f"; {join_names(diverged)} diverged." if diverged else ".")


def _method(config: AblateConfig) -> Mapping[str, str]:
    return {
        "Models": f"transformer of `regard train`, width {config.d_model}, {config.n_layers} blocks, {N_HEADS} heads, "
        "norm before the sums, learned positions; each variant lacks one part (`model.without`, n_heads 1, positions "
        "none)",
        "Budget": f"{config.n_steps:,} updates of {brief.N_BATCH} x {config.n_context} tokens for each; learning rates "
        f"{', '.join(f'{rate:g}' for rate in config.rates)}, of which the one counts that does best on the validation "
        "text, read as in training",
        "Text": f"{brief.describe_text(config.data, False)}; {config.n_texts} stretches of {config.n_context} tokens, "
        f"the same for all models of a seed; a token is one of {brief.VOCAB_SIZE} of BPE",
        "Own texts": f"{config.n_texts} of {config.n_context - 1} tokens, drawn by their probability",
        "Scores": f"{N_VECTORS} vectors of independent numbers of variance one",
        **brief.describe_seeds(config, ()),
    }
