"""The job of filling masked places in texts: BERT's pre-training (Devlin et al. 2019)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.config import RunConfig, mapping
from regard.data.config import DataConfig
from regard.data.masked_config import MaskingConfig
from regard.data.prepared_text import PreparedText
from regard.errors import RegardError
from regard.models.bert import Bert
from regard.models.bert_config import BertConfig
from regard.score.masked import MaskedLoss
from regard.settings import Settings
from regard.tasks import gradient
from regard.tasks.elsewhere import use_onnxruntime, use_transformers
from regard.tasks.initial_weights import InitialWeights
from regard.tasks.masked_comparing import answer_masked, build_masked_test
from regard.tasks.masked_language_model_run import MaskedLanguageModelRun
from regard.tasks.masked_objective import MaskedEvaluation, MaskedObjective, evaluate_masked
from regard.tasks.run_facts import RunFacts
from regard.tasks.task import Fitting, Rehearsal, Usage, join_names, name_split, tell_part
from regard.tasks.test_set import Comparing, Decoding, TestSet
from regard.tasks.text_task import MAX_TEST_TOKENS, TextTask
from regard.text.marks import BERT_MARKS, ROBERTA_MARKS
from regard.weights.hugging_face import write_hugging_face
from regard.weights.onnx import MaskedFace, write_encoder
from regard.weights.tokenizer_files import frame_texts

RATE = 5e-4
"""AdamW's where none is given: what small models trained for minutes want; Devlin et al. took 1e-4 for a million
steps."""


class MaskedLanguageModelTask(TextTask):
    """Fill masked places, and tell whether one text follows another."""

    name, verb, summary = "masked-language-model", "fill", "fills masked places in a text"
    sections: Mapping[str, type[Settings]] = {"data": DataConfig, "masking": MaskingConfig}
    run_type = MaskedLanguageModelRun
    unit = "masked token"
    comparing = Comparing(items="rows", searches=False)

    def adapt(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """What was left open: WordPiece, as many positions as are trained, a pooler where something trains it."""
        tokenizer, model = dict(mapping(given, "tokenizer")), dict(mapping(given, "model"))
        if given.get("start_from") is not None:
            return given
        if tokenizer.get("path") is None:
            tokenizer.setdefault("kind", "wordpiece")
        n_context = mapping(given, "train").get("n_context")
        if isinstance(n_context, int):
            model.setdefault("max_context", n_context)
        if model.get("has_next_head") is False:
            model.setdefault("has_pooler", False)
        return {**given, "tokenizer": tokenizer, "model": model}

    def check(self, config: RunConfig) -> RunConfig:
        gradient.check_parts(config.train)
        tokenizer = config.tokenizer
        if tokenizer.path is not None:  # what a file holds is checked once it is read
            return config
        if tokenizer.kind != "wordpiece":
            raise RegardError(
                f"tokenizer.kind is {tokenizer.kind}, and a masked language model learns a wordpiece vocabulary. Set "
                "it to wordpiece (regard compare: --tokenizer wordpiece), or name one with [MASK] in tokenizer.path."
            )
        return config.with_section("tokenizer", tokenizer.replace(has_marks=True))

    def complete(self, config: RunConfig) -> RunConfig:
        model = config.model
        assert isinstance(model, BertConfig)
        optimizer = config.optimizer
        if optimizer.lr is None and optimizer.name == "adamw":
            optimizer = optimizer.replace(lr=RATE)
        filled = config.with_section("optimizer", optimizer.complete(is_recurrent=False))
        train = config.train.complete(model.max_context)
        if train.n_context is not None and train.n_context > model.max_context:
            raise RegardError(
                f"train.n_context is {train.n_context}, but the model reads at most {model.max_context} tokens. Lower "
                f"it, or raise model.max_context to {train.n_context}."
            )
        return filled.with_section("train", train)

    def list_unused(self, config: RunConfig) -> Mapping[str, str]:
        return {
            "train.order": "windows of the text always come in random order",
            "train.varies_context": "all windows are of one length",
        }

    def objective(
        self, config: RunConfig, model: Bert, data: PreparedText, fitting: Fitting | None = None
    ) -> MaskedObjective:
        return MaskedObjective(model, data, config.section("masking", MaskingConfig), config.train, config.seed)

    def rehearse(self, config: RunConfig, data: PreparedText, start: InitialWeights | None) -> Rehearsal:
        config = self.complete(config)  # a comparison sizes contenders before that
        tokenizer, own, model = data.tokenizer, config.section("data", DataConfig), config.model
        assert isinstance(model, BertConfig)
        if tokenizer.marks is None:
            raise RegardError(
                f"The tokenizer at {config.tokenizer.path} has not the marks of BERT or RoBERTa, such as [CLS] and "
                "[MASK]. Leave out tokenizer.path to learn one."
            )
        if not model.has_masked_head:
            raise RegardError(
                "The model has no head that fills masked places (model.has_masked_head), and this training is of "
                "filling them. Use it as it is: regard embed, or as the encoder of a task."
            )
        if data.document is not None and own.split != "tail":
            config = config.with_section("data", own.replace(document=data.document))
        notes = data.notes if own.document == "auto" else ()
        n_context, limit = config.train.n_context, model.max_context
        p_masked = config.section("masking", MaskingConfig).p_masked
        if n_context is not None and n_context < limit and start is None:
            notes += (
                f"Positions after {n_context} are not trained: model.max_context is {limit}, train.n_context less.",
            )
        return gradient.rehearse(
            self,
            config,
            data,
            start,
            n_units={name: round(p_masked * len(getattr(data, name))) for name in ("train", "valid", "test")},
            first_batch=lambda task: tuple(
                " ".join(tokenizer.token_text(int(token)) for token in row) for row in task.batches.at(0).tokens
            ),
            check=lambda model, objective: notes,
        )

    def test(self, run: MaskedLanguageModelRun, data: PreparedText) -> MaskedEvaluation | None:
        n_context = run.config.train.n_context or run.model.max_positions
        assert n_context is not None
        masking = run.config.section("masking", MaskingConfig)
        found = evaluate_masked(run.model, data.test, data.tokenizer, masking, n_context, MAX_TEST_TOKENS)
        if found is None:
            return None
        return replace(found, notes=tell_part(min(MAX_TEST_TOKENS, len(data.test)), len(data.test), "tokens"))

    def card_rows(self, config: RunConfig, facts: RunFacts, data: PreparedText) -> list[tuple[str, str]]:
        return [("training text", f"{len(data.train):,} tokens, {data.train.n_bytes:,} bytes")]

    def usage(self, config: RunConfig, folder: Path, data: PreparedText | None) -> Usage:
        path, model = shlex.quote(str(folder)), config.model
        assert isinstance(model, BertConfig)
        mark = (ROBERTA_MARKS if model.family == "roberta" else BERT_MARKS)[4]
        return Usage(
            shell=(f'regard fill {path} "The {mark} is"', f"regard embed {path} FILE --out vectors.npz"),
            python=(f'run.fill("The {mark} is")',),
            elsewhere=(
                use_transformers(folder, "ForMaskedLM" if model.has_masked_head else "", [f"The {mark} is"]),
                use_onnxruntime(folder, [f"The {mark} is"], model.n_segments > 1),
            ),
        )

    def export(self, run: MaskedLanguageModelRun, to: Path) -> None:
        assert isinstance(run.config.model, BertConfig)
        write_hugging_face(run.model, run.config.model, run.tokenizer, to)

    def export_onnx(self, run: MaskedLanguageModelRun, to: Path) -> None:
        outputs = ("last_hidden_state", *(("logits",) if run.model.masked_head is not None else ()))
        has_segments = run.model.segments is not None and len(run.model.segments) > 1
        facts = {"task": self.name}
        write_encoder(MaskedFace(run.model), outputs, frame_texts(run.tokenizer), to, facts, has_segments)

    def load_test_set(
        self, run: MaskedLanguageModelRun, data: Sequence[str] | None, split: str, skips_bad: bool
    ) -> TestSet:
        if skips_bad:
            raise RegardError("Of a text everything is read. Leave out --skip-bad (in Python: skips_bad).")
        about = join_names(data) if data else name_split(run.config, split, self.describe_sources(run.config))
        return build_masked_test(run, run.text_of(data, split), about)

    def answer(
        self,
        run: MaskedLanguageModelRun,
        test_set: TestSet,
        chosen: Sequence[int],
        decoding: Decoding,
        tell: Callable[[int], None],
    ) -> list[Any]:
        return answer_masked(run, test_set, chosen, tell)

    def judge(self, test_set: TestSet, chosen: Sequence[int]) -> MaskedLoss:
        return MaskedLoss()


MASKED_LANGUAGE_MODEL = MaskedLanguageModelTask()
