"""Labelled texts: what an example is, and how files of every form are read.

A label is a class, a number, a tag for every word, or the spans of a passage that answer a question. What cannot be
used is a `BadLine` that says why; whoever reads decides whether it ends everything or is left out and counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from regard.data.reading import (
    MAX_LINE,
    BadLine,
    parse_record,
    read_lines,
    read_text_blocks,
    refuse_surrogates,
    tell_missing_field,
)
from regard.data.source import TextFile
from regard.data.tables import read_rows
from regard.errors import RegardError, nearest
from regard.untrusted.small_files import parse_json
from regard.untrusted.values import make_printable, quote

CLASSES, NUMBERS, TAGS, ANSWERS = "classes", "numbers", "tags", "answers"
MAX_WHOLE = 2**26  # characters of a file that is read whole
MAX_WORDS = 10_000  # in a sentence with tags: more is a file that lost its blank lines
MAX_PASSAGES = 2**26  # characters of the passages of a file, once for every question, beyond PER_FILE times its length
PER_FILE = 8  # SQuAD 2.0, 45 MB, has 100 million in all; many questions a passage make it up to nine times the length
TEXT_NAMES = ("text", "sentence", "sentence1", "review", "content")
LABEL_NAMES = ("label", "class", "sentiment", "stars", "score", "tags")
DOCUMENT_START = "-DOCSTART-"
CONLLU_COLUMNS = {"upos": 3, "xpos": 4}
LABELLED_FORM = (
    "A labelled file has lines such as 'positive I love this film', or is a table (.tsv, .csv) of texts and labels: "
    "'I love this film', a tab, 'positive'."
)
BETWEEN = {"tsv": "a tab", "csv": "a comma, a semicolon or a tab"}


class Answer(NamedTuple):
    """A span of a passage: where it begins, in characters, and its text."""

    start: int
    text: str


Label = str | float | tuple[str, ...] | tuple[Answer, ...]


@dataclass(frozen=True)
class Example:
    """One text, or two; of a question, the question and the passage. `place` says where it was read."""

    texts: tuple[str, ...]
    label: Label
    place: str = ""

    @property
    def words(self) -> list[str]:
        """Of an example with a tag for each."""
        return self.texts[0].split(" ")


class Columns(NamedTuple):
    """Which columns or fields are asked for, each by name or by number from 1; None: those that usually are."""

    text: str | None = None
    second: str | None = None
    label: str | None = None


Found = Iterator[tuple[str, Example | BadLine]]
Cells = tuple[Any, Any, Any]
"""The text, the second text or None, and the label, as a file has them."""


def read_file(file: TextFile, form: str, kind: str, columns: Columns) -> Found:
    """Every example of a file, or what is wrong with it, and where it stands."""
    if kind == ANSWERS:
        if form != "squad":
            raise RegardError(
                f"{file.name} is read as {form}, and questions with answers are read from SQuAD's JSON: a file that "
                "ends in .json, or data.format squad. For classes take --task classify, for tags --task tag."
            )
        return _read_squad(file)
    if form == "squad":
        raise RegardError(
            f"{file.name} is read as SQuAD's JSON, which has answers to questions, and no {kind}. Take --task "
            "answer; if the file has another form, set data.format, to jsonl for an object a line."
        )
    if form in ("conll", "conllu"):
        if kind != TAGS:
            raise RegardError(
                f"{file.name} is read as {form}, which has a tag for each word, and no {kind}. Take --task tag, or set "
                "data.format."
            )
        return _read_columns(file, columns.label) if form == "conll" else _read_conllu(file, columns.label)
    readers: dict[str, Callable[[], Iterator[tuple[str, Cells | BadLine]]]] = {
        "lines": lambda: _read_label_lines(file),
        "jsonl": lambda: _read_records(file, columns),
        "tsv": lambda: _read_table(file, form, columns),
        "csv": lambda: _read_table(file, form, columns),
    }
    return _make_examples(readers[form](), kind)


def _make_examples(found: Iterator[tuple[str, Cells | BadLine]], kind: str) -> Found:
    for place, cells in found:
        yield place, cells if isinstance(cells, BadLine) else _make_example(cells, kind, place)


def _make_example(cells: Cells, kind: str, place: str) -> Example | BadLine:
    text, second, label = cells
    if kind == TAGS:
        if not all(isinstance(part, str | list) for part in (text, label)):
            return BadLine(
                "no tags", "needs words and tags, each a list, or a text with spaces. Set data.text and data.label."
            )
        words, tags = (
            part.split() if isinstance(part, str) else [str(each) for each in part] for part in (text, label)
        )
        return _tag_words(words, tags, place)
    texts = [text] if second is None else [text, second]
    for each in texts:
        if not isinstance(each, str):
            return BadLine("no text", f"holds {type(each).__name__} where its text should be. Set data.text.")
        if not each.strip():
            return BadLine("empty text", "has an empty text. Every example needs one.")
        if (bad := refuse_surrogates(each)) is not None:
            return bad
    if label is None or not str(label).strip():
        return BadLine("no label", "has no label. Every example needs one; set data.label to its column.")
    if kind == CLASSES:
        return Example(tuple(t.strip() for t in texts), str(label).strip(), place)
    number = _read_number(label)
    return number if isinstance(number, BadLine) else Example(tuple(t.strip() for t in texts), number, place)


def _read_number(label: Any) -> float | BadLine:
    try:
        number = float(label)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isfinite(number) and not isinstance(label, bool):
        return number
    return BadLine(
        "no number", f"has the label '{str(label)[:60]}', which is no number. For classes take --task classify."
    )


def _tag_words(words: Sequence[str], tags: Sequence[str], place: str) -> Example | BadLine:
    if not words:
        return BadLine("empty text", "has no words. Every sentence needs one.")
    if len(words) != len(tags):
        counts = f"{len(words)} word{'s' * (len(words) != 1)} and {len(tags)} tag{'s' * (len(tags) != 1)}"
        return BadLine("wrong number of tags", f"has {counts}. Every word needs one tag.")
    if len(words) > MAX_WORDS:
        return _too_many_words()
    joined = " ".join("_".join(word.split()) for word in words)
    return refuse_surrogates(joined) or Example((joined,), to_bio(tags), place)


def _too_many_words() -> BadLine:
    why = f"begins a sentence of more than {MAX_WORDS:,} words. Are there blank lines missing between sentences?"
    return BadLine("too long", why)


def to_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags of phrases in the form BIO, where every phrase begins with B; other tags as they are.

    IOB1 writes B only where a phrase follows another of its kind (Tjong Kim Sang & Veenstra 1999).

    >>> to_bio(["I-PER", "I-PER", "B-PER", "O", "I-LOC"])
    ('B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC')
    >>> to_bio(["DET", "NOUN"])
    ('DET', 'NOUN')
    """
    if any(tag != "O" and tag[:2] not in ("B-", "I-") for tag in tags):
        return tuple(tags)
    found, before = [], "O"
    for tag in tags:
        goes_on = tag.startswith("I-") and before[2:] == tag[2:]
        found.append(f"B-{tag[2:]}" if tag.startswith("I-") and not goes_on else tag)
        before = tag
    return tuple(found)


def _read_label_lines(file: TextFile) -> Iterator[tuple[str, Cells | BadLine]]:
    for number, line in enumerate(read_lines(file.path, file.name, file.encoding), start=1):
        place = f"{file.name}, line {number}"
        if isinstance(line, BadLine):
            yield place, line
        elif line.strip():
            label, _, text = line.strip().partition(" ")
            if text:
                yield place, (text, None, label)
            else:
                why = f"has no label: it is one word, '{label[:40]}', and a line is a label, a space and a text"
                yield place, BadLine("no label", f"{why}. {LABELLED_FORM}")


def _read_records(file: TextFile, columns: Columns) -> Iterator[tuple[str, Cells | BadLine]]:
    for number, line in enumerate(read_lines(file.path, file.name, file.encoding), start=1):
        place = f"{file.name}, line {number}"
        record = line if isinstance(line, BadLine) else parse_record(line) if line.strip() else None
        if record is not None:
            yield place, record if isinstance(record, BadLine) else _pick_fields(record, columns)


def _pick_fields(record: Mapping[str, Any], columns: Columns) -> Cells | BadLine:
    text = columns.text or next((name for name in (*TEXT_NAMES, "words") if name in record), TEXT_NAMES[0])
    label = columns.label or next((name for name in LABEL_NAMES if name in record), LABEL_NAMES[0])
    wanted = {"data.text": text, "data.label": label}
    wanted |= {} if columns.second is None else {"data.second": columns.second}
    for option, name in wanted.items():
        if name not in record:
            why = f"{tell_missing_field(record, name)} Set {option} to one of these."
            return BadLine("no field", why)
    return record[text], None if columns.second is None else record[columns.second], record[label]


def _read_table(file: TextFile, form: str, columns: Columns) -> Iterator[tuple[str, Cells | BadLine]]:
    separator, places, has_header = _open_table(file, form, columns)
    rows = read_rows(read_lines(file.path, file.name, file.encoding), separator, form == "csv")
    width = max(number for number in places if number is not None) + 1
    for index, (number, row) in enumerate(rows):
        place = f"{file.name}, line {number}"
        if (index == 0 and has_header) or (not isinstance(row, BadLine) and not row):
            continue
        if isinstance(row, BadLine):
            yield place, row
        elif len(row) < width:
            why = f"has {len(row)} column{'s' * (len(row) != 1)}, and column {width} is wanted, with {BETWEEN[form]}"
            yield place, BadLine("too few columns", f"{why} between columns.")
        else:
            text, second, label = (None if number is None else row[number] for number in places)
            yield place, (text, second, label)


def _open_table(file: TextFile, form: str, columns: Columns) -> tuple[str, tuple[int, int | None, int], bool]:
    """The separator, the columns of text, second text and label from 0, and whether the first row is a header."""
    lines = read_lines(file.path, file.name, file.encoding)
    first = next((line for line in lines if isinstance(line, str) and line.strip()), "")
    separator = "\t" if form == "tsv" else max(",;\t", key=first.count)
    row = next(read_rows([first], separator, form == "csv"), (1, []))[1]
    cells = [] if isinstance(row, BadLine) else [cell.strip() for cell in row]
    if len(cells) < 2:
        raise RegardError(
            f"{file.name} has one column: '{first[:60]}'. A row is a text and its label with {BETWEEN[form]} between "
            "them; for lines of a label, a space and a text set data.format to lines."
        )
    named = [name for name in columns if name is not None and not name.isdecimal()]
    is_known = any(name in cells for name in TEXT_NAMES) and any(name in cells for name in LABEL_NAMES)
    has_header = bool(named) or is_known or any(cell in cells for cell in ("label", "text"))
    text = _find_column(file.name, cells, "text", columns.text, TEXT_NAMES if has_header else (), 0)
    second = None if columns.second is None else _find_column(file.name, cells, "second", columns.second, (), 0)
    last = len(cells) - 1
    label = _find_column(file.name, cells, "label", columns.label, LABEL_NAMES if has_header else (), last)
    if len({text, second, label}) < 3 and (text == label or second in (text, label)):
        raise RegardError(
            f"In {file.name} column {label + 1} would be read twice. Set data.text and data.label to two columns of: "
            f"{make_printable(', '.join(cells), 200)}."
        )
    return separator, (text, second, label), has_header


def _find_column(
    name: str, cells: Sequence[str], option: str, asked: str | None, usual: Sequence[str], last: int
) -> int:
    if asked is None:
        return next((cells.index(cell) for cell in usual if cell in cells), last)
    number = cells.index(asked) if asked in cells else int(asked) - 1 if asked.isdecimal() else -1
    if not 0 <= number < len(cells):
        raise RegardError(
            f"{name} has no column '{asked}'.{nearest(asked, cells)} Its first row is: {', '.join(cells)[:200]}. Set "
            f"data.{option} to a name in it, or to a number from 1 to {len(cells)}."
        )
    return number


def _read_columns(file: TextFile, label: str | None) -> Found:
    """Sentences of a word a line; the tag is the last column, or the one asked for."""
    if label is not None and (not label.isdecimal() or int(label) < 2):
        raise RegardError(
            f"data.label is {label}, and the columns of {file.name} have no names. The first is the word: set "
            "data.label to a number from 2 on."
        )

    def read(line: str) -> tuple[str, str] | BadLine:
        cells = line.split("\t") if "\t" in line else line.split()
        wanted = max(2, len(cells)) if label is None else int(label)
        if len(cells) >= wanted:
            return cells[0].strip(), cells[wanted - 1].strip()
        asked = "" if label is None else f", and data.label asks for column {label}"
        why = (
            f"has {len(cells)} column{'s' * (len(cells) != 1)}{asked}. A line is a word and its tag, with white space "
        )
        return BadLine("too few columns", f"{why}between them.")

    return _read_sentences(file, read)


def _read_conllu(file: TextFile, label: str | None) -> Found:
    """Sentences of CoNLL-U with the part of speech of every word; ranges and empty nodes are left out."""
    if label is not None and label not in CONLLU_COLUMNS:
        raise RegardError(f"data.label is {label}, and {file.name} is CoNLL-U: take upos or xpos.")
    column = CONLLU_COLUMNS[label or "upos"]

    def read(line: str) -> tuple[str, str] | BadLine | None:
        cells = line.split("\t")
        if line.startswith("#"):
            return None
        if len(cells) != 10:
            n = f"{len(cells)} column{'s' * (len(cells) != 1)}"
            return BadLine("too few columns", f"has {n}, and CoNLL-U has 10, with a tab between them.")
        return (cells[1], cells[column]) if cells[0].isdecimal() else None

    return _read_sentences(file, read)


def _read_sentences(file: TextFile, read: Callable[[str], tuple[str, str] | BadLine | None]) -> Found:
    """Sentences with a blank line between two, and what `read` makes of each line: a word and its tag, or nothing.

    A sentence with a line that cannot be read is no example, since its other words alone are no sentence.
    """
    words, tags, first, bad = list[str](), list[str](), 1, None
    lines = chain(read_lines(file.path, file.name, file.encoding), [""])
    for number, line in enumerate(lines, start=1):
        if isinstance(line, str) and not line.strip():
            place = f"{file.name}, line {first}"
            if bad is not None:
                yield bad
            elif words and words != [DOCUMENT_START]:
                yield place, _tag_words(words, tags, place)
            words, tags, first, bad = [], [], number + 1, None
            continue
        row = line if isinstance(line, BadLine) else read(line)
        if bad is not None or row is None:  # of a sentence that is no example nothing is kept
            continue
        if isinstance(row, BadLine):
            bad = f"{file.name}, line {number}", row
        elif len(words) == MAX_WORDS:
            bad = f"{file.name}, line {first}", _too_many_words()
            words, tags = [], []
        else:
            words.append(row[0])
            tags.append(row[1])


def _read_whole(file: TextFile) -> str:
    """The text of a file that cannot be read in parts."""
    blocks, n_bytes = [], 0
    for block in read_text_blocks(file.path, file.name, file.encoding):
        blocks.append(block)
        n_bytes += len(block)
        if n_bytes > MAX_WHOLE:
            raise RegardError(f"{file.name} has more than {MAX_WHOLE:,} characters, and is read whole. Split it.")
    return "".join(blocks)


def _read_squad(file: TextFile) -> Found:
    """Questions of SQuAD 1.1 and 2.0: those that are marked impossible have no answer."""
    try:
        whole = _read_whole(file)
        limit = MAX_PASSAGES + PER_FILE * len(whole)
        articles = parse_json(whole, file.name, "Copy it again")["data"]
        del whole
        asked = [
            (paragraph["context"], question)
            for article in articles
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ]
    except (KeyError, TypeError) as error:
        why = f"it lacks {error!s:.60}" if isinstance(error, KeyError) else f"{error!s:.200}"
        raise RegardError(
            f"{file.name} is not SQuAD's JSON ({why}). It is an object with data, "
            "paragraphs, context, qas, question, answers and answer_start."
        ) from None
    n_characters, before, bad = 0, object(), None
    for number, (passage, question) in enumerate(asked, start=1):
        if passage is not before:  # one passage has many questions
            before, bad = passage, _check_passage(passage)
        n_characters += len(passage) if bad is None else 0
        if n_characters > limit:
            raise RegardError(
                f"{file.name} has passages of more than {limit:,} characters, each counted once for every "
                "question about it. Split the file, or shorten the passages."
            )
        name = question.get("id", number) if isinstance(question, dict) else number
        place = f"{file.name}, question {str(name)[:100]}"
        yield place, bad or _make_question(passage, question, place)


def _check_passage(passage: Any) -> BadLine | None:
    """What is wrong with a passage, whatever is asked about it."""
    if not isinstance(passage, str) or not passage.strip():
        return BadLine("empty text", "has an empty passage. A question and a passage are both needed.")
    if len(passage) > MAX_LINE:
        why = f"has a passage of {len(passage):,} characters; at most {MAX_LINE:,} are read. Cut it into several."
        return BadLine("too long", why)
    return refuse_surrogates(passage)


def _make_question(passage: str, question: Any, place: str) -> Example | BadLine:
    try:
        text, is_impossible = str(question["question"]).strip(), bool(question.get("is_impossible", False))
        answers = () if is_impossible else tuple((a["answer_start"], a["text"]) for a in question["answers"])
    except (KeyError, TypeError, AttributeError):
        return BadLine("no question", "has no question, or answers without answer_start and text.")
    if not text:
        return BadLine("empty text", "has an empty question. A question and a passage are both needed.")
    if len(text) > MAX_LINE:
        return BadLine("too long", f"has {len(text):,} characters; at most {MAX_LINE:,} are read.")
    for start, answer in answers:
        if (
            not isinstance(start, int)
            or start < 0
            or not isinstance(answer, str)
            or not answer
            or not passage.startswith(answer, start)
        ):
            why = (
                f"has the answer '{str(answer)[:60]}' at character {quote(start)}, and it is not in its passage there."
            )
            return BadLine("answer not in passage", why)
    return refuse_surrogates(text) or Example((text, passage), tuple(Answer(*a) for a in answers), place)
