"""N-gram models out to ARPA files, which KenLM and others read, and in from them."""

from __future__ import annotations

from pathlib import Path

from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.text.learning import word_tokenizer
from regard.text.tokenizer import EOS, UNK, Tokenizer


def write_arpa(model: NgramModel, tokenizer: Tokenizer, path: Path) -> None:
    """Write an n-gram model as ARPA, gzip where the name ends in .gz; tokens are called what tokenizer.json says.

    Where tokens are no words, how a text is cut into them is written beside it.
    """
    if path.is_dir():
        raise RegardError(f"'{path}' is a folder; give the name of the ARPA file to write, such as words.arpa.gz.")
    vocabulary = sorted(tokenizer.hf.get_vocab().items(), key=lambda item: item[1])
    if tokenizer.kind != "word":
        tokenizer.save(_tokenizer_beside(path))
    model.write_arpa(path, [token for token, _ in vocabulary])


def read_arpa(path: Path) -> tuple[NgramModel, Tokenizer]:
    """The model in an ARPA file, and its tokenizer: the one beside it, else one that splits at white space.

    Where the file has no <unk>, as some toolkits write it, unknown words have the probability 0.
    """
    beside = _tokenizer_beside(path)
    if beside.is_file():
        tokenizer = Tokenizer.load(beside)
        model, words = NgramModel.read_arpa(path)
        if len(words) == tokenizer.vocab_size and all(tokenizer.id_of(w) == i for i, w in enumerate(words) if i > 1):
            return model, tokenizer
        raise RegardError(f"{beside} is not the tokenizer of {path}: their tokens differ. Remove it, or export again.")
    model, words = NgramModel.read_arpa(path, adds_unk=True)
    if reserved := {EOS, UNK} & set(words[2:]):
        raise RegardError(
            f"{path} has the word {min(reserved)}, by which Regard's word tokenizer calls the end of a line or an "
            "unknown word. Call it otherwise in the file."
        )
    return model, word_tokenizer([EOS, UNK, *words[2:]])


def _tokenizer_beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.tokenizer.json")
