"""`regard train` for models that read pairs: the same folder, loop and promises as for text."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from regard import __version__
from regard import folder as run_folder
from regard.config import RunConfig
from regard.data.prepared_pairs import PreparedPairs, prepare_pairs
from regard.decoder_start import begin_decoder, check_decoder
from regard.errors import RegardError
from regard.files import write_atomically
from regard.fitting import fit
from regard.models.seq2seq import Seq2Seq
from regard.models.table import build_pair_model
from regard.pair_card import write_pair_card
from regard.pair_evaluation import PairEvaluation
from regard.pair_run import PairRun, load_pair_run
from regard.plan import Drawing
from regard.start import Start, first_weights_of
from regard.training.device import pick_device
from regard.training.memory import check_memory
from regard.training.pair_task import PairTask, readable_pairs
from regard.training.progress import Reporter

MAX_TEST_PAIRS = 1000
"""A run is scored on so many of its test pairs when it ends, as `regard eval` scores them all."""


def train_pairs(
    config: RunConfig, folder: Path, *, resume: bool, is_tested: bool, progress: Drawing, reporter: Reporter
) -> PairRun:
    """Train into `folder`, which was checked to be free or to hold this very run."""
    is_begun = (folder / "config.yaml").exists()
    with progress() as draw:
        if is_begun:
            prepared = run_folder.prepared_pairs_again(folder, config, progress=draw)
        else:
            prepared = prepare_pairs(config.pairs, config.tokenizer, config.target_tokenizer, progress=draw)
    for note in (*config.notes(), f"{prepared.counts.describe()}."):
        reporter.note(note)
    start = first_weights_of(config.decoder_from, folder)
    facts = _rehearsed(config, prepared, start, reporter)
    with run_folder.alone_in(folder):
        if not is_begun:
            target = None if prepared.has_one_vocabulary else prepared.target_tokenizer
            run_folder.begin(folder, config, prepared.source_tokenizer, facts, target)
        _fit(config, prepared, folder, resume, start, reporter)
        return _finished(config, prepared, folder, is_tested)


def task_of(config: RunConfig, model: Seq2Seq, prepared: PreparedPairs) -> PairTask:
    assert config.teaching is not None, "a model that reads pairs is taught"
    pairs = config.pairs
    tree_words = pairs.tree_words if pairs.has_trees else None
    limits = (pairs.max_length, tree_words, pairs.skips_bad)
    return PairTask(model, prepared, config.train, config.teaching, config.seed, *limits)


def outline(config: RunConfig, prepared: PreparedPairs) -> Seq2Seq:
    """The model with shapes and no memory."""
    with torch.device("meta"):
        return build(config, prepared)


def build(config: RunConfig, prepared: PreparedPairs) -> Seq2Seq:
    n_source = None if prepared.has_one_vocabulary else prepared.source_tokenizer.vocab_size
    if n_source is not None and config.model.to_dict().get("tying") == "all":
        share = (
            "Leave out target_tokenizer"
            if config.decoder_from is None
            else f"Set tokenizer.path to {config.decoder_from}"
        )
        raise RegardError(
            "model.tying is all, and source and target have vocabularies of their own, whose words are not each "
            f"other's. {share}, or set model.tying to target."
        )
    return build_pair_model(config.model_name, config.model, prepared.target_tokenizer.vocab_size, n_source)


def _rehearsed(
    config: RunConfig, prepared: PreparedPairs, start: Start | None, reporter: Reporter
) -> run_folder.RunFacts:
    """All that can be refused is refused here, with no weights allocated and before anything is written."""
    network = outline(config, prepared)
    if start is not None:
        check_decoder(network, prepared.target_tokenizer, start)
    task = task_of(config, network, prepared)
    n_unreadable = {}
    for name, pairs in (("training", prepared.train), ("validation", prepared.valid), ("test", prepared.test)):
        n_unreadable[name] = len(pairs) - len(readable_pairs(network, pairs))
        if n_unreadable[name]:
            share = f"{n_unreadable[name]:,} of {len(pairs):,} {name} pairs"
            reporter.note(f"Left out, since they are longer than the model reads: {share}.")
    if n_longer := task.batches.n_left_out - n_unreadable["training"]:
        limit = f"since a side has more than {config.pairs.max_length:,} tokens (data.max_length)"
        reporter.note(f"Left out, {limit}: {n_longer:,} of {len(prepared.train):,} training pairs.")
    if task.batches.n_too_large:
        room = f"since a batch holds {task.teaching.max_tokens:,} tokens (teaching.max_tokens) and they have more"
        share = f"{task.batches.n_too_large:,} of {len(prepared.train):,} training pairs"
        reporter.note(f"Left out, {room}: {share}.")
    needed = task.memory(network, config.optimizer, config.runtime)
    check_memory(needed, config.runtime, pick_device(config.runtime.device), task.sizes)
    source, target = prepared.source_tokenizer, prepared.target_tokenizer
    return run_folder.RunFacts(
        format=run_folder.FORMAT,
        regard=__version__,
        model=config.model_name,
        vocab_size=source.vocab_size,
        tokenizer=source.hash,
        data=prepared.fingerprint,
        n_parameters=network.n_parameters,
        flops_per_token=task.flops_per_token,
        started_from=None if start is None else str(start.path),
        started_weights=None if start is None else start.sha256,
        target_vocab_size=None if prepared.has_one_vocabulary else target.vocab_size,
        target_tokenizer=None if prepared.has_one_vocabulary else target.hash,
    )


def _fit(
    config: RunConfig, prepared: PreparedPairs, folder: Path, resume: bool, start: Start | None, reporter: Reporter
) -> None:
    torch.manual_seed(config.seed)
    network = build(config, prepared)
    if start is not None:
        begin_decoder(network, start)
    fit(config, network, task_of(config, network, prepared), folder, resume=resume, reporter=reporter)


def _finished(config: RunConfig, prepared: PreparedPairs, folder: Path, is_tested: bool) -> PairRun:
    """The run, loaded, with its test score and its card written."""
    run = load_pair_run(folder)
    test: PairEvaluation | None = None
    some = prepared.test.some(MAX_TEST_PAIRS)
    if is_tested and len(readable_pairs(run.model, some)):
        test = run.evaluate_pairs(some)
        write_atomically(folder / "test.json", (json.dumps(test.to_dict(), indent=2) + "\n").encode())
    write_pair_card(folder, config, run.facts, prepared, test)
    return run
