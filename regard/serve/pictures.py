"""Pictures that come with requests: files in base64, which lie in a folder as long as a model reads them."""

from __future__ import annotations

import base64
import binascii
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.errors import RegardError


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
    with tempfile.TemporaryDirectory(prefix="regard-picture-") as folder:
        path = Path(folder) / "picture"
        path.write_bytes(content)
        try:
            yield path
        except RegardError as error:
            raise RegardError(
                str(error).replace(f"The picture '{path}'", "The picture").replace(str(path), "it")
            ) from None
