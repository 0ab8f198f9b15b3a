"""Truncation: back-propagation through time is cut every T characters, and the state is carried over the cut.

    reset_p    = mean of -log P(next character) p characters after the state was set to zero
    carried_p  = the same characters, read with the state that the text before them left

No gradient ever crossed more than T characters. So what carried_p is below reset_p at p ≥ T comes from characters
farther back than any gradient went: state that was carried past the truncation, and is worth something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.config import DataConfig
from regard.data.prepared_text import prepare_text
from regard.models.gradient_model import GradientModel
from regard.score.figures import join_names
from regard.studies import brief
from regard.studies.finding import Chart, Finding, Line, Numbers, lines_of
from regard.studies.fits import say_seeds, spread
from regard.studies.mechanism_config import WindowConfig
from regard.studies.trainer import Trainer, Training
from regard.tasks.language_model_run import LanguageModelRun
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress

N_CHARACTERS = 512  # an update, whatever T is: T x 512/T
AT_ONCE = 64  # stretches read side by side
LEAST = 1e-3  # nats: the lower end of the axis, where hardly anything is saved any more


@dataclass(frozen=True)
class Losses:
    """Nats by position after a reset of one model, one T and one seed: with the state reset there, and carried on."""

    model: str
    length: int
    seed: int
    reset: list[float]
    carried: list[float]

    @property
    def name(self) -> str:
        return f"{self.model}, T {self.length}"

    @property
    def saved(self) -> list[float]:
        """Nats that the state saves, by how many characters were read since it would have been reset."""
        return [reset - carried for reset, carried in zip(self.reset, self.carried, strict=True)]

    @property
    def within(self) -> float:
        """Nats a character that are lost where the state is reset at every cut: positions 0 ... T-1."""
        return float(np.mean(self.saved[: self.length]))

    @property
    def beyond(self) -> float:
        """Nats a character that state from T or more characters back saves: positions T ... 2T-1."""
        return float(np.mean(self.saved[self.length : 2 * self.length]))


def measure(config: WindowConfig, runs: Sequence[Any], tell: Progress, n_jobs: int = 1) -> Finding:
    """Train every model with every T, and read held-out text with the state carried on and with the state reset."""
    trainer, data = Trainer(tell, n_jobs), config.data or brief.DATA
    prepare_text(DataConfig(train=data), TokenizerConfig(kind="char"), progress=tell)
    found = []
    with brief.open_workplace() as folder:
        plan = {
            (name, T, seed): Training(
                folder / f"{name}-{T}-{seed}", _given(config, data, name, T), config.n_steps, seed,
                f"training {name}, T {T}",
            )
            for seed in brief.list_seeds(config)
            for name in config.models
            for T in config.lengths
        }  # fmt: skip
        trainer.train_ahead(plan.values(), folder / "logs")
        for (name, T, seed), training in brief.watch("models", list(plan.items()), tell):
            run = trainer.train(training)
            assert isinstance(run, LanguageModelRun)
            model: Any = run.model
            found.append(Losses(name, T, seed, *measure_losses(model, _draw(run, config, seed), config.reach)))
    return _finding(config, found)


def _given(config: WindowConfig, data: str, name: str, T: int) -> dict[str, Any]:
    wanted = {"d_model": config.d_model, "n_layers": 1, "max_memory": config.reach}
    return {
        "data": {"train": data},
        "tokenizer": {"kind": "char"},
        "model": {"name": name, **brief.choose_settings(name, wanted)},
        "optimizer": {"lr": brief.RATE},
        "train": {"n_batch": max(1, N_CHARACTERS // T), "n_context": T, "order": "stream", "max_eval_tokens": 2048},
    }


def _draw(run: LanguageModelRun, config: WindowConfig, seed: int) -> Int[Tensor, "W S"]:
    """Stretches of held-out text: `reach` characters to carry a state from, and `reach` to predict."""
    text = run.text_of(None)
    subject = brief.Subject(run.config.model_name, run, text if len(text) else run.text_of(None, "valid"))
    stretches = brief.draw_stretches(subject, 2 * config.reach + 1, config.n_texts, np.random.default_rng(seed))
    return torch.from_numpy(stretches)


@torch.no_grad()
def measure_losses(model: GradientModel, stretches: Int[Tensor, "W S"], reach: int) -> tuple[list[float], list[float]]:
    """Nats at each of `reach` positions, mean over stretches of 2 reach + 1: with the state reset, and carried on."""
    model.eval()
    found: tuple[list[Tensor], list[Tensor]] = ([], [])
    for part in torch.split(stretches.to(model.embedding.device), AT_ONCE):
        before, inputs, targets = part[:, :reach], part[:, reach:-1], part[:, reach + 1 :]
        _, state = model.hidden(before)
        for kept, begun in zip(found, (None, state), strict=True):
            h: Any = model.hidden(inputs, begun)[0]
            kept.append(model.nats_each(h, targets).double())
    reset, carried = (torch.cat(kept).mean(dim=0).tolist() for kept in found)
    return reset, carried


def choose_bins(reach: int, lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Positions to average over, as half-open stretches: ever longer ones, cut at every T.

    >>> choose_bins(40, [4, 12])
    [(0, 1), (1, 2), (2, 4), (4, 8), (8, 12), (12, 16), (16, 32), (32, 40)]
    """
    powers = [2**i for i in range(reach.bit_length()) if 2**i < reach]
    edges = sorted({0, reach, *powers, *(T for T in lengths if reach > T)})
    return list(pairwise(edges))


def _finding(config: WindowConfig, found: Sequence[Losses]) -> Finding:
    names = list(dict.fromkeys(each.name for each in found))
    rows = []
    for name in names:
        of_name = [each for each in found if each.name == name]
        figures = [
            spread([float(np.mean(each.carried)) for each in of_name]),
            spread([each.within for each in of_name]),
            spread([each.beyond for each in of_name]),
        ]
        rows.append((name, *(figure.write(_nats) for figure in figures)))
    return Finding(
        question="Is a state worth carrying past where back-propagation is cut?",
        sentence=window_sentence(found),
        charts=_charts(config, found),
        summary=Numbers(
            "Loss with the state carried, and what carrying it saves, in nats a character",
            ("model", "carried", "saved up to T", "saved beyond T"),
            tuple(rows),
            note="Saved up to T: what would be lost if the state were set to zero at every cut. Saved beyond T: at the "
            "T characters after these, where all that a gradient ever crossed has been read since, and only state from "
            "farther back can help.",
        ),
        method=_method(config),
        numbers={
            "positions": list(range(config.reach)),
            "curves": [
                {
                    "model": each.model, "T": each.length, "seed": each.seed, "reset": each.reset,
                    "carried": each.carried, "saved_up_to_T": each.within, "saved_beyond_T": each.beyond,
                }
                for each in found
            ],
        },
    )  # fmt: skip


def _charts(config: WindowConfig, found: Sequence[Losses]) -> tuple[Chart, ...]:
    bins = choose_bins(config.reach, config.lengths)

    def draw(of: Sequence[Losses], what: str) -> tuple[Line, ...]:
        values = [(each, getattr(each, what)) for each in of]
        return lines_of(
            (each.name, start + 1, float(np.mean(curve[start:end]))) for each, curve in values for start, end in bins
        )

    after = "characters after the reset"
    charts = [
        Chart(
            "What older state saves",
            after,
            "nats a character saved",
            draw(found, "saved"),
            is_x_log=True,
            y_limits=(LEAST, 4.0),
            note="The loss with the state reset less that with the state carried on, by how many characters "
            "were read since the reset. To the right of T nothing but state from beyond the cut can save anything.",
        )
    ]
    for model in config.models:
        of = [each for each in found if each.model == model]
        carried = [
            Line(f"{line.name}, carried", line.points, line.band, "2 3", line.name) for line in draw(of, "carried")
        ]
        charts.append(
            Chart(
                f"{model}: loss after a reset", after, "nats a character", (*draw(of, "reset"), *carried),
                is_x_log=True, is_y_log=False, note="The same held-out text, read from a state of zeros, and (dotted) "
                "with the state that the text before it left.",
            )
        )  # fmt: skip
    return tuple(charts)


def _nats(value: float) -> str:
    """
    >>> _nats(3.14159), _nats(0.00421)
    ('3.142', '0.004')
    """
    return f"{value:.3f}"


def window_sentence(found: Sequence[Losses]) -> str:
    """What the numbers say, in one sentence."""
    lengths = list(dict.fromkeys(each.length for each in found))
    parts = []
    for model in dict.fromkeys(each.model for each in found):
        saved = [spread([e.beyond for e in found if (e.model, e.length) == (model, T)]) for T in lengths]
        parts.append(f"{join_names([figure.write(_nats) for figure in saved])} nats a character in {model}")
    T = join_names([str(length) for length in lengths])
    begin = say_seeds(len({each.seed for each in found}))
    return (
        f"{begin}: where the gradient is cut every T = {T} characters, state from before the cut still saves "
        f"{join_names(parts)}, at the T characters after all that a gradient could cross was read anew."
    )


def _method(config: WindowConfig) -> Mapping[str, str]:
    return {
        "Models": f"{join_names(list(config.models))} of `regard train`, one layer, width {config.d_model}, learning "
        f"rate {brief.RATE:g}",
        "Training": f"{config.n_steps:,} updates of {N_CHARACTERS} characters for each T, as {N_CHARACTERS}/T rows of "
        "T; the state is carried from update to update, the gradient is not",
        "Text": f"{brief.describe_text(config.data, False)}; {config.n_texts} stretches of {2 * config.reach} "
        "characters, the same for every model of a seed",
        "State": f"reset: zeros; carried: what the {config.reach} characters before left",
        **brief.describe_seeds(config, ()),
    }
