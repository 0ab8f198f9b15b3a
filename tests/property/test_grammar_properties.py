"""Whatever sentence the grammar writes, all that is said about it agrees."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.builtin.grammar import KINDS, PAIRS, SPLITS, Grammar, Sentence
from regard.data.builtin.grammar.held_out import find_split
from regard.data.builtin.grammar.lexicon import ADJECTIVES, NOUNS, plain
from regard.errors import RegardError

INSIDE = {w for noun in NOUNS.values() if " " in noun.name for form in noun.english for w in plain(form).split()}
LANGUAGES = ("en", "de", "fr")
CONTENT = {"NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM"}
TAGS = CONTENT | {"DET", "AUX", "ADP", "PRON", "CCONJ", "SCONJ", "PART", "PUNCT"}
sentences = st.builds(
    lambda seed, index, split, kind: Grammar(seed).sentence(index, split, kind),
    st.integers(0, 5),
    st.integers(0, 10_000),
    st.sampled_from(SPLITS),
    st.sampled_from([None, *KINDS]),
)
# Read off a grammar book, not off the code: (gender or plural, case) -> article; ending after der; after ein; alone.
BOOK = {
    ("m", "nominative"): ("der", "e", "er", "er"), ("m", "accusative"): ("den", "en", "en", "en"),
    ("m", "dative"): ("dem", "en", "en", "em"), ("f", "nominative"): ("die", "e", "e", "e"),
    ("f", "accusative"): ("die", "e", "e", "e"), ("f", "dative"): ("der", "en", "en", "er"),
    ("n", "nominative"): ("das", "e", "es", "es"), ("n", "accusative"): ("das", "e", "es", "es"),
    ("n", "dative"): ("dem", "en", "en", "em"), ("p", "nominative"): ("die", "en", "en", "e"),
    ("p", "accusative"): ("die", "en", "en", "e"), ("p", "dative"): ("den", "en", "en", "en"),
}  # fmt: skip
EIN = {("m", "nominative"): "", ("n", "nominative"): "", ("n", "accusative"): ""}
STEMS = ("kein", "mein", "unser", "ein")
GERMAN_NOUNS = {
    (noun.in_german(case, number), case, "p" if number == "plural" else noun.german_gender)
    for noun in NOUNS.values()
    for case in ("nominative", "accusative", "dative")
    for number in (("singular",) if noun.is_mass else ("singular", "plural"))
}


@given(sentences)
def test_every_word_has_a_tag_a_name_tag_and_a_leaf(sentence: Sentence) -> None:
    for language in LANGUAGES:
        words = sentence.words(language)
        assert len(words) == len(sentence.tags[language]) == len(sentence.entities[language])
        assert set(sentence.tags[language]) <= TAGS
        found = re.findall(r"\((\S+) ([^()\s]+)\)", sentence.trees[language])
        assert found == list(zip(sentence.tags[language], words, strict=True))
        assert sentence.trees[language].count("(") == sentence.trees[language].count(")")
        n_words = sum(tag != "PUNCT" for tag in sentence.tags[language])
        assert 3 <= n_words <= (70 if sentence.kind == "long" else 25)


@given(sentences)
def test_links_are_within_range_and_reach_every_content_word(sentence: Sentence) -> None:
    for pair in PAIRS:
        links = sentence.alignments[pair]
        assert links
        for side, language in enumerate(pair):
            linked = {link[side] for link in links}
            tags = sentence.tags[language]
            assert linked <= set(range(len(tags)))
            assert {i for i, tag in enumerate(tags) if tag in CONTENT} <= linked, (language, pair)


@given(sentences)
def test_nouns_are_linked_to_their_translations(sentence: Sentence) -> None:
    for number, english in (("singular", 0), ("plural", 1)):
        forms: dict[str, set[str]] = {}
        for noun in NOUNS.values():
            if " " not in noun.english[0] and not (noun.is_mass and english):
                german = {noun.in_german(case, number) for case in ("nominative", "dative")}
                forms.setdefault(noun.english[english], set()).update(german)
        for i, word in enumerate(sentence.en):
            beside = {other.lower() for other in sentence.en[max(i - 1, 0) : i + 2] if other != word}
            is_whole = beside.isdisjoint(INSIDE)
            if (
                sentence.tags["en"][i] == "NOUN"
                and is_whole
                and word in forms
                and word not in ("fish", "sheep", "pajamas")
            ):
                linked = {sentence.de[j] for k, j in sentence.alignments["en", "de"] if k == i}
                assert linked & forms[word], (word, linked)


@given(sentences)
def test_names_are_proper_nouns_and_the_same_in_number_everywhere(sentence: Sentence) -> None:
    counts = []
    for language in LANGUAGES:
        entities, tags = sentence.entities[language], sentence.tags[language]
        for i, entity in enumerate(entities):
            assert entity == "O" or tags[i] in ("PROPN", "ADP")
            if entity.startswith("I-"):
                assert entities[i - 1][2:] == entity[2:]
            if entity.startswith("B-"):
                assert tags[i] == "PROPN"
        counts.append((entities.count("B-PER"), entities.count("B-LOC")))
    assert len(set(counts)) == 1


@given(sentences)
def test_the_answer_is_what_the_question_leaves_out(sentence: Sentence) -> None:
    if sentence.question is None:
        assert sentence.kind == "question"
        assert sentence.answer is None
        return
    assert sentence.answer is not None
    start, end = sentence.answer
    assert 0 <= start < end <= len(sentence.en) - 1
    answer = [word.lower() for word in sentence.en[start:end]]
    asked = [word.lower() for word in sentence.question]
    assert asked[-1] == "?"
    wh = asked[0]
    assert wh in ("who", "whom", "what", "where", "when", "how")
    assert " ".join(answer) not in " ".join(asked)
    tags = sentence.tags["en"][start:end]
    if wh in ("who", "whom", "what"):
        assert {"NOUN", "PROPN", "PRON"} & set(tags)
    if wh == "how":
        assert tags[-1] == "ADJ"
    if wh == "where":
        assert tags[0] in ("ADP", "ADV")


@given(sentences)
def test_held_out_combinations_stay_in_their_split(sentence: Sentence) -> None:
    found = {find_split(combination) for combination in sentence.combinations}
    if sentence.split == "train":
        assert found <= {"train"}
    else:
        assert sentence.split in found
        assert found <= {"train", sentence.split}


@given(sentences)
def test_combinations_can_be_seen_in_the_words(sentence: Sentence) -> None:
    words = " ".join(sentence.en).lower()
    for first, second in sentence.combinations:
        if first in ADJECTIVES:
            assert first in words
        assert second.lower() in words or second in ("he", "she", "they") or second in NOUNS


@given(st.integers(0, 3), st.integers(0, 1000), st.sampled_from(SPLITS))
def test_a_sentence_is_a_function_of_seed_split_and_index_alone(seed: int, index: int, split: str) -> None:
    grammar = Grammar(seed)
    first = grammar.sentence(index, split)
    grammar.sentence(index + 1, split)
    assert grammar.sentence(index, split) == first == Grammar(seed).sentence(index, split)
    assert Grammar(seed + 1).sentence(index, split) != first


@given(sentences)
def test_german_phrases_agree_in_gender_number_and_case(sentence: Sentence) -> None:
    pattern = r"\((?:DET|NUM) (\S+?)\)((?: \(ADJ \S+?\))*) \(NOUN (\S+?)\)"
    for determiner, adjectives, noun in re.findall(pattern, sentence.trees["de"]):
        if noun in ("Tag", "Tagen"):
            continue
        endings = re.findall(r"\(ADJ (\S+?)\)", adjectives)
        fits = [(gender, case) for form, case, gender in GERMAN_NOUNS if form == noun]
        assert fits, noun
        assert any(_agrees(determiner.lower(), endings, place) for place in fits), (determiner, adjectives, noun)


def _agrees(determiner: str, adjectives: list[str], place: tuple[str, str]) -> bool:
    article, after_der, after_ein, alone = BOOK[place]
    like_der = {"der": "er", "die": "e", "das": "es", "den": "en", "dem": "em"}[article]
    like_der = "er" if place == ("f", "dative") else like_der
    if determiner == article or determiner in ("dies" + like_der, "jed" + like_der):
        ending = after_der
    elif determiner in [stem + EIN.get(place, like_der) for stem in STEMS]:
        ending = after_ein
    elif (determiner in ("viel" + like_der, "einig" + like_der) and place[0] == "p") or (
        determiner in ("zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn") and place[0] == "p"
    ):
        ending = alone
    else:
        return False
    stems = {adjective.german[1] for adjective in ADJECTIVES.values()}
    return all(word.endswith(ending) and word.removesuffix(ending) in stems for word in adjectives)


def test_the_agreement_check_can_fail() -> None:
    assert _agrees("dem", ["alten"], ("m", "dative"))
    assert not _agrees("der", ["alten"], ("m", "dative"))
    assert not _agrees("ein", ["alte"], ("m", "nominative"))


@given(sentences)
def test_french_never_leaves_a_vowel_that_elides(sentence: Sentence) -> None:
    text = sentence.text("fr")
    assert not re.search(
        r"\b(le|la|de|ne|que|se|ce|je) ([aeiouéèêâîôûœ]|ho[mtp]|hô|hi[sv]|ha[b])", text, re.IGNORECASE
    ), text
    assert not re.search(r"\b(de|à) (le|les)\b(?! [A-Z])", text), text
    assert not re.search(r"'(hibou|hérisson|haricot|huit)", text)
    assert "de des" not in text
    assert "de du" not in text


def test_order_matters_to_common_sentences() -> None:
    """Both "the dog sees the cat" and its reverse can be said: objects are often what subjects are."""
    kinds = {form: noun.kind for noun in NOUNS.values() for form in noun.english}
    noun = r"\(NP \(DET \w+\)(?: \(ADJ \w+\))* \(NOUN (\w+)\)\)"
    found = [
        re.match(rf"\(S {noun} \(VP \(VERB \w+\) {noun}", sentence.tree)
        for sentence in Grammar().sentences("train", 1000, "event")
    ]
    objects = [kinds[match[2]] for match in found if match and match[2] in kinds]  # "every day" is no object
    assert sum(kind in ("person", "animal") for kind in objects) > 0.4 * len(objects) > 15


def test_splits_are_alike_in_kinds_and_lengths() -> None:
    n = 300
    counts = {s: Counter(sentence.kind for sentence in Grammar().sentences(s, n)) for s in ("train", "test")}
    assert all(abs(counts["train"][kind] - counts["test"][kind]) < 0.1 * n for kind in KINDS)
    lengths = {s: sorted(len(sentence.en) for sentence in Grammar().sentences(s, n)) for s in ("train", "test")}
    assert abs(lengths["train"][n // 2] - lengths["test"][n // 2]) <= 3
    assert lengths["train"][n // 10] + 6 < lengths["train"][-n // 10]


def test_what_cannot_be_asked_for_is_refused_in_words() -> None:
    with pytest.raises(
        RegardError, match=r"split must be one of train, valid, test, not 'tset'. Did you mean 'test'\?"
    ):
        Grammar().sentence(0, "tset")
    with pytest.raises(RegardError, match=r"kind must be one of event, .*, not 'scenes'. Did you mean 'scene'\?"):
        Grammar().sentence(0, kind="scenes")
    with pytest.raises(RegardError, match="index must be at least 0, not -1"):
        Grammar().sentence(-1)
