"""Meaning to German: three cases, three declensions of the adjective, the verb second or last.

A main clause is  first place - finite verb - middle - what closes the verb  (participle, infinitive or prefix); in a
subordinate clause the finite verb goes to the very end. In the middle stand, in this order: the subject, pronouns,
when, how often, dative, accusative, nicht, how, where, an object with a preposition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from regard.data.builtin.grammar import meaning as m
from regard.data.builtin.grammar.words import (
    Node,
    Phrase,
    Word,
    adverbial,
    leaves,
    person_words,
    phrase,
    remove_words,
    spell,
    word,
    write_sentence,
)

NUMBERS = ("ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn")
_BY_CASE = (m.NOMINATIVE, m.ACCUSATIVE, m.DATIVE)


def _table(**rows: str) -> dict[tuple[str, str], str]:
    """(gender or p for the plural, case) -> form; `_` is the empty ending."""
    return {
        (gender, case): "" if form == "_" else form
        for gender, forms in rows.items()
        for case, form in zip(_BY_CASE, forms.split(), strict=True)
    }


DEFINITE = _table(m="der den dem", f="die die der", n="das das dem", p="die die den")
RELATIVE = DEFINITE | {("p", m.DATIVE): "denen"}
DER_ENDINGS = _table(m="er en em", f="e e er", n="es es em", p="e e en")  # dieser, jeder, einige, viele
EIN_ENDINGS = _table(m="_ en em", f="e e er", n="_ _ em", p="e e en")  # ein, kein, mein, unser
WEAK = _table(m="e en en", f="e e en", n="e e en", p="en en en")  # after der
MIXED = _table(m="er en en", f="e e en", n="es es en", p="en en en")  # after ein
STRONG = _table(m="er en em", f="e e er", n="es es em", p="e e en")  # after nothing, numbers, Annas
DER_WORDS = {m.THIS: "dies", m.EVERY: "jed", m.SOME: "einig", m.MANY: "viel"}
EIN_WORDS = {m.A: "ein", m.MY: "mein", m.OUR: "unser", m.NO: "kein"}
DECLENSIONS = {m.THE: WEAK, m.THIS: WEAK, m.EVERY: WEAK} | dict.fromkeys(EIN_WORDS, MIXED)
PRONOUNS = {
    "he": ("er", "ihn", "ihm"), "she": ("sie", "sie", "ihr"), "they": ("sie", "sie", "ihnen"),
    "I": ("ich", "mich", "mir"),
}  # fmt: skip
CONTRACTIONS = {("in", "dem"): "im", ("an", "dem"): "am", ("zu", "dem"): "zum", ("zu", "der"): "zur",
                ("von", "dem"): "vom"}  # fmt: skip
LINKS = {"and": "und", "but": "aber", "because": "weil", "while": "während", "if": "wenn"}
AUXILIARIES = {"haben": ("hat", "haben"), "sein": ("ist", "sind")}


def sentence(meaning: m.Meaning) -> Phrase:
    """The whole sentence, as a tree over its words."""
    comma = word(",", "PUNCT", "comma")
    children: list[Node]
    if meaning.claim is not None:
        that = phrase("S", [word("dass", "SCONJ", "that"), *clause(meaning.main, is_subordinate=True)])
        children = [*clause(meaning.claim), comma, that]
    elif meaning.second is None:
        children = clause(meaning.main)
    else:
        assert meaning.link is not None
        if meaning.link in ("and", "but"):
            children = [phrase("S", clause(meaning.main))]
            for key, name, c in meaning.joined:
                before = [word(",", "PUNCT", key.replace("link", "comma"))] if name == "but" else []
                children += [*before, word(LINKS[name], "CCONJ", key), phrase("S", clause(c))]
        else:
            link = word(LINKS[meaning.link], "SCONJ", "link")
            reason = phrase("S", [link, *clause(meaning.second, is_subordinate=True)])
            if meaning.is_second_first:  # the clause fills the first place, so the verb comes next
                children = [reason, comma, *clause(meaning.main, is_first_taken=True)]
            else:
                children = [*clause(meaning.main), comma, reason]
    mark = "?" if meaning.main.is_question else "."
    return finish(phrase("S", [*children, word(mark, "PUNCT", "end")]))


def clause(c: m.Clause, is_subordinate: bool = False, is_first_taken: bool = False) -> list[Node]:
    """The children of a clause, in order."""
    finite, closing, joined = _verbs(c)
    subject = noun_phrase(c.subject, m.NOMINATIVE)
    if c.is_existential:  # what there is stands in the accusative
        there = word("es", "PRON", f"{c.key}.there")
        things = noun_phrase(c.subject, m.ACCUSATIVE)
        if is_subordinate:
            return [there, things, *_where(c), *finite]
        return [there, *finite, things, *_where(c)]
    c, afterwards = _relative_last(c, bool(closing))
    middle = _middle(c)
    if is_subordinate:
        return [subject, *_pronouns(c), *_when(c), *middle, *joined]
    if c.is_question or is_first_taken:
        return [*finite, *_subject_and_pronouns(c, subject), *_when(c), *middle, *closing, *afterwards]
    if c.is_when_first:
        return [*_when(c), *finite, *_subject_and_pronouns(c, subject), *middle, *closing, *afterwards]
    return [subject, *finite, *_pronouns(c), *_when(c), *middle, *closing, *afterwards]


def _relative_last(c: m.Clause, is_closed: bool) -> tuple[m.Clause, list[Node]]:
    """The clause without its object's relative clause, and that clause, where it goes behind what closes the verb.

    "Er wird das Ei essen, das sie kaufte": a long clause before a lone verb is right, but nobody says it.
    """
    thing = c.object
    if not isinstance(thing, m.NounPhrase) or thing.relative is None:
        return c, []
    if not is_closed and c.negation is None:
        return c, []
    assert isinstance(thing.head, m.Noun)
    gender = "p" if thing.number == m.PLURAL else thing.head.german_gender
    return replace(c, object=replace(thing, relative=None)), _set_in_commas(thing.relative, gender, thing.key)


def _set_in_commas(relative: m.Relative, gender: str, key: str) -> list[Node]:
    return [word(",", "PUNCT", f"{key}.open"), _relative(relative, gender), word(",", "PUNCT", f"{key}.shut")]


def _subject_and_pronouns(c: m.Clause, subject: Phrase) -> list[Node]:
    """After the verb, sich comes before a noun, but after a pronoun: "hat sich der Mann", "hat er sich"."""
    is_reflexive = c.verb is not None and c.verb.german.is_reflexive
    if is_reflexive and not c.subject.is_pronoun:
        return [*_pronouns(c), subject]
    return [subject, *_pronouns(c)]


def _pronouns(c: m.Clause) -> list[Node]:
    nodes: list[Node] = []
    if c.verb is not None and c.verb.german.is_reflexive:
        nodes.append(word("sich", "PRON", f"{c.key}.v"))
    if c.object is not None and c.object.is_pronoun and c.verb is not None and not c.verb.german.preposition:
        nodes.append(noun_phrase(c.object, c.verb.german.case))
    return nodes


def _when(c: m.Clause) -> list[Node]:
    return [adverbial(c.when.german, f"{c.key}.when", "AVP")] if c.when else []


def _where(c: m.Clause) -> list[Node]:
    return [somewhere(place) for place in c.where]


def _middle(c: m.Clause) -> list[Node]:
    """From "how often" on: objects, nicht, manner, place, and objects with a preposition."""
    nodes: list[Node] = []
    if c.often:
        nodes += spell(c.often.german, "ADV", f"{c.key}.often")
    if c.negation == m.NEVER:
        nodes.append(word("nie", "ADV", f"{c.key}.not"))
    if c.recipient is not None:
        nodes.append(noun_phrase(c.recipient, m.DATIVE, without_preposition=f"{c.key}.to"))
    says_no = c.negation == m.NOT and c.object is not None and c.object.is_indefinite
    last: list[Node] = []
    manner: list[Node] = [adverbial(c.manner.german, f"{c.key}.manner", "AVP")] if c.manner else []
    if c.object is not None and c.verb is not None:
        verb = c.verb.german
        goal = noun_phrase(c.object, verb.case, negation=f"{c.key}.not" if says_no else "")
        if verb.preposition:
            last = [_put_preposition([word(verb.preposition, "ADP", f"{c.key}.particle")], goal)]
        elif not c.object.is_pronoun:
            late = manner if _is_new(c.object) else []  # er trägt die Kerze heimlich, aber heimlich eine Kerze
            nodes += [*late, goal]
            manner = [] if late else manner
    if c.negation == m.NOT and not says_no:
        nodes.append(word("nicht", "PART", f"{c.key}.not"))
    nodes += manner
    if c.predicate is not None:
        degree = spell(c.degree.german, "ADV", f"{c.key}.degree") if c.degree else []
        nodes.append(phrase("AP", [*degree, word(c.predicate.german[0], "ADJ", f"{c.key}.quality")]))
    return [*nodes, *_where(c), *last]


def _is_new(thing: m.Thing) -> bool:
    """Whether it is mentioned for the first time, as what has no definite article is."""
    return all(part.determiner in (m.A, m.BARE, m.COUNT, m.SOME, m.MANY) for part in thing.parts)


def _verbs(c: m.Clause) -> tuple[list[Node], list[Node], list[Node]]:
    """The finite verb; what closes a main clause; and all of it as it closes a subordinate one."""
    v, t, ask, particle = f"{c.key}.v", f"{c.key}.t", f"{c.key}.ask", f"{c.key}.particle"
    many = c.subject.number == m.PLURAL
    if c.verb is None:
        if c.tense == m.FUTURE:
            return _split(word("werden" if many else "wird", "AUX", t, ask), word("sein", "AUX", v))
        if c.is_existential:
            return _split(word("gibt", "VERB", v, t, ask))
        forms = ("war", "waren") if c.tense == m.PAST else ("ist", "sind")
        return _split(word(forms[many], "AUX", v, t, ask))
    verb = c.verb.german
    whole = [v] if verb.preposition else [v, particle]
    if c.tense == m.FUTURE:
        return _split(
            word("werden" if many else "wird", "AUX", t, ask), word(verb.prefix + verb.infinitive, "VERB", *whole)
        )
    if c.tense == m.PERFECT:
        return _split(word(AUXILIARIES[verb.auxiliary][many], "AUX", t, ask), word(verb.participle, "VERB", *whole))
    form = _finite(verb, c.tense, many)
    if not verb.prefix:
        return _split(word(form, "VERB", *whole, t, ask))
    finite, closing = word(form, "VERB", v, t, ask), word(verb.prefix, "ADP", particle)
    return [finite], [closing], [word(verb.prefix + form, "VERB", *whole, t, ask)]


def _split(finite: Word, *closing: Word) -> tuple[list[Node], list[Node], list[Node]]:
    return [finite], [*closing], [*closing, finite]


def _finite(verb: m.GermanVerb, tense: str, many: bool) -> str:
    if tense == m.PAST:
        return verb.past_plural if many else verb.past
    return verb.infinitive if many else verb.present


def somewhere(place: m.Somewhere) -> Phrase:
    key = f"{place.key}.p"
    if place.place is not None:
        name = phrase("NP", spell(place.place.german, "PROPN", f"{place.key}.n", "LOC"))
        return phrase("PP", [word("nach" if place.is_direction else "in", "ADP", key), name])
    assert place.preposition is not None
    assert place.thing is not None
    words = spell(place.preposition.german, "ADP", key)
    return _put_preposition(words, noun_phrase(place.thing, place.preposition.case))


def _put_preposition(preposition: Sequence[Word], things: Phrase) -> Phrase:
    """Preposition and phrase, melted where German melts them: in dem, im."""
    *before, last = preposition
    first = things.children[0]
    melted = CONTRACTIONS.get((last.text, first.text)) if isinstance(first, Word) and first.tag == "DET" else None
    if melted is None or not isinstance(first, Word):
        return phrase("PP", [*preposition, things])
    merged = Word(melted, "ADP", last.keys | first.keys)
    return phrase("PP", [*before, merged, phrase("NP", things.children[1:])])


def noun_phrase(thing: m.Thing, case: str, negation: str = "", without_preposition: str = "") -> Phrase:
    """`negation` is the key of one that kein expresses, `without_preposition` of a preposition that others need."""
    if isinstance(thing, m.Both):
        link = word("aber" if thing.lacks else "und", "CCONJ", f"{thing.key}.and")
        second = noun_phrase(thing.second, case, negation=f"{thing.key}.not" if thing.lacks else "")
        comma = [word(",", "PUNCT", f"{thing.key}.comma")] if thing.lacks else []
        return phrase("CNP", [noun_phrase(thing.first, case), *comma, link, second])
    head, key = thing.head, thing.key
    if isinstance(head, m.Pronoun):
        return phrase("NP", [word(PRONOUNS[head.name][_BY_CASE.index(case)], "PRON", f"{key}.n")])
    if isinstance(head, m.Person):
        return phrase("NP", _add_keys(person_words(head.given, head.family, key), without_preposition))
    gender = "p" if thing.number == m.PLURAL else head.german_gender
    kind = m.NO if negation else thing.determiner
    determiner = _determiner(thing, kind, gender, case, negation)
    endings = DECLENSIONS.get(kind, STRONG)
    adjectives = [
        word(a.german[1] + endings[gender, case], "ADJ", f"{key}.a{i}") for i, a in enumerate(thing.adjectives)
    ]
    noun = spell(head.in_german(case, thing.number), "NOUN", f"{key}.n")
    noun = _add_keys(noun, "" if determiner else f"{key}.d")
    children: list[Node] = [*_add_keys(determiner, without_preposition), *adjectives, *noun]
    children += map(somewhere, thing.at)
    if thing.relative is not None:
        children += _set_in_commas(thing.relative, gender, key)
    return phrase("NP", children)


def _add_keys(words: Sequence[Word], *more: str) -> list[Word]:
    return [Word(w.text, w.tag, w.keys | {key for key in more if key}, w.entity) for w in words]


def _determiner(thing: m.NounPhrase, kind: str, gender: str, case: str, negation: str) -> list[Word]:
    keys = [f"{thing.key}.d", *([negation] if negation else [])]
    if kind == m.THE:
        return [word(DEFINITE[gender, case], "DET", *keys)]
    if kind == m.COUNT:
        return [word(NUMBERS[thing.count - 1], "NUM", *keys)]
    if kind == m.OWNED:
        assert thing.owner is not None
        *before, last = person_words(thing.owner.given, thing.owner.family, f"{thing.key}.o")
        owner = Word(f"{last.text}s", last.tag, last.keys | {f"{thing.key}.of", *keys}, last.entity)
        return [*before, owner]
    if kind in DER_WORDS:
        return [word(DER_WORDS[kind] + DER_ENDINGS[gender, case], "DET", *keys)]
    if kind in EIN_WORDS:
        return [word(EIN_WORDS[kind] + EIN_ENDINGS[gender, case], "DET", *keys)]
    return []


def _relative(relative: m.Relative, gender: str) -> Phrase:
    c = relative.clause
    case = m.NOMINATIVE if relative.is_subject else c.verb.german.case if c.verb else m.NOMINATIVE
    pronoun = word(RELATIVE[gender, case], "PRON", f"{c.key}.rel")
    joined = _verbs(c)[2]
    if relative.is_subject:
        return phrase("S", [pronoun, *_pronouns(c), *_when(c), *_middle(c), *joined])
    middle = _middle(replace(c, object=None))
    return phrase("S", [pronoun, noun_phrase(c.subject, m.NOMINATIVE), *middle, *joined])


def finish(tree: Phrase) -> Phrase:
    """No comma before another mark, and a capital at the beginning."""
    words = list(leaves(tree))
    doubled = {id(a) for a, b in pairwise(words) if a.text == "," and b.tag == "PUNCT"}
    tree = remove_words(tree, doubled)
    texts = [w.text for w in leaves(tree)]
    return write_sentence(tree, texts)
