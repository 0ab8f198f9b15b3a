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


def update(
    model: nn.Module, loss: Callable[[], Tensor], *, is_fused: bool, is_captured: bool = False
) -> Callable[[], float | None]:
    """A whole update: forward, backward, clip the gradient's norm at 1, an AdamW step.

    On the CPU it returns the loss; a GPU is not waited for. With `is_captured` the update can be put into a CUDA graph.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=is_fused, capturable=is_captured)
    is_on_cpu = next(model.parameters()).device.type == "cpu"

    def step() -> float | None:
        found = loss()
        optimizer.zero_grad()
        found.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(found.item()) if is_on_cpu else None

    return step


def capture(step: Callable[[], Any]) -> Callable[[], None]:
    """The step as one CUDA graph, as torch's documentation captures it."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


class PlainBlock(nn.Module):
    """A pre-norm Transformer block in plain torch."""

    def __init__(self, width: int, n_heads: int, p_dropout: float) -> None:
        super().__init__()
        self.n_heads, self.p_dropout = n_heads, p_dropout
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(p_dropout)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q, k, v = (
            part.view(B, T, self.n_heads, -1).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.p_dropout)
        x = x + self.dropout(self.out(y.transpose(1, 2).reshape(B, T, D)))
        hidden = nn.functional.gelu(self.up(self.norms[1](x)), approximate="tanh")
        return x + self.dropout(self.down(hidden))  # type: ignore[no-any-return]


class PlainTransformer(nn.Module):
    """A language model as a textbook writes it: learned positions, tied embeddings."""

    def __init__(self, shape: Any, vocab_size: int, p_dropout: float) -> None:
        super().__init__()
        width = shape.d_model
        self.embedding, self.positions = nn.Embedding(vocab_size, width), nn.Embedding(shape.max_context, width)
        self.dropout = nn.Dropout(p_dropout)
        self.blocks = nn.Sequential(*(PlainBlock(width, shape.n_heads, p_dropout) for _ in range(shape.n_layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.positions.weight[: ids.shape[1]]
        return nn.functional.linear(self.norm(self.blocks(self.dropout(x))), self.embedding.weight)


def plain_transformer_update(
    shape: Any, vocab_size: int, rows: int, context: int, device: torch.device, p_dropout: float, *, is_captured: bool
) -> Callable[[], Any]:
    """An update of a PlainTransformer on random tokens, in bf16 on a GPU."""
    model = PlainTransformer(shape, vocab_size, p_dropout).to(device)
    text = torch.randint(vocab_size, (rows, context + 1), device=device)

    def loss() -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = model(text[:, :-1])
            return nn.functional.cross_entropy(logits.view(-1, vocab_size), text[:, 1:].reshape(-1))

    step = update(model, loss, is_fused=True, is_captured=is_captured)
    return capture(step) if is_captured else step


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
    vocab_size: int,
    width: int,
    rows: int,
    context: int,
    device: torch.device,
    *,
    is_fused: bool,
    is_low: bool = False,
    is_captured: bool = False,
) -> Callable[[], Any]:
    """An update of a TextbookLSTM on random tokens, its state carried over; under autocast where `is_low`."""
    model = TextbookLSTM(vocab_size, width).to(device)
    text = torch.randint(vocab_size, (context + 1, rows), device=device)  # (T, B), as nn.LSTM likes it best
    hidden = torch.zeros(2, rows, width, device=device), torch.zeros(2, rows, width, device=device)

    def loss() -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=is_low):
            logits, after = model(text[:-1], (hidden[0].clone(), hidden[1].clone()))
            found = nn.functional.cross_entropy(logits.view(-1, vocab_size), text[1:].reshape(-1))
        for old, new in zip(hidden, after, strict=True):
            old.copy_(new.detach())
        return found

    step = update(model, loss, is_fused=is_fused, is_captured=is_captured)
    return capture(step) if is_captured else step
