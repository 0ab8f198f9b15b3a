"""Pictures with captions: three forms of files, splits by picture, and what cannot be used."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

from regard.data.caption_config import CaptionConfig
from regard.data.prepared_captions import CaptionData, load_captions
from regard.errors import RegardError

DATA = os.environ.get("REGARD_DATA")


class Folder:
    """A folder of small pictures, each of its own grey, and a file of captions."""

    def __init__(self, root: Path) -> None:
        self.root, self.pictures = root, root / "pictures"
        self.pictures.mkdir()

    def add(self, *names: str) -> Folder:
        for name in names:
            (self.pictures / name).parent.mkdir(exist_ok=True)
            Image.new("L", (8, 8), len(list(self.pictures.rglob("*.*")))).save(self.pictures / name)
        return self

    def captions(self, *lines: str, name: str = "captions.tsv") -> Folder:
        self.file = self.root / name
        self.file.write_text("".join(f"{line}\n" for line in lines))
        return self

    def names(self, split: str, *names: str) -> str:
        file = self.root / f"{split}.txt"
        file.write_text("\n".join(names))
        return str(file)

    def load(self, p_valid: float = 0.0, p_test: float = 0.0, **settings: object) -> CaptionData:
        config = CaptionConfig(
            pictures=str(self.pictures), captions=str(self.file), size=8, p_valid=p_valid, p_test=p_test, **settings
        )
        return load_captions(config, self.root / "cache")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("t.txt", ["a.png#0\tA dog .", "b.png#0\tTwo  cats", "a.png#1\tIt runs : see #3@home\t!"]),
        ("t.txt", ["a.png#0@A dog .", "b.png@0@Two  cats", "a.png#1@It runs : see #3@home\t!"]),
        ("t.tsv", ["a.png\tA dog .", "", "b.png\tTwo  cats\r", "a.png\tIt runs : see #3@home\t!"]),
        (
            "t.jsonl",
            [
                json.dumps({"picture": "a.png", "caption": ["A dog ."]}),
                json.dumps({"picture": "b.png", "caption": "Two  cats"}),
                json.dumps({"picture": "a.png", "caption": ["It runs : see #3@home\t!"], "more": 1}),
            ],
        ),
    ],
    ids=["flickr", "flickr with @", "tsv", "jsonl"],
)
def test_each_form_of_captions_says_the_same(folder: Folder, name: str, lines: Sequence[str]) -> None:
    data = folder.add("a.png", "b.png").captions(*lines, name=name).load()
    assert data.train.names == ("a.png", "b.png")
    assert data.train.captions == (("A dog .", "It runs : see #3@home !"), ("Two cats",))
    assert data.skipped == {}


@pytest.mark.parametrize(
    ("name", "line", "why", "kind"),
    [
        ("t.tsv", b"a dog with no name", "is no caption: 'a dog with no name'. A line is 'name.jpg<TAB>", "one column"),
        ("t.tsv", b"\ta dog", "names no picture. A caption needs the name", "no picture name"),
        ("t.tsv", b" #0\ta dog", "names no picture", "no picture name"),
        ("t.tsv", b"a.png\tcaf\xe9", "is not UTF-8 text: byte 0xe9 at its byte 10", "broken UTF-8"),
        ("t.tsv", b"a.png\t" + b"x" * 100_000, "has 100,006 characters; at most 100,000", "too long"),
        ("t.jsonl", b"{", "is not JSON", "not JSON"),
        ("t.jsonl", b"[]", "is a JSON list, not an object", "not JSON"),
        (
            "t.jsonl",
            b'{"picture": "a", "captions": "b"}',
            "has no field 'caption'. Did you mean 'captions'",
            "no field",
        ),
        ("t.jsonl", b'{"picture": 1, "caption": "b"}', "is no caption: picture must be a name", "no field"),
        (
            "t.jsonl",
            b'{"picture": "a", "caption": [1]}',
            "has a caption that holds something other than text",
            "no field",
        ),
        ("t.jsonl", b'{"picture": " ", "caption": "b"}', "names no picture", "no picture name"),
        ("t.jsonl", b'{"picture": "a", "caption": "\\ud800"}', "has a lone surrogate", "broken UTF-8"),
    ],
)
def test_a_line_that_is_no_caption_is_named_or_counted(
    folder: Folder, name: str, line: bytes, why: str, kind: str
) -> None:
    good = "a.png\tx" if name == "t.tsv" else '{"picture": "a.png", "caption": "x"}'
    folder.add("a.png").captions(good, name=name)
    folder.file.write_bytes(folder.file.read_bytes() + line + b"\n" + good.encode())
    with pytest.raises(RegardError, match=rf"{name}, line 2 {re.escape(why)}.*--skip-bad \(data\.skips_bad\)\.$"):
        folder.load()
    data = folder.load(skips_bad=True)
    assert data.train.captions == (("x", "x"),)
    assert data.skipped == {kind: 1}


def test_what_cannot_be_used_is_named_with_the_way_out(folder: Folder) -> None:
    folder.add("a.png").captions("a.png\tx", "b.png\ty")
    with pytest.raises(
        RegardError, match=r"'b.png' has a caption .* is not in .*pictures. Put .* or leave such out: --skip-bad"
    ):
        folder.load()
    folder.add("b.png", "c.png")
    with pytest.raises(RegardError, match=r"c.png' has no caption .* or leave such out: --skip-bad"):
        folder.load()
    folder.captions("a.png\tx", "b.png\ty", "c.png\t  ")
    with pytest.raises(RegardError, match=r"line 3: the caption of 'c.png' is empty"):
        folder.load()
    folder.captions("a.png\tx", "b.png\ty", "c.png\tz")
    (folder.pictures / "b.png").write_bytes(b"junk")
    with pytest.raises(
        RegardError,
        match=r"b.png' cannot be used: it is no picture of these formats: JPEG, PNG, GIF, BMP, WEBP, TIFF. Replace",
    ):
        folder.load()


def test_skipping_counts_what_is_left_out_by_kind(folder: Folder) -> None:
    folder.add("a.png", "b.png", "c.png", "d.png")
    (folder.pictures / "b.png").write_bytes(b"junk")
    folder.captions("a.png\tx", "a.png\t", "a.png\t ", "b.png\ty", "d.png\tw", "gone.png\tz", "lost.png\tz")
    data = folder.load(skips_bad=True)
    assert data.train.names == ("a.png", "d.png")
    assert data.train.captions == (("x",), ("w",))
    assert data.skipped == {
        "empty caption": 2,
        "caption without its picture": 2,
        "picture without captions": 1,
        "unreadable picture": 1,
    }
    greys = data.centre(data.train.numbers)[:, 0, 0, 0].tolist()
    assert greys == [0, 3]  # the picture is still that of its name


def test_nothing_left_for_training_says_what_was_left_out(folder: Folder) -> None:
    folder.add("a.png").captions("b.png\tx")
    why = r"No picture is left for training: 2 left out \(caption without its picture: 1, picture without captions: 1\)"
    with pytest.raises(RegardError, match=why):
        folder.load(skips_bad=True)


def test_files_of_names_make_the_splits_and_the_rest_is_not_looked_at(folder: Folder) -> None:
    folder.add("a.png", "b.png", "c.png", "sub/d.png", "unnamed.png")
    folder.captions("a.png\tx", "b.png\ty", "c.png\tz", "sub/d.png\tw", "gone.png\tg")
    data = folder.load(
        train=folder.names("train", "c.png", "a.png", "a.png"),
        valid=folder.names("valid", "b.png"),
        test=folder.names("test", "sub/d.png", ""),
    )
    assert (data.train.names, data.valid.names, data.test.names) == (("c.png", "a.png"), ("b.png",), ("sub/d.png",))
    assert data.skipped == {}
    assert len(data.pictures) == 4


def test_splits_must_not_share_a_picture_nor_name_what_is_not_there(folder: Folder) -> None:
    folder.add("a.png", "b.png").captions("a.png\tx", "b.png\ty")
    train = folder.names("train", "a.png", "b.png")
    with pytest.raises(RegardError, match=r"'b.png' is named by train and by test. Take it out of one"):
        folder.load(train=train, test=folder.names("test", "b.png"))
    with pytest.raises(RegardError, match=r"'z.png', which a split names, is neither in"):
        folder.load(train=train, test=folder.names("test", "z.png"))
    with pytest.raises(RegardError, match="test name pictures and train does not"):
        folder.load(test=folder.names("test", "b.png"))


def test_shares_split_by_picture_and_a_copy_goes_with_its_original(folder: Folder) -> None:
    names = [f"{i:03}.png" for i in range(200)]
    folder.add(*names)
    copies = [f"copy{i}.png" for i in range(20)]
    for name, copy in zip(names, copies, strict=False):
        (folder.pictures / copy).write_bytes((folder.pictures / name).read_bytes())
    folder.captions(*(f"{name}\tone" for name in names + copies), *(f"{name}\ttwo" for name in names))
    data = folder.load(p_valid=0.1, p_test=0.2)
    split_of = {name: i for i, part in enumerate((data.train, data.valid, data.test)) for name in part.names}
    assert len(split_of) == 220
    assert 18 <= len(data.valid) <= 22
    assert 40 <= len(data.test) <= 44
    assert all(split_of[name] == split_of[copy] for name, copy in zip(names, copies, strict=False))
    assert {len(texts) for part in (data.train, data.valid, data.test) for texts in part.captions} == {1, 2}
    other = folder.load(p_valid=0.1, p_test=0.2, split_seed=1)
    assert other.test.names != data.test.names


def test_too_few_different_pictures_to_split_are_told_as_pictures(folder: Folder) -> None:
    names = [f"{i:02}.png" for i in range(60)]
    folder.add(*names).captions(*(f"{name}\tone" for name in names))
    for i, name in enumerate(names):
        (folder.pictures / name).write_bytes((folder.pictures / names[i % 5]).read_bytes())
    why = r"5 different pictures in 60 are too few .*p_valid 0\.05.*p_test 0\.05.*Give more pictures, files of names"
    with pytest.raises(RegardError, match=why):
        folder.load(p_valid=0.05, p_test=0.05)
    assert len(folder.load().train) == 60


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"pictures": ""}, "pictures is empty. Give the folder"),
        ({"size": 1000, "n_margin": 100}, "size 1000 and n_margin 100 make pictures of 1100 pixels; 1024 is the most"),
        ({"p_valid": 0.5, "p_test": 0.5}, "leave under 5% for training"),
        ({"fit": "stretch"}, "fit must be one of crop, squeeze"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, object], why: str) -> None:
    with pytest.raises(RegardError, match=why):
        CaptionConfig.from_dict({"pictures": "p", "captions": "c"} | settings)


def test_a_missing_folder_or_file_is_named(folder: Folder, tmp_path: Path) -> None:
    folder.captions("a.png\tx")
    with pytest.raises(RegardError, match="There is no folder of pictures"):
        load_captions(CaptionConfig(pictures=str(tmp_path / "no"), captions=str(folder.file)))
    with pytest.raises(RegardError, match="There is no file of captions"):
        load_captions(CaptionConfig(pictures=str(folder.pictures), captions=str(tmp_path / "no")))
    with pytest.raises(RegardError, match="There is no file of names"):
        folder.load(train=str(tmp_path / "no"))


@pytest.mark.data
@pytest.mark.skipif(DATA is None, reason="needs REGARD_DATA")
def test_flickr8k_is_read_without_a_word(tmp_path: Path) -> None:
    root = Path(str(DATA)) / "flickr8k"
    named = {split: str(root / f"available_{name}.txt") for split, name in
             (("train", "train"), ("valid", "dev"), ("test", "test"))}  # fmt: skip
    config = CaptionConfig(pictures=str(root / "images"), captions=str(root / "Flickr8k.token.txt"), size=32, **named)
    data = load_captions(config, tmp_path)
    assert (len(data.train), len(data.valid), len(data.test)) == (3184, 507, 550)
    assert {len(texts) for part in (data.train, data.valid, data.test) for texts in part.captions} == {5}
    assert data.train.captions[0][0] == "A child in a pink dress is climbing up a set of stairs in an entry way ."
    assert data.skipped == {}
