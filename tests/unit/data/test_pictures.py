"""Pictures: what is read, how it is made square, what is refused, and what is kept."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from time import sleep

import numpy as np
import pytest
from PIL import Image

from regard.data import pictures
from regard.data.pictures import fit_square, load_pictures, read_picture
from regard.errors import RegardError

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def encoded(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def stripes(*colours: tuple[int, int, int], width: int = 2, height: int = 2) -> Image.Image:
    """Upright stripes of `width`, from left to right."""
    image = Image.new("RGB", (width * len(colours), height))
    for i, colour in enumerate(colours):
        image.paste(colour, (i * width, 0, (i + 1) * width, height))
    return image


def test_crop_takes_the_middle_and_squeeze_takes_all() -> None:
    wide = stripes(RED, GREEN, BLUE, width=4, height=4)
    assert (fit_square(wide, 4, "crop") == GREEN).all()
    squeezed = fit_square(wide, 12, "squeeze")
    assert squeezed.shape == (12, 12, 3)
    assert squeezed[5, 0].tolist() == list(RED)
    assert squeezed[5, 11].tolist() == list(BLUE)


def test_a_picture_of_the_right_size_is_kept_to_the_byte() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 9, 3), dtype=np.uint8)
    image = read_picture(encoded(Image.fromarray(pixels)))
    for fit in ("crop", "squeeze"):
        np.testing.assert_array_equal(fit_square(image, 9, fit), pixels)


def test_grey_and_palette_pictures_become_rgb() -> None:
    grey = read_picture(encoded(Image.new("L", (3, 2), 77)))
    assert np.asarray(grey).tolist() == [[[77] * 3] * 3] * 2
    palette = read_picture(encoded(stripes(RED, BLUE).convert("P")))
    assert palette.mode == "RGB"
    assert palette.getpixel((0, 0)) == RED


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_16_bits_of_grey_become_8_and_none_is_lost_to_white(form: str) -> None:
    greys = np.array([[0, 128, 257, 32_768, 65_407, 65_535]], dtype=np.uint16)
    image = read_picture(encoded(Image.fromarray(greys), form))
    assert np.asarray(image)[0].tolist() == [[grey] * 3 for grey in (0, 0, 1, 128, 255, 255)]  # of 257 each, rounded


@pytest.mark.parametrize(
    ("greys", "expected"),
    [
        (np.array([[0, 257, 65_535]], dtype=np.int32), [0, 1, 255]),  # 16 bits in 32
        (np.array([[0, 100_000, 1_000_000]], dtype=np.int32), [0, 26, 255]),
        (np.array([[-100, 0, 300]], dtype=np.int32), [0, 64, 255]),
        (np.array([[0.0, 0.5, 1.0]], dtype=np.float32), [0, 128, 255]),
        (np.array([[0.25, np.nan, 0.75]], dtype=np.float32), [0, 0, 255]),
        (np.array([[0.5, 0.5]], dtype=np.float32), [0, 0]),
    ],
)
def test_grey_of_any_range_is_spread_from_black_to_white(greys: np.ndarray, expected: list[int]) -> None:
    image = read_picture(encoded(Image.fromarray(greys), "TIFF"))
    assert np.asarray(image)[0, :, 0].tolist() == expected


def test_see_through_parts_stand_on_white() -> None:
    half = Image.new("RGBA", (2, 1), (0, 0, 0, 0))
    half.putpixel((1, 0), (0, 0, 255, 255))
    image = read_picture(encoded(half))
    assert [image.getpixel((0, 0)), image.getpixel((1, 0))] == [WHITE, BLUE]


def test_a_picture_stands_as_the_camera_says() -> None:
    notes = Image.Exif()
    notes[0x0112] = 6  # turn by 90 degrees clockwise
    image = read_picture(encoded(stripes(RED, BLUE), exif=notes))
    assert image.size == (2, 4)
    assert [image.getpixel((0, 0)), image.getpixel((0, 3))] == [RED, BLUE]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "the file is empty"),
        (b"not a picture at all", "no picture of these formats: JPEG, PNG"),
        (encoded(Image.effect_noise((64, 64), 50), "JPEG")[:400], "it is damaged: .*truncated"),
    ],
    ids=["empty", "text", "cut short"],
)
def test_what_is_no_picture_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(RegardError, match=why):
        read_picture(data)


def test_a_picture_too_large_for_memory_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_PIXELS", 11)
    with pytest.raises(RegardError, match="it has 6 x 2 pixels, more than 11"):
        read_picture(encoded(stripes(RED, GREEN, BLUE)))


def written(folder: Path, **files: bytes) -> list[Path]:
    for name, data in files.items():
        (folder / f"{name}.png").write_bytes(data)
    return [folder / f"{name}.png" for name in files]


def test_pictures_come_in_the_order_of_their_files_and_bad_ones_say_why(tmp_path: Path) -> None:
    files = written(tmp_path, a=encoded(stripes(RED)), b=b"broken", c=encoded(stripes(BLUE)))
    told: list[int] = []
    kept = load_pictures(files, 2, "crop", tmp_path / "cache", told.append)
    assert kept.pixels.shape == (3, 2, 2, 3)
    assert (kept.pixels[0] == RED).all()
    assert (kept.pixels[2] == BLUE).all()
    assert kept.bad == {1: "it is no picture of these formats: JPEG, PNG, GIF, BMP, WEBP, TIFF"}
    assert told == [1, 2, 3]


def test_the_same_content_is_read_once_and_changed_content_again(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (file,) = written(tmp_path, a=encoded(stripes(RED)))
    told: list[int] = []
    load_pictures([file], 2, "crop", cache, told.append)
    renamed = file.rename(tmp_path / "other.png")
    again = load_pictures([renamed], 2, "crop", cache, told.append)
    assert told == [1]
    assert isinstance(again.pixels, np.memmap)
    renamed.write_bytes(encoded(stripes(BLUE)))
    assert (load_pictures([renamed], 2, "crop", cache, told.append).pixels == BLUE).all()
    load_pictures([renamed], 3, "crop", cache, told.append)
    load_pictures([renamed], 3, "squeeze", cache, told.append)
    assert told == [1, 1, 1, 1]


def test_a_killed_reader_leaves_nothing_that_is_taken_for_whole(tmp_path: Path) -> None:
    files = written(tmp_path, a=encoded(stripes(RED)), b=encoded(stripes(BLUE)))

    def stop(n: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_pictures(files, 2, "crop", tmp_path / "cache", stop)
    assert list((tmp_path / "cache" / "pictures").iterdir()) == []
    assert (load_pictures(files, 2, "crop", tmp_path / "cache").pixels[1] == BLUE).all()


def test_what_a_killed_reader_left_is_removed_by_the_next(tmp_path: Path) -> None:
    (file,) = written(tmp_path, a=encoded(stripes(RED)))
    left = tmp_path / "cache" / "pictures" / ".partial-dead"
    left.mkdir(parents=True)
    (left / "lock").write_bytes(b"held")  # held by nobody
    load_pictures([file], 2, "crop", tmp_path / "cache")
    assert not left.exists()


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
@pytest.mark.parametrize("shape", [(1500, 1000), (1, 1_500_000), (1_500_000, 1)])
def test_a_grey_picture_is_reduced_a_square_at_a_time(
    form: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    greys = np.random.default_rng(0).integers(0, 65_536, shape, dtype=np.uint16)
    data = encoded(Image.fromarray(greys), form)
    tracemalloc.start()
    image = read_picture(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * 8 * greys.size, "less than two arrays of 64-bit numbers, of which there were four"
    monkeypatch.setattr(pictures, "TILE", 1300)
    np.testing.assert_array_equal(np.asarray(read_picture(data)), np.asarray(image))
    np.testing.assert_array_equal(np.asarray(image)[..., 0], np.round(greys / 257))


def test_few_pixels_are_decoded_at_once_whatever_the_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / f"{i}.png" for i in range(12)]
    for i, file in enumerate(files):
        Image.effect_noise((64, 64), 10 + i).save(file)
    lock, now, most = Lock(), 0, 0
    decode = pictures.read_picture

    def count(data: bytes) -> Image.Image:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        sleep(0.01)  # so that others come in where they may
        try:
            return decode(data)
        finally:
            with lock:
                now -= 1

    monkeypatch.setattr(pictures, "read_picture", count)
    monkeypatch.setattr(pictures, "MAX_PIXELS", 2 * (64 * 64 + max(file.stat().st_size for file in files) // 4))
    monkeypatch.setattr(pictures, "ThreadPoolExecutor", lambda: ThreadPoolExecutor(8))
    assert not load_pictures(files, 8, "crop", tmp_path / "cache").bad
    assert most == 2


@pytest.mark.parametrize("side", [8_200, 9_600, 14_000])
def test_a_picture_of_too_many_pixels_is_refused_by_its_first_bytes(side: int) -> None:
    """Above 9,459 pixels a side Pillow warns, above 13,377 it refuses."""
    written = io.BytesIO()
    Image.new("1", (8, 8)).save(written, "PNG")
    header = written.getvalue().replace(struct.pack(">II", 8, 8), struct.pack(">II", side, side), 1)
    chunk = header[12:29]
    data = header[:29] + struct.pack(">I", zlib.crc32(chunk)) + header[33:]
    with pytest.raises(RegardError, match=r"it has (more than|.* pixels, more than) 67,108,864"):
        read_picture(data)
