"""Pictures that come with requests: files in base64, which lie in a folder as long as a model reads them."""

from __future__ import annotations

import base64
import binascii
import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.data.pictures import count_pixels
from regard.errors import RegardError

MAX_PIXELS = 2**24  # 4096 x 4096: others wait while a picture is decoded


def pixels_of(picture: str) -> int:
    """How many pixels a picture in base64 unpacks to; 0 for what is none."""
    try:
        return count_pixels(io.BytesIO(base64.b64decode(picture)))
    except (binascii.Error, ValueError):
        return 0


@contextmanager
def keep_picture(picture: str | None) -> Iterator[Path | None]:
    """A file with the picture, gone after the block; None of None. Errors call it the picture, wherever it lay."""
    if picture is None:
        yield None
        return
    try:
        content = base64.b64decode(picture, validate=True)
    except (binascii.Error, ValueError):
        raise RegardError("The picture is not base64. Send the bytes of a JPEG or PNG file in base64.") from None
    if (n_pixels := count_pixels(io.BytesIO(content))) > MAX_PIXELS:
        raise RegardError(
            f"The picture has {n_pixels:,} pixels, and {MAX_PIXELS:,} at most are read. Send a smaller one."
        )
    with tempfile.TemporaryDirectory(prefix="regard-picture-") as folder:
        path = Path(folder) / "picture"
        path.write_bytes(content)
        try:
            yield path
        except RegardError as error:
            raise RegardError(
                str(error).replace(f"The picture '{path}'", "The picture").replace(str(path), "it")
            ) from None
