"""The settings of studies of one mechanism: parts left out, gradients that explode, state that is carried on.

This file imports no torch, so that settings are read and checked at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import RegardError
from regard.settings import Settings, setting
from regard.studies.config import MOST_SEEDS, N_HEADS, GradientsConfig, check_listed

_SEED, _SEEDS = GradientsConfig.help_of("seed").doc, GradientsConfig.help_of("n_seeds").doc
_DATA = "text to learn from and to measure on, as --data of `regard train`; null: python-docs"
CARRYING = ("rnn", "gru", "lstm", "rnn-attention")
PARTS = ("residual", "norm", "feed-forward", "values", "scale", "heads", "positions", "mask")


@dataclass(frozen=True, kw_only=True)
class AblateConfig(Settings):
    """A Transformer language model less one of its parts, all with the same updates of the same tokens."""

    parts: tuple[str, ...] = setting(PARTS, "which are left out, one at a time", choices=PARTS)
    data: str | None = setting(None, _DATA)
    n_steps: int = setting(600, "updates of each training", low=2)
    rates: tuple[float, ...] = setting(
        (0.005, 0.0015), "learning rates, each tried with every seed; of each seed the better one counts", low=1e-6
    )
    d_model: int = setting(64, "width of the models; a multiple of 4", low=4)
    n_layers: int = setting(3, "blocks of the models", low=1)
    n_context: int = setting(32, "tokens read at once", low=2)
    n_texts: int = setting(128, "stretches of held-out text that are measured, and texts that are written", low=2)
    widths: tuple[int, ...] = setting((16, 64, 256, 1024), "widths at which the variance of q·k is measured", low=2)
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(3, _SEEDS, low=1, high=MOST_SEEDS)

    def check(self) -> None:
        check_listed("parts", self.parts, "[mask, scale]")
        check_listed("rates", self.rates, "[0.005]")
        check_listed("widths", self.widths, "[16, 256]")
        if self.d_model % N_HEADS:
            raise RegardError(f"d_model must be a multiple of {N_HEADS}, the number of heads, not {self.d_model}.")


@dataclass(frozen=True, kw_only=True)
class ExplodeConfig(Settings):
    """Gradients through recurrent networks whose matrix V has a given spectral radius ρ."""

    radii: tuple[float, ...] = setting(
        (0.5, 0.9, 1.0, 1.1, 1.5), "spectral radii ρ that V is scaled to", low=0.01, high=10.0
    )
    matrix: str = setting(
        "orthogonal",
        "what V is before it is scaled: orthogonal stretches every vector alike, gaussian is drawn number by number",
        choices=("orthogonal", "gaussian"),
    )
    d_model: int = setting(64, "width of the networks", low=2)
    max_distance: int = setting(50, "steps back that are looked at; sequences are one longer", low=4, high=400)
    n_texts: int = setting(64, "sequences averaged over", low=2)
    clip: float = setting(1.0, "the norm that a gradient is clipped to", low=1e-6)
    n_steps: int = setting(150, "updates of the brief training", low=2)
    n_batch: int = setting(32, "sequences an update", low=1)
    lr: float = setting(0.1, "its learning rate, of plain gradient descent", low=1e-6)
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(5, _SEEDS, low=1, high=MOST_SEEDS)

    def check(self) -> None:
        check_listed("radii", self.radii, "[0.9, 1.1]")


@dataclass(frozen=True, kw_only=True)
class WindowConfig(Settings):
    """What a state that is carried past the truncation of back-propagation is worth."""

    models: tuple[str, ...] = setting(("rnn", "lstm"), "models that carry a state", choices=CARRYING)
    lengths: tuple[int, ...] = setting(
        (1, 2, 4, 8, 16), "truncation lengths T: characters between two cuts of the gradient", low=1
    )
    data: str | None = setting(None, _DATA)
    n_steps: int = setting(1000, "updates of each training, of 512 characters", low=1)
    d_model: int = setting(64, "width of the models", low=4)
    reach: int = setting(64, "characters after a reset that are looked at; at least twice the longest T", low=4)
    n_texts: int = setting(256, "stretches of held-out text that are measured", low=2)
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(3, _SEEDS, low=1, high=MOST_SEEDS)

    def check(self) -> None:
        check_listed("models", self.models, "[rnn, lstm]")
        check_listed("lengths", self.lengths, "[16, 64]")
        longest = max(self.lengths)
        if self.reach < 2 * longest:
            raise RegardError(
                f"reach is {self.reach} and the longest of lengths is {longest}: the {longest} characters beyond it "
                f"would not all be looked at. Make reach {2 * longest} or more, or leave out the longest."
            )
