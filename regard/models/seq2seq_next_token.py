"""A model with a source as decoding sees it: log-probabilities of the next token, step by step."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.kernels.cuda_graph import Borrowed
from regard.kernels.device import device_guard, sdpa_backend_for_any_shape
from regard.kernels.linear import copy_in_order, lay_out
from regard.kernels.seq2seq_graph import Seq2SeqGraph, borrow_graph, room_for
from regard.kernels.state import reorder
from regard.layers.taps import is_recorded
from regard.mixers.mixer import State
from regard.models.conditional_language_model import ConditionalLanguageModel
from regard.models.next_token import EOS
from regard.models.seq2seq import Seq2Seq
from regard.models.source import Source

MIN_LAID_OUT = 8  # steps for which weights are copied


class Written(NamedTuple):
    """Where the writing of R targets stands."""

    source: Source
    """Its states are gone: the decoder took what it needs of them."""
    decoder: State
    n_words: int
    """W, of which every step gives log-probabilities."""
    capacity: int
    """The most tokens a target will have."""
    head: Float[Tensor, "V D"] | None = None
    """The output matrix as the steps after the first multiply with it."""
    rows: Int[Tensor, " R"] | None = None
    """What is still to be reordered, where the next step does that too."""
    tried: bool = False
    """Whether replaying was thought of and left."""
    graph: Borrowed[Seq2SeqGraph] | None = None
    """The step as a CUDA graph, which then holds the decoder's state."""


class Translating:
    """A model with a source, ready to write; puts it into evaluation mode.

    `start` is the token that every target begins after; where it is not written too, the others share its probability.

    On a GPU a step is replayed as a CUDA graph where that is possible; `is_static` decides it otherwise.
    """

    def __init__(
        self,
        model: Seq2Seq | ConditionalLanguageModel,
        *,
        start: int = EOS,
        is_start_written: bool = True,
        is_static: bool | None = None,
    ) -> None:
        self.model = model.eval()
        self.target = model.target if isinstance(model, Seq2Seq) else model
        self.is_static = model.embedding.is_cuda and not is_recorded(self.target) if is_static is None else is_static
        self.vocab_size, self.max_context = model.vocab_size, model.max_context
        self.start, self.is_start_written = start, is_start_written

    @torch.inference_mode()
    def begin(
        self,
        source_ids: Int[Tensor, "B S"],
        source_mask: Bool[Tensor, "B S"],
        words: Int[Tensor, "B S"] | None,
        capacity: int,
    ) -> tuple[Float[Tensor, "B W"], Written]:
        """Read B sources; the log-probabilities of each target's first token, and the state to go on from.

        `capacity` is the most tokens a target will have.
        """
        assert isinstance(self.model, Seq2Seq), "what is no text is encoded by who made it: `begin_from`"
        with device_guard(self._device), sdpa_backend_for_any_shape():
            here = [None if x is None else x.to(self._device) for x in (source_ids, source_mask, words)]
            return self.begin_from(self.model.encode(*here), capacity)  # type: ignore[arg-type]

    @torch.inference_mode()
    def begin_from(self, source: Source, capacity: int) -> tuple[Float[Tensor, "B W"], Written]:
        """Begin from sources that are encoded already: log-probabilities of each first token, and the state."""
        with device_guard(self._device), sdpa_backend_for_any_shape():
            decoder = self.target.start(source, capacity)
            gone = source.states.new_empty(len(source.states), 0, source.states.shape[2])  # a slice would keep them
            slim = source._replace(states=gone, start=())
            first = torch.full((len(source.mask),), self.start, device=self._device)
            log_probs, state = self._step(first, Written(slim, decoder, self.target.n_words(source.words), capacity))
            return self._leave_out(log_probs), state

    @torch.inference_mode()
    def step(self, tokens: Int[Tensor, " R"], state: Written) -> tuple[Float[Tensor, "R W"], Written]:
        """Log-probabilities after one more token in each target; one beyond the vocabulary is read as <unk>.

        The state is used up.
        """
        with device_guard(self._device), sdpa_backend_for_any_shape():
            tokens = tokens.to(self._device)
            if state.graph is None and self.is_static:
                state = self._with_graph(state, len(tokens))
            if state.graph is not None:
                return self._leave_out(state.graph.thing.step(tokens, state.rows)), state._replace(rows=None)
            state = state if state.head is not None else self._with_head(state, len(tokens))
            log_probs, state = self._step(tokens, state)
            return self._leave_out(log_probs), state

    def _leave_out(self, log_probs: Float[Tensor, "R W"]) -> Float[Tensor, "R W"]:
        """log P(w | w is not the start), where the start is never written."""
        if self.is_start_written:
            return log_probs
        return log_probs.index_fill(1, torch.tensor([self.start], device=log_probs.device), -torch.inf).log_softmax(-1)

    def _with_head(self, state: Written, n_rows: int) -> Written:
        """On a CPU, copy the weights into the order that is multiplied fastest with as many rows as there are now."""
        head = self.target.output_weight
        if head.device.type != "cpu" or state.capacity < MIN_LAID_OUT:
            return state._replace(head=head)
        lay_out(self.target, n_rows)
        found = copy_in_order(head, n_rows)
        return state._replace(head=head if found is None else found.weight)

    def _with_graph(self, state: Written, n_rows: int) -> Written:
        """Replay steps from now on; where that does not pay, leave the state as it was, but in order."""
        target = self.target
        room = None if state.tried else room_for(target, state.decoder, state.source.mask, n_rows, state.capacity)
        if room is not None:
            return state._replace(decoder=None, graph=borrow_graph(target, state.decoder, state.source, room))
        rows = state.rows
        state = state._replace(tried=True, rows=None)
        return state if rows is None else self._reorder(state, rows)

    def _step(self, tokens: Int[Tensor, " R"], state: Written) -> tuple[Float[Tensor, "R W"], Written]:
        h, decoder = self.target.hidden(tokens[:, None], state.source, state.decoder)
        return self.target.log_probs(h, state.n_words, state.head), state._replace(decoder=decoder)

    def reorder(self, state: Written, rows: Int[Tensor, " R"]) -> Written:
        """The state whose targets are `rows` of this one's (a row may come twice)."""
        rows = rows.to(self._device)
        if state.graph is not None or (self.is_static and not state.tried):
            return state._replace(rows=rows if state.rows is None else state.rows[rows])
        return self._reorder(state, rows)

    def _reorder(self, state: Written, rows: Int[Tensor, " R"]) -> Written:
        source, decoder = reorder((state.source, state.decoder), rows)
        return state._replace(source=source, decoder=decoder)

    @property
    def _device(self) -> torch.device:
        return self.model.embedding.device
