from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from regard.errors import RegardError
from regard.models.word_vectors import WordVectors
from regard.weights import word_vectors
from regard.weights.word_vectors import read_vectors, write_vectors

VECTORS = WordVectors(
    ["the", "café", "New York", "x"],
    np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32) * np.float32(1e-3),
)
PLAIN = WordVectors([word.replace(" ", "_") for word in VECTORS.words], VECTORS.matrix)


@pytest.mark.parametrize("name", ["a.vec", "a.txt", "a.bin"])
def test_what_is_written_is_read_again_to_the_bit(tmp_path: Path, name: str) -> None:
    given = PLAIN if name == "a.bin" else VECTORS
    write_vectors(given, tmp_path / name)
    again = read_vectors(tmp_path / name)
    assert again.words == given.words
    assert again.matrix.tobytes() == given.matrix.tobytes()


def test_packed_files_and_fasttexts_spaces_at_line_ends_are_read(tmp_path: Path) -> None:
    text = "2 3\nthe 1 2 3 \ncat 4 5 6 \n"
    (tmp_path / "a.vec.gz").write_bytes(gzip.compress(text.encode()))
    found = read_vectors(tmp_path / "a.vec.gz")
    assert (found.words, found.matrix.tolist()) == (["the", "cat"], [[1, 2, 3], [4, 5, 6]])


def test_the_newlines_of_word2vecs_own_program_are_no_part_of_words(tmp_path: Path) -> None:
    rows = np.arange(4, dtype="<f4").reshape(2, 2)
    body = b"a " + rows[0].tobytes() + b"\nb " + rows[1].tobytes() + b"\n"
    (tmp_path / "a.bin").write_bytes(b"2 2\n" + body)
    assert read_vectors(tmp_path / "a.bin").words == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"the 1 2 3\ncat 4 5\n", "line 2 has 2 numbers after its word, and 3 numbers are expected"),
        ("a.txt", b"the 1 2 3\ncat 4 5 6 7\n", "line 2 has 4 numbers after its word, and 3 are expected"),
        ("a.txt", b"the 1 2 3\ncat 4 five 6\n", "line 2 has something that is no number"),
        ("a.vec", b"3 3\nthe 1 2 3\ncat 4 5 6\n", "says 3 words, and 2 follow"),
        ("a.vec", b"2 4\nthe 1 2 3\ncat 4 5 6\n", "line 2 has 3 numbers after its word, and 4 numbers"),
        ("a.bin", b"9 2\na \x00\x00\x80?\x00\x00\x00@", "too short"),
        ("a.bin", b"1 1\na \x00\x00\x80? more", "goes on after the 1 words"),
        ("a.txt", b"the 1 nan\n", "no number"),
        ("a.txt", b"", "holds no word vectors"),
        ("a.vec", b"0 5\n", "holds no word vectors"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RegardError, match=said):
        read_vectors(tmp_path / name)


def test_a_missing_file_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text("a 1\n")
    with pytest.raises(RegardError, match=r"Did you mean '.*/glove\.txt'"):
        read_vectors(tmp_path / "glov.txt")


def test_a_form_that_cannot_be_told_and_words_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"name it \.bin"):
        write_vectors(VECTORS, tmp_path / "a.xyz")
    with pytest.raises(RegardError, match="'New York' cannot be written as binary"):
        write_vectors(VECTORS, tmp_path / "a.bin")


def test_a_binary_file_is_held_once_while_it_is_read(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(size=(20_000, 100)).astype(np.float32)  # 8 MB
    words = [f"w{i}" for i in range(len(matrix))]
    words[10_000] = "w9999"  # its second row is left out
    with open(tmp_path / "a.bin", "wb") as file:
        file.write(b"20000 100\n")
        file.writelines(w.encode() + b" " + row.tobytes() for w, row in zip(words, matrix, strict=True))
    tracemalloc.start()
    found = read_vectors(tmp_path / "a.bin")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.7 * matrix.nbytes, "the numbers, some of the file and the words"
    np.testing.assert_array_equal(found.matrix, np.delete(matrix, 10_000, axis=0))
    assert found.words == [w for i, w in enumerate(words) if i != 10_000]


def test_a_packed_file_is_not_read_past_the_words_that_its_header_says(tmp_path: Path) -> None:
    rows = b"a " + VECTORS.matrix[0].tobytes() + b"b " + VECTORS.matrix[1].tobytes()
    (tmp_path / "a.bin.gz").write_bytes(gzip.compress(b"2 3\n" + rows + b"x" * 50_000_000))
    tracemalloc.start()
    with pytest.raises(RegardError, match="goes on after the 2 words that its first line says"):
        read_vectors(tmp_path / "a.bin.gz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 25_000_000


def test_a_file_of_more_words_than_are_held_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_vectors, "MAX_WORDS", 2)
    (tmp_path / "a.txt").write_text("a 1\nb 2\n")
    assert read_vectors(tmp_path / "a.txt").words == ["a", "b"]
    (tmp_path / "b.txt").write_text("a 1\nb 2\nc 3\n")
    (tmp_path / "b.bin").write_bytes(b"3 1\n" + b"".join(b"%c \0\0\0\0" % letter for letter in b"abc"))
    for name in ("b.txt", "b.bin"):
        with pytest.raises(RegardError, match="has more than 2 words, and no more are read"):
            read_vectors(tmp_path / name)
