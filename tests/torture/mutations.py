"""Ways in which a file can be wrong: by accident, bytes flipped or lost, and on purpose, values of any size."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any

import yaml

DEEP = 3000
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 3, 7, 2**31, 2**32 - 1, 2**63, 2**64, 10**400, -(10**30), 0.5, 1e308, -1e308,
    float("nan"),
    float("inf"), "", " ", "a", "\x1b]0;owned\x07\x1b[2J", "\ud800", "x" * 20_000, "../../../etc/passwd",
    "/dev/zero", "/etc/passwd",
    "-", "auto", "hub:no/such", [], [[]], [1, "a", None], {}, {"a": {"b": [1]}}, {"name": "lstm"}, ["a"] * 2000,
    20_000, 100_000,
)  # fmt: skip
WORDS = (
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80",
    b"\x1b[31m", b"\r\n", b"\n\n\n", b"\t", b'"', b"'", b"{", b"[" * DEEP, b"{" * DEEP,
    b"[" * 900 + b'"\\ud83d\\ude00"' + b"]" * 900,
    b"]" * 50, b"null", b"NaN", b"-1", b"9" * 5000, b"1e999", b"&a [*a, *a]", b"!!python/object:os.system x",
    b"!!int ''",
    b"!!float x", b"!!bool maybe", b"2020-13-45", b"? ? ?", b"<<: *x", b"<0xFFFFFFFF>", b"<0x00>", b"</s>",
    b"<unk>", b"<s>",
    b"\\data\\", b"ngram 1=99999999999999", b"a" * 200_000, b"\xe2\x80\xae", b"(((((", b"%s%s%n", b"__import__('os')",
)  # fmt: skip
"""What a reader of text may stumble over."""
SETS = (
    "seed=2020-13-45", "seed=!!int ''", "seed=!!float x", "seed=!!bool maybe", "seed=" + "9" * 5000,
    "seed=" + "[" * 3000,
    "model.d_model=" + "0x" + "f" * 4000, "model={a: &a [1, 1], b: &b [*a, *a], c: [*b, *b]}", "data.train=/dev/zero",
    "model.n_layers=100000000", "model.d_model=2000000000", "model.d_model=4611686018427387904",
    "model.d_model=1e400",
    "train.n_batch=10000000000", "train.n_context=1000000000000", "train.n_accumulate=99999999999",
    "tokenizer.vocab_size=99999999999999",
    "optimizer.lr=.nan", "optimizer.lr=1e400", "optimizer.lr=.inf", "seed=&a [*a]", "seed={? {a: b} : c}",
    "data.max_bytes=0",
    "seed=!!binary x", "seed=!!timestamp x", "seed=!!set {a}", "seed=!!omap [a]", "seed=!!pairs [a: b]",
    "seed=*nothing", "seed=!!python/name:os.system",
    "runtime.n_threads=99999999", "train.max_steps=99999999999999999999999", "model.p_dropout=nan",
    "data.encoding=zip", "data.encoding=" + "x" * 9000,
    "data.field=[]", "data.train=[]", "data.train={}", "data.train=''", "data.train=.", "data.train=/proc/self/mem",
    "a=b=c", "=", ".", "a.b.c=1",
    "model.name=[]", "tokenizer.path=/dev/zero", "tokenizer.path=/etc/passwd", "start_from=/dev/null",
    "checkpoint.log_every=0", "\x1b[2J=1",
    "train.vectors=/dev/zero", "data.boundaries=/dev/zero", "data.p_valid=1e-320",
    "schedule.n_warmup=9999999999999999999", "task=[1]", "task=\x1b[2J",
)  # fmt: skip
"""Settings for `--set`."""


def mutate_bytes(data: bytes, draw: Random) -> bytes:
    """Some bytes flipped, cut off, repeated, moved, or a word put in between."""
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        at = draw.randrange(len(found) + 1)
        kind = draw.randrange(7)
        if kind == 0 and found:
            found[min(at, len(found) - 1)] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del found[at:]
        elif kind == 2:
            del found[at : at + draw.choice((1, 4, 100))]
        elif kind == 3:
            found[at:at] = found[at : at + draw.choice((1, 8, 300))] * draw.choice((1, 2, 50))
        elif kind == 4:
            found[at : at + draw.choice((0, 1, 8))] = bytes(draw.randrange(256) for _ in range(draw.choice((1, 8))))
        elif kind == 5:
            found[at:at] = draw.choice(WORDS)
        else:
            lines = bytes(found).split(b"\n")
            draw.shuffle(lines)
            found = bytearray(b"\n".join(lines))
    return bytes(found)


def mutate_value(value: Any, draw: Random) -> Any:
    """A plain value of which one part, anywhere inside, is removed, renamed or another value."""
    places = list(_walk(value, ()))
    path = draw.choice(places) if draw.random() < 0.5 else draw.choice(places[: max(1, len(places) // 8)])
    kind = draw.randrange(8)
    return _change(value, path, kind, draw)


def _walk(value: Any, path: tuple[Any, ...]) -> Any:
    yield path
    if len(path) > 8:
        return
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in list(inside)[:300]:
        yield from _walk(one, (*path, key))


def _change(value: Any, path: tuple[Any, ...], kind: int, draw: Random) -> Any:
    if not path:
        return draw.choice(HOSTILE)
    copy = dict(value) if isinstance(value, dict) else list(value)
    key = path[0]
    if len(path) > 1:
        copy[key] = _change(copy[key], path[1:], kind, draw)
    elif kind == 0:
        del copy[key]
    elif kind == 1 and isinstance(copy, dict):
        copy[draw.choice(("", "x" * 500, "\x1b[2J", str(key) + "s"))] = copy.pop(key)
    elif kind == 2 and isinstance(copy, dict):
        copy[draw.choice(("extra", "name", "type"))] = draw.choice(HOSTILE)
    else:
        copy[key] = draw.choice(HOSTILE)
    return copy


def mutate_json(data: bytes, draw: Random) -> bytes:
    """A JSON file with one value changed, or with its bytes changed."""
    if draw.random() < 0.25:
        return mutate_bytes(data, draw)
    return json.dumps(mutate_value(json.loads(data), draw)).encode("utf-8", "replace")


def mutate_json_lines(data: bytes, draw: Random) -> bytes:
    lines = data.split(b"\n")
    at = draw.randrange(max(1, len(lines) - 1))
    lines[at] = mutate_json(lines[at], draw) if lines[at] else b"[]"
    return b"\n".join(lines)


def mutate_yaml(data: bytes, draw: Random) -> bytes:
    """A YAML file with one value changed, or with its bytes changed."""
    if draw.random() < 0.3:
        return mutate_bytes(data, draw)
    value = mutate_value(yaml.safe_load(data), draw)
    try:
        return yaml.safe_dump(value, sort_keys=False, explicit_end=True).encode("utf-8", "replace")
    except (yaml.YAMLError, ValueError):
        return mutate_bytes(data, draw)


def mutate_safetensors(data: bytes, draw: Random) -> bytes:
    """Tensors with another head, or with other bytes."""
    if draw.random() < 0.3:
        return mutate_bytes(data, draw)
    size = struct.unpack("<Q", data[:8])[0]
    head, rest = json.loads(data[8 : 8 + size]), data[8 + size :]
    changed = json.dumps(mutate_value(head, draw)).encode("utf-8", "replace")
    length = len(changed) if draw.random() < 0.8 else draw.choice((0, 1, 2**20, 2**40, 2**63, len(changed) + 3))
    return struct.pack("<Q", length) + changed + rest


def mutate_gzip(data: bytes, draw: Random) -> bytes:
    """What is inside changed, or the packed bytes."""
    if draw.random() < 0.4:
        return mutate_bytes(data, draw)
    return gzip.compress(mutate_bytes(gzip.decompress(data), draw), 1)


Mutation = Callable[[bytes, Random], bytes]
BY_SUFFIX: dict[str, Mutation] = {
    ".json": mutate_json,
    ".jsonl": mutate_json_lines,
    ".yaml": mutate_yaml,
    ".safetensors": mutate_safetensors,
    ".gz": mutate_gzip,
}


def mutation_of(name: str) -> Mutation:
    """The mutation that knows most about a file of this name."""
    return next((found for suffix, found in BY_SUFFIX.items() if name.endswith(suffix)), mutate_bytes)
