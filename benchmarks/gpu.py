"""Regard on one GPU against Hugging Face and plain PyTorch, all measured in one run.

    python benchmarks/gpu.py [train] [generate] [lstm] [--out results.json]

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

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.batches import Batches
from regard.data.stream import Stream
from regard.layers import cross_entropy
from regard.mixers.config import LSTMConfig, TransformerConfig
from regard.models.gradient_next_token import GradientNextToken
from regard.models.language_model import LanguageModel
from regard.models.table import build_language_model
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.learner import Launched, Learner
from regard.training.text_lesson import TextLesson

V, B, T = 50257, 32, 1024
GPT2 = TransformerConfig(d_model=768, n_layers=12, n_heads=12, max_context=T)
results: dict[str, Any] = {}


def timed(step: Callable[[], Any], n: int = 20, n_warm: int = 5) -> tuple[float, float]:
    """Seconds a step, the best of three times n; and the peak of memory in GiB."""
    for _ in range(n_warm):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(n):
            step()
        torch.cuda.synchronize()
        seconds.append((time.perf_counter() - began) / n)
    return min(seconds), torch.cuda.max_memory_allocated() / 2**30


def note(name: str, seconds: float, n_tokens: int, gib: float | None = None) -> None:
    results[name] = {"ms": seconds * 1e3, "tokens_per_second": n_tokens / seconds, "gib": gib}
    memory = "" if gib is None else f" {gib:6.2f} GiB"
    print(f"{name:44s} {seconds * 1e3:8.3f} ms {n_tokens / seconds:12,.0f} tokens/s{memory}", flush=True)


def learner_for(model: LanguageModel, vocab_size: int, rows: int, context: int, runtime: RuntimeConfig) -> Learner:
    ids = np.random.default_rng(0).integers(0, vocab_size, 4 * rows * context, dtype=np.int32)
    batches = Batches(
        Stream.of(ids, n_bytes=len(ids), n_words=len(ids)), n_batch=rows, n_context=context, seed=0,
        order="stream" if model.mixer.carries_state else "shuffle",
    )  # fmt: skip
    return Learner(
        model.cuda(),
        TextLesson(batches),
        train=TrainConfig(n_batch=rows),
        optimizer=OptimizerConfig(lr=1e-4),
        runtime=runtime,
    )


def updates(learner: Learner) -> Callable[[], Any]:
    """One update after the other, each waited for while the next is under way, as the training loop does."""
    index = iter(range(10**9))
    pending: list[Launched] = []

    def step() -> None:
        pending.append(learner.launch(next(index), 1e-4))
        if len(pending) > 1:
            pending.pop(0).wait()

    return step


def train() -> None:
    torch.manual_seed(0)
    learner = learner_for(
        build_language_model("transformer", GPT2, V), V, B, T, RuntimeConfig(precision="bf16", is_compiled=True)
    )
    step = updates(learner)
    first, gib = timed(step)
    note("GPT-2 124M step: Regard", first, B * T, gib)
    began = time.perf_counter()
    for index in range(20):
        learner._upload(index)
    host = (time.perf_counter() - began) / 20
    fixed = learner._upload(0)
    learner._upload = lambda index: fixed._replace(number=index)  # type: ignore[method-assign]
    without, _ = timed(step)
    note("  with its input there already", without, B * T)
    results["input"] = {"host_ms": host * 1e3, "share_of_step": (first - without) / first}
    print(f"  the host takes {host * 1e3:.2f} ms for a batch; the step waits for {(first - without) / first:.2%} of it")
    limit = cross_entropy.MAX_LOGITS["cuda"]
    cross_entropy.MAX_LOGITS["cuda"] = 2**40
    whole, gib = timed(step)
    note("  with all logits at once", whole, B * T, gib)
    cross_entropy.MAX_LOGITS["cuda"] = limit
    hf, step_hf = their_step()
    theirs, gib = timed(step_hf)
    note("GPT-2 124M step: Hugging Face compiled", theirs, B * T, gib)
    del hf, step_hf
    again, _ = timed(step)
    note("GPT-2 124M step: Regard again", again, B * T)
    results["train ratio"] = theirs / min(first, again)
    results["chunking costs"] = without / whole - 1
    print(f"ratio {theirs / first:.2f}x, {theirs / again:.2f}x; chunking costs {without / whole - 1:+.1%}", flush=True)


def their_step() -> tuple[Any, Callable[[], None]]:
    hf = hugging_face(p_dropout=0.0).cuda().train()
    optimizer = torch.optim.AdamW(hf.parameters(), lr=1e-4, fused=True)
    compiled = torch.compile(hf)
    ids = torch.randint(V, (B, T), device="cuda")

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(ids, labels=ids).loss
        loss.backward()
        nn.utils.clip_grad_norm_(hf.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return hf, step


def hugging_face(p_dropout: float) -> Any:
    import transformers

    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(resid_pdrop=p_dropout, embd_pdrop=p_dropout, attn_pdrop=p_dropout)
    )


def copied(model: LanguageModel) -> Any:
    """A Hugging Face GPT-2 with the weights of ours."""
    hf = hugging_face(0.0)
    ours, theirs = dict(model.named_parameters()), hf.transformer
    pairs = [(theirs.wte.weight, ours["embedding"]), (theirs.wpe.weight, ours["mixer.positions.table"])]
    pairs += [(theirs.ln_f.weight, ours["mixer.norm.weight"]), (theirs.ln_f.bias, ours["mixer.norm.bias"])]
    for block, layer in zip(theirs.h, model.mixer.layers, strict=True):
        linear = [
            (block.attn.c_attn, layer.attention.qkv), (block.attn.c_proj, layer.attention.out),
            (block.mlp.c_fc, layer.feed_forward.up), (block.mlp.c_proj, layer.feed_forward.out),
        ]  # fmt: skip
        pairs += [(a.weight, b.weight.t()) for a, b in linear] + [(a.bias, b.bias) for a, b in linear]
        for a, b in ((block.ln_1, layer.norm_attention), (block.ln_2, layer.norm_feed_forward)):
            pairs += [(a.weight, b.weight), (a.bias, b.bias)]
    with torch.no_grad():
        for a, b in pairs:
            a.copy_(b)
    return hf


def generate(n_prompt: int = 32, n_new: int = 256) -> None:
    torch.manual_seed(0)
    model = build_language_model("transformer", GPT2, V).cuda().eval()
    with torch.no_grad():
        model.embedding.mul_(6)  # sharper than chance, so that rounding does not decide between words
    hf = copied(model).cuda().eval()
    for n_texts in (1, 64):
        # Ours begins every text with an end mark of its own; theirs is given the same mark.
        prompts = torch.randint(1, V, (n_texts, n_prompt - 1))
        theirs_prompt = nn.functional.pad(prompts, (1, 0), value=0).cuda()
        both = {}
        for dtype in (torch.float32, torch.bfloat16):
            model.to(dtype)
            hf.to(dtype)
            ours = our_texts(model, prompts, n_new)
            theirs = their_texts(hf, theirs_prompt, n_new)
            equal = float((ours() == theirs()).float().mean())
            if dtype == torch.float32:
                print(f"batch {n_texts}, float32: {equal:.1%} of the tokens are equal", flush=True)
                results[f"generate {n_texts} equal in float32"] = equal
                continue
            both = {"Regard": timed(ours, n=3, n_warm=2)[0], "Hugging Face static": timed(theirs, n=1, n_warm=1)[0]}
            both["Regard"] = min(both["Regard"], timed(ours, n=3, n_warm=0)[0])
            print(f"batch {n_texts}, bf16: {equal:.1%} of the tokens are equal")
        for name, seconds in both.items():
            note(f"generate, batch {n_texts}: {name}", seconds, n_texts * n_new)
        ratio = both["Hugging Face static"] / both["Regard"]
        results[f"generate {n_texts} ratio"] = ratio
        print(f"ratio {ratio:.2f}x", flush=True)


def our_texts(model: LanguageModel, prompts: Tensor, n_new: int) -> Callable[[], Tensor]:
    from regard.decode.config import SamplingConfig
    from regard.decode.generate import generate_all

    next_token = GradientNextToken(model)
    config = SamplingConfig(temperature=0.0, max_tokens=n_new)
    return lambda: torch.tensor(generate_all(next_token, prompts, config))


def their_texts(hf: Any, prompts: Tensor, n_new: int) -> Callable[[], Tensor]:
    @torch.inference_mode()
    def go() -> Tensor:
        found = hf.generate(
            prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=n_new, min_new_tokens=n_new,
            do_sample=False, cache_implementation="static", pad_token_id=0,
        )  # fmt: skip
        return found[:, prompts.shape[1] :].cpu()

    return go


class TextbookLSTM(nn.Module):
    """What PyTorch's own word language model example does, with tied embeddings."""

    def __init__(self, vocab_size: int, width: int) -> None:
        super().__init__()
        self.encoder = nn.Embedding(vocab_size, width)
        self.rnn = nn.LSTM(width, width, 2)
        self.decoder = nn.Linear(width, vocab_size)
        self.decoder.weight = self.encoder.weight

    def forward(self, ids: Tensor, hidden: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        output, hidden = self.rnn(self.encoder(ids), hidden)
        return self.decoder(output), hidden


def textbook_step(rows: int, context: int, vocab_size: int, is_low: bool) -> Callable[[], None]:
    model = TextbookLSTM(vocab_size, 650).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    text = torch.randint(vocab_size, (context + 1, rows), device="cuda")  # (T, B), as nn.LSTM likes it best
    hidden = torch.zeros(2, rows, 650, device="cuda"), torch.zeros(2, rows, 650, device="cuda")

    def step() -> None:
        nonlocal hidden
        with torch.autocast("cuda", torch.bfloat16, enabled=is_low):
            logits, after = model(text[:-1], hidden)
            loss = nn.functional.cross_entropy(logits.view(-1, vocab_size), text[1:].reshape(-1))
        hidden = after[0].detach(), after[1].detach()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def lstm(rows: int = 256, context: int = 70, vocab_size: int = 10_000) -> None:
    for precision in ("tf32", "bf16"):
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        learner = learner_for(
            build_language_model("lstm", LSTMConfig(d_model=650), vocab_size), vocab_size, rows, context,
            RuntimeConfig(precision=precision),
        )  # fmt: skip
        step = updates(learner)
        theirs = textbook_step(rows, context, vocab_size, is_low=precision == "bf16")
        ours_s, gib = timed(step)
        theirs_s, _ = timed(theirs)
        ours_s = min(ours_s, timed(step)[0])
        note(f"LSTM 2 x 650 {precision}: Regard", ours_s, rows * context, gib)
        note(f"LSTM 2 x 650 {precision}: nn.LSTM", theirs_s, rows * context)
        results[f"lstm {precision} ratio"] = theirs_s / ours_s
        print(f"ratio {theirs_s / ours_s:.2f}x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["train", "generate", "lstm"])
    parser.add_argument("--out")
    arguments = parser.parse_args()
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)
    for name in arguments.what:
        {"train": train, "generate": generate, "lstm": lstm}[name]()
        torch.cuda.empty_cache()
        if arguments.out:
            with open(arguments.out, "w") as file:
                json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
