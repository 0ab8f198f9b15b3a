"""What unpacks without end, or has a line without end, is refused on the way, in little memory."""

import gzip
import lzma
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from regard.data.config import DataConfig
from regard.data.documents import read_documents
from regard.errors import RegardError
from regard.untrusted import unpacking
from regard.untrusted.unpacking import open_bytes

PACK = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


@pytest.mark.parametrize("suffix", PACK)
def test_a_bomb_is_refused_and_a_text_is_read(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "FREE_BYTES", 2**20)
    bomb, text = tmp_path / f"bomb.txt{suffix}", tmp_path / f"text.txt{suffix}"
    bomb.write_bytes(PACK[suffix](b"a" * 2**24))
    text.write_bytes(PACK[suffix](b"a text\nof lines\n"))
    with open_bytes(text, "text") as file:
        assert file.read() == b"a text\nof lines\n"
    why = r"bomb unpacks to more than .* 200 times its size .* unpack it first"
    with open_bytes(bomb, "bomb") as file, pytest.raises(RegardError, match=why):
        list(iter(lambda: file.read(2**16), b""))


@pytest.mark.parametrize("suffix", PACK)
def test_what_is_not_packed_as_its_name_says_is_a_sentence(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"plain{suffix}"
    path.write_text("plain text")
    with (
        pytest.raises(RegardError, match=r"plain.* is not packed in the way that its name says\. Unpack it, or give"),
        open_bytes(path, path.name) as file,
    ):
        file.read()


def test_a_record_without_end_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "endless.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "' + b"a" * 2**27, 1))
    tracemalloc.start()
    with pytest.raises(
        RegardError, match=r"has a line of more than 33,554,432 characters\. Has it lost its line ends\?"
    ):
        list(read_documents(DataConfig(train=str(path)), cache=tmp_path / "cache"))
    assert tracemalloc.get_traced_memory()[1] < 2**28
    tracemalloc.stop()


def test_a_text_of_one_line_is_cut_into_documents_without_holding_it(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("one line of words " * 10_000)
    assert "".join(read_documents(DataConfig(train=str(path)), cache=tmp_path / "cache")) == path.read_text()


def test_what_follows_a_packed_file_does_not_make_it_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "twice.gz"
    path.write_bytes(gzip.compress(b"a text\n") + b"more")
    with (
        pytest.raises(RegardError, match=r"twice.gz cannot be decompressed: .*Is it complete\?"),
        open_bytes(path, path.name) as file,
    ):
        file.read()
