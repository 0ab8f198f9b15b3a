"""How fast an n-gram model is counted, smoothed, written and scored, and how much memory that takes.

    python benchmarks/ngram.py --text ptb.train.txt --test ptb.test.txt [--order 5] [--tiny]

Text is one sentence a line, words between white space. Estimation runs from the text file to a model that can score;
scoring is compared with the PyPI package `kenlm` (KenLM's compiled code, called from Python) reading the ARPA file that
we wrote, the two taking turns; where it is not installed, that is left out. Both score with their hash tables made:
kenlm makes them when it loads, we when a model has been asked often. Memory is the peak of a fresh process above what
it held after its imports. `--tiny` needs no text: the built-in grammar writes one.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sentences import UNK, number_words
from timing import Figures, options, take_turns

from regard.count.config import NgramConfig
from regard.count.counts import EOS
from regard.count.ngram import NgramModel
from regard.text.key_table import KeyTable
from regard.text.words import WordEncoder


def main() -> None:
    given = parse_arguments()
    if given.measure_memory:
        print(bytes_per_ngram(given.text, given.order))
        return
    with tempfile.TemporaryDirectory() as folder:
        if given.tiny:
            given.text, given.test, given.order = *write_sentences(Path(folder)), 3
        figures = measure(given, Path(folder) / "model.arpa")
    figures.write(given.out)


def measure(given: argparse.Namespace, arpa: Path) -> Figures:
    memory = memory_in_a_fresh_process(given)  # first: a child's peak is never below what its parent held
    (model, words), estimating = best_of(given.repeats, lambda: estimate(given.text, given.order))
    n_train = sum(1 + len(line.split()) for line in given.text.read_text(encoding="utf-8").splitlines())
    encode = WordEncoder({"<eos>": EOS} | {word: i for i, word in enumerate(words) if i > 0}, str)
    test = read_test(given.test, encode)
    nats, searching = best_of(1, lambda: model.nats(test))
    tables, making = best_of(1, lambda: [KeyTable([keys.view(np.uint64)]) for keys in model.trie.keys])
    del tables
    while model.trie.searches:
        model.nats(test)
    _, scoring = best_of(given.repeats, lambda: model.nats(test))
    _, writing = best_of(given.repeats, lambda: model.write_arpa(arpa, words))
    _, reading = best_of(1, lambda: NgramModel.read_arpa(arpa))
    print(f"order {given.order}, {n_train:,} training tokens, {sum(model.n_ngrams):,} n-grams")
    print(f"{len(test):,} test tokens, perplexity {np.exp(nats.mean()):.2f}")
    rows = [
        ("estimation, text to model, tokens/s", n_train / estimating, "> 300,000"),
        ("the same with the ARPA file written, tokens/s", n_train / (estimating + writing), ""),
        ("scoring token ids by searching, tokens/s", len(test) / searching, "> 1,000,000"),
        ("making the hash tables, n-grams/s", sum(model.n_ngrams) / making, ""),
        ("scoring token ids by hash tables, tokens/s", len(test) / scoring, ""),
        ("reading the ARPA file, n-grams/s", sum(model.n_ngrams) / reading, ""),
        ("peak memory of estimation, bytes an n-gram", memory, "< 100"),
    ]
    sides: dict[str, Callable[[], Any]] = {"Regard": lambda: model.nats(read_test(given.test, encode))}
    if importlib.util.find_spec("kenlm") is None:
        print("PyPI kenlm is not installed, and is left out.")
    else:
        kenlm = load_kenlm(arpa)
        each = [log10 for line in read_lines(given.test) for log10, _, _ in kenlm.full_scores(line)]
        print(f"kenlm differs by {np.abs(nats / np.log(10) + each).max():.1e} in log10")
        sides["PyPI kenlm"] = lambda: [kenlm.score(line) for line in read_lines(given.test)]
    best = {who: min(seconds for seconds, _ in taken) for who, taken in take_turns(sides, given.rounds).items()}
    rows += [(f"scoring a text file, {who}, tokens/s", len(test) / seconds, "") for who, seconds in best.items()]
    if "PyPI kenlm" in best:
        rows.append(("scoring a text file, ours / PyPI kenlm", best["PyPI kenlm"] / best["Regard"], "> 0.8"))
    print(f"{'':45} {'measured':>12} {'bar':>12}")
    for name, value, bar in rows:
        print(f"{name:45} {value:12,.{2 if value < 10 else 0}f} {bar:>12}")
    return Figures({name: value for name, value, _ in rows})


def parse_arguments() -> argparse.Namespace:
    parser = options(__doc__)
    ptb = Path(os.environ["REGARD_DATA"]) / "ptb" if "REGARD_DATA" in os.environ else None
    parser.add_argument("--text", type=Path, default=ptb and ptb / "ptb.train.txt")
    parser.add_argument("--test", type=Path, default=ptb and ptb / "ptb.test.txt")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3, help="the fastest of so many counts")
    parser.add_argument("--rounds", type=int, default=20, help="scoring a text: the fastest of so many turns counts")
    parser.add_argument("--measure-memory", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.tiny and None in (given.text, given.test):
        parser.error("give --text and --test, or the folder that holds ptb/ in REGARD_DATA, or --tiny")
    return given


def write_sentences(folder: Path) -> tuple[Path, Path]:
    """Sentences of the built-in grammar, to learn from and to test on."""
    from regard.data.builtin.grammar import Grammar

    paths = folder / "train.txt", folder / "test.txt"
    for path, split, n in zip(paths, ("train", "test"), (200, 20), strict=True):
        path.write_text(
            "".join(f"{' '.join(s.words('en'))}\n" for s in Grammar().sentences(split, n)), encoding="utf-8"
        )
    return paths


def read_test(path: Path, encode: WordEncoder) -> np.ndarray:
    return encode([(path.read_text(encoding="utf-8"), True)])


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def estimate(text: Path, order: int) -> tuple[NgramModel, list[str]]:
    with text.open(encoding="utf-8") as lines:
        ids, words = number_words(lines)
    return NgramModel.fit(NgramConfig(order=order), ids, len(words), UNK), words


def best_of(n: int, work: Callable[[], Any]) -> tuple[Any, float]:
    seconds = []
    for _ in range(n):
        begun = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - begun)
    return result, min(seconds)


def load_kenlm(arpa: Path) -> Any:
    import kenlm

    config = kenlm.Config()
    config.show_progress = False
    return kenlm.Model(str(arpa), config)


def memory_in_a_fresh_process(arguments: argparse.Namespace) -> float:
    command = [sys.executable, __file__, "--measure-memory", "--text", arguments.text, "--test", arguments.test]
    return float(subprocess.check_output([*map(str, command), "--order", str(arguments.order)]))


def bytes_per_ngram(text: Path, order: int) -> float:
    before = peak_bytes()
    model, _ = estimate(text, order)
    return (peak_bytes() - before) / sum(model.n_ngrams)


def peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    main()
