"""What each language does with a meaning: every expected sentence was written by hand."""

from dataclasses import replace

import pytest

from regard.data.builtin.grammar import english, french, german
from regard.data.builtin.grammar import meaning as m
from regard.data.builtin.grammar.lexicon import ADJECTIVES, ADVERBS, GIVEN, NOUNS, PLACES, PREPOSITIONS, VERBS
from regard.data.builtin.grammar.meaning import (
    DATIVE,
    FUTURE,
    PAST,
    PERFECT,
    PLURAL,
    PRESENT,
    SINGULAR,
    Preposition,
    Pronoun,
)
from regard.data.builtin.grammar.words import align, join_words, leaves, write_tree

BY_ADVERB = {adverb.english: adverb for _, adverb in ADVERBS}
HER, THEM = Pronoun("f", SINGULAR, "she"), Pronoun("m", PLURAL, "they")
CANADA = next(place for place in PLACES if place.english == "Canada")
ANNA = next(who for who in GIVEN if who.given == "Anna")


def np(noun: str, determiner: str = m.THE, *adjectives: str, many: bool = False, **more: object) -> m.NounPhrase:
    key = f"{noun}{determiner}{''.join(adjectives)}"
    number = PLURAL if many else SINGULAR
    return m.NounPhrase(
        key, NOUNS[noun], determiner, number, adjectives=tuple(ADJECTIVES[a] for a in adjectives), **more
    )


def does(
    subject: m.Thing, verb: str | None, thing: m.Thing | None = None, tense: str = PRESENT, **more: object
) -> m.Clause:
    return m.Clause("c" + subject.key, subject, VERBS[verb] if verb else None, tense, thing, **more)


def at(noun: str, preposition: str = "", **more: object) -> tuple[m.Somewhere, ...]:
    there = Preposition(NOUNS[noun].there[0], NOUNS[noun].there[1], DATIVE, NOUNS[noun].there[2])
    return (m.Somewhere("p", PREPOSITIONS[preposition] if preposition else there, np(noun, **more)),)


DOG, CAT = np("dog"), np("cat")
CASES: dict[str, tuple[m.Meaning, str, str, str]] = {
    "who does it": (
        m.Meaning(does(CAT, "see", DOG)),
        "The cat sees the dog.",
        "Die Katze sieht den Hund.",
        "Le chat voit le chien.",
    ),
    "the verb second, the prefix last": (
        m.Meaning(does(np("woman"), "call", np("man"), when=BY_ADVERB["today"], is_when_first=True)),
        "Today, the woman calls the man.",
        "Heute ruft die Frau den Mann an.",
        "Aujourd'hui, la femme appelle l'homme.",
    ),
    "the verb last, the prefix joined": (
        m.Meaning(does(DOG, "sleep"), "because", does(CAT, "wake up")),
        "The dog sleeps because the cat wakes up.",
        "Der Hund schläft, weil die Katze aufwacht.",
        "Le chien dort parce que le chat se réveille.",
    ),
    "a clause in the first place": (
        m.Meaning(does(DOG, "arrive", tense=FUTURE), "if", does(np("owl"), "sleep"), is_second_first=True),
        "If the owl sleeps, the dog will arrive.",
        "Wenn die Eule schläft, wird der Hund ankommen.",
        "Si le hibou dort, le chien arrivera.",
    ),
    "a perfect, its participle last and agreeing": (
        m.Meaning(does(np("woman", many=True), "leave", tense=PERFECT)),
        "The women have left.",
        "Die Frauen sind weggegangen.",
        "Les femmes sont parties.",
    ),
    "nicht after the object, ne and pas around the verb": (
        m.Meaning(does(np("student"), "look for", np("key"), negation=m.NOT)),
        "The student does not look for the key.",
        "Der Student sucht den Schlüssel nicht.",
        "L'étudiant ne cherche pas la clé.",
    ),
    "kein, and pas de": (
        m.Meaning(does(np("man"), "eat", np("egg", m.A), PAST, negation=m.NOT)),
        "The man did not eat an egg.",
        "Der Mann aß kein Ei.",
        "L'homme n'a pas mangé d'œuf.",
    ),
    "partitives": (
        m.Meaning(does(np("child"), "drink", np("water", m.BARE, "cold"))),
        "The child drinks cold water.",
        "Das Kind trinkt kaltes Wasser.",
        "L'enfant boit de l'eau froide.",
    ),
    "des before a noun, de before an adjective": (
        m.Meaning(does(np("dog", m.BARE, "small", many=True), "chase", np("cat", m.BARE, "black", many=True))),
        "Small dogs chase black cats.",
        "Kleine Hunde verfolgen schwarze Katzen.",
        "De petits chiens poursuivent des chats noirs.",
    ),
    "a dative object and a weak noun": (
        m.Meaning(does(np("boy"), "help", np("neighbour"), PERFECT)),
        "The boy has helped the neighbour.",
        "Der Junge hat dem Nachbarn geholfen.",
        "Le garçon a aidé le voisin.",
    ),
    "a preposition that French contracts": (
        m.Meaning(does(np("girl"), "dream of", np("king"))),
        "The girl dreams of the king.",
        "Das Mädchen träumt vom König.",
        "La fille rêve du roi.",
    ),
    "no elision before a number that is breathed": (
        m.Meaning(does(np("girl"), "dream of", np("king", m.COUNT, many=True, count=8))),
        "The girl dreams of eight kings.",
        "Das Mädchen träumt von acht Königen.",
        "La fille rêve de huit rois.",
    ),
    "no contraction where it elides": (
        m.Meaning(does(np("girl"), "talk to", np("friend"), where=at("train station"))),
        "The girl talks to the friend at the train station.",
        "Das Mädchen spricht am Bahnhof mit dem Freund.",
        "La fille parle à l'ami à la gare.",
    ),
    "reflexive in two languages, one word in the third": (
        m.Meaning(does(np("nurse", many=True), "remember", np("hotel", many=True), PAST)),
        "The nurses remembered the hotels.",
        "Die Krankenschwestern erinnerten sich an die Hotels.",
        "Les infirmières se souvenaient des hôtels.",
    ),
    "sich before a noun that comes after the verb": (
        m.Meaning(does(np("man"), "rest", tense=PERFECT, is_question=True)),
        "Has the man rested?",
        "Hat sich der Mann ausgeruht?",
        "Est-ce que l'homme s'est reposé ?",
    ),
    "a clitic with which the participle agrees": (
        m.Meaning(does(np("man"), "see", m.NounPhrase("her", HER), PERFECT, negation=m.NEVER)),
        "The man has never seen her.",
        "Der Mann hat sie nie gesehen.",
        "L'homme ne l'a jamais vue.",
    ),
    "s'il, and ils": (
        m.Meaning(does(DOG, "fall", tense=FUTURE), "if", does(m.NounPhrase("they", THEM, number=PLURAL), "sing")),
        "The dog will fall if they sing.",
        "Der Hund wird fallen, wenn sie singen.",
        "Le chien tombera s'ils chantent.",
    ),
    "giving": (
        m.Meaning(does(np("woman"), "give", np("book", m.A), recipient=np("child"), is_recipient_first=True)),
        "The woman gives the child a book.",
        "Die Frau gibt dem Kind ein Buch.",
        "La femme donne un livre à l'enfant.",
    ),
    "whose it is": (
        m.Meaning(does(np("dog", m.OWNED, "old", owner=ANNA), "bite", np("bus driver"))),
        "Anna's old dog bites the bus driver.",
        "Annas alter Hund beißt den Busfahrer.",
        "Le vieux chien d'Anna mord le conducteur de bus.",
    ),
    "relative clauses": (
        m.Meaning(does(
            replace(np("mouse"), relative=m.Relative(does(CAT, "see", np("mouse"), PAST), is_subject=False)), "sleep",
        )),
        "The mouse that the cat saw sleeps.",
        "Die Maus, die die Katze sah, schläft.",
        "La souris que le chat a vue dort.",
    ),
    "a relative clause behind the verb": (
        m.Meaning(does(
            np("man"), "read",
            replace(np("letter"), relative=m.Relative(does(np("letter"), "arrive", tense=PAST), is_subject=True)),
            PERFECT,
        )),
        "The man has read the letter that arrived.",
        "Der Mann hat den Brief gelesen, der ankam.",
        "L'homme a lu la lettre qui est arrivée.",
    ),
    "a claim": (
        m.Meaning(
            does(np("bird"), "fly", tense=PERFECT, where=(m.Somewhere("p", None, place=CANADA, is_direction=True),)),
            claim=does(np("aunt"), "say"),
        ),
        "The aunt says that the bird has flown to Canada.",
        "Die Tante sagt, dass der Vogel nach Kanada geflogen ist.",
        "La tante dit que l'oiseau a volé au Canada.",
    ),
    "what something is like": (
        m.Meaning(does(np("soup", m.THIS), None, tense=PAST, predicate=ADJECTIVES["sour"], negation=m.NOT)),
        "This soup was not sour.",
        "Diese Suppe war nicht sauer.",
        "Cette soupe n'était pas acide.",
    ),
    "there is": (
        m.Meaning(does(
            m.Both("b", np("circle", m.A, "small", "red"), np("star", m.A, "green"), lacks=True), None,
            is_existential=True,
        )),
        "There is a small red circle but no green star.",
        "Es gibt einen kleinen roten Kreis, aber keinen grünen Stern.",
        "Il y a un petit cercle rouge mais pas d'étoile verte.",
    ),
    "besoin de": (
        m.Meaning(does(np("doctor"), "need", np("bag", many=True), PAST, negation=m.NOT)),
        "The doctor did not need the bags.",
        "Der Arzt brauchte die Taschen nicht.",
        "Le médecin n'avait pas besoin des sacs.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_language_says_it_as_its_speakers_do(name: str) -> None:
    meaning, *expected = CASES[name]
    written = [
        join_words([w.text for w in leaves(module.sentence(meaning))], language)
        for language, module in (("en", english), ("de", german), ("fr", french))
    ]
    assert written == expected


GERMAN = [  # determiner, adjective, noun, many: nominative, accusative, dative
    (m.THE, "old", "dog", False, "der alte Hund", "den alten Hund", "dem alten Hund"),
    (m.THE, "old", "cat", False, "die alte Katze", "die alte Katze", "der alten Katze"),
    (m.THE, "old", "horse", False, "das alte Pferd", "das alte Pferd", "dem alten Pferd"),
    (m.THE, "old", "dog", True, "die alten Hunde", "die alten Hunde", "den alten Hunden"),
    (m.A, "old", "dog", False, "ein alter Hund", "einen alten Hund", "einem alten Hund"),
    (m.A, "old", "cat", False, "eine alte Katze", "eine alte Katze", "einer alten Katze"),
    (m.A, "old", "horse", False, "ein altes Pferd", "ein altes Pferd", "einem alten Pferd"),
    (m.MY, "old", "cat", True, "meine alten Katzen", "meine alten Katzen", "meinen alten Katzen"),
    (m.OUR, "old", "bear", False, "unser alter Bär", "unseren alten Bären", "unserem alten Bären"),
    (m.THIS, "old", "child", False, "dieses alte Kind", "dieses alte Kind", "diesem alten Kind"),
    (m.EVERY, "old", "student", False, "jeder alte Student", "jeden alten Studenten", "jedem alten Studenten"),
    (m.MANY, "old", "car", True, "viele alte Autos", "viele alte Autos", "vielen alten Autos"),
    (m.SOME, "old", "girl", True, "einige alte Mädchen", "einige alte Mädchen", "einigen alten Mädchen"),
    (m.BARE, "cold", "water", False, "kaltes Wasser", "kaltes Wasser", "kaltem Wasser"),
    (m.BARE, "cold", "milk", False, "kalte Milch", "kalte Milch", "kalter Milch"),
    (m.BARE, "cold", "wine", False, "kalter Wein", "kalten Wein", "kaltem Wein"),
    (m.THE, "dark", "forest", False, "der dunkle Wald", "den dunklen Wald", "dem dunklen Wald"),
    (m.A, "expensive", "wine", False, "ein teurer Wein", "einen teuren Wein", "einem teuren Wein"),
    (m.A, "tired", "man", False, "ein müder Mann", "einen müden Mann", "einem müden Mann"),
]  # fmt: skip


@pytest.mark.parametrize("row", GERMAN, ids=lambda row: row[4])
def test_german_declines_article_adjective_and_noun_together(row: tuple[str, str, str, bool, str, str, str]) -> None:
    determiner, adjective, noun, many, *expected = row
    thing = np(noun, determiner, adjective, many=many)
    cases = ("nominative", "accusative", "dative")
    assert [" ".join(w.text for w in leaves(german.noun_phrase(thing, case))) for case in cases] == expected


FRENCH = [
    (np("friend", m.THE, "old"), "le vieil ami"),
    (np("friend", m.A, "new"), "un nouvel ami"),
    (np("friend", m.MY, "old", many=True), "mes vieux amis"),
    (np("school", m.MY), "mon école"),
    (np("school", m.MY, "old"), "ma vieille école"),
    (np("squirrel", m.THIS), "cet écureuil"),
    (np("hedgehog", m.THIS), "ce hérisson"),
    (np("bean", m.THE), "le haricot"),
    (np("house", m.THE, "white", many=True), "les maisons blanches"),
    (np("chair", m.A, "brown"), "une chaise marron"),
    (np("star", m.COUNT, "small", "blue", many=True, count=3), "trois petites étoiles bleues"),
    (np("egg", m.MANY, many=True), "beaucoup d'œufs"),
    (np("owl", m.MANY, many=True), "beaucoup de hiboux"),
    (np("meat", m.BARE), "de la viande"),
    (np("rice", m.BARE), "du riz"),
    (np("jacket", m.THE, "cheap", many=True), "les vestes bon marché"),
]


@pytest.mark.parametrize(("thing", "expected"), FRENCH, ids=[text for _, text in FRENCH])
def test_french_agrees_elides_and_places_adjectives(thing: m.NounPhrase, expected: str) -> None:
    tree = french.finish(french.noun_phrase(thing))
    text = join_words([w.text for w in leaves(tree)], "fr")
    assert text[0].lower() + text[1:] == expected


def test_english_says_an_where_it_sounds_like_it() -> None:
    spoken = {"apple": "An apple", "dog": "A dog", "umbrella": "An umbrella"}
    for noun, text in spoken.items():
        assert join_words([w.text for w in leaves(english.finish(english.noun_phrase(np(noun, m.A))))], "en") == text
    useful, honest = np("key", m.A, "useful"), np("man", m.A, "honest")
    assert next(w.text for w in leaves(english.finish(english.noun_phrase(useful)))) == "A"
    assert next(w.text for w in leaves(english.finish(english.noun_phrase(honest)))) == "An"


ALIGNED = [  # a case, then its links from English to German and to French, worked out on paper
    (
        "nicht after the object, ne and pas around the verb",
        "0-0 1-1 2-2 3-5 4-2 5-2 6-3 7-4 8-6",
        "0-0 1-1 2-3 3-2 3-4 4-3 5-3 6-5 7-6 8-7",
    ),
    ("a preposition that French contracts", "0-0 1-1 2-2 3-3 4-3 5-4 6-5", "0-0 1-1 2-2 3-3 4-3 5-4 6-5"),
    ("kein, and pas de", "0-0 1-1 2-2 3-3 4-2 5-3 6-4 7-5", "0-0 1-1 2-3 3-2 3-4 4-5 5-6 6-7 7-8"),
    (
        "the verb last, the prefix joined",
        "0-0 1-1 2-2 3-4 4-5 5-6 6-7 7-7 8-8",
        "0-0 1-1 2-2 3-3 3-4 4-5 5-6 6-7 6-8 7-8 8-9",
    ),
    ("whose it is", "0-0 1-0 2-1 3-2 4-3 5-4 6-5 7-5 8-6", "0-4 1-0 1-3 2-1 3-2 4-5 5-6 6-8 6-9 7-7 8-10"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "to_german", "to_french"), ALIGNED, ids=[name for name, *_ in ALIGNED])
def test_words_are_linked_as_a_reader_would_link_them(name: str, to_german: str, to_french: str) -> None:
    said, *others = (list(leaves(module.sentence(CASES[name][0]))) for module in (english, german, french))
    links = [" ".join(f"{i}-{j}" for i, j in align(said, other)) for other in others]
    assert links == [to_german, to_french]


def test_negation_turns_sentiment_round_and_questions_have_none() -> None:
    good = does(np("book"), None, predicate=ADJECTIVES["good"])
    bad, loves = replace(good, predicate=ADJECTIVES["bad"]), does(np("man"), "love", DOG)
    assert [m.Meaning(clause).polarity for clause in (good, bad, loves)] == [1, -1, 1]
    assert [m.Meaning(replace(c, negation=m.NOT)).polarity for c in (good, bad, loves)] == [-1, 1, -1]
    assert m.Meaning(replace(good, is_question=True)).polarity == 0
    assert m.Meaning(good, "but", bad).polarity == 0
    assert m.Meaning(does(CAT, "see", DOG, negation=m.NOT)).polarity == 0


def test_what_is_rarely_so_is_mostly_not() -> None:
    likes = does(np("man"), "like", DOG)
    hates = does(np("man"), "hate", DOG)
    polarities = [
        [m.Meaning(replace(clause, often=BY_ADVERB[often])).polarity for clause in (likes, hates)]
        for often in ("rarely", "sometimes", "often", "always")
    ]
    assert polarities == [[-1, 1], [1, -1], [1, -1], [1, -1]]


def trees(clause: m.Clause) -> list[str]:
    """Of the English, the German and the French sentence, without their full stops."""
    written = [write_tree(module.sentence(m.Meaning(clause))) for module in (english, german, french)]
    return [tree.replace(" (PUNCT .))", ")") for tree in written]


SLEEPS = ("(S (NP (DET The) (NOUN dog)) (VP (VERB sleeps) {})", "(S (NP (DET Der) (NOUN Hund)) (VERB schläft) {}",
          "(SENT (NP (DET Le) (NOUN chien)) (VN (VERB dort)) {}")  # fmt: skip
TIMES = [  # what an expression of time is in each language, whatever it is used as
    ("now", "(ADVP (ADV now))", "(AVP (ADV jetzt))", "(AdP (ADV maintenant))"),
    ("every:1 day:2", "(NP (DET every) (NOUN day))", "(NP (DET jeden) (NOUN Tag))", "(NP (DET chaque) (NOUN jour))"),
    (
        "in:1 the:1 morning:2",
        "(PP (ADP in) (NP (DET the) (NOUN morning)))",
        "(PP (ADP am) (NP (NOUN Morgen)))",
        "(NP (DET le) (NOUN matin))",
    ),
    (
        "next:1 week:2",
        "(NP (ADJ next) (NOUN week))",
        "(NP (ADJ nächste) (NOUN Woche))",
        "(NP (DET la) (NOUN semaine) (ADJ prochaine))",
    ),
    (
        "two:1 days:2 ago:3",
        "(ADVP (NP (NUM two) (NOUN days)) (ADV ago))",
        "(PP (ADP vor) (NP (NUM zwei) (NOUN Tagen)))",
        "(AdP (PRON il) (PRON y) (VERB a) (NP (NUM deux) (NOUN jours)))",
    ),
    ("secretly", "(ADVP (ADV secretly))", "(AVP (ADV heimlich))", "(PP (ADP en) (NP (NOUN secret)))"),
]


@pytest.mark.parametrize("row", TIMES, ids=lambda row: row[0])
def test_an_adverbial_is_named_by_what_it_is_made_of(row: tuple[str, str, str, str]) -> None:
    adverb, *expected = row
    expected = [f"{sleeps.format(phrase)})" for sleeps, phrase in zip(SLEEPS, expected, strict=True)]
    assert trees(does(DOG, "sleep", when=BY_ADVERB[adverb])) == expected


def test_dressed_and_bored_are_adjectives() -> None:
    assert trees(does(DOG, "get bored"))[0] == (
        "(S (NP (DET The) (NOUN dog)) (VP (VERB gets) (ADJP (ADJ bored))))"
    )  # fmt: skip
    assert trees(does(DOG, "get dressed", tense=FUTURE))[0] == (
        "(S (NP (DET The) (NOUN dog)) (VP (AUX will) (VP (VERB get) (ADJP (ADJ dressed)))))"
    )


def test_the_preposition_of_an_object_makes_a_phrase_with_it() -> None:
    waits, hunts = trees(does(DOG, "wait for", CAT)), trees(does(DOG, "look for", CAT))
    assert waits[0] == "(S (NP (DET The) (NOUN dog)) (VP (VERB waits) (PP (ADP for) (NP (DET the) (NOUN cat)))))"
    assert waits[1] == "(S (NP (DET Der) (NOUN Hund)) (VERB wartet) (PP (ADP auf) (NP (DET die) (NOUN Katze))))"
    assert waits[2] == "(SENT (NP (DET Le) (NOUN chien)) (VN (VERB attend)) (NP (DET le) (NOUN chat)))"
    assert hunts[0] == waits[0].replace("waits", "looks")
    cares, wakes = trees(does(DOG, "take care of", CAT))[0], trees(does(DOG, "turn on", np("lamp")))[0]
    assert cares.endswith("(VP (VERB takes) (NP (NOUN care)) (PP (ADP of) (NP (DET the) (NOUN cat)))))")
    assert wakes.endswith("(VP (VERB turns) (ADP on) (NP (DET the) (NOUN lamp))))")


def test_a_preposition_stays_where_its_object_has_gone() -> None:
    sought = replace(CAT, relative=m.Relative(does(DOG, "look for", CAT), is_subject=False))
    assert trees(does(sought, "sleep"))[0] == (
        "(S (NP (NP (DET The) (NOUN cat)) (SBAR (PRON that) (S (NP (DET the) (NOUN dog)) (VP (VERB looks) "
        "(PP (ADP for)))))) (VP (VERB sleeps)))"
    )


@pytest.mark.parametrize(
    ("to_whom", "said"),
    [
        (np("child"), {"the": {"à", "l'"}}),  # The woman gives the child a book. La femme donne un livre à l'enfant.
        (np("nurse", many=True), {"the": {"aux"}}),
        (m.NounPhrase("who", replace(ANNA, family="Meyer")), {"Anna": {"à", "Anna"}, "Meyer": {"à", "Meyer"}}),
        (np("child", m.OWNED, owner=ANNA), {"Anna": {"Anna"}, "'s": {"à", "l'", "d'"}}),
    ],
)
def test_french_to_is_linked_to_what_says_it_in_english_and_in_german(
    to_whom: m.NounPhrase, said: dict[str, set[str]]
) -> None:
    gives = does(np("woman"), "give", np("book", m.A), recipient=to_whom, is_recipient_first=True)
    first, second, third = (list(leaves(module.sentence(m.Meaning(gives)))) for module in (english, german, french))
    links = align(first, third)
    assert {text: {third[j].text for i, j in links if first[i].text == text} for text in said} == said
    to = next(j for j, w in enumerate(third) if w.text in ("à", "aux"))
    assert to in {j for _, j in align(second, third)}
    assert [(first[i].text, second[j].text) for i, j in align(first, second) if first[i].text == "Meyer"] == [
        ("Meyer", "Meyer") for w in first if w.text == "Meyer"
    ]


def test_a_new_thing_is_neuf_and_a_new_film_nouveau() -> None:
    new = ADJECTIVES["new"]
    said = {
        np("bottle"): "La bouteille n'est pas neuve.",
        np("shoe", many=True): "Les chaussures ne sont pas neuves.",
        np("film"): "Le film n'est pas nouveau.",
        np("school"): "L'école n'est pas nouvelle.",
        m.Both("b", np("chair"), np("table")): "La chaise et la table ne sont pas neuves.",
    }
    for thing, text in said.items():
        tree = french.sentence(m.Meaning(does(thing, None, predicate=new, negation=m.NOT)))
        assert join_words([w.text for w in leaves(tree)], "fr") == text
