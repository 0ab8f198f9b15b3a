"""A run and the text that is looked at: one traced pass, shared by all views, and the words that its tokens spell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from regard.errors import RegardError
from regard.lens.trace import Trace, check_recorded
from regard.models.bert import Bert
from regard.models.captioner import Captioner
from regard.models.gradient_model import GradientModel

Span = tuple[int, int]
MAX_CHARACTERS = 20_000  # of a text that is looked at: pages draw every token, some views every pair of them

_SPACED = re.compile(r"\S+")
_WORD = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]+|\n+")


class Subject:
    """What views are made of. `text` is the user's; `target` is what a translator or a captioner is made to write.

    Without a target they are made to write their own. Of a captioner, `picture` is what it looks at.
    `tokens`, `spans` and `words` go together with the rows of the trace: token t, its characters in `written` (None for
    a mark that the user did not type), and the number of the word that it is a piece of.
    """

    def __init__(
        self,
        run: Any,
        text: str,
        target: str | None = None,
        name: str | None = None,
        *,
        picture: str | Path | None = None,
        last: int | None = None,
        tag: str | None = None,
    ) -> None:
        """`last` keeps so many tokens of the end of the text; `tag` says what a translator of several writes."""
        self.run, self.picture = run, picture
        self.name = str(run.folder.name) if name is None else name
        self.is_captioner, self.is_translator = isinstance(run.model, Captioner), run.task.verb == "translate"
        self.is_parser = run.task.verb == "parse"
        if self.is_captioner != (picture is not None):
            raise RegardError(
                f"'{run.folder}' says what is in pictures: give one with --picture, and with --target what to say."
                if self.is_captioner
                else f"'{run.folder}' is a run that {run.task.summary}, and looks at no picture. Leave out --picture."
            )
        if not self.is_captioner and not text.strip():
            raise RegardError('There is no text to look at. Give some, such as --text "In October, people".')
        if target is not None and not (self.is_translator or self.is_captioner):
            raise RegardError(f"--target is what a translator is made to write; '{run.folder}' is none. Leave it out.")
        self.text = text if last is None else keep_last(run, text, last)
        check_length(run, self.text)
        if tag is not None and not (self.is_translator or self.is_parser):
            raise RegardError(f"--to says what a translator writes; '{run.folder}' is none. Leave it out.")
        self.tag = tag
        self.target, self.is_forced = target, target is not None
        self.tree: Any = None
        """What a parser wrote, before it was written as a line."""
        if self.is_parser:
            self.tree = run.parse(self.text, tag)
            self.target = run.write_tree(self.tree)
        elif target is None and self.is_translator:
            self.target = run.translate(self.text, tag)
        elif target is None and self.is_captioner:
            self.target = run.caption(picture)

    @cached_property
    def trace(self) -> Trace:
        """What the model computed, row by row."""
        found: Trace
        if self.is_captioner:
            found = self.run.trace(self.picture, self.target)
        elif self.is_parser:
            found = self.run.trace(self.text, self.tree, self.tag)
        elif self.is_translator:
            found = self.run.trace(self.text, self.target, self.tag)
        else:
            found = self.run.trace(self.text)
        has_counts = "matched_order" in found.taps  # what was never counted may cost infinitely much
        check_recorded(found.taps if has_counts else {**found.taps, "nats": found.nats})
        return found

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens as they are shown."""
        return tuple(token or "<end>" for token in self.trace.tokens)

    @property
    def is_written(self) -> bool:
        """Whether the tokens are those of a target, of which row t writes token t, and not of a text that is read."""
        return bool(self.trace.sources)

    @property
    def written(self) -> str:
        """The text that the tokens are of; empty where it is not known."""
        if not self.is_written:
            return self.text
        return (self.target or "").strip() if self.target is not None else ""

    @cached_property
    def spans(self) -> tuple[Span | None, ...]:
        """The characters [start, end) of `written` that each token stands for; None for one that is not of it."""
        found = self.trace.spans if self.written else ()
        return (*found, *(None,) * len(self.tokens))[: len(self.tokens)]

    @cached_property
    def words(self) -> tuple[int, ...]:
        """For each token the number of its word."""
        return number_words(self.written, self.spans)

    @cached_property
    def word_texts(self) -> tuple[str, ...]:
        """Every word as it is shown: its tokens together, without the white space around it."""
        return join_words(self.written, self.tokens, self.spans, self.words)


class Side(NamedTuple):
    """A row of tokens and the words that they are pieces of."""

    tokens: tuple[str, ...]
    words: tuple[int, ...]
    word_texts: tuple[str, ...]

    @classmethod
    def of(cls, text: str, tokens: Sequence[str], spans: Sequence[Span | None], *, is_spaced: bool = False) -> Side:
        """Of tokens with their characters in a text."""
        words = number_words(text, spans, is_spaced=is_spaced)
        return cls(tuple(tokens), words, join_words(text, tokens, spans, words))

    def to_json(self) -> dict[str, Any]:
        return {"tokens": self.tokens, "words": self.words, "wordTexts": self.word_texts}


def check_length(run: Any, text: str) -> None:
    """Refuse a text that is longer than a page shows or the model sees at once, and say how to look at its end."""
    model = run.model
    if isinstance(model, Bert):
        limit = None if model.max_positions is None else model.max_positions - 2
    else:
        limit = model.mixer.max_context if isinstance(model, GradientModel) else None
        limit = None if limit is None else limit - 1
    if len(text) > MAX_CHARACTERS:
        raise RegardError(
            f"The text has {len(text):,} characters, and a page shows at most {MAX_CHARACTERS:,}. Shorten it, or look "
            "at its end: --last 1000 (in Python: last=1000)."
        )
    n = 0 if limit is None else len(run.tokenizer.encode(text))
    if limit is not None and n > limit:
        raise RegardError(
            f"The text is {n:,} tokens long, and '{run.folder}' sees {limit:,} at once. Shorten it, or look at its "
            f"end: --last {limit} (in Python: last={limit})."
        )


def keep_last(run: Any, text: str, n: int) -> str:
    """The end of a text, n tokens of it, or all where it has no more."""
    if n < 1:
        raise RegardError(f"last={n}: give how many tokens of the end to look at, from 1 on.")
    offsets = run.tokenizers[0].encode_with_offsets(text)[1]
    return text if len(offsets) <= n else text[offsets[-n][0] :].lstrip(" ")


def number_words(text: str, spans: Sequence[Span | None], *, is_spaced: bool = False) -> tuple[int, ...]:
    """The number of the word that each token is a piece of; where `is_spaced`, words are all between white space.

    A word is a run of letters and digits, of other marks, or of line ends. Other white space belongs to the word after
    it. A token that covers several words joins them; one that is not of the text stands alone.

    >>> number_words("In October, we", [None, (0, 2), (2, 5), (5, 10), (10, 11), (11, 14)])
    (0, 1, 2, 2, 3, 4)
    """
    word_at = [-1] * len(text)
    for number, match in enumerate((_SPACED if is_spaced else _WORD).finditer(text)):
        word_at[match.start() : match.end()] = [number] * (match.end() - match.start())
    numbers, number, last = [], -1, None  # last: the word at the end of the token before; -1: white space, not yet one
    for span in spans:
        inside = [] if span is None else [w for w in word_at[span[0] : span[1]] if w >= 0]
        first = None if span is None else inside[0] if inside else -1
        if first is None or last is None or not (last == -1 or first == last):
            number += 1
        numbers.append(number)
        last = None if span is None else inside[-1] if inside else -1
    return tuple(numbers)


def join_words(text: str, tokens: Sequence[str], spans: Sequence[Span | None], words: Sequence[int]) -> tuple[str, ...]:
    """The text of every word; that of its tokens where it is not of the text."""
    ends: dict[int, tuple[int, int]] = {}
    names: dict[int, str] = {}
    for token, span, word in zip(tokens, spans, words, strict=True):
        names[word] = names.get(word, "") + token
        if span is not None:
            first, last = ends.get(word, span)
            ends[word] = (min(first, span[0]), max(last, span[1]))
    shown = {w: (text[slice(*ends[w])].strip(" ") if w in ends else "") or names[w] for w in names}
    return tuple(shown[w] for w in sorted(shown))
