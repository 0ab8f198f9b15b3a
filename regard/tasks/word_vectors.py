"""The job of giving every word of a text a vector: counted (LSA), or learned (skip-gram, CBOW, GloVe)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.config import RunConfig, mapping
from regard.data.cache import key_of
from regard.data.config import DataConfig
from regard.data.prepared_text import PreparedText, open_text, prepare_text
from regard.errors import RegardError
from regard.models.trained_vectors import N_SPECIAL, compose_vectors
from regard.models.word_vectors_config import Word2VecConfig
from regard.score.judges import Judge
from regard.score.word_tests import (
    RankCorrelation,
    RatedPairs,
    ShareRight,
    WordEvaluation,
    prefer_contexts,
    read_word_test,
)
from regard.settings import Settings
from regard.tasks.elsewhere import use_gensim
from regard.tasks.gradient import refuse_marian, refuse_onnx
from regard.tasks.initial_weights import InitialWeights
from regard.tasks.run_facts import RunFacts
from regard.tasks.task import Fitting, OpenRun, Rehearsal, Usage, join_names, name_split
from regard.tasks.test_set import Comparing, Decoding, TestSet
from regard.tasks.word_vectors_fit import Words, check_words, fit_by_counting, fit_by_steps
from regard.tasks.word_vectors_run import WordVectorsRun, find_rows, read_contexts
from regard.text.learning import Progress
from regard.text.tokenizer import Tokenizer
from regard.weights.word_vectors import write_vectors

RATES = {"skipgram": 0.025, "cbow": 0.05}
"""Learning rates of word2vec.c."""
EPOCHS = {"skipgram": 5.0, "cbow": 5.0, "glove": 25.0}
LIMITS = ("max_steps", "max_tokens", "max_seconds", "max_epochs")
TOKENIZER = {"kind": "word", "vocab_size": None, "min_count": 5, "lowercase": True, "punctuation": "dropped"}


class WordVectorsTask:
    """Give every word of a text a vector."""

    name, verb, summary = "word-vectors", "vectors nearest", "holds a vector for every word"
    sections: Mapping[str, type[Settings]] = {"data": DataConfig}
    optional: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    example = "--data my.txt"
    run_type = WordVectorsRun
    unit = "word"
    comparing = Comparing(items="words of a text", searches=False, has_budget=False)

    def recognises(self, given: Mapping[str, Any]) -> bool:
        return True

    def name_sources(self, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        return {**given, "train": names[0] if len(names) == 1 else list(names)}

    def defaults(self, given: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
        """Words in lower case that are seen five times or more, and as many epochs as the authors' programs take."""
        train, name = mapping(given, "train"), mapping(given, "model").get("name")
        own: dict[str, Mapping[str, Any]] = {}
        if name in EPOCHS and all(train.get(limit) is None for limit in LIMITS):
            own["train"] = {"max_epochs": EPOCHS[name]}
        tokenizer = mapping(given, "tokenizer")
        if tokenizer.get("path") is None and tokenizer.get("kind", "word") == "word":
            own["tokenizer"] = TOKENIZER
        return own

    def adapt(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        return given

    def check(self, config: RunConfig) -> RunConfig:
        if config.tokenizer.path is None and config.tokenizer.kind != "word":
            raise RegardError(
                f"Word vectors are of words, and tokenizer.kind is {config.tokenizer.kind}. Set it to word, or leave "
                "it out."
            )
        return config

    def complete(self, config: RunConfig) -> RunConfig:
        if not isinstance(config.model, Word2VecConfig) or config.model.lr is not None:
            return config
        return replace(config, model=config.model.replace(lr=RATES[config.model_name]))

    def list_unused(self, config: RunConfig) -> Mapping[str, str]:
        """All that is about the training loop, which word vectors do not take."""
        if config.model_name == "lsa":
            return dict.fromkeys(["optimizer", "schedule", "train", "runtime", "checkpoint"], "lsa is counted")
        why = f"{config.model_name} has update rules of its own"
        used = {"train": LIMITS, "runtime": ("device", "n_threads")}
        kinds = {name: type(config.section(name, Settings)) for name in used}
        unused = [
            f"{name}.{line.name}" for name, keys in used.items() for line in kinds[name].help() if line.name not in keys
        ]
        return dict.fromkeys(["optimizer", "schedule", *unused], why)

    def describe_sources(self, config: RunConfig) -> str:
        return join_names(config.section("data", DataConfig).train)

    def prepare(self, config: RunConfig, progress: Progress | None = None) -> PreparedText:
        return prepare_text(config.section("data", DataConfig), config.tokenizer, progress=progress)

    def reopen(self, config: RunConfig, fingerprint: str) -> PreparedText | None:
        return open_text(fingerprint)

    def tokenizers(self, data: PreparedText) -> tuple[Tokenizer, ...]:
        return (data.tokenizer,)

    def rehearse(self, config: RunConfig, data: PreparedText, start: InitialWeights | None) -> Rehearsal:
        tokenizer, own = data.tokenizer, config.section("data", DataConfig)
        if tokenizer.kind != "word":
            raise RegardError(
                f"Word vectors are of words, and the tokenizer at tokenizer.path is of kind {tokenizer.kind}. Leave "
                "out tokenizer.path, or name a word tokenizer."
            )
        check_words(Words.of(data.train), data)
        if data.document is not None and own.split != "tail":
            config = config.with_section("data", own.replace(document=data.document))
        return Rehearsal(
            config=config,
            n_parameters=count_numbers(config, tokenizer.vocab_size),
            flops_per_token=0,
            memory=None,
            n_units={name: len(getattr(data, name)) for name in ("train", "valid", "test")},
            vocab_size=tokenizer.vocab_size,
            read_first_batch=lambda: (tokenizer.decode(data.train[:64]),),
            notes=tuple(config.notes()),
            unit=self.unit,
        )

    def fit(self, config: RunConfig, data: PreparedText, fitting: Fitting) -> None:
        (fit_by_counting if config.model_name == "lsa" else fit_by_steps)(config, data, fitting)

    def load(
        self, opened: OpenRun, weights: dict[str, Tensor], device: torch.device, dtype: torch.dtype
    ) -> WordVectorsRun:
        return WordVectorsRun(self, opened, compose_vectors(opened.config.model, weights, opened.tokenizers[0]))

    def test(self, run: WordVectorsRun, data: PreparedText) -> WordEvaluation | None:
        return run.evaluate() if len(data.test) else None

    def card_rows(self, config: RunConfig, facts: RunFacts, data: PreparedText) -> list[tuple[str, str]]:
        tokens = data.train.tokens
        unknown = int((tokens == 1).sum()) / max(1, int((tokens > 0).sum()))
        return [
            ("training text", f"{int((tokens >= N_SPECIAL).sum()):,} words, {data.train.n_bytes:,} bytes"),
            ("not in the vocabulary", f"{100 * unknown:.1f}% of the training text's words"),
        ]

    def usage(self, config: RunConfig, folder: Path, data: PreparedText | None) -> Usage:
        path, word = shlex.quote(str(folder)), "word"
        if data is not None and data.tokenizer.vocab_size > N_SPECIAL:
            word = data.tokenizer.token_text(min(data.tokenizer.vocab_size - 1, N_SPECIAL + 100))
        return Usage(
            shell=(
                f"regard vectors nearest {path} {shlex.quote(word)}",
                f"regard vectors map {path} --out map",
            ),
            python=(f'run.nearest("{word}")',),
            elsewhere=(use_gensim(folder),),
        )

    def export_onnx(self, run: WordVectorsRun, to: Path) -> None:
        raise RegardError(refuse_onnx(run.folder, self.summary))

    def export_marian(self, run: WordVectorsRun, to: Path) -> None:
        raise RegardError(refuse_marian(run.folder, self.summary))

    def export(self, run: WordVectorsRun, to: Path) -> None:
        write_vectors(run.vectors, to)

    def load_test_set(self, run: WordVectorsRun, data: Sequence[str] | None, split: str, skips_bad: bool) -> TestSet:
        """Rated pairs of words from a file; without one, words of the run's own text with one that stands near each."""
        if data is not None:
            tests = [read_word_test(Path(name)) for name in data]
            pairs = [pair for test in tests if isinstance(test, RatedPairs) for pair in test.pairs]
            if not pairs or not all(isinstance(test, RatedPairs) for test in tests):
                raise RegardError("Word vectors are compared on files of rated pairs: two words and a number a line.")
            return TestSet(
                about=", ".join(data),
                sources=tuple(f"{a}\t{b}" for a, b, _ in pairs),
                references=tuple((str(rating),) for *_, rating in pairs),
                fits=np.array([run.vectors.knows(a) and run.vectors.knows(b) for a, b, _ in pairs]),
                fingerprint=key_of(pairs),
                own="pairs",
            )
        words, chosen = read_contexts(self, run.opened, split)
        return TestSet(
            about=name_split(run.config, split, self.describe_sources(run.config)),
            sources=tuple("\t".join(words[i] for i in item) for item in chosen.tolist()),
            fits=np.asarray((find_rows(run.vectors, words, chosen) >= 0).all(axis=1)),
            fingerprint=key_of(chosen.tolist(), words[:50]),
            # Neighbouring items stand in one part of the text: they are left out together.
            documents=tuple(i * 50 // max(1, len(chosen)) for i in range(len(chosen))),
            own="contexts",
        )

    def answer(
        self,
        run: WordVectorsRun,
        test_set: TestSet,
        chosen: Sequence[int],
        decoding: Decoding,
        tell: Callable[[int], None],
    ) -> list[Any]:
        """The cosine of each pair; or 1 where a word is nearer to the one that stands near it, and 0."""
        items = [test_set.sources[i].split("\t") for i in chosen]
        tell(len(items))
        if test_set.own == "pairs":
            return [run.similarity(a, b) for a, b in items]
        rows = np.array([[run.vectors.find(word) for word in item] for item in items], dtype=np.int64)
        return [int(right) for right in prefer_contexts(run.vectors, rows)]

    def judge(self, test_set: TestSet, chosen: Sequence[int]) -> Judge:
        if test_set.own == "pairs":
            return RankCorrelation([float(test_set.references[i][0]) for i in chosen])
        return ShareRight(len(chosen))


def count_numbers(config: RunConfig, vocab_size: int) -> int:
    """How many numbers the weights hold."""
    own = config.model.to_dict()
    width = own["d_model"]
    if config.model_name == "lsa":
        return int(vocab_size * width)
    if config.model_name == "glove":
        return int(4 * vocab_size * (width + 1))
    extra = own["n_buckets"] if isinstance(config.model, Word2VecConfig) and config.model.has_subwords else 0
    return int((2 * vocab_size + extra) * width)


WORD_VECTORS = WordVectorsTask()
