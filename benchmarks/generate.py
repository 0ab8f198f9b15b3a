"""Greedy generation on the CPU, one text at a time, against Hugging Face's GPT-2 with its cache and the same weights.

    python benchmarks/generate.py [--rounds 7] [--threads N]

Transformer: 4 layers, 4 heads, width 256, vocabulary 8,192; prompt of 32 tokens, 128 new ones. The tokens must be
equal. The two take turns; the figure is the median over rounds of (their seconds / our seconds).
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from train_step import gpt2_step

from regard.decode.config import SamplingConfig
from regard.decode.generate import generate_all
from regard.mixers.config import TransformerConfig
from regard.models.language_model import LanguageModel
from regard.models.next_token import as_next_token
from regard.models.table import build_model

N_PROMPT, N_NEW = 32, 128
NAMES = {
    "wte.weight": "embedding", "wpe.weight": "mixer.positions.table", "ln_f": "mixer.norm", "h.": "mixer.layers.",
    "ln_1": "norm_attention", "ln_2": "norm_feed_forward", "attn.c_attn": "attention.qkv",
    "attn.c_proj": "attention.out", "mlp.c_fc": "feed_forward.up", "mlp.c_proj": "feed_forward.out",
}  # fmt: skip


def copy_weights(ours: LanguageModel, theirs: torch.nn.Module) -> None:
    renamed = {}
    for name, weight in theirs.state_dict().items():
        is_transposed = ".c_" in name and name.endswith("weight")
        for old, new in NAMES.items():
            name = name.replace(old, new)
        renamed[name] = weight.t().contiguous() if is_transposed else weight
    ours.load_state_dict(renamed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    theirs, _ = gpt2_step(8192, torch.zeros(1, 1, dtype=torch.long))
    theirs.eval()
    theirs.config.use_cache = True
    theirs.generation_config.eos_token_id = None
    theirs.generation_config.pad_token_id = 0
    config = TransformerConfig(d_model=256, n_layers=4, n_heads=4, max_context=256)
    network = build_model("transformer", config, 8192)
    copy_weights(network, theirs.transformer)
    ours = as_next_token(network)

    prompt = torch.randint(1, 8192, (1, N_PROMPT))
    prompt[0, 0] = 0  # Regard starts every text with <eos> by itself
    mask = torch.ones_like(prompt)
    greedy = SamplingConfig(temperature=0.0, max_tokens=N_NEW)
    times: list[tuple[float, float]] = []
    for _ in range(arguments.rounds + 1):
        t0 = time.perf_counter()
        (text,) = generate_all(ours, prompt[:, 1:], greedy)
        t1 = time.perf_counter()
        with torch.inference_mode():
            whole = theirs.generate(prompt, attention_mask=mask, do_sample=False, max_new_tokens=N_NEW, use_cache=True)
        times.append((t1 - t0, time.perf_counter() - t1))
        assert text == whole[0, N_PROMPT:].tolist(), "the texts differ"
    times = times[1:]  # the first round warms up
    a, b = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(theirs_s / ours_s for ours_s, theirs_s in times)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {arguments.rounds} rounds; texts equal")
    speeds = f"Regard {N_NEW / a:,.0f} tokens/s, Hugging Face {N_NEW / b:,.0f}"
    print(f"greedy, prompt {N_PROMPT}, {N_NEW} new tokens: {speeds}: {ratio:.2f}x (bar 1.7x)")


if __name__ == "__main__":
    main()
