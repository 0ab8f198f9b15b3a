"""Files that are read whole: regular ones, of bounded size, as bytes, text, JSON or YAML."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from regard.errors import RegardError
from regard.untrusted.values import find_excess, has_lone_surrogate, make_printable, quote

MB = 2**20
MAX_NOTE = 4 * MB  # what a program writes down for itself: a config, counters
MAX_JSON = 64 * MB  # vocabularies and results; Python takes some twenty bytes for one of JSON
MAX_JSON_DEPTH = 200
"""Lists and objects inside each other; Python's stack ends at a thousand, and copying takes it twice."""
MAX_OPENED = 2_000_000  # lists and objects: two hundred bytes each; SQuAD has 700,000
MAX_COMMAS = 10_000_000  # between values: up to a hundred bytes each
MERGED = "tag:yaml.org,2002:merge"  # what PyYAML calls the key <<
COPY_AGAIN = "It may have been cut short; copy it again"


_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_STRING_BYTES = re.compile(_STRING.pattern.encode(), re.DOTALL)


class DamagedFileError(RegardError):
    """A file that is there and cannot be what it should be."""


class TooManyValuesError(DamagedFileError):
    """JSON that may be right and is too much to be held in memory."""


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; what is no file, such as a pipe without end or a device, is refused before it is read.

    Raises the OSError of `open` where there is none or it may not be read.
    """
    if "\0" in str(path):
        raise RegardError(f"'{make_printable(str(path), 200)}' has the character NUL, which no name of a file has.")
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(21, "Is a directory", str(path))
        if not stat.S_ISREG(mode):
            raise RegardError(f"'{path}' is no regular file but a pipe, a socket or a device. Give a file.")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_bytes(path: Path, limit: int = MAX_JSON) -> bytes:
    """The bytes of a regular file of at most `limit`; OSError where it cannot be opened."""
    with open_regular(path) as file:
        check_size(path, os.fstat(file.fileno()).st_size, limit)
        data = file.read(limit + 1)
    check_size(path, len(data), limit)  # some files of the system say that they are empty, and some grow
    return data


def check_size(path: Path, n_bytes: int, limit: int) -> None:
    """Refuse a file of more bytes than are read of its kind."""
    if n_bytes > limit:
        raise DamagedFileError(f"'{path}' has more than {limit // MB:,} MB, and such a file has less. Is it another?")


def read_text(path: Path, limit: int = MAX_JSON) -> str:
    """The UTF-8 text of a regular file of at most `limit` bytes."""
    try:
        return read_bytes(path, limit).decode("utf-8").replace("\r\n", "\n")
    except FileNotFoundError:
        raise RegardError(f"There is no file {path}.") from None
    except OSError as error:
        raise RegardError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise DamagedFileError(f"{path} cannot be read: it is not UTF-8 text (byte {error.start}).") from None


def parse_json(text: str | bytes, where: str, way_out: str = COPY_AGAIN) -> Any:
    """The value of a JSON text; an error that begins with `where` and ends with `way_out` for what is none.

    What would take gigabytes as Python's objects is refused by its brackets and commas before it is parsed.
    """
    n_opened, n_commas = _count_marks(text)
    if n_opened > MAX_OPENED or n_commas > MAX_COMMAS:  # perhaps inside its texts, where they are letters as others
        n_opened, n_commas = _count_marks(_remove_strings(text))
    for n, limit, what in ((n_opened, MAX_OPENED, "lists and objects"), (n_commas, MAX_COMMAS, "values")):
        if n > limit:
            raise TooManyValuesError(
                f"{where} has more than {limit:,} {what}. No more are read at once: they take gigabytes of memory."
            )
    try:
        value = json.loads(text)
        if n_opened <= MAX_JSON_DEPTH or not _is_deeper(value, MAX_JSON_DEPTH):
            return value
        why = "it has too many lists or objects inside each other"
    except RecursionError:
        why = "it has too many lists or objects inside each other"
    except UnicodeDecodeError:
        why = "it is not UTF-8 text"
    except ValueError as error:  # json.JSONDecodeError, or a number of thousands of digits
        why = make_printable(str(error), 120)
    raise DamagedFileError(f"{where} is not valid JSON: {why}. {way_out}.") from None


def _count_marks(text: str | bytes) -> tuple[int, int]:
    """How many opening brackets there are, and how many commas."""
    if isinstance(text, str):
        return text.count("{") + text.count("["), text.count(",")
    return text.count(b"{") + text.count(b"["), text.count(b",")


def _remove_strings(text: str | bytes) -> str | bytes:
    """A JSON text without its strings."""
    return _STRING.sub("", text) if isinstance(text, str) else _STRING_BYTES.sub(b"", text)


def _is_deeper(value: Any, limit: int) -> bool:
    """Whether more than so many lists or objects are inside each other."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(level)


def read_json(path: Path, limit: int = MAX_JSON, way_out: str = COPY_AGAIN) -> Any:
    """The value in a JSON file; FileNotFoundError where there is none."""
    try:
        data = read_bytes(path, limit)
        found = parse_json(data, str(path), way_out)
        if b"\\ud" in data.lower() and has_lone_surrogate(found):
            raise DamagedFileError(f"{path} holds half a character, a lone surrogate, which is no text. {way_out}.")
        return found
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RegardError(f"{path} cannot be read: {error.strerror}.") from None


def read_object(path: Path, limit: int = MAX_JSON, way_out: str = COPY_AGAIN) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        found = read_json(path, limit, way_out)
    except FileNotFoundError:
        raise RegardError(f"There is no file {path}.") from None
    if not isinstance(found, dict):
        raise DamagedFileError(f"{path} must hold a JSON object, not {quote(found, 60)}. {way_out}.")
    return found


def _load_yaml(text: str) -> Any:
    """The value of a YAML text; a key that is there twice is an error, where PyYAML takes the last one."""
    loader = yaml.SafeLoader(text)
    try:
        if (root := loader.get_single_node()) is None:
            return None
        _check_keys(root)
        return loader.construct_document(root)
    finally:
        loader.dispose()


def _check_keys(root: yaml.Node) -> None:
    """Refuse a key that is there twice, as it is written: what is merged in (<<) may be written over."""
    left, seen = [root], set[int]()
    while left:
        node = left.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))  # an alias (*name) is the node itself, once more
        if isinstance(node, yaml.SequenceNode):
            left += node.value
            continue
        keys = set[tuple[str, str]]()
        for key, value in node.value:
            left += [key, value]
            if not isinstance(key, yaml.ScalarNode) or key.tag == MERGED:
                continue
            if (key.tag, key.value) in keys:
                problem = f"the key '{key.value:.60}' is there twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            keys.add((key.tag, key.value))


def parse_yaml(text: str) -> Any:
    """The value of a YAML text; ValueError with the rest of a sentence, where and why, for what is none."""
    try:
        value = _load_yaml(text)
    except yaml.reader.ReaderError as error:  # raised before a line is read
        line = text.count("\n", 0, error.position) + 1
        raise ValueError(f" at line {line}: it has a character that no YAML has, number {error.character}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        raise ValueError(f"{where}: {make_printable(problem, 120)}") from None
    except RecursionError:
        raise ValueError(": it has too many lists or mappings inside each other") from None
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
        # What PyYAML raises for a value that its form promises and that does not exist: 2020-13-45, !!bool maybe.
        raise ValueError(f": a value is not what its form says it is ({make_printable(str(error), 60)})") from None
    if (excess := find_excess(value)) is not None:
        raise ValueError(f": it has {excess}")
    if "\\u" in text.lower() and has_lone_surrogate(value):
        raise ValueError(": it holds half a character, a lone surrogate, which is no text")
    return value
