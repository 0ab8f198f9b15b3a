"""Tags such as <2de>: vocabulary entries put before a source to say what is wanted.

(Johnson et al. 2017: one model for many languages.)
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from regard.errors import RegardError, nearest
from regard.text.tokenizer import Tokenizer


def with_tags(tokenizer: Tokenizer, tags: Sequence[str]) -> Tokenizer:
    """The tokenizer with an entry for each tag that it lacks, after all others; texts are encoded as before."""
    missing = [tag for tag in tags if tokenizer.id_of(tag) is None]
    if not missing:
        return tokenizer
    parsed = json.loads(tokenizer.json)
    vocab = parsed["model"]["vocab"]
    vocab |= {tag: tokenizer.vocab_size + i for i, tag in enumerate(missing)}
    return Tokenizer.from_json(json.dumps(parsed, ensure_ascii=False), "the vocabulary with tags")


def tag_ids(tokenizer: Tokenizer, tags: Sequence[str]) -> list[int]:
    """The id of each tag; an error names the first that the vocabulary does not have."""
    found = []
    for tag in tags:
        if (number := tokenizer.id_of(tag)) is None:
            known = [entry for entry in tokenizer.hf.get_vocab() if entry.startswith("<") and entry.endswith(">")]
            shown = ", ".join(sorted(known)[:20]) or "none"
            raise RegardError(
                f"The tag {tag} is not in the vocabulary.{nearest(tag, known)} Its entries in angle brackets: {shown}. "
                "Use one of these, or learn a vocabulary on pairs that have this tag."
            )
        found.append(number)
    return found
