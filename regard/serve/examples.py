"""What a page begins with: an example of what a run was tested on, so that nobody looks at an empty box."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from PIL import Image

from regard.errors import RegardError
from regard.serve.questions import MAX_SENTENCE
from regard.tasks.caption_run import CaptionRun
from regard.tasks.labelled_run import LabelledRun
from regard.tasks.masked_language_model_run import MaskedLanguageModelRun
from regard.tasks.pair_run import PairRun
from regard.tasks.word_vectors_run import WordVectorsRun
from regard.text.marks import BERT_MARKS

MIN_BEFORE = 20
N_HELD_OUT = 20_000
"""Characters of held-out text among which an example is drawn."""
N_FREQUENT = 500
"""Words with vectors, the most frequent first, among which an example is drawn."""
N_CANDIDATES = 5
"""Examples that are drawn; the page shows the one that comes nearest to a good length."""
LENGTH = {"begun": 40, "whole": 80}
"""Characters of an example: of a text that is to be continued, and of one that is read to its end."""

Example = dict[str, str | None]
_OPENED: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""Test splits by their runs: opening one can mean reading many files."""


def choose_example(run: Any, seed: int) -> Example:
    """An example of the test split; RegardError where the run has none on this machine."""
    draw = np.random.default_rng(seed)
    if isinstance(run, WordVectorsRun):
        words = [word for word in run.vectors.words[:N_FREQUENT] if len(word) > 3 and word.isalpha()]
        return _example(_pick(draw, words or run.vectors.words[:N_FREQUENT]))
    if isinstance(run, CaptionRun):
        return _example(picture=_draw_picture(run, draw))
    if isinstance(run, PairRun):
        pairs = _open_once(run, run.reader.own_pairs)
        return _example(_pick_by_length([pairs.source_text(i) for i in _numbers(draw, len(pairs))]))
    if isinstance(run, LabelledRun):
        examples, _ = _open_once(run, lambda: run.examples_of(None, "test"))
        chosen = [examples[i].texts for i in _numbers(draw, len(examples))]
        first, *second = min(chosen, key=lambda texts: sum(map(len, texts)))
        return _example(first, second[0] if second else None)
    if isinstance(run, MaskedLanguageModelRun):
        return _example(_mask_a_word(_draw_line(run, draw, "whole"), draw))
    return _example(_draw_line(run, draw, "begun" if run.task.verb == "generate" else "whole"))


def choose_passage(run: Any, seed: int, n_before: int, n: int) -> dict[str, str]:
    """A passage of the test split that begins at the end of a word, so that tokens of every kind begin there too."""
    stream = run.text_of(None, "test")
    draw = np.random.default_rng(seed)
    n_tokens = min(len(stream), 4 * (n_before + n))
    for _ in range(20):
        at = int(draw.integers(0, max(1, len(stream) - n_tokens + 1)))
        text = run.tokenizer.decode(stream[at : at + n_tokens].tolist())
        text = "".join(c for c in text if c.isprintable() or c == "\n")
        breaks = [i for i in range(MIN_BEFORE, len(text) - 1) if text[i] == " " and text[i - 1].isalnum()]
        begin = next((i for i in breaks if i >= n_before), breaks[-1] if breaks and not n_before else None)
        if begin is not None and begin + min(n, 20) <= len(text):
            return {"before": text[max(0, begin - n_before) : begin], "text": text[begin : begin + n]}
    raise RegardError(f"The test split of '{run.folder}' is too short for a passage. Train on more text.")


def _open_once(run: Any, open_data: Callable[[], Any]) -> Any:
    if run not in _OPENED:
        _OPENED[run] = open_data()
    return _OPENED[run]


def _example(text: str | None = None, second: str | None = None, picture: str | None = None) -> Example:
    return {"text": text, "second": second, "picture": picture}


def _pick(draw: np.random.Generator, items: Any) -> Any:
    return items[int(draw.integers(len(items)))]


def _numbers(draw: np.random.Generator, n: int) -> list[int]:
    return [int(i) for i in draw.integers(n, size=N_CANDIDATES)]


def _pick_by_length(texts: list[str]) -> str:
    """The text that comes nearest to a good length."""
    return min(texts, key=lambda text: abs(len(text) - LENGTH["whole"]))[:MAX_SENTENCE]


def _draw_line(run: Any, draw: np.random.Generator, kind: str) -> str:
    """A line of the held-out text, or its first words where it is to be continued."""
    lines = [" ".join(line.split()) for line in run.held_out_text(N_HELD_OUT).splitlines()]
    lines = [line for line in lines if line.count(" ") >= 3 and line[:1].isalpha() and _is_prose(line)]
    if not lines:
        raise RegardError(f"'{run.folder}' has no line of held-out text that could be an example.")
    line: str = _pick(draw, lines)
    ends = [match.start() for match in re.finditer(r" |$", line) if match.start() <= LENGTH[kind]]
    return line[: ends[-1]] if ends else line[: LENGTH[kind]]


def _is_prose(line: str) -> bool:
    """Whether nearly all of a line are letters and spaces: no rule, table or heading."""
    return sum(c.isalpha() or c == " " for c in line) >= 0.85 * len(line)


def _mask_a_word(line: str, draw: np.random.Generator) -> str:
    """A line in which one word of letters is [MASK]."""
    words = line.split()
    places = [i for i, word in enumerate(words) if i and word.isalpha()] or [len(words) - 1]
    words[_pick(draw, places)] = BERT_MARKS[4]
    return " ".join(words)


def _draw_picture(run: CaptionRun, draw: np.random.Generator) -> str:
    """A picture of the test split as the model sees it, a JPEG file in base64."""
    prepared, pictures = _open_once(run, lambda: run.pictures_of(None, "test"))
    square = prepared.data.pictures.pixels[_pick(draw, pictures.numbers)]
    file = io.BytesIO()
    Image.fromarray(np.asarray(square)).save(file, "JPEG", quality=92)
    return base64.b64encode(file.getvalue()).decode("ascii")
