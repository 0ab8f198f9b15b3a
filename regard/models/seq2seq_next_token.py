"""A model with a source as decoding sees it: log-probabilities of the next token, step by step."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.layers.any_shape import attention_of_any_shape
from regard.layers.on_device import on_device
from regard.layers.record import Record
from regard.mixers import mixer as mixers
from regard.mixers.mixer import State
from regard.models.conditional_language_model import ConditionalLanguageModel
from regard.models.next_token import EOS
from regard.models.seq2seq import Seq2Seq
from regard.models.source import Source


class Written(NamedTuple):
    """Where the writing of R targets stands."""

    source: Source
    """Its states are gone: the decoder took what it needs of them."""
    decoder: State
    n_words: int
    """W, of which every step gives log-probabilities."""
    attention: Float[Tensor, "R S"] | None = None
    """The weights with which the last step looked at the source, where they are kept."""


class Translating:
    """A model with a source, ready to write; puts it into evaluation mode.

    `eos` is the token that every target begins after. With `keeps_attention` a state holds the weights on the source
    with which its last log-probabilities were found: the mean over the heads of the last layer that looks.
    """

    def __init__(
        self, model: Seq2Seq | ConditionalLanguageModel, *, eos: int = EOS, keeps_attention: bool = False
    ) -> None:
        self.model = model.eval()
        self.vocab_size, self.max_context = model.vocab_size, model.max_context
        self.eos, self.keeps_attention = eos, keeps_attention

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
        with on_device(self._device), attention_of_any_shape():
            here = [None if x is None else x.to(self._device) for x in (source_ids, source_mask, words)]
            return self.begin_from(self.model.encode(*here), capacity)  # type: ignore[arg-type]

    @torch.inference_mode()
    def begin_from(self, source: Source, capacity: int) -> tuple[Float[Tensor, "B W"], Written]:
        """The same from sources that are encoded already."""
        with on_device(self._device), attention_of_any_shape():
            decoder = self.model.start(source, capacity)
            slim = source._replace(states=source.states[:, :0], start=())
            first = torch.full((len(source.mask),), self.eos, device=self._device)
            return self._step(first, Written(slim, decoder, self.model.n_words(source.words)))

    @torch.inference_mode()
    def step(self, tokens: Int[Tensor, " R"], state: Written) -> tuple[Float[Tensor, "R W"], Written]:
        """The same after one more token in each target; one beyond the vocabulary is read as <unk>.

        The state is used up.
        """
        with on_device(self._device), attention_of_any_shape():
            return self._step(tokens.to(self._device), state)

    def _step(self, tokens: Int[Tensor, " R"], state: Written) -> tuple[Float[Tensor, "R W"], Written]:
        record = Record() if self.keeps_attention else None
        h, decoder = self.model.hidden(tokens[:, None], state.source, state.decoder, record)
        attention = None
        if record is not None:
            looked = list(record.named("cross_attention").values())  # (R, N, 1, S) each, lowest layer first
            attention = looked[-1][:, :, 0].mean(dim=1) if looked else None
        return self.model.log_probs(h, state.n_words), state._replace(decoder=decoder, attention=attention)

    def reorder(self, state: Written, rows: Int[Tensor, " R"]) -> Written:
        """The state whose targets are `rows` of this one's (a row may come twice)."""
        rows = rows.to(self._device)
        attention = mixers.reorder(state.attention, rows)
        return Written(state.source.rows(rows), mixers.reorder(state.decoder, rows), state.n_words, attention)

    @property
    def _device(self) -> torch.device:
        return self.model.embedding.device
