"""The grammar's sentences as files in the forms that other tools read, line i of each about the same sentence.

A README.md among them says what each holds: corpus_readme.py has its words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.builtin.grammar.corpus_readme import Counts, readme
from regard.data.builtin.grammar.diagnostics import TASKS
from regard.data.builtin.grammar.forms import LANGUAGES
from regard.data.builtin.grammar.grammar import PAIRS, Grammar, Sentence
from regard.data.builtin.grammar.sentences import KINDS, check_kind
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
    "sentiment": {f"{a}.sentiment.tsv": _of(lambda s, a: f"{s.text(a)}\t{s.sentiment}\n", a) for a in LANGUAGES},
}
PARTS = (*LINES, "questions", "scenes", *TASKS)
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
    (folder / "README.md").write_text(readme(folder, plan.command, plan.written, counts), encoding="utf-8")


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
        files = [
            (stack.enter_context(open(folder / f"{split}.{ending}", "w", encoding="utf-8")), line)
            for part in plan.written
            for ending, line in LINES.get(part, {}).items()
        ]
        for sentence in Grammar(plan.seed).sentences(split, n, plan.kind):
            for file, line in files:
                file.write(line(sentence))
            if "questions" in plan.written and sentence.question is not None:
                paragraphs.append(_paragraph(sentence))
            if "scenes" in plan.written:
                captions += _draw(folder / "scenes", sentence, plan.n_pixels)
            progress(f"{split} sentences", sentence.index + 1, n)
    if "questions" in plan.written:
        content = {"version": "1.1", "data": [{"title": f"grammar {split}", "paragraphs": paragraphs}]}
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (folder / f"{split}.questions.json").write_text(text + "\n", encoding="utf-8")
    return captions, len(paragraphs)


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
