"""The choice of a search: which hypotheses go on, and with which tokens.

Some sixty small kernels for a step, which take a GPU less time than it takes Python to launch them. So they are
captured once as a CUDA graph, and replayed.
"""

import math

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from regard.decode.rules import IMPOSSIBLE
from regard.kernels.cuda_graph import MIN_STEPS, Borrowed, CapturedGraph, Pool
from regard.kernels.device import device_guard
from regard.kernels.seq2seq_graph import round_up
from regard.kernels.static_state import write_corner
from regard.kernels.topk import topk

MAX_GRAPHS = 4
"""Captured choices kept for later searches, each with room for the log-probabilities of a batch."""


class ChoiceGraph:
    """The choice in memory that stays where it is, with room for `n_sources` of `beam` hypotheses each."""

    @torch.inference_mode()
    def __init__(self, device: torch.device, n_sources: int, vocab_size: int, beam: int, stop: int | None) -> None:
        self.beam, self.stop = beam, stop
        self.totals = torch.zeros(n_sources, beam, dtype=torch.float64, device=device)
        self.log_probs = torch.zeros(n_sources * beam, vocab_size, device=device)
        self.n_left = torch.ones(n_sources, dtype=torch.int64, device=device)
        self._graph: CapturedGraph | None = None

    @torch.inference_mode()
    def __call__(
        self, totals: Float[Tensor, "b w"], log_probs: Float[Tensor, "R V"], n_left: Int[Tensor, " b"]
    ) -> Float[Tensor, "4 b w"]:
        """Choose for the first b sources."""
        write_corner(self.totals, totals)
        write_corner(self.log_probs, log_probs)
        write_corner(self.n_left, n_left)
        if not self.totals.is_cuda:
            return self._run()[:, : len(totals)]
        with device_guard(self.totals.device):
            self._graph = self._graph or CapturedGraph(self._run)
            return self._graph.replay()[:, : len(totals)]

    def _run(self) -> Float[Tensor, "4 n w"]:
        return choose(self.totals, self.log_probs, self.n_left, self.beam, self.stop)


_GRAPHS: Pool[ChoiceGraph] = Pool(lambda: MAX_GRAPHS)


class Choice:
    """`choose`, for the steps of one search; replayed where that is possible and pays."""

    def __init__(self, beam: int, stop: int | None, n_steps: int) -> None:
        self.beam, self.stop, self.n_steps = beam, stop, n_steps
        self.graph: Borrowed[ChoiceGraph] | None = None

    def __call__(
        self, totals: Float[Tensor, "b w"], log_probs: Float[Tensor, "R V"], n_left: Int[Tensor, " b"]
    ) -> Float[Tensor, "4 b k"]:
        """Valid until the next one."""
        b, w = totals.shape
        can_replay = log_probs.is_cuda and log_probs.dtype == torch.float32  # others are waited for: see `topk`
        if self.graph is None and can_replay and w == self.beam and self.n_steps >= MIN_STEPS:
            key = log_probs.device, round_up(b), log_probs.shape[1], self.beam, self.stop
            self.graph = _GRAPHS.borrow(key, lambda: ChoiceGraph(*key))
        if self.graph is not None and self.graph.thing.log_probs.shape[1] == log_probs.shape[1]:
            return self.graph.thing(totals, log_probs, n_left)
        return choose(totals, log_probs, n_left, self.beam, self.stop)


def choose(
    totals: Float[Tensor, "b w"],
    log_probs: Float[Tensor, "R V"],
    n_left: Int[Tensor, " b"],
    beam: int,
    stop: int | None,
) -> Float[Tensor, "4 b k"]:
    """Go on with the best continuations of w hypotheses of each source: `onward` of `continuations`."""
    return onward(continuations(totals, log_probs, beam), totals.shape[1], n_left, stop)


def continuations(totals: Float[Tensor, "b w"], log_probs: Float[Tensor, "R V"], beam: int) -> Float[Tensor, "3 b k"]:
    """The most probable continuations of w hypotheses of each source, best first: hypothesis, token and log P of each.

    Ties go to the more probable token, then to the earlier hypothesis, then to the lower id: so that a beam of 1
    decides every tie, and what rounding makes one, as greedy decoding does. Only the `beam` most probable tokens of a
    hypothesis can be among its source's; so the candidates are few. What cannot be has IMPOSSIBLE as its log P.
    """
    b, w = totals.shape
    values, ids = topk(log_probs, min(beam, log_probs.shape[1]))  # (b w, n)
    n = values.shape[1]
    candidates = (totals.view(-1, 1) + values.double()).clamp(min=IMPOSSIBLE)
    candidates = candidates.masked_fill(totals.view(-1, 1) == -math.inf, -math.inf).view(b, w * n)
    order = values.view(b, w * n).argsort(dim=-1, descending=True, stable=True)
    by_total = candidates.gather(1, order).argsort(dim=-1, descending=True, stable=True)
    order = order.gather(1, by_total)[:, :beam]
    tokens = ids.view(b, w * n).gather(1, order)
    return torch.stack([(order // n).double(), tokens.double(), candidates.gather(1, order)])


def onward(
    found: Float[Tensor, "3 b k"], n_before: int, n_left: Int[Tensor, " b"], stop: int | None
) -> Float[Tensor, "4 b k"]:
    """What `continuations` found among `n_before` hypotheses of each source, which may have `n_left` more tokens.

    The row of the batch before that each continues, its token, its log P, and again its log P, -inf where it is not
    open: complete at this length, or impossible. Of what is impossible only the first of a source is kept.
    """
    slots, tokens, log_probs = found
    is_kept = log_probs > IMPOSSIBLE
    is_kept[:, :1] = True  # one at least, impossible or not
    is_over = (n_left == 1)[:, None].expand_as(is_kept)
    is_over = is_over if stop is None else is_over | (tokens == stop)
    # What is impossible and yet kept goes on: only what is not open is -inf.
    totals = log_probs.clamp(min=IMPOSSIBLE).masked_fill(is_over | ~is_kept, -math.inf)
    rows = torch.arange(len(slots), device=slots.device)[:, None] * n_before + slots
    return torch.stack([rows, tokens, log_probs, totals])


class Sent:
    """A tensor on its way to where we can look at it, the GPU not waited for."""

    def __init__(self, tensor: Tensor) -> None:
        self.here = tensor.to("cpu", non_blocking=True)
        self.event = torch.cuda.current_stream(tensor.device).record_event() if tensor.is_cuda else None

    def read(self) -> NDArray[np.float64]:
        if self.event is not None:
            self.event.synchronize()
        there: NDArray[np.float64] = self.here.numpy()
        return there
