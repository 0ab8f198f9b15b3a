"""N-gram models out to ARPA files, which KenLM and others read, and in from them."""

from __future__ import annotations

from pathlib import Path

from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.text.learning import word_tokenizer
from regard.text.tokenizer import EOS, UNK, Tokenizer
from regard.weights.exportable import Exportable


def export_arpa(run: Exportable, path: Path | str) -> None:
    """Write an n-gram run as ARPA (gzip where the name ends in .gz); each token is called what tokenizer.json says."""
    if not isinstance(run.model, NgramModel):
        raise RegardError(f"ARPA files hold n-gram models; '{run.folder}' is a run of {run.config.model_name}.")
    if Path(path).is_dir():
        raise RegardError(f"'{path}' is a folder; give the name of the ARPA file to write, such as words.arpa.gz.")
    vocabulary = sorted(run.tokenizers[0].hf.get_vocab().items(), key=lambda item: item[1])
    run.model.write_arpa(Path(path), [token for token, _ in vocabulary])


def read_arpa(path: Path) -> tuple[NgramModel, Tokenizer]:
    """The model in an ARPA file, and a tokenizer that splits at white space and knows the file's words."""
    model, words = NgramModel.read_arpa(path)
    if model.unk is None:
        raise RegardError(
            f"{path} has no <unk> among its 1-grams, so unknown words could not be scored; add one to it."
        )
    return model, word_tokenizer([EOS, UNK, *words[2:]])
