"""The grammar's sentences as files in the forms that other tools read, line i of each about the same sentence.

train.en .de .fr              a sentence a line, as people write it
train.tok.en .de .fr          the same with spaces between all words: what the files below count
train.en-de.align ...         word alignments (Pharaoh: 0-0 1-2)
train.en.pos, train.en.ner    a word and its tag a line, an empty line between sentences (CoNLL)
train.en.mrg                  constituency trees
train.sentiment.tsv           positive, negative or neutral
train.questions.json          questions and answer spans in English (SQuAD 1.1)
scenes/*.png, captions.tsv    pictures of the sentences of the kind "scene"; captions.en.tsv ... and train.txt ... hold
                              the captions of one language and the names of one split, as `regard train` takes them
train.dates.tsv, numbers, reversal, copying    source and target of the diagnostics
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.builtin.grammar.diagnostics import TASKS
from regard.data.builtin.grammar.forms import LANGUAGES
from regard.data.builtin.grammar.grammar import PAIRS, Grammar, Sentence
from regard.data.builtin.grammar.sentences import check_kind
from regard.data.builtin.grammar.words import placed
from regard.errors import RegardError, nearest
from regard.files import write_folder_atomically

Line = Callable[[Sentence], str]
Progress = Callable[[str, int, int | None], None]
Captioned = tuple[str, str, tuple[str, ...]]
"""A picture's name, its split, and its caption in every language."""


def _columns(words: Collection[str], tags: Collection[str]) -> str:
    return "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True)) + "\n"


def _of(write: Callable[[Sentence, str], str], language: str) -> Line:
    return lambda sentence: write(sentence, language)


def _links(pair: tuple[str, str]) -> Line:
    return lambda sentence: " ".join(f"{i}-{j}" for i, j in sentence.alignments[pair]) + "\n"


LINES: dict[str, dict[str, Line]] = {  # what -> ending of the file -> what it says of a sentence
    "text": {a: _of(lambda s, a: s.text(a) + "\n", a) for a in LANGUAGES}
    | {f"tok.{a}": _of(lambda s, a: " ".join(s.words(a)) + "\n", a) for a in LANGUAGES},
    "align": {f"{a}-{b}.align": _links((a, b)) for a, b in PAIRS},
    "pos": {f"{a}.pos": _of(lambda s, a: _columns(s.words(a), s.tags[a]), a) for a in LANGUAGES},
    "ner": {f"{a}.ner": _of(lambda s, a: _columns(s.words(a), s.entities[a]), a) for a in LANGUAGES},
    "trees": {f"{a}.mrg": _of(lambda s, a: s.trees[a] + "\n", a) for a in LANGUAGES},
    "sentiment": {"sentiment.tsv": lambda s: f"{s.text('en')}\t{s.sentiment}\n"},
}
PARTS = (*LINES, "questions", "scenes", *TASKS)


@dataclass(frozen=True)
class CorpusPlan:
    """What is to be written: how much of each split, and which parts."""

    n_of: dict[str, int]
    seed: int = 0
    parts: tuple[str, ...] = PARTS
    kind: str | None = None
    n_pixels: int = 96

    def __post_init__(self) -> None:
        check_kind(self.kind)
        for part in self.parts:
            if part not in PARTS:
                raise RegardError(
                    f"There is nothing called '{part}' to write.{nearest(part, PARTS)} There is: {', '.join(PARTS)}."
                )


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
    for split, n in plan.n_of.items():
        if set(plan.parts) - set(TASKS):
            captions += _write_sentences(folder, plan, split, n, progress)
        for name in plan.parts:
            if name in TASKS:
                lines = [f"{pair.source}\t{pair.target}\n" for pair in TASKS[name](split, n, plan.seed)]
                (folder / f"{split}.{name}.tsv").write_text("".join(lines), encoding="utf-8")
    if "scenes" in plan.parts:
        _write_captions(folder / "scenes", captions, plan.n_of)


def _write_captions(folder: Path, captions: list[Captioned], splits: Collection[str]) -> None:
    table = [("file", "split", *LANGUAGES), *((name, split, *texts) for name, split, texts in captions)]
    files = {"captions.tsv": table}
    files |= {f"captions.{a}.tsv": [(name, texts[i]) for name, _, texts in captions] for i, a in enumerate(LANGUAGES)}
    files |= {f"{each}.txt": [(name,) for name, split, _ in captions if split == each] for each in splits}
    for name, rows in files.items():
        (folder / name).write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def _write_sentences(folder: Path, plan: CorpusPlan, split: str, n: int, progress: Progress) -> list[Captioned]:
    """One split's files of sentences; returns the captions of its scenes."""
    paragraphs: list[dict[str, Any]] = []
    captions: list[Captioned] = []
    with ExitStack() as stack:
        files = [
            (stack.enter_context(open(folder / f"{split}.{ending}", "w", encoding="utf-8")), line)
            for part in plan.parts
            for ending, line in LINES.get(part, {}).items()
        ]
        for sentence in Grammar(plan.seed).sentences(split, n, plan.kind):
            for file, line in files:
                file.write(line(sentence))
            if "questions" in plan.parts and sentence.question is not None:
                paragraphs.append(_paragraph(sentence))
            if "scenes" in plan.parts:
                captions += _draw(folder / "scenes", sentence, plan.n_pixels)
            progress(f"{split} sentences", sentence.index + 1, n)
    if "questions" in plan.parts:
        content = {"version": "1.1", "data": [{"title": f"grammar {split}", "paragraphs": paragraphs}]}
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (folder / f"{split}.questions.json").write_text(text + "\n", encoding="utf-8")
    return captions


def _paragraph(sentence: Sentence) -> dict[str, Any]:
    assert sentence.question is not None
    assert sentence.answer is not None
    text, starts = placed(sentence.en, "en")
    first, last = sentence.answer[0], sentence.answer[1] - 1
    start, end = starts[first], starts[last] + len(sentence.en[last])
    question = placed(sentence.question, "en")[0]
    answer = {"text": text[start:end], "answer_start": start}
    return {
        "context": text,
        "qas": [{"id": f"{sentence.split}-{sentence.index}", "question": question, "answers": [answer]}],
    }


def _draw(folder: Path, sentence: Sentence, n_pixels: int) -> list[Captioned]:
    folder.mkdir(exist_ok=True)
    if sentence.scene is None:
        return []
    name = f"{sentence.split}-{sentence.index:06}.png"
    (folder / name).write_bytes(sentence.scene.png(n_pixels))
    return [(name, sentence.split, tuple(sentence.text(a) for a in LANGUAGES))]
