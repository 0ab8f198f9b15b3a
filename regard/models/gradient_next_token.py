"""A gradient model as a NextToken: windows or carried state for scoring, caches for going on token by token."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.kernels.cuda_graph import MIN_STEPS, Borrowed, Pool
from regard.kernels.device import device_guard
from regard.kernels.linear import copy_in_order, lay_out
from regard.kernels.lm_graph import LMGraph, fit_key
from regard.kernels.state import reorder
from regard.layers.taps import is_recorded
from regard.mixers.attention import AttentionStack
from regard.mixers.mixer import State, StaticMixer, select_positions
from regard.models.gradient_model import GradientModel
from regard.models.next_token import EOS, CountNextToken, NextToken, context_length, greedy_steps
from regard.models.pointer import PointerModel

N_TOKENS_AT_ONCE = 4096
MAX_GRAPHS = 4  # kept for later texts, each with the memory of its caches
MIN_LAID_OUT = 32  # steps for which weights are copied


class Reading(NamedTuple):
    """Where the reading of B texts stands."""

    mixer: State
    history: Int[Tensor, "B M"] | None
    """What a fixed-context model has read, and starts again from when it is full."""
    n: int
    """How many of the history's columns are filled."""
    head: Float[Tensor, "V D"]
    graph: Borrowed[LMGraph] | None = None
    """The step as a CUDA graph, which then holds the mixer's state."""


class GradientNextToken:
    """A gradient model as a NextToken; puts it into evaluation mode. `eos` is the token every text begins after.

    `n_lanes` cuts a text that is scored with carried state into so many pieces read side by side: exact at 1, faster
    and slightly pessimistic above, since every piece but the first starts with no past but one token.
    """

    def __init__(self, model: GradientModel, *, n_lanes: int = 1, eos: int = EOS) -> None:
        self.model = model.eval()
        self.vocab_size, self.max_context = model.vocab_size, model.mixer.max_context
        self.n_lanes, self.eos = n_lanes, eos
        self.stride = check_stride(None, self.max_context)
        self._graphs: Pool[LMGraph] = Pool(lambda: MAX_GRAPHS)

    def nats(self, ids: NDArray[np.integer[Any]], stride: int | None = None) -> NDArray[np.float64]:
        stride = check_stride(stride, self.max_context)
        text = torch.from_numpy(np.concatenate([[self.eos], ids]).astype(np.int64))
        if self.max_context is not None or self.n_lanes == 1:
            nats: NDArray[np.float64] = self._nats_of_rows(text[None, :-1], text[None, 1:], stride)[0]
            return nats
        inputs, targets = cut_into_lanes(text, self.n_lanes)
        return self._nats_of_rows(inputs, targets, stride).reshape(-1)[: len(ids)]

    def nats_of_windows(self, windows: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        tokens = torch.from_numpy(windows.astype(np.int64))
        n_rows = max(1, N_TOKENS_AT_ONCE // tokens.shape[1])
        parts = [self._nats_of_rows(rows[:, :-1], rows[:, 1:], self.stride) for rows in torch.split(tokens, n_rows)]
        return np.concatenate(parts)

    def nats_of_texts(self, texts: Sequence[NDArray[np.integer[Any]]]) -> list[NDArray[np.float64]]:
        """`nats` of each text, similar lengths side by side: a token knows its past alone, so padding reaches none."""
        found: dict[int, NDArray[np.float64]] = {}
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        while order:
            T = max(1, len(texts[order[0]]))
            batch, order = order[: max(1, N_TOKENS_AT_ONCE // T)], order[max(1, N_TOKENS_AT_ONCE // T) :]
            rows = np.full((len(batch), 1 + T), self.eos, dtype=np.int64)
            for row, i in zip(rows, batch, strict=True):
                row[1 : 1 + len(texts[i])] = texts[i]
            text = torch.from_numpy(rows)
            nats = self._nats_of_rows(text[:, :-1], text[:, 1:], self.stride)
            found |= {i: nats[k, : len(texts[i])] for k, i in enumerate(batch)}
        return [found[i] for i in range(len(texts))]

    @torch.inference_mode()
    def _nats_of_rows(
        self, inputs: Int[Tensor, "B T"], targets: Int[Tensor, "B T"], stride: int
    ) -> NDArray[np.float64]:
        """-log P(targets[b, t] | inputs[b, :t+1]), each row a text of its own."""
        if self.max_context is None:
            return score_carrying_state(self.model, inputs, targets, self._device)
        nats = torch.zeros(inputs.shape, dtype=torch.float64)
        if inputs.numel() == 0:
            return nats.numpy()
        for rows, starts, length, skip in windows(inputs.shape[0], inputs.shape[1], self.max_context, stride):
            columns = starts[:, None] + torch.arange(length)  # (W, length)
            # Read as one text after another is written: a model without its mask would else see what it is asked for.
            state = self.model.start(len(rows), length) if self._sees_ahead else None
            h, _ = self.model.hidden(inputs[rows[:, None], columns].to(self._device), state)
            scored = rows[:, None], columns[:, skip:]
            nats[scored] = self._nats_of_hidden(select_positions(h, slice(skip, None)), targets[scored])
        return nats.numpy()

    def _nats_of_hidden(self, h: Any, targets: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        return self.model.nats_each(h, targets.to(self._device)).double().cpu()

    @torch.inference_mode()
    def start(self, prompts: Int[Tensor, "B T"], capacity: int | None = None) -> tuple[Float[Tensor, "B V"], Reading]:
        with device_guard(self._device):  # kernels and graphs run on its card, whichever is current
            return self._start(prompts, capacity)

    def _start(self, prompts: Int[Tensor, "B T"], capacity: int | None) -> tuple[Float[Tensor, "B V"], Reading]:
        B, T = prompts.shape
        text = functional.pad(prompts.to(self._device), (1, 0), value=self.eos)  # (B, 1+T)
        n_steps = 0 if capacity is None else capacity - T
        head = self._head(B, n_steps)
        if self.max_context is None:
            return self._begin(text, None, 0, 1 + T, head, n_steps)
        n = context_length(1 + T, self.max_context, self.stride)
        room = self.max_context if capacity is None else max(n, min(self.max_context, 1 + capacity))
        history = text.new_zeros(B, self.max_context)
        history[:, :n] = text[:, -n:]
        return self._begin(history[:, :n], history, n, room, head, n_steps)

    def _begin(
        self, text: Int[Tensor, "B T"], history: Tensor | None, n: int, room: int, head: Tensor, n_steps: int
    ) -> tuple[Float[Tensor, "B V"], Reading]:
        """Read the prompt; the steps to come are a CUDA graph where that is possible and pays."""
        B = len(text)
        model = self.model
        if n_steps < MIN_STEPS or not can_be_captured(model, text):
            return self._read(text, Reading(model.start(B, room), history, n, head))
        key = fit_key(model, B, room if history is not None else 0)
        graph = self._graphs.borrow(key, lambda: LMGraph(model, B, room, is_limited=history is not None))
        log_probs, state = self._read(text, Reading(graph.thing.before(B, room), history, n, head))
        graph.thing.begin(state.mixer)
        return log_probs, state._replace(mixer=None, graph=graph)

    @torch.inference_mode()
    def step(self, tokens: Int[Tensor, " B"], state: Reading) -> tuple[Float[Tensor, "B V"], Reading]:
        with device_guard(self._device):
            return self._step(tokens, state)

    def _step(self, tokens: Int[Tensor, " B"], state: Reading) -> tuple[Float[Tensor, "B V"], Reading]:
        history, n = state.history, state.n
        if history is None:
            return self._read(tokens[:, None].to(self._device), state)
        if n < history.shape[1]:
            history[:, n] = tokens
            return self._read(history[:, n : n + 1], state._replace(n=n + 1))
        kept = n - self.stride
        history[:, :kept] = history[:, self.stride :].clone()
        history[:, kept] = tokens
        graph, B = state.graph, len(tokens)
        fresh = self.model.start(B, n) if graph is None else graph.thing.before(B, n)
        log_probs, after = self._read(history[:, : kept + 1], Reading(fresh, history, kept + 1, state.head))
        if graph is not None:
            graph.thing.begin(after.mixer)
            after = after._replace(mixer=None, graph=graph)
        return log_probs, after

    @torch.inference_mode()
    def greedy(self, log_probs: Float[Tensor, "B V"], state: Reading, n_steps: int) -> Iterator[list[int]]:
        graph = state.graph
        if graph is None or (state.history is not None and state.n + n_steps > state.history.shape[1]):
            yield from greedy_steps(self, log_probs, state, n_steps)
            return
        tokens = log_probs.argmax(dim=-1)
        for i in range(n_steps):
            # The step after this one is under way before Python waits for this one's tokens.
            with device_guard(self._device):
                seen = tokens.to("cpu", non_blocking=True)
                is_seen = torch.cuda.Event()  # type: ignore[no-untyped-call]
                is_seen.record()
                if i + 1 < n_steps:
                    tokens = graph.thing.argmax(tokens)
            is_seen.synchronize()
            yield seen.tolist()

    def _read(self, ids: Int[Tensor, "B T"], state: Reading) -> tuple[Float[Tensor, "B V"], Reading]:
        if state.graph is not None:
            graph = state.graph.thing
            # A kernel that writes past a cache's end writes into the next one, and nobody would know.
            assert graph.room is None or state.n <= graph.room, "more tokens than `capacity` promised"
            return graph.log_probs(ids[:, 0]).clone(), state
        h, after = self.model.hidden(ids, state.mixer)
        last = select_positions(h, slice(-1, None))
        return self.model.log_probs(last, state.head), state._replace(mixer=after)

    def _head(self, B: int, n_steps: int) -> Float[Tensor, "V D"]:
        """The output matrix; for long texts on a CPU in an order that is multiplied faster, as all weights are then.

        The copy pays for itself after about 20 steps.
        """
        weight = self.model.output_weight
        if weight.device.type != "cpu" or n_steps < MIN_LAID_OUT:
            return weight
        lay_out(self.model, B)
        found = copy_in_order(weight, B)
        return weight if found is None else found.weight

    def reorder(self, state: Reading, rows: Int[Tensor, " R"]) -> Reading:
        rows = rows.to(self._device)
        mixer = state.mixer
        if state.graph is not None:  # a graph's memory cannot change its rows: go on without it
            mixer = state.graph.thing.without_graph(state.n)
        history = reorder(state.history, rows)
        return state._replace(mixer=reorder(mixer, rows), history=history, graph=None)

    @property
    def _sees_ahead(self) -> bool:
        return isinstance(self.model.mixer, AttentionStack) and self.model.mixer.sees_ahead

    @property
    def _device(self) -> torch.device:
        return self.model.embedding.device


def cut_into_lanes(text: Int[Tensor, " N"], n_lanes: int) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
    """Inputs and targets of a text that is read in so many pieces side by side; the last is filled up with zeros."""
    L = -(-(len(text) - 1) // n_lanes)  # tokens a lane, rounded up
    text = functional.pad(text, (0, n_lanes * L + 1 - len(text)))
    return text[:-1].view(-1, L), text[1:].view(-1, L)


@runtime_checkable
class CarriesState(Protocol):
    """A model that reads on from where it was, however long the text is."""

    def hidden(self, ids: Int[Tensor, "B T"], state: Any = None) -> tuple[Any, Any]: ...

    def nats_each(self, h: Any, targets: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]: ...


@torch.inference_mode()
def score_carrying_state(
    model: CarriesState, inputs: Int[Tensor, "B T"], targets: Int[Tensor, "B T"], device: torch.device
) -> NDArray[np.float64]:
    """-log P(targets[b, t] | inputs[b, :t+1]), each row a text of its own, a part of the columns at a time."""
    nats, state = torch.zeros(inputs.shape, dtype=torch.float64), None
    if inputs.numel() == 0:
        return nats.numpy()
    for part in torch.split(torch.arange(inputs.shape[1]), max(1, N_TOKENS_AT_ONCE // len(inputs))):
        h, state = model.hidden(inputs[:, part].to(device), state)
        nats[:, part] = model.nats_each(h, targets[:, part].to(device)).double().cpu()
    return nats.numpy()


def can_be_captured(model: GradientModel, text: Int[Tensor, "B T"]) -> bool:
    """Whether a step is a CUDA graph: on a GPU, and its state holds nothing that Python must look at.

    What can be copied from a text with words that the tokenizer does not have, Python must look at.
    """
    if model.embedding.device.type != "cuda" or is_recorded(model):
        return False
    if isinstance(model, PointerModel) and int(text.max()) >= model.vocab_size:
        return False
    return isinstance(model.mixer, StaticMixer) and model.mixer.has_static_step


def windows(B: int, T: int, limit: int, stride: int) -> Iterator[tuple[Tensor, Tensor, int, int]]:
    """Batches of (rows, starts, length, how many tokens at the front only give context) that score each token once.

    The first window of a row scores all it holds; a later one starts `stride` further and scores its last ones.
    """
    n_shared = limit - stride
    jobs: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row in range(B):
        for start in range(0, max(T - n_shared, 1), stride):
            jobs.setdefault((min(limit, T - start), n_shared if start else 0), []).append((row, start))
    for (length, skip), places in jobs.items():
        for batch in torch.split(torch.tensor(places), max(1, N_TOKENS_AT_ONCE // length)):
            yield batch[:, 0], batch[:, 1], length, skip


def check_stride(stride: int | None, limit: int | None) -> int:
    """How far a window of `limit` tokens moves at a time: half of it if nothing is said."""
    if limit is None:
        return 1
    if stride is None:
        return limit - limit // 2
    if not 1 <= stride <= limit:
        raise RegardError(f"stride must be between 1 and the model's max_context {limit}, not {stride}.")
    return stride


def as_next_token(model: GradientModel | NgramModel, eos: int = EOS) -> NextToken:
    """Any model as a NextToken, with the adapter's defaults; `eos` is its tokenizer's."""
    return CountNextToken(model) if isinstance(model, NgramModel) else GradientNextToken(model, eos=eos)
