"""Which words a prediction comes from, and whether attention says so."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.lens.attribution import (
    LEAST,
    N_PARTS,
    N_STEPS,
    can_be_erased,
    integrate_gradients,
    multiply_gradients,
    value_without,
)
from regard.lens.by_hand import find_token
from regard.lens.faithfulness import Faithfulness, measure_faithfulness
from regard.lens.prediction import Prediction
from regard.lens.subject import Subject, join_words, number_words
from regard.lens.view import LookOptions, View, show_token
from regard.models.bert import Bert
from regard.models.gradient_model import GradientModel
from regard.models.word_vectors import WordVectors

Array = NDArray[np.float64]
MIN_ERASED, MAX_ERASED = 8, 256
"""Words that are erased one after the other, as many as MAX_WORK allows; of a longer text the last ones."""
MAX_WORK = 1e11
"""Multiply-adds that erasing words, and integrating gradients, may take, about: ten seconds of one core."""
LEAST_FAST, LEAST_PLAIN = 1e5, 1e6
"""What a token costs at least, however small the model is: by the fast path, and by the plain one, step by step."""
N_SHOWN = 400
"""Words that are shown; of a longer text the last ones."""


@dataclass(frozen=True)
class Words:
    """The words of a prediction's input, and the tokens that each is made of."""

    texts: tuple[str, ...]
    tokens: tuple[tuple[int, ...], ...]
    is_mark: tuple[bool, ...]

    def add_up(self, numbers: Array) -> Array:
        """A number for each word: the sum over its tokens."""
        return np.array([float(np.nansum(numbers[list(own)])) for own in self.tokens])


def view_influence(subject: Subject, options: LookOptions) -> View | None:
    """How much each word has to do with a prediction, by gradients and by leaving it out; None where none is made."""
    prediction = predict_subject(subject, options)
    if prediction is None:
        return None
    words = join_tokens(prediction)
    value = float(prediction.log_probs()[prediction.target])
    own = [i for i, is_mark in enumerate(words.is_mark) if not is_mark]
    work = max(float(subject.run.facts.n_parameters), LEAST_FAST) * len(prediction.tokens)
    erased = own[-max(MIN_ERASED, min(MAX_ERASED, int(MAX_WORK / work))) :]
    methods = {
        "erasure": _erase_words(prediction, words, value, erased),
        "gradient × input": words.add_up(multiply_gradients(prediction).scores),
    }
    if _count_work(subject, prediction) <= MAX_WORK or options.extra.get("integrated"):
        methods["integrated gradients"] = words.add_up(integrate_gradients(prediction).scores)
    first = max(0, len(words.texts) - N_SHOWN)
    unit = "the number" if prediction.is_number else "log P"
    chance = f"{value:.2f}" if prediction.is_number else _say_chance(math.exp(value))
    return View(
        name="influence",
        title="Which words a prediction comes from",
        note=f"Orange words make {prediction.what} more probable, blue ones less: by how much {unit} falls when the "
        "word is erased (+: the word helped), or by the gradient at its vector."
        + (f" The last {len(erased)} of {len(own)} words were erased; the others count 0 there." * (erased != own)),
        summary=_say_influence(prediction, words, methods["erasure"], erased, value, chance),
        data={
            "what": prediction.what, "target": prediction.target_name, "chance": chance, "unit": unit,
            "words": words.texts[first:], "marks": words.is_mark[first:], "cut": first,
            "tokens": _page_tokens(subject, prediction, words)[first:],
            "methods": {name: [round(float(x), 5) for x in scores[first:]] for name, scores in methods.items()},
        },
        table=(
            ("word", *methods),
            [(words.texts[i], *(f"{scores[i]:+.4f}" for scores in methods.values())) for i in range(len(words.texts))],
        ),
    )  # fmt: skip


def explain_no_influence(subject: Subject, options: LookOptions) -> str:
    """Why there is no view of influence."""
    if isinstance(subject.run.model, NgramModel):
        return "it counts, and has no gradient: see next for what it counted"
    return "it predicts nothing"


def view_faithfulness(subject: Subject, options: LookOptions) -> View | None:
    """Whether attention explains a prediction; None for a model that does not attend, or predicts no choice."""
    prediction = predict_subject(subject, options)
    if prediction is None or prediction.is_number:
        return None
    try:
        found = measure_faithfulness(prediction)
    except RegardError:  # it attends to nothing
        return None
    words = join_tokens(prediction)
    columns = {"attention": found.attention, "gradients": found.gradients, "erasure": found.erasure}
    scores = {name: words.add_up(values) for name, values in columns.items()}
    shares = {name: values / max(float(values.sum()), 1e-12) for name, values in scores.items()}
    first = max(0, len(words.texts) - N_SHOWN)
    measures = list_measures(found)
    return View(
        name="faithfulness",
        title="Does attention explain it?",
        note="Bars compare what attention, gradients and erasure say of each word; below, how the output moves when "
        "attention is changed. If it can look elsewhere and say the same, where it looks is no explanation.",
        summary=f"“{show_token(prediction.target_name.strip() or prediction.target_name)}”: {found.verdict}",
        data={
            "verdict": found.verdict, "what": prediction.what, "target": prediction.target_name,
            "words": words.texts[first:], "marks": words.is_mark[first:],
            "tokens": _page_tokens(subject, prediction, words)[first:],
            "shares": {name: [round(float(x), 5) for x in values[first:]] for name, values in shares.items()},
            "measures": [{"name": name, "value": value, "says": says} for name, value, says in measures],
            "permuted": [round(x, 5) for x in found.permuted],
        },
        table=(("measure", "value", "how to read it"), [(n, _write(v), says) for n, v, says in measures]),
    )  # fmt: skip


def list_measures(found: Faithfulness) -> list[tuple[str, float, str]]:
    """The numbers under a verdict: name, value, how to read it."""
    return [
        ("agreement with gradients, τ", found.tau_gradients, "1: the same order of words; 0: none in common"),
        ("agreement with erasure, τ", found.tau_erasure, "1: the same order of words; 0: none in common"),
        ("gradients with erasure, τ", found.tau_gradients_erasure, "what can be expected of two explanations"),
        ("output moved, attention permuted", found.moved_permuted, "0: not at all; 1: all probability; the median"),
        ("output moved, attention uniform", found.moved_uniform, "0: not at all; 1: all probability"),
        (
            "attention pushed away",
            found.pushed,
            f"how far weights were found that move the output by {found.moved_pushed:.3f}; 0: none; 1: all elsewhere",
        ),
    ]


def predict_subject(subject: Subject, options: LookOptions) -> Prediction | None:
    """The prediction that is asked about: that of --word, or what comes after the text; None where there is none."""
    run, word = subject.run, options.word
    if isinstance(run.model, NgramModel | WordVectors):
        return None
    at: int | None = None
    if word is not None and not subject.is_written and subject.spans[find_token(subject, word)] is None:
        mark = subject.word_texts[subject.words[find_token(subject, word)]]
        raise RegardError(f"--word {word}: “{mark}” is a mark that stands before the text or after it, and nothing "
                          "predicts it. Give a word of the text.")  # fmt: skip
    given: list[Any] = [subject.picture if subject.is_captioner else subject.text]
    if subject.is_written:
        own = [t for t, span in enumerate(subject.spans) if span is not None]
        given.append(subject.tree if subject.is_parser else subject.target)
        at = find_token(subject, word) if word is not None else own[-1] if own else 0  # the end itself says little
    elif run.task.name == "tagging":
        numbers = dict.fromkeys(subject.words[t] for t, span in enumerate(subject.spans) if span is not None)
        at = list(numbers).index(subject.words[find_token(subject, word)])
    elif isinstance(run.model, Bert):
        has_mask = run.marks.mask_name in subject.tokens
        at = None if has_mask and word is None else find_token(subject, word)
    elif word is not None and isinstance(run.model, GradientModel):
        at = find_token(subject, word) - 1  # the row before the word expects it
    found: Prediction = run.prediction(*given, at=at)
    if word is None or not (subject.is_written or isinstance(run.model, GradientModel)):
        return found
    row = find_token(subject, word)
    n, which = _count_same(subject, row)
    spelled = subject.word_texts[subject.words[row]]
    what = f"“{spelled}” in its place" + (f", number {which} of {n}" if n > 1 else "")
    return replace(found.choose(_token_at(subject, row)), what=what)


def _count_same(subject: Subject, row: int) -> tuple[int, int]:
    """How often the word at a row is in the text, and which of these it is, from 1 on."""
    same = [w for w, text in enumerate(subject.word_texts) if text == subject.word_texts[subject.words[row]]]
    return len(same), same.index(subject.words[row]) + 1


def _token_at(subject: Subject, row: int) -> int:
    """The id of the token at a row of the trace."""
    ids = subject.run.tokenizers[-1].encode(subject.written).tolist()
    own = [t for t, span in enumerate(subject.spans) if span is not None]
    return int(ids[own.index(row)]) if row in own and own.index(row) < len(ids) else subject.run.tokenizers[-1].eos


def join_tokens(prediction: Prediction) -> Words:
    """The words of a prediction's input."""
    numbers = number_words(prediction.text, prediction.spans)
    texts = join_words(prediction.text, prediction.tokens, prediction.spans, numbers)
    tokens = tuple(tuple(t for t, w in enumerate(numbers) if w == word) for word in range(len(texts)))
    is_mark = tuple(not any(can_be_erased(prediction, t) for t in own) for own in tokens)
    return Words(texts, tokens, is_mark)


def _erase_words(prediction: Prediction, words: Words, value: float, erased: list[int]) -> Array:
    """By how much F falls without each word of those that are to be erased; 0 for the others."""
    scores = np.zeros(len(words.texts))
    for i in erased:
        scores[i] = value - value_without(prediction, *words.tokens[i])
    return scores


def _count_work(subject: Subject, prediction: Prediction) -> float:
    """Multiply-adds of integrating gradients, about."""
    n_points = N_STEPS * N_PARTS
    n_parameters = max(float(subject.run.facts.n_parameters), LEAST_PLAIN)
    return 3.0 * n_points * n_parameters * len(prediction.tokens)


def _page_tokens(subject: Subject, prediction: Prediction, words: Words) -> list[list[int]]:
    """The tokens of the page that each word is; empty where the page shows another text."""
    n = len(prediction.tokens)
    same = not subject.is_written and subject.tokens[:n] == prediction.tokens
    return [list(own) if same else [] for own in words.tokens]


def _say_influence(
    prediction: Prediction, words: Words, scores: Array, erased: list[int], value: float, chance: str
) -> str:
    name = prediction.target_name.strip() or prediction.target_name
    said = f"{prediction.what[0].upper()}{prediction.what[1:]}: “{show_token(name)}” ({chance})."
    if prediction.is_number:
        said = f"The number: {chance}."
    if not erased:
        return said
    best = max(erased, key=lambda i: abs(scores[i]))
    if not prediction.is_number and value - scores[best] <= LEAST + 1e-9:
        return f"{said} Without “{show_token(words.texts[best])}” it could not be said at all."
    way = "falls" if scores[best] > 0 else "rises"
    unit = "it" if prediction.is_number else "log P"
    return f"{said} Without “{show_token(words.texts[best])}” {unit} {way} most, by {abs(scores[best]):.2f}."


def _say_chance(p: float) -> str:
    """A probability in percent, with as many digits as say something.

    >>> _say_chance(0.25), _say_chance(0.0000321)
    ('25.0%', '0.0032%')
    """
    return f"{p:.1%}" if p >= 0.001 or p == 0 else f"{100 * p:.2g}%"


def _write(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"
