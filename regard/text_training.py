"""`regard train` for models that read a text: counted, or trained by gradients."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from regard import __version__
from regard import folder as run_folder
from regard.card import write_card
from regard.config import RunConfig, check_unknown_words
from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel
from regard.data.opening import find_opening
from regard.data.prepared_text import PreparedText, prepare_text
from regard.files import write_atomically
from regard.fitting import fit
from regard.models.gradient_model import GradientModel
from regard.models.table import build_language_model, model_entry
from regard.plan import Drawing
from regard.run import Run, load
from regard.score.evaluate import evaluate
from regard.start import Start, first_weights_of
from regard.training.count import check_end_mark, train_count
from regard.training.device import pick_device
from regard.training.evaluation import first_tokens
from regard.training.memory import check_memory, estimate
from regard.training.progress import Reporter
from regard.training.reading import batches_for, context_of
from regard.training.text_task import TextTask
from regard.training.weights import load_weights

MAX_TEST_TOKENS = 200_000
"""A run is scored on so much of its test text when it ends; `regard eval` scores all of it."""


def train_text(
    config: RunConfig, folder: Path, *, resume: bool, is_tested: bool, progress: Drawing, reporter: Reporter
) -> Run:
    """Train into `folder`, which was checked to be free or to hold this very run."""
    start = first_weights_of(config.start_from, folder)
    for note in [*([start.note] if start is not None and start.note else []), *config.notes()]:
        reporter.note(note)
    is_begun = (folder / "config.yaml").exists()
    with progress() as draw:
        if is_begun:
            prepared = run_folder.prepared_again(folder, config, progress=draw)
        else:
            prepared = prepare_text(config.text, config.tokenizer, progress=draw)
    facts = _rehearsed(config, prepared, start)
    first_weights = None if start is None else start.weights()
    with run_folder.alone_in(folder):
        if not is_begun:
            run_folder.begin(folder, config, prepared.tokenizer, facts)
        _fit(config, prepared, folder, resume, reporter, first_weights)
        return _finished(config, prepared, folder, is_tested)


def outline(config: RunConfig, vocab_size: int) -> GradientModel:
    """The model with shapes and no memory."""
    with torch.device("meta"):
        return build_language_model(config.model_name, config.model, vocab_size)


def _rehearsed(config: RunConfig, prepared: PreparedText, start: Start | None) -> run_folder.RunFacts:
    """All that can be refused is refused here, with no weights allocated and before anything is written."""
    tokenizer, n_parameters, flops = prepared.tokenizer, 0, 0
    check_unknown_words(config.model, tokenizer.kind, "the one at tokenizer.path")
    if model_entry(config.model_name).kind == "count":
        check_end_mark(tokenizer)
    if model_entry(config.model_name).kind == "gradient":
        network = outline(config, tokenizer.vocab_size)
        batches_for(network, prepared.train, config.train, config.seed)
        needed = estimate(network, config.train, config.optimizer, config.runtime)
        check_memory(needed, config.runtime, pick_device(config.runtime.device), TextTask.sizes)
        n_parameters, flops = network.n_parameters, network.flops_per_token(context_of(network, config.train))
    return run_folder.RunFacts(
        format=run_folder.FORMAT,
        regard=__version__,
        model=config.model_name,
        vocab_size=tokenizer.vocab_size,
        tokenizer=tokenizer.hash,
        data=prepared.fingerprint,
        n_parameters=n_parameters,
        flops_per_token=flops,
        started_from=None if start is None else str(start.path),
        started_weights=None if start is None else start.sha256,
        opening=find_opening(prepared.train, tokenizer),
    )


def _fit(
    config: RunConfig,
    prepared: PreparedText,
    folder: Path,
    resume: bool,
    reporter: Reporter,
    first_weights: dict[str, Tensor] | None,
) -> None:
    """Count or descend, whichever the model does."""
    if isinstance(config.model, NgramConfig):
        train_count(config.model, prepared, folder, train=config.train, reporter=reporter)
        return
    torch.manual_seed(config.seed)
    network = build_language_model(config.model_name, config.model, prepared.tokenizer.vocab_size)
    if first_weights is not None:
        load_weights(network, first_weights)
        first_weights.clear()  # so much memory is not needed twice
    fit(
        config,
        network,
        TextTask(network, prepared, config.train, config.seed),
        folder,
        resume=resume,
        reporter=reporter,
    )


def _finished(config: RunConfig, prepared: PreparedText, folder: Path, is_tested: bool) -> Run:
    """The run, loaded, with its test score and its card written."""
    run = load(folder)
    if isinstance(run.model, NgramModel):  # how many n-grams a text has is known once they are counted
        run.facts = replace(run.facts, n_parameters=sum(run.model.n_ngrams))
        run_folder.write_facts(folder, run.facts)
    test = None
    if is_tested and len(prepared.test):
        test = evaluate(run.next_token, first_tokens(prepared.test, MAX_TEST_TOKENS))
        write_atomically(folder / "test.json", (json.dumps(test.to_dict(), indent=2) + "\n").encode())
    write_card(folder, config, run.facts, prepared, test)
    return run
