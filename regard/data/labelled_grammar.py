"""Labelled sentences that need no files, written by the built-in grammar.

    grammar:en-sentiment      a sentence, and positive, negative or neutral; also de-, fr-
    grammar:en-stars          a sentence, and 1, 3 or 5 stars for these
    grammar:en-pos            words and their universal parts of speech
    grammar:en-ner            words, and which of them name people and places
    grammar:questions         a question, a passage and the span that answers it, in English
    grammar:en-pos:500@test   so many of this split; left out: 5,000 to learn from and 1,000 each to validate and test

Validation and test hold combinations of words that training never shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from regard.data.labelled import Answer, Example
from regard.data.pair_grammar import PREFIX, read_name

N_EXAMPLES = {"train": 5_000, "valid": 1_000, "test": 1_000}
LANGUAGES = ("en", "de", "fr")
STARS = {"negative": 1.0, "neutral": 3.0, "positive": 5.0}
QUESTIONS = "questions"
LABELS = {"sentiment": "classes", "stars": "numbers", "pos": "tags", "ner": "tags"}
"""What can be asked of a sentence, and which kind of label that is."""


def complete_name(name: str, split: str) -> str:
    """The name with its number of examples and its split written out.

    >>> complete_name("grammar:en-pos", "valid")
    'grammar:en-pos:1000@valid'
    """
    what, n, given = _read(name)
    split = given or split
    return f"{PREFIX}{what}:{n or N_EXAMPLES[split]}@{split}"


def name_held_out(name: str, split: str) -> str:
    """What is validated and tested on where only training examples were named."""
    return complete_name(f"{PREFIX}{_read(name)[0]}", split)


def kind_of(name: str) -> str:
    """Which kind of label the examples of a name have.

    >>> kind_of("grammar:en-ner"), kind_of("grammar:questions")
    ('tags', 'answers')
    """
    what = _read(name)[0]
    return "answers" if what == QUESTIONS else LABELS[what.partition("-")[2]]


def is_labelled(name: str) -> bool:
    """Whether a name is one of labelled sentences, and not of pairs.

    >>> is_labelled("grammar:en-ner:50"), is_labelled("grammar:en-de")
    (True, False)
    """
    return name.removeprefix(PREFIX).partition(":")[0].partition("@")[0] in _names()


def draw_examples(name: str) -> Iterator[Example]:
    """The examples of a complete name."""
    # The lexicon is read when it is needed: configs import this module, and most runs are on files.
    from regard.data.builtin.grammar import Grammar
    from regard.data.builtin.grammar.words import place_words

    what, n, split = _read(name)
    assert n is not None, "how many"
    assert split is not None, "of which split"
    language, _, asked = what.partition("-")
    n_given = 0
    for sentence in Grammar().sentences(split):
        if n_given == n:
            return
        where = f"{name}, sentence {sentence.index}"
        if what == QUESTIONS:
            if sentence.question is None or sentence.answer is None:
                continue
            passage, starts = place_words(sentence.en, "en")
            first, last = sentence.answer[0], sentence.answer[1] - 1
            begin, end = starts[first], starts[last] + len(sentence.en[last])
            question = place_words(sentence.question, "en")[0]
            yield Example((question, passage), (Answer(begin, passage[begin:end]),), where)
        elif asked in ("pos", "ner"):
            tags = sentence.tags if asked == "pos" else sentence.entities
            yield Example((" ".join(sentence.words(language)),), tags[language], where)
        else:
            label = STARS[sentence.sentiment] if asked == "stars" else sentence.sentiment
            yield Example((sentence.text(language),), label, where)
        n_given += 1


def _read(name: str) -> tuple[str, int | None, str | None]:
    return read_name(name, _names(), "labelled sentences", "en-sentiment:2000")


def _names() -> list[str]:
    return [*(f"{language}-{asked}" for asked in LABELS for language in LANGUAGES), QUESTIONS]
