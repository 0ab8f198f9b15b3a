"""A byte-level BPE of GPT-2's form and Hugging Face folders, tiny and random."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import torch

TEXT = (
    "The cat sat on the mat, and then the old man's dog didn't; they'll see what we've got: 3.14, 2026 & more!\n"
    "In October, people sat. Naïve café façades cost 12 € — 日本語 too.\n\n\tif x == 1:\n\t\treturn  'yes'\n"
)
END = "<|endoftext|>"


@cache
def bpe(n_tokens: int) -> tuple[dict[str, int], tuple[tuple[str, str], ...]]:
    """Vocabulary and merges; as in GPT-2's, the 256 bytes come first and the end mark last."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    hf = Tokenizer(models.BPE())
    hf.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=n_tokens - 1, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    hf.train_from_iterator([TEXT] * 4, trainer)
    model = json.loads(hf.to_str())["model"]
    return {**model["vocab"], END: len(model["vocab"])}, tuple(map(tuple, model["merges"]))


def write_vocab_and_merges(folder: Path, n_tokens: int = 300) -> None:
    vocab, merges = bpe(n_tokens)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *map(" ".join, merges)]) + "\n")


def write_hf_tokenizer(folder: Path, n_tokens: int = 300) -> Any:
    """tokenizer.json and tokenizer_config.json, as `transformers` writes them; returns its tokenizer."""
    import transformers

    vocab, merges = bpe(n_tokens)
    theirs = transformers.GPT2Tokenizer(vocab=dict(vocab), merges=list(merges))
    theirs.save_pretrained(folder)
    return theirs


def hf_model(seed: int = 0, **changes: Any) -> Any:
    """A GPT2LMHeadModel with weights large enough to matter, every one of them float32."""
    import transformers

    tiny = {"vocab_size": 307, "n_positions": 32, "n_embd": 12, "n_layer": 2, "n_head": 3, "resid_pdrop": 0.0}
    tiny |= {"embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 299, "eos_token_id": 299}
    config = transformers.GPT2Config(**(tiny | changes), attn_implementation="eager")
    model = transformers.GPT2LMHeadModel(config).eval()
    draws = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=draws)
    return model


def write_hf_folder(folder: Path, seed: int = 0, n_tokens: int = 300, **changes: Any) -> Any:
    """A whole Hugging Face folder; returns its model."""
    model = hf_model(seed, **changes)
    model.save_pretrained(folder)
    write_hf_tokenizer(folder, n_tokens)
    return model
