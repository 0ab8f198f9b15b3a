"""The job of predicting the words of a text from both of its ends: how ELMo is pre-trained."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.config import RunConfig, mapping
from regard.data.config import DataConfig
from regard.data.prepared_text import PreparedText
from regard.errors import RegardError
from regard.models.elmo import Elmo
from regard.score.two_way import TwoWayEvaluation
from regard.settings import Settings
from regard.tasks import gradient
from regard.tasks.bidirectional_objective import BidirectionalObjective
from regard.tasks.bidirectional_run import BidirectionalRun
from regard.tasks.initial_weights import InitialWeights
from regard.tasks.language_model import LanguageModelTask
from regard.tasks.run_facts import RunFacts
from regard.tasks.task import Fitting, OpenRun, Rehearsal, Usage, tell_part
from regard.tasks.test_set import Comparing, TestSet
from regard.tasks.text_objective import first_tokens
from regard.tasks.text_task import MAX_TEST_TOKENS
from regard.tasks.vectors_as_embedding import Embeddings
from regard.text.tokenizer import Tokenizer


class BidirectionalTask(LanguageModelTask):
    """Predict the words of a text from what stands before them, and from what stands after.

    Its text is read, split and scored in blocks as a language model's is.
    """

    name, verb = "bidirectional-language-model", "embed"
    summary = "predicts words from both sides and gives vectors of them in their context"
    sections: Mapping[str, type[Settings]] = {"data": DataConfig}
    run_type: type[Any] = BidirectionalRun
    unit = "word"
    comparing = Comparing(
        items="blocks of text", searches=False, train={"cpu": {"n_batch": 8, "n_context": 64}, "cuda": {}}
    )

    def adapt(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Words are what it reads, all of them: which of them it predicts is for the model to say."""
        tokenizer = mapping(given, "tokenizer")
        if tokenizer.get("path") is not None:
            return given
        return {**given, "tokenizer": {"kind": "word", "vocab_size": None, **tokenizer}}

    def check(self, config: RunConfig) -> RunConfig:
        gradient.check_parts(config.train)
        if config.tokenizer.path is None:
            check_words(config.tokenizer.kind)
        return config

    def complete(self, config: RunConfig) -> RunConfig:
        filled = config.with_section("optimizer", config.optimizer.complete(is_recurrent=True))
        return filled.with_section("train", config.train.complete(None))

    def list_unused(self, config: RunConfig) -> Mapping[str, str]:
        return {}

    def objective(  # type: ignore[override]  # another model, and so another objective
        self, config: RunConfig, model: Elmo, data: PreparedText, fitting: Fitting | None = None
    ) -> BidirectionalObjective:
        return BidirectionalObjective(model, data, config.train, config.seed)

    def embeddings(self, config: RunConfig, model: Any, tokenizers: tuple[Tokenizer, ...]) -> Embeddings:
        raise RegardError("train.vectors begins embeddings of tokens, and elmo spells its words. Leave it out.")

    def rehearse(self, config: RunConfig, data: PreparedText, start: InitialWeights | None) -> Rehearsal:
        tokenizer, own = data.tokenizer, config.section("data", DataConfig)
        check_words(tokenizer.kind, "the one at tokenizer.path")
        notes = data.notes if own.document == "auto" else ()
        if data.document is not None and own.split != "tail":
            config = config.with_section("data", own.replace(document=data.document))
        return gradient.rehearse(
            self,
            config,
            data,
            start,
            n_units={name: len(getattr(data, name)) for name in ("train", "valid", "test")},
            first_batch=lambda task: tuple(tokenizer.decode(row) for row in task.batches[0].at(0).inputs),
            check=lambda model, objective: notes,
        )

    def fit(self, config: RunConfig, data: PreparedText, fitting: Fitting) -> None:
        gradient.fit(self, config, data, fitting)

    def load(self, opened: OpenRun, weights: dict[str, Tensor], device: torch.device, dtype: torch.dtype) -> Any:
        return BidirectionalRun(self, opened, gradient.load_model(self, opened, weights, device, dtype))

    def test(self, run: Any, data: PreparedText) -> Any:
        if not len(data.test):
            return None
        some = first_tokens(data.test, MAX_TEST_TOKENS)
        found: TwoWayEvaluation = run.evaluate_stream(some)
        return replace(found, notes=tell_part(len(some), len(data.test), "words"))

    def card_rows(self, config: RunConfig, facts: RunFacts, data: PreparedText) -> list[tuple[str, str]]:
        return [("training text", f"{len(data.train):,} words, {data.train.n_bytes:,} bytes")]

    def usage(self, config: RunConfig, folder: Path, data: PreparedText | None) -> Usage:
        path, text = shlex.quote(str(folder)), "The recruits are green"
        if data is not None:
            text = data.valid.first_words() or data.train.first_words()
        return Usage(
            shell=(
                *(() if data is None else (f"regard eval {path}",)),
                f"regard embed {path} FILE --out vectors.npz",
                f"regard train {path} --task classify --data LABELLED-FILE",
            ),
            python=(f"run.embed({json.dumps(text, ensure_ascii=False)})",),
        )

    def export(self, run: Any, to: Path) -> None:
        raise RegardError(f"'{run.folder}' {self.summary}, and there is no form of other programs to export it to.")

    def export_onnx(self, run: Any, to: Path) -> None:
        raise RegardError(gradient.refuse_onnx(run.folder, self.summary))

    def load_test_set(self, run: Any, data: Sequence[str] | None, split: str, skips_bad: bool) -> TestSet:
        """Blocks of the text, as a language model is tested on; it writes nothing that could be shown."""
        found = super().load_test_set(run, data, split, skips_bad)
        return replace(found, passage="", prompt="", sampling="", show=None, measure_positions=None)


def check_words(kind: str, where: str = "tokenizer.kind") -> None:
    """Refuse a tokenizer whose tokens are no words."""
    if kind != "word":
        raise RegardError(
            f"elmo reads words, and {where} is {kind}. Leave out the tokenizer section, or set tokenizer.kind to word."
        )


BIDIRECTIONAL = BidirectionalTask()
