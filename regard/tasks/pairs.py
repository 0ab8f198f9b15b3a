"""What translation and parsing share: a source is read, a target is written, by the same models from the same files."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.config import RunConfig
from regard.data.cache import key_of
from regard.data.pairs_config import PairsConfig
from regard.data.prepared_pairs import PreparedPairs, open_pairs, prepare_pairs
from regard.decode.lines import batches_by_tokens
from regard.errors import RegardError
from regard.models.outline import outline_model
from regard.models.seq2seq import Seq2Seq
from regard.score.by_length import count_words
from regard.score.judges import Judge
from regard.settings import Settings
from regard.tasks import gradient
from regard.tasks.elsewhere import use_ctranslate2, use_marian
from regard.tasks.initial_weights import InitialWeights, begin_decoder, check_decoder
from regard.tasks.pair_objective import GreedyScore, PairObjective, readable_pairs
from regard.tasks.pair_run import warn_of_split_words
from regard.tasks.run_facts import RunFacts
from regard.tasks.task import (
    Evaluation,
    Fitting,
    Rehearsal,
    Usage,
    join_names,
    name_split,
    reopen_data,
    tell_part,
)
from regard.tasks.test_set import Comparing, Decoding, TestSet, answer_in_batches
from regard.tasks.vectors_as_embedding import Embeddings
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress
from regard.text.tokenizer import Tokenizer
from regard.training.teaching_config import TeachingConfig
from regard.weights.ctranslate2 import describe_as_transformer, write_ctranslate2
from regard.weights.marian import describe_as_marian, write_marian

MAX_TEST_PAIRS = 1000
"""A run is scored on so many of its test pairs, evenly from all, when it ends; `regard eval` scores all."""
EXAMPLE = "The cat sat on the mat."
"""A source to try a run on that has no data of its own."""

UNUSED = {
    "train.n_batch": "a batch has as many pairs as make teaching.max_tokens tokens",
    "train.n_context": "a pair is read whole, up to data.max_length and model.max_context",
    "train.varies_context": "a pair is read whole",
    "train.order": "pairs come in random order, like lengths together",
    "train.max_eval_tokens": "the loss is that of all validation pairs",
}


@dataclass(frozen=True)
class PairTask(gradient.GradientTask):
    """Write the target of a source. The fields are what translation and parsing differ in."""

    name: str
    verb: str
    summary: str
    example: str
    has_trees: bool
    run_type: type[Any]
    greedy_scores: Callable[[PairsConfig], Mapping[str, GreedyScore]]
    """What weights can be selected by beside the loss."""
    make_judge: Callable[[Sequence[str], PairsConfig], Judge]
    check_sections: Callable[[RunConfig], RunConfig] = lambda config: config

    comparing = Comparing(items="sentences")
    sections = {"data": PairsConfig, "target_tokenizer": TokenizerConfig, "teaching": TeachingConfig}  # noqa: RUF012
    optional = ("target_tokenizer",)
    folders = ("decoder_from",)

    def recognises(self, given: Mapping[str, Any]) -> bool:
        data = given.get("data")
        if not self.has_trees or not isinstance(data, Mapping):
            return not self.has_trees
        try:
            return PairsConfig.from_dict(data, "data").has_trees
        except RegardError:
            return False  # the error comes when the data are read

    def complete(self, config: RunConfig) -> RunConfig:
        is_recurrent = outline_model(config.model_name, config.model, 2, None).bridge is not None
        return config.with_section("optimizer", config.optimizer.complete(is_recurrent))

    def check(self, config: RunConfig) -> RunConfig:
        pairs, teaching = config.section("data", PairsConfig), config.section("teaching", TeachingConfig)
        if pairs.has_trees != self.has_trees:
            held = "trees" if pairs.has_trees else "no trees (data.format: trees)"
            raise RegardError(
                f"The task is {self.name}, and the data hold {held}. Leave out `task`, or change the data."
            )
        allowed = ("loss", *self.greedy_scores(pairs))
        if teaching.select_by not in allowed:
            given, rest = teaching.select_by, " or ".join(allowed)
            raise RegardError(f"teaching.select_by is {given}, which is not for {self.name}. Take {rest}.")
        return self.check_sections(config)

    def list_unused(self, config: RunConfig) -> Mapping[str, str]:
        return UNUSED

    def describe_sources(self, config: RunConfig) -> str:
        return join_names([part.names for part in config.section("data", PairsConfig).parts("train")])

    def prepare(self, config: RunConfig, progress: Progress | None = None) -> PreparedPairs:
        target = config.section_or_none("target_tokenizer", TokenizerConfig)
        return prepare_pairs(config.section("data", PairsConfig), config.tokenizer, target, progress=progress)

    def reopen(self, config: RunConfig, fingerprint: str) -> PreparedPairs | None:
        found = open_pairs(fingerprint)
        has_tags = found is not None and found.train.word_tags is not None
        return found if has_tags or not config.section("data", PairsConfig).has_slots else None

    def tokenizers(self, data: PreparedPairs) -> tuple[Tokenizer, ...]:
        return (data.source_tokenizer,) if data.has_one_vocabulary else (data.source_tokenizer, data.target_tokenizer)

    def sizes(self, config: RunConfig, tokenizers: tuple[Tokenizer, ...]) -> gradient.Sizes:
        """The target's vocabulary, and the source's where that is another."""
        if config.model.to_dict().get("tying") == "all" and not share_ids(tokenizers):
            start = config.folders.get("decoder_from")
            share = "Leave out target_tokenizer" if start is None else f"Set tokenizer.path to {start}"
            raise RegardError(
                "model.tying is all, and source and target have vocabularies of their own, whose words are not each "
                f"other's. {share}, or set model.tying to target."
            )
        return tokenizers[-1].vocab_size, tokenizers[0].vocab_size if len(tokenizers) == 2 else None

    def objective(
        self, config: RunConfig, model: Seq2Seq, data: PreparedPairs, fitting: Fitting | None = None
    ) -> PairObjective:
        pairs, teaching = config.section("data", PairsConfig), config.section("teaching", TeachingConfig)
        return PairObjective(
            model,
            data,
            config.train,
            teaching,
            config.seed,
            max_length=pairs.max_length,
            skips_bad=pairs.skips_bad,
            greedy_score=self.greedy_scores(pairs).get(teaching.select_by),
        )

    def embeddings(self, config: RunConfig, model: Seq2Seq, tokenizers: tuple[Tokenizer, ...]) -> Embeddings:
        own = [] if model.source_embedding is None else [(model.source_embedding, tokenizers[0])]
        return [*own, (model.embedding, tokenizers[-1])]

    def initialise(self, config: RunConfig, model: Seq2Seq, fitting: Fitting) -> None:
        begin_decoder(model, fitting.start)

    def rehearse(self, config: RunConfig, data: PreparedPairs, start: InitialWeights | None) -> Rehearsal:
        def check(model: Seq2Seq, objective: PairObjective) -> tuple[str, ...]:
            check_decoder(model, data.target_tokenizer, start)
            return (f"{data.counts.describe()}.", *_tell_left_out(config, model, data, objective))

        def first_batch(objective: PairObjective) -> tuple[str, ...]:
            first = objective.batches.pairs.select(objective.batches.indices(0))
            return tuple(f"{first.source_text(i)}\t{first.target_text(i)}" for i in range(len(first)))

        n_units = {name: int(getattr(data, name).target_lengths.sum()) for name in ("train", "valid", "test")}
        return gradient.rehearse(self, config, data, start, n_units=n_units, first_batch=first_batch, check=check)

    def test(self, run: Any, data: PreparedPairs) -> Evaluation | None:
        some = data.test.take_evenly(MAX_TEST_PAIRS)
        if not len(readable_pairs(run.model, some)):
            return None
        found = run.evaluate_pairs(some)
        part = tell_part(len(some), len(data.test), "pairs", "evenly from all")
        result: Evaluation = replace(found, notes=(*part, *found.notes))
        return result

    def card_rows(self, config: RunConfig, facts: RunFacts, data: PreparedPairs) -> list[tuple[str, str]]:
        return [("training pairs", f"{len(data.train):,}")]

    def usage(self, config: RunConfig, folder: Path, data: PreparedPairs | None) -> Usage:
        path, (example, tag) = shlex.quote(str(folder)), (EXAMPLE, None) if data is None else _choose_example(data)
        to, named = ("", "") if tag is None else (f" --to {shlex.quote(tag)}", f", tag={json.dumps(tag)}")
        return Usage(
            shell=(
                f"echo {shlex.quote(example)} | regard {self.verb} {path}{to}",
                *(() if data is None else (f"regard eval {path}",)),
            ),
            python=(f"run.{self.verb}({json.dumps(example, ensure_ascii=False)}{named})",),
            files="`tokenizer.json` loads in Hugging Face `tokenizers` (with two vocabularies it is the source's, and "
            "`target_tokenizer.json` the target's)",
            elsewhere=(
                use_ctranslate2(folder, _say_why_not(describe_as_transformer, config)),
                use_marian(folder, example, _say_why_not(describe_as_marian, config)),
            ),
        )

    def load_test_set(self, run: Any, data: Sequence[str] | None, split: str, skips_bad: bool) -> TestSet:
        pairs, skipped = run.reader.select(data, split, skips_bad, None)
        about, watched = "", None
        if data is None:
            valid = reopen_data(self, run.reader.opened).valid
            watched = key_of([valid.target_text(i) for i in range(len(valid))])
            about = name_split(run.config, split, self.describe_sources(run.config))
        targets = [run.read_target(pairs, i) for i in range(len(pairs))]
        return TestSet(
            about=about or join_names(data),
            sources=tuple(pairs.source_text(i) for i in range(len(pairs))),
            references=tuple((target,) for target in targets),
            fits=np.isin(pairs.rows, readable_pairs(run.model, pairs).rows),
            fingerprint=key_of(targets),
            watched=watched,
            skipped=skipped,
            notes=() if self.has_trees else warn_of_split_words(targets),
            own=(pairs, run.reader.config),
            lengths=tuple(count_words(pairs.source_text(i)) for i in range(len(pairs))),
        )

    def answer(
        self, run: Any, test_set: TestSet, chosen: Sequence[int], decoding: Decoding, tell: Callable[[int], None]
    ) -> list[Any]:
        pairs, _ = test_set.own
        batches = batches_by_tokens(list(chosen), pairs.source_lengths.tolist(), decoding.max_tokens)
        return answer_in_batches(batches, run.decoder(pairs, decoding.beam), chosen, tell)

    def judge(self, test_set: TestSet, chosen: Sequence[int]) -> Judge:
        return self.make_judge([test_set.references[i][0] for i in chosen], test_set.own[1])

    def export(self, run: Any, to: Path) -> None:
        tags, where = list(run.reader.tags), f"'{run.folder}'"
        tokenizers = run.source_tokenizer, run.target_tokenizer
        write_ctranslate2(
            run.model, run.config.model, *tokenizers, to, where=where, tags=tags, is_parser=self.has_trees
        )

    def export_marian(self, run: Any, to: Path) -> None:
        tokenizers = run.source_tokenizer, run.target_tokenizer
        write_marian(run.model, run.config.model, *tokenizers, to, where=f"'{run.folder}'")


def share_ids(tokenizers: Sequence[Tokenizer]) -> bool:
    """Whether an id means the same on both sides: they have one tokenizer, or the two of a published Marian."""
    source, target = tokenizers[0], tokenizers[-1]
    if source is target:
        return True
    return source.pieces is not None and target.pieces is not None and source.pieces.texts == target.pieces.texts


def _choose_example(data: PreparedPairs) -> tuple[str, str | None]:
    """A source to try a run on, and the tag that it begins with, if any."""
    pairs = data.valid if len(data.valid) else data.train
    return pairs.source_text(0), pairs.tag(0)


def _say_why_not(describe: Callable[[Settings, str], Any], config: RunConfig) -> str:
    """Why a program has no such model; empty where it has."""
    try:
        describe(config.model, "it")
    except RegardError as error:
        return str(error)
    return ""


def _tell_left_out(config: RunConfig, model: Seq2Seq, data: PreparedPairs, objective: PairObjective) -> list[str]:
    """Which pairs are not learned from or scored, and why."""
    batches, notes, n_unreadable = objective.batches, [], {}
    for name, pairs in (("training", data.train), ("validation", data.valid), ("test", data.test)):
        n_unreadable[name] = len(pairs) - len(readable_pairs(model, pairs))
        if n_unreadable[name]:
            share = f"{n_unreadable[name]:,} of {len(pairs):,} {name} pairs"
            notes.append(f"Left out, since they are longer than the model reads: {share}.")
    if n_longer := batches.n_left_out - n_unreadable["training"]:
        max_length = config.section("data", PairsConfig).max_length
        limit = f"since a side has more than {max_length:,} tokens (data.max_length)"
        notes.append(f"Left out, {limit}: {n_longer:,} of {len(data.train):,} training pairs.")
    if batches.n_too_large:
        n_room = objective.teaching.max_tokens
        room = f"since a batch holds {n_room:,} tokens (teaching.max_tokens) and they have more"
        notes.append(f"Left out, {room}: {batches.n_too_large:,} of {len(data.train):,} training pairs.")
    return notes
