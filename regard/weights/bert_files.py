"""The JSON files of a Hugging Face folder of BERT's family: the model's config, and the tokenizer with its marks."""

from __future__ import annotations

from typing import Any

from regard.models.bert_config import BertConfig
from regard.text.tokenizer import Tokenizer
from regard.weights.bert_form import write_bert_config
from regard.weights.tokenizer_files import mark_tokenizer


def describe_bert(config: BertConfig, n_rows: int, tokenizer: Tokenizer) -> dict[str, dict[str, Any]]:
    """The contents of the files by name."""
    marks = tokenizer.marks
    assert marks is not None, "a masked language model has them"
    pad, unknown, first, separator, mask = marks.names
    special = {"pad_token": pad, "unk_token": unknown, "cls_token": first, "sep_token": separator, "mask_token": mask}
    if marks.is_roberta:
        special |= {"bos_token": first, "eos_token": separator}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **special,
        "model_max_length": config.max_context,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", *(["token_type_ids"] if config.n_segments > 1 else []), "attention_mask"],
    }
    written = write_bert_config(config, n_rows) | {"pad_token_id": marks.padding}
    return {
        "config.json": written,
        "tokenizer.json": mark_tokenizer(tokenizer, marks),
        "tokenizer_config.json": settings,
        "special_tokens_map.json": special,
    }
