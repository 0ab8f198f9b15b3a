"""Every unit of a model at every token of a long text, some tokens at a time: memory does not grow with the text.

A unit is an LSTM's cell (as tanh c, what its output reads), a number of an RNN's or GRU's state, or of what a layer of
another model gives. A model that carries a state reads the text in windows and carries it from one to the next; one
that sees so many tokens at most reads windows by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.layers.taps import Taps
from regard.lens.trace import check_recorded
from regard.models.bert import Bert
from regard.models.elmo import DIRECTIONS, EOS, Elmo, OneDirection, tell_words
from regard.models.encoder_from_scratch import TextEncoder
from regard.models.language_model import LanguageModel
from regard.models.pointer import PointerModel
from regard.models.reader import Reader
from regard.models.seq2seq import Seq2Seq
from regard.text.tokenizer import Tokenizer

Values = NDArray[np.float32]
Rows = NDArray[np.int64]
Hidden = Callable[[Tensor, Any, Taps], tuple[Any, Any]]
Pick = Callable[[Taps], Mapping[str, Tensor]]

WINDOW = 128  # tokens that are held at a time, in each lane
APART = 256  # tokens of a window that is read by itself: a record of attention grows with its square
N_LANES = 8  # stretches of a long text that are read side by side, each from its own start
LANE_TOKENS = 2000  # a text is cut into lanes of so many tokens, or more
_UNITS = re.compile(r"(?:.+\.)?layers\.\d+(?:\.\w+)?\.(?:cell|hidden)")
_STATES = re.compile(r"(?:\w+\.)?(?:embedding|layers\.\d+\.hidden)")


class Chunk(NamedTuple):
    """Units at some tokens: `rows` says which tokens, `units[tap]` (t, H) has their values."""

    rows: Rows
    units: Mapping[str, Values]


@dataclass(frozen=True)
class Reading:
    """A text that is being read: token i is `text[starts[i]:ends[i]]`; every token comes once, in some chunk."""

    starts: Rows
    ends: Rows
    chunks: Iterator[Chunk]


def pick_units(record: Taps) -> dict[str, Tensor]:
    """The cells of a record, as tanh c; where there are none, the states of its layers."""
    taps = [name for name in record if _UNITS.fullmatch(name)]
    cells = [name for name in taps if name.endswith(".cell")]
    return {name: record[name].tanh() for name in cells} or {name: record[name] for name in taps}


def pick_states(record: Taps) -> dict[str, Tensor]:
    """What the first layer of a record reads, and what every layer gives."""
    return {name: record[name] for name in record if _STATES.fullmatch(name)}


def has_units(model: Any) -> bool:
    """Whether units of a model can be read: one that reads text, by layers."""
    inner = model.encoder if isinstance(model, Reader) else model
    return isinstance(inner, LanguageModel | PointerModel | Elmo | Bert | Seq2Seq | TextEncoder)


def read_units(
    model: Any,
    tokenizer: Tokenizer,
    text: str,
    *,
    window: int = WINDOW,
    n_lanes: int | None = None,
    pick: Pick = pick_units,
) -> Reading | None:
    """Read a text and hand out the units of `model`, chunk by chunk; None for a model that has none.

    `n_lanes` None: one for every 2,000 tokens, up to eight. The encoder of a Seq2Seq, and one that a task trained from
    its own texts, reads the lines of the text one by one.
    `pick` says which values of a record are handed out.
    """
    if isinstance(model, Reader):
        model = model.encoder
    if not has_units(model):
        return None
    words = tell_words(model, tokenizer) if isinstance(model, Elmo) else tokenizer
    if isinstance(model, Seq2Seq | TextEncoder):
        return _read_lines(model, tokenizer, text, pick)
    ids, offsets = words.encode_with_offsets(text)
    spans = np.array(offsets, dtype=np.int64).reshape(-1, 2)
    ends = np.maximum.accumulate(spans[:, 1]) if len(spans) else spans[:, 1]
    lanes = max(1, min(N_LANES, len(ids) // LANE_TOKENS)) if n_lanes is None else n_lanes
    chunks = _read_model(model, tokenizer, torch.from_numpy(ids.astype(np.int64)), window, lanes, pick)
    return Reading(np.append(0, ends[:-1])[: len(ends)], ends, chunks)


def _read_model(
    model: Any, tokenizer: Tokenizer, ids: Tensor, window: int, n_lanes: int, pick: Pick
) -> Iterator[Chunk]:
    model.eval()
    if isinstance(model, Elmo):
        yield from _read_both_ways(model, ids, window, n_lanes, pick)
    elif isinstance(model, Bert):
        assert tokenizer.marks is not None, "a BERT has marks"
        assert model.max_positions is not None
        before, after = (torch.tensor(part) for part in ([tokenizer.marks.first], [tokenizer.eos]))
        yield from _read_apart(
            lambda x, _, taps: (model.encode(x, None, None, taps), None),
            (ids, before, after), min(model.max_positions, APART), model.embedding.device, pick,
        )  # fmt: skip
    elif model.mixer.carries_state:
        yield from _read_on(model.hidden, ids, tokenizer.eos, window, n_lanes, model.embedding.device, pick)
    else:
        before, after = torch.tensor([tokenizer.eos]), torch.zeros(0, dtype=torch.int64)
        limit = min(model.mixer.max_context or APART, APART)
        yield from _read_apart(model.hidden, (ids, before, after), limit, model.embedding.device, pick)


def _read_both_ways(model: Elmo, ids: Tensor, window: int, n_lanes: int, pick: Pick) -> Iterator[Chunk]:
    """Each direction by itself; the one that reads back begins with the last word."""
    for direction in DIRECTIONS:
        is_back = direction != DIRECTIONS[0]
        order = ids.flip(0) if is_back else ids
        hidden = OneDirection(model, direction).hidden
        for rows, units in _read_on(hidden, order, EOS, window, n_lanes, model.device, pick):
            yield Chunk(len(ids) - 1 - rows if is_back else rows, units)


def _read_on(
    hidden: Hidden, ids: Tensor, eos: int, window: int, n_lanes: int, device: torch.device, pick: Pick
) -> Iterator[Chunk]:
    """Windows with the state carried from one to the next, in lanes that each begin after <eos>."""
    n = -(-len(ids) // n_lanes)  # tokens of a lane, fewer in the last
    padded = torch.nn.functional.pad(ids, (0, n * n_lanes - len(ids)), value=eos)
    lanes = torch.nn.functional.pad(padded.view(n_lanes, n), (1, 0), value=eos).to(device)  # (B, 1 + n)
    places = torch.arange(n * n_lanes).view(n_lanes, n).numpy()
    state: Any = None
    for begin in range(0, n + 1, window):
        record = Taps()
        with torch.inference_mode():
            _, state = hidden(lanes[:, begin : begin + window], state, record)
        skip = 1 if begin == 0 else 0  # the start mark is no token of the text
        rows = places[:, begin + skip - 1 : begin + window - 1]
        if rows.size:
            yield _chunk(pick(record), rows, skip, len(ids))


def _read_apart(
    hidden: Hidden, parts: tuple[Tensor, Tensor, Tensor], limit: int, device: torch.device, pick: Pick
) -> Iterator[Chunk]:
    """Windows of `limit` tokens by themselves, marks before and after each; several at a time."""
    ids, before, after = parts
    n_at_once = max(1, 2 * APART // limit)
    room = max(1, limit - len(before) - len(after))
    whole = len(ids) // room
    for begin in range(0, whole * room, n_at_once * room):
        some = ids[begin : min(begin + n_at_once * room, whole * room)].view(-1, room)
        yield _read_windows(hidden, some, begin, before, after, len(ids), device, pick)
    if len(ids) > whole * room:
        yield _read_windows(hidden, ids[whole * room :][None], whole * room, before, after, len(ids), device, pick)


def _read_windows(
    hidden: Hidden, some: Tensor, begin: int, before: Tensor, after: Tensor, n: int, device: torch.device, pick: Pick
) -> Chunk:
    B, T = some.shape
    framed = torch.cat([before.expand(B, -1), some, after.expand(B, -1)], dim=1).to(device)
    record = Taps()
    with torch.inference_mode():
        hidden(framed, None, record)
    return _chunk(pick(record), (begin + np.arange(B * T)).reshape(B, T), len(before), n)


def _read_lines(model: Seq2Seq | TextEncoder, tokenizer: Tokenizer, text: str, pick: Pick) -> Reading:
    """The encoder on every line of the text that it has room for; one of a task's own sees the mark of the end too."""
    end = [tokenizer.eos] if isinstance(model, TextEncoder) else []
    limit = model.encoder.max_context if isinstance(model, Seq2Seq) else model.max_positions
    device, lines, at, n = next(model.parameters()).device, [], 0, 0
    spans: list[NDArray[np.int64]] = []
    for line in text.split("\n"):
        ids, offsets = tokenizer.encode_with_offsets(line)
        if len(ids) and (limit is None or len(ids) + len(end) <= limit):
            lines.append((n, torch.tensor([*ids.tolist(), *end])))
            spans.append(np.array(offsets, dtype=np.int64) + at)
            spans[-1][0, 0] = max(0, at - 1)  # the line end before it, so that lines are shown as lines
            n += len(ids)
        at += len(line) + 1
    joined = np.concatenate(spans) if spans else np.zeros((0, 2), dtype=np.int64)

    def read() -> Iterator[Chunk]:
        model.eval()
        for first, ids in lines:
            record, source = Taps(), ids[None].to(device)
            with torch.inference_mode():
                model.encode(source, torch.ones_like(source, dtype=torch.bool), None, record)
            yield _chunk(pick(record), first + np.arange(len(ids) - len(end))[None], 0, n)

    return Reading(joined[:, 0], joined[:, 1], read())


def _chunk(found: Mapping[str, Tensor], rows: NDArray[Any], skip: int, n: int) -> Chunk:
    """Values at `rows` (B, t) of tensors that have `skip` positions more before them; rows from n on are padding."""
    is_real = rows.reshape(-1) < n
    t = rows.shape[1]
    units = {name: value[:, skip : skip + t].float().flatten(0, 1).cpu().numpy() for name, value in found.items()}
    check_recorded(units)
    return Chunk(rows.reshape(-1)[is_real].astype(np.int64), {name: flat[is_real] for name, flat in units.items()})
