"""Hugging Face folders of BERT's family, tiny and random, with a tokenizer of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tiny_gpt2 import bpe

from regard.text.bert_tokenizer import wordpiece_json
from regard.text.marks import ROBERTA_MARKS

TEXT = "The cat sat on the mat. The dog barked at the old man; unhappily, it did not bark again."
PIECES = [
    "[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,;", *"abcdefghijklmnopqrstuvwxyz",
    *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz"), "the", "cat", "dog", "##ark", "##ed", "sat", "on", "mat", "at",
    "old", "man", "it", "did", "not", "bark", "again", "un", "##happily",
]  # fmt: skip
SHAPES: dict[str, dict[str, Any]] = {
    "bert": {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20},
    "distilbert": {"dim": 12, "n_layers": 2, "n_heads": 3, "hidden_dim": 20},
}
SHAPES["roberta"] = SHAPES["bert"] | {"type_vocab_size": 1, "pad_token_id": 1}
NO_DROPOUT = {
    "bert": {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    "distilbert": {"dropout": 0.0, "attention_dropout": 0.0},
}
NO_DROPOUT["roberta"] = NO_DROPOUT["bert"]
STEMS = {"bert": "Bert", "distilbert": "DistilBert", "roberta": "Roberta"}


def hf_model(family: str = "bert", kind: str = "ForMaskedLM", seed: int = 0, **changes: Any) -> Any:
    """A model with weights large enough to matter, every one of them float32."""
    import transformers

    n_positions = 34 if family == "roberta" else 32
    tiny = {**SHAPES[family], **NO_DROPOUT[family], "vocab_size": 307 if family == "roberta" else 101}
    config = getattr(transformers, f"{STEMS[family]}Config")(
        **(tiny | {"max_position_embeddings": n_positions} | changes), attn_implementation="eager"
    )
    model = getattr(transformers, f"{STEMS[family]}{kind}")(config).eval()
    draws = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=draws)
    return model


def write_tokenizer(folder: Path, family: str, is_old: bool = False) -> None:
    """tokenizer.json; or, as old folders have it, vocab.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    if is_old:
        (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
        (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
        return
    if family == "roberta":
        vocab, merges = bpe(300)
        others = [name for name in vocab if name != "<|endoftext|>"]
        order = ["<s>", "<pad>", "</s>", "<unk>", *others, "<mask>"]
        pre = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        model = {"type": "BPE", "vocab": {name: i for i, name in enumerate(order)}, "merges": list(merges)}
        whole = {"version": "1.0", "added_tokens": [], "pre_tokenizer": pre, "decoder": pre, "model": model}
        whole["added_tokens"] = [_special(name, order.index(name)) for name in ROBERTA_MARKS]
    else:
        whole = wordpiece_json({name: i for i, name in enumerate(PIECES)}, {})
        whole["added_tokens"] = [_special(name, i) for i, name in enumerate(PIECES) if name.startswith("[") and i != 1]
    (folder / "tokenizer.json").write_text(json.dumps(whole))


def _special(name: str, number: int) -> dict[str, Any]:
    mark = {"id": number, "content": name, "single_word": False, "lstrip": False, "rstrip": False}
    return mark | {"normalized": False, "special": True}


def write_hf_bert(folder: Path, family: str = "bert", kind: str = "ForMaskedLM", seed: int = 0, **changes: Any) -> Any:
    """A whole Hugging Face folder; returns its model."""
    model = hf_model(family, kind, seed, **changes)
    model.save_pretrained(folder)
    write_tokenizer(folder, family)
    return model
