"""Sentences with phrases that may belong to the verb or to a noun: "I saw an elephant in my pajamas."

    (VP saw (NP an elephant) (PP in my pajamas))         who saw wore them
    (VP saw (NP (NP an elephant) (PP in my pajamas)))    the elephant wore them

The words are the same in every reading, and chance alone says which one is meant: no parser can know it, and a good
one gives every reading its share. One phrase has two readings, two have five (Church & Patil 1982: Catalan numbers).
"""

from __future__ import annotations

from dataclasses import replace

from regard.data.builtin.grammar import lexicon
from regard.data.builtin.grammar import meaning as m
from regard.data.builtin.grammar.composer import ANY, DEFINITE, Composer

I = m.Pronoun("m", m.SINGULAR, "I")
# Verbs of which all three languages put the object before the phrase, so that both readings are the same words.
VERBS = [lexicon.VERBS[name] for name in ("see", "look for", "find", "follow", "look at", "watch", "chase")]
SEEN = ("person", "animal")
OF_OBJECTS = {name: weight for name, weight in ANY.items() if name != m.BARE}
OF_PHRASES = {m.THE: 3, m.A: 3, m.MY: 2, m.OUR: 0.5}
WORN = [lexicon.NOUNS[name] for name in ("coat", "dress", "jacket", "sweater", "hat")]
PAJAMAS = lexicon.NOUNS["pajamas"]
INSTRUMENTS = [*lexicon.find_nouns(frozenset({"instrument"})), lexicon.NOUNS["camera"]]
SORTS: dict[str, float] = {"with": 3, "worn": 2, "there": 3}
IN = m.Preposition("in", "in", m.DATIVE, "dans")

Phrases = tuple[m.Somewhere, ...]


def attach(verb_phrases: Phrases, thing: m.NounPhrase, phrases: Phrases) -> list[tuple[Phrases, m.NounPhrase]]:
    """Every way in which phrases, in their order, belong to the verb or to nouns before them, with no lines crossed.

    Each is the phrases of the verb, and the object with those of its own. A phrase may be given to the verb, to the
    object if the verb has none yet, or to the noun that ends what was said last.
    """
    if not phrases:
        return [(verb_phrases, thing)]
    first, rest = phrases[0], phrases[1:]
    found = attach((*verb_phrases, first), thing, rest)
    if not verb_phrases:
        for held in _hang_on(thing, first):
            found += attach((), held, rest)
        return found
    *before, last = verb_phrases
    if last.thing is not None:
        for held in _hang_on(last.thing, first):
            found += attach((*before, replace(last, thing=held)), thing, rest)
    return found


def _hang_on(thing: m.NounPhrase, phrase: m.Somewhere) -> list[m.NounPhrase]:
    """The noun phrase with `phrase` at its own noun, or at one of those that end it."""
    found = [replace(thing, at=(*thing.at, phrase))]
    if thing.at and thing.at[-1].thing is not None:
        *before, last = thing.at
        assert last.thing is not None
        found += [replace(thing, at=(*before, replace(last, thing=held))) for held in _hang_on(last.thing, phrase)]
    return found


def draw_ambiguous(draw: Composer) -> m.Meaning:
    """Someone sees someone, with one phrase or two that belong to either; sometimes the subject has one of its own."""
    verb = draw.random.choice(VERBS)
    subject, tense = _draw_subject(draw)
    thing = draw.of_noun(draw.random.choice(lexicon.find_nouns(frozenset(SEEN))), OF_OBJECTS, 0.3)
    while thing.head.name == subject.head.name:
        thing = draw.of_noun(draw.random.choice(lexicon.find_nouns(frozenset(SEEN))), OF_OBJECTS, 0.3)
    sort = draw.one_of(SORTS)
    phrases: Phrases = (draw_phrase(draw, sort),)
    if draw.chance(0.25):
        another = {name: weight for name, weight in SORTS.items() if name != sort}
        phrases += (draw_phrase(draw, draw.one_of(another)),)
    if isinstance(subject.head, m.Noun) and draw.chance(0.2):  # what is said of the subject has one reading
        subject, phrases = replace(subject, at=phrases[:1]), phrases[1:]
    where, held = draw.random.choice(attach((), thing, phrases))
    return m.Meaning(m.Clause(draw.key(), subject, verb, tense, held, where=where))


def _draw_subject(draw: Composer) -> tuple[m.NounPhrase, str]:
    """Who sees, and in which tense."""
    if draw.chance(0.25):
        return m.NounPhrase(draw.key(), I), m.PAST
    subject = draw.thing(("person",), DEFINITE | {m.A: 3}, adjective=0.2, can_be_pronoun=True)
    return subject, draw.random.choices((m.PAST, m.PRESENT, m.PERFECT, m.FUTURE), (5, 3, 1, 1))[0]


def draw_phrase(draw: Composer, sort: str) -> m.Somewhere:
    """A phrase of a sort: with an instrument, in clothes, or at a place."""
    if sort == "there":
        return draw.in_a_place(can_hide=True)
    if sort == "with":
        tool = replace(draw.of_noun(draw.random.choice(INSTRUMENTS), OF_PHRASES, 0.2), number=m.SINGULAR)
        return m.Somewhere(draw.key(), lexicon.PREPOSITIONS["with"], tool)
    noun = PAJAMAS if draw.chance(0.4) else draw.random.choice(WORN)
    determiners: dict[str, float] = {m.THE: 1, m.MY: 3, m.OUR: 0.5} if noun is PAJAMAS else OF_PHRASES
    return m.Somewhere(draw.key(), IN, replace(draw.of_noun(noun, determiners, 0.2), number=m.SINGULAR))
