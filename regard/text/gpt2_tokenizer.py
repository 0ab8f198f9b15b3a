"""Tokenizers that were made for GPT-2 elsewhere, read as ours are.

GPT-2's byte-level BPE (Radford et al. 2019) comes as a tokenizer.json or, older, as vocab.json and merges.txt. It ends
a text with <|endoftext|>, id 50256. Its makers list that mark as a special token, one that is searched for in the text.
Here it is a vocabulary entry and nothing else, as <eos> is in our own vocabularies: a document that happens to spell
"<|endoftext|>" stays text, and cannot end itself. All other text gets the ids that Hugging Face gives it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.untrusted.small_files import read_object, read_text
from regard.untrusted.values import quote

END_OF_TEXT = "<|endoftext|>"


def read_vocab_and_merges(folder: Path) -> str:
    """The tokenizer.json that a folder's vocab.json, merges.txt and, if it has one, added_tokens.json stand for."""
    vocab, merges = folder / "vocab.json", folder / "merges.txt"
    if not merges.exists():
        raise RegardError(
            f"'{folder}' has vocab.json and no merges.txt; a BPE tokenizer is both together. Copy merges.txt there from"
            " where vocab.json came from."
        )
    tokens = read_object(vocab)
    added = folder / "added_tokens.json"
    tokens |= read_object(added) if added.exists() else {}
    for token, number in tokens.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise RegardError(
                f"{vocab} must give every token a whole number, and gives {quote(token)} "
                f"{quote(number)}. Copy the file again, or correct that number."
            )
    return json.dumps(_byte_level_bpe(tokens, _merges(merges)), ensure_ascii=False)


def _byte_level_bpe(vocab: dict[str, int], merges: list[list[str]]) -> dict[str, Any]:
    """The tokenizer.json that Hugging Face makes of the two files."""
    pieces = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": pieces,
        "decoder": pieces,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    }


def _merges(path: Path) -> list[list[str]]:
    pairs = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip() or (number == 1 and line.startswith("#version")):
            continue
        pair = line.rstrip("\r").split(" ")
        if len(pair) != 2 or not all(pair):
            raise RegardError(
                f"{path}, line {number}, must be two tokens and a space between them, not {quote(line, 60)}. Copy "
                f"{path.name} again, or correct that line."
            )
        pairs.append(pair)
    return pairs


def drop_searched_tokens(parsed: dict[str, Any], where: str) -> dict[str, Any]:
    """A tokenizer.json whose special tokens are only entries of its vocabulary, and that adds no tokens to a text."""
    added = parsed.get("added_tokens") or []
    others = [token["content"] for token in added if not token.get("special")]
    if others:
        raise RegardError(
            f"{where} has added tokens that are searched for in every text ({', '.join(map(repr, others[:3]))}); "
            "Regard reads tokenizers with special ones alone. Use the tokenizer as it was before they were added."
        )
    model = dict(parsed["model"])
    if added and isinstance(model["vocab"], dict):
        model["vocab"] = model["vocab"] | {token["content"]: token["id"] for token in added}
    return {**parsed, "added_tokens": [], "post_processor": None, "truncation": None, "padding": None, "model": model}


def check_pieces(parsed: dict[str, Any], where: str) -> None:
    """Refuse a byte-level BPE that would put a space before every text: pieces of a text would all get one."""
    if (parsed.get("pre_tokenizer") or {}).get("add_prefix_space"):
        raise RegardError(
            f"{where} puts a space before every text (add_prefix_space), which GPT-2 and Regard do not. "
            "Set add_prefix_space to false in its pre_tokenizer."
        )
