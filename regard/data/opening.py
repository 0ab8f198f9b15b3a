"""Where a text that has no prompt begins: at a document if training showed many, else at a paragraph, line or sentence.

A model predicts the first token of a text from <eos>, which ends the document before it. A novel is one document: a
model trained on it has hardly met <eos>, and would begin with noise. It has met paragraphs.
"""

from __future__ import annotations

from regard.data.split import MIN_DOCUMENTS
from regard.data.stream import Stream
from regard.text.tokenizer import Ids, Tokenizer

BREAKS = ("\n\n", "\n", ". ", " ")
MIN_BREAKS = 5  # in the beginning of the training text; what is rarer is as little known as <eos>


def find_opening(train: Stream, tokenizer: Tokenizer) -> str:
    """The break after which a text is begun; empty where it is begun after <eos>, as documents are.

    The word tokenizer writes <eos> for every line end, so it is well known whatever a document is.
    """
    if train.n_documents >= MIN_DOCUMENTS or tokenizer.kind == "word":
        return ""
    frequent = (text for text in BREAKS if train.sample.count(text) >= MIN_BREAKS)
    return next((text for text in frequent if len(encode_opening(text, tokenizer))), "")


def encode_opening(text: str, tokenizer: Tokenizer, max_tokens: int | None = None) -> Ids:
    """The ids of a break where it stands between two words, the last `max_tokens` of them.

    Alone it could have others: byte-level BPE joins line ends that nothing follows.
    """
    if not text:
        return tokenizer.encode("")
    ids, spans = tokenizer.encode_with_offsets(f"a{text}A")
    inside = [start >= 1 and end <= 1 + len(text) for start, end in spans]
    kept = ids[inside]
    return kept if max_tokens is None else kept[max(0, len(kept) - max_tokens) :]
