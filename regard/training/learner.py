"""One update of the weights, and all the tensors that the next one depends on.

    L = (Σ over the tokens of the batch of their nats) / (number of tokens)
    w' = rule(w, dL/dw clipped to max_grad_norm, lr)

The batch may be computed in `n_accumulate` parts, slices of its rows. Each part's nats are divided by the number of
tokens of the whole batch, so the sum of the parts' gradients is the gradient of the whole, whatever the masks are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.kernels.fused_recurrence import exclude_from_compiling
from regard.training.averaging import build_average
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.device import autocast
from regard.training.objective import Objective
from regard.training.optimizer import build_optimizer, clip_gradients, optimizer_tensors, restore_optimizer, set_rate
from regard.training.randomness import random_tensors, restore_random
from regard.training.replay import Replay
from regard.training.weights import load_weights, named_weights


@dataclass(frozen=True)
class Update:
    """What one update saw: nats summed over its tokens, the gradient's length before clipping, seconds it took."""

    nats: float
    n_tokens: int
    grad_norm: float
    seconds: float

    @property
    def nats_per_token(self) -> float:
        return self.nats / self.n_tokens


class ReadyBatch(NamedTuple):
    """A batch that waits for its update: for a GPU in pinned memory, from which a copy need not be waited for."""

    number: int
    tensors: tuple[Tensor, ...]  # rows first
    n_tokens: int
    is_fresh: bool


class Launched:
    """An update that a GPU may still be computing."""

    def __init__(self, numbers: Tensor, n_tokens: int, began: float, is_timed: bool) -> None:
        """`numbers` are the nats and the gradient's norm, on the device."""
        self.n_tokens, self.began, self.is_timed = n_tokens, began, is_timed
        self.numbers = numbers.to("cpu", non_blocking=True)
        self.is_there = torch.cuda.Event() if numbers.is_cuda else None  # type: ignore[no-untyped-call]
        if self.is_there is not None:
            self.is_there.record()

    def check(self) -> tuple[float, float]:
        """Wait for the nats and the gradient's norm; DivergedError where one is not finite."""
        if self.is_there is not None:
            self.is_there.synchronize()
        total, grad_norm = self.numbers.tolist()
        if not math.isfinite(total):
            raise DivergedError(f"the loss is {total / self.n_tokens}")
        if not math.isfinite(grad_norm):
            raise DivergedError(f"the loss is {total / self.n_tokens:.4g} and the gradient's norm is {grad_norm}")
        return total, grad_norm

    def wait(self, since: float = 0.0) -> Update:
        """Wait for what the update saw. Its seconds are those since it began, or since `since` where that is later."""
        total, grad_norm = self.check()
        seconds = time.perf_counter() - max(self.began, since) if self.is_timed else 0.0
        return Update(total, self.n_tokens, grad_norm, seconds)


class DivergedError(Exception):
    """The loss or the gradient is not a number any more; the weights are still those of the update before."""


class Learner:
    """A model with its optimiser, its average and the state it carries from one window of the text to the next."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        *,
        train: TrainConfig,
        optimizer: OptimizerConfig,
        runtime: RuntimeConfig,
        tell: Callable[[str], None] = lambda note: None,
    ) -> None:
        """`model` is on its device already. `tell` is called with what a person should know of how it is trained."""
        self.model, self.objective = model, objective
        self.device, self.precision = next(model.parameters()).device, runtime.precision
        self.max_grad_norm = optimizer.max_grad_norm
        self.parameters = list(model.named_parameters())
        self.optimizer = build_optimizer(self.parameters, optimizer)
        self.average = build_average(model, train)
        self.carried: list[Any] = [None] * train.n_accumulate
        self.is_guarded = self.device.type == "cuda" and optimizer.is_fused
        self.next_batch: ReadyBatch | None = None
        self.finished_at = 0.0
        self.has_failed = torch.zeros((), device=self.device)
        self.is_compiling = runtime.is_compiled
        body = objective.body(model)
        self.body: Callable[..., Any] = body
        if runtime.is_compiled:
            exclude_from_compiling()
            self.body = torch.compile(body)
        self.n_tokens: int | Tensor = 0  # of the batch that is learned from
        self.given: Tensor | None = None
        if self.is_guarded:
            # That number, and the rate of each group of weights, where a graph can read them.
            self.given = torch.zeros(1 + len(self.optimizer.param_groups), device=self.device)
            self._place_rates(self.given)
        is_replayed = self.is_guarded and runtime.is_replayed and can_replay(objective, tell)
        self.replay = Replay(self._learn, self.device, tell) if is_replayed else None

    def _place_rates(self, given: Tensor) -> None:
        self.n_tokens = given[0]
        for number, group in enumerate(self.optimizer.param_groups):
            group["lr"] = given[1 + number]

    def updates(
        self, step: int, tokens: int, rate: Callable[[int, int], float], is_awaited: Callable[[int, int], bool]
    ) -> Iterator[Update]:
        """Make update after update until one is awaited, and give each when it is finished.

        `step` and `tokens` count what was learned from before. `rate(step, tokens)` is the learning rate of the update
        that follows so many; `is_awaited(step, tokens)` says whether somebody will look at the weights or the counters
        after so many: to log, to evaluate, to save, to end. A CPU is always waited for. A GPU is handed the next update
        before the last one is read, so that it need not wait for Python; after the last one given here it has none.
        """
        pending: Launched | None = None
        is_done = False
        while not is_done:
            launched = self.launch(step, rate(step, tokens))
            step, tokens = step + 1, tokens + launched.n_tokens
            if pending is not None:
                yield self._finish(pending)
            pending = launched
            is_done = not self.is_guarded or is_awaited(step, tokens)
        assert pending is not None
        yield self._finish(pending)

    def _finish(self, launched: Launched) -> Update:
        update = launched.wait(since=self.finished_at)
        self.finished_at = time.perf_counter()
        return update

    def update(self, index: int, lr: float) -> Update:
        """Learn from batch `index`. Raises DivergedError, with the weights untouched, where a number is not finite."""
        return self.launch(index, lr).wait()

    def launch(self, index: int, lr: float) -> Launched:
        """Begin to learn from batch `index`, and do not wait for a GPU to have done so.

        Where a number is not finite the fused kernels leave the weights alone, then and in every later update: what is
        launched before anybody has looked does no harm.
        """
        began = time.perf_counter()
        if not self.model.training:
            self.model.train()
        batch, self.next_batch = self.next_batch, None
        if batch is None or batch.number != index:
            batch = self._make_ready(index)
        is_timed = not self.is_compiling
        self.is_compiling = False  # the first call compiles, which is no training time
        self._give(batch.n_tokens, lr)
        if self.replay is not None:
            numbers, self.carried, is_captured = self.replay(batch.tensors, self.carried, batch.is_fresh)
            launched = Launched(numbers, batch.n_tokens, began, is_timed and not is_captured)
        elif self.is_guarded:
            tensors = tuple(tensor.to(self.device, non_blocking=True) for tensor in batch.tensors)
            numbers, self.carried = self._learn(tensors, self.carried, batch.is_fresh)
            launched = Launched(numbers, batch.n_tokens, began, is_timed)
        else:
            tensors = tuple(tensor.to(self.device) for tensor in batch.tensors)
            numbers, self.carried = self._differentiate(tensors, self.carried, batch.is_fresh)
            launched = Launched(numbers, batch.n_tokens, began, is_timed)
            launched.check()
            self.optimizer.step()
        if self.average is not None:
            self.average.update(index + 1)
        if self.is_guarded:
            self.next_batch = self._make_ready(index + 1)
        return launched

    def _give(self, n_tokens: int, lr: float) -> None:
        """Put the numbers of the next update where it reads them."""
        if self.given is None:
            self.n_tokens = n_tokens
            set_rate(self.optimizer, lr)
        else:
            rates = [lr * group["rate_factor"] for group in self.optimizer.param_groups]
            self.given.copy_(self._pin(torch.tensor([n_tokens, *rates], dtype=torch.float32)), non_blocking=True)

    def _learn(self, tensors: tuple[Tensor, ...], before: list[Any], is_fresh: bool) -> tuple[Tensor, list[Any]]:
        """One update without a look at its numbers: all that changes from one to the next is in tensors."""
        numbers, after = self._differentiate(tensors, before, is_fresh)
        self.has_failed.copy_(torch.maximum(self.has_failed, (~numbers.isfinite()).any().float()))
        self.optimizer.found_inf = self.has_failed  # type: ignore[attr-defined]
        self.optimizer.step()
        return numbers, after

    def _differentiate(
        self, tensors: tuple[Tensor, ...], before: list[Any], is_fresh: bool
    ) -> tuple[Tensor, list[Any]]:
        """Put the gradient of a batch into the weights, clipped; the nats and its norm, and the states after."""
        self.optimizer.zero_grad(set_to_none=True)
        n_rows, n_parts = len(tensors[0]), len(self.carried)
        nats, after = torch.zeros((), device=self.device), [None] * n_parts
        for part in range(n_parts):
            rows = slice(part * n_rows // n_parts, (part + 1) * n_rows // n_parts)
            if rows.start == rows.stop:  # fewer rows than parts
                continue
            some = tuple(tensor[rows] for tensor in tensors)
            state = self.objective.start(self.model, some) if is_fresh else before[part]
            with autocast(self.precision, self.device):
                loss = self.objective.loss(self.model, self.body, some, state)
            (loss.goal / self.n_tokens).backward()  # type: ignore[no-untyped-call]
            nats = nats + loss.nats.detach()
            # Truncated back-propagation through time: the values go on, the gradient stops here.
            after[part] = detach(loss.after) if self.objective.carries_state else None
        norm = clip_gradients(self.model.parameters(), self.max_grad_norm)
        return torch.stack([nats.double(), norm.double()]), after

    def _make_ready(self, index: int) -> ReadyBatch:
        """Read batch `index`. Asked for while a GPU works, it costs no time."""
        batch = self.objective.at(index)
        if self.device.type == "cuda" and not self.objective.cannot_replay and not self.objective.has_one_shape:
            batch = self.objective.round_shape(batch)
        return ReadyBatch(index, tuple(map(self._pin, batch.tensors)), batch.n_tokens, batch.is_fresh)

    def _pin(self, tensor: Tensor) -> Tensor:
        return tensor.pin_memory() if self.device.type == "cuda" else tensor

    def kept_weights(self) -> dict[str, Tensor]:
        """The weights to keep for use: the averaged ones where there is an average."""
        return named_weights(self.model) | (self.average.average if self.average is not None else {})

    def tensors(self) -> tuple[dict[str, dict[str, Tensor]], Any]:
        """Everything the next update depends on, for a checkpoint; and the shape of the carried state."""
        carried, shape = flatten(tuple(self.carried))
        return {
            "model": named_weights(self.model),
            "average": self.average.tensors() if self.average is not None else {},
            "optimizer": optimizer_tensors(self.optimizer, self.parameters),
            "carried": carried,
            "random": random_tensors(),
        }, shape

    def restore(self, tensors: Mapping[str, dict[str, Tensor]], carried_shape: Any) -> None:
        """Go back to what `tensors` gave."""
        load_weights(self.model, tensors["model"], "the checkpoint's weights")
        if self.average is not None:
            self.average.restore(tensors["average"])
        restore_optimizer(self.optimizer, self.parameters, tensors["optimizer"])
        if self.given is not None:
            self._place_rates(self.given)
        on_device = {name: value.to(self.device) for name, value in tensors["carried"].items()}
        carried = list(unflatten(on_device, carried_shape))
        if len(carried) != len(self.carried) or not all(isinstance(part, tuple | Tensor | None) for part in carried):
            raise ValueError("the carried state is of another form")
        self.carried = carried
        restore_random(tensors["random"])


def can_replay(objective: Objective, tell: Callable[[str], None]) -> bool:
    """Whether updates can be captured; where they cannot, say why."""
    if objective.cannot_replay:
        tell(f"Updates are launched kernel by kernel, and none is captured and replayed: {objective.cannot_replay}.")
    return not objective.cannot_replay


def detach(tree: Any) -> Any:
    """Copy the values of a state without their history, into memory of their own.

    A state may be a view into a larger tensor, and a product over memory that is aligned or strided in another way
    may add in another order: a run that read its state from a file would differ in the last bit (seen with a GRU).
    """
    if isinstance(tree, Tensor):
        return tree.detach().clone(memory_format=torch.contiguous_format)
    return tuple(detach(part) for part in tree) if isinstance(tree, tuple) else tree


def flatten(tree: Any) -> tuple[dict[str, Tensor], Any]:
    """Take a state apart: tensors by name, and the shape of the tree as JSON.

    >>> flatten((3, (None,)))
    ({}, [3, [None]])
    """
    tensors: dict[str, Tensor] = {}

    def shape(part: Any) -> Any:
        if isinstance(part, Tensor):
            name = str(len(tensors))
            tensors[name] = part
            return {"tensor": name}
        return [shape(p) for p in part] if isinstance(part, tuple) else part

    json_shape = shape(tree)
    return tensors, json_shape


def unflatten(tensors: Mapping[str, Tensor], shape: Any) -> Any:
    """Put together what `flatten` took apart."""
    if isinstance(shape, dict):
        return tensors[shape["tensor"]]
    return tuple(unflatten(tensors, part) for part in shape) if isinstance(shape, list) else shape
