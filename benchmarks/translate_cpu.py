"""A Transformer that translates on a CPU: ours, Hugging Face's Marian of the same shape, and ours by CTranslate2.

    REGARD_DATA=... python benchmarks/translate_cpu.py [--rounds 5] [--threads 2] [--out results.json] [--tiny]

d 256, 4 + 4 layers, 8 heads, feed-forward 1024, vocabulary 8,000, random weights; 32 sentences of about 13 tokens, from
Multi30k where REGARD_DATA has it, else from the built-in grammar (whose vocabulary is smaller). Every target is made
14 tokens long, so that all do the same work. The contenders take turns, round after round; a ratio on the clock is of
the best rounds, one of the processor's time the median of the rounds' ratios. On a machine that does other things too,
take one thread: with more, those that wait for each other count too.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from ours import translating
from rivals import marian, searching
from timing import Figures, Taken, options, take_turns

from regard.data.pair_grammar import grammar_file
from regard.decode.config import BeamConfig
from regard.models.seq2seq_assemblies import seq2seq
from regard.models.seq2seq_config import Seq2SeqConfig
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.weights.ctranslate2_engine import TranslatorEngine

N_NEW = 14
BIG: dict[str, int] = {"d_model": 256, "n_layers": 4, "n_heads": 8, "d_ff": 1024}
TINY: dict[str, int] = {"d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 16}


def english(n_pairs: int, is_tiny: bool) -> tuple[list[str], list[str]]:
    """Lines to learn a vocabulary from, both languages, and lines to translate."""
    multi30k = Path(os.environ.get("REGARD_DATA", "")) / "multi30k"
    if (multi30k / "train.en").exists() and not is_tiny:
        train = [line for side in ("en", "de") for line in (multi30k / f"train.{side}").read_text().splitlines()]
        return train, (multi30k / "test_2016_flickr.en").read_text().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        path = grammar_file(f"grammar:en-de:{n_pairs}@train", Path(folder))
        pairs = [line.split("\t") for line in path.read_text().splitlines()]
    return [text for pair in pairs for text in pair], [source for source, _ in pairs]


def choose(tokenizer: Tokenizer, lines: list[str], n_sources: int) -> list[list[int]]:
    """The first sentences of 10 to 16 tokens."""
    encoded = [tokenizer.encode(line).tolist() for line in lines]
    return [ids for ids in encoded if 10 <= len(ids) <= 16][:n_sources]


def contenders(beam: int, n_threads: int, is_tiny: bool) -> dict[str, Callable[[], Any]]:
    """Each translates all sentences once."""
    train, lines = english(200 if is_tiny else 5000, is_tiny)
    tokenizer = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=300 if is_tiny else 8000), train)
    shape = Seq2SeqConfig(**TINY if is_tiny else BIG, norm="post", tying="all", activation="relu", p_dropout=0.0)
    ids = choose(tokenizer, lines, 2 if is_tiny else 32)
    source = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in ids], batch_first=True)
    mask = torch.arange(source.shape[1]) < torch.tensor([len(row) for row in ids])[:, None]
    torch.manual_seed(0)
    ours, theirs = seq2seq(shape, tokenizer.vocab_size).eval(), marian(shape, tokenizer.vocab_size).eval()
    print(
        f"{len(ids)} sentences, {sum(map(len, ids)) / len(ids):.1f} tokens each, vocabulary {tokenizer.vocab_size:,}, "
        f"{ours.n_parameters / 1e6:.1f} million parameters, beam {beam}, {n_threads} threads",
        flush=True,
    )
    how = BeamConfig(beam=beam, min_length=N_NEW, max_length=N_NEW, length_penalty="none")

    def by_engine(precision: str) -> Callable[[], Any]:
        engine = TranslatorEngine(ours, shape, tokenizer, tokenizer, precision, "the model")
        return lambda: engine.search(ids, how, [N_NEW] * len(ids))

    return {
        "Regard": translating(ours, source, mask, beam, N_NEW),
        "Marian": searching(theirs, source, mask, beam, N_NEW),
        "engine ctranslate2": by_engine("float32"),
        "the same, int8": by_engine("int8"),
    }


def report(name: str, taken: Taken) -> dict[str, dict[str, float]]:
    """Print a line for each contender."""
    results = {}
    for who, rounds in taken.items():
        both = list(zip(taken["Regard"], rounds, strict=True))
        found = {
            "best_ms": min(rounds)[0] * 1e3,
            "processor_ms": median(own[1] for own in rounds) * 1e3,
            "of_our_time": min(rounds)[0] / min(taken["Regard"])[0],
            "of_our_processor_time": median(theirs[1] / ours[1] for ours, theirs in both),
            "times_marian": min(taken["Marian"])[0] / min(rounds)[0],
        }
        results[f"{name}, {who}"] = found
        print(
            f"{name:7s} {who:20s} best {found['best_ms']:7.1f} ms, {found['of_our_time']:5.2f} of Regard's; "
            f"processor {found['processor_ms']:7.1f} ms, {found['of_our_processor_time']:5.2f} of Regard's; "
            f"{found['times_marian']:5.2f}x Marian",
            flush=True,
        )
    return results


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    figures = Figures()
    for name, beam in (("beam 5", 5), ("greedy", 1)):
        sides = contenders(beam, given.threads, given.tiny)
        figures.update(report(name, take_turns(sides, 1 if given.tiny else given.rounds)))
    figures.write(given.out)


if __name__ == "__main__":
    main()
