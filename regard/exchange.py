"""Runs out to other tools, and in from them: ARPA files, Hugging Face and CTranslate2 folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from regard import __version__
from regard import folder as run_folder
from regard.config import RunConfig
from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.files import write_atomically
from regard.run import Run, load
from regard.start import begin_as
from regard.text.learning import word_tokenizer
from regard.text.tokenizer import EOS, UNK
from regard.weights.ctranslate2 import write_ctranslate2
from regard.weights.hugging_face import describe_as_gpt2, is_for_hugging_face, write_hugging_face


def export_run(run: Any, to: Path | str) -> None:
    """Write a run for another tool: n-grams as ARPA, translators for CTranslate2, GPT-2 for Hugging Face."""
    config, to, where = run.config, Path(to), f"'{run.folder}'"
    if isinstance(run.model, NgramModel):
        _export_arpa(run, to)
    elif config.reads_pairs:
        tags = sorted({part.tag for part in config.pairs.parts("train") if part.tag is not None})
        vocabularies = run.source_tokenizer, run.target_tokenizer
        write_ctranslate2(run.model, config.model, *vocabularies, to, where=where, tags=tags, is_parser=run.is_parser)
    else:
        gpt2 = describe_as_gpt2(config.model_name, config.model, where)
        write_hugging_face(run.model, gpt2, run.tokenizer, to)


def import_run(source: Path | str, folder: Path | str) -> Run:
    """Make a run folder of an ARPA file, packed by gzip or not, or of a Hugging Face GPT-2 folder."""
    source, folder = Path(source), Path(folder)
    return load(begin_as(source, folder)) if is_for_hugging_face(source) else _import_arpa(source, folder)


def _export_arpa(run: Run, path: Path) -> None:
    """Write an n-gram run as ARPA (gzip where the name ends in .gz); each token is called what tokenizer.json says."""
    assert isinstance(run.model, NgramModel)
    if path.is_dir():
        raise RegardError(f"'{path}' is a folder; give the name of the ARPA file to write, such as words.arpa.gz.")
    vocabulary = sorted(run.tokenizer.hf.get_vocab().items(), key=lambda item: item[1])
    run.model.write_arpa(path, [token for token, _ in vocabulary])


def _import_arpa(path: Path, folder: Path) -> Run:
    """Make a run folder of an ARPA file, with a tokenizer that splits at white space and knows the file's words."""
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
