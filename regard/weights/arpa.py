"""N-gram models out to ARPA files, which KenLM and others read, and in from them."""

from __future__ import annotations

from pathlib import Path

from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.text.learning import word_tokenizer
from regard.text.tokenizer import EOS, UNK, Tokenizer


def write_arpa(model: NgramModel, tokenizer: Tokenizer, path: Path) -> None:
    """Write an n-gram model as ARPA, gzip where the name ends in .gz; tokens are called what tokenizer.json says."""
    if path.is_dir():
        raise RegardError(f"'{path}' is a folder; give the name of the ARPA file to write, such as words.arpa.gz.")
    vocabulary = sorted(tokenizer.hf.get_vocab().items(), key=lambda item: item[1])
    model.write_arpa(path, [token for token, _ in vocabulary])


def read_arpa(path: Path) -> tuple[NgramModel, Tokenizer]:
    """The model in an ARPA file, and a tokenizer that splits at white space and knows the file's words."""
    model, words = NgramModel.read_arpa(path)
    if model.unk is None:
        raise RegardError(
            f"{path} has no <unk> among its 1-grams, so unknown words could not be scored; add one to it."
        )
    return model, word_tokenizer([EOS, UNK, *words[2:]])
