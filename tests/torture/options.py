"""Hostile values for every option and argument of every verb, and for every setting of every recipe."""

from __future__ import annotations

import inspect
import shlex
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import typer.main
import yaml
from torture.mutations import HOSTILE, SETS

LONG = "x" * 5000
DIGITS = "9" * 5000
TEXTS = (
    "", " ", "-", "--", ".", "..", "/", "~", "*", "[", "(((", "a\tb\nc", "\x1b]0;owned\x07\x1b[2J", "\udcff", "\u202e",
    "²", "٣", LONG, DIGITS, "null", "None", "NaN", "auto", "cuda:99", "bf16", "int8", "0-0 1", f"{DIGITS}-0", "<2de>",
    "[MASK]", "[MASK]" * 3000, "bpe:²", f"bpe:{DIGITS}", "{a: [", "%s%n", "hub:no/such", "grammar:", "grammar:en-ner",
    "/dev/zero", "/etc/passwd", "a" * 300 + "/b", "data/few.txt", "runs/lstm", "runs", "1e999flops", "0tokens",
    "-1tokens", "nantokens", "5Mtokens", "1min",
)  # fmt: skip
NUMBERS = (
    "", "x", "0", "-0", "-1", "1", "2", "3", "7", "²", "٣", "1e3", "0x10", "1_0", "nan", "inf", "-inf", "1e999",
    "1e-320", "0.5", "1.0", "-0.5", DIGITS, str(2**31), str(2**63), str(2**64), str(-(2**63)), str(10**30), "true",
    "\x1b[2J",
)  # fmt: skip
PATHS = (
    "", ".", "..", "/", "-", "~", "nowhere", "a/b/c", "/dev/zero", "/dev/null", "/dev/null/x", "/proc/self/mem",
    "/proc/self/fd/99", "o" * 300, LONG, "\x1b[2J", "\udcff", "data", "data/few.txt", "data/few.bin", "pictures/0.png",
    "runs", "runs/lstm", "runs/pairs", "runs/bert", "runs/vectors", "hf/gpt2", "elmo", "compare",
    "runs/lstm/config.yaml", "data/squad.json", "data/few.txt.zst", "a\nb", "*",
)  # fmt: skip
OUTS = (
    "", ".", "nowhere", "a/b/c", "/dev/null", "/dev/null/x", "/proc/nothing/here", "o" * 300, LONG, "\x1b[2J", "\udcff",
    "taken", "taken/file", "link", "a\nb", "x.npz", "x.bin", "x.arpa", "x.onnx", "-",
)  # fmt: skip
"""Where to write: nothing of the corpus, which all cases share."""
MUCH = {
    "generate": ("--max-tokens", "--n"), "translate": ("--max-ratio", "--max-length", "--n-best"),
    "caption": ("--max-length",), "study": ("--seeds", "--set", "NAME"), "data grammar": ("--n", "--valid", "--test"),
    "compare": ("--seeds", "--budget", "--seconds"), "train": ("--set",),
}  # fmt: skip
"""Options by which one asks for work without end, and gets it: these are given no huge numbers."""

BASES: dict[str, tuple[str, ...]] = {
    "train": (
        "recipe.yaml --dry-run", "--dry-run --model lstm --data data/few.txt",
        "lstm --task tag --data data/tagged.conll --dry-run",
    ),
    "compare": (
        "ngram bag --data data/few.txt --budget 100tokens --jobs 1 --out out", "runs/lstm runs/transformer --out out",
    ),
    "study": ("recency --run runs/lstm --out out",),
    "report": ("compare",),
    "look": (
        "runs/transformer --text 'the cat' --view attention --out out", "runs/pairs --text 'the old boat' --out out",
        "runs/lstm --text 'the cat' --view cells --out out",
        "runs/bert -t 'the cat sat' -t 'a cat' --word cat --out out",
        "runs/transformer --steps --text 'the cat' --out out",
    ),
    "next": ("runs/lstm runs/ngram 'the cat'", "runs/pairs 'the old boat'"),
    "generate": ("runs/lstm --max-tokens 3", "runs/bert --max-tokens 2", "runs/ngram --max-tokens 3 --beam 2"),
    "fill": ("runs/bert 'the [MASK] sat'",),
    "embed": ("runs/bert data/words.txt --out out.npz", "hf/bert data/words.txt --out out.npz"),
    "translate": (
        "runs/pairs data/words.txt", "runs/pairs data/words.txt --sample", "runs/pairs data/words.txt --align",
    ),
    "caption": ("runs/caption pictures/0.png",),
    "parse": ("runs/parser data/words.txt",),
    "predict": ("runs/classify data/words.txt", "runs/tagger data/words.txt"),
    "score": ("runs/lstm data/words.txt", "runs/pairs data/words.txt data/words.txt"),
    "eval": ("runs/lstm", "runs/pairs", "runs/transformer"),
    "bleu": ("data/words.txt -r data/words.txt",),
    "align": ("runs/pairs data/words.txt data/words.txt",),
    "export": ("runs/transformer out.onnx", "runs/ngram out.arpa", "runs/gpt2 out"),
    "serve": ("runs/lstm --host 192.0.2.1 --port 1 --no-browser",),
    "import": ("data/ngram.arpa --out out", "hf/gpt2 --out out"),
    "check": ("runs/lstm",),
    "models": ("lstm",),
    "recipes": ("lstm",),
    "cache": ("--json",),
    "vectors nearest": ("data/few.vec the",),
    "vectors analogy": ("data/few.vec the cat dog",),
    "vectors eval": ("data/few.vec data/words.txt",),
    "vectors map": ("data/few.vec --out out",),
    "vectors coverage": ("data/few.vec --data data/few.txt",),
    "vectors convert": ("data/few.vec out.bin",),
    "data look": ("data/few.txt", "data/pairs.tsv"),
    "data grammar": ("--n 10 --out out",),
}  # fmt: skip
"""Command lines that work, for each verb."""
FLAGS = ("--dry-run", "--sample", "--align", "--steps", "--json", "--no-browser")


@dataclass(frozen=True)
class Option:
    """A word of a verb that takes a value: an option by its name, an argument by its metavar."""

    verb: str
    name: str
    form: str
    """int, float, path, out or text."""


@cache
def list_options() -> list[Option]:
    """Every option and argument that takes a value, of every verb."""
    from regard import cli

    return list(_walk(typer.main.get_command(cli.app), ""))


def _walk(command: Any, verb: str) -> Iterator[Option]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from _walk(inner, f"{verb} {name}".strip())
    if verb not in BASES or command.callback is None:
        return
    kinds = typing.get_type_hints(inspect.unwrap(command.callback))
    for param in command.params:
        kind = kinds.get(param.name)
        if kind is not None and kind is not bool and bool not in typing.get_args(kind):
            yield Option(
                verb, param.name if param.param_type_name == "argument" else param.opts[0], _form(param.name, kind)
            )


def _form(name: str, kind: Any) -> str:
    parts = {
        kind,
        *typing.get_args(kind),
        *(inner for part in typing.get_args(kind) for inner in typing.get_args(part)),
    }
    if Path in parts:
        return "out" if name in ("out", "draw", "svg", "copy", "to") else "path"
    return "int" if int in parts else "float" if float in parts else "text"


def draw_words(draw: Random, corpus: Path) -> list[str]:
    """A command line with one hostile value."""
    if draw.random() < 0.4:
        return _draw_setting(draw, corpus)
    option = draw.choice(list_options())
    words = [*option.verb.split(), *shlex.split(draw.choice(BASES[option.verb]))]
    value = draw.choice(_values(option))
    if option.name.startswith("-"):
        return [*_leave_out(words, option.name), option.name, value]
    first = len(option.verb.split())
    places = [i for i in range(first, len(words)) if _is_argument(words, i)]
    at = draw.choice(places or [len(words)])
    return [*words[:at], value, *words[at + 1 :]]


def _is_argument(words: list[str], i: int) -> bool:
    return not words[i].startswith("-") and (words[i - 1] in FLAGS or not words[i - 1].startswith("-"))


def _leave_out(words: list[str], name: str) -> list[str]:
    """The words without an option that is to be given another value."""
    at = words.index(name) if name in words else len(words)
    return [*words[:at], *words[at + 2 :]]


def _values(option: Option) -> tuple[str, ...]:
    values = {"int": NUMBERS, "float": NUMBERS, "path": PATHS, "out": OUTS}.get(option.form, TEXTS)
    if option.name in MUCH.get(option.verb, ()) and option.form in ("int", "float"):
        return tuple(v for v in values if not (v.replace(".", "").isdecimal() and len(v) > 4) and v != "inf")
    if option.name == "--set":
        return SETS
    if option.form == "text" and option.verb in ("compare", "study") and option.name in MUCH[option.verb]:
        return tuple(v for v in values if v not in ("5Mtokens", "1min", "1e999flops"))
    return values


def _draw_setting(draw: Random, corpus: Path) -> list[str]:
    """A recipe with a hostile value of one setting."""
    recipes = sorted((corpus / "recipes").glob("*.yaml")) if (corpus / "recipes").is_dir() else []
    if draw.random() < 0.3 or not recipes:
        return ["train", "recipe.yaml", "--dry-run", "--set", draw.choice(SETS)]
    recipe = draw.choice(recipes)
    key, value = draw.choice(_list_keys(recipe)), draw.choice(HOSTILE)
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6).removesuffix("\n...\n").strip()
    return ["train", str(recipe.relative_to(corpus)), "--dry-run", "--set", f"{key}={text}"]


@cache
def _list_keys(recipe: Path) -> list[str]:
    sections = yaml.safe_load(recipe.read_text()).items()
    nested = {name: [f"{name}.{key}" for key in value] for name, value in sections if isinstance(value, dict)}
    return [key for name, _ in sections for key in nested.get(name, [name])]
