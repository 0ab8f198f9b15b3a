"""`Grammar`: English, German and French in parallel, unlimited, with everything that is known about each sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from regard.data.builtin.grammar import english, french, german
from regard.data.builtin.grammar import meaning as m
from regard.data.builtin.grammar.held_out import belongs, check_split, draw_until
from regard.data.builtin.grammar.scene import Scene, draw_scene
from regard.data.builtin.grammar.sentences import check_kind, draw_kind, draw_meaning, pairs
from regard.data.builtin.grammar.words import Phrase, align, find_span, join_words, leaves, phrase, word, write_tree
from regard.errors import RegardError

SHORTEST, LONGEST = 3, 25  # words without punctuation, in every language
LONGEST_OF = {"long": 70}  # where a kind has another limit
SENTIMENTS = {-1: "negative", 0: "neutral", 1: "positive"}
_WRITERS = {"en": english.sentence, "de": german.sentence, "fr": french.sentence}
PAIRS = (("en", "de"), ("en", "fr"), ("de", "fr"))

Links = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Sentence:
    """One sentence in three languages. `tags`, `entities` and `trees` are by language, `alignments` by pair of them.

    `question` is None where the sentence is itself a question; `scene` is None unless `kind` is "scene".
    """

    index: int
    split: str
    kind: str
    en: tuple[str, ...]
    de: tuple[str, ...]
    fr: tuple[str, ...]
    tags: dict[str, tuple[str, ...]]
    entities: dict[str, tuple[str, ...]]
    trees: dict[str, str]
    alignments: dict[tuple[str, str], Links]
    sentiment: str
    question: tuple[str, ...] | None
    answer: tuple[int, int] | None
    scene: Scene | None
    combinations: frozenset[tuple[str, str]]

    def words(self, language: str) -> tuple[str, ...]:
        return {"en": self.en, "de": self.de, "fr": self.fr}[language]

    def text(self, language: str) -> str:
        """As people write it."""
        return join_words(self.words(language), language)

    @property
    def tree(self) -> str:
        return self.trees["en"]


class Grammar:
    """A synchronous grammar: sentence i of a split is a pure function of (seed, split, i).

    >>> sentence = Grammar(seed=0).sentence(2)
    >>> sentence == Grammar(seed=0).sentence(2)
    True
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def sentence(self, index: int, split: str = "train", kind: str | None = None) -> Sentence:
        """Sentence `index` of a split; with `kind`, of that kind's own sequence."""
        check_split(split)
        if index < 0:
            raise RegardError(f"index must be at least 0, not {index}: sentences are numbered from 0.")
        check_kind(kind)
        place = (self.seed, split, kind or "any", index)
        # Drawn once and kept whatever is refused below: else splits would differ in their kinds and lengths.
        first = Random("/".join(map(str, ("kind", *place))))
        of_kind, richness = kind or draw_kind(first), first.random()

        def draw(random: Random) -> Sentence | None:
            meaning = draw_meaning(random, of_kind, richness)
            if not belongs(pairs(meaning), split):
                return None
            return _write(index, split, of_kind, meaning, random)

        return draw_until(draw, *place)

    def sentences(self, split: str = "train", n: int | None = None, kind: str | None = None) -> Iterator[Sentence]:
        """The first n sentences of a split, or all of them: there is no end."""
        index = 0
        while n is None or index < n:
            yield self.sentence(index, split, kind)
            index += 1


def _write(index: int, split: str, kind: str, meaning: m.Meaning, random: Random) -> Sentence | None:
    """The sentence in every language, or None where one of them is too short or too long."""
    trees: dict[str, Phrase] = {language: write(meaning) for language, write in _WRITERS.items()}
    words = {language: list(leaves(tree)) for language, tree in trees.items()}
    lengths = [sum(w.tag != "PUNCT" for w in words[language]) for language in m.LANGUAGES]
    if min(lengths) < SHORTEST or max(lengths) > LONGEST_OF.get(kind, LONGEST):
        return None
    question, answer = ask(meaning, trees["en"], random) or (None, None)
    return Sentence(
        index=index,
        split=split,
        kind=kind,
        en=tuple(w.text for w in words["en"]),
        de=tuple(w.text for w in words["de"]),
        fr=tuple(w.text for w in words["fr"]),
        tags={language: tuple(w.tag for w in words[language]) for language in m.LANGUAGES},
        entities={language: tuple(w.entity for w in words[language]) for language in m.LANGUAGES},
        trees={language: write_tree(trees[language]) for language in m.LANGUAGES},
        alignments={(a, b): align(words[a], words[b]) for a, b in PAIRS},
        sentiment=SENTIMENTS[meaning.polarity],
        question=question,
        answer=answer,
        scene=draw_scene(meaning, random) if kind == "scene" else None,
        combinations=frozenset(pairs(meaning)),
    )


def ask(meaning: m.Meaning, tree: Phrase, random: Random) -> tuple[tuple[str, ...], tuple[int, int]] | None:
    """The words of a question about the first clause, and where its answer begins and ends; None of a question.

    The question is the clause again, with a question word for one of its parts.
    """
    if meaning.main.is_question:
        return None
    clause = meaning.main
    part = random.choice(_parts(clause))
    span = find_span(tree, f"{clause.key}.{part}")
    assert span is not None
    asked = phrase("SBARQ", [word(_question_word(clause, part), "PRON"), *_rest(clause, part), word("?", "PUNCT")])
    return tuple(w.text for w in leaves(english.finish(asked))), span


def _parts(c: m.Clause) -> list[str]:
    """What can be asked for: a pronoun would be no answer."""
    parts = [] if c.subject.is_pronoun else ["subject"]
    if c.object is not None and not c.object.is_pronoun:
        parts.append("object")
    if c.predicate is not None and not c.negation:
        parts.append("predicate")
    if len(c.where) == 1 and c.where[0].is_place and not c.is_existential:
        parts.append("where")
    if c.when is not None:
        parts.append("when")
    return parts or ["subject"]


def _question_word(c: m.Clause, part: str) -> str:
    if part == "subject":
        return "who" if c.subject.is_person else "what"
    if part == "object":
        assert c.object is not None
        return "whom" if c.object.is_person else "what"
    return {"where": "where", "when": "when", "predicate": "how"}[part]


def _rest(c: m.Clause, part: str) -> tuple[Phrase, ...]:
    if part == "subject" and c.is_existential and not c.where:
        return (phrase("SQ", [word("is", "AUX"), word("there", "PRON")]),)
    return (english.clause(_move_time_last(c), without=part),)


def _move_time_last(c: m.Clause) -> m.Clause:
    """With the time at the end: a question begins with its question word."""
    return replace(c, is_when_first=False)
