"""The JSON files of a Hugging Face folder of BERT's family: the model's config, and the tokenizer with its marks."""

from __future__ import annotations

import json
from typing import Any

from regard.models.bert_config import BertConfig
from regard.text.marks import Marks
from regard.text.tokenizer import Tokenizer
from regard.weights.bert_form import write_bert_config


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


def mark_tokenizer(tokenizer: Tokenizer, marks: Marks) -> dict[str, Any]:
    """The tokenizer.json that searches a text for its marks and puts them around it, as Hugging Face's does."""
    whole: dict[str, Any] = json.loads(tokenizer.json)
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    whole["added_tokens"] = [
        {"id": i, "content": name, **plain, "lstrip": marks.is_roberta and i == marks.mask}
        for i, name in sorted(zip(marks.ids, marks.names, strict=True))
    ]
    _, _, first, separator, _ = marks.names
    second = 0 if marks.is_roberta else 1

    def mark(name: str, segment: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": segment}}

    one = [mark(first, 0), {"Sequence": {"id": "A", "type_id": 0}}, mark(separator, 0)]
    more = [{"Sequence": {"id": "B", "type_id": second}}, mark(separator, second)]
    whole["post_processor"] = {
        "type": "TemplateProcessing",
        "single": one,
        "pair": [*one, *([mark(separator, 0)] if marks.is_roberta else []), *more],
        "special_tokens": {
            name: {"id": name, "ids": [i], "tokens": [name]}
            for name, i in ((first, marks.first), (separator, marks.separator))
        },
    }
    return whole
