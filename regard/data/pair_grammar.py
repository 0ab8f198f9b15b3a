"""Pairs that need no files: `grammar:en-de`, written by the built-in grammar, and its diagnostics.

    grammar:en-de          English to German; any two of en, de, fr
    grammar:en-trees       English to its constituency trees, which is parsing; also de-trees, fr-trees
    grammar:en-de/long     sentences of one kind, here of one to six clauses; see `regard data grammar --help`
    grammar:dates          "the third of May 2021" to "2021-05-03"; also numbers, reversal, copying
    grammar:en-de:5000     so many pairs (else 20,000 to learn from and 1,000 each to validate and test)
    grammar:en-de@test     of this split; left out, it is that of the setting which names it

Words have spaces between them, punctuation too. Validation and test hold combinations that training never shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from regard.data.cache import make_kind_folder
from regard.data.checksums import is_whole, keep_file
from regard.errors import RegardError, nearest

if TYPE_CHECKING:
    from regard.data.builtin.grammar.grammar import Sentence

PREFIX = "grammar:"
VERSION = 1  # of what the grammar writes: another number makes the files again
N_PAIRS = {"train": 20_000, "valid": 1_000, "test": 1_000}
N_SEARCHED = 1_000  # sentences of each split among which a pair is looked for
TREES = "trees"
DIAGNOSTICS = ("dates", "numbers", "reversal", "copying")
KINDS = ("event", "opinion", "complex", "question", "scene", "ambiguous", "long")
_NAME = re.compile(r"grammar:(?P<what>[a-z]+(?:-[a-z]+)?)(?::(?P<n>\d+))?(?:@(?P<split>train|valid|test))?")


def is_grammar(name: str) -> bool:
    return name.startswith(PREFIX)


def complete_name(name: str, split: str) -> str:
    """The name with its number of pairs and its split written out.

    >>> complete_name("grammar:en-de", "valid"), complete_name("grammar:dates:50@test", "train")
    ('grammar:en-de:1000@valid', 'grammar:dates:50@test')
    """
    what, n, given = _read(name)
    split = given or split
    return f"{PREFIX}{what}:{n or N_PAIRS[split]}@{split}"


def name_held_out(name: str, split: str) -> str:
    """What is validated and tested on where only training pairs were named.

    >>> name_held_out("grammar:en-de:5000@train", "test")
    'grammar:en-de:1000@test'
    """
    return complete_name(f"{PREFIX}{_read(name)[0]}", split)


class PairsOfSplit(NamedTuple):
    """What a name stands for, in one split: how many pairs, and the first few of them."""

    split: str
    n_pairs: int
    first: list[tuple[str, str]]


def preview_grammar(name: str, n_first: int) -> list[PairsOfSplit]:
    """What training on a name reads, validates and tests on; one split where the name says which.

    >>> [(found.split, found.n_pairs, len(found.first)) for found in preview_grammar("grammar:en-de:50", 2)]
    [('train', 50, 2), ('valid', 1000, 2), ('test', 1000, 2)]
    """
    whole = [complete_name(name, "train")]
    if _read(name)[2] is None:
        whole += [name_held_out(name, split) for split in ("valid", "test")]
    found = []
    for what, n, split in map(_read, whole):
        assert n is not None
        assert split is not None
        found.append(PairsOfSplit(split, n, list(islice(_draw_pairs(what, n, split), n_first))))
    return found


def find_form(name: str) -> str:
    """How the pairs of a name are written.

    >>> find_form("grammar:en-trees:50"), find_form("grammar:en-de")
    ('trees', 'tsv')
    """
    return "trees" if _read(name)[0].partition("/")[0].endswith(f"-{TREES}") else "tsv"


def grammar_file(name: str, cache: Path) -> Path:
    """The pairs of a complete name as a file in the cache, TSV or one tree a line.

    It is made the first time, and again where it was damaged.
    """
    path = make_kind_folder(cache, "builtin") / f"{re.sub('[:@/]', '-', name)}-{VERSION}.txt"
    if not is_whole(path):
        what, n, split = _read(name)
        assert n is not None, "how many"
        assert split is not None, "of which split"
        is_tree = find_form(name) == "trees"
        drawn = _draw_pairs(what, n, split)
        lines = [f"{target}\n" if is_tree else f"{source}\t{target}\n" for source, target in drawn]
        keep_file(path, "".join(lines).encode())
    return path


def find_links(name: str, source: Sequence[str], target: Sequence[str]) -> tuple[tuple[int, int], ...] | None:
    """Which words of a pair belong together, where it is one of the first of a name's sentences; None where it is not.

    >>> first = preview_grammar("grammar:en-de:1@test", 1)[0].first[0]
    >>> find_links("grammar:en-de", *(words.split() for words in first))[0]
    (0, 0)
    """
    if not is_grammar(name):
        return None
    what, _, kind = _read(name)[0].partition("/")
    if what in DIAGNOSTICS or what.endswith(f"-{TREES}"):
        return None
    first, second = what.split("-")
    return _list_links(first, second, kind or None).get((tuple(source), tuple(target)))


@cache
def _list_links(
    first: str, second: str, kind: str | None
) -> dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[tuple[int, int], ...]]:
    """The links of the first sentences of every split, by their words; writing the sentences takes a second."""
    return {
        (tuple(sentence.words(first)), tuple(sentence.words(second))): _links_of(sentence.alignments, first, second)
        for split in ("train", "valid", "test")  # where a pair comes twice, the test split's counts
        for sentence in _write_sentences(split, N_SEARCHED, kind)
    }


def _links_of(
    known: Mapping[tuple[str, str], Sequence[tuple[int, int]]], first: str, second: str
) -> tuple[tuple[int, int], ...]:
    """The links from one language to another, which are known in one order of the two."""
    if (first, second) in known:
        return tuple(known[first, second])
    return tuple((j, i) for i, j in known[second, first])


def _draw_pairs(what: str, n: int, split: str) -> Iterator[tuple[str, str]]:
    """Both sides of pairs, as one reads them: the target of a sentence that is parsed is its tree."""
    from regard.data.builtin.grammar.diagnostics import TASKS  # lazy, as in `_write_sentences`

    if what in TASKS:
        yield from TASKS[what](split, n, 0)
        return
    languages, _, kind = what.partition("/")
    source, target = languages.split("-")
    for sentence in _write_sentences(split, n, kind or None):
        words = " ".join(sentence.words(source))
        yield words, sentence.trees[source] if target == TREES else " ".join(sentence.words(target))


def _write_sentences(split: str, n: int, kind: str | None = None) -> Iterator[Sentence]:
    # The lexicon is read when it is needed: configs import this module, and most runs are on files.
    from regard.data.builtin.grammar import Grammar

    return Grammar().sentences(split, n, kind)


def _read(name: str) -> tuple[str, int | None, str | None]:
    from regard.data.builtin.grammar.meaning import LANGUAGES  # lazy, as in `_write_sentences`

    sentences = [f"{a}-{b}" for a in LANGUAGES for b in (*LANGUAGES, TREES) if a != b]
    languages, slash, rest = name.partition("/")
    if not slash:
        return read_name(name, [*sentences, *DIAGNOSTICS], "pairs", "en-de:5000")
    kind = re.split("[:@]", rest)[0]
    what, n, split = read_name(languages + rest.removeprefix(kind), [*sentences, *DIAGNOSTICS], "pairs", "en-de:5000")
    if kind not in KINDS or what in DIAGNOSTICS:
        raise RegardError(
            f"'{name}' names no kind of sentence.{nearest(kind, KINDS)} Kinds are {', '.join(KINDS)}, each after two "
            f"languages, or one and {TREES}: {PREFIX}en-de/long."
        )
    return f"{what}/{kind}", n, split


def read_name(name: str, names: Sequence[str], unit: str, example: str) -> tuple[str, int | None, str | None]:
    """What a name of the built-in grammar asks for, how many, of which split; None where it does not say."""
    match = _NAME.fullmatch(name)
    if match is None or match["what"] not in names or match["n"] == "0":
        what = name.removeprefix(PREFIX).partition(":")[0]
        raise RegardError(
            f"'{name}' names no {unit} of the built-in grammar.{nearest(what, names)} There are {', '.join(names)}, "
            f"each with a number of {unit} if you like: {PREFIX}{example}."
        )
    return match["what"], int(match["n"]) if match["n"] else None, match["split"]
