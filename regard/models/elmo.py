"""ELMo: two language models that read a text from its two ends, and the vectors that they make of it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import RegardError
from regard.kernels.cross_entropy import chunked_cross_entropy, nats_each
from regard.layers.bidirectional import take_positions
from regard.layers.character_cnn import CharacterCNN
from regard.layers.copying import UNK
from regard.layers.projected_lstm import ProjectedLSTM, States, read_side_by_side
from regard.layers.taps import Taps, keep, scope
from regard.mixers.recurrent import full_precision
from regard.models.elmo_config import ElmoConfig
from regard.models.encoder import Encoder
from regard.models.gradient_next_token import cut_into_lanes, score_carrying_state
from regard.text.extended import MEETING_WORDS, ExtendedVocabulary
from regard.text.spelling import N_CHARACTERS, spell_sentence_ends, spell_words
from regard.text.tokenizer import Tokenizer

AHEAD, BACK = "ahead", "back"
DIRECTIONS = (AHEAD, BACK)
EOS = 0
"""The word tokenizer's line end: what a sentence begins with, whichever end it is read from."""


class Elmo(nn.Module):
    """→P(w_{t+1} | w_1 ... w_t) = softmax(W →h^L_t + b),   ←P(w_{t-1} | w_t ... w_n) = softmax(W ←h^L_t + b)

    →h^l_t = LSTM_l(→h^{l-1}_t, →h^l_{t-1}) + →h^{l-1}_t,   →h^0_t = x_t = cnn(characters of w_t)

    and ←h likewise from the other end, with layers of its own; x, W and b serve both (Peters et al. 2018). The sum with
    the input is left out in the first layer. As an encoder: h^l_t = [→h^l_t; ←h^l_t].

    A sentence is read from <S> on, or from </S> backwards. Here <eos> stands between sentences: read ahead it is <S>,
    read back it is </S>. The original program predicts and reads both between two sentences, one after the other.
    """

    max_positions: int | None = None

    def __init__(self, config: ElmoConfig, vocab_size: int) -> None:
        super().__init__()
        D = config.d_model
        self.config, self.vocab_size, self.d_model, self.n_layers = config, vocab_size, 2 * D, config.n_layers
        self.n_vocab = vocab_size if config.n_vocab is None else min(vocab_size, config.n_vocab)
        # Rows stand for <S>, </S>, <unk>, and the words from id 2 on.
        rows = torch.zeros(vocab_size + 1, config.max_characters, dtype=torch.int16)
        self.register_buffer("spellings", rows, persistent=False)
        self.spellings: Tensor
        self.words: ExtendedVocabulary | None = None
        self.input = self._build_input(config)
        layers = [[self._layer(config) for _ in range(config.n_layers)] for _ in DIRECTIONS]
        self.ahead, self.back = (nn.ModuleList(stack) for stack in layers)
        self.head = nn.Parameter(torch.empty(self.n_vocab, D)) if config.has_softmax else None  # W
        self.bias = nn.Parameter(torch.zeros(self.n_vocab)) if config.has_softmax else None  # b
        self.dropout = nn.Dropout(config.p_dropout)
        if self.head is not None:
            nn.init.normal_(self.head, std=D**-0.5)

    def _build_input(self, config: ElmoConfig) -> CharacterCNN | nn.Embedding:
        if config.input == "tokens":
            table = nn.Embedding(self.vocab_size + 1, config.d_model)
            nn.init.normal_(table.weight, std=0.3)
            return table
        return CharacterCNN(
            N_CHARACTERS,
            config.d_character,
            config.list_filters(),
            config.n_highway,
            config.d_model,
            config.activation,
        )

    @staticmethod
    def _layer(config: ElmoConfig) -> ProjectedLSTM:
        D = config.d_model
        return ProjectedLSTM(D, config.d_hidden, D, config.cell_clip, config.projection_clip)

    def learn_words(self, words: ExtendedVocabulary) -> None:
        """Be told how the words of a tokenizer are spelled; those that `words` meets later are looked up in it."""
        known = [words.token_text(i) for i in range(1, self.vocab_size)]
        with MEETING_WORDS:
            self.words = words
            self._spell(known)

    def _spell(self, words: Sequence[str]) -> None:
        n = self.config.max_characters
        rows = np.concatenate([spell_sentence_ends(n), spell_words(words, n)])
        self.spellings = torch.from_numpy(rows).to(self.spellings.device)

    def embed(self, rows: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """x of words by their rows; on a CPU one that comes several times is computed once."""
        if isinstance(self.input, nn.Embedding):
            return self.input(rows)  # type: ignore[no-any-return]
        spellings = self.spellings if rows.is_meta else self._meet()  # shapes alone need no words
        if rows.is_meta or rows.is_cuda:  # nobody asks the device how many words are the same
            return self.input(spellings[rows.flatten()].long()).view(*rows.shape, -1)  # type: ignore[no-any-return]
        words, places = torch.unique(rows, return_inverse=True)
        return functional.embedding(places, self.input(spellings[words].long()))

    def _meet(self) -> Int[Tensor, "R L"]:
        """How all words are spelled; those that were met since the last time are added."""
        assert self.words is not None, "nobody said how words are spelled: learn_words"
        if self._count_met() != len(self.words.words):  # a lock at every step would cut a compiled model
            with MEETING_WORDS:
                new = spell_words(self.words.list_words(self._count_met()), self.config.max_characters)
                self.spellings = torch.cat([self.spellings, torch.from_numpy(new).to(self.spellings.device)])
        return self.spellings

    def _count_met(self) -> int:
        """How many words are spelled that the vocabulary did not have."""
        return len(self.spellings) - self.vocab_size - 1

    def embed_both(self, ahead: Int[Tensor, "B T"], back: Int[Tensor, "B T"]) -> Float[Tensor, "2 B T D"]:
        """x of words in the two orders in which they are read."""
        rows = torch.stack([self.rows_of(ahead, AHEAD), self.rows_of(back, BACK)])  # (2, B, T)
        x = self.embed(rows.flatten(0, 1))
        return x.view(*rows.shape, -1)

    def rows_of(self, ids: Int[Tensor, "B T"], direction: str) -> Int[Tensor, "B T"]:
        """Which row of the words' table each id reads: <S> or </S> for <eos>, as the direction wants it."""
        rows = ids + 1
        if isinstance(self.input, nn.Embedding):
            rows = rows.where(rows < self.input.num_embeddings, UNK + 1)
        return rows.where(ids != EOS, DIRECTIONS.index(direction))

    def draw_keeps(self, ids: Int[Tensor, "*batch T"]) -> Float[Tensor, "*batch T"] | None:
        """0 at the beginnings of lines before which a training forgets what it read, by chance, and 1 elsewhere."""
        if not self.training or not self.config.p_reset:
            return None
        is_kept = torch.rand(ids.shape, device=ids.device) >= self.config.p_reset
        return (is_kept | (ids != EOS)).to(self.head.dtype if self.head is not None else torch.get_default_dtype())

    def read(
        self,
        x: Float[Tensor, "N B T D"],
        directions: Sequence[str] = DIRECTIONS,
        state: Sequence[States] | None = None,
        taps: Taps | None = None,
        keeps: Float[Tensor, "N B T"] | None = None,
    ) -> tuple[list[Float[Tensor, "N B T D"]], tuple[States, ...]]:
        """The states of all layers of N directions, their own input not among them; words stand as they are read.

        Taps are for one direction. `keeps` is 0 at words before which all that was read is forgotten, and 1 elsewhere.
        """
        stacks = [self.ahead if direction == AHEAD else self.back for direction in directions]
        outputs: list[Tensor] = []
        after = []
        with full_precision(x, is_fused=False):
            for index, layers in enumerate(zip(*stacks, strict=True)):
                inner = scope(taps, f"layers.{index}")
                x = self.dropout(x)
                y, layer_state = read_side_by_side(layers, x, None if state is None else state[index], inner, keeps)
                x = x + y if index and self.config.has_skips else y
                if inner is not None:
                    x = inner.keep("hidden", x[0])[None]
                outputs.append(x)
                after.append(layer_state)
        return outputs, tuple(after)

    def hidden(
        self, ids: Int[Tensor, "B T"], direction: str, state: Any = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], Any]:
        """h of the last layer of one direction, at words as they are read, and the state after the last.

        Its taps are under the direction's name, in the order in which the words are read.
        """
        inner = scope(taps, direction)
        x = keep(inner, "embedding", self.embed(self.rows_of(ids, direction)))
        outputs, after = self.read(x[None], (direction,), state, inner)
        return keep(inner, "hidden", outputs[-1][0]), after

    def encode(
        self,
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        taps: Taps | None = None,
    ) -> tuple[Float[Tensor, "B T D"], ...]:
        """[x; x], then [→h^l; ←h^l] for every layer, at every word. Each text is read by itself; no segments are told.

        The original program carries the state of one batch into the next, so that its vectors depend on what was read
        before; those of its first batch are these.
        """
        ids = functional.pad(tokens.where(mask, EOS), (1, 0), value=EOS)  # each direction begins at an end: (B, 1 + T)
        there, back = back_to_front(ids, mask.sum(dim=1))
        orders = {AHEAD: ids, BACK: ids.gather(1, there)}
        x = self.embed_both(orders[AHEAD], orders[BACK])  # (2, B, 1 + T, D)
        states = [x, *self.read(x)[0]] if taps is None else self._read_each_way(x, taps)  # (2, B, 1 + T, D) each
        return tuple(torch.cat([s[0, :, 1:], take_positions(s[1], back)], dim=-1) for s in states)

    def _read_each_way(self, x: Float[Tensor, "2 B T D"], taps: Taps) -> list[Float[Tensor, "2 B T D"]]:
        """x and the states of all layers, one direction after the other, kept in the order in which words are read."""
        both = []
        for way, one in zip(DIRECTIONS, x, strict=True):
            inner = taps.scope(way)
            first = inner.keep("embedding", one)[None]
            both.append([first, *self.read(first, (way,), None, inner)[0]])
        return [torch.cat(pair) for pair in zip(*both, strict=True)]

    def goal_of(
        self, h: Float[Tensor, "B T D"], targets: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, ""]:
        """The nats of the next words, summed over the real ones (mask True); `h` is of the last layer."""
        rows, y = self.dropout(h).flatten(0, 1), self.replace_unpredicted(targets).flatten()
        return chunked_cross_entropy(rows, self.output_weight, self.bias, y, mask.flatten())[0]

    def replace_unpredicted(self, targets: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch"]:
        """The targets with <unk> in place of words that the model does not predict."""
        return targets.where(targets < self.n_vocab, UNK)

    @property
    def output_weight(self) -> Float[Tensor, "V D"]:
        if self.head is None:
            raise RegardError(
                "These weights came without a softmax: they make vectors of words and predict none. Train one of your "
                "own with: regard train elmo --data my.txt"
            )
        return self.head

    @property
    def device(self) -> torch.device:
        return self.spellings.device

    @property
    def n_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def flops_per_token(self, n_context: int) -> int:
        """Forward cost of a word read one way: twice the multiply-adds; no word is taken to come twice in a batch."""
        return self._flops_of_layers() + self._flops_of_input() + (0 if self.head is None else 2 * self.head.numel())

    def flops(self, n_tokens: int) -> int:
        """Forward cost of `encode` for a text of so many words, none of which comes twice."""
        return n_tokens * (2 * self._flops_of_layers() + self._flops_of_input())

    def _flops_of_layers(self) -> int:
        return sum(layer.flops_per_token() for layer in self.ahead if isinstance(layer, ProjectedLSTM))

    def _flops_of_input(self) -> int:
        return self.input.flops(self.config.max_characters) if isinstance(self.input, CharacterCNN) else 0


def back_to_front(ids: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B T"]]:
    """Which of ids = <eos> w_1 ... w_n is read k-th from the end, <eos> first; and where each w is then found.

    A text that ends with <eos> is read from that one, and not from a second behind it. Padding comes last.

    >>> there, back = back_to_front(torch.tensor([[0, 5, 6, 7], [0, 5, 0, 0]]), torch.tensor([3, 2]))
    >>> there.tolist(), back.tolist()
    ([[0, 3, 2, 1], [0, 1, 0, 0]], [[3, 2, 1], [1, 0, 0]])
    """
    last = ids.gather(1, lengths[:, None])  # (B, 1)
    n = lengths[:, None] - ((last == EOS) & (lengths[:, None] > 0)).long()
    k = torch.arange(ids.shape[1], device=ids.device)
    there = torch.where((k >= 1) & (k <= n), n - k + 1, 0)
    return there, (n - k[:-1]).clamp_min(0)


def tell_words(encoder: nn.Module | Encoder, tokenizer: Tokenizer) -> Tokenizer | ExtendedVocabulary:
    """What a text for an encoder is encoded with: for ELMo by characters, words that the tokenizer has not, too."""
    if not isinstance(encoder, Elmo):
        return tokenizer
    with MEETING_WORDS:
        if encoder.words is None or encoder.words.tokenizer is not tokenizer:
            encoder.learn_words(ExtendedVocabulary(tokenizer))
        assert encoder.words is not None
        return encoder.words


class OneDirection:
    """One of ELMo's language models by itself; it reads words in its own order, from the end of a text if it must."""

    def __init__(self, elmo: Elmo, direction: str) -> None:
        self.elmo, self.direction = elmo, direction

    def hidden(self, ids: Int[Tensor, "B T"], state: Any = None, taps: Taps | None = None) -> tuple[Tensor, Any]:
        """h of the last layer at every word, (B, T, D), and the state after the last."""
        return self.elmo.hidden(ids, self.direction, state, taps)

    def log_probs(self, h: Float[Tensor, "B D"]) -> Float[Tensor, "B V"]:
        """log P of every word that is predicted, after one position."""
        return functional.linear(h, self.elmo.output_weight, self.elmo.bias).log_softmax(dim=-1)

    def nats_each(self, h: Float[Tensor, "B T D"], targets: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """-log P of every target; words that are not predicted count as <unk>."""
        return nats_each(h, self.elmo.output_weight, self.elmo.bias, self.elmo.replace_unpredicted(targets))


class BothWays:
    """What the words of a text cost ELMo's two language models: each its past, and each what comes after it.

    `n_lanes` cuts a text into so many pieces read side by side, as `GradientNextToken` does.
    """

    max_context: int | None = None

    def __init__(self, elmo: Elmo, n_lanes: int = 1) -> None:
        self.elmo, self.n_lanes, self.vocab_size = elmo.eval(), n_lanes, elmo.vocab_size

    def nats_one_way(self, ids: NDArray[np.integer[Any]], direction: str) -> NDArray[np.float64]:
        """-log P of every word of a text, given what stands before it, or after it.

        Read back, the <eos> that ends the text is where it is read from, and what it ends with when its first word is
        read: that is what stands in the place of the last.
        """
        order = np.arange(len(ids))
        if direction == BACK:
            n = len(ids) - 1 if len(ids) and ids[-1] == EOS else len(ids)
            order[:n] = order[:n][::-1]
        text = torch.from_numpy(np.concatenate([[EOS], ids[order]]).astype(np.int64))
        inputs, targets = cut_into_lanes(text, self.n_lanes)
        model = OneDirection(self.elmo, direction)
        nats = np.empty(len(ids))
        nats[order] = score_carrying_state(model, inputs, targets, self.elmo.device).reshape(-1)[: len(ids)]
        return nats

    def nats(self, ids: NDArray[np.integer[Any]], stride: int | None = None) -> NDArray[np.float64]:
        """The mean of the two directions; nothing has a window that could move by a `stride`."""
        ahead, back = (self.nats_one_way(ids, direction) for direction in DIRECTIONS)
        mean: NDArray[np.float64] = (ahead + back) / 2
        return mean
