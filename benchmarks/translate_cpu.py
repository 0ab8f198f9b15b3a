"""A Transformer that translates on a CPU: ours, Hugging Face's Marian of the same shape, and ours in CTranslate2.

    REGARD_DATA=... python benchmarks/translate_cpu.py [--rounds 5] [--threads 2] [--out results.json]

d 256, 4 + 4 layers, 8 heads, feed-forward 1024, vocabulary 8,000, random weights; 32 sentences of about 13 tokens, from
Multi30k where REGARD_DATA has it, else from the built-in grammar (whose vocabulary is smaller). Every target is made
14 tokens long, so that all do the same work. The contenders take turns, round after round, and a ratio is the median of
the rounds' ratios. On a machine that does other things too, take one thread and the processor's time: with more, those
that wait for each other count too.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import ctranslate2
import torch
import transformers

from regard.data.pair_grammar import write_pairs
from regard.decode.beam import beam_search
from regard.decode.config import BeamConfig
from regard.models.seq2seq import Seq2Seq
from regard.models.seq2seq_assemblies import seq2seq
from regard.models.seq2seq_config import Seq2SeqConfig
from regard.models.seq2seq_next_token import Translating
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.weights.ctranslate2 import build_spec, spell_vocabulary

D, LAYERS, HEADS, F, V = 256, 4, 8, 1024, 8000
N_SOURCES, N_NEW = 32, 14
CONFIG = Seq2SeqConfig(
    d_model=D, n_layers=LAYERS, n_heads=HEADS, d_ff=F, norm="post", tying="all", activation="relu", p_dropout=0.0
)


def english() -> tuple[list[str], list[str]]:
    """Lines to learn a vocabulary from, both languages, and lines to translate."""
    multi30k = Path(os.environ.get("REGARD_DATA", "")) / "multi30k"
    if (multi30k / "train.en").exists():
        train = [line for side in ("en", "de") for line in (multi30k / f"train.{side}").read_text().splitlines()]
        return train, (multi30k / "test_2016_flickr.en").read_text().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        write_pairs("grammar:en-de:5000@train", Path(folder) / "pairs.tsv")
        pairs = [line.split("\t") for line in (Path(folder) / "pairs.tsv").read_text().splitlines()]
    return [text for pair in pairs for text in pair], [source for source, _ in pairs]


def chosen(tokenizer: Tokenizer, lines: list[str]) -> list[list[int]]:
    """The first sentences of 10 to 16 tokens."""
    encoded = [tokenizer.encode(line).tolist() for line in lines]
    return [ids for ids in encoded if 10 <= len(ids) <= 16][:N_SOURCES]


def our_search(model: Seq2Seq, source: torch.Tensor, mask: torch.Tensor, beam: int) -> list[Any]:
    config = BeamConfig(beam=beam, min_length=N_NEW, max_length=N_NEW)
    stepper = Translating(model)
    log_probs, state = stepper.begin(source, mask, None, N_NEW)
    return beam_search(stepper, log_probs, state, config, max_lengths=N_NEW, stop=0)


def marian(n_vocabulary: int) -> Any:
    config = transformers.MarianConfig(
        vocab_size=n_vocabulary, d_model=D, encoder_layers=LAYERS, decoder_layers=LAYERS,
        encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=F, decoder_ffn_dim=F,
        activation_function="relu", scale_embedding=True, pad_token_id=1, eos_token_id=0, decoder_start_token_id=0,
        forced_eos_token_id=None,
    )  # fmt: skip
    model: Any = transformers.MarianMTModel(config)
    return model.eval()


def contenders(beam: int, n_threads: int, folder: Path) -> dict[str, Callable[[], Any]]:
    """Each translates all sentences once."""
    train, lines = english()
    tokenizer = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=V), train)
    ids = chosen(tokenizer, lines)
    rows = [torch.tensor(row) for row in ids]
    source = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    mask = torch.arange(source.shape[1]) < torch.tensor([len(row) for row in ids])[:, None]
    torch.manual_seed(0)
    ours, theirs = seq2seq(CONFIG, tokenizer.vocab_size).eval(), marian(tokenizer.vocab_size)
    print(
        f"{len(ids)} sentences, {sum(map(len, ids)) / len(ids):.1f} tokens each, vocabulary {tokenizer.vocab_size:,}, "
        f"{ours.n_parameters / 1e6:.1f} million parameters, beam {beam}, {n_threads} threads",
        flush=True,
    )
    folder.mkdir()
    build_spec(ours, CONFIG, tokenizer, tokenizer).save(str(folder))
    texts = [[spell_vocabulary(tokenizer)[i] for i in row] for row in ids]

    def of_ctranslate2(compute_type: str) -> Callable[[], Any]:
        translator = ctranslate2.Translator(
            str(folder), device="cpu", compute_type=compute_type, inter_threads=1, intra_threads=n_threads
        )
        return lambda: translator.translate_batch(
            texts, beam_size=beam, min_decoding_length=N_NEW, max_decoding_length=N_NEW
        )

    @torch.inference_mode()
    def of_marian() -> Any:
        return theirs.generate(
            source, attention_mask=mask.long(), num_beams=beam, min_new_tokens=N_NEW, max_new_tokens=N_NEW,
            do_sample=False,
        )  # fmt: skip

    return {
        "Regard": lambda: our_search(ours, source, mask, beam),
        "Marian": of_marian,
        "CTranslate2 float32": of_ctranslate2("float32"),
        "CTranslate2 int8": of_ctranslate2("int8"),
    }


def measured(tries: dict[str, Callable[[], Any]], n_rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Seconds of every round, on the clock and of the processor."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in tries}
    for index in range(n_rounds + 1):
        for name, attempt in tries.items():
            began = time.perf_counter(), time.process_time()
            attempt()
            if index:  # the first is for warming up
                seconds[name].append((time.perf_counter() - began[0], time.process_time() - began[1]))
    return seconds


def reported(name: str, seconds: dict[str, list[tuple[float, float]]]) -> dict[str, dict[str, float]]:
    """Print a line for each contender."""
    results = {}
    for who, taken in seconds.items():
        rounds = list(zip(seconds["Regard"], taken, strict=True))
        found = {
            "best_ms": min(taken)[0] * 1e3,
            "processor_ms": median(own[1] for own in taken) * 1e3,
            "of_our_time": median(theirs[0] / ours[0] for ours, theirs in rounds),
            "of_our_processor_time": median(theirs[1] / ours[1] for ours, theirs in rounds),
        }
        results[f"{name}, {who}"] = found
        print(
            f"{name:7s} {who:20s} best {found['best_ms']:7.1f} ms, {found['of_our_time']:5.2f} of Regard's; "
            f"processor {found['processor_ms']:7.1f} ms, {found['of_our_processor_time']:5.2f} of Regard's",
            flush=True,
        )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    results: dict[str, Any] = {}
    for name, beam in (("beam 5", 5), ("greedy", 1)):
        with tempfile.TemporaryDirectory() as folder:
            seconds = measured(contenders(beam, given.threads, Path(folder) / "model"), given.rounds)
        results |= reported(name, seconds)
    if given.out:
        given.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
