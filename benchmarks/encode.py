"""Encoding text to token shards: our throughput and memory beside `tokenizers.encode_batch` alone, in one run.

    python benchmarks/encode.py                 # 1 GB, as the bar asks
    python benchmarks/encode.py --mb 50         # a quick look
    python benchmarks/encode.py --tiny          # try the script

A text of the asked size is made from a source text by shuffling its paragraphs over and over. For BPE and WordPiece
the tokenizer is learned once, on a few megabytes, and then timed are
  regard     `prepare_text` with that tokenizer: read, hash, split, encode on all cores, write shards;
  gigatoken  the same with the optional package, for BPE, where it is installed;
  in memory  that package's encoder alone, text in memory to ids in memory;
  alone      `tokenizers.encode_batch` over the same text, read in blocks of 4 MB cut at line ends, ids thrown away.
Each runs in a process of its own. Memory is the resident size of that process and its children, sampled.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from timing import Figures, options

from regard.data.config import DataConfig
from regard.data.documents import read_documents
from regard.data.pieces import cut_file
from regard.data.prepared_text import prepare_text
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer

BLOCK = 4_000_000
LEARN_CHARS = 4_000_000


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--mb", type=float, default=1000, help="megabytes of text (default: 1000)")
    parser.add_argument("--source", default="python-docs", help="text to make it from: a path or a built-in")
    parser.add_argument("--vocab-size", type=int, default=8192)
    parser.add_argument("--alone-mb", type=float, default=100, help="megabytes for encode_batch alone, which is slow")
    given = parser.parse_args()
    if given.tiny:
        given.mb, given.vocab_size, given.source = 0.1, 300, __file__
    with tempfile.TemporaryDirectory() as folder:
        kinds = ("bpe",) if given.tiny else ("bpe", "wordpiece")
        rows = compare(Path(folder), given.source, given.mb, min(given.mb, given.alone_mb), given.vocab_size, kinds)
    for row in rows:
        name, figures = f"{row['kind']:10} {row['how']:10}", (row["mb_per_s"], row["peak_mb"], row["ratio"])
        print(name, "{:8.1f} MB/s {:7.0f} MB  x{:.2f}".format(*figures))
    Figures({f"{row['kind']}, {row['how']}": row for row in rows}).write(given.out)


def compare(
    folder: Path, source: str, mb: float, alone_mb: float, vocab_size: int, kinds: Sequence[str]
) -> list[dict[str, object]]:
    sample = make_text(folder / "text.txt", source, mb)
    make_text(folder / "short.txt", source, alone_mb)
    rows: list[dict[str, object]] = []
    for kind in kinds:
        train_tokenizer(TokenizerConfig(kind=kind, vocab_size=vocab_size), [sample]).save(folder / f"{kind}.json")
        alone = measured(folder, kind, "alone", "short.txt")
        fast = ("gigatoken", "in memory") if kind == "bpe" and has_gigatoken() else ()
        for how in ("alone", "regard", *fast):
            speed, peak = alone if how == "alone" else measured(folder, kind, how, "text.txt")
            rows.append({"kind": kind, "how": how, "mb_per_s": speed, "peak_mb": peak, "ratio": speed / alone[0]})
    return rows


def make_text(path: Path, source: str, mb: float) -> str:
    """Write `mb` megabytes of shuffled paragraphs; returns some of it to learn a tokenizer from."""
    paragraphs = [p for text in read_documents(DataConfig(train=source)) for p in text.split("\n\n") if p.strip()]
    draws, size = random.Random(0), 0
    with open(path, "w", encoding="utf-8") as file:
        while size < mb * 1_000_000:
            draws.shuffle(paragraphs)
            for paragraph in paragraphs:
                size += file.write(paragraph + "\n\n")
                if size >= mb * 1_000_000:
                    break
    return "\n\n".join(paragraphs)[:LEARN_CHARS]


def has_gigatoken() -> bool:
    try:
        import gigatoken  # noqa: F401
    except ImportError:
        return False
    return True


def measured(folder: Path, kind: str, how: str, text: str) -> tuple[float, float]:
    """Megabytes a second and peak megabytes of one job in its own process."""
    command = [sys.executable, __file__, "--job", str(folder), kind, how, text]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = Peak(process.pid)
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    seconds = float(out.split()[-1])
    return (folder / text).stat().st_size / 1e6 / seconds, peak.stop() / 1e6


def job(folder: Path, kind: str, how: str, text: str) -> None:
    path = folder / f"{kind}.json"
    if how == "in memory":
        tokenizer = Tokenizer.load(path)
        pieces = list(cut_file([(folder / text).read_text(encoding="utf-8")]))
    start = time.perf_counter()
    if how == "in memory":
        tokenizer.encode_documents(pieces)
    elif how == "alone":
        encode_batch_alone(path, folder / text)
    else:
        if how == "regard":
            sys.modules["gigatoken"] = None  # type: ignore[assignment]
        data = DataConfig(train=str(folder / text), p_valid=0.01, p_test=0.01)
        prepare_text(data, TokenizerConfig(path=str(path)), cache=folder / f"cache-{kind}-{how}")
    print(time.perf_counter() - start)


def encode_batch_alone(tokenizer: Path, text: Path) -> None:
    hf = Tokenizer.load(tokenizer).hf
    with open(text, encoding="utf-8") as file:
        while lines := file.readlines(BLOCK):
            hf.encode_batch(lines, add_special_tokens=False)


class Peak:
    """The largest resident size of a process and its children, sampled ten times a second (Linux)."""

    def __init__(self, pid: int) -> None:
        self._pid, self._largest, self._is_over = pid, 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._is_over.wait(0.1):
            self._largest = max(self._largest, sum(resident(pid) for pid in family(self._pid)))

    def stop(self) -> int:
        self._is_over.set()
        self._thread.join()
        return self._largest


def family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(p for child in children for p in family(int(child)))]


def resident(pid: int) -> int:
    """Bytes; pages that processes share are counted in each of them."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Rss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    if sys.argv[1:2] == ["--job"]:
        job(Path(sys.argv[2]), *sys.argv[3:])
    else:
        main()
