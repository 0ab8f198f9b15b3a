"""Named taps: what a model computed, kept for looking at, and replaced where that is asked for.

A layer that is handed Taps writes what it computed under a name that is public vocabulary:

    embedding            (B, T, D)     after the embedding and its dropout
    positions            (1, T, D)     the vectors that tell where a token stands
    layers.L.query, .key, .value  (B, N, T, K)  of every head; of one that looks further back, (B, N, S, K)
    layers.L.scores      (B, N, T, S)  what the softmax reads, scaled; -inf where it may not look
    layers.L.attention   (B, N, T, S)  attention weights
    layers.L.z           (B, N, T, K)  each head's sum of values, weighted by its attention
    layers.L.residual    (B, T, D)     the input of the layer plus what attention gave
    layers.L.cross_query, .cross_key, .cross_value, .cross_scores, .cross_attention, .cross_z, .cross_residual
                         the same of a decoder's look at its source; N = 1 in recurrent ones
    encoder.…            the same names for what the encoder computed; .ahead and .back where it reads both ways
    layers.L.gates.input, .forget, .output, .candidate, .reset, .update   (B, T, H)
    layers.L.cell        (B, T, H)     LSTM cell states
    layers.L.hidden      (B, T, D)     the output of layer L; (B, T, F) inside the bag and the window
    layers.L.gates.vocabulary  (B, T, 1)  of a model that copies: the share of its vocabulary
    probabilities.vocabulary, .copied, .mixed  (B, T, W)  p, c and g p + c of a model that copies
    hidden               (B, T, D)     what the head reads
    pool.attention       (B, 1, 1, T)  a classifier's weights on the tokens of its text
    logits               (B, T, V)     of a reader: its scores of classes or tags, a number

A layer that is handed None computes the same numbers by its fastest path and keeps nothing. The choice is the
caller's, by argument; nothing is switched on behind the model's back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from threading import get_ident
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.errors import RegardError, nearest
from regard.kernels.device import at_least_float32

Replacement = Callable[[Tensor], Tensor] | Tensor | NDArray[Any] | float
"""What stands in for a value: a function of it, or numbers, of which NaN leaves what was computed."""


class Taps:
    """Tensors by tap name; `scope("layers.0")` is the same record seen from inside that layer.

    `replace` has what is to stand in for a value, by tap name: the model goes on with that. Numbers are spread over the
    value's shape, with its batch dimension or without it. Recurrent layers compute `gates`, `cell` and `hidden` step by
    step: there a function is called at every step with all steps, zero where they are still to come, and its answer
    counts for the step at hand, so that what comes later follows from it.
    """

    def __init__(self, replace: Mapping[str, Replacement] | None = None) -> None:
        self._kept: dict[str, Tensor] = {}
        self._steps: dict[str, tuple[tuple[Tensor, ...], Callable[[Tensor], Tensor]]] = {}
        self._replace: Mapping[str, Replacement] = {} if replace is None else replace
        self._used: set[str] = set()
        self._prefix = ""
        self._turn: Callable[[Tensor], Tensor] | None = None

    def _same(self) -> Taps:
        inner = Taps()
        inner._kept, inner._steps, inner._replace, inner._used = self._kept, self._steps, self._replace, self._used
        inner._prefix, inner._turn = self._prefix, self._turn
        return inner

    def scope(self, name: str) -> Taps:
        """The record seen from inside the part called `name`."""
        inner = self._same()
        inner._prefix = f"{self._prefix}{name}."
        return inner

    def turn_by(self, turn: Callable[[Tensor], Tensor]) -> Taps:
        """The record of a part that reads in another order; `turn`, done twice, does nothing."""
        inner = self._same()
        inner._turn = turn
        return inner

    def keep(self, name: str, value: Tensor) -> Tensor:
        """Remember `value` (with its graph, so that gradients can be asked for), and hand back what to go on with."""
        if self._turn is not None:
            return self._turn(self._keep(name, self._turn(value)))
        return self._keep(name, value)

    def _keep(self, name: str, value: Tensor) -> Tensor:
        whole = self._prefix + name
        if whole in self._replace:
            self._used.add(whole)
            value = _replace_by(self._replace[whole], value, whole)
        self._kept[whole] = value = _with_gradient(value)
        self._steps.pop(whole, None)
        return value

    def replace_whole(self, name: str, value: Tensor) -> Tensor:
        """What stands in for `value`, which is not kept yet."""
        whole = self._prefix + name
        self._used.add(whole)
        turn = self._turn or (lambda x: x)
        return turn(_replace_by(self._replace[whole], turn(value), whole))

    def keep_steps(self, name: str, values: Sequence[Tensor]) -> None:
        """Remember the values of steps that were taken one after the other."""
        turn = self._turn or (lambda x: x)
        self._kept[self._prefix + name] = turn(_join(values))
        self._steps[self._prefix + name] = (tuple(values), turn)

    def replaces(self, name: str) -> bool:
        """Whether something stands in for the value called `name`."""
        return self._prefix + name in self._replace

    def steps(self, n: int) -> Steps:
        """A record of `n` steps that are taken one after the other."""
        return Steps(self, n)

    def gradient(self, name: str) -> Tensor:
        """The gradient at a tap, after `backward`; an error where none came there."""
        whole = self._prefix + name
        if whole not in self._kept:
            raise RegardError(f"There is no tap '{name}'.{nearest(name, list(self))} There are: {', '.join(self)}.")
        parts, turn = self._steps.get(whole, ((self._kept[whole],), None))
        if all(part.grad is None for part in parts):
            raise RegardError(
                f"No gradient came to the tap '{name}'. Call backward, with gradients enabled, on a number that was "
                "computed from it."
            )
        filled = [torch.zeros_like(part) if part.grad is None else part.grad for part in parts]
        return filled[0] if turn is None else turn(_join(filled))

    def check_replaced(self) -> None:
        """Refuse replacements of values that the model never computed."""
        left = [name for name in self._replace if name not in self._used]
        if left:
            raise RegardError(
                f"There is no value '{left[0]}' to replace.{nearest(left[0], list(self))} The model computed: "
                f"{', '.join(self)}."
            )

    def __getitem__(self, name: str) -> Tensor:
        return self._kept[self._prefix + name]

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._kept

    def __iter__(self) -> Iterator[str]:
        return (n.removeprefix(self._prefix) for n in self._kept if n.startswith(self._prefix))

    def __repr__(self) -> str:
        return f"<Taps: {', '.join(f'{name} {tuple(self[name].shape)}' for name in self) or 'nothing recorded yet'}>"

    def to_numpy(self) -> dict[str, NDArray[Any]]:
        """Every value as an array, by its name, with the batch dimension; float32 at least."""
        return {name: at_least_float32(self[name].detach()).cpu().numpy() for name in self}

    def named(self, ending: str) -> dict[str, Tensor]:
        """All taps whose name ends so: `named("attention")` is every layer's weights."""
        return {n: self[n] for n in self if n == ending or n.endswith("." + ending)}

    def take(self, other: Taps) -> None:
        """Remember all that another record holds, under the same names."""
        self._kept |= other._kept
        self._steps |= other._steps
        self._used |= other._used

    def belongs_to(self, other: Taps) -> bool:
        """Whether this is a part of the other record, or that itself."""
        return self._kept is other._kept

    def add_replacements(self, other: Taps) -> Taps:
        """An empty record with this one's replacements and, of values that it does not replace, the other's."""
        joined = Taps({**other._replace, **self._replace})
        joined._prefix, joined._turn = self._prefix, self._turn
        return joined


class Steps:
    """The record of a loop over `n` steps; a value of one step is (B, H), (B, 1, D) or (B, N, 1, S)."""

    def __init__(self, taps: Taps, n: int) -> None:
        self.taps, self.n = taps, n
        self._values: dict[str, list[Tensor]] = {}

    def now(self, part: str = "") -> Step:
        """What the part called `part` keeps its values of the step at hand in."""
        return Step(self, f"{part}." if part else "")

    def keep(self, name: str, value: Tensor) -> Tensor:
        """Remember the next step's value, and hand back what to go on with."""
        values = self._values.setdefault(name, [])
        if self.taps.replaces(name):
            later = [torch.zeros_like(value)] * (self.n - len(values) - 1)
            whole = self.taps.replace_whole(name, _join([*values, value, *later]))
            value = whole.narrow(_time_of(value), len(values), 1).reshape(value.shape)
        values.append(_with_gradient(value))
        return values[-1]

    def finish(self) -> None:
        """Write all steps into the record."""
        for name, values in self._values.items():
            self.taps.keep_steps(name, values)


class Step(NamedTuple):
    """What one step of a loop hands to the layers: the record, and the name of the part that is computed."""

    steps: Steps
    prefix: str = ""

    def keep(self, name: str, value: Tensor) -> Tensor:
        return self.steps.keep(self.prefix + name, value)


class Block(NamedTuple):
    """A block that records what some methods of some modules compute, or replaces it."""

    record: Taps
    methods: tuple[tuple[nn.Module, tuple[str, ...]], ...]
    thread: int
    """The thread that began it: `asyncio.to_thread` hands the context on to another."""

    def records(self, module: object, name: str | None = None) -> bool:
        """Whether the method called `name` is recorded here; without a name, whether any of the module is."""
        if get_ident() != self.thread:
            return False
        return any(each is module and (name is None or name in names) for each, names in self.methods)


BLOCKS: ContextVar[tuple[Block, ...]] = ContextVar("BLOCKS", default=())
"""The blocks that this thread or task is inside, the outermost first; those of others concern it not."""


def is_recorded(model: object) -> bool:
    """Whether this thread records a model now: by the plain path, and not by replays or other engines, which hide."""
    return any(block.records(model) for block in BLOCKS.get())


def keep(taps: Taps | None, name: str, value: Tensor) -> Tensor:
    """Remember `value` where there are taps, and hand back what to go on with."""
    return value if taps is None else taps.keep(name, value)


def scope(taps: Taps | None, name: str) -> Taps | None:
    """The taps seen from inside the part called `name`, where there are any."""
    return None if taps is None else taps.scope(name)


def _with_gradient(value: Tensor) -> Tensor:
    if value.requires_grad and not value.is_leaf:
        value.retain_grad()
    return value


def _time_of(value: Tensor) -> int:
    """The dimension along which the values of steps stand one after the other."""
    return 2 if value.dim() == 4 else 1


def _join(values: Sequence[Tensor]) -> Tensor:
    """The values of all steps as one tensor."""
    return torch.stack(tuple(values), dim=1) if values[0].dim() == 2 else torch.cat(tuple(values), _time_of(values[0]))


def _replace_by(replacement: Replacement, value: Tensor, name: str) -> Tensor:
    """What stands in for `value`, of its shape."""
    if callable(replacement):
        found = replacement(value)
        if not isinstance(found, Tensor) or found.shape != value.shape:
            given = f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else repr(found)[:60]
            raise RegardError(
                f"What replaces '{name}' must be a tensor of shape {tuple(value.shape)}, as the value is, not {given}."
            )
        return found
    numbers = torch.as_tensor(replacement).to(value)
    try:
        numbers = numbers.broadcast_to(value.shape)
    except RuntimeError:
        raise RegardError(
            f"What replaces '{name}' has the shape {tuple(numbers.shape)}, and the value has {tuple(value.shape)}. "
            "Give one of the same shape, without the batch dimension if you like."
        ) from None
    return torch.where(numbers.isnan(), value, numbers)
