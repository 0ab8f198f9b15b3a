"""The lexicon: the tables read into forms, once.

>>> NOUNS["mouse"].english, NOUNS["mouse"].german, VERBS["wake up"].german.prefix
(('mouse', 'mice'), ('Maus', 'Mäuse'), 'auf')
>>> ADJECTIVES["old"].french
('vieux', 'vieille', 'vieux', 'vieilles', 'vieil')
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from regard.data.builtin.grammar import meaning as m

# Names are the same in all three languages.
WOMEN = "Anna Clara Emma Julia Laura Lea Maria Nina Nora Paula Sarah Sophie Alice Claire Jeanne Camille Eva"
MEN = "Paul Martin David Daniel Leo Simon Tom Peter Felix Oscar Robert Victor Anton Julian Omar Ben"
SURNAMES = "Keller Weber Schneider Meyer Bernard Dubois Moreau Lambert Smith Taylor Walker Cooper Rossi Novak Diallo"
GENDERS = {"der": "m", "die": "f", "das": "n"}
CASES = {"acc": m.ACCUSATIVE, "dat": m.DATIVE}
_SIGNS = {"+": 1, "-": -1}


def rows(name: str) -> Iterator[tuple[str, list[str]]]:
    """The group and the cells of every row of a table, a file beside this one; its first lines say how to read it."""
    group = ""
    for line in Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            group = line[2:]
        elif line and not line.startswith("#"):
            yield group, [cell.strip() for cell in re.split(r" \|(?: |$)", line)]


def plain(form: str) -> str:
    """Without the digits that say which words correspond.

    >>> plain("jus:2 d':1 orange:1")
    "jus d' orange"
    """
    return re.sub(r":\d", "", form)


def english_s(word: str) -> str:
    """The plural of a noun or the third person of a verb.

    >>> [english_s(w) for w in ("dog", "box", "story", "play", "bus:1 driver:2", "go")]
    ['dogs', 'boxes', 'stories', 'plays', 'bus:1 drivers:2', 'goes']
    """
    word, mark = (word[:-2], word[-2:]) if word[-2] == ":" else (word, "")
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies" + mark
    return word + ("es" if re.search(r"(s|x|z|ch|sh|[^o]o)$", word) else "s") + mark


def english_ed(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    return re.sub(r"([^aeiou])y$", r"\1i", word) + "ed"


def french_plural(word: str) -> str:
    """
    >>> [french_plural(w) for w in ("chat", "souris", "gâteau", "cheval", "croix")]
    ['chats', 'souris', 'gâteaux', 'chevaux', 'croix']
    """
    if word[-1] in "sxz":
        return word
    if word.endswith("al"):
        return word[:-1] + "ux"
    return word + ("x" if word.endswith(("eau", "eu")) else "s")


def _noun(kind: str, cells: list[str]) -> m.Noun:
    english, german, french, *more = cells
    singular, _, plural = english.partition("/")
    is_mass = plural == "-"
    article, german = german.split(" ", 1)
    german, _, german_plural = german.partition("/")
    french, _, there = french.partition("@")
    gender, french = french.strip().split(" ", 1)
    french, _, french_many = french.partition("/")
    name = plain(singular)
    kinds = {kind, name, name.replace(" ", "_"), *(more[0].split() if more else ())}
    in_en, in_de, in_fr = there.split() if there else ("in", "in", "dans")
    return m.Noun(
        name=name,
        kind=kind,
        kinds=frozenset(kinds),
        english=(singular, plural if plural and not is_mass else english_s(singular)),
        german=(german.rstrip("*"), german_plural),
        german_gender=GENDERS[article],
        is_weak=german.endswith("*"),
        french=(french, french_many or french_plural(french)),
        french_gender=gender,
        is_mass=is_mass,
        there=(in_en, in_de, in_fr),
    )


def _english_verb(cell: str) -> m.EnglishVerb:
    forms, _, preposition = cell.partition(" ")
    base, *rest = forms.split("/")
    base, _, particle = base.partition("+")
    past, participle = rest or (english_ed(base), english_ed(base))
    return m.EnglishVerb(base, english_s(base), past, participle, particle, preposition)


def _german_verb(cell: str) -> m.GermanVerb:
    forms, *governs = cell.removeprefix("~").removeprefix("sich ").split(" ")
    infinitive, present, past, participle = forms.split("/")
    prefix, _, base = infinitive.rpartition("|")
    preposition, _, case = (governs[0] if governs else "acc").rpartition(":")
    auxiliary = "sein" if cell.startswith("~") else "haben"
    return m.GermanVerb(
        base, present, past, participle, prefix, auxiliary, "sich " in cell, preposition, CASES[case]
    )  # fmt: skip


def _french_verb(cell: str) -> m.FrenchVerb:
    is_reflexive = cell.removeprefix("~").startswith("se ")
    forms, *preposition = cell.removeprefix("~").removeprefix("se ").split(" ")
    infinitive, *rest = forms.split("/")
    infinitive, _, companion = infinitive.partition("+")
    stem = infinitive[:-2]
    singular, plural, participle, future, *imperfect = rest or (stem + "e", stem + "ent", stem + "é", infinitive)
    regular = "" if rest else stem + ("e" if stem.endswith("g") else "")
    imperfect_stem = imperfect[0] if imperfect else regular  # needed of stative verbs alone
    auxiliary = "être" if cell.startswith("~") else "avoir"
    return m.FrenchVerb(
        infinitive, singular, plural, participle, future, imperfect_stem, companion, auxiliary, is_reflexive,
        preposition[0] if preposition else "",
    )  # fmt: skip


def _verb(pattern: str, cells: list[str]) -> m.Verb:
    english, german, french, who, *more = cells
    flags = more[0].split() if more else []
    subjects, _, objects = who.partition(">")
    forms = _english_verb(english)
    return m.Verb(
        name=" ".join(part for part in (forms.base, forms.particle, forms.preposition) if part),
        pattern=pattern,
        english=forms,
        german=_german_verb(german),
        french=_french_verb(french),
        subjects=frozenset(subjects.split()),
        objects=frozenset(objects.split()),
        flags=frozenset(flags),
        polarity=sum(_SIGNS.get(flag, 0) for flag in flags),
    )


def _adjective(group: str, cells: list[str]) -> m.Adjective:
    english, german, french, of = cells
    bare, _, stem = german.partition("/")
    masculine, feminine, *more = french.removeprefix("<").split("/")
    many = more[0] if more else french_plural(masculine)
    is_invariable = masculine == feminine == many
    kinds = of.split()
    return m.Adjective(
        name=english,
        group=group,
        german=(bare, stem or bare),
        french=(
            masculine,
            feminine,
            many,
            feminine if is_invariable else french_plural(feminine),
            more[1] if len(more) > 1 else masculine,
        ),
        is_before_noun=french.startswith("<"),
        kinds=frozenset(kinds),
        polarity=sum(_SIGNS.get(kind, 0) for kind in kinds),
    )


def _adverb(cells: list[str]) -> m.Adverb:
    english, german, french, of = cells
    flags = of.split()
    return m.Adverb(english, german, french, frozenset(flags), sum(_SIGNS.get(flag, 0) for flag in flags))


def _place(cells: list[str]) -> m.Place:
    preposition, french = cells[2].split(" ", 1)
    return m.Place(cells[0], cells[1], french, preposition)


def _preposition(cells: list[str]) -> m.Preposition:
    german, case = cells[1].rsplit(" ", 1)
    return m.Preposition(cells[0], german, CASES[case], cells[2])


NOUNS = {noun.name: noun for noun in (_noun(kind, cells) for kind, cells in rows("nouns"))}
ALL_VERBS = [_verb(pattern, cells) for pattern, cells in rows("verbs")]
VERBS = {verb.name: verb for verb in reversed(ALL_VERBS)}
ADJECTIVES = {a.name: a for a in (_adjective(group, cells) for group, cells in rows("adjectives"))}
ADVERBS = [(group, _adverb(cells)) for group, cells in rows("adverbs")]
PLACES = [_place(cells) for _, cells in rows("places")]
PREPOSITIONS = {plain(p.english): p for p in (_preposition(cells) for _, cells in rows("prepositions"))}
GIVEN = [m.Person(name, None, gender) for gender, names in (("f", WOMEN), ("m", MEN)) for name in names.split()]
FAMILIES = SURNAMES.split()


@cache
def find_nouns(kinds: frozenset[str]) -> list[m.Noun]:
    """Every noun of one of these kinds, in the order of the table."""
    return [noun for noun in NOUNS.values() if noun.kinds & kinds]
