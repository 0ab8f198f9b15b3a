"""Attention on a text of the user's: every head at a glance, named by what it does, and one of them in full."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.lens.patterns import HeadNamer, Pattern, list_patterns
from regard.lens.subject import Side, Subject
from regard.lens.view import LookOptions, Packed, View

MAX_BYTES = 6_000_000  # of weights in full that one view carries, a byte each: that is a page of 8 MB
SIDE = 40  # places on each side of the small picture of a head
MAX_ROWS = 400  # of the table behind the picture

Weights = NDArray[np.floating]


def view_attention(subject: Subject, options: LookOptions) -> View | None:
    """Self-attention of all layers and heads, and a reader's pool; None for what does not attend to its own tokens.

    A page that fetches heads when they are chosen gives `options.extra["sent_bytes"]`: heads beyond so many bytes are
    then in `rest` of each stack, to be sent later.
    """
    stacks = read_stacks(subject)
    if not stacks:
        return None
    sent_bytes = options.extra.get("sent_bytes")
    room = (MAX_BYTES if sent_bytes is None else sent_bytes) // len(stacks)
    made = [describe_stack(stack, options, room) for stack in stacks]
    n_heads = sum(stack.n_heads for stack in stacks)
    left_out = n_heads - sum(len(data["full"]) for data, _, _ in made) if sent_bytes is None else 0
    return View(
        name="attention",
        title="Where it looks",
        note="As lines, the words on the left look at those on the right; in the matrix, a row looks at its columns. "
        "The stronger the colour, the more. Heads are named by what their weights do on this text: choose one, then "
        "point at a word."
        + (
            " A decoder's row writes its word, and the columns are what it has read until then: they begin with the "
            "mark of the start, and so stand one behind."
            if any(stack.keys is not stack.rows and not stack.is_pool for stack in stacks)
            else ""
        )
        + (
            f" To keep the page small, {left_out} of {n_heads} heads are here as small pictures only; choose others "
            "with `--layer` and `--head`, or see all with `regard serve`."
            if left_out
            else ""
        ),
        summary=" ".join(said for _, said, _ in made),
        data={"stacks": [data for data, _, _ in made]},
        table=(("who", "what", "share"), [row for _, _, rows in made for row in rows][:MAX_ROWS]),
    )


class Stack(NamedTuple):
    """Layers of self-attention, (N, T, T) each, lowest first, over one row of tokens; `keys` are what they look at.

    A decoder's row t writes token t and has read the token before it, so its keys are not its rows. A reader that pools
    by attention has one row (1, 1, T), that of its answer.
    """

    title: str
    layers: list[Weights]
    rows: Side
    keys: Side
    is_own: tuple[bool, ...]
    """Which rows are of the text, and no marks around it."""
    is_page: bool
    """Whether the rows are the tokens of the page."""

    @property
    def is_pool(self) -> bool:
        """Whether there is one row, which weighs all tokens for an answer about the text."""
        return len(self.rows.tokens) == 1 and self.rows is not self.keys

    @property
    def n_heads(self) -> int:
        return sum(map(len, self.layers))


def read_stacks(subject: Subject) -> list[Stack]:
    """What attends to its own tokens: the model that read the text; or a decoder, and the encoder of its source."""
    taps, trace = subject.trace.taps, subject.trace
    rows = Side(subject.tokens, subject.words, subject.word_texts)
    is_own = tuple(span is not None for span in subject.spans)
    found = []
    if not subject.is_written:
        pool = taps.get("pool.attention")
        if layers := read_layers(taps, len(rows.tokens)):
            found.append(Stack("" if pool is None else "reading the text", layers, rows, rows, is_own, True))
        if pool is not None:
            whole = Side(("the answer",), (0,), ("the answer",))
            found.append(Stack("weighing its words", [pool], whole, rows, (True,), False))
        return found
    if encoder := read_layers(taps, len(trace.sources), "encoder."):
        source = Side.of(subject.text, trace.sources, trace.source_spans)
        known = tuple(span is not None for span in trace.source_spans)
        found.append(Stack("reading the source", encoder, source, source, known, False))
    if decoder := read_layers(taps, len(rows.tokens)):
        keys = Side(trace.inputs, (0, *(word + 1 for word in rows.words[:-1])), (trace.inputs[0], *rows.word_texts))
        n_words = keys.words[-1] + 1
        keys = keys._replace(word_texts=keys.word_texts[:n_words])
        found.append(Stack("writing the target", decoder, rows, keys, is_own, True))
    return found


def describe_stack(stack: Stack, options: LookOptions, room: int) -> tuple[dict[str, Any], str, list[tuple[str, ...]]]:
    """The data of a stack, a sentence about it, and the rows of the table behind it."""
    layers = stack.layers
    patterns = name_heads(stack)
    first = (0, 0) if stack.is_pool else choose_head(layers, options)
    kept = keep_heads(layers, patterns, first, room)
    names = Counter(p.name for row in patterns for p in row)
    n_layers, n_heads = len(layers), stack.n_heads
    said = f"{n_heads} head{'s' * (n_heads > 1)} in {n_layers} layer{'s' * (n_layers > 1)}" + (
        f", {stack.title}: " if stack.title else ": "
    )
    said += ", ".join(f"{n} {name}" for name, n in names.most_common()) + "."
    said = _say_pool(stack) if stack.is_pool else f"{said} {describe_head(stack, patterns, first)}"
    data = {
        "title": stack.title,
        "layers": [[{"pattern": p.name, "share": round(p.share, 4), "label": str(p)} for p in row] for row in patterns],
        "small": [[Packed(shrink(head)) for head in weights] for weights in layers],
        "full": {f"{layer},{head}": Packed(layers[layer][head]) for layer, head in kept},
        "rest": {} if options.extra.get("sent_bytes") is None else {
            f"{layer},{head}": Packed(layers[layer][head])
            for layer, row in enumerate(patterns) for head in range(len(row)) if (layer, head) not in kept
        },
        "first": list(first),
        "rows": None if stack.is_page else stack.rows.to_json(),
        "keys": None if stack.keys is stack.rows else stack.keys.to_json(),
    }  # fmt: skip
    return data, said, _list_rows(stack, patterns, first)


def read_layers(taps: Mapping[str, Any], n_tokens: int, before: str = "") -> list[Weights]:
    """The weights (N, T, T) of each layer that attends to its own tokens, lowest first; `before` begins their names."""
    found = sorted(
        (int(match[1]), value)
        for name, value in taps.items()
        if (match := re.fullmatch(re.escape(before) + r"layers\.(\d+)\.attention", name))
    )
    return [w[:, :n_tokens, :n_tokens] for _, w in found if min(w.shape[-2:]) >= n_tokens]


def name_heads(stack: Stack) -> list[list[Pattern]]:
    """The pattern of every head of every layer; a decoder's rows are what they have read."""
    keys, layers = stack.keys, stack.layers
    if stack.is_pool:
        namer = HeadNamer({}, np.ones(layers[0].shape[1:], bool), stack.is_own)
    else:
        patterns = list_patterns(keys.tokens, keys.words, keys.word_texts, stack.is_own)
        can_see = np.any([(weights > 0).any(axis=0) for weights in layers], axis=0)
        namer = HeadNamer(patterns, can_see, stack.is_own)
    return [[namer.name(head) for head in weights] for weights in layers]


def choose_head(layers: list[Weights], options: LookOptions) -> tuple[int, int]:
    """The head to show first, from 0 on: the one that is asked for, or the one that says the most.

    That is the head with the most weight, at the peak of each row, on a token that is neither itself nor the first:
    heads that look at themselves, or park on the first token, are common and say little.
    """
    check_number("layer", options.layer, len(layers))
    asked = [options.layer - 1] if options.layer is not None else list(range(len(layers)))
    check_number("head", options.head, min(len(layers[layer]) for layer in asked))
    best, chosen = -1.0, (asked[0], 0)
    for layer in asked:
        for head, weights in enumerate(layers[layer]):
            if options.head is not None and head != options.head - 1:
                continue
            others = weights.copy()
            np.fill_diagonal(others, 0.0)
            others[:, 0] = 0.0
            focus = float(others.max(axis=1).mean())
            if focus > best:
                best, chosen = focus, (layer, head)
    return chosen


def check_number(what: str, given: int | None, n: int, whose: str = "the model") -> None:
    """Refuse a layer or a head that the model does not have, or a word that the text does not have."""
    if given is not None and not 1 <= given <= n:
        raise RegardError(f"--{what} {given}: {whose} has {n} {what}{'s' if n > 1 else ''} there; give 1 to {n}.")


def keep_heads(
    layers: list[Weights], patterns: list[list[Pattern]], first: tuple[int, int], n_bytes: int = MAX_BYTES
) -> list[tuple[int, int]]:
    """The heads that are sent in full: as many as `n_bytes` hold, the first one, then those that do one thing."""
    heads = [(layer, head) for layer, row in enumerate(patterns) for head in range(len(row))]
    rank = {"mixed": 1, "broad": 2}

    def importance(place: tuple[int, int]) -> tuple[bool, int, float]:
        pattern = patterns[place[0]][place[1]]
        return place != first, rank.get(pattern.name, 0), -pattern.share

    room = max(1, n_bytes // max(1, layers[0][0].size))
    return sorted(sorted(heads, key=importance)[:room])


def shrink(weights: Weights, side: int = SIDE) -> Weights:
    """A small picture of a matrix: the largest weight in each of side x side blocks."""
    T, S = weights.shape
    if max(T, S) <= side:
        return weights
    rows = np.linspace(0, T, min(T, side), endpoint=False).astype(int)
    columns = np.linspace(0, S, min(S, side), endpoint=False).astype(int)
    small: Weights = np.maximum.reduceat(np.maximum.reduceat(weights, rows, axis=0), columns, axis=1)
    return small


def describe_head(stack: Stack, patterns: list[list[Pattern]], first: tuple[int, int]) -> str:
    """The strongest look of the chosen head from a word of the text at another word that is not the first token."""
    layer, head = first
    rows, keys = stack.rows, stack.keys
    others = np.where(np.array(keys.words)[:, None] == np.array(keys.words)[None], 0.0, stack.layers[layer][head])
    others[~np.array(stack.is_own)] = 0.0
    others[:, 0] = 0.0
    q, k = np.unravel_index(int(others.argmax()), others.shape)
    looks = f"“{rows.word_texts[rows.words[q]]}” looks at “{keys.word_texts[keys.words[k]]}” ({others[q, k]:.0%})"
    pattern = patterns[layer][head]
    does = {"broad": "looks broadly", "mixed": "fits no pattern"}.get(pattern.name, "")
    said = f"{does} (spread over {pattern.share:.0%} of the words)" if does else f"puts {_say_share(pattern)}"
    name = f"Layer {layer + 1}, head {head + 1} {said}"
    return f"{name}; in it {looks}." if others[q, k] > 0 else f"{name}."


def _say_pool(stack: Stack) -> str:
    """The words that weigh the most in the answer, each with the sum over its pieces."""
    weights = np.bincount(stack.keys.words, stack.layers[0][0, 0])
    best = np.argsort(-weights, kind="stable")[:3].tolist()
    shown = ", ".join(f"“{stack.keys.word_texts[w]}” ({weights[w]:.0%})" for w in best)
    return f"Of the words, these weigh the most in the answer: {shown}."


def _say_share(pattern: Pattern) -> str:
    """How much of its weight a head puts where.

    >>> _say_share(Pattern("previous token", 0.72)), _say_share(Pattern("own word", 0.5))
    ('72% of its weight on the previous token', '50% of its weight on other pieces of its own word')
    """
    where = {
        "itself": "the token itself", "own word": "other pieces of its own word",
        "same word": "the same word elsewhere", "marks": "marks and punctuation", "one word": "one and the same word",
    }.get(pattern.name, f"the {pattern.name}")  # fmt: skip
    return f"{pattern.share:.0%} of its weight on {where}"


def _list_rows(stack: Stack, patterns: list[list[Pattern]], first: tuple[int, int]) -> list[tuple[str, ...]]:
    """Every head's pattern, then where each token of the chosen head looks most."""
    heads: list[tuple[str, ...]] = [
        (f"layer {layer + 1}, head {head + 1}", pattern.name, f"{pattern.share:.1%}")
        for layer, row in enumerate(patterns)
        for head, pattern in enumerate(row)
    ]
    weights = stack.layers[first[0]][first[1]]
    best = weights.argmax(axis=1)
    for t, token in enumerate(stack.rows.tokens):
        k = int(best[t])
        heads.append((f"{t + 1}: {token}", f"looks at {k + 1}: {stack.keys.tokens[k]}", f"{weights[t, k]:.1%}"))
    return heads
