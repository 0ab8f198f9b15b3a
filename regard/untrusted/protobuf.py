"""Messages of Protocol Buffers, as SentencePiece saves its models: the fields of one message, by number.

A message is a row of fields. Each begins with a key, 8 times its number and how its value is written: 0 a varint, 1
eight bytes, 2 a length and so many bytes (a text, or a message inside), 5 four bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from regard.untrusted.small_files import COPY_AGAIN, DamagedFileError
from regard.untrusted.values import MAX_VALUES

MAX_VARINT = 10  # bytes of 7 bits: 64 bits
VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5

Value = int | bytes | float


def read_fields(data: bytes, where: str) -> Iterator[tuple[int, Value]]:
    """The number and the value of every field of a message: whole numbers, bytes, or floats where it has four bytes.

    >>> list(read_fields(bytes([8, 150, 1, 18, 2, 104, 105]), "the file"))
    [(1, 150), (2, b'hi')]
    """
    at, n_fields = 0, 0
    while at < len(data):
        key, at = _read_varint(data, at, where)
        number, form = key >> 3, key & 7
        n_fields += 1
        if n_fields > MAX_VALUES:
            raise DamagedFileError(f"{where} has more than {MAX_VALUES:,} fields, the most that is read.")
        value: Value
        if form == VARINT:
            value, at = _read_varint(data, at, where)
        elif form in (EIGHT_BYTES, BYTES, FOUR_BYTES):
            length = {EIGHT_BYTES: 8, FOUR_BYTES: 4}.get(form, 0)
            if form == BYTES:
                length, at = _read_varint(data, at, where)
            if length > len(data) - at:
                raise DamagedFileError(f"{where} ends in the middle of a value. {COPY_AGAIN}.")
            value, at = data[at : at + length], at + length
            if form == FOUR_BYTES:
                (value,) = struct.unpack("<f", value)
        else:
            raise DamagedFileError(f"{where} has a value of no kind that Protocol Buffers know ({form}). {COPY_AGAIN}.")
        yield number, value


def _read_varint(data: bytes, at: int, where: str) -> tuple[int, int]:
    """A whole number in groups of 7 bits, lowest first, and where it ends."""
    value = 0
    for i in range(MAX_VARINT):
        if at + i >= len(data):
            raise DamagedFileError(f"{where} ends in the middle of a number. {COPY_AGAIN}.")
        value |= (data[at + i] & 0x7F) << (7 * i)
        if data[at + i] < 0x80:
            return value, at + i + 1
    raise DamagedFileError(f"{where} has a number of more than 64 bits, which no such file has. {COPY_AGAIN}.")
