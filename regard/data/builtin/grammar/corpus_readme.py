"""The README.md of a folder that `regard data grammar` has written: every file with its form and its first line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from regard.data.builtin.grammar.diagnostics import TASKS
from regard.data.builtin.grammar.forms import LANGUAGES

TAB = " ⇥ "  # what an example shows of a tab, which a reader would not see


class Described(NamedTuple):
    """Files of one form: the names of the first split's, and what is in them."""

    names: tuple[str, ...]
    form: str


class Counts(NamedTuple):
    """How much of everything one split has."""

    n_sentences: int = 0
    n_questions: int = 0
    n_scenes: int = 0
    n_pairs: int = 0


def _each(pattern: str) -> tuple[str, ...]:
    return tuple(pattern.format(language) for language in LANGUAGES)


FILES: dict[str, tuple[Described, ...]] = {
    "text": (
        Described(_each("{{split}}.{}"), "a sentence a line, as people write it"),
        Described(_each("{{split}}.tok.{}"), "the same, with a space between all words: what the files below count"),
    ),
    "align": (
        Described(
            ("{split}.en-de.align", "{split}.en-fr.align", "{split}.de-fr.align"),
            "which words correspond (Pharaoh: `2-3` links word 2 of the first language to word 3 of the second, "
            "counted from 0)",
        ),
    ),
    "pos": (
        Described(
            _each("{{split}}.{}.pos"),
            "a word and its universal part of speech a line, an empty line after a sentence (CoNLL)",
        ),
    ),
    "ner": (
        Described(
            _each("{{split}}.{}.ner"),
            "the same with names: `B-PER`, `I-PER` (people), `B-LOC`, `I-LOC` (towns and countries), else `O`",
        ),
    ),
    "trees": (
        Described(
            _each("{{split}}.{}.mrg"),
            "a constituency tree a line, its phrases named as in the Penn (English), TIGER (German) or French treebank",
        ),
    ),
    "sentiment": (
        Described(_each("{{split}}.{}.sentiment.tsv"), "a sentence and `positive`, `negative` or `neutral`"),
    ),
    "questions": (Described(("{split}.questions.json",), "questions with the span that answers them (SQuAD 1.1)"),),
    "scenes": (
        Described(("scenes/captions.tsv",), "a header; then picture, split and caption in three languages"),
        Described(_each("scenes/captions.{}.tsv"), "picture and caption, as `regard train` reads them"),
        Described(("scenes/{split}.txt",), "the pictures of a split"),
    ),
    "dates": (Described(("{split}.dates.tsv",), "a date in one of seven ways of writing it, and year-month-day"),),
    "numbers": (Described(("{split}.numbers.tsv",), "a number below ten million in words or figures, and its digits"),),
    "reversal": (Described(("{split}.reversal.tsv",), "two to twelve words, and the same with the last first"),),
    "copying": (Described(("{split}.copying.tsv",), "two to twelve words, and the same"),),
}
NOTES = {
    "sentiment": "**Sentiment** belongs to the meaning, so it is the same in three languages. Adjectives that praise "
    "or blame make it, and love, like, admire, hate, well, badly, happily, sadly; not, never and rarely turn it round. "
    "A sentence without these is neutral, and so is a question.",
    "questions": "**Questions** are in English, one about every statement; sentences of the kind `question` have none. "
    "The number in an `id` is that of the sentence, counted from 0.",
    "scenes": "**Scenes** are of sentences of the kind `scene` alone: `scenes/train-000012.png` is a picture of "
    "sentence 12, counted from 0.",
}


def readme(folder: Path, command: str, parts: Sequence[str], counts: Mapping[str, Counts]) -> str:
    """What is in `folder`, whose files of `parts` are there already; `command` writes them again."""
    first, *others = counts
    has_sentences, has_tasks = bool(set(parts) - set(TASKS)), bool(set(parts) & set(TASKS))
    lines = ["# English, German and French from Regard's built-in grammar", "", f"    {command}", ""]
    if others:
        named = " and ".join(f"`{split}.`" for split in others)
        lines += [f"The files of `{first}.` are shown; those of {named} have the same form.", ""]
    if set(parts) - set(TASKS) - {"questions", "scenes"}:
        lines += ["Line i of the files of sentences, block i of the tagged ones, is about the same sentence.", ""]
    lines += ["| files | what is in them | begins |", "|---|---|---|"]
    lines += [_row(folder, described, first) for part in parts for described in FILES[part]]
    lines += ["", *_table(counts, parts), ""]
    if others:
        lines += [
            "Validation and test hold combinations that training never shows: verb and object, adjective and noun; in "
            "the tasks day and month, a number, two words side by side.",
            "",
        ]
    for part in parts:
        lines += [NOTES[part], ""] if part in NOTES else []
    if has_sentences and has_tasks:
        lines += ["Dates, numbers, reversal and copying are tasks of their own: their lines are about no sentence.", ""]
    return "\n".join(lines)


def _row(folder: Path, described: Described, split: str) -> str:
    names = [name.format(split=split) for name in described.names]
    return f"| {', '.join(f'`{name}`' for name in names)} | {described.form} | {_beginning(folder / names[0])} |"


def _beginning(path: Path) -> str:
    """The first line; of JSON, the first that asks something."""
    with open(path, encoding="utf-8") as file:
        found = (line.strip() for line in file)
        line = next((line for line in found if path.suffix != ".json" or line.startswith('"question"')), "")
    return f"`{line.replace(chr(9), TAB)}`" if line else ""


def _table(counts: Mapping[str, Counts], parts: Sequence[str]) -> Iterator[str]:
    """How many there are of what was written."""
    has_sentences, has_tasks = bool(set(parts) - set(TASKS)), bool(set(parts) & set(TASKS))
    columns = {
        "sentences": has_sentences,
        "questions": "questions" in parts,
        "scenes": "scenes" in parts,
        "pairs of each task": has_tasks,
    }
    shown = [i for i, is_there in enumerate(columns.values()) if is_there]
    names = list(columns)
    yield f"| split | {' | '.join(names[i] for i in shown)} |"
    yield "|---|" + "---|" * len(shown)
    for split, counted in counts.items():
        yield f"| {split} | {' | '.join(f'{counted[i]:,}' for i in shown)} |"
