"""A Transformer that translates, on one GPU, against Hugging Face's Marian of the same shape, in one run.

    python benchmarks/translate_gpu.py [train] [decode] [--out results.json] [--tiny]

train   d 512, 6 + 6 layers, 8 heads, feed-forward 2048, vocabulary 32,000, 128 x 64 random tokens each side, bf16: a
        whole update (forward, backward, clipping at 1, AdamW), both compiled, no dropout, no label smoothing. Ours,
        theirs, ours again; the best of three times 20 updates. Tokens are source and target together.
decode  the same model, beam 5, 64 sources of 32 tokens, 64 new tokens each, in bf16, against `generate`.

`--tiny` is for trying the script on a CPU.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from regard.decode.beam import beam_search
from regard.decode.config import BeamConfig
from regard.layers.any_shape import attention_of_any_shape
from regard.models.seq2seq import Seq2Seq
from regard.models.seq2seq_assemblies import seq2seq
from regard.models.seq2seq_config import Seq2SeqConfig
from regard.models.seq2seq_next_token import Translating
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.learner import Launched, Learner
from regard.training.objective import HostBatch
from regard.training.teaching_config import TeachingConfig

BIG = {"d_model": 512, "n_layers": 6, "n_heads": 8, "d_ff": 2048, "V": 32_000, "B": 128, "T": 64, "n": 20}
TINY = {"d_model": 32, "n_layers": 1, "n_heads": 2, "d_ff": 64, "V": 100, "B": 4, "T": 8, "n": 1}
results: dict[str, Any] = {}


def timed(step: Callable[[], Any], n: int, n_warm: int = 5) -> float:
    """Seconds a step, the best of three times n."""
    for _ in range(n_warm):
        step()
    seconds = []
    for _ in range(3):
        _wait()
        began = time.perf_counter()
        for _ in range(n):
            step()
        _wait()
        seconds.append((time.perf_counter() - began) / n)
    return min(seconds)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def note(name: str, seconds: float, n_tokens: int) -> None:
    results[name] = {"ms": seconds * 1e3, "tokens_per_second": n_tokens / seconds}
    print(f"{name:44s} {seconds * 1e3:9.3f} ms {n_tokens / seconds:12,.0f} tokens/s", flush=True)


def our_model(size: dict[str, int]) -> Seq2Seq:
    names = ("d_model", "n_layers", "n_heads", "d_ff")
    config = Seq2SeqConfig(
        **{name: size[name] for name in names}, norm="post", p_dropout=0.0, tying="all", activation="relu"
    )
    return seq2seq(config, size["V"])


def their_model(size: dict[str, int]) -> Any:
    import transformers

    config = transformers.MarianConfig(
        vocab_size=size["V"], d_model=size["d_model"], encoder_layers=size["n_layers"], decoder_layers=size["n_layers"],
        encoder_attention_heads=size["n_heads"], decoder_attention_heads=size["n_heads"],
        encoder_ffn_dim=size["d_ff"], decoder_ffn_dim=size["d_ff"], activation_function="relu", dropout=0.0,
        attention_dropout=0.0, activation_dropout=0.0, scale_embedding=True, pad_token_id=0, eos_token_id=1,
        decoder_start_token_id=0, forced_eos_token_id=None, max_position_embeddings=512,
    )  # fmt: skip
    return transformers.MarianMTModel(config)


class RandomLesson(PairLesson):
    """Batches of one shape, all of it real."""

    def __init__(self, size: dict[str, int]) -> None:
        self.teaching, self.per_epoch, self.size = TeachingConfig(smoothing=0.0), 1, size

    def at(self, index: int) -> HostBatch:
        B, T, V = self.size["B"], self.size["T"], self.size["V"]
        ids = torch.randint(2, V, (3, B, T), generator=torch.Generator().manual_seed(index))
        mask = torch.ones(B, T, dtype=torch.bool)
        return HostBatch((ids[0], mask, ids[1], ids[2], mask), B * T, is_fresh=True)


def train(size: dict[str, int], device: torch.device, is_tiny: bool) -> None:
    torch.manual_seed(0)
    runtime = RuntimeConfig(precision="float32" if is_tiny else "bf16", is_compiled=not is_tiny)
    learner = Learner(
        our_model(size).to(device), RandomLesson(size), train=TrainConfig(), optimizer=OptimizerConfig(lr=1e-4),
        runtime=runtime,
    )  # fmt: skip
    index = iter(range(10**9))
    pending: list[Launched] = []

    @attention_of_any_shape()  # as in the training loop; theirs is left to torch's choice
    def step() -> None:
        pending.append(learner.launch(next(index), 1e-4))
        if len(pending) > 1:
            pending.pop(0).wait()

    n_tokens = 2 * size["B"] * size["T"]
    first = timed(step, size["n"])
    note("update: Regard", first, n_tokens)
    theirs = timed(their_step(size, device, is_tiny), size["n"])
    note("update: Marian, compiled", theirs, n_tokens)
    again = timed(step, size["n"])
    note("update: Regard again", again, n_tokens)
    results["train ratio"] = theirs / min(first, again)
    print(f"ratio {theirs / first:.2f}x, {theirs / again:.2f}x", flush=True)


def their_step(size: dict[str, int], device: torch.device, is_tiny: bool) -> Callable[[], None]:
    hf = their_model(size).to(device).train()
    optimizer = torch.optim.AdamW(hf.parameters(), lr=1e-4, fused=not is_tiny)
    compiled = hf if is_tiny else torch.compile(hf)
    ids = torch.randint(2, size["V"], (3, size["B"], size["T"]), device=device)
    mask = torch.ones(size["B"], size["T"], dtype=torch.int64, device=device)

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=not is_tiny):
            loss = compiled(input_ids=ids[0], attention_mask=mask, decoder_input_ids=ids[1], labels=ids[2]).loss
        loss.backward()
        nn.utils.clip_grad_norm_(hf.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def decode(size: dict[str, int], device: torch.device, is_tiny: bool) -> None:
    torch.manual_seed(0)
    n_sources, n_source, n_new, beam = (2, 5, 6, 2) if is_tiny else (64, 32, 64, 5)
    dtype = torch.float32 if is_tiny else torch.bfloat16
    ours, hf = our_model(size).to(device, dtype).eval(), their_model(size).to(device, dtype).eval()
    source = torch.randint(2, size["V"], (n_sources, n_source), device=device)
    mask = torch.ones_like(source, dtype=torch.bool)
    config = BeamConfig(beam=beam, min_length=n_new, max_length=n_new)

    def our_search() -> None:
        stepper = Translating(ours)
        log_probs, state = stepper.begin(source, mask, None, n_new)
        found = beam_search(stepper, log_probs, state, config, max_lengths=n_new, stop=0)
        assert all(len(best[0].tokens) == n_new for best in found)

    @torch.inference_mode()
    def their_search() -> Tensor:
        found: Tensor = hf.generate(
            source, attention_mask=mask.long(), num_beams=beam, min_new_tokens=n_new, max_new_tokens=n_new,
            do_sample=False,
        )  # fmt: skip
        return found

    n_tokens = n_sources * n_new
    first = timed(our_search, n=1 if is_tiny else 2, n_warm=2)
    note("beam search: Regard", first, n_tokens)
    theirs = timed(lambda: their_search(), n=1, n_warm=1)
    note("beam search: Hugging Face", theirs, n_tokens)
    results["decode ratio"] = theirs / first
    print(f"ratio {theirs / first:.2f}x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["train", "decode"])
    parser.add_argument("--out")
    parser.add_argument("--tiny", action="store_true")
    given = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name() if device.type == 'cuda' else 'CPU'}", flush=True)
    for name in given.what:
        {"train": train, "decode": decode}[name](TINY if given.tiny else BIG, device, given.tiny)
        if given.out:
            with open(given.out, "w") as file:
                json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
