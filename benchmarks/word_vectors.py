"""How fast and how good our word vectors are, and gensim's with the same settings, in turn in one run.

    python benchmarks/word_vectors.py --text novels.txt --pairs EN-WS-353-ALL.txt [--pairs ...] [--device cuda] [--tiny]
        [--models skipgram cbow] [--words 4000000] [--epochs 5] [--rounds 1] [--threads 1]

The text (plain, .gz, .xz or .zst) is cut into words in lower case; its first `--words` are used, in lines of 1000.
Speed is words of the text a second, those that subsampling leaves out included, from counted words to vectors; reading
the text and counting its words are in neither figure. On a machine that others use too, seconds of the CPU, all threads
together, are what can be compared. gensim has as many workers as we have threads, and is left out
where it is not installed, or with --device cuda --no-gensim. Each round takes another seed.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import random
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timing import Figures, describe_machine, options

from regard.data.reading import read_text_blocks
from regard.models.word2vec import FINAL_RATE, Updater, Word2Vec, WordSampler
from regard.models.word_vectors import WordVectors
from regard.models.word_vectors_config import Word2VecConfig
from regard.score.word_tests import RatedPairs, read_word_test, score_word_test

WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
LINE, STRETCH = 1000, 131_072


def main() -> None:
    given = parse_arguments()
    torch.set_num_threads(given.threads)
    words = make_words() if given.tiny else read_words(given.text, given.words)
    tests = [read_word_test(path) for path in given.pairs]
    figures = Figures()
    print(f"{len(words):,} words, {given.epochs} epochs, width {given.width}; {describe_machine(given.rounds)}")
    for name, seed in itertools.product(given.models, range(1, given.rounds + 1)):
        programs = {"regard": train_ours}
        if given.gensim and importlib.util.find_spec("gensim") is not None:
            programs["gensim"] = train_gensim
        for program, train in programs.items():
            vectors, seconds, cpu_seconds = train(words, name, seed, given)
            speed, per_cpu = (given.epochs * len(words) / taken for taken in (seconds, cpu_seconds))
            scores = {test.name: score_word_test(vectors, test) for test in tests if isinstance(test, RatedPairs)}
            said = "  ".join(f"{test} {score.value:.1f} ({score.n_used} pairs)" for test, score in scores.items())
            speeds = f"{speed:>11,.0f} words/s, {per_cpu:>9,.0f} a CPU second"
            print(f"{program:8} {name:10} seed {seed}  {speeds}  {said}", flush=True)
            figures[f"{program} {name} seed {seed}, words/s"] = speed
            figures[f"{program} {name} seed {seed}, words a CPU second"] = per_cpu
            for test, score in scores.items():
                figures[f"{program} {name} seed {seed}, {test}"] = score.value
    figures.write(given.out)


def parse_arguments() -> argparse.Namespace:
    parser = options(__doc__ or "")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--pairs", type=Path, action="append", default=[])
    parser.add_argument("--models", nargs="+", choices=("skipgram", "cbow"), default=["skipgram", "cbow"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--words", type=int, default=4_000_000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--subwords", action="store_true", help="character n-grams, as in fastText")
    parser.add_argument("--n-update", type=int, default=1024, help="words that we learn from at once")
    parser.add_argument("--no-gensim", dest="gensim", action="store_false")
    given = parser.parse_args()
    if given.tiny:
        given.epochs, given.width = 1, 16
    elif given.text is None:
        raise SystemExit("Say which text: --text FILE, or --tiny.")
    return given


def make_words() -> list[str]:
    draw = random.Random(0)
    return [f"word{int(draw.paretovariate(0.9)) % 200}" for _ in range(20_000)]


def read_words(path: Path, n: int) -> list[str]:
    words: list[str] = []
    for block in read_text_blocks(path, str(path)):
        words += WORD.findall(block.lower())
        if len(words) >= n:
            break
    return words[:n]


def train_ours(words: list[str], name: str, seed: int, given: argparse.Namespace) -> tuple[WordVectors, float, float]:
    counts = Counter(words)
    vocabulary = [word for word, n in counts.most_common() if n >= 5]
    index = {word: i for i, word in enumerate(vocabulary, start=2)}
    ids = np.array([index[word] for word in words if word in index], dtype=np.int64)
    config = Word2VecConfig(d_model=given.width, n_update=given.n_update, has_subwords=given.subwords)
    device = torch.device(given.device)
    began, cpu_began = time.perf_counter(), time.process_time()
    sampler = WordSampler(config, np.bincount(ids, minlength=len(index) + 2), device)
    model = Word2Vec.create(config, len(index) + 2, seed).to(device)
    subwords = index_subwords(config, ["<eos>", "<unk>", *vocabulary])
    updater = Updater(model, config, name == "cbow", subwords)
    with torch.inference_mode():
        begins = [(e, b) for e in range(given.epochs) for b in range(0, len(ids), STRETCH)]
        for number, (epoch, begin) in enumerate(begins):
            lr = 0.025 * max(FINAL_RATE, 1 - (epoch + begin / len(ids)) / given.epochs)
            stretch = sampler.sample(ids[begin : begin + STRETCH], None, seed * 1_000_003 + number)
            for chunk in stretch.chunks:
                updater.update(chunk, stretch, lr)
        rows = model.words
        if updater.index is not None:
            rows = updater.index.compose(rows, model.subwords, torch.arange(len(rows), device=device))
        matrix = rows[2:].cpu().numpy()  # which waits for the GPU
    return WordVectors(vocabulary, matrix), time.perf_counter() - began, time.process_time() - cpu_began


def index_subwords(config: Word2VecConfig, words: list[str]) -> Any:
    from regard.models.subwords import SubwordIndex

    return SubwordIndex.of(words, config.min_n, config.max_n, config.n_buckets) if config.has_subwords else None


def train_gensim(words: list[str], name: str, seed: int, given: argparse.Namespace) -> tuple[WordVectors, float, float]:
    from gensim.models import FastText, Word2Vec

    lines = [words[i : i + LINE] for i in range(0, len(words), LINE)]
    kind, more = (FastText, {"bucket": Word2VecConfig().n_buckets}) if given.subwords else (Word2Vec, {})
    model = kind(
        vector_size=given.width, window=5, negative=5, sample=1e-3, min_count=5, sg=int(name == "skipgram"),
        workers=given.threads, seed=seed, alpha=0.025, min_alpha=0.025 * FINAL_RATE, **more,
    )  # fmt: skip
    model.build_vocab(lines)
    began, cpu_began = time.perf_counter(), time.process_time()
    model.train(lines, total_examples=len(lines), epochs=given.epochs)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    return WordVectors(model.wv.index_to_key, np.array(model.wv.vectors)), seconds, cpu_seconds


if __name__ == "__main__":
    main()
