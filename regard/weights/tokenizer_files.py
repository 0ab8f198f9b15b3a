"""tokenizer.json files that put marks around texts, as the models here read them: for other programs' tokenizers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from regard.text.marks import Marks
from regard.text.tokenizer import Tokenizer


def frame_texts(tokenizer: Tokenizer) -> str:
    """The tokenizer.json that frames one text or two as `regard/data/labelled_windows.py` does."""
    if tokenizer.marks is not None:
        return json.dumps(mark_tokenizer(tokenizer, tokenizer.marks), ensure_ascii=False)
    return json.dumps(end_texts(tokenizer, {}, second=1), ensure_ascii=False)


def mark_tokens(tokenizer: Tokenizer, marks: Mapping[str, int]) -> dict[str, Any]:
    """Make tokenizer.json with special tokens, which Hugging Face leaves out of texts."""
    whole: dict[str, Any] = json.loads(tokenizer.json)
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    whole["added_tokens"] = [
        {"id": number, "content": name, **plain} for name, number in sorted(marks.items(), key=lambda item: item[1])
    ]
    return whole


def end_texts(tokenizer: Tokenizer, marks: Mapping[str, int], second: int = 0) -> dict[str, Any]:
    """Make tokenizer.json that puts the end mark behind a text, or behind each of two; `marks` are special tokens too.

    `second` is the type of the second text's tokens.
    """
    mark = tokenizer.end_mark
    whole = mark_tokens(tokenizer, {mark: tokenizer.eos, **marks})
    texts = [
        [{"Sequence": {"id": name, "type_id": number}}, {"SpecialToken": {"id": mark, "type_id": number}}]
        for name, number in (("A", 0), ("B", second))
    ]
    whole["post_processor"] = {
        "type": "TemplateProcessing",
        "single": texts[0],
        "pair": [*texts[0], *texts[1]],
        "special_tokens": {mark: {"id": mark, "ids": [tokenizer.eos], "tokens": [mark]}},
    }
    return whole


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
