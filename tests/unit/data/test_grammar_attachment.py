"""Phrases that belong to a verb or to a noun, and sentences of many clauses."""

import hashlib
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from regard.data.builtin.grammar import Grammar, english, french, german
from regard.data.builtin.grammar import meaning as m
from regard.data.builtin.grammar.attachment import IN, I, attach
from regard.data.builtin.grammar.lexicon import NOUNS, PREPOSITIONS, VERBS
from regard.data.builtin.grammar.sentences import KINDS
from regard.data.builtin.grammar.words import join_words, leaves, write_tree
from regard.data.pair_grammar import KINDS as NAMED_KINDS
from regard.data.pair_grammar import grammar_file, preview_grammar
from regard.errors import RegardError

ME, ELEPHANT = m.NounPhrase("i", I), m.NounPhrase("e", NOUNS["elephant"], m.A)
IN_MY_PAJAMAS = m.Somewhere("p", IN, m.NounPhrase("j", NOUNS["pajamas"], m.MY))
WITH_A_LANTERN = m.Somewhere("w", PREPOSITIONS["with"], m.NounPhrase("l", NOUNS["lantern"], m.A))


def readings(*phrases: m.Somewhere) -> list[m.Meaning]:
    return [
        m.Meaning(m.Clause("c", ME, VERBS["see"], m.PAST, held, where=where))
        for where, held in attach((), ELEPHANT, phrases)
    ]


def text_of(meaning: m.Meaning) -> tuple[str, str, str]:
    writers = {"en": english.sentence, "de": german.sentence, "fr": french.sentence}
    en, de, fr = (join_words([w.text for w in leaves(write(meaning))], name) for name, write in writers.items())
    return en, de, fr


def test_the_elephant_or_who_saw_it_wears_the_pajamas() -> None:
    who_saw, elephant = (write_tree(english.sentence(meaning)) for meaning in readings(IN_MY_PAJAMAS))
    pajamas = "(PP (ADP in) (NP (DET my) (NOUN pajamas)))"
    assert who_saw == f"(S (NP (PRON I)) (VP (VERB saw) (NP (DET an) (NOUN elephant)) {pajamas}) (PUNCT .))"
    assert elephant == f"(S (NP (PRON I)) (VP (VERB saw) (NP (NP (DET an) (NOUN elephant)) {pajamas})) (PUNCT .))"


def test_all_readings_are_the_same_words_in_every_language() -> None:
    assert {text_of(meaning) for meaning in readings(IN_MY_PAJAMAS)} == {
        (
            "I saw an elephant in my pajamas.",
            "Ich sah einen Elefanten in meinem Schlafanzug.",
            "J'ai vu un éléphant dans mon pyjama.",
        )
    }
    assert len({text_of(meaning) for meaning in readings(IN_MY_PAJAMAS, WITH_A_LANTERN)}) == 1


def test_readings_are_as_many_as_catalan_numbers_say() -> None:
    phrases = (IN_MY_PAJAMAS, WITH_A_LANTERN, m.Somewhere("q", IN, m.NounPhrase("c", NOUNS["coat"])))
    for n, expected in enumerate((1, 2, 5, 14)):
        trees = {write_tree(english.sentence(meaning)) for meaning in readings(*phrases[:n])}
        assert len(trees) == len(readings(*phrases[:n])) == expected


def test_the_words_of_an_ambiguous_sentence_do_not_tell_its_reading() -> None:
    """Where one phrase follows the object, half of the sentences give it to the verb."""
    n_to_verb: Counter[bool] = Counter()
    by_preposition: dict[str, Counter[bool]] = defaultdict(Counter)
    for sentence in Grammar().sentences("train", 1500, "ambiguous"):
        if sentence.tags["en"].count("ADP") != 1:
            continue
        is_verbs = not sentence.tree.split("(VERB", 1)[1].count("(NP (NP")
        if "(NP (NP" in sentence.tree.split("(VERB", 1)[0] or "PART" in sentence.tags["en"]:
            continue  # the subject's phrase, and Anna's dog
        n_to_verb[is_verbs] += 1
        by_preposition[sentence.en[sentence.tags["en"].index("ADP")]][is_verbs] += 1
    assert sum(n_to_verb.values()) > 500
    assert abs(n_to_verb[True] / sum(n_to_verb.values()) - 0.5) < 0.06
    for word in ("in", "with"):
        assert abs(by_preposition[word][True] / sum(by_preposition[word].values()) - 0.5) < 0.1


def test_many_clauses_are_joined_in_every_language() -> None:
    cat = m.NounPhrase("a", NOUNS["cat"])
    clauses = [m.Clause(f"c{i}", cat, VERBS[verb], m.PRESENT) for i, verb in enumerate(("sleep", "swim", "fall"))]
    meaning = m.Meaning(clauses[0], "and", clauses[1], more=(("but", clauses[2]),))
    assert text_of(meaning) == (
        "The cat sleeps, and the cat swims, but the cat falls.",
        "Die Katze schläft und die Katze schwimmt, aber die Katze fällt.",
        "Le chat dort, et le chat nage, mais le chat tombe.",
    )


def test_long_sentences_have_every_length_up_to_fifty_words() -> None:
    lengths = Counter(min(len(s.en), 59) // 10 for s in Grammar().sentences("train", 600, "long"))
    assert all(lengths[ten] >= 10 for ten in range(5))
    assert lengths[5] > 0


def test_what_older_names_of_the_grammar_write_has_not_changed(tmp_path: Path) -> None:
    """Runs on them know their data by its bytes."""
    texts = [grammar_file(f"grammar:{what}:100@train", tmp_path).read_bytes() for what in ("en-de", "fr-trees")]
    assert [hashlib.sha256(text).hexdigest()[:16] for text in texts] == ["d851ab22372629c9", "33f2d9fadbfef468"]


def test_a_kind_of_sentence_is_asked_for_by_name(tmp_path: Path) -> None:
    assert tuple(KINDS) == NAMED_KINDS
    (found,) = preview_grammar("grammar:en-trees/ambiguous:7@test", 2)
    expected = list(Grammar().sentences("test", 2, "ambiguous"))
    assert found.first == [(" ".join(s.en), s.tree) for s in expected]
    path = grammar_file("grammar:en-de/long:3@test", tmp_path)
    assert path.name == "grammar-en-de-long-3-test-1.txt"
    assert len(path.read_text(encoding="utf-8").splitlines()) == 3


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "grammar:en-de/lnog",
            r"'grammar:en-de/lnog' names no kind of sentence. Did you mean 'long'\? Kinds are event, ",
        ),
        ("grammar:dates/long:5", "names no kind of sentence"),
        ("grammar:en-ed/long", "names no pairs of the built-in grammar"),
    ],
)
def test_a_kind_that_is_not_there_is_refused_in_words(name: str, said: str) -> None:
    with pytest.raises(RegardError, match=said):
        preview_grammar(name, 1)
