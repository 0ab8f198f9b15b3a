"""Plain values from JSON as dataclasses, every type checked: what is written by us may have been changed by others."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from regard.untrusted.values import quote

T = TypeVar("T")
MAX_INT = 2**63 - 1
MAX_FLOAT = 1e100  # a measured number is smaller; squares and sums of these are finite


class FieldError(ValueError):
    """A value that is not of its field's type; its text is the rest of a sentence that begins with the file."""


def decode_fields(kind: type[T], value: Any) -> T:
    """Plain JSON values as the dataclasses and tuples that `kind` names; the inverse of `dataclasses.asdict`.

    JSON has no word for not-a-number: null stands for it where a float is wanted. Fields that are left out have their
    defaults; a field that must be there, that is unknown or that is of another type is a FieldError.

    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: int
    ...     names: tuple[str, ...] = ()
    >>> decode_fields(Point, {"x": 1, "names": ["a", "b"]})
    Point(x=1, names=('a', 'b'))
    """
    return typing.cast(T, _decode(kind, value, ""))


def is_measure(value: Any) -> bool:
    """Whether a value is a number that something can have measured: finite, and squares and sums of it too."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_FLOAT


def is_count(value: Any) -> bool:
    """Whether a value is a whole number of things."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INT


def _decode(kind: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(kind, value, where)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in inner:
            return None
        return _decode(next(one for one in inner if one is not type(None)), value, where)
    if origin in (tuple, list):
        if not isinstance(value, list | tuple):
            raise _wrong(where, "a list", value)
        found = [_decode(inner[0], one, where) for one in value]
        return found if origin is list else tuple(found)
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise _wrong(where, "an object", value)
        return {str(key): _decode(inner[1], one, f"{where}.{key:.40}") for key, one in value.items()}
    return _decode_number_or_text(kind, value, where)


def _decode_number_or_text(kind: Any, value: Any, where: str) -> Any:
    if kind is Any:
        return value
    if kind is float:
        if value is None:
            return math.nan
        if not (is_measure(value) or (isinstance(value, float) and math.isnan(value))):
            raise _wrong(where, "a number", value)
        return float(value)
    if kind is int:
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MAX_INT:
            raise _wrong(where, "a whole number", value)
        return value
    names = {str: "text", bool: "true or false"}
    if not isinstance(value, kind):
        raise _wrong(where, names.get(kind, str(kind)), value)
    return value


def _decode_dataclass(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, Mapping):
        raise _wrong(where, "an object", value)
    hints = typing.get_type_hints(kind)
    fields = [f for f in dataclasses.fields(kind) if f.init and f.compare]
    required = [f.name for f in fields if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING]
    if missing := [name for name in required if name not in value]:
        raise FieldError(f"{kind.__name__} lacks {', '.join(missing[:5])}")
    known = {f.name for f in fields}
    if unknown := [name for name in value if name not in known]:
        raise FieldError(f"{kind.__name__} has {quote(unknown[0])}, which is no field of it")
    named = {name: _decode(hints[name], one, f"{where}.{name}" if where else name) for name, one in value.items()}
    return kind(**named)


def _wrong(where: str, wanted: str, value: Any) -> FieldError:
    return FieldError(
        f"'{where}' must be {wanted}, not {quote(value, 40)}" if where else f"it holds {quote(value, 40)}"
    )
