"""A PNG of an RGB picture: signature, header, the rows compressed by zlib, end (ISO 15948)."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EIGHT_BIT_RGB = bytes([8, 2, 0, 0, 0])  # depth, colour type, and the only compression, filter and order of rows


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Pixels (height, width, 3) as the bytes of a file."""
    height, width, _ = pixels.shape
    unfiltered = np.zeros((height, 1), np.uint8)  # each row begins with the number of its filter: 0, none
    rows = np.concatenate([unfiltered, pixels.reshape(height, width * 3)], axis=1)
    header = struct.pack(">II", width, height) + _EIGHT_BIT_RGB
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")
    return SIGNATURE + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
