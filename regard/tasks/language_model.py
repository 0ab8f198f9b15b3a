"""The job of predicting the next token of a text: counted, or learned by gradients."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import RunConfig, mapping
from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel
from regard.data.cache import key_of
from regard.data.config import DataConfig
from regard.data.documents import read_documents
from regard.data.opening import encode_opening, find_opening
from regard.data.prepared_text import PreparedText, encode_text, open_text, prepare_text
from regard.data.stream import Stream
from regard.decode.config import SamplingConfig
from regard.decode.generate import StopText, generate
from regard.errors import RegardError
from regard.lens.passage import SAMPLING, choose_passage, choose_prompt, look_inside
from regard.lens.trace import Trace, trace_text
from regard.mixers.config import PointerConfig
from regard.models.gradient_model import GradientModel
from regard.models.gradient_next_token import as_next_token
from regard.models.next_token import NextToken, check_numbers
from regard.models.outline import outline_model
from regard.models.pointer import PointerModel
from regard.models.table import model_entry
from regard.score.blocks import add_up_blocks, sample_documents, sample_stream, score_text
from regard.score.evaluate import Evaluation, evaluate
from regard.score.judges import BitsPerByte
from regard.score.scored import Scored, join_tokens
from regard.settings import Settings
from regard.tasks import gradient
from regard.tasks.ngram_counts import check_end_mark, count_ngrams
from regard.tasks.task import (
    Ending,
    Fitting,
    InitialWeights,
    OpenRun,
    Rehearsal,
    RunFacts,
    Usage,
    check_split,
    join_names,
    name_split,
    read_test_result,
    reopen_data,
    tell_part,
)
from regard.tasks.test_set import Comparing, Decoding, TestSet
from regard.tasks.text_objective import TextObjective, first_tokens
from regard.text.config import KINDS_WITH_UNK, TokenizerConfig
from regard.text.extended import ExtendedVocabulary
from regard.text.learning import Progress
from regard.text.tokenizer import Tokenizer
from regard.training.weights import load_weights
from regard.weights.arpa import write_arpa
from regard.weights.hugging_face import describe_as_gpt2, write_hugging_face

MAX_TEST_TOKENS = 200_000
"""A run is scored on so much of its test text when it ends; `regard eval` scores all of it."""


class LanguageModelRun:
    """A trained language model: generate, score, evaluate, look inside."""

    def __init__(self, opened: OpenRun, model: GradientModel | NgramModel) -> None:
        self.folder, self.config, self.facts = opened.folder, opened.config, opened.facts
        self.opened, self.model = opened, model
        self.tokenizers, self.tokenizer = opened.tokenizers, opened.tokenizers[0]
        self.ending: Ending | None = None
        self.next_token: NextToken = as_next_token(model, self.tokenizer.eos)

    def __repr__(self) -> str:
        return f"<LanguageModelRun {self.folder}: {self.config.model_name}, {self.facts.n_parameters:,} parameters>"

    def test_result(self) -> dict[str, Any] | None:
        """The test scores that were written when training ended."""
        return read_test_result(self.folder)

    def generate(self, prompt: str = "", n: int = 1, **sampling: Any) -> str | list[str]:
        """A continuation of `prompt`, prompt included; a list of them where n > 1.

        `sampling`: temperature, top_k, top_p, min_p, beam, max_tokens, seed, stop (texts to stop before).
        """
        texts = [prompt] * _check_number(n)
        for index, piece in self.stream(prompt, n, **sampling):
            texts[index] += piece
        return texts[0] if n == 1 else texts

    def stream(
        self, prompt: str = "", n: int = 1, *, stop: Sequence[str] = (), **sampling: Any
    ) -> Iterator[tuple[int, str]]:
        """(which continuation, next piece of its text), as soon as whole characters are there."""
        _check_number(n)
        config = SamplingConfig.from_dict(sampling)
        words = self._vocabulary_of_a_text()
        ids = words.encode(_check_text(prompt, "prompt")) if prompt else self._opening()
        prompts = torch.from_numpy(ids.astype(np.int64)).expand(n, -1)
        decoders = [words.stream_decoder(after=ids) for _ in range(n)]
        stops = [StopText(stop) for _ in range(n)]
        # For words, <eos> is only the end of a line; elsewhere the document ends with it.
        end = None if self.tokenizer.kind == "word" else self.tokenizer.eos
        is_stopped = [False] * n
        for row, token in generate(self.next_token, prompts, config, stop=end, is_done=is_stopped.__getitem__):
            if piece := stops[row].push(decoders[row].push(token)):
                yield row, piece
            is_stopped[row] = stops[row].is_stopped
        for row in range(n):
            if piece := stops[row].push(decoders[row].flush()) + stops[row].flush():
                yield row, piece

    def _opening(self) -> NDArray[np.int32]:
        """What is read before a text without a prompt begins: <eos> alone, or a break between paragraphs."""
        limit = self.next_token.max_context
        return encode_opening(self.facts.opening, self.tokenizer, None if limit is None else limit - 1)

    def score(self, text: str) -> Scored:
        """What every token of `text` costs, the end of the text included."""
        ids, spans = self._vocabulary_of_a_text().encode_with_offsets(_check_text(text, "text"))
        has_end = len(ids) > 0 and ids[-1] == self.tokenizer.eos
        nats = self.next_token.nats(ids if has_end else np.append(ids, self.tokenizer.eos))
        check_numbers(nats)
        return join_tokens(text, spans, nats)

    def predict(self, items: Iterable[str]) -> Iterator[Scored]:
        """What every token of each text costs, text by text."""
        return map(self.score, items)

    def score_source(self, source: str) -> Iterator[Scored]:
        """Every document of a source (a path, a glob, - for standard input), scored."""
        return self.predict(read_documents(self._other_text(source)))

    def _other_text(self, source: str | Sequence[str]) -> DataConfig:
        """Another source, read the way the run's own text was: the same documents, format and field."""
        train = source if isinstance(source, str) else tuple(source)
        own = self.config.section("data", DataConfig)
        return own.replace(train=train, valid=None, test=None, max_bytes=None, boundaries=None)

    def evaluate(
        self, data: str | Sequence[str] | None = None, *, split: str = "test", stride: int | None = None
    ) -> Evaluation:
        """Loss, perplexities and bits per byte on other text, or on a split of the text the run was trained on."""
        result = evaluate(self.next_token, self.text_of(data, split), stride=stride)
        check_numbers([result.nats])
        unknown = "Words that the tokenizer does not have all count as one <unk> here; `regard score` tells them apart."
        return replace(result, notes=(unknown,)) if self.can_copy_words else result

    def text_of(self, data: str | Sequence[str] | None, split: str = "test") -> Stream:
        """Another text, or a split of the run's own, under its tokenizer."""
        check_split(split)
        if data is not None:
            return encode_text(self.tokenizer, self._other_text(data))
        found: Stream = getattr(reopen_data(LANGUAGE_MODEL, self.opened), split)
        return found

    def trace(self, text: str) -> Trace:
        """What the model computed on `text`: surprise, attention, gates, cells and hidden states, by token."""
        return trace_text(self.model, self._vocabulary_of_a_text(), _check_text(text, "text"))

    def _vocabulary_of_a_text(self) -> Tokenizer | ExtendedVocabulary:
        """The tokenizer; where the model can copy words, one that tells those of a text apart that it does not have."""
        return ExtendedVocabulary(self.tokenizer) if self.can_copy_words else self.tokenizer

    @property
    def can_copy_words(self) -> bool:
        """Whether words that the tokenizer does not have are told apart, in `score`, `generate` and `trace`.

        `evaluate` reads ids that were encoded before, where they are all one <unk>.
        """
        return isinstance(self.model, PointerModel) and self.tokenizer.kind == "word"


def _check_number(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise RegardError(f"n is how many continuations there are to be, a whole number from 1 on, not {n!r}.")
    return n


def _check_text(text: str, name: str) -> str:
    if not isinstance(text, str):
        raise RegardError(f"The {name} must be a str, not {text!r}.")
    return text


class LanguageModelTask:
    """Predict the next token of a text."""

    name, verb, summary = "language-model", "generate", "predicts the next token of a text"
    sections: Mapping[str, type[Settings]] = {"data": DataConfig}
    optional = ()
    folders = ("start_from",)
    example = "--data my.txt"
    run_type = LanguageModelRun
    # In a few minutes a CPU gets further by many small updates (an LSTM of 1M parameters in 15 s on two cores: 2.56
    # bits per byte with 8 x 64, 2.72 with 8 x 128); a GPU is hardly busy with so little.
    comparing = Comparing(
        items="blocks of text",
        searches=False,
        n_parameters=1_000_000,
        train={"cpu": {"n_batch": 8, "n_context": 64}, "cuda": {"n_batch": 32, "n_context": 128}},
    )

    def recognises(self, given: Mapping[str, Any]) -> bool:
        return True

    def name_sources(self, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        return {**given, "train": names[0] if len(names) == 1 else list(names)}

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
        if model_entry(config.model_name).is_counted:
            return config
        vocab_size = _limit_vocabulary(config.model) or 2  # how large it is does not matter here
        mixer = outline_model(config.model_name, config.model, vocab_size).mixer
        filled = config.with_section("optimizer", config.optimizer.complete(mixer.carries_state))
        return filled.with_section("train", config.train.complete(mixer.max_context))

    def check(self, config: RunConfig) -> RunConfig:
        train = config.train
        if train.n_accumulate > train.n_batch:
            raise RegardError(
                f"train.n_accumulate {train.n_accumulate} is more than train.n_batch {train.n_batch}, and it is the "
                "number of parts a batch is computed in. Lower it or raise train.n_batch."
            )
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

    def describe_sources(self, config: RunConfig) -> str:
        return join_names(config.section("data", DataConfig).train)

    def prepare(self, config: RunConfig, progress: Progress | None = None) -> PreparedText:
        return prepare_text(config.section("data", DataConfig), config.tokenizer, progress=progress)

    def reopen(self, config: RunConfig, fingerprint: str) -> PreparedText | None:
        return open_text(fingerprint)

    def tokenizers(self, data: PreparedText) -> tuple[Tokenizer, ...]:
        return (data.tokenizer,)

    def sizes(self, config: RunConfig, tokenizers: tuple[Tokenizer, ...]) -> gradient.Sizes:
        return (tokenizers[0].vocab_size,)

    def objective(
        self, config: RunConfig, model: GradientModel, data: PreparedText, fitting: Fitting | None = None
    ) -> TextObjective:
        return TextObjective(model, data, config.train, config.seed)

    def initialise(self, config: RunConfig, model: GradientModel, fitting: Fitting) -> None:
        if fitting.start is not None:
            weights = fitting.start.read()
            load_weights(model, weights)
            weights.clear()  # so much memory is not needed twice

    def rehearse(self, config: RunConfig, data: PreparedText, start: InitialWeights | None) -> Rehearsal:
        tokenizer, own = data.tokenizer, config.section("data", DataConfig)
        notes = data.notes if own.document == "auto" else ()
        if data.document is not None and own.split != "tail":
            config = config.with_section("data", own.replace(document=data.document))
        check_unknown_words(config.model, tokenizer.kind, "the one at tokenizer.path")
        n_tokens = {name: len(getattr(data, name)) for name in ("train", "valid", "test")}
        if not model_entry(config.model_name).is_counted:
            return gradient.rehearse(
                self,
                config,
                data,
                start,
                n_tokens=n_tokens,
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
            n_tokens=n_tokens,
            vocab_size=tokenizer.vocab_size,
            read_first_batch=lambda: (tokenizer.decode(data.train[:256]),),
            notes=notes,
            facts={"opening": find_opening(data.train, tokenizer)},
        )

    def fit(self, config: RunConfig, data: PreparedText, fitting: Fitting) -> None:
        if isinstance(config.model, NgramConfig):
            count_ngrams(config.model, data, fitting.folder, train=config.train, reporter=fitting.reporter)
        else:
            gradient.fit(self, config, data, fitting)

    def load(
        self, opened: OpenRun, weights: dict[str, Tensor], device: torch.device, dtype: torch.dtype
    ) -> LanguageModelRun:
        if model_entry(opened.config.model_name).is_counted:
            counted = NgramModel.from_tensors({name: tensor.numpy() for name, tensor in weights.items()})
            # How many n-grams a text has is known once they are counted.
            opened = replace(opened, facts=replace(opened.facts, n_parameters=sum(counted.n_ngrams)))
            return LanguageModelRun(opened, counted)
        return LanguageModelRun(opened, gradient.load_model(self, opened, weights, device, dtype))

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

    def usage(self, folder: Path, data: PreparedText | None) -> Usage:
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
        )

    def export(self, run: LanguageModelRun, to: Path) -> None:
        if isinstance(run.model, NgramModel):
            write_arpa(run.model, run.tokenizer, to)
        else:
            gpt2 = describe_as_gpt2(run.config.model_name, run.config.model, f"'{run.folder}'")
            write_hugging_face(run.model, gpt2, run.tokenizer, to)

    def load_test_set(self, run: LanguageModelRun, data: Sequence[str] | None, split: str, skips_bad: bool) -> TestSet:
        """Blocks of the text: the same bytes for every model, whatever its tokens are."""
        if skips_bad:
            raise RegardError("--skip-bad is for pairs and pictures: of a text, everything is read. Leave it out.")
        watched = None
        if data is not None:
            test, about = sample_documents(read_documents(run._other_text(data))), ", ".join(data)
        else:
            found = reopen_data(self, run.opened)
            watched = key_of(found.valid.n_bytes, found.valid.n_words)
            if not found.tokenizer.is_lossless:  # read the text itself through a tokenizer that loses none
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
            is_comparable=run.tokenizer.is_lossless,
            own=test,
            passage=passage,
            prompt=choose_prompt(passage),
            sampling=", ".join(f"{k.replace('_', '-')} {v}" for k, v in SAMPLING.items()),
            show=lambda run, prompt, note: look_inside(run, test, passage, prompt, note),
        )

    def answer(
        self,
        run: LanguageModelRun,
        test_set: TestSet,
        chosen: Sequence[int],
        decoding: Decoding,
        tell: Callable[[int], None],
    ) -> list[Any]:
        """What each block costs: {"nats", "tokens"}."""
        blocks = add_up_blocks(score_text(run.next_token, run.tokenizer, test_set.own), test_set.own)
        if not all(block["nats"] < float("inf") for block in blocks):  # NaN too
            raise RegardError("it gives some test text no probability at all, so its bits per byte are infinite")
        return [blocks[i] for i in chosen]

    def judge(self, test_set: TestSet, chosen: Sequence[int]) -> BitsPerByte:
        return BitsPerByte([test_set.own.block_bytes[i] for i in chosen])


def _limit_vocabulary(model: Settings) -> int | None:
    """How many tokens a model predicts without copying; None: all."""
    return model.n_vocab if isinstance(model, PointerConfig) else None


def check_unknown_words(model: Settings, kind: str, where: str = "tokenizer.kind") -> None:
    """Words that a model leaves out are read as <unk>, so the tokenizer must be of a kind that has it."""
    n_vocab = _limit_vocabulary(model)
    if n_vocab is not None and kind not in KINDS_WITH_UNK:
        raise RegardError(
            f"model.n_vocab {n_vocab} leaves tokens out that are read as <unk>, and only {' and '.join(KINDS_WITH_UNK)}"
            f" tokenizers have <unk>; {where} is {kind}. Leave out model.n_vocab, or take one of these tokenizers."
        )


LANGUAGE_MODEL = LanguageModelTask()
