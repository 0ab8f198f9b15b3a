"""The kinds of sentence, and how chance makes each: what `Grammar` draws from.

event     who does what, to whom, where, when and how
opinion   what something is like: where most sentiment is
complex   two clauses, or a claim that holds one: German verbs go last
question  yes or no: German verbs go first, English needs do, French est-ce que
scene     shapes, their colours, sizes, numbers and places: what can be drawn

Two kinds are drawn where they are asked for, and never else:

ambiguous a phrase that belongs to the verb or to a noun, as chance has it: no words tell
long      one to six clauses joined by and or but, evenly: for what depends on length
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from regard.data.builtin.grammar import meaning as m
from regard.data.builtin.grammar.attachment import draw_ambiguous
from regard.data.builtin.grammar.composer import Composer
from regard.data.builtin.grammar.lexicon import ADJECTIVES, NOUNS, PREPOSITIONS
from regard.errors import RegardError, nearest

SHAPES = [noun for noun in NOUNS.values() if noun.kind == "shape"]
COLOURS = [a for a in ADJECTIVES.values() if a.group == "colour" and "shape" in a.kinds]
SIZES = [ADJECTIVES["small"], ADJECTIVES["big"]]
RELATIONS = ("to the left of", "to the right of", "above", "below")
MOST_CLAUSES = 6  # of a long sentence
LINKS = {"and": 2.0, "but": 2.0, "because": 3.0, "while": 1.5, "if": 1.5, "claim": 4.0}


def event(draw: Composer) -> m.Meaning:
    return m.Meaning(draw.event(draw.tense()))


def _copular_tense(draw: Composer) -> str:
    return draw.random.choices((m.PRESENT, m.PAST, m.FUTURE), (5, 4, 1))[0]


def opinion(draw: Composer) -> m.Meaning:
    tense = _copular_tense(draw)
    main = draw.opinion(tense)
    if draw.maybe(0.4):
        return m.Meaning(main, draw.random.choice(("and", "but")), draw.opinion(tense))
    return m.Meaning(main)


def question(draw: Composer) -> m.Meaning:
    if draw.chance(0.3):
        return m.Meaning(draw.opinion(_copular_tense(draw), is_question=True))
    return m.Meaning(draw.event(draw.tense(), is_question=True))


def complex_sentence(draw: Composer) -> m.Meaning:
    link = draw.one_of(LINKS)
    if link == "claim":
        claim = draw.claim()
        is_hope = claim.verb is not None and claim.verb.name == "hope"  # what is hoped for is to come
        if draw.chance(0.3):
            return m.Meaning(draw.opinion(m.FUTURE if is_hope else _copular_tense(draw)), claim=claim)
        return m.Meaning(draw.event(m.FUTURE if is_hope else draw.tense(), is_inner=True), claim=claim)
    tense = draw.random.choice((m.PRESENT, m.PAST))
    if link == "while":  # French would need another past for what went on meanwhile
        tense = m.PRESENT
    first, second = (m.FUTURE, m.PRESENT) if link == "if" else (tense, tense)
    main = draw.event(first)
    is_mood = link == "because" and draw.chance(0.5)
    other = draw.opinion(second) if is_mood else draw.event(second, is_inner=True)
    is_first = link in ("because", "while", "if") and not main.is_when_first and draw.chance(0.4)
    return m.Meaning(main, link, other, is_second_first=is_first)


def _shapes(draw: Composer, other_than: m.NounPhrase | None = None) -> m.NounPhrase:
    """Some shapes, told apart from another phrase's by shape or colour."""
    noun, colour = draw.random.choice(SHAPES), draw.random.choice(COLOURS)
    if other_than is not None and noun is other_than.head:
        noun = draw.random.choice([shape for shape in SHAPES if shape is not noun])
    adjectives: list[m.Adjective] = [draw.random.choice(SIZES)] if draw.chance(0.5) else []
    if not adjectives or draw.chance(0.8):
        adjectives.append(colour)
    count = draw.random.choices((1, 2, 3, 4), (5, 2, 2, 1))[0]
    return m.NounPhrase(
        key=draw.key(),
        head=noun,
        determiner=m.A if count == 1 else m.COUNT,
        number=m.SINGULAR if count == 1 else m.PLURAL,
        count=count,
        adjectives=tuple(adjectives),
    )


def _place(draw: Composer) -> m.Clause:
    """Shapes to the left of, above, ... others; "there is" or plainly."""
    first = _shapes(draw)
    preposition = PREPOSITIONS[draw.random.choice(RELATIONS)]
    where = m.Somewhere(draw.key(), preposition, _shapes(draw, first))
    return m.Clause(draw.key(), first, None, m.PRESENT, where=(where,), is_existential=draw.chance(0.5))


def scene(draw: Composer) -> m.Meaning:
    if draw.chance(0.3):
        first = _shapes(draw)
        both = m.Both(draw.key(), first, _shapes(draw, first), lacks=draw.chance(0.4))
        subject: m.Thing = first if draw.chance(0.3) else both
        return m.Meaning(m.Clause(draw.key(), subject, None, m.PRESENT, is_existential=True))
    if draw.maybe(0.3):
        return m.Meaning(_place(draw), "and", _place(draw))
    return m.Meaning(_place(draw))


def long(draw: Composer) -> m.Meaning:
    # Of the richness, which is drawn once: else splits, which refuse different meanings, would differ in their lengths.
    n_clauses = 1 + int(1000 * draw.richness) % MOST_CLAUSES
    main, *others = [_one_of_many(draw) for _ in range(n_clauses)]
    linked = [(draw.random.choice(("and", "but")), clause) for clause in others]
    if not linked:
        return m.Meaning(main)
    (link, second), *more = linked
    return m.Meaning(main, link, second, more=tuple(more))


def _one_of_many(draw: Composer) -> m.Clause:
    return draw.opinion(_copular_tense(draw)) if draw.chance(0.25) else draw.event(draw.tense(), is_inner=True)


# The weight is that of a kind among sentences of any kind; without one, it is drawn by name alone.
KINDS: dict[str, tuple[float, Callable[[Composer], m.Meaning]]] = {
    "event": (4.0, event),
    "opinion": (2.0, opinion),
    "complex": (2.5, complex_sentence),
    "question": (1.0, question),
    "scene": (2.0, scene),
    "ambiguous": (0.0, draw_ambiguous),
    "long": (0.0, long),
}


def check_kind(kind: str | None) -> None:
    if kind is not None and kind not in KINDS:
        raise RegardError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}.{nearest(kind, KINDS)}")


def draw_kind(random: Random) -> str:
    weights = {kind: weight for kind, (weight, _) in KINDS.items() if weight}
    return random.choices(list(weights), list(weights.values()))[0]


def draw_meaning(random: Random, kind: str, richness: float) -> m.Meaning:
    return KINDS[kind][1](Composer(random, richness))


def pairs(meaning: m.Meaning) -> set[tuple[str, str]]:
    """The combinations a split may hold out: adjective and noun, verb and object."""
    found = set()
    for clause in meaning.clauses:
        for thing in clause.things:
            found |= {(adjective.name, thing.head.name) for adjective in thing.adjectives}
        if clause.predicate is not None:
            found |= {(clause.predicate.name, part.head.name) for part in clause.subject.parts}
        if clause.verb is not None and clause.object is not None:
            found |= {(clause.verb.name, part.head.name) for part in clause.object.parts}
    return found
