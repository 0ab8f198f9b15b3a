"""The JSON files of a Hugging Face folder of GPT-2: the model's config, and the tokenizer with its end mark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers
import torch

from regard.models.gpt2_config import GPT2Config
from regard.text.tokenizer import Tokenizer
from regard.weights.gpt2_form import write_config
from regard.weights.tokenizer_files import end_texts, mark_tokens

if TYPE_CHECKING:
    from torch import Tensor

PADDING = "<|pad|>"


def describe_gpt2(config: GPT2Config, n_rows: int, tokenizer: Tokenizer) -> dict[str, dict[str, Any]]:
    """The contents of the files by name."""
    eos, mark = tokenizer.eos, tokenizer.end_mark
    return {
        "config.json": write_config(config, n_rows, eos),
        "generation_config.json": {"bos_token_id": eos, "eos_token_id": eos},
        "tokenizer.json": mark_tokens(tokenizer, {mark: eos}),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": mark,
            "eos_token": mark,
            "model_max_length": config.max_context,
            "clean_up_tokenization_spaces": False,
        },
    }


def describe_gpt2_reader(
    config: GPT2Config, embedding: Tensor, tokenizer: Tokenizer
) -> tuple[dict[str, dict[str, Any]], Tensor]:
    """The files of a GPT-2 that reads texts for a task, and its embedding with a row for padding.

    The head reads the state of a text's last token, which here is the end mark: the tokenizer adds it. Hugging Face
    finds it as the last that is no padding, so that padding must be another token than the end mark, which GPT-2's
    vocabulary does not have: it gets one, in a row that stands for no token yet or in a new one.
    """
    known = tokenizer.id_of(PADDING)
    padding = tokenizer.vocab_size if known is None else known
    if padding == len(embedding):
        embedding = torch.cat([embedding, embedding.new_zeros(1, embedding.shape[1])])
    files = describe_gpt2(config.replace(tie_embeddings=True), len(embedding), tokenizer)
    files["config.json"]["pad_token_id"] = padding
    del files["generation_config.json"]
    files["tokenizer_config.json"] |= {"pad_token": PADDING, "padding_side": "right"}
    files["tokenizer.json"] = end_texts(tokenizer, {PADDING: padding})
    return files, embedding


def ends_texts(folder: Path, tokenizer: Tokenizer) -> bool:
    """Whether the tokenizer in a folder puts the end mark behind a text."""
    file = folder / "tokenizer.json"
    if not file.exists():
        return False
    ids = tokenizers.Tokenizer.from_file(str(file)).encode("a").ids
    return bool(ids) and ids[-1] == tokenizer.eos
