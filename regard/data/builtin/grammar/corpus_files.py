"""The grammar's sentences as files in the forms that other tools read, line i of each about the same sentence.

A README.md among them shows every file with its form and its first line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.builtin.grammar.diagnostics import TASKS
from regard.data.builtin.grammar.grammar import PAIRS, Grammar, Sentence
from regard.data.builtin.grammar.meaning import LANGUAGES
from regard.data.builtin.grammar.sentences import KINDS, check_kind
from regard.data.builtin.grammar.words import place_words
from regard.errors import RegardError, nearest
from regard.files import write_folder_atomically

TAB = " ⇥ "  # what an example shows of a tab, which a reader would not see

Line = Callable[[Sentence, str], str]
Progress = Callable[[str, int, int | None], None]
Captioned = tuple[str, str, tuple[str, ...]]
"""A picture's name, its split, and its caption in every language."""


class Files(NamedTuple):
    """Files of one form: a pattern of their names, what they are for, what is in them, and what a sentence adds.

    The pattern has places for the split and for each of `of`, languages or pairs of them.
    """

    pattern: str
    form: str
    of: tuple[str, ...] = ("",)
    line: Line | None = None

    def names(self, split: str) -> list[str]:
        return [self.pattern.format(split=split, of=of) for of in self.of]


class Counts(NamedTuple):
    """How much of everything one split has."""

    n_sentences: int = 0
    n_questions: int = 0
    n_scenes: int = 0
    n_pairs: int = 0


def _columns(words: Collection[str], tags: Collection[str]) -> str:
    return "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True)) + "\n"


def _links(sentence: Sentence, pair: str) -> str:
    first, second = pair.split("-")
    return " ".join(f"{i}-{j}" for i, j in sentence.alignments[first, second]) + "\n"


FILES: dict[str, tuple[Files, ...]] = {
    "text": (
        Files("{split}.{of}", "a sentence a line, as people write it", LANGUAGES, lambda s, a: s.text(a) + "\n"),
        Files(
            "{split}.tok.{of}",
            "these sentences with a space between all words: what the files below count",
            LANGUAGES,
            lambda s, a: " ".join(s.words(a)) + "\n",
        ),
    ),
    "align": (
        Files(
            "{split}.{of}.align",
            "which words correspond (Pharaoh: `2-3` links word 2 of the first language to word 3 of the second, "
            "counted from 0)",
            tuple(f"{a}-{b}" for a, b in PAIRS),
            _links,
        ),
    ),
    "pos": (
        Files(
            "{split}.{of}.pos",
            "a word and its universal part of speech a line, an empty line after a sentence (CoNLL)",
            LANGUAGES,
            lambda s, a: _columns(s.words(a), s.tags[a]),
        ),
    ),
    "ner": (
        Files(
            "{split}.{of}.ner",
            "a word and what name it is in a line: `B-PER`, `I-PER` (people), `B-LOC`, `I-LOC` (places), else `O`",
            LANGUAGES,
            lambda s, a: _columns(s.words(a), s.entities[a]),
        ),
    ),
    "trees": (
        Files(
            "{split}.{of}.mrg",
            "a constituency tree a line, its phrases named as in the Penn (English), TIGER (German) or French treebank",
            LANGUAGES,
            lambda s, a: s.trees[a] + "\n",
        ),
    ),
    "sentiment": (
        Files(
            "{split}.{of}.sentiment.tsv",
            "a sentence and `positive`, `negative` or `neutral`",
            LANGUAGES,
            lambda s, a: f"{s.text(a)}\t{s.sentiment}\n",
        ),
    ),
    "questions": (Files("{split}.questions.json", "questions with the span that answers them (SQuAD 1.1)"),),
    "scenes": (
        Files("scenes/captions.tsv", "a header; then picture, split and caption in three languages"),
        Files("scenes/captions.{of}.tsv", "picture and caption, as `regard train` reads them", LANGUAGES),
        Files("scenes/{split}.txt", "the pictures of a split"),
    ),
    "dates": (Files("{split}.dates.tsv", "a date in one of seven ways of writing it, and year-month-day"),),
    "numbers": (Files("{split}.numbers.tsv", "a number below ten million in words or figures, and its digits"),),
    "reversal": (Files("{split}.reversal.tsv", "two to twelve words, and the same with the last first"),),
    "copying": (Files("{split}.copying.tsv", "two to twelve words, and the same"),),
}
PARTS = tuple(FILES)
NOTES = {
    "sentiment": "**Sentiment** belongs to the meaning, so it is the same in three languages. Adjectives that praise "
    "or blame make it, and love, like, admire, hate, well, badly, happily, sadly; not, never and rarely turn it round. "
    "A sentence without these is neutral, and so is a question.",
    "questions": "**Questions** are in English, one about every statement; sentences of the kind `question` have none. "
    "The number in an `id` is that of the sentence, counted from 0.",
    "scenes": "**Scenes** are of sentences of the kind `scene` alone: `scenes/train-000012.png` is a picture of "
    "sentence 12, counted from 0.",
}
KINDS_WITH = {"questions": [kind for kind in KINDS if kind != "question"], "scenes": ["scene"]}  # others: every kind


@dataclass(frozen=True)
class CorpusPlan:
    """What is to be written: how much of each split, and which parts; None: all that the kind has."""

    n_of: dict[str, int]
    seed: int = 0
    parts: tuple[str, ...] | None = None
    kind: str | None = None
    n_pixels: int = 96

    def __post_init__(self) -> None:
        check_kind(self.kind)
        for part in self.parts or ():
            if part not in PARTS:
                raise RegardError(
                    f"There is nothing called '{part}' to write.{nearest(part, PARTS)} There is: {', '.join(PARTS)}."
                )
            if not self._has(part):
                kinds = KINDS_WITH[part]
                those = f"kind {kinds[0]} does" if len(kinds) == 1 else f"kinds {', '.join(kinds)} do"
                raise RegardError(
                    f"The kind '{self.kind}' has no {part}, but the {those}: give --kind {kinds[0]}, or leave --kind "
                    "out for sentences of every kind."
                )

    def _has(self, part: str) -> bool:
        return self.kind is None or self.kind in KINDS_WITH.get(part, KINDS)

    @property
    def written(self) -> tuple[str, ...]:
        """The parts to write."""
        return tuple(part for part in PARTS if part in self.parts) if self.parts else tuple(filter(self._has, PARTS))

    @property
    def command(self) -> str:
        """What writes these files again."""
        words = [f"--{'n' if split == 'train' else split} {n}" for split, n in self.n_of.items()]
        words += [f"--seed {self.seed}"]
        words += [f"--kind {self.kind}"] if self.kind else []
        words += [f"--only {part}" for part in self.written] if self.parts else []
        words += [f"--pixels {self.n_pixels}"] if "scenes" in self.written else []
        return f"regard data grammar {' '.join(words)} --out FOLDER"


def write_corpus(folder: Path, plan: CorpusPlan, progress: Progress = lambda what, done, total: None) -> None:
    """Write the files into `folder`, which is new or empty; all of them or none."""
    if folder.exists():
        if not folder.is_dir():
            raise RegardError(f"'{folder}' is a file; give --out a folder that does not exist yet.")
        held = sorted(path.name for path in folder.iterdir())
        if held:
            raise RegardError(f"'{folder}' is not empty (it holds {held[0]}); choose another --out.")
        folder.rmdir()
    write_folder_atomically(folder, lambda aside: _fill(aside, plan, progress))


def _fill(folder: Path, plan: CorpusPlan, progress: Progress) -> None:
    captions: list[Captioned] = []
    counts: dict[str, Counts] = {}
    for split, n in plan.n_of.items():
        counted = Counts(n_pairs=n)
        if set(plan.written) - set(TASKS):
            drawn, n_questions = _write_sentences(folder, plan, split, n, progress)
            captions += drawn
            counted = Counts(n, n_questions, len(drawn), n)
        for name in plan.written:
            if name in TASKS:
                lines = [f"{pair.source}\t{pair.target}\n" for pair in TASKS[name](split, n, plan.seed)]
                (folder / f"{split}.{name}.tsv").write_text("".join(lines), encoding="utf-8")
        counts[split] = counted
    if "scenes" in plan.written:
        _write_captions(folder / "scenes", captions, plan.n_of)
    (folder / "README.md").write_text(write_readme(folder, plan.command, plan.written, counts), encoding="utf-8")


def _write_captions(folder: Path, captions: list[Captioned], splits: Collection[str]) -> None:
    table = [("file", "split", *LANGUAGES), *((name, split, *texts) for name, split, texts in captions)]
    files = {"captions.tsv": table}
    files |= {f"captions.{a}.tsv": [(name, texts[i]) for name, _, texts in captions] for i, a in enumerate(LANGUAGES)}
    files |= {f"{each}.txt": [(name,) for name, split, _ in captions if split == each] for each in splits}
    for name, rows in files.items():
        (folder / name).write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def _write_sentences(
    folder: Path, plan: CorpusPlan, split: str, n: int, progress: Progress
) -> tuple[list[Captioned], int]:
    """One split's files of sentences; returns the captions of its scenes, and how many questions were asked."""
    paragraphs: list[dict[str, Any]] = []
    captions: list[Captioned] = []
    with ExitStack() as stack:
        opened = [
            (stack.enter_context(open(folder / name, "w", encoding="utf-8")), files.line, of)
            for part in plan.written
            for files in FILES[part]
            for name, of in zip(files.names(split), files.of, strict=True)
            if files.line is not None
        ]
        for sentence in Grammar(plan.seed).sentences(split, n, plan.kind):
            for file, line, of in opened:
                file.write(line(sentence, of))
            if "questions" in plan.written and sentence.question is not None:
                paragraphs.append(_paragraph(sentence))
            if "scenes" in plan.written:
                captions += _draw_scene(folder / "scenes", sentence, plan.n_pixels)
            progress(f"{split} sentences", sentence.index + 1, n)
    if "questions" in plan.written:
        content = {"version": "1.1", "data": [{"title": f"grammar {split}", "paragraphs": paragraphs}]}
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (folder / f"{split}.questions.json").write_text(text + "\n", encoding="utf-8")
    return captions, len(paragraphs)


def _paragraph(sentence: Sentence) -> dict[str, Any]:
    assert sentence.question is not None
    assert sentence.answer is not None
    text, starts = place_words(sentence.en, "en")
    first, last = sentence.answer[0], sentence.answer[1] - 1
    start, end = starts[first], starts[last] + len(sentence.en[last])
    question = place_words(sentence.question, "en")[0]
    answer = {"text": text[start:end], "answer_start": start}
    return {
        "context": text,
        "qas": [{"id": f"{sentence.split}-{sentence.index}", "question": question, "answers": [answer]}],
    }


def _draw_scene(folder: Path, sentence: Sentence, n_pixels: int) -> list[Captioned]:
    folder.mkdir(exist_ok=True)
    if sentence.scene is None:
        return []
    name = f"{sentence.split}-{sentence.index:06}.png"
    (folder / name).write_bytes(sentence.scene.png(n_pixels))
    return [(name, sentence.split, tuple(sentence.text(a) for a in LANGUAGES))]


def write_readme(folder: Path, command: str, parts: Sequence[str], counts: Mapping[str, Counts]) -> str:
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
    lines += [_row(folder, files, first) for part in parts for files in FILES[part]]
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


def _row(folder: Path, files: Files, split: str) -> str:
    names = files.names(split)
    return f"| {', '.join(f'`{name}`' for name in names)} | {files.form} | {_read_beginning(folder / names[0])} |"


def _read_beginning(path: Path) -> str:
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
