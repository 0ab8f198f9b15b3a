"""N-gram runs out to ARPA files, which KenLM and others read, and in from them."""

from __future__ import annotations

from pathlib import Path

from safetensors.numpy import save_file

from regard import __version__
from regard import folder as run_folder
from regard.config import RunConfig
from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.files import write_atomically
from regard.run import Run, load
from regard.text.learning import word_tokenizer
from regard.text.tokenizer import EOS, UNK


def export_arpa(run: Run, path: Path | str) -> None:
    """Write an n-gram run as ARPA (gzip where the name ends in .gz); each token is called what tokenizer.json says."""
    if not isinstance(run.model, NgramModel):
        raise RegardError(f"ARPA files hold n-gram models; '{run.folder}' is a run of {run.config.model_name}.")
    if Path(path).is_dir():
        raise RegardError(f"'{path}' is a folder; give the name of the ARPA file to write, such as words.arpa.gz.")
    vocabulary = sorted(run.tokenizer.hf.get_vocab().items(), key=lambda item: item[1])
    run.model.write_arpa(Path(path), [token for token, _ in vocabulary])


def import_arpa(path: Path | str, folder: Path | str) -> Run:
    """Make a run folder of an ARPA file, with a tokenizer that splits at white space and knows the file's words."""
    path, folder = Path(path), Path(folder)
    run_folder.check_free(folder, can_resume=False)
    model, words = NgramModel.read_arpa(path)
    if model.unk is None:
        raise RegardError(
            f"{path} has no <unk> among its 1-grams, so unknown words could not be scored; add one to it."
        )
    tokenizer = word_tokenizer([EOS, UNK, *words[2:]])
    config = RunConfig.from_dict(
        {"data": {"train": str(path)}, "tokenizer": {"kind": "word"}, "model": {"name": "ngram", "order": model.order}}
    )
    facts = run_folder.RunFacts(
        format=run_folder.FORMAT,
        regard=__version__,
        model="ngram",
        vocab_size=tokenizer.vocab_size,
        tokenizer=tokenizer.hash,
        data=run_folder.IMPORTED,
        n_parameters=sum(model.n_ngrams),
        flops_per_token=0,
    )
    run_folder.begin(folder, config, tokenizer, facts)
    write_atomically(folder / "model.safetensors", lambda aside: save_file(model.tensors(), aside))
    return load(folder)
