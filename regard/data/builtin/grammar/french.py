"""Meaning to French: two genders, elision, contractions, clitics, adjectives on both sides, participles that agree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from regard.data.builtin.grammar import meaning as m
from regard.data.builtin.grammar.words import (
    Node,
    Phrase,
    Word,
    adverbial,
    leaves,
    person_words,
    phrase,
    spell,
    word,
    write_sentence,
)

NUMBERS = ("un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix")
DETERMINERS = {  # masculine, feminine, plural
    m.THE: ("le", "la", "les"), m.OWNED: ("le", "la", "les"), m.A: ("un", "une", "des"), m.THIS: ("ce", "cette", "ces"),
    m.MY: ("mon", "ma", "mes"), m.OUR: ("notre", "notre", "nos"), m.EVERY: ("chaque", "chaque", ""),
    m.SOME: ("", "", "quelques"), m.NO: ("de", "de", "de"),
}  # fmt: skip
BEFORE_VOWEL = {"ce": "cet", "ma": "mon"}  # elision does the rest
CONTRACTIONS = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux",
                ("de", "des"): "de", ("de", "du"): "de", ("de", "de"): "de"}  # fmt: skip
PRONOUNS = {"he": ("il", "le"), "she": ("elle", "la"), "they": ("ils", "les"), "I": ("je", "me")}
FIRST_PERSON = {"a": "ai", "est": "suis"}
LINKS = {"and": "et", "but": "mais", "because": "parce que", "while": "pendant que", "if": "si"}
BE = {m.PRESENT: ("est", "sont"), m.PAST: ("était", "étaient"), m.FUTURE: ("sera", "seront")}
AUXILIARIES = {"avoir": ("a", "ont"), "être": BE[m.PRESENT]}
MADE = {"thing", "clothes", "vehicle", "furniture"}
NEUF = ("neuf", "neuve", "neufs", "neuves", "neuf")
ELIDED = {"le", "la", "de", "ne", "que", "se", "je"}
ASPIRATED = ("hérisson", "hibou", "haricot", "huit")
_VOWEL = re.compile(r"[aeiouhàâéèêëîïôöûùœ]", re.IGNORECASE)


def sounds_vowel(text: str) -> bool:
    """Whether a word before it is elided.

    >>> [sounds_vowel(w) for w in ("ami", "homme", "hibou", "œuf", "chat")]
    [True, True, False, True, False]
    """
    return bool(_VOWEL.match(text)) and not text.lower().startswith(ASPIRATED)


def sentence(meaning: m.Meaning) -> Phrase:
    """The whole sentence, as a tree over its words."""
    main = clause(meaning.main)
    children: list[Node] = [*main]
    if meaning.claim is not None:
        that = phrase("Ssub", [word("que", "SCONJ", "that"), *main])
        children = [*clause(meaning.claim), that]
    elif meaning.second is not None:
        assert meaning.link is not None
        if meaning.link in ("and", "but"):
            children = [phrase("SENT", main)]
            for key, name, c in meaning.joined:
                comma = word(",", "PUNCT", key.replace("link", "comma"))
                children += [comma, word(LINKS[name], "CCONJ", key), phrase("SENT", clause(c))]
        else:
            link = [word(text, "SCONJ", "link") for text in LINKS[meaning.link].split()]
            reason = phrase("Ssub", [*link, *clause(meaning.second)])
            is_first = meaning.is_second_first
            children = [reason, word(",", "PUNCT", "comma"), *main] if is_first else [*main, reason]
    if meaning.main.is_question:
        asks = [word("est-ce", "AUX", f"{meaning.main.key}.ask"), word("que", "SCONJ", f"{meaning.main.key}.ask")]
        children = [*asks, *children]
    mark = "?" if meaning.main.is_question else "."
    return finish(phrase("SENT", [*children, word(mark, "PUNCT", "end")]))


def clause(c: m.Clause) -> list[Node]:
    """The children of a clause: when - subject - verbs - how - object - to whom - where - when."""
    if c.is_existential:
        there = [word("il", "PRON", f"{c.key}.there"), word("y", "PRON", f"{c.key}.there")]
        has = word("a", "VERB", f"{c.key}.v", f"{c.key}.t", f"{c.key}.ask")
        return [phrase("VN", [*there, has]), noun_phrase(c.subject), *_where(c)]
    when = adverbial(c.when.french, f"{c.key}.when", "AdP") if c.when else None
    nodes: list[Node] = [when, word(",", "PUNCT", f"{c.key}.comma")] if when and c.is_when_first else []
    nodes += [noun_phrase(c.subject), _verbs(c), *_after(c)]
    return nodes if when is None or c.is_when_first else [*nodes, when]


def _after(c: m.Clause) -> list[Node]:
    nodes: list[Node] = []
    if c.manner and not _stands_within(c):
        nodes.append(adverbial(c.manner.french, f"{c.key}.manner", "AdP"))
    if c.predicate is not None:
        degree = spell(c.degree.french, "ADV", f"{c.key}.degree") if c.degree else []
        form = agree(_as_predicate(c.predicate, c.subject), c.subject.french_gender, c.subject.number)
        nodes.append(phrase("AP", [*degree, *spell(form, "ADJ", f"{c.key}.quality")]))
    if c.object is not None and c.verb is not None and not c.object.is_pronoun:
        is_direct = not c.verb.french.preposition
        goal = noun_phrase(c.object, is_negated=c.negation is not None and is_direct and c.object.is_indefinite)
        if is_direct:
            nodes.append(goal)
        else:
            nodes.append(_put_preposition([word(c.verb.french.preposition, "ADP", f"{c.key}.particle")], goal))
    if c.recipient is not None:
        nodes.append(_put_preposition([word("à", "ADP", f"{c.key}.to", f"{c.key}.given")], noun_phrase(c.recipient)))
    return [*nodes, *_where(c)]


def _stands_within(c: m.Clause) -> bool:
    """Bien and mal go before a participle, as souvent does."""
    return c.manner is not None and "skill" in c.manner.flags


def _where(c: m.Clause) -> list[Node]:
    return [somewhere(place) for place in c.where]


def _verbs(c: m.Clause, agrees_with: m.NounPhrase | None = None) -> Phrase:
    """The verb with ne and pas, its pronouns and its auxiliary; `agrees_with` is a direct object that came before."""
    no = f"{c.key}.not"
    ne = [word("ne", "ADV", no)] if c.negation else []
    after = [word("pas" if c.negation == m.NOT else "jamais", "ADV", no)] if c.negation else []
    if c.often:
        after += spell(c.often.french, "ADV", f"{c.key}.often")
    if c.manner and _stands_within(c):
        after += spell(c.manner.french, "ADV", f"{c.key}.manner")
    many = c.subject.number == m.PLURAL
    v, t, ask = f"{c.key}.v", f"{c.key}.t", f"{c.key}.ask"
    if c.verb is None:
        return phrase("VN", [*ne, word(BE[c.tense][many], "AUX", v, t, ask), *after])
    verb = c.verb.french
    clitics = [word("se", "PRON", v)] if verb.is_reflexive else []
    if isinstance(c.object, m.NounPhrase) and isinstance(c.object.head, m.Pronoun):
        clitics.append(word(PRONOUNS[c.object.head.name][1], "PRON", f"{c.object.key}.n"))
        agrees_with = c.object
    whole = [v] if verb.preposition else [v, f"{c.key}.particle"]
    companion = [word(verb.companion, "NOUN", v)] if verb.companion else []
    simple = _simple(verb, c.tense, many, c.verb.is_stative)
    if simple:
        return phrase("VN", [*ne, *clitics, word(simple, "VERB", *whole, t, ask), *after, *companion])
    helps = AUXILIARIES[verb.auxiliary][many]
    is_first_person = isinstance(c.subject, m.NounPhrase) and c.subject.head.name == "I"
    auxiliary = word(FIRST_PERSON[helps] if is_first_person else helps, "AUX", t, ask)
    model = c.subject if verb.auxiliary == "être" else agrees_with
    participle = verb.participle
    if model is not None:
        participle += "e" if model.french_gender == "f" else ""
        participle += "s" if model.number == m.PLURAL and participle[-1] not in "sx" else ""
    return phrase("VN", [*ne, *clitics, auxiliary, *after, word(participle, "VERB", *whole), *companion])


def _simple(verb: m.FrenchVerb, tense: str, many: bool, is_stative: bool) -> str:
    """The form of one word, or nothing where the past is composed."""
    if tense == m.PRESENT:
        return verb.plural if many else verb.singular
    if tense == m.FUTURE:
        return verb.future + ("ont" if many else "a")
    if is_stative:
        return verb.imperfect + ("aient" if many else "ait")
    return ""


def somewhere(place: m.Somewhere) -> Phrase:
    key = f"{place.key}.p"
    if place.place is not None:
        name = phrase("NP", spell(place.place.french, "PROPN", f"{place.key}.n", "LOC"))
        return phrase("PP", [word(place.place.french_preposition, "ADP", key), name])
    assert place.preposition is not None
    assert place.thing is not None
    return _put_preposition(spell(place.preposition.french, "ADP", key), noun_phrase(place.thing))


def _put_preposition(preposition: Sequence[Word], things: Phrase) -> Phrase:
    """Preposition and phrase, contracted where French contracts them: à le, au; but à l'ami."""
    *before, last = preposition
    first = things.children[0]
    if not isinstance(first, Word) or first.tag != "DET":
        return phrase("PP", [*preposition, things])
    contracted = CONTRACTIONS.get((last.text, first.text))
    follower = next(word for i, word in enumerate(leaves(things)) if i == 1)
    if contracted is None or (first.text == "le" and sounds_vowel(follower.text)):
        return phrase("PP", [*preposition, things])
    merged = Word(contracted, "ADP", last.keys | first.keys)
    return phrase("PP", [*before, merged, phrase("NP", things.children[1:])])


def agree(adjective: m.Adjective, gender: str, number: str) -> str:
    """
    >>> from regard.data.builtin.grammar.lexicon import ADJECTIVES
    >>> agree(ADJECTIVES["old"], "f", "plural")
    'vieilles'
    """
    masculine, feminine, masculines, feminines, _ = adjective.french
    if number == m.PLURAL:
        return feminines if gender == "f" else masculines
    return feminine if gender == "f" else masculine


def _as_predicate(adjective: m.Adjective, subject: m.Thing) -> m.Adjective:
    """What was made and not yet used is neuf; nouveau, of a predicate, is what was not there before."""
    is_made = all(isinstance(part.head, m.Noun) and part.head.kind in MADE for part in subject.parts)
    return replace(adjective, french=NEUF) if adjective.name == "new" and is_made else adjective


def noun_phrase(thing: m.Thing, is_negated: bool = False) -> Phrase:
    """`is_negated`: the article of a direct object becomes de."""
    if isinstance(thing, m.Both):
        link = word("mais" if thing.lacks else "et", "CCONJ", f"{thing.key}.and")
        none = [word("pas", "ADV", f"{thing.key}.not")] if thing.lacks else []
        return phrase("NP", [noun_phrase(thing.first), link, *none, noun_phrase(thing.second, is_negated=thing.lacks)])
    head, key = thing.head, thing.key
    if isinstance(head, m.Pronoun):
        return phrase("NP", [word(PRONOUNS[head.name][0], "PRON", f"{key}.n")])
    if isinstance(head, m.Person):
        return phrase("NP", person_words(head.given, head.family, key))
    before: list[Word] = []
    after: list[Word] = []
    noun = spell(head.french[thing.number == m.PLURAL], "NOUN", f"{key}.n")
    for i, a in enumerate(thing.adjectives):
        form = agree(a, head.french_gender, thing.number)
        if a.is_before_noun and form == a.french[0] and thing.number != m.PLURAL and sounds_vowel(noun[0].text):
            form = a.french[4]
        (before if a.is_before_noun else after).extend(spell(form, "ADJ", f"{key}.a{i}"))
    follower = (before or noun)[0].text
    determiner = _determiner(thing, head.french_gender, follower, bool(before), is_negated)
    children: list[Node] = [*determiner, *before, *noun, *after]
    if thing.owner is not None:
        owner = phrase("NP", person_words(thing.owner.given, thing.owner.family, f"{key}.o"))
        children.append(phrase("PP", [word("de", "ADP", f"{key}.of"), owner]))
    children += map(somewhere, thing.at)
    if thing.relative is not None:
        children.append(_relative(thing.relative, thing))
    return phrase("NP", children)


def _determiner(thing: m.NounPhrase, gender: str, follower: str, has_before: bool, is_negated: bool) -> list[Word]:
    key, many = f"{thing.key}.d", thing.number == m.PLURAL
    if is_negated:
        return [word("de", "DET", key)]
    if thing.determiner == m.COUNT:
        one = "une" if gender == "f" and thing.count == 1 else NUMBERS[thing.count - 1]
        return [word(one, "NUM", key)]
    if thing.determiner == m.MANY:
        return [word("beaucoup", "ADV", key), word("de", "ADP", key)]
    if thing.determiner == m.BARE and not many:  # the partitive
        if sounds_vowel(follower):
            return [word("de", "ADP", key), word("la" if gender == "f" else "le", "DET", key)]
        return [word("du", "DET", key)] if gender == "m" else [word("de", "ADP", key), word("la", "DET", key)]
    kind = m.A if thing.determiner == m.BARE else thing.determiner
    text = DETERMINERS[kind][2 if many else gender == "f"]
    if text == "des" and has_before:  # de petits chiens
        text = "de"
    if text in BEFORE_VOWEL and sounds_vowel(follower):
        text = BEFORE_VOWEL[text]
    return [word(text, "DET", key)]


def _relative(relative: m.Relative, head: m.NounPhrase) -> Phrase:
    c = relative.clause
    if relative.is_subject:
        return phrase("Srel", [word("qui", "PRON", f"{c.key}.rel"), _verbs(c), *_after(c)])
    inner = replace(c, object=None)
    pronoun = word("que", "PRON", f"{c.key}.rel")
    return phrase("Srel", [pronoun, noun_phrase(c.subject), _verbs(inner, agrees_with=head), *_after(inner)])


def finish(tree: Phrase) -> Phrase:
    """Elision, and a capital at the beginning."""
    texts = [w.text for w in leaves(tree)]
    for i, text in enumerate(texts[:-1]):
        if text in ELIDED and sounds_vowel(texts[i + 1]):
            texts[i] = text[:-1] + "'"
        elif text == "si" and texts[i + 1] in ("il", "ils"):
            texts[i] = "s'"
    return write_sentence(tree, texts)
