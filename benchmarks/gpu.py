"""Regard on one GPU against Hugging Face and plain PyTorch, all measured in one run.

    python benchmarks/gpu.py [train] [generate] [lstm] [--out results.json] [--tiny]

train     GPT-2 124M, bf16, 32 x 1024 random tokens, a whole update (forward, backward, clipping at 1, AdamW): Regard's
          own training loop, compiled, against GPT2LMHeadModel under torch.compile with the fused AdamW. No dropout.
          Ours, theirs, ours again; each the best of three times 20 updates. Also: what computing the loss in chunks
          costs in time and saves in memory, and how long the device waits for its input.
generate  the same model in bf16, prompt 32, 256 new tokens, greedy, batches of 1 and 64, against `generate` with its
          static cache. The weights are copied across; in float32 the texts must be equal.
lstm      2 x 650, batch 256 x 70, vocabulary 10,000, no dropout, against nn.LSTM (cuDNN) as a textbook writes it, in
          float32 with TF32 and in bf16.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from ours import generating, text_learner, updates
from rivals import copy_gpt2, gpt2, textbook_update, update
from timing import Figures, describe_machine, options, pick_device, time_best
from torch import Tensor, nn

from regard.kernels import cross_entropy
from regard.mixers.config import LSTMConfig, TransformerConfig
from regard.models.table import build_model
from regard.training.config import RuntimeConfig


@dataclass(frozen=True)
class Size:
    """Of what is measured; `n` updates are timed at once."""

    gpt2: TransformerConfig
    V: int
    B: int
    T: int
    n: int
    n_prompt: int
    n_new: int
    n_texts: tuple[int, ...]
    lstm: tuple[int, int, int, int]  # width, vocabulary, rows, context
    is_tiny: bool

    @property
    def low(self) -> str:
        """How products are rounded: in a try-out on a CPU, not."""
        return "float32" if self.is_tiny else "bf16"


BIG = Size(
    gpt2=TransformerConfig(d_model=768, n_layers=12, n_heads=12, max_context=1024), V=50257, B=32, T=1024, n=20,
    n_prompt=32, n_new=256, n_texts=(1, 64), lstm=(650, 10_000, 256, 70), is_tiny=False,
)  # fmt: skip
TINY = Size(
    gpt2=TransformerConfig(d_model=16, n_layers=2, n_heads=2, max_context=16), V=50, B=2, T=16, n=1,
    n_prompt=3, n_new=4, n_texts=(1, 2), lstm=(16, 50, 2, 8), is_tiny=True,
)  # fmt: skip


def train(size: Size, device: torch.device, figures: Figures) -> None:
    torch.manual_seed(0)
    n_tokens = size.B * size.T
    model = build_model("transformer", size.gpt2, size.V).to(device)
    runtime = RuntimeConfig(precision=size.low, is_compiled=not size.is_tiny)
    learner = text_learner(model, size.V, size.B, size.T, runtime)
    step = updates(learner)
    first, gib = time_best(step, size.n)
    figures.note("GPT-2 124M step: Regard", first, n_tokens, gib)
    began = time.perf_counter()
    for index in range(20):
        learner._make_ready(index)
    host = (time.perf_counter() - began) / 20
    fixed = learner._make_ready(0)
    learner._make_ready = lambda index: fixed._replace(number=index)  # type: ignore[method-assign]
    without, _ = time_best(step, size.n)
    figures.note("  with its input there already", without, n_tokens)
    figures["input"] = {"host_ms": host * 1e3, "share_of_step": (first - without) / first}
    print(f"  the host takes {host * 1e3:.2f} ms for a batch; the step waits for {(first - without) / first:.2%} of it")
    limit = cross_entropy.MAX_LOGITS[device.type]
    cross_entropy.MAX_LOGITS[device.type] = 2**40
    whole, gib = time_best(step, size.n)
    figures.note("  with all logits at once", whole, n_tokens, gib)
    cross_entropy.MAX_LOGITS[device.type] = limit
    theirs, gib = time_best(their_step(size, device), size.n)
    figures.note("GPT-2 124M step: Hugging Face compiled", theirs, n_tokens, gib)
    again, _ = time_best(step, size.n)
    figures.note("GPT-2 124M step: Regard again", again, n_tokens)
    figures.note_ratio("train ratio", theirs / first, theirs / again, bar=1.45)
    figures["chunking costs"] = without / whole - 1
    print(f"chunking costs {without / whole - 1:+.1%}", flush=True)


def their_step(size: Size, device: torch.device) -> Callable[[], Any]:
    hf = gpt2(size.gpt2, size.V).to(device).train()
    compiled = hf if size.is_tiny else torch.compile(hf)
    ids = torch.randint(size.V, (size.B, size.T), device=device)

    def loss() -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=not size.is_tiny):
            found: Tensor = compiled(ids, labels=ids).loss
        return found

    return update(hf, loss, is_fused=True)


def generate(size: Size, device: torch.device, figures: Figures) -> None:
    torch.manual_seed(0)
    hf = gpt2(size.gpt2, size.V).to(device).eval()
    with torch.no_grad():
        hf.transformer.wte.weight.mul_(6)  # sharper than chance, so that rounding does not decide between words
    model = build_model("transformer", size.gpt2, size.V).to(device).eval()
    copy_gpt2(hf, model)
    for n_texts in size.n_texts:
        # Ours begins every text with an end mark of its own; theirs is given the same mark.
        prompts = torch.randint(1, size.V, (n_texts, size.n_prompt - 1))
        both = {}
        for dtype in (torch.float32, torch.bfloat16):
            model.to(dtype)
            hf.to(dtype)
            ours = generating(model, prompts, size.n_new)
            theirs = their_texts(hf, nn.functional.pad(prompts, (1, 0), value=0).to(device), size.n_new)
            equal = float((ours() == theirs()).float().mean())
            figures[f"generate {n_texts} equal in {dtype}"] = equal
            print(f"batch {n_texts}, {dtype}: {equal:.1%} of the tokens are equal", flush=True)
            if dtype == torch.bfloat16:
                first, _ = time_best(ours, n=3, n_warm=2)
                both["Hugging Face static"], _ = time_best(theirs, n=1, n_warm=1)
                both["Regard"] = min(first, time_best(ours, n=3, n_warm=0)[0])
        for name, seconds in both.items():
            figures.note(f"generate, batch {n_texts}: {name}", seconds, n_texts * size.n_new)
        figures.note_ratio(f"generate {n_texts} ratio", both["Hugging Face static"] / both["Regard"])


def their_texts(hf: Any, prompts: Tensor, n_new: int) -> Callable[[], Tensor]:
    @torch.inference_mode()
    def go() -> Tensor:
        found: Tensor = hf.generate(
            prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=n_new, min_new_tokens=n_new,
            do_sample=False, cache_implementation="static", pad_token_id=0,
        )  # fmt: skip
        return found[:, prompts.shape[1] :].cpu()

    return go


def lstm(size: Size, device: torch.device, figures: Figures) -> None:
    width, vocab_size, rows, context = size.lstm
    for precision in ("float32",) if size.is_tiny else ("tf32", "bf16"):
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        model = build_model("lstm", LSTMConfig(d_model=width), vocab_size).to(device)
        step = updates(text_learner(model, vocab_size, rows, context, RuntimeConfig(precision=precision)))
        is_low = precision == "bf16"
        theirs = textbook_update(vocab_size, width, rows, context, device, is_fused=True, is_low=is_low)
        first, gib = time_best(step, size.n)
        their_seconds, _ = time_best(theirs, size.n)
        seconds = min(first, time_best(step, size.n)[0])
        figures.note(f"LSTM 2 x {width} {precision}: Regard", seconds, rows * context, gib)
        figures.note(f"LSTM 2 x {width} {precision}: nn.LSTM", their_seconds, rows * context)
        figures.note_ratio(f"lstm {precision} ratio", their_seconds / seconds, bar=1.0)


def main() -> None:
    jobs = {"train": train, "generate": generate, "lstm": lstm}
    parser = options(__doc__)
    parser.add_argument("what", nargs="*", default=list(jobs))
    given = parser.parse_args()
    device, figures = pick_device(given.tiny), Figures()
    print(describe_machine(), flush=True)
    for name in given.what:
        jobs[name](TINY if given.tiny else BIG, device, figures)
        if device.type == "cuda":
            torch.cuda.empty_cache()
        figures.write(given.out)


if __name__ == "__main__":
    main()
