"""Greedy generation on the CPU, one text at a time, against Hugging Face's GPT-2 with its cache and the same weights.

    python benchmarks/generate.py [--rounds 7] [--threads N] [--tiny]

Transformer: 4 layers, 4 heads, width 256, vocabulary 8,192; prompt of 32 tokens, 128 new ones. The tokens must be
equal. All take turns, and a ratio is of the best rounds: (Hugging Face's seconds / the other's). `--engine ctranslate2`
is timed too where CTranslate2 is installed, in float32, whose tokens must be equal, and in eight bits, which round.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import torch
from ours import generating
from rivals import copy_gpt2, gpt2
from timing import Figures, describe_machine, options, take_turns

from regard.decode.config import SamplingConfig
from regard.mixers.config import TransformerConfig
from regard.models.table import build_model
from regard.weights.ctranslate2_engine import PRECISIONS, GeneratorEngine


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    width, vocab_size, n_prompt, n_new = (16, 50, 4, 6) if given.tiny else (256, 8192, 32, 128)
    rounds = 1 if given.tiny else given.rounds
    torch.manual_seed(0)
    shape = TransformerConfig(d_model=width, n_layers=4, n_heads=4, max_context=256)
    theirs = gpt2(shape, vocab_size, attention="eager").eval()
    theirs.generation_config.eos_token_id = None
    theirs.generation_config.pad_token_id = 0
    network = build_model("transformer", shape, vocab_size)
    copy_gpt2(theirs, network)
    prompt = torch.randint(1, vocab_size, (1, n_prompt))
    prompt[0, 0] = 0  # Regard starts every text with <eos> by itself
    ours = generating(network, prompt[:, 1:], n_new)

    @torch.inference_mode()
    def hugging_face() -> torch.Tensor:
        how = {"attention_mask": torch.ones_like(prompt), "do_sample": False, "use_cache": True}
        found: torch.Tensor = theirs.generate(prompt, max_new_tokens=n_new, **how)
        return found[:, n_prompt:]

    sides = {"Regard": ours, "Hugging Face": hugging_face}
    if importlib.util.find_spec("ctranslate2") is not None:
        text, n_words = prompt[0, 1:].tolist(), vocab_size
        sides |= {f"engine ctranslate2, {p}": by_engine(network, shape, n_words, p, text, n_new) for p in PRECISIONS}
    texts = {name: side() for name, side in sides.items()}
    assert all(torch.equal(texts[name], texts["Regard"]) for name in sides if "int8" not in name), "the texts differ"
    print(f"{describe_machine(rounds)}; texts equal")
    taken = take_turns(sides, rounds)
    figures, what = Figures(), f"greedy, prompt {n_prompt}, {n_new} new tokens"
    best = {name: min(each)[0] for name, each in taken.items()}
    for name, seconds in best.items():
        figures.note(f"{what}: {name}", seconds, n_new)
    bars = {"Regard": 1.7, "engine ctranslate2, int8": 2.8}
    for name in sides:
        if name != "Hugging Face":
            figures.note_ratio(f"{name} / Hugging Face", best["Hugging Face"] / best[name], bar=bars.get(name))
    figures.write(given.out)


class Numbers:
    """A vocabulary of numbers, for a model that was trained on nothing."""

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size, self.eos, self.unk, self.end_mark, self.hf = vocab_size, 0, None, "0", self

    def get_vocab(self) -> dict[str, int]:
        return {str(i): i for i in range(self.vocab_size)}


def by_engine(
    network: Any, shape: TransformerConfig, vocab_size: int, precision: str, prompt: list[int], n_new: int
) -> Callable[[], torch.Tensor]:
    numbers: Any = Numbers(vocab_size)
    engine = GeneratorEngine(network, "transformer", shape, numbers, precision, "the model")
    config = SamplingConfig(temperature=0.0, max_tokens=n_new)
    return lambda: torch.tensor(engine.generate(prompt, 1, config, None))


if __name__ == "__main__":
    main()
