"""Pictures as squares of bytes: read with Pillow, made equal in size, kept in one memory-mapped array.

The array is found again by the content of the pictures and by how they are fitted, so a changed picture is read anew
and a renamed one is not.
"""

from __future__ import annotations

import io
import json
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from threading import Condition
from typing import BinaryIO

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from regard.data.cache import cache_root, find_or_make, key_of, make_kind_folder
from regard.data.checksums import sha256_of
from regard.data.folders import walk_files
from regard.errors import RegardError, suggest_path
from regard.files import expand_home
from regard.untrusted.small_files import check_size, open_regular, read_bytes, read_object
from regard.untrusted.values import make_printable

FORM = 2  # of what is kept; another number leaves older files aside
SUFFIXES = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff")
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF")
"""What is told by a file's first bytes, whatever its name: of the others some start a program, as EPS does."""
MAX_PIXELS = 2**26  # 8192 x 8192
MAX_FILE = 2**29  # bytes
MAX_16_BITS = 65_535.0
BYTES_A_PIXEL = 4  # as Pillow holds them
TILE = 512  # pixels a side of what is made 8 bits at a time
N_AHEAD = 64  # pictures that are read while one is written

Pixels = NDArray[np.uint8]


class Room:
    """So many pixels may be decoded at once by several threads; a picture of more of them waits until it is alone."""

    def __init__(self, n: int) -> None:
        self._n, self._n_taken, self._changed = n, 0, Condition()

    @contextmanager
    def take(self, n: int) -> Iterator[None]:
        """Wait until there is room for n pixels, and keep it for the block."""
        with self._changed:
            self._changed.wait_for(lambda: self._n_taken == 0 or self._n_taken + n <= self._n)
            self._n_taken += n
        try:
            yield
        finally:
            with self._changed:
                self._n_taken -= n
                self._changed.notify_all()


def count_pixels(file: BinaryIO) -> int:
    """How many pixels a picture unpacks to, by its first bytes; 0 for what is no picture."""
    try:
        image = Image.open(file, formats=FORMATS)
        return image.width * image.height
    except Exception:  # a damaged file can make Pillow's readers raise nearly anything
        return 0


def read_picture(data: bytes) -> Image.Image:
    """A picture in RGB, upright as its camera says, see-through parts on white; RegardError says what is wrong."""
    if not data:
        raise RegardError("the file is empty")
    try:
        image: Image.Image = Image.open(io.BytesIO(data), formats=FORMATS)
        if image.width * image.height > MAX_PIXELS:  # a small file can unpack to more than there is memory
            raise RegardError(f"it has {image.width} x {image.height} pixels, more than {MAX_PIXELS:,}")
        ImageOps.exif_transpose(image, in_place=True)  # a copy would be held beside it
        if image.mode.split(";")[0] in ("I", "F"):
            image = _reduce_to_8_bits(image)
        if image.has_transparency_data:
            image = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
        return image.convert("RGB")
    except RegardError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise RegardError(f"it has more than {MAX_PIXELS:,} pixels") from None
    except UnidentifiedImageError:
        raise RegardError(f"it is no picture of these formats: {', '.join(FORMATS)}") from None
    except Exception as error:  # a damaged file can make Pillow's readers raise nearly anything
        raise RegardError(f"it is damaged: {make_printable(str(error), 200).rstrip('.')}") from None


def _reduce_to_8_bits(image: Image.Image) -> Image.Image:
    """A grey picture of more than 8 bits a pixel: Pillow would cut off all above 255, which is nearly all.

    16 bits, also where they are kept in 32, become 8. Other numbers have no white of their own, so they are spread from
    the lowest, black, to the highest; what is no number is black.
    """
    low, high = math.inf, -math.inf
    for _, greys in _tiles(image):
        known = greys[np.isfinite(greys)]
        low, high = float(known.min(initial=low)), float(known.max(initial=high))
    if low > high:
        low = high = 0.0
    if image.mode != "F" and low >= 0 and high <= MAX_16_BITS:
        low, high = 0.0, MAX_16_BITS
    reduced = np.empty((image.height, image.width), dtype=np.uint8)
    for place, greys in _tiles(image):
        spread = np.nan_to_num((greys - low) * 255 / ((high - low) or 1.0), nan=0.0)
        reduced[place] = spread.clip(0, 255).round()
    return Image.fromarray(reduced)


def _tiles(image: Image.Image) -> Iterator[tuple[tuple[slice, slice], NDArray[np.float64]]]:
    """A square of a grey picture at a time, with its numbers: those of all its pixels would take gigabytes."""
    for top, left in product(range(0, image.height, TILE), range(0, image.width, TILE)):
        bottom, right = min(top + TILE, image.height), min(left + TILE, image.width)
        greys = np.asarray(image.crop((left, top, right, bottom)), dtype=np.float64)
        yield (slice(top, bottom), slice(left, right)), greys


def fit_square(image: Image.Image, side: int, fit: str) -> Pixels:
    """(side, side, 3): the middle square of a picture (crop), or all of it with its sides made equal (squeeze).

    >>> fit_square(Image.new("RGB", (6, 4), (1, 2, 3)), 2, "crop").tolist()
    [[[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [1, 2, 3]]]
    """
    if fit == "crop":
        image = ImageOps.fit(image, (side, side), Image.Resampling.BICUBIC)
    elif image.size != (side, side):
        image = image.resize((side, side), Image.Resampling.BICUBIC)
    return np.asarray(image)


@dataclass(frozen=True)
class Pictures:
    """N pictures (N, side, side, 3), in the order of the files they were read from.

    `bad` says, by number, why a file could not be read; its place in the array is black. `hashes` are of the files.
    """

    pixels: Pixels
    bad: dict[int, str]
    hashes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.pixels)


def load_pictures(
    files: Sequence[Path], side: int, fit: str, cache: Path | None = None, tell: Callable[[int], None] | None = None
) -> Pictures:
    """Read files, or find what was kept of the same content; `tell` is called with how many were read."""
    with ThreadPoolExecutor() as pool:
        hashes = tuple(pool.map(_hash_of, files))
    # The pixels depend on how Pillow resamples, so on its version too.
    folder = make_kind_folder(cache or cache_root(), "pictures") / key_of(FORM, PIL.__version__, side, fit, hashes)
    pixels, bad = find_or_make(folder, _open, lambda aside: _write(aside, files, side, fit, tell))
    return Pictures(pixels, bad, hashes)


def _open(folder: Path) -> tuple[Pixels, dict[int, str]] | None:
    try:
        bad = read_object(folder / "bad.json")
        pixels = np.load(folder / "pixels.npy", mmap_mode="r", allow_pickle=False)
        return pixels, {int(number): str(why) for number, why in bad.items()}
    except (OSError, ValueError, RegardError):
        return None


def _hash_of(file: Path) -> str:
    try:
        check_size(file, file.stat().st_size, MAX_FILE)
        return sha256_of(file)
    except OSError as error:
        raise RegardError(f"The picture '{file}' cannot be read: {error.strerror}.") from None


def _write(folder: Path, files: Sequence[Path], side: int, fit: str, tell: Callable[[int], None] | None) -> None:
    shape = (len(files), side, side, 3)
    bad: dict[int, str] = {}
    # Written as a file and not through mapped memory: there a full disk ends the process with SIGBUS and no word.
    with open(folder / "pixels.npy", "wb") as kept:
        np.lib.format.write_array_header_1_0(kept, {"descr": "|u1", "fortran_order": False, "shape": shape})
        for number, result in enumerate(_read_all(files, side, fit)):
            if isinstance(result, str):
                bad[number] = result
                result = np.zeros(shape[1:], dtype=np.uint8)
            kept.write(np.ascontiguousarray(result).tobytes())
            if tell is not None:
                tell(number + 1)
    (folder / "bad.json").write_text(json.dumps(bad))


def _read_all(files: Sequence[Path], side: int, fit: str) -> Iterator[Pixels | str]:
    """Pixels, or why there are none; Pillow decodes several files at a time, of which few are held."""
    room = Room(MAX_PIXELS)

    def read(file: Path) -> Pixels | str:
        try:
            with open_regular(file) as opened:
                n_pixels = count_pixels(opened)
            with room.take(n_pixels + file.stat().st_size // BYTES_A_PIXEL):
                return fit_square(read_picture(read_bytes(file, MAX_FILE)), side, fit)
        except RegardError as error:
            return str(error)

    # Filters of warnings belong to the process, so they are set outside of the threads: damaged notes of a camera
    # harm no pixel, and sizes are checked by `read_picture`.
    with ThreadPoolExecutor() as pool, warnings.catch_warnings(action="ignore"):
        for first in range(0, len(files), N_AHEAD):
            yield from pool.map(read, files[first : first + N_AHEAD])


def list_pictures(given: Sequence[str]) -> Iterator[Path]:
    """The pictures that files, folders and globs name, in order."""
    for name in given:
        path = expand_home(name)
        if path.is_dir():
            found = sorted(p for p in walk_files(path) if p.suffix.lower() in SUFFIXES)
        elif path.exists():
            found = [path]
        else:
            found = sorted(p for p in Path(path.anchor).glob(str(path.relative_to(path.anchor))) if p.is_file())
        if not found:
            raise RegardError(f"{_tell_missing(path, name)} Pictures end in {', '.join(SUFFIXES)}.")
        yield from found


def _tell_missing(path: Path, name: str) -> str:
    if path.is_dir():
        return f"The folder '{name}' holds no picture."
    return f"There is no picture '{name}'.{suggest_path(path)}"
