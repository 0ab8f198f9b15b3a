"""How fast an n-gram model is counted, smoothed, written and scored, and how much memory that takes.

    python benchmarks/ngram.py --text ptb.train.txt --test ptb.test.txt

Text is one sentence a line, words between white space. Estimation runs from the text file to a model that can score;
scoring is compared with the PyPI package `kenlm` (KenLM's compiled code, called from Python) reading the ARPA file that
we wrote, in the same run. Memory is the peak of a fresh process above what it held after its imports.
"""

from __future__ import annotations

import argparse
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

from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel
from regard.count.sentences import UNK, find_words, number_words


def main() -> None:
    arguments = parse_arguments()
    if arguments.measure_memory:
        print(bytes_per_ngram(arguments.text, arguments.order))
        return
    memory = memory_in_a_fresh_process(arguments)  # first: a child's peak is never below what its parent held
    (model, words), estimating = best_of(arguments.repeats, lambda: estimate(arguments.text, arguments.order))
    n_train = sum(1 + len(line.split()) for line in arguments.text.open(encoding="utf-8"))
    test = find_words(arguments.test.open(encoding="utf-8"), words)
    nats, scoring = best_of(arguments.repeats, lambda: model.nats(test))
    _, scoring_text = best_of(
        arguments.repeats, lambda: model.nats(find_words(arguments.test.open(encoding="utf-8"), words))
    )
    with tempfile.TemporaryDirectory() as folder:
        arpa = Path(folder) / "model.arpa"
        _, writing = best_of(arguments.repeats, lambda: model.write_arpa(arpa, words))
        _, reading = best_of(1, lambda: NgramModel.read_arpa(arpa))
        theirs, kenlm_scoring = score_with_kenlm(arpa, arguments.test, arguments.repeats)
    difference = np.abs(nats / np.log(10) + theirs).max()
    print(f"order {arguments.order}, {n_train:,} training tokens, {sum(model.n_ngrams):,} n-grams")
    print(
        f"{len(test):,} test tokens, perplexity {np.exp(nats.mean()):.2f}; kenlm differs by {difference:.1e} in log10"
    )
    print(f"{'':44} {'measured':>12} {'bar':>12}")
    rows = [
        ("estimation, text to model, tokens/s", n_train / estimating, "> 300,000"),
        ("the same with the ARPA file written, tokens/s", n_train / (estimating + writing), ""),
        ("scoring token ids, tokens/s", len(test) / scoring, "> 1,000,000"),
        ("scoring a text file, tokens/s", len(test) / scoring_text, ""),
        ("PyPI kenlm scoring a text file, tokens/s", len(test) / kenlm_scoring, ""),
        ("reading the ARPA file, n-grams/s", sum(model.n_ngrams) / reading, ""),
        ("peak memory of estimation, bytes an n-gram", memory, "< 100"),
    ]
    for name, value, bar in rows:
        print(f"{name:44} {value:12,.0f} {bar:>12}")
    print(f"scoring a text file, ours / PyPI kenlm: {kenlm_scoring / scoring_text:.2f}x")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ptb = Path(os.environ["REGARD_DATA"]) / "ptb" if "REGARD_DATA" in os.environ else None
    parser.add_argument("--text", type=Path, default=ptb and ptb / "ptb.train.txt", required=ptb is None)
    parser.add_argument("--test", type=Path, default=ptb and ptb / "ptb.test.txt", required=ptb is None)
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3, help="the fastest of so many counts")
    parser.add_argument("--measure-memory", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


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


def score_with_kenlm(arpa: Path, test: Path, repeats: int) -> tuple[np.ndarray, float]:
    import kenlm

    config = kenlm.Config()
    config.show_progress = False
    model = kenlm.Model(str(arpa), config)
    _, seconds = best_of(repeats, lambda: [model.score(line) for line in test.open(encoding="utf-8")])
    each = [log10 for line in test.open(encoding="utf-8") for log10, _, _ in model.full_scores(line)]
    return np.array(each), seconds


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
