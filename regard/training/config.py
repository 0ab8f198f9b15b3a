"""The sections of a run's config that say how it is trained. Importing this file does not import torch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from regard.errors import RegardError
from regard.settings import Settings, setting

DEFAULT_STEPS = 2000
DEFAULT_CONTEXT = 64
MAX_SNAPSHOTS = 100

MAY_CHANGE_ON_RESUME = (
    "train.max_steps", "train.max_tokens", "train.max_seconds", "train.max_epochs", "train.patience",
    "train.eval_every", "checkpoint.every_steps", "checkpoint.every_seconds", "checkpoint.keep", "checkpoint.log_every",
    "checkpoint.has_tensorboard", "checkpoint.snapshots", "runtime.device", "runtime.n_threads",
    "runtime.max_memory_gb",
)  # fmt: skip
"""Settings that a run may be resumed with other values of; everything else is what the run is.

- The limits and `patience` say when a run ends, and are asked after every update: a finished run goes on where they are
  raised. A schedule that follows the share of the budget that is spent follows that of the new one from there on.
- `eval_every` and all of `checkpoint` say when somebody looks at the weights or writes them. No update depends on it,
  but through the scores: a plateau schedule and the averages `nt-asgd` and `last` count evaluations.
- `device`, `n_threads` and `max_memory_gb` say where the same numbers are computed; another device or another number of
  threads rounds differently, so that the bits are no longer those of a run that was never stopped.
"""


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig(Settings):
    """How an update is made from a gradient."""

    name: str = setting("adamw", "update rule", choices=("adamw", "sgd"))
    lr: float | None = setting(
        None, "highest learning rate; null: what was measured for the model (docs/defaults.md)", low=0.0
    )
    follows_width: bool | None = setting(
        None,
        "adamw: scale the rate of every weight by the width it reads, so that one lr suits narrow and wide models; "
        "null: yes for language models whose lr is null",
    )
    embedding_rate: float | None = setting(
        None,
        "the rate of embeddings as a multiple of lr; null: 4 for attention and the Transformer where rates follow the "
        "width, else 1",
        low=0.0,
    )
    layer_decay: float = setting(
        1.0,
        "the rate of a layer as a multiple of that of the layer above it: below 1, the low layers of a model that is "
        "fine-tuned move less (Howard & Ruder 2018)",
        low=0.01,
        high=1.0,
    )
    head_rate: float = setting(
        1.0,
        "classify, rate, tag, answer: the rate of what lies above the encoder as a multiple of lr; a fresh head on "
        "a trained encoder wants more than 1",
        low=0.0,
    )
    betas: tuple[float, float] = setting(
        (0.9, 0.99), "adamw: decay of the averages of gradient and squared gradient", low=0.0, high=0.999999
    )
    momentum: float = setting(0.0, "sgd: momentum", low=0.0, high=0.9999)
    weight_decay: float | None = setting(
        None, "decay of matrices (of the rest only with decays_vectors); null: 0.1 for adamw, 0 for sgd", low=0.0
    )
    max_grad_norm: float | None = setting(1.0, "gradients longer than this are scaled down to it; null: never", low=0.0)
    decays_vectors: bool = setting(False, "decay biases, norms and vectors too, as Merity et al. 2018 do")
    is_fused: bool = setting(True, "use the fused update where there is one; the same numbers, faster")
    younger: ClassVar[Mapping[str, Any]] = {"follows_width": False}

    def check(self) -> None:
        _refuse_zero(self, "lr", "no weight would move")
        _refuse_zero(self, "embedding_rate", "no embedding would move")
        _refuse_zero(self, "head_rate", "the head would never learn")
        if self.follows_width and self.name != "adamw":
            raise RegardError(f"follows_width is for adamw, not for {self.name}. Leave one of the two out.")
        _refuse_zero(self, "max_grad_norm", "every gradient would be scaled down to nothing; null scales none")

    def complete(self, is_recurrent: bool, lr: float | None = None, embedding_rate: float = 1.0) -> Self:
        """A copy in which nothing is null.

        `lr` and `embedding_rate` are what was measured for the model with rates that follow the width; None: nothing
        was. A rate that is the same for all weights is 0.005 for recurrent models and 0.001 for others, of sgd 5 and
        0.5.
        """
        is_adamw = self.name == "adamw"
        is_measured = is_adamw and lr is not None
        follows = is_measured and self.lr is None if self.follows_width is None else self.follows_width
        same_for_all = (5e-3 if is_recurrent else 1e-3) if is_adamw else (5.0 if is_recurrent else 0.5)
        filled = {
            "lr": lr if follows and is_measured else same_for_all,
            "follows_width": follows,
            "embedding_rate": embedding_rate if follows else 1.0,
            "weight_decay": 0.1 if is_adamw else 0.0,
        }
        return self.replace(**{name: value for name, value in filled.items() if getattr(self, name) is None})


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig(Settings):
    """How the learning rate moves, as a factor on `optimizer.lr`."""

    name: str = setting(
        "cosine", "shape after the warm-up", choices=("constant", "cosine", "linear", "inverse-sqrt", "plateau")
    )
    n_warmup: int = setting(
        100, "steps of linear warm-up; never more than a tenth of the budget, however short the run", low=0
    )
    p_final: float = setting(0.1, "cosine, linear, plateau: the factor at the end, or the lowest", low=0.0, high=1.0)
    patience: int = setting(2, "plateau: evaluations without a better score before the rate drops", low=1)
    factor: float = setting(0.5, "plateau: what the rate is multiplied by", low=0.0, high=1.0)


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Settings):
    """What is fed to the model, for how long, and how it is watched. The first limit reached ends the run."""

    max_steps: int | None = setting(
        None, f"stop after so many updates; none of the four limits given: {DEFAULT_STEPS} steps", low=1
    )
    max_tokens: int | None = setting(None, "stop after so many tokens", low=1)
    max_seconds: float | None = setting(
        None, "stop after so many seconds of training; evaluation and saving do not count", low=0.0
    )
    max_epochs: float | None = setting(None, "stop after so many passes over the training text", low=0.0)
    vectors: str | None = setting(
        None, "a run or a file of word vectors that embeddings begin as; tokens that have none there begin at random"
    )
    n_batch: int = setting(32, "sequences an update", low=1, high=2**24)
    n_context: int | None = setting(
        None, "tokens a sequence; null: the model's context, or 64 where it has none", low=1
    )
    varies_context: bool = setting(
        False, "windows of varying length around n_context (Merity et al. 2018); for models that carry their state"
    )
    n_accumulate: int = setting(
        1, "compute the batch in so many parts to save memory; the update stays the same", low=1
    )
    order: str = setting(
        "auto",
        "stream: the text in order, state carried over; shuffle: windows in random order; auto: as suits the model",
        choices=("auto", "stream", "shuffle"),
    )
    eval_every: int = setting(200, "steps between evaluations on the validation text", low=1)
    max_eval_tokens: int | None = setting(
        50_000, "evaluate on the first so many tokens of the validation text; null: on all of it", low=1
    )
    patience: int | None = setting(None, "stop after so many evaluations without a better score; null: never", low=1)
    average: str = setting(
        "none",
        "evaluate and keep an average of the weights; ema: a moving one; nt-asgd: the mean since scores got no better; "
        "last: the mean of those at the last evaluations",
        choices=("none", "ema", "nt-asgd", "last"),
    )
    average_decay: float = setting(0.999, "ema: how much of the average is kept at each step", low=0.0, high=0.999999)
    average_patience: int = setting(
        5, "nt-asgd: begin when a score is worse than the best of those more than so many evaluations ago", low=0
    )
    average_last: int = setting(5, "last: of how many evaluations", low=1)

    def check(self) -> None:
        _refuse_zero(self, "max_seconds", "the run would be over before its first update")
        _refuse_zero(self, "max_epochs", "none of the text would be read")

    def complete(self, max_context: int | None) -> Self:
        """A copy with a number of tokens a sequence where it is null; `max_context` is what the model sees at most."""
        return self if self.n_context is not None else self.replace(n_context=max_context or DEFAULT_CONTEXT)


@dataclass(frozen=True, kw_only=True)
class RuntimeConfig(Settings):
    """Where and how the numbers are computed."""

    device: str = setting("auto", "auto, cpu, cuda or cuda:N; auto takes a GPU where there is one")
    precision: str = setting(
        "float32",
        "how products are rounded; tf32: to 10 bits, on a GPU; bf16: to 7 bits, under autocast; weights stay float32",
        choices=("float32", "tf32", "bf16"),
    )
    is_compiled: bool = setting(False, "torch.compile the model; pays off in long runs")
    is_replayed: bool = setting(True, "on a GPU: capture an update once and replay it; the same bits, less waiting")
    is_deterministic: bool = setting(False, "only operations that give the same bits each time; on a CPU they all do")
    n_threads: int | None = setting(None, "CPU threads; null: one for each CPU that is idle when the run begins", low=1)
    max_memory_gb: float | None = setting(
        None, "refuse to start when the estimate is above this; null: what is free now", low=0.0
    )

    def check(self) -> None:
        check_device(self.device)


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig(Settings):
    """What a run writes while it trains."""

    every_steps: int | None = setting(None, "save the state every so many steps; null: by time only", low=1)
    every_seconds: float | None = setting(60.0, "save the state every so many seconds; null: by steps only", low=0.0)
    keep: int = setting(2, "how many states to keep, two at least: the next loss has yet to judge the newest", low=1)
    snapshots: tuple[int, ...] = setting(
        (),
        "steps after which the weights are kept in RUN/snapshots as well, for `regard look RUN --over-time`; 0: as "
        "they began. Each costs the disk as much as model.safetensors",
        low=0,
    )
    log_every: int = setting(10, "steps between two training lines in metrics.jsonl", low=1)
    has_tensorboard: bool = setting(True, "write TensorBoard events too")

    def check(self) -> None:
        _refuse_zero(self, "every_seconds", "to save after every update, set every_steps to 1")
        if len(set(self.snapshots)) > MAX_SNAPSHOTS:
            raise RegardError(
                f"snapshots names {len(set(self.snapshots))} steps, and {MAX_SNAPSHOTS} are the most that a run keeps "
                "the weights of. Name fewer, further apart towards the end: [0, 10, 30, 100, 300, 1000]."
            )


def _refuse_zero(section: Settings, name: str, why: str) -> None:
    if getattr(section, name) == 0:
        raise RegardError(f"{name} must be more than 0, not {getattr(section, name)}: {why}.")


def check_device(name: str) -> None:
    """Refuse what names no device; whether this machine has it is asked later (`pick_device`)."""
    if not isinstance(name, str) or not re.fullmatch(r"auto|cpu|cuda(:\d+)?", name):
        meant = " Did you mean 'cuda'?" if str(name).lower().startswith(("gpu", "cuda")) else ""
        raise RegardError(f"device must be auto, cpu, cuda or cuda:N, not {name!r}.{meant}")
