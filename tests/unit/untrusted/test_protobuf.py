"""Messages of Protocol Buffers, written by hand."""

import struct

import pytest

from regard.errors import RegardError
from regard.untrusted import protobuf
from regard.untrusted.protobuf import read_fields


def test_every_form_of_a_value_is_read() -> None:
    score = struct.pack("<f", -1.5)
    data = bytes([0x08, 0x96, 0x01]) + b"\x12\x03cat" + b"\x1d" + score + b"\x21" + bytes(8) + b"\xc0\x02\x01"
    assert list(read_fields(data, "it")) == [(1, 150), (2, b"cat"), (3, -1.5), (4, bytes(8)), (40, 1)]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x12\x05cat", "'x' ends in the middle of a value"),
        (b"\x1d\x00", "ends in the middle of a value"),
        (b"\x08", "ends in the middle of a number"),
        (b"\x08" + b"\xff" * 20, "a number of more than 64 bits"),
        (b"\x0b", r"a value of no kind that Protocol Buffers know \(3\)"),
        (b"\x12" + b"\xff" * 9 + b"\x01", "ends in the middle of a value"),
    ],
)
def test_what_is_no_message_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(RegardError, match=words):
        list(read_fields(data, "'x'"))


def test_fields_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf, "MAX_VALUES", 3)
    with pytest.raises(RegardError, match="more than 3 fields"):
        list(read_fields(b"\x08\x01" * 4, "'x'"))
