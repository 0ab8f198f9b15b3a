"""The other side of the benchmarks: code that people use today, of the same shape and doing the same work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

NAMES = {
    "wte.weight": "embedding", "wpe.weight": "mixer.positions.table", "ln_f": "mixer.norm", "h.": "mixer.layers.",
    "ln_1": "norm_attention", "ln_2": "norm_feed_forward", "attn.c_attn": "attention.qkv",
    "attn.c_proj": "attention.out", "mlp.c_fc": "feed_forward.up", "mlp.c_proj": "feed_forward.out",
}  # fmt: skip
"""What Hugging Face calls a weight of GPT-2, and what Regard's Transformer calls it."""


def gpt2(shape: Any, vocab_size: int, *, p_dropout: float = 0.0, attention: str | None = None) -> Any:
    """Hugging Face's GPT-2 in the shape of a TransformerConfig."""
    import transformers

    config = transformers.GPT2Config(
        vocab_size=vocab_size, n_positions=shape.max_context, n_embd=shape.d_model, n_layer=shape.n_layers,
        n_head=shape.n_heads, attn_implementation=attention, resid_pdrop=p_dropout, embd_pdrop=p_dropout,
        attn_pdrop=p_dropout, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def copy_gpt2(theirs: Any, ours: nn.Module) -> None:
    """Copy the weights of Hugging Face's GPT-2 into Regard's Transformer of the same shape."""
    renamed = {}
    for name, weight in theirs.transformer.state_dict().items():
        is_transposed = ".c_" in name and name.endswith("weight")
        for old, new in NAMES.items():
            name = name.replace(old, new)
        renamed[name] = weight.t().contiguous() if is_transposed else weight
    ours.load_state_dict(renamed)


def marian(shape: Any, vocab_size: int, *, pad: int = 1) -> Any:
    """Hugging Face's Marian in the shape of a Seq2SeqConfig, without dropout; its end mark is the other of 0 and 1."""
    import transformers

    n_encoder, n_decoder = shape.depths
    config = transformers.MarianConfig(
        vocab_size=vocab_size, d_model=shape.d_model, encoder_layers=n_encoder, decoder_layers=n_decoder,
        encoder_attention_heads=shape.n_heads, decoder_attention_heads=shape.n_heads, encoder_ffn_dim=shape.d_ff,
        decoder_ffn_dim=shape.d_ff, activation_function="relu", dropout=0.0, attention_dropout=0.0,
        activation_dropout=0.0, scale_embedding=True, pad_token_id=pad, eos_token_id=1 - pad,
        decoder_start_token_id=0, forced_eos_token_id=None, max_position_embeddings=512,
    )  # fmt: skip
    return transformers.MarianMTModel(config)


def searching(model: Any, source: Tensor, mask: Tensor, beam: int, n_new: int) -> Callable[[], Tensor]:
    """Hugging Face's `generate` of targets of `n_new` tokens."""

    @torch.inference_mode()
    def search() -> Tensor:
        found: Tensor = model.generate(
            source, attention_mask=mask.long(), num_beams=beam, min_new_tokens=n_new, max_new_tokens=n_new,
            do_sample=False,
        )  # fmt: skip
        return found

    return search


def update(model: nn.Module, loss: Callable[[], Tensor], *, is_fused: bool) -> Callable[[], float | None]:
    """A whole update: forward, backward, clip the gradient's norm at 1, an AdamW step.

    On the CPU it returns the loss; a GPU is not waited for.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=is_fused)
    is_on_cpu = next(model.parameters()).device.type == "cpu"

    def step() -> float | None:
        found = loss()
        optimizer.zero_grad()
        found.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(found.item()) if is_on_cpu else None

    return step


class TextbookLSTM(nn.Module):
    """What PyTorch's own word language model example does, with tied embeddings."""

    def __init__(self, vocab_size: int, width: int, n_layers: int = 2) -> None:
        super().__init__()
        self.encoder = nn.Embedding(vocab_size, width)
        self.rnn = nn.LSTM(width, width, n_layers)
        self.decoder = nn.Linear(width, vocab_size)
        self.decoder.weight = self.encoder.weight

    def forward(self, ids: Tensor, hidden: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        output, hidden = self.rnn(self.encoder(ids), hidden)
        return self.decoder(output), hidden


def textbook_update(
    vocab_size: int, width: int, rows: int, context: int, device: torch.device, *, is_fused: bool, is_low: bool = False
) -> Callable[[], float | None]:
    """An update of a TextbookLSTM on random tokens, its state carried over; under autocast where `is_low`."""
    model = TextbookLSTM(vocab_size, width).to(device)
    text = torch.randint(vocab_size, (context + 1, rows), device=device)  # (T, B), as nn.LSTM likes it best
    hidden = torch.zeros(2, rows, width, device=device), torch.zeros(2, rows, width, device=device)

    def loss() -> Tensor:
        nonlocal hidden
        with torch.autocast(device.type, torch.bfloat16, enabled=is_low):
            logits, after = model(text[:-1], hidden)
            found = nn.functional.cross_entropy(logits.view(-1, vocab_size), text[1:].reshape(-1))
        hidden = after[0].detach(), after[1].detach()
        return found

    return update(model, loss, is_fused=is_fused)
