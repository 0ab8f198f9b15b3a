"""Greedy generation on the CPU, one text at a time, against Hugging Face's GPT-2 with its cache and the same weights.

    python benchmarks/generate.py [--rounds 7] [--threads N] [--tiny]

Transformer: 4 layers, 4 heads, width 256, vocabulary 8,192; prompt of 32 tokens, 128 new ones. The tokens must be
equal. The two take turns; the figure is the median over rounds of (their seconds / our seconds).
"""

from __future__ import annotations

import torch
from ours import generating
from rivals import copy_gpt2, gpt2
from timing import Figures, describe_machine, options, take_turns

from regard.mixers.config import TransformerConfig
from regard.models.table import build_model


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

    assert torch.equal(ours(), hugging_face()), "the texts differ"
    print(f"{describe_machine(rounds)}; texts equal")
    taken = take_turns({"Regard": ours, "Hugging Face": hugging_face}, rounds)
    figures = Figures()
    figures.note_turns(f"greedy, prompt {n_prompt}, {n_new} new tokens", taken, n_new, bar=1.7)
    figures.write(given.out)


if __name__ == "__main__":
    main()
