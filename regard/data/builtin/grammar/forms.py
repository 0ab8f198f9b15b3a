"""What the tables say, as forms: one class a kind of word, each with what its three languages need to write it."""

from __future__ import annotations

from dataclasses import dataclass

SINGULAR, PLURAL = "singular", "plural"
PRESENT, PAST, PERFECT, FUTURE = "present", "past", "perfect", "future"
NOMINATIVE, ACCUSATIVE, DATIVE = "nominative", "accusative", "dative"
LANGUAGES = ("en", "de", "fr")


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
    """he, she or they, as `gender` and `number` say."""

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
