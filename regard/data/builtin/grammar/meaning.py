"""What a sentence says, before any language says it.

Every part has a key of its own, and the words that express it carry that key (see words.py): `.n` the noun, `.d` its
determiner, `.v` the verb, `.t` its tense, `.not` the negation, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from regard.data.builtin.grammar.forms import (
    PLURAL,
    SINGULAR,
    Adjective,
    Adverb,
    Noun,
    Person,
    Place,
    Preposition,
    Pronoun,
    Verb,
)

THE, A, BARE, THIS, MY, OUR, EVERY, SOME, MANY, COUNT, OWNED = (
    "the", "a", "bare", "this", "my", "our", "every", "some", "many", "count", "owned",
)  # fmt: skip
NO = "no"  # what a, bare and mass nouns become in the scope of a negation, in German and French
NOT, NEVER = "not", "never"


@dataclass(frozen=True)
class NounPhrase:
    """One thing or several of a kind. `owner` goes with the determiner OWNED, `count` with COUNT."""

    key: str
    head: Noun | Person | Pronoun
    determiner: str = THE
    number: str = SINGULAR
    count: int = 1
    adjectives: tuple[Adjective, ...] = ()
    owner: Person | None = None
    relative: Relative | None = None

    @property
    def is_person(self) -> bool:
        return not isinstance(self.head, Noun) or self.head.kind == "person"

    @property
    def is_pronoun(self) -> bool:
        return isinstance(self.head, Pronoun)

    @property
    def is_indefinite(self) -> bool:
        return self.determiner in (A, BARE)

    @property
    def french_gender(self) -> str:
        return self.head.french_gender if isinstance(self.head, Noun) else self.head.gender

    @property
    def parts(self) -> tuple[NounPhrase, ...]:
        return (self,)


@dataclass(frozen=True)
class Both:
    """Two things joined; `lacks` is "a circle but no star"."""

    key: str
    first: NounPhrase
    second: NounPhrase
    lacks: bool = False
    is_pronoun: bool = False
    is_indefinite: bool = False

    @property
    def number(self) -> str:
        return self.first.number if self.lacks else PLURAL

    @property
    def is_person(self) -> bool:
        return self.first.is_person

    @property
    def french_gender(self) -> str:
        return "m" if "m" in (self.first.french_gender, self.second.french_gender) else "f"

    @property
    def parts(self) -> tuple[NounPhrase, ...]:
        return self.first, self.second


Thing = NounPhrase | Both


@dataclass(frozen=True)
class Somewhere:
    """A preposition and what follows it; a place with a name brings its own prepositions."""

    key: str
    preposition: Preposition | None
    thing: NounPhrase | None = None
    place: Place | None = None
    is_direction: bool = False

    @property
    def is_place(self) -> bool:
        """Whether it answers "where": company does not."""
        return self.preposition is None or self.preposition.english not in ("with", "without")


@dataclass(frozen=True)
class Clause:
    """Who does what to whom, when, where and how. Without a verb it says what the subject is like, or where it is."""

    key: str
    subject: Thing
    verb: Verb | None
    tense: str
    object: Thing | None = None
    recipient: NounPhrase | None = None
    is_recipient_first: bool = False  # "gives the child the book": a way of English alone
    negation: str | None = None
    predicate: Adjective | None = None
    degree: Adverb | None = None
    where: tuple[Somewhere, ...] = ()
    when: Adverb | None = None
    is_when_first: bool = False
    often: Adverb | None = None
    manner: Adverb | None = None
    is_existential: bool = False  # "there is"
    is_question: bool = False

    @property
    def things(self) -> Iterator[NounPhrase]:
        """Every noun phrase of this clause, not those of clauses inside."""
        for thing in (self.subject, self.object, self.recipient, *(place.thing for place in self.where)):
            if thing is not None:
                yield from thing.parts

    @property
    def polarity(self) -> int:
        """What it praises (1) or blames (-1); a negation turns it round, and so does rarely: mostly, it is not so."""
        marked = [self.verb, self.predicate, self.manner]
        total = sum(part.polarity for part in marked if part is not None)
        is_rare = self.often is not None and "rare" in self.often.flags
        return -total if self.negation or is_rare else total


@dataclass(frozen=True)
class Relative:
    """A clause about a noun, which is its subject or its object: there, the pronoun takes its place."""

    clause: Clause
    is_subject: bool


@dataclass(frozen=True)
class Meaning:
    """A whole sentence: a clause, and perhaps a second one joined by `link`, or a claim that holds the clause."""

    main: Clause
    link: str | None = None  # and, but, because, while, if
    second: Clause | None = None
    is_second_first: bool = False  # "Because the dog sleeps, ..."
    claim: Clause | None = None  # "Anna says that ..."

    @property
    def clauses(self) -> Iterator[Clause]:
        """Every clause, relative ones too."""
        for clause in (self.claim, self.main, self.second):
            if clause is not None:
                yield clause
                for thing in clause.things:
                    if thing.relative is not None:
                        yield thing.relative.clause

    @property
    def polarity(self) -> int:
        """The sign of what its clauses say together; a question says nothing yet."""
        if self.main.is_question:
            return 0
        total = sum(clause.polarity for clause in self.clauses)
        return (total > 0) - (total < 0)
