"""A question about a sentence, in English, whose answer is a span of its words."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from regard.data.builtin.grammar import english
from regard.data.builtin.grammar import meaning as m
from regard.data.builtin.grammar.words import Phrase, find_span, leaves, phrase, word


def ask(meaning: m.Meaning, tree: Phrase, random: Random) -> tuple[tuple[str, ...], tuple[int, int]] | None:
    """The words of a question about the first clause, and where its answer begins and ends; None of a question.

    The question is the clause again, with a question word for one of its parts.
    """
    if meaning.main.is_question:
        return None
    clause = meaning.main
    part = random.choice(_parts(clause))
    span = find_span(tree, f"{clause.key}.{part}")
    assert span is not None
    asked = phrase("SBARQ", [word(_question_word(clause, part), "PRON"), *_rest(clause, part), word("?", "PUNCT")])
    return tuple(w.text for w in leaves(english.finish(asked))), span


def _parts(c: m.Clause) -> list[str]:
    """What can be asked for: a pronoun would be no answer."""
    parts = [] if c.subject.is_pronoun else ["subject"]
    if c.object is not None and not c.object.is_pronoun:
        parts.append("object")
    if c.predicate is not None and not c.negation:
        parts.append("predicate")
    if c.where and c.where[0].is_place and not c.is_existential:
        parts.append("where")
    if c.when is not None:
        parts.append("when")
    return parts or ["subject"]


def _question_word(c: m.Clause, part: str) -> str:
    if part == "subject":
        return "who" if c.subject.is_person else "what"
    if part == "object":
        assert c.object is not None
        return "whom" if c.object.is_person else "what"
    return {"where": "where", "when": "when", "predicate": "how"}[part]


def _rest(c: m.Clause, part: str) -> tuple[Phrase, ...]:
    if part == "subject" and c.is_existential and not c.where:
        return (phrase("SQ", [word("is", "AUX"), word("there", "PRON")]),)
    return (english.clause(_move_time_last(c), without=part),)


def _move_time_last(c: m.Clause) -> m.Clause:
    """With the time at the end: a question begins with its question word."""
    return replace(c, is_when_first=False)
