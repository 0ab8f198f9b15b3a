"""From sources to streams on disk: right, once, whole or not at all, whatever the number of processes."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.cache import Held, cache_root, content_hash, remove_abandoned
from regard.data.config import DataConfig
from regard.data.documents import read_documents
from regard.data.prepared_text import PreparedText, encode_text, open_text, prepare_text
from regard.data.stream import Stream
from regard.errors import RegardError
from regard.files import PARTIAL
from regard.text.config import KINDS, TokenizerConfig
from regard.text.tokenizer import Tokenizer

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "dog",
    "lay",
    "by",
    "its",
    "bone",
    ",",
    "or",
    "so",
    "they",
    "said",
    ".",
]


def made_up(n_lines: int, seed: int = 0) -> str:
    draws = np.random.default_rng(seed)
    return "".join(" ".join(draws.choice(WORDS, size=9)) + "\n" for _ in range(n_lines))


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(made_up(400))
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def tokenizer_config(kind: str = "bpe", **settings: Any) -> TokenizerConfig:
    return TokenizerConfig(kind=kind, vocab_size={"bpe": 300, "wordpiece": 80}.get(kind), **settings)


def arrays(prepared: PreparedText) -> list[list[int]]:
    return [stream[:].tolist() for stream in (prepared.train, prepared.valid, prepared.test)]


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("kind", KINDS)
def test_streams_hold_the_text_and_end_with_eos(kind: str, text_file: Path, cache: Path) -> None:
    found = prepare_text(DataConfig(train=str(text_file), split="tail"), tokenizer_config(kind), cache=cache)
    text = text_file.read_text()
    streams = (found.train, found.valid, found.test)
    assert sum(stream.n_bytes for stream in streams) == len(text)
    assert all(stream[:][-1] == 0 for stream in streams)
    if kind in ("word", "byte", "char", "bpe"):
        assert "".join(found.tokenizer.decode(stream[:]) for stream in streams) == text
    if kind == "word":
        assert [len(stream) for stream in streams] == [stream.n_words for stream in streams]
    assert found.train.text_sample(50) == text[:50]


def test_words_lines_bytes_and_documents_are_counted(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "a.txt").write_text("ein Wörtchen\n zwei\n\nohne Ende")
    (tmp_path / "b.txt").write_text("x\n")
    data = DataConfig(train=(str(tmp_path / "a.txt"), str(tmp_path / "b.txt")), p_valid=0, p_test=0)
    found = prepare_text(data, tokenizer_config("word"), cache=cache)
    assert (found.train.n_words, found.train.n_documents) == (5 + 4 + 1 + 1, 2)
    assert found.train.n_bytes == len("ein Wörtchen\n zwei\n\nohne Endex\n".encode())
    assert len(found.train) == found.train.n_words
    assert len(found.valid) == len(found.test) == 0


def test_the_tokenizer_sees_the_training_split_only(tmp_path: Path, cache: Path) -> None:
    for name, word in (("train", "alpha"), ("valid", "beta"), ("test", "gamma")):
        (tmp_path / name).write_text(f"the {word}\n" * 30)
    separate = DataConfig(**{name: str(tmp_path / name) for name in ("train", "valid", "test")})
    (tmp_path / "one").write_text("the alpha\n" * 80 + "the beta\n" * 10 + "the gamma\n" * 10)
    cut = DataConfig(train=str(tmp_path / "one"), p_valid=0.1, p_test=0.1, split="tail")
    for data in (separate, cut):
        words = prepare_text(data, tokenizer_config("word"), cache=cache)
        known = [words.tokenizer.id_of(word) is not None for word in ("the", "alpha", "beta", "gamma")]
        assert known == [True, True, False, False]
        assert set(words.valid[:].tolist()) == {0, 1, words.tokenizer.id_of("the")}
        chars = prepare_text(data, tokenizer_config("char"), cache=cache)
        assert chars.tokenizer.id_of("b") is None
        assert chars.tokenizer.decode(chars.valid[:]).startswith("the beta\n")


def test_valid_alone_leaves_test_to_be_cut(tmp_path: Path, text_file: Path, cache: Path) -> None:
    (tmp_path / "valid").write_text("the cat\n")
    data = DataConfig(train=str(text_file), valid=str(tmp_path / "valid"), p_test=0.2)
    found = prepare_text(data, tokenizer_config("byte"), cache=cache)
    assert found.valid.n_bytes == 8
    assert found.test.n_bytes == pytest.approx(0.2 * text_file.stat().st_size, rel=0.02)


def test_a_second_call_finds_the_cache(text_file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = DataConfig(train=str(text_file))
    first = prepare_text(data, tokenizer_config(), cache=cache)
    monkeypatch.setattr("regard.data.prepared_text.plan_split", None)
    monkeypatch.setattr("regard.data.prepared_text.train_tokenizer", None)
    second = prepare_text(data, tokenizer_config(), cache=cache)
    assert (second.fingerprint, arrays(second)) == (first.fingerprint, arrays(first))
    by_name = open_text(first.fingerprint, cache)
    assert by_name is not None
    assert (by_name.tokenizer.hash, arrays(by_name)) == (first.tokenizer.hash, arrays(first))
    assert open_text("0" * 32, cache) is None


def test_the_fingerprint_follows_content_split_and_tokenizer(tmp_path: Path, text_file: Path, cache: Path) -> None:
    copy = tmp_path / "copy.txt"
    copy.write_text(text_file.read_text())
    base = DataConfig(train=str(text_file))

    def fingerprint(data: DataConfig, tokenizer: TokenizerConfig) -> str:
        return prepare_text(data, tokenizer, cache=cache).fingerprint

    first = fingerprint(base, tokenizer_config())
    assert fingerprint(base.replace(train=str(copy)), tokenizer_config()) == first
    others = [
        fingerprint(base.replace(p_test=0.1), tokenizer_config()),
        fingerprint(base.replace(document="line"), tokenizer_config()),
        fingerprint(base.replace(document="line", split_seed=1), tokenizer_config()),
        fingerprint(base.replace(max_bytes=5000), tokenizer_config()),
        fingerprint(base, tokenizer_config("char")),
    ]
    copy.write_text(text_file.read_text() + "more\n")
    others.append(fingerprint(base.replace(train=str(copy)), tokenizer_config()))
    assert len({first, *others}) == 7


def test_a_saved_tokenizer_is_reused(tmp_path: Path, text_file: Path, cache: Path) -> None:
    first = prepare_text(DataConfig(train=str(text_file)), tokenizer_config(), cache=cache)
    first.tokenizer.save(tmp_path / "tokenizer.json")
    (tmp_path / "other.txt").write_text(made_up(50, seed=1))
    data = DataConfig(train=str(tmp_path / "other.txt"))
    again = prepare_text(data, TokenizerConfig(path=str(tmp_path)), cache=cache)
    assert again.tokenizer.hash == first.tokenizer.hash
    stream = encode_text(first.tokenizer, data, cache=cache)
    assert first.tokenizer.decode(stream[:]) == (tmp_path / "other.txt").read_text()
    assert stream.n_documents == 1


@pytest.mark.parametrize("kind", ["word", "bpe", "wordpiece"])
@pytest.mark.parametrize("document", ["file", "line"])
def test_processes_change_nothing_but_time(
    kind: str, document: str, text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.data.prepared_text.BATCH_BYTES", 1500)
    monkeypatch.setattr("regard.data.pieces.PIECE", 700)
    data = DataConfig(train=str(text_file), document=document)
    alone = prepare_text(data, tokenizer_config(kind), cache=tmp_path / "cache1")
    monkeypatch.setattr("regard.data.prepared_text.count_workers", lambda tokenizer, n_bytes: 2)
    together = prepare_text(data, tokenizer_config(kind), cache=tmp_path / "cache2")
    assert alone.fingerprint == together.fingerprint
    folders = [files_in(tmp_path / f"cache{n}" / "encoded") for n in (1, 2)]
    assert folders[0] == folders[1]
    assert len(folders[0]) == 6  # three splits, their note, the tokenizer and checksums


def test_pieces_and_shards_do_not_change_the_ids(
    text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = DataConfig(train=str(text_file))
    whole = prepare_text(data, tokenizer_config(), cache=tmp_path / "a")
    monkeypatch.setattr("regard.data.pieces.PIECE", 100)
    monkeypatch.setattr("regard.data.prepared_text.BATCH_BYTES", 500)
    monkeypatch.setattr("regard.data.stream.SHARD_TOKENS", 256)
    small = prepare_text(data, tokenizer_config(), cache=tmp_path / "b")
    assert small.tokenizer.hash == whole.tokenizer.hash
    assert len(small.train.shards) > 5
    assert arrays(small) == arrays(whole)
    assert {len(shard) for shard in small.train.shards[:-1]} == {256}


def test_ids_are_kept_in_the_smallest_type_that_holds_them(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "many"
    path.write_text("\n".join(f"w{i}" for i in range(70_000)))
    found = prepare_text(DataConfig(train=str(path), p_valid=0, p_test=0), tokenizer_config("word"), cache=cache)
    assert found.train.tokens.dtype == np.uint32
    assert int(found.train[:].max()) == 70_001
    small = prepare_text(DataConfig(train=str(path)), tokenizer_config("byte"), cache=cache)
    assert small.train.tokens.dtype == np.uint16
    assert isinstance(small.train.tokens, np.memmap)


def test_documents_are_split_and_encoded_whole(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    for i in range(40):
        (folder / f"{i:02d}.txt").write_text(f"book {i}\n" + made_up(3, seed=i))
    data = DataConfig(train=str(folder), p_valid=0.1, p_test=0.1)
    found = prepare_text(data, tokenizer_config("byte"), cache=cache)
    assert [s.n_documents for s in (found.train, found.valid, found.test)] == [32, 4, 4]
    whole = set(read_documents(data, cache=cache))
    for stream in (found.train, found.valid, found.test):
        ids = stream[:]
        ends = np.flatnonzero(ids == 0)
        starts = [0, *(ends[:-1] + 1)]
        assert {found.tokenizer.decode(ids[a:b]) for a, b in zip(starts, ends, strict=True)} <= whole


def test_a_damaged_cache_is_made_again(text_file: Path, cache: Path) -> None:
    data = DataConfig(train=str(text_file))
    first = prepare_text(data, tokenizer_config(), cache=cache)
    expected = arrays(first)
    shard = cache / "encoded" / first.fingerprint / "train-00000.npy"
    shard.write_bytes(shard.read_bytes()[:-50])
    assert open_text(first.fingerprint, cache) is None
    assert arrays(prepare_text(data, tokenizer_config(), cache=cache)) == expected
    np.save(shard, np.zeros(3, dtype=np.uint16))
    assert arrays(prepare_text(data, tokenizer_config(), cache=cache)) == expected
    shard.unlink()
    assert arrays(prepare_text(data, tokenizer_config(), cache=cache)) == expected


def test_the_same_text_for_training_and_test_is_refused(tmp_path: Path, text_file: Path, cache: Path) -> None:
    copy = tmp_path / "copy.txt"
    copy.write_text(text_file.read_text())
    with pytest.raises(RegardError, match=r"text.txt \(train\) and .*copy.txt \(test\) hold the same text"):
        prepare_text(DataConfig(train=str(text_file), test=str(copy)), tokenizer_config(), cache=cache)


def test_text_from_standard_input_is_found_again_by_its_fingerprint(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(made_up(100).encode())))
    found = prepare_text(DataConfig(train="-", split="tail"), tokenizer_config("word"), cache=cache)
    again = open_text(found.fingerprint, cache)
    assert again is not None
    assert arrays(again) == arrays(found)
    assert found.tokenizer.decode(np.concatenate([s[:] for s in (found.train, found.valid, found.test)])) == made_up(
        100
    )
    assert list(cache.glob(f"{PARTIAL}*")) == []


def test_progress_is_told_by_name_and_reaches_its_end(text_file: Path, cache: Path) -> None:
    calls: list[tuple[str, int, int | None]] = []
    prepare_text(
        DataConfig(train=str(text_file)), tokenizer_config(), cache=cache, progress=lambda *call: calls.append(call)
    )
    assert list(dict.fromkeys(call[0] for call in calls)) == [
        "reading",
        "learning the vocabulary",
        "encoding",
    ]
    size = text_file.stat().st_size
    assert calls[-1] == ("encoding", size, size)


def test_the_tokenizer_learns_from_an_even_part_of_a_large_text(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"w{i:04d}\n" for i in range(1000)))
    data = DataConfig(train=str(path), document="line", p_valid=0, p_test=0)
    seen: list[int] = []
    config = TokenizerConfig(kind="bpe", vocab_size=257, max_bytes=500)
    prepare_text(
        data, config, cache=cache, progress=lambda what, done, _: seen.append(done) if "learn" in what else None
    )
    assert seen[-1] == pytest.approx(500, abs=10)


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    assert cache_root() == tmp_path
    monkeypatch.delenv("REGARD_CACHE")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_root() == Path("/home/someone/.cache/regard")


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, text_file: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RegardError, match=r"The cache folder .*file/cache cannot be used.*Set REGARD_CACHE"):
        prepare_text(DataConfig(train=str(text_file)), tokenizer_config(), cache=tmp_path / "file" / "cache")


def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    text_file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("regard.data.stream.np.save", full)
    with pytest.raises(RegardError, match="No space left"):
        prepare_text(DataConfig(train=str(text_file)), tokenizer_config(), cache=cache)
    assert list((cache / "encoded").iterdir()) == []


def test_large_files_are_hashed_again_only_when_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.cache.SMALL", 1)
    path = tmp_path / "a"
    path.write_text("one")
    os.utime(path, ns=(10**18, 10**18))
    first = content_hash(path, tmp_path / "cache")
    with monkeypatch.context() as patch:
        patch.setattr("regard.data.cache.hashlib.file_digest", None)
        assert content_hash(path, tmp_path / "cache") == first
    (note,) = (tmp_path / "cache" / "hashes").iterdir()
    whole = note.read_bytes()
    for damaged in (b"x" + whole[1:], bytes([whole[0] ^ 1]) + whole[1:], whole[:64], b""):
        note.write_bytes(damaged)
        assert content_hash(path, tmp_path / "cache") == first
        assert note.read_bytes() == whole
    path.write_text("two")
    os.utime(path, ns=(10**18, 10**18))
    assert content_hash(path, tmp_path / "cache") != first


def test_abandoned_folders_go_and_held_ones_stay(tmp_path: Path) -> None:
    for name in ("held", "left", "young"):
        (tmp_path / f"{PARTIAL}{name}").mkdir()
    (tmp_path / f"{PARTIAL}left" / "lock").write_bytes(b"held")
    with Held(tmp_path / f"{PARTIAL}held"):
        remove_abandoned(tmp_path)
        assert sorted(p.name for p in tmp_path.iterdir()) == [f"{PARTIAL}held", f"{PARTIAL}young"]
    old = time.time() - 4000
    os.utime(tmp_path / f"{PARTIAL}young", (old, old))
    remove_abandoned(tmp_path)
    assert not (tmp_path / f"{PARTIAL}young").exists()


SLOW_ENCODE = """
import sys, time
from pathlib import Path
from regard.data import prepared_text
from regard.data.config import DataConfig
from regard.text.config import TokenizerConfig

write = prepared_text.StreamWriter.add
def slowly(self, ids):
    write(self, ids)
    Path(sys.argv[3]).touch()  # the encode is under way
    time.sleep(float(sys.argv[4]))
prepared_text.StreamWriter.add = slowly
prepared_text.BATCH_BYTES = 4000
found = prepared_text.prepare_text(DataConfig(train=sys.argv[1]), TokenizerConfig(kind="byte"), cache=Path(sys.argv[2]))
print(found.fingerprint, found.train[:].sum())
"""


def start(text: Path, cache: Path, mark: Path, pause: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SLOW_ENCODE, str(text), str(cache), str(mark), str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(mark: Path) -> None:
    until = time.monotonic() + 60
    while not mark.exists():
        assert time.monotonic() < until, "the encode did not start"
        time.sleep(0.01)


def test_a_killed_encode_leaves_nothing_half_written(text_file: Path, cache: Path, tmp_path: Path) -> None:
    process = start(text_file, cache, tmp_path / "mark", pause=30)
    wait_for(tmp_path / "mark")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert [p.name[: len(PARTIAL)] for p in (cache / "encoded").iterdir()] == [PARTIAL]
    found = prepare_text(DataConfig(train=str(text_file)), tokenizer_config("byte"), cache=cache)
    assert found.train.n_bytes + found.valid.n_bytes + found.test.n_bytes == text_file.stat().st_size
    assert [p.name for p in (cache / "encoded").iterdir()] == [found.fingerprint]
    assert list(cache.glob(f"{PARTIAL}*")) == []


def test_two_processes_may_encode_the_same_text_at_once(text_file: Path, cache: Path, tmp_path: Path) -> None:
    processes = [start(text_file, cache, tmp_path / f"mark{i}", pause=0.05) for i in range(2)]
    results = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], results
    assert results[0][0] == results[1][0]
    assert all((tmp_path / f"mark{i}").exists() for i in range(2)), "one found what the other had written"
    assert len(list((cache / "encoded").iterdir())) == 1


def test_workers_end_when_their_owner_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys; from regard.data.workers import _Worker; from regard.text.learning import train_tokenizer;"
        "from regard.text.config import TokenizerConfig; from regard.data.pieces import Piece;"
        "w = _Worker(train_tokenizer(TokenizerConfig(kind='byte'), []).json);"
        "print(w.encode([Piece('ab', True)]).tolist(), w._process.pid, flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    ids, pid = owner.stdout.readline().rsplit(" ", 1)
    assert ids == "[98, 99, 0]"
    owner.kill()
    owner.communicate()
    until = time.monotonic() + 20
    while _is_alive(int(pid)):
        assert time.monotonic() < until, "the worker outlived its owner"
        time.sleep(0.05)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("is_dead_at_once", [False, True])
def test_a_worker_that_dies_is_reported(is_dead_at_once: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is gone before its tokenizer reaches it."""
    import subprocess

    class Ended(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.wait()

    if is_dead_at_once:
        monkeypatch.setattr("regard.data.workers.subprocess.Popen", Ended)
    from regard.data.pieces import Piece
    from regard.data.workers import encode_batches
    from regard.text.learning import train_tokenizer

    monkeypatch.setattr("regard.data.workers._COMMAND", "raise SystemExit(7)")
    tokenizer = train_tokenizer(TokenizerConfig(kind="byte"), [])
    with pytest.raises(RegardError, match=r"An encoding process was stopped \(exit code 7\)"):
        list(encode_batches([[Piece("ab", True)]] * 3, tokenizer, 2))


def test_importing_the_data_rooms_does_not_import_torch_or_tokenizers() -> None:
    code = (
        "import sys, regard.data.prepared_text, regard.data.batches;"
        "print({'torch', 'tokenizers', 'datasets'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.data
def test_wikitext2_has_its_published_numbers_of_tokens(cache: Path) -> None:
    if "REGARD_DATA" not in os.environ:
        pytest.skip("REGARD_DATA is not set")
    folder = Path(os.environ["REGARD_DATA"]) / "wikitext2"
    data = DataConfig(**{name: str(folder / f"{name}.txt") for name in ("train", "valid", "test")})
    found = prepare_text(data, tokenizer_config("word"), cache=cache)
    assert found.tokenizer.vocab_size == 33_278
    assert [len(s) for s in (found.train, found.valid, found.test)] == [2_088_628, 217_646, 245_569]


def test_a_stream_in_memory_serves_as_one_on_disk() -> None:
    stream = Stream.of(np.array([1, 2, 0, 3, 0]), n_bytes=7, n_words=3, sample="text")
    assert (len(stream), stream.n_documents, stream.text_sample(2), stream.bytes_per_token) == (5, 2, "te", 1.4)


def test_the_tokenizer_in_the_cache_is_a_tokenizer_json(text_file: Path, cache: Path) -> None:
    found = prepare_text(DataConfig(train=str(text_file)), tokenizer_config(), cache=cache)
    kept = Tokenizer.load(cache / "encoded" / found.fingerprint)
    assert kept.hash == found.tokenizer.hash
