"""Many small trainings at once: on a GPU, branches of one CUDA graph that is replayed once an update.

A small model leaves a GPU idle while Python launches its kernels. Here the updates of several models, which differ in
rate, decay or seed, are captured once, each on a stream of its own, and replayed together. The update is the product's:
the same batches, loss, clipping, rates, schedule and AdamW. On a CPU the same is done one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.batches import Batches
from regard.data.prepared_text import PreparedText
from regard.models.table import build_model
from regard.settings import Settings
from regard.tasks.text_objective import evaluate_slice
from regard.training.config import OptimizerConfig, ScheduleConfig
from regard.training.optimizer import clip_gradients, rate_factor
from regard.training.schedule import learning_factor

N_WARM = 3  # updates before a graph can be captured
N_VALID = 30_000  # tokens


@dataclass(frozen=True, kw_only=True)
class Job:
    """One model on one text, with several settings of its optimiser and several seeds."""

    model: str
    config: Settings
    optimizers: tuple[OptimizerConfig, ...]
    seeds: tuple[int, ...] = (0,)
    n_batch: int
    n_context: int
    n_updates: int | None = None
    flops: float | None = None


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What came of one training."""

    optimizer: OptimizerConfig
    seed: int
    n_parameters: int
    n_updates: int
    bits_per_byte: float


def train_side_by_side(job: Job, data: PreparedText, device: torch.device) -> list[Trained]:
    """Train every optimiser with every seed, and score each model on the validation text."""
    chosen = [(optimizer, seed) for optimizer in job.optimizers for seed in job.seeds]
    models = [_build(job, data, seed).to(device).train() for _, seed in chosen]
    order = "stream" if models[0].mixer.carries_state else "shuffle"
    cost = 3.0 * models[0].flops_per_token(job.n_context) * job.n_batch * job.n_context
    n_updates = job.n_updates or max(20, round((job.flops or 0.0) / cost))
    tape = _Tape.record(job, data, order, n_updates, device)
    branches = [_Branch(model, optimizer, tape) for model, (optimizer, _) in zip(models, chosen, strict=True)]
    step = _Step(branches, device)
    for _ in range(n_updates):
        step()
    return [
        Trained(
            optimizer=optimizer,
            seed=seed,
            n_parameters=sum(p.numel() for p in model.parameters()),
            n_updates=n_updates,
            bits_per_byte=_score(model, data),
        )
        for model, (optimizer, seed) in zip(models, chosen, strict=True)
    ]


def _build(job: Job, data: PreparedText, seed: int) -> Any:
    torch.manual_seed(seed)
    return build_model(job.model, job.config, data.tokenizer.vocab_size)


def _score(model: Any, data: PreparedText) -> float:
    with torch.no_grad():
        found = evaluate_slice(model.eval(), data.valid, N_VALID, data.tokenizer.eos).bits_per_byte
    return found if math.isfinite(found) else math.inf


@dataclass(frozen=True)
class _Tape:
    """All batches of a training and the schedule, on the device; update i reads entry i."""

    inputs: Tensor
    targets: Tensor
    mask: Tensor
    is_fresh: Tensor
    schedule: Tensor
    carries_state: bool

    @classmethod
    def record(cls, job: Job, data: PreparedText, order: str, n: int, device: torch.device) -> _Tape:
        source = Batches(data.train, n_batch=job.n_batch, n_context=job.n_context, order=order)
        batches = [source.at(i) for i in range(n)]
        shape = ScheduleConfig()
        return cls(
            *(torch.from_numpy(np.stack([getattr(b, name) for b in batches])).to(device)
              for name in ("inputs", "targets", "mask")),
            torch.tensor([b.is_fresh for b in batches], device=device),
            torch.tensor([learning_factor(shape, i, i / n) for i in range(n)], device=device),
            order == "stream",
        )  # fmt: skip


class _Branch:
    """A model with its optimiser; `update` reads entry i of the tape, where i is a tensor on the device."""

    def __init__(self, model: Any, config: OptimizerConfig, tape: _Tape) -> None:
        self.model, self.tape, self.lr = model, tape, config.lr or 0.0
        device = tape.inputs.device
        groups: dict[tuple[float, float], list[nn.Parameter]] = {}
        for name, p in model.named_parameters():
            decay = (config.weight_decay or 0.0) if p.ndim >= 2 else 0.0
            groups.setdefault((rate_factor(name, p, config), decay), []).append(p)
        made = [
            {"params": group, "lr": torch.zeros((), device=device), "weight_decay": decay, "rate_factor": factor}
            for (factor, decay), group in groups.items()
        ]
        is_gpu = device.type == "cuda"
        self.optimizer = torch.optim.AdamW(made, betas=config.betas, fused=is_gpu, foreach=False, capturable=is_gpu)
        self.first = model.start(*tape.inputs.shape[1:]) if tape.carries_state else None
        self.state = _map(lambda t: t.clone(memory_format=torch.contiguous_format), self.first)

    def update(self, i: Tensor) -> None:
        tape, before = self.tape, None
        if tape.carries_state:
            before = _map(lambda a, b: torch.where(tape.is_fresh[i], a, b), self.first, self.state)
        inputs, targets, mask = (t[i][0] for t in (tape.inputs, tape.targets, tape.mask))
        self.optimizer.zero_grad(set_to_none=True)
        h, after = self.model.hidden(inputs, before)
        goal, _ = self.model.goal_of(h, targets, mask)
        (goal / targets.numel()).backward()
        clip_gradients(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"].copy_(tape.schedule[i][0] * (self.lr * group["rate_factor"]))
        self.optimizer.step()
        if tape.carries_state:
            with torch.no_grad():
                _map(lambda a, b: a.copy_(b), self.state, after)


class _Step:
    """One update of every branch."""

    def __init__(self, branches: list[_Branch], device: torch.device) -> None:
        self.branches, self.i = branches, torch.zeros(1, dtype=torch.int64, device=device)
        self.n_done, self.graph = 0, None
        self.is_gpu = device.type == "cuda"
        if self.is_gpu:
            self.stream: Any = torch.cuda.Stream()
            self.streams = [torch.cuda.Stream() for _ in branches]
            self.stream.wait_stream(torch.cuda.current_stream())

    def __call__(self) -> None:
        if not self.is_gpu:
            for branch in self.branches:
                branch.update(self.i)
            self.i.add_(1)
            return
        with torch.cuda.stream(self.stream):
            if self.n_done < N_WARM:
                self._launch()
            elif self.graph is None:
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph, stream=self.stream):
                    self._launch()
                self.graph.replay()  # capturing computes nothing
            else:
                self.graph.replay()
        self.n_done += 1
        if self.n_done % 100 == 0:
            torch.cuda.synchronize()

    def _launch(self) -> None:
        for branch, stream in zip(self.branches, self.streams, strict=True):
            stream.wait_stream(self.stream)
            with torch.cuda.stream(stream):
                branch.update(self.i)
        for stream in self.streams:
            self.stream.wait_stream(stream)
        self.i.add_(1)


def _map(f: Callable[..., Any], *trees: Any) -> Any:
    if isinstance(trees[0], Tensor):
        return f(*trees)
    if isinstance(trees[0], tuple):
        parts = [_map(f, *each) for each in zip(*trees, strict=True)]
        return type(trees[0])(*parts) if hasattr(trees[0], "_fields") else tuple(parts)
    return trees[0]
