"""Sequence to sequence: an encoder reads the source, a conditional language model writes the target."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.bridge import Bridge, mean_state
from regard.layers.taps import Taps, keep, scope
from regard.mixers.mixer import Encoder, State, select_positions
from regard.models.conditional_language_model import ConditionalLanguageModel, Hidden, check_length
from regard.models.source import Source


class Seq2Seq(nn.Module):
    """P(y | x) = Π_t P(y_t | y_1 ... y_{t-1}, s),   s = encoder(E' x_1, ..., E' x_S)

    Two mixers, and between them the encoder's end (`Bridge`), attention, or both. E' is an embedding of its own, or the
    target's, where both languages share one vocabulary.
    """

    def __init__(
        self,
        source_vocab_size: int,
        encoder: Encoder,
        target: ConditionalLanguageModel,
        bridge: Bridge | None,
        std: float | None = None,
    ) -> None:
        """`std` is the spread of E' at the start; None: E' is the target's. Dropout is the encoder's."""
        super().__init__()
        self.source_vocab_size = source_vocab_size
        self.source_embedding = None if std is None else nn.Parameter(torch.empty(source_vocab_size, target.d_model))
        self.encoder, self.bridge, self.target = encoder, bridge, target
        if self.source_embedding is not None:
            assert std is not None
            nn.init.normal_(self.source_embedding, std=std)

    def encode(
        self,
        source: Int[Tensor, "B S"],
        mask: Bool[Tensor, "B S"],
        words: Int[Tensor, "B S"] | None = None,
        taps: Taps | None = None,
    ) -> Source:
        """What the decoder may look at. `words` are the source's ids in the target's extended vocabulary."""
        check_length(source.shape[1], self.encoder.max_context, "source")
        E = self.embedding if self.source_embedding is None else self.source_embedding
        x = functional.embedding(source, E)
        inner = scope(taps, "encoder")
        states, ends = self.encoder(keep(inner, "embedding", x), mask, inner)
        states = keep(inner, "hidden", states)
        start = () if self.bridge is None else self.bridge(ends if ends else (mean_state(states, mask),))
        return Source(states, mask, start, words)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_mask: Bool[Tensor, "B S"],
        inputs: Int[Tensor, "B T"],
        words: Int[Tensor, "B S"] | None = None,
        taps: Taps | None = None,
    ) -> Float[Tensor, "B T W"]:
        """log P of every word at every position, with the true words before it."""
        return self.target(inputs, self.encode(source, source_mask, words, taps), taps)  # type: ignore[no-any-return]

    @property
    def vocab_size(self) -> int:
        return self.target.vocab_size

    @property
    def d_model(self) -> int:
        return self.target.d_model

    @property
    def copies(self) -> bool:
        """Whether it can copy words of the source, which it then must be given."""
        return self.target.gate is not None

    @property
    def embedding(self) -> Float[Tensor, "V D"]:
        """That of the target."""
        return self.target.embedding

    @property
    def max_context(self) -> int | None:
        """The longest source or target; None: no limit."""
        limits = [limit for limit in (self.encoder.max_context, self.target.max_context) if limit is not None]
        return min(limits, default=None)

    @property
    def n_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def flops_per_pair(self, n_source: int, n_target: int) -> int:
        """Forward cost of a pair, twice the multiply-adds; backward costs about twice as much again."""
        bridge = 0 if self.bridge is None else self.bridge.flops()
        return self.encoder.flops(n_source) + bridge + self.target.flops(n_source, n_target)


def roll_out(
    model: ConditionalLanguageModel,
    source: Source,
    inputs: Int[Tensor, "B T"],
    is_own: Bool[Tensor, "B T"],
) -> Hidden:
    """`hidden` where the model reads words of its own: at t with is_own it is fed its most probable word after t-1.

    None of them own is teacher forcing; all of them is free running; drawn by chance, scheduled sampling (Bengio et al.
    2015). The first token of a target is always the given one.

    Which word is the most probable has no gradient. So the words are found first, step by step and without one, and
    what they lead to is then computed for all steps at once.
    """
    return model.hidden(write_own_inputs(model, source, inputs, is_own), source)[0]


@torch.no_grad()
def write_own_inputs(
    model: ConditionalLanguageModel,
    source: Source,
    inputs: Int[Tensor, "B T"],
    is_own: Bool[Tensor, "B T"],
) -> Int[Tensor, "B T"]:
    """The inputs, with the model's own words where `is_own`."""
    T = inputs.shape[1]
    state: State | None = model.start(source, T)
    n_words = model.n_words(source.words)
    fed = [inputs[:, :1]]
    for t in range(1, T):
        h, state = model.hidden(fed[-1], source, state)
        own = model.log_probs(select_positions(h, slice(-1, None)), n_words).argmax(dim=-1, keepdim=True)  # (B, 1)
        fed.append(own.where(is_own[:, t : t + 1], inputs[:, t : t + 1]))
    return torch.cat(fed, dim=1)
