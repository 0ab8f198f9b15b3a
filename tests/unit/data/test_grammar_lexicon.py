"""The tables hold enough words, and every word has a use."""

from regard.data.builtin.grammar.held_out import find_split
from regard.data.builtin.grammar.lexicon import ADJECTIVES, ADVERBS, ALL_VERBS, NOUNS, find_nouns
from regard.data.builtin.grammar.scene import SHAPES
from regard.data.builtin.grammar.sentences import KINDS

SUBJECT_KINDS = {kind for verb in ALL_VERBS for kind in verb.subjects}


def test_there_are_at_least_300_content_words_in_each_language() -> None:
    for language in ("english", "german", "french"):
        nouns = {getattr(noun, language)[0] for noun in NOUNS.values()}
        verbs = {getattr(verb, language) for verb in ALL_VERBS}
        adverbs = {getattr(adverb, language) for _, adverb in ADVERBS}
        assert len(nouns) + len(verbs) + len(adverbs) + len({a.name for a in ADJECTIVES.values()}) > 400
        assert len(nouns) > 220


def test_every_kind_a_verb_or_an_adjective_names_has_nouns() -> None:
    for verb in ALL_VERBS:
        for kind in verb.subjects | verb.objects:
            assert find_nouns(frozenset({kind})), (verb.name, kind)
    for adjective in ADJECTIVES.values():
        for kind in adjective.kinds - set("+-!~"):
            assert find_nouns(frozenset({kind})), (adjective.name, kind)


def test_every_noun_may_be_an_object_a_place_or_a_shape() -> None:
    objects = {kind for verb in ALL_VERBS for kind in verb.objects}
    predicates = {kind for adjective in ADJECTIVES.values() for kind in adjective.kinds}
    phrases = {"nightwear", "instrument"}  # of ambiguous sentences
    assert [n.name for n in NOUNS.values() if not n.kinds & (objects | predicates | SUBJECT_KINDS | phrases)] == []
    assert {n.name for n in NOUNS.values() if n.kind == "shape"} == set(SHAPES)


def test_every_word_of_a_held_out_combination_is_left_to_training_with_others() -> None:
    for adjective in ADJECTIVES.values():
        fits = [noun for noun in NOUNS.values() if noun.kinds & adjective.kinds]
        assert any(find_split((adjective.name, noun.name)) == "train" for noun in fits), adjective.name
    for verb in ALL_VERBS:
        fits = find_nouns(verb.objects)
        assert not fits or any(find_split((verb.name, noun.name)) == "train" for noun in fits), verb.name


def test_stative_verbs_have_a_french_imperfect() -> None:
    assert [verb.name for verb in ALL_VERBS if verb.is_stative and not verb.french.imperfect] == []


def test_german_plurals_and_genders_are_written_for_all_that_is_counted() -> None:
    assert [n.name for n in NOUNS.values() if not n.is_mass and not n.german[1]] == []
    assert all(
        n.german[0][0].isupper() and n.german_gender in "mfn" and n.french_gender in "mf" for n in NOUNS.values()
    )


def test_a_kind_of_sentence_has_a_weight_and_a_rule() -> None:
    by_name_alone = {"ambiguous", "long"}
    assert set(KINDS) == {"event", "opinion", "complex", "question", "scene", *by_name_alone}
    assert {kind for kind, (weight, _) in KINDS.items() if weight == 0} == by_name_alone
