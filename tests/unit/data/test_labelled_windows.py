"""Windows of questions about one passage: what they share is made once."""

from __future__ import annotations

import tracemalloc

import pytest

from regard.data.labelled_windows import TextFramer
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer


def test_a_passage_is_cut_into_tokens_once_for_all_its_questions_and_little_is_kept_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passage = "one two three " * 2000
    tokenizer = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), [passage])
    framer = TextFramer(tokenizer, 512, 256)
    seen: list[str] = []
    plain = tokenizer.encode_with_offsets

    def note(text: str) -> object:
        seen.append(text)
        return plain(text)

    monkeypatch.setattr(type(tokenizer), "encode_with_offsets", lambda _, text: note(text))
    first = framer.frame_question("one?", passage)
    tracemalloc.start()
    kept = [framer.frame_question(f"two {i}?", passage) for i in range(20)]
    n_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert seen.count(passage) == 1
    assert all(each.spans is first.spans for each in kept)
    assert (
        n_bytes / sum(len(each.spans) for each in kept) < 60
    )  # two windows a token, each of 17 bytes; 8 for its place
