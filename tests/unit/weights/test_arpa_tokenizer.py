"""ARPA files whose tokens are no words, and files without <unk>."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.weights.arpa import read_arpa, write_arpa

TEXT = "the cat sat on the mat\nthe dog sat\n" * 5


@pytest.mark.parametrize("kind", ["bpe", "char", "byte", "wordpiece", "word"])
def test_an_exported_model_is_imported_again_with_its_tokenizer(kind: str, tmp_path: Path) -> None:
    size = {"bpe": 280, "wordpiece": 40}.get(kind)
    tokenizer = train_tokenizer(TokenizerConfig(kind=kind, vocab_size=size), [TEXT])
    ids = tokenizer.encode_documents([(TEXT, True)])
    model = NgramModel.fit(NgramConfig(order=3), ids, tokenizer.vocab_size, tokenizer.unk)
    write_arpa(model, tokenizer, tmp_path / "model.arpa.gz")
    again, words = read_arpa(tmp_path / "model.arpa.gz")
    assert words.kind == kind
    found = again.nats(words.encode_documents([(TEXT, True)]))
    np.testing.assert_allclose(found, model.nats(ids), rtol=0, atol=1e-6)  # 7 decimals are written


def test_a_file_without_unk_gives_unknown_words_no_probability(tmp_path: Path) -> None:
    lines = ["\\data\\", "ngram 1=3", "", "\\1-grams:", "-99\t<s>", "-0.30103\t</s>", "-0.30103\ta", "", "\\end\\", ""]
    (tmp_path / "a.arpa").write_text("\n".join(lines))
    model, words = read_arpa(tmp_path / "a.arpa")
    np.testing.assert_allclose(model.nats(words.encode("a")), [np.log(2)], atol=1e-5)
    assert model.nats(words.encode("b")).tolist() == [np.inf]


def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="char"), [TEXT])
    ids = tokenizer.encode_documents([(TEXT, True)])
    write_arpa(NgramModel.fit(NgramConfig(order=2), ids, tokenizer.vocab_size, None), tokenizer, tmp_path / "a.arpa")
    train_tokenizer(TokenizerConfig(kind="char"), ["other"]).save(tmp_path / "a.arpa.tokenizer.json")
    with pytest.raises(RegardError, match="their tokens differ"):
        read_arpa(tmp_path / "a.arpa")
