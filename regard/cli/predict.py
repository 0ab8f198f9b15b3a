"""`regard predict`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import regard
from regard.cli import lines, options
from regard.data.reading import COMPRESSED
from regard.data.table_lines import read_table_lines
from regard.data.tables import SUFFIXES as TABLES
from regard.errors import RegardError


def predict(
    run: options.RunFolder,
    file: options.Lines = None,
    skip_bad: options.SkipBad = False,
    window: options.Window = None,
    max_tokens: options.BatchTokens = 4096,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
    precision: options.Precision = "float32",
) -> None:
    """Answer about lines of text, in their order: a class, a number, tags, or the span that answers a question.

    A classifier prints the class and its probability, a rater a number, a tagger every word with its tag, an answerer
    the answer and its probability (none: nothing before the tab). Two texts, or a question and a passage, have a tab
    between them; a tagger's words have spaces between them. A pipe of any length is read as it comes, and an empty line
    gives an empty line. Of a .tsv or .csv file whose first line names its columns, the columns of the texts are read,
    and the header gives an empty line.

    Examples:
      echo "I love this old film." | regard predict runs/classifier
      regard predict runs/tagger sentences.txt > tagged.txt
      # a question and a passage a line, with a tab between them
      regard predict runs/answerer questions.tsv --json
    """
    loaded: Any = regard.load(run, device, precision)
    if loaded.task.verb != "predict":
        task = loaded.task
        raise RegardError(f"'{run}' is a run that {task.summary}. Use it with: regard {task.verb} {run}")
    decode = loaded.lines if file is None else partial(_answer_file, loaded, file)
    found = lines.answer_lines(
        decode, file, skip_bad=skip_bad, window=window, max_tokens=max_tokens,
        why_skipped="with another number of columns",
    )  # fmt: skip
    for number, _, answer in found:
        if as_json:
            text = json.dumps({"line": number, **({} if answer is None else answer.to_dict())}, ensure_ascii=False)
        else:
            text = "" if answer is None else answer.to_text()
        print(text, flush=lines.is_typed(file))


def _answer_file(run: Any, file: Path, given: Iterable[str], **options: Any) -> Iterator[Any]:
    """What a run says of the lines of a file; of a table with a header, of its columns of texts."""
    form = TABLES.get(Path(file.stem).suffix if file.suffix in COMPRESSED else file.suffix)
    skips_bad = options["skips_long"]
    rows = given if form is None else read_table_lines(given, form, run.text_columns, skips_bad)
    answered: Iterator[Any] = run.lines(rows, **options)
    return answered
