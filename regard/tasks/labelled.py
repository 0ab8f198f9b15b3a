"""What classification, rating, tagging and answering share: an encoder that reads a text, and a head that answers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config import RunConfig
from regard.data.cache import key_of
from regard.data.labelled import Example
from regard.data.labelled_config import LabelledConfig
from regard.data.labelled_splits import PreparedLabelled, prepare_labelled
from regard.data.labelled_windows import N_CASES, N_TEXTS, TextFramer, Windows
from regard.errors import RegardError
from regard.models.heads import Goal
from regard.models.reader import Reader
from regard.models.word_input_config import MixerConfig, WordsConfig
from regard.score.judges import Judge
from regard.settings import Settings
from regard.tasks import gradient
from regard.tasks.initial_weights import InitialWeights
from regard.tasks.labelled_export import export_onnx, export_reader, list_programs
from regard.tasks.labelled_looking import Framed, Outcome
from regard.tasks.labelled_objective import LabelledObjective
from regard.tasks.labelled_reader import begin_encoder, build_reader, check_reader, complete_reader
from regard.tasks.labelled_run import LabelledEvaluation, LabelledRun
from regard.tasks.labelled_words import begin_words, check_words, fill_words
from regard.tasks.reader_config import EncoderConfig, name_labels
from regard.tasks.run_facts import RunFacts
from regard.tasks.task import Fitting, Rehearsal, Usage, join_names, name_split, tell_part
from regard.tasks.test_set import Comparing, Decoding, TestSet
from regard.tasks.vectors_as_embedding import Embeddings
from regard.text.learning import Progress
from regard.text.tokenizer import Tokenizer

MAX_TEST = 5000
"""A run is scored on so many of its test examples when it ends; `regard eval` takes them all."""
UNUSED = {
    "train.n_context": "a text is read whole",
    "train.varies_context": "a text is read whole",
    "train.order": "texts come in random order, like lengths together",
    "train.max_eval_tokens": "the score is that of all validation examples",
}
EXAMPLES = ("Who lives in Berlin?", "Anna lives in Berlin.")
"""Texts to try a run on that has none of its own."""


class LabelledTask(gradient.GradientTask):
    """Answer about a text. What the four tasks differ in is left to them."""

    name: str
    kind: str
    head_config: type[Settings]
    columns = "two texts"
    pools = False
    """Whether the head reads one vector for the whole text (`encoder.pool`)."""
    verb = "predict"
    unit = "example"
    folders = ("encoder_from",)
    optional = ("words", "mixer")
    run_type: type[Any] = LabelledRun
    example = "--data reviews.tsv"
    comparing = Comparing(items="examples", searches=False)

    @property
    def sections(self) -> Mapping[str, type[Settings]]:
        return {
            "data": LabelledConfig,
            "words": WordsConfig,
            "encoder": EncoderConfig,
            "mixer": MixerConfig,
            "head": self.head_config,
        }

    def n_texts(self, config: RunConfig) -> int:
        """How many texts an example has."""
        return config.section("data", LabelledConfig).n_texts

    def fill_head(self, config: RunConfig, data: PreparedLabelled) -> RunConfig:
        """The config with what the data decide about the head."""
        raise NotImplementedError

    def fill_in(self, config: RunConfig, data: PreparedLabelled) -> RunConfig:
        return fill_words(self.fill_head(config, data), data)

    def n_segments(self, config: RunConfig) -> int:
        """How many kinds of tokens the encoder is told, by text and by capitals; 0: none."""
        if config.section("encoder", EncoderConfig).has_case:
            return N_TEXTS * N_CASES
        return N_TEXTS if self.n_texts(config) == N_TEXTS else 0

    def build_head(self, config: RunConfig, d_model: int, pool: str, layers: nn.Sequential | None) -> nn.Module:
        raise NotImplementedError

    def make_targets(self, config: RunConfig, examples: Sequence[Example], windows: Sequence[Windows]) -> NDArray[Any]:
        raise NotImplementedError

    def read_output(
        self, config: RunConfig, model: Reader, output: Tensor, windows: Windows, texts: Sequence[str]
    ) -> Any:
        """The prediction that one row of the head's output is."""
        raise NotImplementedError

    def read_outputs(
        self,
        config: RunConfig,
        model: Reader,
        outputs: Sequence[Tensor],
        windows: Sequence[Windows],
        texts: Sequence[Sequence[str]],
    ) -> list[Any]:
        """The predictions that some rows of the head's output are, one a text."""
        rows = zip(outputs, windows, texts, strict=True)
        return [self.read_output(config, model, *row) for row in rows]

    def make_judge(self, config: RunConfig, examples: Sequence[Example], measure: str) -> Judge:
        raise NotImplementedError

    def measure(
        self, config: RunConfig, examples: Sequence[Example], found: Sequence[Any], skipped: Mapping[str, int]
    ) -> LabelledEvaluation:
        raise NotImplementedError

    def n_classes(self, config: RunConfig) -> int:
        """How many answers there are to choose from."""
        head: Any = config.section("head", self.head_config)
        return len(name_labels(head))

    def describe_trained_head(self, labels: Sequence[str]) -> dict[str, Any]:
        """The plain `head` section of a head that was trained elsewhere, for classes or tags in their order."""
        return {"labels": list(labels)}

    def goal(self, config: RunConfig, data: PreparedLabelled) -> Goal:
        return Goal()

    def select_by(self, config: RunConfig) -> str:
        return str(config.section("head", self.head_config).to_dict()["select_by"])

    def framer(self, config: RunConfig, tokenizer: Tokenizer, model: Reader) -> TextFramer:
        chosen = config.section("encoder", EncoderConfig)
        limits = (model.max_positions, chosen.max_window)
        max_window = min((limit for limit in limits if limit is not None), default=None)
        words = model.tell_words(tokenizer)
        takes_last = chosen.piece == "last"
        return TextFramer(words, max_window, chosen.stride, has_case=chosen.has_case, takes_last=takes_last)

    def frame_with(self, framer: TextFramer, texts: Sequence[str]) -> Windows:
        return framer.frame(self.read_texts(texts))

    def read_texts(self, texts: Sequence[str]) -> Sequence[str]:
        """The texts as they are cut into tokens."""
        return texts

    def ask_outcome(self, config: RunConfig, model: Reader, framed: Framed, at: int | None) -> Outcome:
        """What is asked of the head's output for one text; of the word `at`, where there is an answer for each."""
        raise NotImplementedError

    def pooled_row(self, config: RunConfig, framed: Framed, at: int | None) -> int | None:
        """The token whose state stands for a text; None: all of them do."""
        if at is not None:
            raise RegardError(f"'{config.model_name}' gives one answer for the whole text: leave out `at`.")
        pool = config.section("encoder", EncoderConfig).pool
        return {"first": 0, "pooler": 0, "last": len(framed.tokens) - 1}.get(pool or "mean")

    def frame(self, config: RunConfig, tokenizer: Tokenizer, model: Reader, texts: Sequence[str]) -> Windows:
        """Texts as the model reads them."""
        return self.frame_with(self.framer(config, tokenizer, model), texts)

    def complete(self, config: RunConfig) -> RunConfig:
        return complete_reader(config)

    def adapt(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Words are what `words` reads, all of them."""
        if given.get("words") is None or given.get("tokenizer") is not None:
            return given
        return {**given, "tokenizer": {"kind": "word", "vocab_size": None}}

    def check(self, config: RunConfig) -> RunConfig:
        gradient.check_parts(config.train)
        check_words(config)
        check_reader(config)
        return config

    def list_unused(self, config: RunConfig) -> Mapping[str, str]:
        return UNUSED

    def describe_sources(self, config: RunConfig) -> str:
        return join_names(config.section("data", LabelledConfig).names("train"))

    def prepare(self, config: RunConfig, progress: Progress | None = None) -> PreparedLabelled:
        labels = config.section("head", self.head_config).to_dict().get("labels")
        data = config.section("data", LabelledConfig)
        return prepare_labelled(data, self.kind, config.tokenizer, labels=labels, progress=progress)

    def build(self, config: RunConfig, tokenizers: tuple[Tokenizer, ...]) -> Reader:
        return build_reader(
            config, tokenizers[0].vocab_size, lambda *sizes: self.build_head(config, *sizes),
            n_segments=self.n_segments(config), has_two_texts=self.n_texts(config) == N_TEXTS, pools=self.pools,
        )  # fmt: skip

    def embeddings(self, config: RunConfig, model: Reader, tokenizers: tuple[Tokenizer, ...]) -> Embeddings:
        encoder: Any = model.encoder
        return [(encoder.embedding, tokenizers[0])]

    def check_vectors(
        self, config: RunConfig, model: Reader, data: PreparedLabelled, start: InitialWeights | None
    ) -> None:
        if model.words is None:
            super().check_vectors(config, model, data, start)

    def fill_vectors(self, config: RunConfig, model: Reader, data: PreparedLabelled) -> list[str]:
        if model.words is None:
            return super().fill_vectors(config, model, data)
        return begin_words(config, model.words, data)

    def initialise(self, config: RunConfig, model: Reader, fitting: Fitting) -> None:
        if fitting.start is not None:
            begin_encoder(config, model, fitting.start, n_segments=self.n_segments(config), pools=self.pools)

    def objective(
        self, config: RunConfig, model: Reader, data: PreparedLabelled, fitting: Fitting | None = None
    ) -> LabelledObjective:
        select_by, framer = self.select_by(config), self.framer(config, data.tokenizer, model)

        def score(outputs: Sequence[Tensor], examples: Sequence[Example], windows: Sequence[Windows]) -> float:
            found = self.read_outputs(config, model, outputs, windows, [example.texts for example in examples])
            judge = self.make_judge(config, examples, select_by)
            return judge.score(judge.counts([each.to_answer() for each in found]).sum(axis=0))

        return LabelledObjective(
            model,
            data.train,
            data.valid,
            lambda example: data.keep_windows(
                (framer.tokenizer, framer.max_positions, framer.stride, framer.has_case, framer.takes_last),
                example,
                lambda: self.frame_with(framer, example.texts),
            ),
            lambda examples, windows: self.make_targets(config, examples, windows),
            config.train,
            config.seed,
            fingerprint=data.fingerprint,
            goal=self.goal(config, data),
            has_segments=self.n_segments(config) > 0,
            n_classes=self.n_classes(config),
            select_by=select_by,
            score=score,
        )

    def rehearse(self, config: RunConfig, data: PreparedLabelled, start: InitialWeights | None) -> Rehearsal:
        config = self.fill_in(config, data)

        def check(model: Reader, objective: LabelledObjective) -> tuple[str, ...]:
            n_cut = sum(len(each.tokens) > 1 for each in objective.windows)
            limit = self.framer(config, data.tokenizer, model).max_positions
            cut = (f"{n_cut:,} of {len(data.train):,} training texts are longer than the {limit} tokens that are read "
                   "at once: they are read in windows.",) if n_cut else ()  # fmt: skip
            return (f"{data.counts.describe()}.", *data.notes, *cut)

        def first_batch(objective: LabelledObjective) -> tuple[str, ...]:
            chosen = [data.train[i] for i in objective.batches.indices(0)]
            return tuple("\t".join((*example.texts, self.show_label(example))) for example in chosen)

        splits = ("train", "valid", "test")
        n_units = {name: sum(self.count_units(example) for example in getattr(data, name)) for name in splits}
        return gradient.rehearse(self, config, data, start, n_units=n_units, first_batch=first_batch, check=check)

    def count_units(self, example: Example) -> int:
        """How many of `unit` an example is."""
        return 1

    def show_label(self, example: Example) -> str:
        """The label of an example as people read it."""
        return str(example.label)

    def test(self, run: LabelledRun, data: PreparedLabelled) -> LabelledEvaluation | None:
        if not data.test:
            return None
        step = max(1, -(-len(data.test) // MAX_TEST))
        some = data.test[::step]
        found = run.evaluate_examples(some)
        part = tell_part(len(some), len(data.test), "examples", "evenly from all")
        return replace(found, notes=(*part, *found.notes))

    def card_rows(self, config: RunConfig, facts: RunFacts, data: PreparedLabelled) -> list[tuple[str, str]]:
        return [("training examples", f"{len(data.train):,}")]

    def usage(self, config: RunConfig, folder: Path, data: PreparedLabelled | None) -> Usage:
        path = shlex.quote(str(folder))
        given = EXAMPLES[: self.n_texts(config)] if data is None else (data.valid or data.train)[0].texts
        texts = [" ".join(text.split()) for text in given]
        shown = json.dumps(texts[0] if len(texts) == 1 else texts, ensure_ascii=False)
        printed = shlex.quote("\\t".join(texts) + "\\n")
        shell = f"echo {shlex.quote(texts[0])}" if len(texts) == 1 else f"printf {printed}"
        return Usage(
            shell=(f"{shell} | regard predict {path}", *(() if data is None else (f"regard eval {path}",))),
            python=(f"list(run.predict([{shown}]))",),
            elsewhere=list_programs(config, folder, texts, self.n_texts(config)),
        )

    def export(self, run: LabelledRun, to: Path) -> None:
        export_reader(run, to)

    def export_onnx(self, run: LabelledRun, to: Path) -> None:
        export_onnx(run, to)

    def load_test_set(self, run: LabelledRun, data: Sequence[str] | None, split: str, skips_bad: bool) -> TestSet:
        examples, skipped = run.examples_of(data, split, skips_bad)
        about = join_names(data) if data else name_split(run.config, split, self.describe_sources(run.config))
        labels = tuple(self.show_label(example) for example in examples)
        return TestSet(
            about=about,
            sources=tuple(" ⇥ ".join(example.texts) for example in examples),
            references=tuple((label,) for label in labels),
            fits=np.ones(len(examples), dtype=bool),
            fingerprint=key_of([example.texts for example in examples], labels),
            skipped=skipped,
            own=(examples, run.config),
        )

    def answer(
        self,
        run: LabelledRun,
        test_set: TestSet,
        chosen: Sequence[int],
        decoding: Decoding,
        tell: Callable[[int], None],
    ) -> list[Any]:
        found = run.answer_examples([test_set.own[0][i] for i in chosen], tell)
        return [each.to_answer() for each in found]

    def judge(self, test_set: TestSet, chosen: Sequence[int]) -> Judge:
        examples, config = test_set.own
        measure = self.select_by(config)
        measure = self.default_measure if measure == "loss" else measure
        return self.make_judge(config, [examples[i] for i in chosen], measure)

    default_measure = "accuracy"
