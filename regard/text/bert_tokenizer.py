"""BERT's tokenizer as older folders have it: a vocab.txt, and how text is cleaned in tokenizer_config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.text.marks import BERT_MARKS
from regard.untrusted.small_files import read_object, read_text


def read_vocab_txt(folder: Path) -> str:
    """The tokenizer.json that a folder's vocab.txt stands for; the line of a piece is its id."""
    path = folder / "vocab.txt"
    pieces = read_text(path).removesuffix("\n").split("\n")
    vocab = {piece.rstrip("\r"): number for number, piece in enumerate(pieces)}
    missing = [mark for mark in BERT_MARKS if mark not in vocab]
    if missing or len(vocab) < len(pieces):
        what = f"lacks {', '.join(missing)}" if missing else "has a piece twice"
        raise RegardError(
            f"{path} is no vocabulary of BERT's: it {what}. Copy it again from where the model came from."
        )
    settings = folder / "tokenizer_config.json"
    found = read_object(settings) if settings.exists() else {}
    return json.dumps(wordpiece_json(vocab, found), ensure_ascii=False)


def wordpiece_json(vocab: dict[str, int], settings: dict[str, Any]) -> dict[str, Any]:
    """The tokenizer.json of a WordPiece vocabulary; what `settings` leaves out is as in BERT's uncased models."""
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": settings.get("tokenize_chinese_chars", True),
            "strip_accents": settings.get("strip_accents"),
            "lowercase": settings.get("do_lower_case", True),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": BERT_MARKS[1],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocab,
        },
    }
