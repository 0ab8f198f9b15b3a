"""What a sentence says, before any language says it, and the words it is said with.

A word, of which there is one class a kind, has what its three languages need to write it: lexicon.py reads them.

Every part has a key of its own, and the words that express it carry that key (see words.py): `.n` the noun, `.d` its
determiner, `.v` the verb, `.t` its tense, `.not` the negation, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

SINGULAR, PLURAL = "singular", "plural"
PRESENT, PAST, PERFECT, FUTURE = "present", "past", "perfect", "future"
NOMINATIVE, ACCUSATIVE, DATIVE = "nominative", "accusative", "dative"
LANGUAGES = ("en", "de", "fr")
THE, A, BARE, THIS, MY, OUR, EVERY, SOME, MANY, COUNT, OWNED = (
    "the", "a", "bare", "this", "my", "our", "every", "some", "many", "count", "owned",
)  # fmt: skip
NO = "no"  # what a, bare and mass nouns become in the scope of a negation, in German and French
NOT, NEVER = "not", "never"


@dataclass(frozen=True)
class Noun:
    """A common noun. `kinds` holds what it is (animal, opens, ...) and its own name."""

    name: str
    kind: str
    kinds: frozenset[str]
    english: tuple[str, str]
    german: tuple[str, str]
    german_gender: str  # m f n
    is_weak: bool  # der Junge, den Jungen
    french: tuple[str, str]
    french_gender: str  # m f
    is_mass: bool
    there: tuple[str, str, str] = ("in", "in", "dans")  # the prepositions of being there

    def in_german(self, case: str, number: str) -> str:
        """Singular nouns change in the n-declension alone; dative plurals end in -n, or in the -s they had.

        >>> from regard.data.builtin.grammar.lexicon import NOUNS
        >>> NOUNS["boy"].in_german("dative", "singular"), NOUNS["dog"].in_german("dative", "plural")
        ('Jungen', 'Hunden')
        """
        singular, plural = self.german
        if number == SINGULAR:
            return plural if self.is_weak and case != NOMINATIVE else singular
        return plural + "n" if case == DATIVE and plural[-1] not in "ns" else plural


@dataclass(frozen=True)
class Person:
    """Someone with a name."""

    given: str
    family: str | None
    gender: str  # m f

    @property
    def name(self) -> str:
        return self.given


@dataclass(frozen=True)
class Pronoun:
    """he, she or they, as `gender` and `number` say; or I, who speaks of the past alone."""

    gender: str
    number: str
    name: str


@dataclass(frozen=True)
class Place:
    """A town or a country; French says à, en or au before it."""

    english: str
    german: str
    french: str
    french_preposition: str


@dataclass(frozen=True)
class EnglishVerb:
    base: str
    third: str
    past: str
    participle: str
    particle: str  # up in "wake up"; may be empty
    preposition: str  # of its object; may be empty


@dataclass(frozen=True)
class GermanVerb:
    infinitive: str  # without the separable prefix; also the present plural
    present: str
    past: str
    participle: str
    prefix: str  # auf in "aufwachen"; may be empty
    auxiliary: str  # haben or sein
    is_reflexive: bool
    preposition: str  # of its object; may be empty
    case: str  # of its object

    @property
    def past_plural(self) -> str:
        return self.past + ("n" if self.past.endswith("e") else "en")


@dataclass(frozen=True)
class FrenchVerb:
    infinitive: str
    singular: str
    plural: str
    participle: str
    future: str  # a stem
    imperfect: str  # a stem
    companion: str  # besoin in "avoir besoin"; may be empty
    auxiliary: str  # avoir or être
    is_reflexive: bool
    preposition: str  # of its object; may be empty


@dataclass(frozen=True)
class Verb:
    """A verb and whom it goes with."""

    name: str
    pattern: str  # alone, object, gift, claim
    english: EnglishVerb
    german: GermanVerb
    french: FrenchVerb
    subjects: frozenset[str]
    objects: frozenset[str]
    flags: frozenset[str]
    polarity: int

    @property
    def is_stative(self) -> bool:
        return "stative" in self.flags


@dataclass(frozen=True)
class Adjective:
    """German: bare, and before an ending. French: m, f, m plural, f plural, m before a vowel."""

    name: str
    group: str
    german: tuple[str, str]
    french: tuple[str, str, str, str, str]
    is_before_noun: bool  # in French
    kinds: frozenset[str]
    polarity: int


@dataclass(frozen=True)
class Adverb:
    english: str
    german: str
    french: str
    flags: frozenset[str]
    polarity: int


@dataclass(frozen=True)
class Preposition:
    english: str
    german: str
    case: str
    french: str


@dataclass(frozen=True)
class NounPhrase:
    """One thing or several of a kind. `owner` goes with the determiner OWNED, `count` with COUNT.

    `at` are phrases that say more about the noun: "the man in the park", "the man with the telescope".
    """

    key: str
    head: Noun | Person | Pronoun
    determiner: str = THE
    number: str = SINGULAR
    count: int = 1
    adjectives: tuple[Adjective, ...] = ()
    owner: Person | None = None
    relative: Relative | None = None
    at: tuple[Somewhere, ...] = ()

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

    @property
    def nested(self) -> Iterator[NounPhrase]:
        """This one, and every noun phrase in what is said of it."""
        yield self
        for place in self.at:
            if place.thing is not None:
                yield from place.thing.nested


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
        """Whether it answers "where": company does not, nor does what is worn."""
        head = None if self.thing is None else self.thing.head
        if isinstance(head, Noun) and head.kind in ("clothes", "nightwear"):
            return False
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
                for part in thing.parts:
                    yield from part.nested

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
    more: tuple[tuple[str, Clause], ...] = ()  # further clauses, each joined by its own and or but

    @property
    def joined(self) -> list[tuple[str, str, Clause]]:
        """What follows the first clause after and or but: the key of the link, the link and the clause."""
        assert self.link is not None
        assert self.second is not None
        clauses = [(self.link, self.second), *self.more]
        return [("link" if i == 0 else f"link{i}", link, clause) for i, (link, clause) in enumerate(clauses)]

    @property
    def clauses(self) -> Iterator[Clause]:
        """Every clause, relative ones too."""
        for clause in (self.claim, self.main, self.second, *(clause for _, clause in self.more)):
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
