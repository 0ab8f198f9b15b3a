"""How much memory a run will take, before it takes it.

    weights + gradients + optimiser (AdamW: two more of each weight) + average + activations + loss

Activations are not guessed: the forward pass of one sequence is run and what autograd keeps for the backward pass is
added up, then multiplied by the sequences a part of a batch has; weights that were dropped for the pass are there once.
A model that will be trained where it is runs there, by the kernels it will be trained with. Any other is run on torch's
`meta` device, which has shapes and no memory, so that a model far too large for the machine can be asked too; kernels
of their own, such as the fused LSTM of a CPU, may keep up to three times as much as that shows. The loss holds the
logits of one chunk and the gradient of the output weights, twice while it is scaled.
"""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.layers.cross_entropy import rows_at_once
from regard.layers.elman import Elman
from regard.layers.gru import GRU
from regard.layers.lstm import LSTM
from regard.mixers.mixer import tensors_of
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.device import autocast, device_type
from regard.training.objective import Objective

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes of a training run, by what they are for."""

    weights: int
    gradients: int
    optimizer: int
    average: int
    activations: int
    loss: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.average + self.activations + self.loss

    def parts(self) -> list[tuple[str, int]]:
        """Name and bytes of each part."""
        return [(f.name, getattr(self, f.name)) for f in dataclasses.fields(self)]

    def __str__(self) -> str:
        """For people: the total, and what it is made of.

        >>> print(MemoryEstimate(2**30, 2**30, 2**31, 0, 2**29, 2**20))
        4.50 GB (weights 1.00 GB, gradients 1.00 GB, optimizer 2.00 GB, activations 0.50 GB, loss 1 MB)
        """
        return f"{readable(self.total)} ({', '.join(f'{name} {readable(n)}' for name, n in self.parts() if n)})"


def estimate_memory(
    model: nn.Module, objective: Objective, train: TrainConfig, optimizer: OptimizerConfig, runtime: RuntimeConfig
) -> MemoryEstimate:
    """Estimate a run's memory on the device that `runtime` asks for, wherever `model` is now."""
    kind = device_type(runtime.device)
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    learned = sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)  # frozen: no gradient
    n_slots = 2 if optimizer.name == "adamw" else int(optimizer.momentum > 0)
    n_rows = -(-objective.n_rows // train.n_accumulate)
    there = model if next(model.parameters()).device.type == kind else _outline(model)
    return MemoryEstimate(
        weights=weights,
        gradients=learned,
        optimizer=n_slots * learned,
        average=_held_by_average(weights, train),
        activations=_kept_by_autograd(there, lambda: objective.read_row(there), n_rows, runtime),
        loss=_held_by_loss(objective.output_weight(model), n_rows * objective.n_target, kind, runtime),
    )


def _held_by_average(weights: int, train: TrainConfig) -> int:
    """The average, and while it is evaluated the weights it stands in for; and what it is the mean of, if kept."""
    kept = train.average_last if train.average == "last" else 0
    return (2 + kept) * weights if train.average != "none" else 0


def _held_by_loss(W: Tensor, n_tokens: int, kind: str, runtime: RuntimeConfig) -> int:
    """Bytes of one chunk's logits, which become their softmax in place, and of the gradient of the output weights W.

    That gradient is summed up in the forward pass, and scaled into a second one in the backward pass. In bfloat16 there
    is a copy of the chunk in the low precision too, and of the weights.
    """
    n_logits = min(rows_at_once(kind, len(W)), n_tokens) * len(W)
    is_low = runtime.precision == "bf16"
    return (4 + 2 * is_low) * n_logits + (2 * W.element_size() + 2 * is_low) * W.numel()


def _outline(model: Model) -> Model:
    """The same model on the meta device, with no copy of its weights made on the way."""
    without_memory: dict[int, Any] = {
        id(p): nn.Parameter(p.detach().to("meta"), requires_grad=p.requires_grad) for p in model.parameters()
    }
    without_memory |= {id(b): b.to("meta") for b in model.buffers()}
    return copy.deepcopy(model, without_memory)


def _kept_by_autograd(model: nn.Module, read_one: Callable[[], Any], n_rows: int, runtime: RuntimeConfig) -> int:
    """Bytes that a forward pass keeps for its backward pass, weights left out, measured on one sequence."""
    device = next(model.parameters()).device
    own = {_key(p) for p in model.parameters()} | {_key(b) for b in model.buffers()}
    dropped = {m.kernel.weight_hh_l0.shape for m in model.modules() if isinstance(m, Elman | GRU | LSTM) and m.p_weight}
    kept: dict[Any, int] = {}  # by sequence
    kept_once: dict[Any, int] = {}
    alive: list[Tensor] = []  # so that no address is used again for another tensor

    def keep(tensor: Tensor) -> Tensor:
        alive.append(tensor)
        if _key(tensor) not in own:
            (kept_once if tensor.shape in dropped else kept)[_key(tensor)] = tensor.untyped_storage().nbytes()
        return tensor

    was_training = model.training
    # Dropout draws random numbers; whoever asks for an estimate must not notice.
    with torch.random.fork_rng(devices=[] if device.type != "cuda" else [device]):
        model.train()
        with (
            torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
            autocast(runtime.precision, device) if device.type != "meta" else torch.enable_grad(),
        ):
            h = read_one()
    model.train(was_training)
    # What the loss reads, the gradient of that, and the same scaled.
    read = 3 * sum(part.numel() * part.element_size() for part in tensors_of(h))
    return sum(kept_once.values()) + n_rows * (sum(kept.values()) + read)


def _key(tensor: Tensor) -> Any:
    """What makes two tensors the same memory; on the meta device, where there is none, the storage object."""
    return tensor.untyped_storage()._cdata


def available_memory(device: torch.device) -> int | None:
    """Bytes that are free on a device now, or None where it cannot be told. Containers' limits are respected."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    found = [n for n in (_free_in_machine(), _free_in_cgroup()) if n is not None]
    return min(found) if found else None


def check_memory(needed: MemoryEstimate, runtime: RuntimeConfig, device: torch.device, settings: str) -> None:
    """Refuse a run that cannot fit. `settings` are those to lower when memory runs out."""
    limit = runtime.max_memory_gb
    available = int(limit * 2**30) if limit is not None else available_memory(device)
    if available is not None and needed.total > available:
        raise RegardError(
            f"Training needs about {needed} and {device} has {readable(available)}. Raise train.n_accumulate, lower "
            f"{settings}, or take a smaller model."
        )


def readable(n_bytes: int) -> str:
    """Bytes for people, in GB from a tenth of one."""
    return f"{n_bytes / 2**30:.2f} GB" if n_bytes >= 2**30 / 10 else f"{n_bytes / 2**20:.0f} MB"


def _free_in_machine() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _free_in_cgroup() -> int | None:
    """Room left under a container's limit (cgroup v2, then v1); cached files count as room."""
    root = Path("/sys/fs/cgroup")
    names = ("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")
    for limit_name, used_name in names:
        try:
            limit, used = int((root / limit_name).read_text()), int((root / used_name).read_text())
            stat = (root / limit_name).with_name("memory.stat").read_text().split()
        except (OSError, ValueError):
            continue
        cached = int(stat[stat.index("inactive_file") + 1]) if "inactive_file" in stat else 0
        return max(0, limit - used + cached)
    return None
