"""Words and phrases as the three languages write them.

A word carries keys: names of the bits of meaning it expresses. Two words of two languages are aligned where they
share one, so alignments are gold by construction: "au" holds the keys of a preposition and of an article, and so
meets both "to" and "the".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

PARTS = "123"  # an expression has at most three parts that correspond to parts of its translations
# Words inside fixed expressions whose tag is not that of the expression.
INNER_TAGS = {
    "de": "ADP", "d'": "ADP", "à": "ADP", "laver": "VERB", "postale": "ADJ", "Inde": "PROPN", "last": "ADJ",
    "week": "NOUN", "night": "NOUN", "letzte": "ADJ", "Woche": "NOUN", "Nacht": "NOUN", "la": "DET", "l'": "DET",
    "semaine": "NOUN", "nuit": "NOUN", "dernière": "ADJ", "two": "NUM", "days": "NOUN", "vor": "ADP", "zwei": "NUM",
    "Tagen": "NOUN", "il": "PRON", "y": "PRON", "a": "VERB", "deux": "NUM", "jours": "NOUN", "every": "DET",
    "day": "NOUN", "jeden": "DET", "Tag": "NOUN", "chaque": "DET", "jour": "NOUN", "in": "ADP", "the": "DET",
    "morning": "NOUN", "am": "ADP", "Morgen": "NOUN", "le": "DET", "matin": "NOUN", "next": "ADJ", "nächste": "ADJ",
    "nächstes": "ADJ", "year": "NOUN", "Jahr": "NOUN", "année": "NOUN", "prochaine": "ADJ", "en": "ADP",
    "ADP next": "ADV", "secret": "NOUN", "marché": "NOUN", "du": "ADP", "left": "NOUN", "right": "NOUN", "côté": "NOUN",
    "gauche": "NOUN", "droite": "NOUN", "front": "NOUN", "links": "ADV", "rechts": "ADV",
}  # fmt: skip


@dataclass(frozen=True)
class Word:
    """A token, its universal part of speech, its keys, and its place in a name: B-PER, I-LOC, ...; O outside."""

    text: str
    tag: str
    keys: frozenset[str]
    entity: str = "O"


@dataclass(frozen=True)
class Phrase:
    """A constituent; `mark` names the part it plays, so that an answer can be found again."""

    label: str
    children: tuple[Word | Phrase, ...]
    mark: str = ""


Node = Word | Phrase


def word(text: str, tag: str, *keys: str) -> Word:
    return Word(text, tag, frozenset(keys))


def phrase(label: str, children: Sequence[Node | None], mark: str = "") -> Phrase:
    return Phrase(label, tuple(child for child in children if child is not None), mark)


def spell(form: str, tag: str, key: str, entity: str = "") -> list[Word]:
    """The words of an expression. One that is marked `:2` means its second part; an unmarked one means all of it.

    >>> [(w.text, w.tag, sorted(w.keys)) for w in spell("jus:2 d':1 orange:1", "NOUN", "n")]
    [('jus', 'NOUN', ['n2']), ("d'", 'ADP', ['n1']), ('orange', 'NOUN', ['n1'])]
    """
    words = []
    tokens = form.split()
    for i, token in enumerate(tokens):
        text, _, part = token.partition(":")
        keys = [key + part] if part else [key, *(key + p for p in PARTS)]
        name = f"{'I' if i else 'B'}-{entity}" if entity else "O"
        inner = INNER_TAGS.get(f"{tag} {text}", INNER_TAGS.get(text, tag)) if len(tokens) > 1 else tag
        words.append(Word(text, inner, frozenset(keys), name))
    return words


_NOMINAL = {"DET", "NUM", "ADJ", "NOUN"}


def adverbial(form: str, key: str, label: str, mark: str = "") -> Phrase:
    """An expression of time or manner, named by what it is: a noun phrase, one with a preposition, else `label`.

    >>> write_tree(adverbial("every:1 day:2", "when", "ADVP")), write_tree(adverbial("soon", "when", "ADVP"))
    ('(NP (DET every) (NOUN day))', '(ADVP (ADV soon))')
    """
    parts: list[Node] = []
    for is_nominal, group in groupby(spell(form, "ADV", key), lambda word: word.tag in _NOMINAL):
        words = list(group)
        parts += [phrase("NP", words)] if is_nominal else words
    first = parts[0]
    if isinstance(first, Phrase) and len(parts) == 1:
        return replace(first, mark=mark)
    return phrase("PP" if isinstance(first, Word) and first.tag == "ADP" else label, parts, mark)


def person_words(given: str, family: str | None, key: str) -> list[Word]:
    """A name, which is the same in every language."""
    first = Word(given, "PROPN", frozenset({f"{key}.n"}), "B-PER")
    return [first, Word(family, "PROPN", frozenset({f"{key}.f"}), "I-PER")] if family else [first]


def leaves(node: Node) -> Iterator[Word]:
    if isinstance(node, Word):
        yield node
    else:
        for child in node.children:
            yield from leaves(child)


def replace_texts(node: Node, texts: Iterator[str]) -> Node:
    """A tree with other spellings of its words, taken in order."""
    if isinstance(node, Word):
        text = next(texts)
        return node if text == node.text else replace(node, text=text)
    return Phrase(node.label, tuple(replace_texts(child, texts) for child in node.children), node.mark)


def write_sentence(tree: Phrase, texts: list[str]) -> Phrase:
    """A tree with other spellings of its words, the first one with a capital."""
    result = replace_texts(tree, iter([texts[0][0].upper() + texts[0][1:], *texts[1:]]))
    assert isinstance(result, Phrase)
    return result


def add_meaning(node: Phrase, keys: frozenset[str], more: str) -> Phrase:
    """Add `more` to what every word of a tree means that has one of `keys`."""
    children: list[Node] = []
    for child in node.children:
        if isinstance(child, Phrase):
            children.append(add_meaning(child, keys, more))
        else:
            children.append(replace(child, keys=child.keys | {more}) if child.keys & keys else child)
    return replace(node, children=tuple(children))


def remove_words(node: Phrase, dropped: set[int]) -> Phrase:
    """The tree less these words, given by their `id`."""
    kept = [child for child in node.children if id(child) not in dropped]
    return replace(node, children=tuple(remove_words(c, dropped) if isinstance(c, Phrase) else c for c in kept))


def write_tree(node: Node) -> str:
    """
    >>> write_tree(phrase("S", [phrase("NP", [word("it", "PRON")]), word("rains", "VERB")]))
    '(S (NP (PRON it)) (VERB rains))'
    """
    if isinstance(node, Word):
        return f"({node.tag} {node.text})"
    return f"({node.label} {' '.join(write_tree(child) for child in node.children)})"


def find_span(node: Node, mark: str, start: int = 0) -> tuple[int, int] | None:
    """Where the words of the phrase with this mark begin and end, or None."""
    if isinstance(node, Word):
        return None
    if node.mark == mark:
        return start, start + sum(1 for _ in leaves(node))
    for child in node.children:
        found = find_span(child, mark, start)
        if found is not None:
            return found
        start += sum(1 for _ in leaves(child))
    return None


def join_words(words: Sequence[str], language: str) -> str:
    """As people write it: marks cling to the word before them, elided words to the next.

    >>> join_words(["L'", "ami", "de", "Paul", "dort", "."], "fr"), join_words(["Tu", "dors", "?"], "fr")
    ("L'ami de Paul dort.", 'Tu dors ?')
    """
    return place_words(words, language)[0]


def place_words(words: Sequence[str], language: str) -> tuple[str, list[int]]:
    """The joined text, and the character at which each word begins."""
    text, starts = "", []
    for i, token in enumerate(words):
        clings = token in (".", ",", "'s") or (token == "?" and language != "fr")
        follows = i > 0 and language == "fr" and words[i - 1].endswith("'")
        text += "" if i == 0 or clings or follows else " "
        starts.append(len(text))
        text += token
    return text, starts


def align(first: Sequence[Word], second: Sequence[Word]) -> tuple[tuple[int, int], ...]:
    """The pairs of positions whose words share a key."""
    return tuple((i, j) for i, a in enumerate(first) for j, b in enumerate(second) if a.keys & b.keys)
