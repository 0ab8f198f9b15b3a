"""Text that needs no download: what every Python installation carries.

The text is that of the Python it runs on, so it differs a little between versions; a run's data fingerprint says which
it was.
"""

from __future__ import annotations

import ast
import inspect
import json
import platform
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.data.cache import make_kind_folder
from regard.data.cache_limit import BUILTIN_TEXTS
from regard.data.checksums import is_whole, keep_file
from regard.errors import RegardError

# Not part of the library proper: tests, what pip installed, vendored wheels, tools, generated tables.
LEFT_OUT = frozenset({"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "ensurepip"})
SHORT = 40  # characters of a paragraph
GENERATED = ("encodings/", "pydoc_data/", "config-", "_sysconfigdata")
VERSION = 1  # of how the texts are made: another number makes them again


def python_docs() -> Iterator[str]:
    """One document a chapter of the reference, then one a module with all its docstrings, then the licence.

    Chapters contain each other and docstrings are copied between modules; a paragraph is kept where it comes first, so
    that text to be tested on has not been trained on.
    """
    seen: set[str] = set()
    for text in _prose():
        if fresh := _first_seen(text, seen):
            yield fresh


def _prose() -> Iterator[str]:
    yield from _reference()
    for name, source in _modules():
        yield _docstrings(name, source)
    licence = _library() / "LICENSE.txt"
    if licence.is_file():
        yield licence.read_text(encoding="utf-8")


def _first_seen(text: str, seen: set[str]) -> str:
    """The paragraphs of `text` that are not in `seen`, which they join; short ones (names, headings) may repeat."""
    kept, n_new = [], 0
    for paragraph in text.strip("\n").split("\n\n"):
        key = " ".join(paragraph.split())
        is_short = len(key) < SHORT
        if is_short or key not in seen:
            kept.append(paragraph)
            n_new += not is_short
        seen.add(key)
    return "\n\n".join(kept) + "\n" if n_new else ""


def python_source() -> Iterator[str]:
    """One document a file."""
    for _, source in _modules():
        yield source


def _reference() -> list[str]:
    """The chapters of the language reference that `help()` shows."""
    try:
        from pydoc_data.topics import topics
    except ImportError:  # some Linux distributions leave it out
        return []
    return [topics[name] for name in sorted(topics)]


def _library() -> Path:
    return Path(sysconfig.get_path("stdlib"))


def _modules() -> Iterator[tuple[str, str]]:
    """Dotted name and source of every module of the library, by name."""
    library = _library()
    paths = sorted((p.relative_to(library) for p in library.rglob("*.py")), key=lambda p: p.as_posix())
    for path in paths:
        if LEFT_OUT.intersection(path.parts) or path.as_posix().startswith(GENERATED):
            continue
        try:
            source = (library / path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if source.strip():
            yield ".".join(path.with_suffix("").parts).removesuffix(".__init__"), source


def _docstrings(name: str, source: str) -> str:
    """The docstrings of a module in the order of its source, each under the name it belongs to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old modules with odd escapes
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            return ""
    parts = []
    for place, node in [(name, tree), *_definitions(tree, name)]:
        doc = ast.get_docstring(node, clean=False)
        if doc and len(doc) > 20:
            parts.append(f"{place}\n\n{inspect.cleandoc(doc)}\n")
    return "\n".join(parts)


def _definitions(
    node: ast.AST, place: str
) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{place}.{child.name}"
            yield inner, child
            if isinstance(child, ast.ClassDef):
                yield from _definitions(child, inner)
        elif isinstance(child, ast.If | ast.Try):  # definitions that depend on the platform
            yield from _definitions(child, place)


@dataclass(frozen=True)
class Builtin:
    """A named text: what it is, in a line, and its documents."""

    description: str
    documents: Callable[[], Iterator[str]]


BUILTIN: dict[str, Builtin] = {
    "python-docs": Builtin(
        "English prose from Python itself: its language reference, the docstrings of its library, its licence",
        python_docs,
    ),
    "python-source": Builtin("the source code of Python's standard library, without its tests", python_source),
}


def builtin_file(name: str, cache: Path) -> Path:
    """The built-in as a file of JSON lines in the cache, made the first time it is asked for or where it was damaged.

    It is there as long as the caller is inside a `spool_folder` of the same cache.
    """
    path = make_kind_folder(cache, BUILTIN_TEXTS) / f"{name}-{platform.python_version()}-{VERSION}.jsonl"
    if not is_whole(path):
        lines = [json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in BUILTIN[name].documents()]
        if not lines:
            raise RegardError(f"This Python carries no text for {name}: its standard library has no source files.")
        keep_file(path, "".join(lines).encode())
    return path
