"""The job of predicting the next token of a text: counted, or learned by gradients."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.config import RunConfig, mapping
from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel
from regard.data.cache import key_of
from regard.data.config import DataConfig
from regard.data.documents import read_documents
from regard.data.opening import find_opening
from regard.data.prepared_text import PreparedText, prepare_text
from regard.errors import RegardError
from regard.lens.passage import SAMPLING, choose_passage, choose_prompt, look_inside, measure_positions
from regard.mixers.config import PointerConfig
from regard.models.elmo_config import ElmoConfig
from regard.models.gradient_model import GradientModel
from regard.models.outline import outline_model
from regard.models.table import model_entry
from regard.score.blocks import add_up_blocks, between, sample_documents, sample_stream, score_text
from regard.score.context import nats_in_context
from regard.score.evaluate import Evaluation, evaluate
from regard.score.judges import BitsPerByte
from regard.score.unigram import unigram_bits_per_byte
from regard.settings import Settings
from regard.tasks import gradient
from regard.tasks.elsewhere import Program, use_cached_onnx, use_kenlm, use_transformers
from regard.tasks.initial_weights import InitialWeights
from regard.tasks.language_model_run import LanguageModelRun
from regard.tasks.ngram_counts import check_end_mark, count_ngrams, is_counted
from regard.tasks.run_facts import RunFacts
from regard.tasks.task import (
    Fitting,
    OpenRun,
    Rehearsal,
    Usage,
    check_sources,
    name_split,
    reopen_data,
    tell_part,
)
from regard.tasks.test_set import Comparing, Decoding, TestSet
from regard.tasks.text_objective import TextObjective, first_tokens
from regard.tasks.text_task import MAX_TEST_TOKENS, TextTask
from regard.text.config import KINDS_WITH_UNK, TokenizerConfig
from regard.weights.arpa import write_arpa
from regard.weights.hugging_face import describe_as_gpt2, write_hugging_face
from regard.weights.onnx import CACHED, write_language_model


class LanguageModelTask(TextTask):
    """Predict the next token of a text."""

    name, verb, summary = "language-model", "generate", "predicts the next token of a text"
    sections: Mapping[str, type[Settings]] = {"data": DataConfig}
    run_type = LanguageModelRun
    # In a few minutes a CPU gets further by many small updates (an LSTM of 1M parameters in 15 s on two cores: 2.56
    # bits per byte with 8 x 64, 2.72 with 8 x 128); a GPU is hardly busy with so little.
    comparing = Comparing(
        items="blocks of text",
        searches=False,
        n_parameters=1_000_000,
        train={"cpu": {"n_batch": 8, "n_context": 64}, "cuda": {"n_batch": 32, "n_context": 128}},
    )

    def adapt(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a model sees at most is what it is trained on: other positions would be read, and never be learned."""
        model, n_context = mapping(given, "model"), mapping(given, "train").get("n_context")
        names = [line.name for line in model_entry(model["name"]).config.help()]
        if "max_context" not in names or not isinstance(n_context, int) or given.get("start_from") is not None:
            return given
        limit = model.get("max_context")
        if isinstance(limit, int) and n_context < limit:
            raise RegardError(
                f"train.n_context is {n_context} and model.max_context {limit}: the positions after {n_context} would "
                "never be trained, but be read when a text is scored. Leave out one of the two, or make them equal."
            )
        return given if limit is not None else {**given, "model": {**model, "max_context": n_context}}

    def complete(self, config: RunConfig) -> RunConfig:
        entry = model_entry(config.model_name)
        if entry.is_counted:
            return config
        vocab_size = _limit_vocabulary(config.model) or 2  # how large it is does not matter here
        model = outline_model(config.model_name, config.model, vocab_size)
        mixer, embedding_rate = model.mixer, entry.embedding_rate_at(model.d_model)
        optimizer = config.optimizer.complete(mixer.carries_state, entry.lr, embedding_rate)
        filled = config.with_section("optimizer", optimizer)
        return filled.with_section("train", config.train.complete(mixer.max_context))

    def check(self, config: RunConfig) -> RunConfig:
        gradient.check_parts(config.train)
        if config.tokenizer.path is None:  # what a file holds is checked once it is read
            check_unknown_words(config.model, config.tokenizer.kind)
        return config

    def list_unused(self, config: RunConfig) -> Mapping[str, str]:
        if not model_entry(config.model_name).is_counted:
            return {}
        why = f"{config.model_name} is counted, not descended"
        used = ("max_tokens", "max_seconds", "max_epochs", "max_eval_tokens")
        keys = [line.name for line in type(config.train).help() if line.name not in used]
        return dict.fromkeys(["optimizer", "schedule", "runtime", "checkpoint", *(f"train.{key}" for key in keys)], why)

    def objective(
        self, config: RunConfig, model: GradientModel, data: PreparedText, fitting: Fitting | None = None
    ) -> TextObjective:
        return TextObjective(model, data, config.train, config.seed)

    def rehearse(self, config: RunConfig, data: PreparedText, start: InitialWeights | None) -> Rehearsal:
        tokenizer, own = data.tokenizer, config.section("data", DataConfig)
        notes = data.notes if own.document == "auto" else ()
        if data.document is not None and own.split != "tail":
            config = config.with_section("data", own.replace(document=data.document))
        check_unknown_words(config.model, tokenizer.kind, "the one at tokenizer.path")
        n_units = {name: len(getattr(data, name)) for name in ("train", "valid", "test")}
        if not model_entry(config.model_name).is_counted:
            return gradient.rehearse(
                self,
                config,
                data,
                start,
                n_units=n_units,
                first_batch=lambda task: tuple(tokenizer.decode(row) for row in task.batches.at(0).inputs),
                check=lambda model, objective: notes,
                facts={"opening": find_opening(data.train, tokenizer)},
            )
        check_end_mark(tokenizer)
        return Rehearsal(
            config=config,
            n_parameters=0,
            flops_per_token=0,
            memory=None,
            n_units=n_units,
            vocab_size=tokenizer.vocab_size,
            read_first_batch=lambda: (tokenizer.decode(data.train[:256]),),
            notes=notes,
            facts={"opening": find_opening(data.train, tokenizer)},
        )

    def fit(self, config: RunConfig, data: PreparedText, fitting: Fitting) -> None:
        if isinstance(config.model, NgramConfig):
            if fitting.resume and is_counted(fitting.folder, data, config.train):
                fitting.reporter.note("Nothing was left to do: the run is finished, all of its text is counted.")
                return
            fitting.begin_writing()
            count_ngrams(config.model, data, fitting.folder, train=config.train, reporter=fitting.reporter)
        else:
            gradient.fit(self, config, data, fitting)

    def load(
        self, opened: OpenRun, weights: dict[str, Tensor], device: torch.device, dtype: torch.dtype
    ) -> LanguageModelRun:
        if model_entry(opened.config.model_name).is_counted:
            counted = NgramModel.from_tensors({name: tensor.numpy() for name, tensor in weights.items()})
            if counted.vocab_size != opened.tokenizers[0].vocab_size:
                raise RegardError(
                    f"'{opened.folder}/model.safetensors' counts {counted.vocab_size:,} tokens, and its tokenizer has "
                    f"{opened.tokenizers[0].vocab_size:,}. Put the files back that belong together."
                )
            # How many n-grams a text has is known once they are counted.
            opened = replace(opened, facts=replace(opened.facts, n_parameters=sum(counted.n_ngrams)))
            return LanguageModelRun(self, opened, counted)
        return LanguageModelRun(self, opened, gradient.load_model(self, opened, weights, device, dtype))

    def test(self, run: LanguageModelRun, data: PreparedText) -> Evaluation | None:
        if not len(data.test):
            return None
        some = first_tokens(data.test, MAX_TEST_TOKENS)
        return replace(evaluate(run.next_token, some), notes=tell_part(len(some), len(data.test), "tokens"))

    def card_rows(self, config: RunConfig, facts: RunFacts, data: PreparedText) -> list[tuple[str, str]]:
        rows = [("training text", f"{len(data.train):,} tokens, {data.train.n_bytes:,} bytes")]
        if not data.tokenizer.is_lossless:
            rows.append(("comparable", "not with others in bits per byte: the tokenizer loses text"))
        return rows

    def usage(self, config: RunConfig, folder: Path, data: PreparedText | None) -> Usage:
        path, prompt = shlex.quote(str(folder)), "The"
        if data is not None:
            prompt = data.valid.first_words() or data.train.first_words()
        return Usage(
            shell=(
                f"regard generate {path} --prompt {shlex.quote(prompt)}",
                f"regard score {path} FILE",
                f"regard eval {path}",
            ),
            python=(f"run.generate({json.dumps(prompt, ensure_ascii=False)})",),
            elsewhere=_list_programs(config, folder, prompt),
        )

    def export(self, run: LanguageModelRun, to: Path) -> None:
        if isinstance(run.model, NgramModel):
            write_arpa(run.model, run.tokenizer, to)
        else:
            gpt2 = describe_as_gpt2(run.config.model_name, run.config.model, f"'{run.folder}'")
            write_hugging_face(run.model, gpt2, run.tokenizer, to)

    def export_onnx(self, run: LanguageModelRun, to: Path) -> None:
        write_language_model(run.model, run.tokenizer, to, f"'{run.folder}'")

    def load_test_set(self, run: LanguageModelRun, data: Sequence[str] | None, split: str, skips_bad: bool) -> TestSet:
        """Blocks of the text: the same bytes for every model, whatever its tokens are."""
        if skips_bad:
            raise RegardError("Of a text everything is read. Leave out --skip-bad (in Python: skips_bad).")
        watched, train = None, None
        if data is not None:
            test, about = sample_documents(read_documents(run.other_text(data))), ", ".join(data)
        else:
            found = reopen_data(self, run.opened)
            watched = key_of(found.valid.n_bytes, found.valid.n_words)
            train = found.train if found.tokenizer.hash == run.tokenizer.hash else None  # another run lends its data
            if not found.tokenizer.is_lossless:  # read the text itself through a tokenizer that loses none
                check_sources(run.opened.folder, run.opened.config.data, run.opened.facts)
                own = run.config.section("data", DataConfig)
                found = prepare_text(own, TokenizerConfig(kind="byte", vocab_size=None))
            test = sample_stream(getattr(found, split), found.tokenizer)
            about = name_split(run.config, split, self.describe_sources(run.config))
        passage = choose_passage(test.text)
        return TestSet(
            about=f"{about}: {test.describe()}",
            sources=test.documents,
            fits=np.ones(len(test.block_bytes), dtype=bool),
            fingerprint=key_of(test.documents, test.borders.tolist()),
            watched=watched,
            documents=test.document_of_block,
            lossy="" if run.tokenizer.is_lossless else _name_lossy(run),
            baseline=None if train is None else unigram_bits_per_byte(train, run.tokenizer, test),
            max_context=run.next_token.max_context,
            bytes_per_token=test.n_bytes / sum(len(run.tokenizer.encode(d)) + 1 for d in test.documents),
            own=test,
            passage=passage,
            prompt=choose_prompt(passage),
            sampling=", ".join(f"{k.replace('_', '-')} {v}" for k, v in SAMPLING.items()),
            show=lambda run, prompt, note: look_inside(run, test, passage, prompt, note),
            measure_positions=lambda run: measure_positions(run, test),
        )

    def answer(
        self,
        run: LanguageModelRun,
        test_set: TestSet,
        chosen: Sequence[int],
        decoding: Decoding,
        tell: Callable[[int], None],
    ) -> list[Any]:
        """What each block costs: {"nats", "tokens"}, and "nats_in_context" where a context for all is asked for."""
        scoring, test = score_text(run.next_token, run.tokenizer, test_set.own), test_set.own
        blocks = add_up_blocks(scoring, test)
        if decoding.context is not None:
            limit = max(2, int(decoding.context / test_set.bytes_per_token + 1e-6))
            nats = nats_in_context(run.next_token, scoring.ids, limit, run.tokenizer.eos) * scoring.is_scored
            for block, inside in zip(blocks, between(test.borders, scoring.ends, nats).tolist(), strict=True):
                block["nats_in_context"] = inside
        if not all(block["nats"] < float("inf") for block in blocks):  # NaN too
            raise RegardError("it gives some test text no probability at all, so its bits per byte are infinite")
        return [blocks[i] for i in chosen]

    def judge(self, test_set: TestSet, chosen: Sequence[int]) -> BitsPerByte:
        return BitsPerByte([test_set.own.block_bytes[i] for i in chosen])


def _list_programs(config: RunConfig, folder: Path, prompt: str) -> tuple[Program, ...]:
    """How other programs use a run."""
    if model_entry(config.model_name).is_counted:
        return (use_kenlm(folder, prompt),)
    try:
        describe_as_gpt2(config.model_name, config.model, "it")
        why_not = ""
    except RegardError as error:
        why_not = str(error)
    name = config.model_name
    no_onnx = "" if name in CACHED else f"its model is {name}; {', '.join(CACHED[:-1])} and {CACHED[-1]} are."
    return use_transformers(folder, "ForCausalLM", [prompt], why_not), use_cached_onnx(folder, prompt, no_onnx)


def _name_lossy(run: LanguageModelRun) -> str:
    """Names what text is lost: equal for runs that lose the same."""
    n_vocab, tokenizer = _limit_vocabulary(run.config.model), run.tokenizer
    known = "" if n_vocab is None else f", {n_vocab:,} of them known"
    return f"{tokenizer.kind} {tokenizer.vocab_size:,}{known} ({tokenizer.hash[:8]})"


def _limit_vocabulary(model: Settings) -> int | None:
    """How many tokens a model predicts, if it copies none; None: all."""
    return model.n_vocab if isinstance(model, PointerConfig | ElmoConfig) else None


def check_unknown_words(model: Settings, kind: str, where: str = "tokenizer.kind") -> None:
    """Words that a model leaves out are read as <unk>, so the tokenizer must be of a kind that has it."""
    n_vocab = _limit_vocabulary(model)
    if n_vocab is not None and kind not in KINDS_WITH_UNK:
        raise RegardError(
            f"model.n_vocab {n_vocab} leaves tokens out that are read as <unk>, and only {' and '.join(KINDS_WITH_UNK)}"
            f" tokenizers have <unk>; {where} is {kind}. Leave out model.n_vocab, or take one of these tokenizers."
        )


LANGUAGE_MODEL = LanguageModelTask()
