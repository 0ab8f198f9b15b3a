"""Tensors out of a file that torch wrote before version 1.6, without running anything that is in it.

Such a file is four pickles and then the raw numbers. A pickle is a program: `pickle` runs it, and so does
`torch.load`, if with fewer words. Here the program is read and never run: its words are taken apart one by one, those
that put plain values together are followed, names of functions stay names, and any other word is refused.
"""

from __future__ import annotations

import io
import pickletools
import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
REBUILD, DICTIONARY = "torch._utils _rebuild_tensor_v2", "collections OrderedDict"
TYPES: dict[str, np.dtype[Any]] = {"torch FloatStorage": np.dtype("<f4"), "torch LongStorage": np.dtype("<i8")}
CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
NUMBERS_AND_TEXT = ("BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1")

Array = NDArray[np.generic]


class _Name(NamedTuple):
    """What a function or a class is called; it is never looked up."""

    name: str


class _Call(NamedTuple):
    """A call that was asked for and not made."""

    function: _Name
    arguments: Any


class _Storage(NamedTuple):
    """The description of raw numbers that follow the pickles."""

    description: Any


_MARK = object()


def read_torch_file(data: bytes, where: str) -> dict[str, Array]:
    """The tensors of a saved state dict, by name; `where` names the file in errors."""
    try:
        file = io.BytesIO(data)
        if _value(file) != MAGIC or _value(file) != PROTOCOL or not _value(file)["little_endian"]:
            raise ValueError("it does not start as such a file does")
        described, keys = _value(file), _value(file)
        storages = _storages(data[file.tell() :], described, keys)
        return {name: _tensor(call, storages) for name, call in described.items()}
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error) as error:
        raise RegardError(
            f"{where} cannot be read as weights that torch saved before version 1.6: {error}. Install the package that "
            "it came with again, or give another file."
        ) from None


def _value(file: io.BytesIO) -> Any:
    """The plain values that one pickle describes."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    for opcode, argument, _ in pickletools.genops(file):
        word = opcode.name
        if word in NUMBERS_AND_TEXT:
            stack.append(argument)
        elif word in CONSTANTS:
            stack.append(CONSTANTS[word])
        elif word in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]  # type: ignore[index]
        elif word in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])  # type: ignore[index]
        elif word == "GLOBAL":
            stack.append(_check_name(str(argument)))
        elif word == "STOP":
            return stack.pop()
        elif word != "PROTO":
            _combine(word, stack)
    raise ValueError("a pickle in it has no end")


def _check_name(name: str) -> _Name:
    if name not in (REBUILD, DICTIONARY, *TYPES):
        raise ValueError(f"it asks for '{name}', which weights do not need")
    return _Name(name)


def _combine(word: str, stack: list[Any]) -> None:
    """Follow one of the words that put values on the stack together."""
    if word in ("MARK", "EMPTY_DICT", "EMPTY_LIST"):
        stack.append({"MARK": _MARK, "EMPTY_DICT": {}, "EMPTY_LIST": []}[word])
    elif word in ("TUPLE1", "TUPLE2", "TUPLE3"):
        stack[-int(word[-1]) :] = [tuple(stack[-int(word[-1]) :])]
    elif word == "TUPLE":
        stack.append(tuple(_since_mark(stack)))
    elif word in ("APPEND", "APPENDS"):
        items = _since_mark(stack) if word == "APPENDS" else [stack.pop()]
        stack[-1].extend(items)
    elif word == "SETITEMS":
        items = _since_mark(stack)
        stack[-1].update(zip(items[::2], items[1::2], strict=True))
    elif word == "SETITEM":
        value, key = stack.pop(), stack.pop()
        stack[-1][key] = value
    elif word == "REDUCE":
        arguments, function = stack.pop(), stack.pop()
        stack.append({} if function == _Name(DICTIONARY) else _Call(function, arguments))
    elif word == "BINPERSID":
        stack.append(_Storage(stack.pop()))
    elif word == "BUILD":
        stack.pop()  # attributes of a dict, which hold no weights
    else:
        raise ValueError(f"it has the word {word}, which weights do not need")


def _since_mark(stack: list[Any]) -> list[Any]:
    at = len(stack) - 1 - stack[::-1].index(_MARK)
    items = stack[at + 1 :]
    del stack[at:]
    return items


def _storages(data: bytes, described: dict[str, _Call], keys: list[str]) -> dict[str, Array]:
    """The raw numbers by key: for each key how many there are, eight bytes, and then they."""
    types: dict[str, np.dtype[Any]] = {}
    for call in described.values():
        _, kind, key, *_ = call.arguments[0].description
        types[key] = TYPES[kind.name]
    storages: dict[str, Array] = {}
    at = 0
    for key in keys:
        (n,) = struct.unpack_from("<q", data, at)
        storages[key] = np.frombuffer(data, types[key], n, at + 8)
        at += 8 + n * types[key].itemsize
    return storages


def _tensor(call: _Call, storages: dict[str, Array]) -> Array:
    storage, offset, shape, strides, *_ = call.arguments
    flat = storages[storage.description[2]][offset:]
    last = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    if call.function != _Name(REBUILD) or offset < 0 or min((*shape, *strides, 1)) < 0 or last >= len(flat):
        raise ValueError("a tensor in it lies outside of its numbers")
    steps = tuple(stride * flat.itemsize for stride in strides)
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(flat, shape, steps, writeable=False))
