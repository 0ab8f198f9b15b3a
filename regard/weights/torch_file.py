"""Tensors out of a file that torch wrote, without running anything that is in it.

Before version 1.6 such a file is four pickles and then the raw numbers; since then it is a zip archive of one pickle
and a file of numbers for each storage. A pickle is a program: `pickle` runs it, and so does `torch.load`, if with fewer
words. Here the program is read and never run: its words are taken apart one by one, those that put plain values
together are followed, names of functions stay names, and any other word is refused.
"""

from __future__ import annotations

import io
import math
import pickletools
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.untrusted.small_files import open_regular

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
REBUILD, DICTIONARY = "torch._utils _rebuild_tensor_v2", "collections OrderedDict"
PARAMETER = "torch._utils _rebuild_parameter"
TYPES: dict[str, np.dtype[Any]] = {
    "torch FloatStorage": np.dtype("<f4"),
    "torch HalfStorage": np.dtype("<f2"),
    "torch DoubleStorage": np.dtype("<f8"),
    "torch BFloat16Storage": np.dtype("<u2"),  # the upper half of a float32: numpy has no such number
    "torch LongStorage": np.dtype("<i8"),
    "torch IntStorage": np.dtype("<i4"),
    "torch ByteStorage": np.dtype("u1"),
    "torch BoolStorage": np.dtype("?"),
}
CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
NUMBERS_AND_TEXT = ("BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1")

MAX_SHARED = 4  # bytes of tensors for each of the file

BROKEN = (ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error)
"""What reading a file raises that is not what it should be."""

Array = NDArray[np.generic]


class _Name(NamedTuple):
    """What a function or a class is called; it is never looked up."""

    name: str


class _Call(NamedTuple):
    """A call that was asked for and not made."""

    function: _Name
    arguments: Any


class _Storage(NamedTuple):
    """The description of raw numbers that lie elsewhere in the file."""

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
        return _tensors(described, storages, len(data))
    except BROKEN as error:
        raise RegardError(
            f"{where} cannot be read as weights that torch saved before version 1.6: {error}. Install the package that "
            "it came with again, or give another file."
        ) from None


def read_torch_path(path: Path) -> dict[str, Array]:
    """The tensors of a state dict that torch saved at `path`, by name, whichever version of torch that was."""
    with open_regular(path) as file:
        if not zipfile.is_zipfile(file):
            file.seek(0)
            return read_torch_file(file.read(), f"'{path}'")
    try:
        with zipfile.ZipFile(path) as archive:
            return _read_archive(archive, path.stat().st_size)
    except (*BROKEN, zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise RegardError(
            f"'{path}' cannot be read as weights that torch saved: {error}. Copy the file again, or take one that holds"
            " nothing but a state dict, better a model.safetensors."
        ) from None


def _read_archive(archive: zipfile.ZipFile, n_bytes: int) -> dict[str, Array]:
    """The tensors of a zip archive: NAME/data.pkl describes them, NAME/data/KEY are their numbers."""
    names = [name for name in archive.namelist() if name.count("/") == 1 and name.endswith("/data.pkl")]
    if len(names) != 1:
        raise ValueError("it has no data.pkl")
    root = names[0].removesuffix("data.pkl")
    if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
        raise ValueError("it is packed, which torch never does")
    if sum(info.file_size for info in archive.infolist()) > n_bytes:
        raise ValueError("its parts are larger than it is")
    if f"{root}byteorder" in archive.namelist() and archive.read(f"{root}byteorder") != b"little":
        raise ValueError("its numbers are big-endian")
    described = _value(io.BytesIO(archive.read(names[0])))
    if not isinstance(described, dict):
        raise ValueError("it holds no dict of tensors")
    types = _types(described)
    storages = {key: np.frombuffer(archive.read(f"{root}data/{key}"), dtype) for key, dtype in types.items()}
    return _tensors(described, storages, n_bytes)


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
    if name not in (REBUILD, PARAMETER, DICTIONARY, *TYPES):
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
        stack[-1].update(zip(map(_check_key, items[::2]), items[1::2], strict=True))
    elif word == "SETITEM":
        value, key = stack.pop(), stack.pop()
        stack[-1][_check_key(key)] = value
    elif word == "REDUCE":
        arguments, function = stack.pop(), stack.pop()
        if function == _Name(PARAMETER):  # a tensor, and whether it is trained
            stack.append(arguments[0])
        else:
            stack.append({} if function == _Name(DICTIONARY) else _Call(function, arguments))
    elif word == "BINPERSID":
        stack.append(_Storage(stack.pop()))
    elif word == "BUILD":
        stack.pop()  # attributes of a dict, which hold no weights
    else:
        raise ValueError(f"it has the word {word}, which weights do not need")


def _check_key(key: Any) -> str:
    """The name of a value. Tuples inside tuples, a million deep, would end the process when they are looked up."""
    if not isinstance(key, str):
        raise ValueError("it has a name that is no text")
    return key


def _since_mark(stack: list[Any]) -> list[Any]:
    at = len(stack) - 1
    while stack[at] is not _MARK:  # from the end: a search from the beginning would be done for every mark again
        at -= 1
    items = stack[at + 1 :]
    del stack[at:]
    return items


def _types(described: Mapping[str, _Call]) -> dict[str, np.dtype[Any]]:
    """Of which type the numbers of each storage are."""
    types: dict[str, np.dtype[Any]] = {}
    for call in described.values():
        _, kind, key, *_ = call.arguments[0].description
        types[key] = TYPES[kind.name]
    return types


def _storages(data: bytes, described: dict[str, _Call], keys: list[str]) -> dict[str, Array]:
    """The raw numbers by key: for each key how many there are, eight bytes, and then they."""
    types = _types(described)
    storages: dict[str, Array] = {}
    at = 0
    for key in keys:
        (n,) = struct.unpack_from("<q", data, at)
        storages[key] = np.frombuffer(data, types[key], n, at + 8)
        at += 8 + n * types[key].itemsize
    return storages


def _tensors(described: Mapping[str, _Call], storages: dict[str, Array], n_bytes: int) -> dict[str, Array]:
    """The tensors by name. Several may share their numbers, as tied weights do; each gets a copy of its own."""
    wanted = sum(
        math.prod(map(abs, call.arguments[2])) * storages[call.arguments[0].description[2]].itemsize
        for call in described.values()
    )
    if wanted > MAX_SHARED * n_bytes:
        raise ValueError("its tensors together are many times larger than it is")
    return {name: _tensor(call, storages) for name, call in described.items()}


def _tensor(call: _Call, storages: dict[str, Array]) -> Array:
    storage, offset, shape, strides, *_ = call.arguments
    flat = storages[storage.description[2]][offset:]
    last = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    if (
        call.function != _Name(REBUILD)
        or offset < 0
        or min((*shape, *strides, 1)) < 0
        or last >= len(flat)
        or math.prod(shape) > len(flat)
    ):
        raise ValueError("a tensor in it lies outside of its numbers")
    steps = tuple(stride * flat.itemsize for stride in strides)
    found = np.array(np.lib.stride_tricks.as_strided(flat, shape, steps, writeable=False))
    is_bfloat16 = storage.description[1].name == "torch BFloat16Storage"
    return (found.astype("<u4") << 16).view("<f4") if is_bfloat16 else found
