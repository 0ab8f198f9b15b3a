"""Lines of captions, in three forms; a line that is none is given back with its reason, and reading can go on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from regard.data.pair_source import parse_record
from regard.data.reading import BadLine, read_lines
from regard.errors import RegardError, nearest

# Flickr8k's own form has a tab behind the number; copies are about that have an @ there, or an @ for the #.
NUMBERED = re.compile(r"(?P<name>[^\t]+?)[#@]\d+[\t@](?P<caption>.*)", re.DOTALL)

Said = list[tuple[str, str]]
"""Names of pictures, each with a caption, which may be empty."""


def read_caption_lines(path: Path) -> Iterator[Said | BadLine]:
    """What every line of a file says of which picture; a blank one says nothing."""
    if not path.is_file():
        raise RegardError(f"There is no file of captions '{path}'. Set captions to it.")
    read = in_record if path.suffix in (".jsonl", ".json") else in_columns
    for line in read_lines(path, str(path)):
        if isinstance(line, BadLine):
            yield line
        elif not line.strip():
            yield []
        else:
            found = read(line)
            yield found if isinstance(found, BadLine) else _named(found)


def _named(said: Said) -> Said | BadLine:
    """The same with no white space around names, and spaces for any other in captions, if all have a name."""
    trimmed = [(name.strip(), " ".join(caption.split())) for name, caption in said]
    if all(name for name, _ in trimmed):
        return trimmed
    return BadLine("no picture name", "names no picture. A caption needs the name of its picture before it.")


def in_columns(line: str) -> Said | BadLine:
    """Of a line with the name first, as Flickr8k writes it or with a tab.

    >>> in_columns("dog.jpg#0\\tA dog runs"), in_columns("dog.jpg\\tIt runs")
    ([('dog.jpg', 'A dog runs')], [('dog.jpg', 'It runs')])
    """
    if match := NUMBERED.fullmatch(line):
        return [(match["name"], match["caption"])]
    name, tab, caption = line.partition("\t")
    if tab:
        return [(name, caption)]
    return BadLine(
        "one column",
        f"is no caption: {line[:60]!r}. A line is 'name.jpg<TAB>caption' or 'name.jpg#0<TAB>caption'; files of JSON "
        "lines are named .jsonl.",
    )


def in_record(line: str) -> Said | BadLine:
    """Of a JSON object.

    >>> in_record('{"picture": "dog.jpg", "caption": ["A dog runs", "It runs"]}')
    [('dog.jpg', 'A dog runs'), ('dog.jpg', 'It runs')]
    """
    record = parse_record(line)
    if isinstance(record, BadLine):
        return record
    for field in ("picture", "caption"):
        if field not in record:
            known = ", ".join(record) or "none"
            return BadLine("no field", f"has no field '{field}'.{nearest(field, record)} It has: {known}.")
    picture, captions = record["picture"], record["caption"]
    captions = [captions] if isinstance(captions, str) else captions
    if not isinstance(picture, str) or not isinstance(captions, list):
        return BadLine("no field", "is no caption: picture must be a name, and caption text or a list of texts.")
    if not all(isinstance(caption, str) for caption in captions):
        return BadLine("no field", "has a caption that holds something other than text. Give text or a list of texts.")
    for text in (picture, *captions):
        try:
            text.encode()
        except UnicodeEncodeError as error:  # JSON can spell half a surrogate pair
            return BadLine("broken UTF-8", f"has a lone surrogate {text[error.start]!r}. Write the whole character.")
    return [(picture, caption) for caption in captions]
