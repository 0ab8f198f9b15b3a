"""A LanguageModel as a NextToken: windows or carried state for scoring, caches for going on token by token."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from regard.errors import RegardError
from regard.mixers import mixer as mixers
from regard.models.language_model import LanguageModel
from regard.models.next_token import EOS, context_length

MAX_LOGITS = 2**23  # logits held at once: 32 MB in float32
N_TOKENS_AT_ONCE = 4096


class GradientNextToken:
    """A LanguageModel as a NextToken; puts it into evaluation mode.

    `n_lanes` cuts a text that is scored with carried state into so many pieces read side by side: exact at 1, faster
    and slightly pessimistic above, since every piece but the first starts with no past but one token.
    """

    def __init__(self, model: LanguageModel, *, n_lanes: int = 1) -> None:
        self.model = model.eval()
        self.vocab_size, self.max_context = model.vocab_size, model.mixer.max_context
        self.n_lanes = n_lanes
        self.stride = checked_stride(None, self.max_context)

    def nats(self, ids: NDArray[np.integer[Any]], stride: int | None = None) -> NDArray[np.float64]:
        stride = checked_stride(stride, self.max_context)
        text = torch.from_numpy(np.concatenate([[EOS], ids]).astype(np.int64))
        if self.max_context is not None or self.n_lanes == 1:
            nats: NDArray[np.float64] = self._nats_of_rows(text[None, :-1], text[None, 1:], stride)[0]
            return nats
        L = -(-len(ids) // self.n_lanes)  # tokens a lane, rounded up; the last lane is filled up and cut off again
        text = functional.pad(text, (0, self.n_lanes * L + 1 - len(text)))
        return self._nats_of_rows(text[:-1].view(-1, L), text[1:].view(-1, L), stride).reshape(-1)[: len(ids)]

    def nats_of_windows(self, windows: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        tokens = torch.from_numpy(windows.astype(np.int64))
        n_rows = max(1, N_TOKENS_AT_ONCE // tokens.shape[1])
        parts = [self._nats_of_rows(rows[:, :-1], rows[:, 1:], self.stride) for rows in torch.split(tokens, n_rows)]
        return np.concatenate(parts)

    @torch.inference_mode()
    def _nats_of_rows(
        self, inputs: Int[Tensor, "B T"], targets: Int[Tensor, "B T"], stride: int
    ) -> NDArray[np.float64]:
        """-log P(targets[b, t] | inputs[b, :t+1]), each row a text of its own."""
        nats = torch.zeros(inputs.shape, dtype=torch.float64)
        if inputs.numel() == 0:
            return nats.numpy()
        if self.max_context is None:
            state = None
            for part in torch.split(torch.arange(inputs.shape[1]), max(1, N_TOKENS_AT_ONCE // len(inputs))):
                h, state = self.model.hidden(inputs[:, part].to(self._device), state)
                nats[:, part] = self._nats_of_hidden(h, targets[:, part])
        else:
            for rows, starts, length, skip in windows(inputs.shape[0], inputs.shape[1], self.max_context, stride):
                columns = starts[:, None] + torch.arange(length)  # (W, length)
                h, _ = self.model.hidden(inputs[rows[:, None], columns].to(self._device))
                scored = rows[:, None], columns[:, skip:]
                nats[scored] = self._nats_of_hidden(h[:, skip:], targets[scored])
        return nats.numpy()

    def _nats_of_hidden(self, h: Float[Tensor, "B T D"], targets: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        n_rows = max(1, MAX_LOGITS // self.vocab_size)
        hiddens = torch.split(h.reshape(-1, h.shape[-1]), n_rows)  # (n_rows, D) each
        answers = torch.split(targets.to(self._device).reshape(-1), n_rows)
        parts = [
            functional.cross_entropy(self.model.logits(part), answer, reduction="none")
            for part, answer in zip(hiddens, answers, strict=True)
        ]
        return torch.cat(parts).view(targets.shape).double().cpu()

    @torch.inference_mode()
    def start(self, prompts: Int[Tensor, "B T"], capacity: int | None = None) -> tuple[Float[Tensor, "B V"], Any]:
        B = prompts.shape[0]
        text = functional.pad(prompts.to(self._device), (1, 0), value=EOS)  # (B, 1+T)
        if self.max_context is None:
            return self._log_probs(text, self.model.start(B, text.shape[1]))
        room = self.max_context if capacity is None else min(self.max_context, capacity + 1)
        n = context_length(text.shape[1], self.max_context, self.stride)
        history = text.new_zeros(B, self.max_context)
        history[:, :n] = text[:, -n:]
        log_probs, state = self._log_probs(history[:, :n], self.model.start(B, max(room, n)))
        return log_probs, (state, history, n)

    @torch.inference_mode()
    def step(self, tokens: Int[Tensor, " B"], state: Any) -> tuple[Float[Tensor, "B V"], Any]:
        if self.max_context is None:
            return self._log_probs(tokens[:, None].to(self._device), state)
        state, history, n = state
        if n < self.max_context:
            history[:, n] = tokens
            log_probs, state = self._log_probs(history[:, n : n + 1], state)
            return log_probs, (state, history, n + 1)
        kept = self.max_context - self.stride
        history[:, :kept] = history[:, self.stride :].clone()
        history[:, kept] = tokens
        log_probs, state = self._log_probs(history[:, : kept + 1], self.model.start(len(tokens), self.max_context))
        return log_probs, (state, history, kept + 1)

    def _log_probs(self, ids: Int[Tensor, "B T"], state: Any) -> tuple[Float[Tensor, "B V"], Any]:
        h, state = self.model.hidden(ids, state)
        return self.model.logits(h[:, -1]).log_softmax(dim=-1), state

    def reorder(self, state: Any, rows: Int[Tensor, " R"]) -> Any:
        return mixers.reorder(state, rows.to(self._device))

    @property
    def _device(self) -> torch.device:
        return self.model.embedding.device


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


def checked_stride(stride: int | None, limit: int | None) -> int:
    """How far a window of `limit` tokens moves at a time: half of it if nothing is said."""
    if limit is None:
        return 1
    if stride is None:
        return limit - limit // 2
    if not 1 <= stride <= limit:
        raise RegardError(f"stride must be between 1 and the model's max_context {limit}, not {stride}.")
    return stride
