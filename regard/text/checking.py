"""What a tokenizer.json may hold. It is a small program: its patterns can search for hours, its ids ask for any memory.

So the parts are named that Regard's own tokenizers and those of GPT-2, BERT and RoBERTa are made of; all others are
refused before the library builds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from regard.errors import RegardError
from regard.text.marian_tokenizer import check_unigram
from regard.untrusted.values import quote

WORD_PATTERN = r"<eos>|<unk>|\w+(?:['’]\w+)*"
"""A word without its punctuation; an apostrophe inside it stays: don't."""
MARK_PATTERN = r"|[^\w\s]"
PATTERNS = (WORD_PATTERN, WORD_PATTERN + MARK_PATTERN)
"""Regular expressions that tokenizers learned here search with, none of which tries anything twice."""
PARTS = {
    "normalizer": ("BertNormalizer", "Lowercase", "Sequence", "Replace", "NFC", "NFD", "NFKC", "NFKD", "StripAccents"),
    "pre_tokenizer": ("ByteLevel", "BertPreTokenizer", "WhitespaceSplit", "Whitespace", "Split", "Sequence"),
}
UNIGRAM_PARTS = {"normalizer": ("Precompiled",), "pre_tokenizer": ("Sequence", "WhitespaceSplit", "Metaspace")}
"""Parts of the tokenizers of published Marians, which `MarianPieces` computes itself."""
REPLACED = ("\n", " <eos> ")  # the only text that a tokenizer of ours replaces, and by what
MAX_HOLES = 1000  # ids without a token, beyond as many as there are tokens; GPT-2's have a few
MAX_WORD_CHARACTERS = 10_000  # of WordPiece, which tries every beginning of a word


def check_parts(parsed: Any, where: str) -> None:
    """Refuse a tokenizer.json with a part that is not named here, a foreign pattern, or ids far beyond its tokens."""
    if not isinstance(parsed, dict) or not isinstance(parsed.get("model"), dict):
        raise RegardError(f"{where} is no tokenizer.json that `tokenizers` can read: it has no model. Copy it again.")
    is_unigram = parsed["model"].get("type") == "Unigram"
    for name, allowed in (UNIGRAM_PARTS if is_unigram else PARTS).items():
        for part in _list_parts(parsed.get(name)):
            if part.get("type") not in allowed:
                raise RegardError(
                    f"{where} has the {name} {quote(part.get('type'), 40)}, which Regard does not read. It reads "
                    f"{', '.join(allowed)}. Leave out tokenizer.path to learn a tokenizer from the training text."
                )
            _check_pattern(part, where)
    model = parsed["model"]
    n_characters = model.get("max_input_chars_per_word") or 0
    if not isinstance(n_characters, int) or n_characters > MAX_WORD_CHARACTERS:
        raise RegardError(
            f"{where} has max_input_chars_per_word {quote(n_characters, 40)}; at most {MAX_WORD_CHARACTERS:,} are read."
        )
    added = parsed.get("added_tokens") or []
    ids = [token.get("id") for token in added if isinstance(token, dict)] if isinstance(added, list) else []
    if is_unigram:
        check_unigram(parsed, where)
    else:
        check_ids(model.get("vocab"), where, ids)


def check_ids(vocab: Any, where: str, more: list[Any] | None = None) -> None:
    """Refuse a vocabulary whose ids are no whole numbers, or go far beyond how many tokens there are."""
    ids = [*(vocab.values() if isinstance(vocab, Mapping) else []), *(more or [])]
    wrong = [i for i in ids if isinstance(i, bool) or not isinstance(i, int) or i < 0]
    if not ids or wrong:
        raise RegardError(
            f"{where} must have a vocabulary that gives every token a whole number from 0 on, and "
            f"{'has none' if not ids else f'gives one {quote(wrong[0], 40)}'}. Copy it again from where it came from."
        )
    if max(ids) > 2 * len(ids) + MAX_HOLES:
        raise RegardError(
            f"{where} has {len(ids):,} tokens, and one of them has the number {max(ids):,}: every number up to that "
            "would take memory. Copy it again from where it came from."
        )


def _list_parts(part: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """A part, and those that it is a sequence of."""
    if not isinstance(part, Mapping):
        return
    yield part
    for key in ("normalizers", "pretokenizers"):
        for inner in part.get(key) or [] if depth < 5 and isinstance(part.get(key), list) else []:
            yield from _list_parts(inner, depth + 1)


def _check_pattern(part: Mapping[str, Any], where: str) -> None:
    pattern = part.get("pattern")
    if pattern is None:
        return
    if part.get("type") == "Replace":
        is_ours = isinstance(pattern, Mapping) and (pattern.get("String"), part.get("content")) == REPLACED
    else:
        is_ours = isinstance(pattern, Mapping) and pattern.get("Regex") in PATTERNS
    if not is_ours:
        raise RegardError(
            f"{where} searches texts for {quote(pattern, 60)}. A pattern from elsewhere may search for hours, and "
            "Regard reads its own alone. Leave out tokenizer.path to learn a tokenizer from the training text."
        )
