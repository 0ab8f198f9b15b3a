"""Meaning to English: do-support, a and an, particles, two orders of giving."""

from __future__ import annotations

import re
from collections.abc import Sequence

from regard.data.builtin.grammar import meaning as m
from regard.data.builtin.grammar.words import (
    Node,
    Phrase,
    Word,
    add_meaning,
    adverbial,
    leaves,
    person_words,
    phrase,
    spell,
    word,
    write_sentence,
)

NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
DETERMINERS = {
    m.THE: ("the", "the"), m.A: ("a", ""), m.THIS: ("this", "these"), m.MY: ("my", "my"), m.OUR: ("our", "our"),
    m.EVERY: ("every", ""), m.SOME: ("", "some"), m.MANY: ("", "many"), m.NO: ("no", "no"),
}  # fmt: skip
PRONOUNS = {"he": ("he", "him"), "she": ("she", "her"), "they": ("they", "them"), "I": ("I", "me")}
BE = {m.PRESENT: ("is", "are"), m.PAST: ("was", "were")}
DO = {m.PRESENT: ("does", "do"), m.PAST: ("did", "did")}
BESIDE_VERBS = {"dressed": ("ADJP", "ADJ"), "bored": ("ADJP", "ADJ"), "care": ("NP", "NOUN")}  # others are particles
_SOUNDS_CONSONANT = re.compile(r"(use|uni|one|eu)", re.IGNORECASE)
_SOUNDS_VOWEL = re.compile(r"([aeiou]|hon|hour)", re.IGNORECASE)


def sentence(meaning: m.Meaning) -> Phrase:
    """The whole sentence, as a tree over its words."""
    main = clause(meaning.main)
    children: list[Node | None] = list(main.children)
    if meaning.claim is not None:
        that = phrase("SBAR", [word("that", "SCONJ", "that"), main])
        children = list(clause(meaning.claim, inside=[that]).children)
    elif meaning.second is not None:
        assert meaning.link is not None
        if meaning.link in ("and", "but"):
            children = [main]
            for key, link, c in meaning.joined:
                children += [word(",", "PUNCT", key.replace("link", "comma")), word(link, "CCONJ", key), clause(c)]
        else:
            reason = phrase("SBAR", [word(meaning.link, "SCONJ", "link"), clause(meaning.second)])
            if meaning.is_second_first:
                children = [reason, word(",", "PUNCT", "comma"), *main.children]
            else:
                children = _append_to_verb(main, reason)
    mark = "?" if meaning.main.is_question else "."
    return finish(phrase("SQ" if meaning.main.is_question else "S", [*children, word(mark, "PUNCT", "end")]))


def _append_to_verb(main: Phrase, last: Phrase) -> list[Node | None]:
    """The clause's children with `last` inside its verb phrase, which is what it modifies."""
    *before, verb_phrase = main.children
    assert isinstance(verb_phrase, Phrase)
    return [*before, phrase(verb_phrase.label, [*verb_phrase.children, last])]


def clause(c: m.Clause, inside: Sequence[Node] = (), without: str = "") -> Phrase:
    """A clause; `inside` ends its verb phrase; `without` names the part a question asks for and leaves out."""
    subject: Node = noun_phrase(c.subject, mark=f"{c.key}.subject")
    when = _adverb(c.when, f"{c.key}.when") if without != "when" else None
    ahead: list[Node | None] = [when, word(",", "PUNCT", f"{c.key}.comma")] if c.is_when_first and when else []
    last = None if c.is_when_first else when
    verbs, rest = _predicate(c, without)
    rest = [*rest, last, *inside]
    if c.is_existential and without != "subject":
        there = phrase("NP", [word("there", "PRON", f"{c.key}.there")])
        return phrase("S", [*ahead, there, phrase("VP", [*verbs, subject, *rest])])
    if c.is_question or without not in ("", "subject"):  # the first verb goes before the subject
        front, *others = verbs
        has_verb = any(isinstance(node, Word) and node.tag in ("VERB", "AUX") for node in others)
        follows = [_verb_phrase(others, rest)] if has_verb else [*others, *rest]
        return phrase("SQ", [*ahead, front, subject, *follows])
    return phrase("S", [*ahead, None if without == "subject" else subject, _verb_phrase(verbs, rest)])


def _verb_phrase(verbs: Sequence[Node], rest: Sequence[Node | None]) -> Phrase | None:
    """(VP will (VP see (NP ...))): each auxiliary opens a phrase of its own."""
    is_helped = bool(verbs) and isinstance(verbs[0], Word) and verbs[0].tag == "AUX"
    inner = next((i for i, verb in enumerate(verbs) if isinstance(verb, Word) and verb.tag == "VERB"), 0)
    if is_helped and inner > 0:
        return phrase("VP", [*verbs[:inner], phrase("VP", [*verbs[inner:], *rest])])
    children = [*verbs, *(node for node in rest if node is not None)]
    return phrase("VP", children) if children else None


def _predicate(c: m.Clause, without: str) -> tuple[list[Node], list[Node | None]]:
    """The verbs with what stands between them, and all that follows."""
    number = c.subject.parts[0].number if c.is_existential else c.subject.number  # there is a dog and two cats
    number = m.SINGULAR if without == "subject" else number
    verbs = _verbs(c, m.PLURAL if number == m.PLURAL else m.SINGULAR, is_inverted=without not in ("", "subject"))
    where = [] if without == "where" else [somewhere(place, mark=f"{c.key}.where") for place in c.where]
    if c.predicate is not None and without != "predicate":
        degree = spell(c.degree.english, "ADV", f"{c.key}.degree") if c.degree else []
        quality = phrase("ADJP", [*degree, word(c.predicate.name, "ADJ", f"{c.key}.quality")], f"{c.key}.predicate")
        return verbs, [quality, *where]
    goal = noun_phrase(c.object, is_object=True, mark=f"{c.key}.object") if c.object and without != "object" else None
    goal = _after_preposition(c, goal)
    manner = _adverb(c.manner, f"{c.key}.manner")
    if c.recipient is None:
        return verbs, [goal, manner, *where]
    receiver = noun_phrase(c.recipient, is_object=True, mark=f"{c.key}.recipient")
    if c.is_recipient_first and without != "object":
        # French à is in the article or the name, as German's dative is; a key of its own, lest names link crosswise.
        bearers = frozenset(
            f"{c.recipient.key}.{part}" for part in ("d" if isinstance(c.recipient.head, m.Noun) else "nf")
        )
        return verbs, [add_meaning(receiver, bearers, f"{c.key}.given"), goal, manner, *where]
    return verbs, [goal, phrase("PP", [word("to", "ADP", f"{c.key}.to"), receiver]), manner, *where]


def _verbs(c: m.Clause, number: str, is_inverted: bool) -> list[Node]:
    """Auxiliary, negation or adverb, verb, particle: "does not wake up", "has often seen"."""
    many = number == m.PLURAL
    v, t = f"{c.key}.v", f"{c.key}.t"
    between: list[Node] = []
    if c.negation == m.NOT:
        between = [word("not", "PART", f"{c.key}.not")]
    elif c.negation == m.NEVER:
        between = [word("never", "ADV", f"{c.key}.not")]
    elif c.often:
        between = [*spell(c.often.english, "ADV", f"{c.key}.often")]
    if c.verb is None:
        if c.tense == m.FUTURE:
            return [word("will", "AUX", t, f"{c.key}.ask"), *between, word("be", "AUX", v)]
        return [word(BE[c.tense][many], "AUX", v, t, f"{c.key}.ask"), *between]
    verb = c.verb.english
    particle = _particle(c)
    verb_keys = [v] if verb.particle or verb.preposition else [v, f"{c.key}.particle"]
    if c.tense == m.FUTURE:
        return [word("will", "AUX", t, f"{c.key}.ask"), *between, word(verb.base, "VERB", *verb_keys), *particle]
    if c.tense == m.PERFECT:
        has = word("have" if many else "has", "AUX", t, f"{c.key}.ask")
        return [has, *between, word(verb.participle, "VERB", *verb_keys), *particle]
    if c.negation == m.NOT or c.is_question or is_inverted:
        do = word(DO[c.tense][many], "AUX", t, f"{c.key}.ask")
        return [do, *between, word(verb.base, "VERB", *verb_keys), *particle]
    form = verb.past if c.tense == m.PAST else verb.base if many else verb.third
    return [*between, word(form, "VERB", *verb_keys, t), *particle]


def _particle(c: m.Clause) -> list[Node]:
    """What stays beside the verb: wakes up, gets dressed, takes care."""
    assert c.verb is not None
    text = c.verb.english.particle
    if text in BESIDE_VERBS:
        label, tag = BESIDE_VERBS[text]
        return [phrase(label, [word(text, tag, f"{c.key}.v" if tag == "NOUN" else f"{c.key}.particle")])]
    return [word(text, "ADP", f"{c.key}.particle")] if text else []


def _after_preposition(c: m.Clause, goal: Phrase | None) -> Phrase | None:
    """The object with the preposition the verb asks for, which stays where the object is asked for or has gone."""
    if c.verb is None or not c.verb.english.preposition:
        return goal
    return phrase("PP", [word(c.verb.english.preposition, "ADP", f"{c.key}.particle"), goal])


def _adverb(adverb: m.Adverb | None, key: str) -> Phrase | None:
    return adverbial(adverb.english, key, "ADVP", mark=key) if adverb else None


def somewhere(place: m.Somewhere, mark: str = "") -> Phrase:
    if place.place is not None:
        name = phrase("NP", spell(place.place.english, "PROPN", f"{place.key}.n", "LOC"))
        return phrase("PP", [word("to" if place.is_direction else "in", "ADP", f"{place.key}.p"), name], mark)
    assert place.preposition is not None
    assert place.thing is not None
    preposition = spell(place.preposition.english, "ADP", f"{place.key}.p")
    return phrase("PP", [*preposition, noun_phrase(place.thing, is_object=True)], mark)


def noun_phrase(thing: m.Thing, is_object: bool = False, mark: str = "") -> Phrase:
    if isinstance(thing, m.Both):
        second = noun_phrase(thing.second, is_object)
        if thing.lacks:
            second = phrase(
                "NP", [word("no", "DET", f"{thing.second.key}.d", f"{thing.key}.not"), *second.children[1:]]
            )
        link = word("but" if thing.lacks else "and", "CCONJ", f"{thing.key}.and")
        there = mark if thing.lacks else ""  # what is not there answers no question
        return phrase("NP", [noun_phrase(thing.first, is_object, there), link, second], "" if thing.lacks else mark)
    head, key = thing.head, thing.key
    if isinstance(head, m.Pronoun):
        text = PRONOUNS[head.name][is_object]
        return phrase("NP", [word(text, "PRON", f"{key}.n")], mark)
    if isinstance(head, m.Person):
        return phrase("NP", person_words(head.given, head.family, key), mark)
    determiner = _determiner(thing)
    adjectives = [word(a.name, "ADJ", f"{key}.a{i}") for i, a in enumerate(thing.adjectives)]
    noun = spell(head.english[thing.number == m.PLURAL], "NOUN", f"{key}.n")
    if not determiner:  # what other languages say with an article is in the noun
        noun = [Word(w.text, w.tag, w.keys | {f"{key}.d"}) for w in noun]
    children: list[Node] = [*determiner, *adjectives, *noun]
    if thing.at or thing.relative is not None:
        more = [] if thing.relative is None else [_relative(thing.relative, head)]
        children = [phrase("NP", children), *map(somewhere, thing.at), *more]
    return phrase("NP", children, mark)


def _determiner(thing: m.NounPhrase) -> list[Node]:
    key = f"{thing.key}.d"
    if thing.determiner == m.COUNT:
        return [word(NUMBERS[thing.count - 1], "NUM", key)]
    if thing.determiner == m.OWNED:
        assert thing.owner is not None
        owner = person_words(thing.owner.given, thing.owner.family, f"{thing.key}.o")
        return [phrase("NP", [*owner, word("'s", "PART", f"{thing.key}.of", key)])]
    text = "" if thing.determiner == m.BARE else DETERMINERS[thing.determiner][thing.number == m.PLURAL]
    return [word(text, "DET", key)] if text else []


def _relative(relative: m.Relative, head: m.Noun) -> Phrase:
    c, is_person = relative.clause, head.kind == "person"
    pronoun = word(("who" if relative.is_subject else "whom") if is_person else "that", "PRON", f"{c.key}.rel")
    if relative.is_subject:
        return phrase("SBAR", [pronoun, phrase("S", [_verb_phrase(*_predicate(c, ""))])])
    verbs = _verbs(c, c.subject.number, is_inverted=False)
    where = [somewhere(place) for place in c.where]
    rest = [_after_preposition(c, None), _adverb(c.manner, f"{c.key}.manner"), *where]
    return phrase("SBAR", [pronoun, phrase("S", [noun_phrase(c.subject), _verb_phrase(verbs, rest)])])


def finish(tree: Phrase) -> Phrase:
    """an before a vowel, and a capital at the beginning."""
    words = list(leaves(tree))
    texts = [w.text for w in words]
    for i, text in enumerate(texts[:-1]):
        sounds_vowel = _SOUNDS_VOWEL.match(texts[i + 1]) and not _SOUNDS_CONSONANT.match(texts[i + 1])
        if text == "a" and words[i].tag == "DET" and sounds_vowel:
            texts[i] = "an"
    return write_sentence(tree, texts)
