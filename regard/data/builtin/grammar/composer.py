"""Chance writes a meaning: what may be said of what, how often, and how richly.

`richness` runs from 0 to 1: the chance that a part that may be left out is there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from random import Random

from regard.data.builtin.grammar import lexicon
from regard.data.builtin.grammar import meaning as m

HE_AND_SHE = (m.Pronoun("m", m.SINGULAR, "he"), m.Pronoun("f", m.SINGULAR, "she"))
THEY = m.Pronoun("m", m.PLURAL, "they")
ODD = {
    ("old", "girl"),
    ("old", "boy"),
    ("old", "child"),
    ("small", "friend"),
    ("young", "grandmother"),
    ("young", "grandfather"),
}
DEFINITE = {m.THE: 8, m.THIS: 1, m.MY: 1, m.OUR: 0.5, m.OWNED: 0.7}
ANY = DEFINITE | {m.A: 4, m.BARE: 1, m.EVERY: 0.4, m.SOME: 0.6, m.MANY: 0.6, m.COUNT: 1.5}
OF_PLACES = {m.THE: 8, m.THIS: 1, m.MY: 0.3, m.OUR: 0.5, m.A: 2}
PLURAL_ONLY = {m.BARE, m.SOME, m.MANY, m.COUNT}
SINGULAR_ONLY = {m.A, m.EVERY}
HOMES = frozenset({"house", "apartment", "village", "town", "castle"})
GOALS = frozenset({
    "school", "church", "park", "hospital", "hotel", "restaurant", "museum", "library", "castle", "bakery", "factory",
    "theatre", "market", "beach", "airport", "train station", "swimming pool", "cinema", "village",
})  # fmt: skip
BESIDE = ("behind", "in front of", "next to")
UNOWNED = {"man", "woman"}  # "my woman" says too much
_BY_PATTERN = {p: [v for v in lexicon.ALL_VERBS if v.pattern == p] for p in ("alone", "object", "gift", "claim")}
_PLACE_NOUNS = [noun for noun in lexicon.NOUNS.values() if noun.kind == "place"]


def adverbs(group: str, *flags: str) -> list[m.Adverb]:
    """Those of a group with one of these flags."""
    return [adverb for name, adverb in lexicon.ADVERBS if name == group and (not flags or adverb.flags & set(flags))]


def _drop_group(thing: m.Thing, group: str) -> m.Thing:
    """Less the attributes that a predicate of their group would repeat or deny: "the long book is short"."""
    if isinstance(thing, m.Both):
        first, second = (_drop_group(part, group) for part in thing.parts)
        assert isinstance(first, m.NounPhrase)
        assert isinstance(second, m.NounPhrase)
        return replace(thing, first=first, second=second)
    return replace(thing, adjectives=tuple(a for a in thing.adjectives if a.group != group))


class Composer:
    """Draws the parts of one meaning; every part gets a key of its own."""

    def __init__(self, random: Random, richness: float) -> None:
        self.random, self.richness = random, richness
        # Only before anyone else is named: French would have to say whether "they" are the women of the clause before.
        self.can_say_they = True
        self._n_keys = 0

    def key(self) -> str:
        self._n_keys += 1
        return f"k{self._n_keys}"

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def maybe(self, p: float) -> bool:
        """Likelier in richer sentences."""
        return self.chance(p * 2 * self.richness)

    def one_of(self, weights: dict[str, float]) -> str:
        return self.random.choices(list(weights), list(weights.values()))[0]

    # Things

    def person(self) -> m.Person:
        who = self.random.choice(lexicon.GIVEN)
        return replace(who, family=self.random.choice(lexicon.FAMILIES)) if self.chance(0.3) else who

    def thing(
        self,
        kinds: Collection[str],
        determiners: dict[str, float],
        *,
        adjective: float = 0.35,
        can_be_pronoun: bool = False,
    ) -> m.NounPhrase:
        """A noun of one of these kinds, or someone with a name where a person may be."""
        if "person" in kinds and self.chance(0.3):
            if can_be_pronoun and self.chance(0.35):
                who = self.random.choice((*HE_AND_SHE, THEY) if self.can_say_they else HE_AND_SHE)
                return m.NounPhrase(self.key(), who, number=who.number)
            return m.NounPhrase(self.key(), self.person())
        return self.of_noun(self.random.choice(lexicon.find_nouns(frozenset(kinds))), determiners, adjective)

    def of_noun(self, noun: m.Noun, determiners: dict[str, float], adjective: float = 0.35) -> m.NounPhrase:
        if noun.is_mass:
            determiners = {d: w for d, w in determiners.items() if d in (m.THE, m.THIS, m.MY, m.BARE)}
            determiners = {d: 8 if d == m.BARE else w for d, w in determiners.items()}
        if noun.name in UNOWNED:
            determiners = {d: w for d, w in determiners.items() if d not in (m.MY, m.OUR, m.OWNED)}
        determiner = self.one_of(determiners)
        number = m.SINGULAR
        if not noun.is_mass and determiner not in SINGULAR_ONLY and (determiner in PLURAL_ONLY or self.chance(0.25)):
            number = m.PLURAL
        return m.NounPhrase(
            key=self.key(),
            head=noun,
            determiner=determiner,
            number=number,
            count=self.random.randint(2, 10) if determiner == m.COUNT else 1,
            adjectives=self.attributes(noun) if self.maybe(adjective) else (),
            owner=self.owner() if determiner == m.OWNED else None,
        )

    def owner(self) -> m.Person:
        """Someone whose German genitive is written with an s."""
        return self.random.choice([who for who in lexicon.GIVEN if who.given[-1] not in "sxz"])

    def attributes(self, noun: m.Noun) -> tuple[m.Adjective, ...]:
        """One adjective, or two where French puts them on both sides of the noun."""
        fits = [a for a in lexicon.ADJECTIVES.values() if a.kinds & noun.kinds and a.polarity == 0]
        fits = [a for a in fits if (a.name, noun.name) not in ODD]
        fits = [a for a in fits if not noun.french[0].startswith(f"{a.french[0]}-")]  # no grand grand-père
        if not fits:
            return ()
        first = self.random.choice(fits)
        after = [a for a in fits if not a.is_before_noun and a.group in ("trait", "colour")]
        if first.is_before_noun and after and self.maybe(0.25):
            return first, self.random.choice(after)
        return (first,)

    def maybe_both(self, first: m.NounPhrase, kinds: Collection[str], determiners: dict[str, float]) -> m.Thing:
        """Sometimes two things joined by and."""
        if first.is_pronoun or not self.maybe(0.12):
            return first
        kind = first.head.kind if isinstance(first.head, m.Noun) else "person"
        alike = [noun for noun in lexicon.find_nouns(frozenset(kinds)) if noun.kind == kind]
        second = self.thing({noun.name for noun in alike}, determiners, adjective=0.2)
        return first if second.head.name == first.head.name else m.Both(self.key(), first, second)

    # Places

    def in_a_place(self, can_hide: bool) -> m.Somewhere:
        if self.chance(0.25):
            return m.Somewhere(self.key(), None, place=self.random.choice(lexicon.PLACES))
        if self.chance(0.25):
            near = self.thing(("furniture", "nature"), OF_PLACES, adjective=0.25)
            return m.Somewhere(
                self.key(), lexicon.PREPOSITIONS[self.random.choice(("under", *BESIDE) if can_hide else BESIDE)], near
            )
        return self.inside(self.random.choice(_PLACE_NOUNS))

    def inside(self, noun: m.Noun) -> m.Somewhere:
        english, german, french = noun.there
        preposition = m.Preposition(english, german, m.DATIVE, french)
        determiners = DEFINITE if french == "à" else OF_PLACES  # à la gare, but not à une gare
        return m.Somewhere(self.key(), preposition, replace(self.of_noun(noun, determiners, 0.25), number=m.SINGULAR))

    def where_of(self, verb: m.Verb, subject: m.Thing) -> tuple[m.Somewhere, ...]:
        """Where it happens; verbs of staying and going need a place."""
        if "there" in verb.flags:
            if self.chance(0.5):
                return (m.Somewhere(self.key(), None, place=self.random.choice(lexicon.PLACES)),)
            homes = HOMES if verb.is_stative else frozenset({"place"})
            return (self.inside(self.random.choice(lexicon.find_nouns(homes))),)
        if "city" in verb.flags or ("to" in verb.flags and "animal" not in verb.subjects and self.chance(0.3)):
            return (m.Somewhere(self.key(), None, place=self.random.choice(lexicon.PLACES), is_direction=True),)
        if "to" in verb.flags:
            goal = replace(
                self.of_noun(self.random.choice(lexicon.find_nouns(GOALS)), OF_PLACES, 0.25), number=m.SINGULAR
            )
            return (m.Somewhere(self.key(), lexicon.PREPOSITIONS["to"], goal, is_direction=True),)
        if verb.is_stative or not self.maybe(0.3):
            return ()
        if self.chance(0.2) and verb.pattern == "alone":
            companion = self.thing(("person",), DEFINITE, adjective=0.2)
            return (m.Somewhere(self.key(), lexicon.PREPOSITIONS[self.random.choice(("with", "without"))], companion),)
        return (self.in_a_place(can_hide=verb.pattern == "alone" and not subject.is_person),)

    # Clauses

    def tense(self) -> str:
        return self.random.choices((m.PRESENT, m.PAST, m.PERFECT, m.FUTURE), (5, 3, 2, 2))[0]

    def event(self, tense: str, *, is_inner: bool = False, is_question: bool = False) -> m.Clause:
        """Someone does something. An inner clause, in a noun or after because, is kept plainer.

        Verbs whose object could as well be their subject come more often: there, only word order or case tells.
        """
        pattern = self.random.choices(("alone", "object", "gift"), (3, 7, 1.5))[0]
        verbs = [v for v in _BY_PATTERN[pattern] if tense != m.PERFECT or not v.is_stative]
        verb = self.random.choices(verbs, [3 if v.subjects & v.objects else 1 for v in verbs])[0]
        negation = None if is_question or not self.chance(0.2) else m.NEVER if self.chance(0.25) else m.NOT
        guarded = DEFINITE if negation or is_question else ANY
        subject = self.maybe_both(self.thing(verb.subjects, guarded, can_be_pronoun=True), verb.subjects, guarded)
        clause = m.Clause(
            key=self.key(),
            subject=subject,
            verb=verb,
            tense=tense,
            object=None if pattern == "alone" else self.goal(verb, negation, subject),
            recipient=self.other_than(subject, ("person",), can_be_pronoun=False) if pattern == "gift" else None,
            is_recipient_first=self.chance(0.5),
            negation=negation,
            where=self.where_of(verb, subject),
            is_question=is_question,
        )
        clause = self.modify(clause, is_inner)
        self.can_say_they = False
        return clause if is_inner else self.add_relative(clause)

    def goal(self, verb: m.Verb, negation: str | None, subject: m.Thing) -> m.Thing:
        """The object: no one but persons may be meant by a pronoun, and nobody does it to himself."""
        determiners = ANY
        if verb.is_stative:  # "likes dogs" means all of them, and French would say so
            determiners = {d: w for d, w in ANY.items() if d != m.BARE}
        if negation:
            determiners = DEFINITE if "person" in verb.objects else DEFINITE | {m.A: 5, m.BARE: 2}
        is_plain = not verb.german.preposition and not verb.french.preposition
        can_be_pronoun = is_plain and "person" in verb.objects and verb.pattern == "object"
        can_be_pronoun = can_be_pronoun and not subject.is_pronoun
        goal = self.other_than(subject, verb.objects, determiners, adjective=0.35, can_be_pronoun=can_be_pronoun)
        return self.maybe_both(goal, verb.objects, determiners) if is_plain and not negation else goal

    def other_than(
        self,
        thing: m.Thing,
        kinds: Collection[str],
        determiners: dict[str, float] = DEFINITE,
        *,
        adjective: float = 0.15,
        can_be_pronoun: bool = True,
    ) -> m.NounPhrase:
        """Something else: one sentence does not call two by the same noun."""
        taken = {part.head.name for part in thing.parts}
        while True:
            found = self.thing(kinds, determiners, adjective=adjective, can_be_pronoun=can_be_pronoun)
            if found.head.name not in taken:
                return found

    def modify(self, clause: m.Clause, is_inner: bool) -> m.Clause:
        """With adverbs of time, frequency and manner."""
        verb = clause.verb
        assert verb is not None
        often = when = manner = None
        if not clause.negation and self.maybe(0.15):
            often = self.random.choice(adverbs("often", clause.tense))
        elif not verb.is_stative and not is_inner and clause.negation != m.NEVER and self.maybe(0.35):
            when = self.random.choice(adverbs("time", clause.tense) or [None])
        kinds = verb.flags & ({"action", "skill"} if not clause.negation else {"skill"})
        if kinds and not often and (not clause.negation or verb.pattern == "alone") and self.maybe(0.35):
            manner = self.random.choice(adverbs("manner", *kinds))
        is_when_first = when is not None and not clause.is_question and self.chance(0.4)
        return replace(clause, often=often, when=when, manner=manner, is_when_first=is_when_first)

    def add_relative(self, clause: m.Clause) -> m.Clause:
        """Sometimes the subject or the object says more about itself."""
        if relative := self.maybe_relative(clause.subject, clause.tense):
            return replace(clause, subject=relative)
        if clause.where or clause.manner or (clause.when and not clause.is_when_first):
            return clause  # what follows the object might belong to either clause
        if relative := self.maybe_relative(clause.object, clause.tense):
            return replace(clause, object=relative, is_recipient_first=True)
        return clause

    def maybe_relative(self, thing: m.Thing | None, tense: str) -> m.NounPhrase | None:
        if not isinstance(thing, m.NounPhrase) or not isinstance(thing.head, m.Noun) or not self.maybe(0.12):
            return None
        return replace(thing, relative=self.relative(thing, tense))

    def relative(self, thing: m.NounPhrase, tense_outside: str) -> m.Relative | None:
        noun = thing.head
        assert isinstance(noun, m.Noun)
        tense = m.PAST if tense_outside in (m.PAST, m.PERFECT) else self.random.choice((m.PRESENT, m.PAST, m.PERFECT))
        verbs = [
            v
            for v in lexicon.ALL_VERBS
            if v.pattern in ("alone", "object") and (tense != m.PERFECT or not v.is_stative)
        ]
        mine = [v for v in verbs if v.subjects & noun.kinds]
        theirs = [
            v for v in verbs if v.objects & noun.kinds and not v.german.preposition and not v.french.preposition
        ]  # fmt: skip
        if mine and (not theirs or self.chance(0.5)):
            verb = self.random.choice(mine)
            goal = self.other_than(thing, verb.objects, can_be_pronoun=False) if verb.pattern == "object" else None
            where = self.where_of(verb, thing) if verb.flags & {"there", "to", "city"} else ()
            return m.Relative(m.Clause(self.key(), thing, verb, tense, goal, where=where), is_subject=True)
        if theirs:
            verb = self.random.choice(theirs)
            subject = self.other_than(thing, verb.subjects)
            return m.Relative(m.Clause(self.key(), subject, verb, tense, thing), is_subject=False)
        return None

    def opinion(self, tense: str, *, is_question: bool = False) -> m.Clause:
        """What something is like."""
        verdicts = self.chance(0.8)
        adjective = self.random.choice(
            [a for a in lexicon.ADJECTIVES.values() if (a.polarity != 0) == verdicts and a.group != "colour"]
        )
        kinds = sorted(kind for kind in adjective.kinds if kind not in "+-!~")
        negation = m.NOT if not is_question and self.chance(0.3) else None
        guarded = DEFINITE if negation or is_question else DEFINITE | {m.SOME: 0.5, m.MANY: 0.5}
        first = self.thing(kinds, guarded, can_be_pronoun=True, adjective=0.2)
        subject = _drop_group(self.maybe_both(first, kinds, guarded), adjective.group)
        self.can_say_they = False
        degree = self.degree(adjective, negation) if self.maybe(0.35) else None
        is_mood = "~" in adjective.kinds and tense != m.PRESENT
        when = self.random.choice(adverbs("time", tense)) if is_mood and self.maybe(0.5) else None
        return m.Clause(
            key=self.key(), subject=subject, verb=None, tense=tense, negation=negation, predicate=adjective,
            degree=degree, when=when, is_question=is_question,
        )  # fmt: skip

    def degree(self, adjective: m.Adjective, negation: str | None) -> m.Adverb | None:
        """How much so: only what is good can be too little, "not very good"; only what is not, too much."""
        very, really, too = adverbs("degree")
        if negation:
            return very if adjective.polarity > 0 and "!" not in adjective.kinds else None
        if "!" in adjective.kinds:
            return really
        return self.random.choice((very, really) if adjective.polarity > 0 else (very, really, too))

    def claim(self) -> m.Clause:
        verb = self.random.choice(_BY_PATTERN["claim"])
        subject = self.thing(("person",), DEFINITE, adjective=0.2, can_be_pronoun=True)
        self.can_say_they = False
        return m.Clause(self.key(), subject, verb, m.PRESENT)
