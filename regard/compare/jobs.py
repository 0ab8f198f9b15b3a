"""What a comparison asks of a task: its test set, what a run answers, and who judges that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from regard.config import RunConfig
from regard.data.cache import key_of
from regard.data.encode import prepare
from regard.data.prepared_captions import prepare_captions, square
from regard.data.prepared_pairs import prepare_pairs
from regard.data.source import documents
from regard.data.tree_lines import bracketed
from regard.data.tree_pairs import FORMS, gold_tree
from regard.decode.caption import MAX_LENGTH, captions_of
from regard.decode.config import MAX_RATIO, BeamConfig
from regard.decode.lines import batches_by_tokens
from regard.errors import RegardError
from regard.folder import prepared_again, prepared_captions_again, prepared_pairs_again
from regard.lens.passage import SAMPLING, choose_passage, choose_prompt, look_inside
from regard.lens.views import Views
from regard.models.table import model_entry
from regard.score.blocks import TestText, add_up_blocks, cut_into_blocks, documents_of, score_text
from regard.score.figures import count_text
from regard.score.judges import BitsPerByte, Bleu, BracketF1, Judge
from regard.score.translation import MANY_ENDS
from regard.text.config import TokenizerConfig
from regard.training.caption_task import N_PICTURES
from regard.training.pair_task import readable_pairs

if TYPE_CHECKING:
    from regard.caption_run import CaptionRun
    from regard.pair_run import PairRun
    from regard.run import Run
    from regard.text.learning import Progress


@dataclass(frozen=True, kw_only=True)
class TestSet:
    """What runs are tested on, as one run reads it."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    about: str
    sources: tuple[str, ...]
    references: tuple[tuple[str, ...], ...] = ()
    fits: NDArray[np.bool_]
    """Which items the run has room for."""
    fingerprint: str
    """Of the items: equal for runs that are tested on the same."""
    watched: str | None = None
    """Stands for the validation data; None: they were not read."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    is_comparable: bool = True
    """False where the run's tokenizer loses text, so that its score leaves something out."""
    own: Any = None
    """What only the task reads."""
    passage: str = ""
    prompt: str = ""
    sampling: str = ""
    picture: Callable[[int], NDArray[np.uint8]] | None = None
    """The picture of an item, as the model sees it."""


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How runs are asked for their answers."""

    beam: int = 5
    device: str = "auto"
    max_tokens: int = 4096

    @property
    def words(self) -> str:
        return "greedy" if self.beam == 1 else f"beam search of width {self.beam}"


class Job(Protocol):
    """The part of a task that comparing asks for."""

    name: str
    items: str
    """What test items are called in reports."""
    decodes: bool
    """Whether answers are searched for, so that the width of the beam matters."""
    n_parameters: int | None
    """The size that contenders are matched to where none is asked for; None: as they are configured."""
    train: Mapping[str, Mapping[str, Any]]
    """By kind of device, what a comparison of minutes sets of `train` where the user does not."""

    def prepare(self, config: RunConfig, progress: Progress | None) -> Any: ...

    def check_test_data(self, data: Any) -> None:
        """Refuse data that leave nothing to test on, before anything is trained."""
        ...

    def describe(self, data: Any) -> str:
        """How much there is to train on, to watch and to test on."""
        ...

    def describe_batch(self, config: RunConfig) -> str:
        """What an update learns from, which is the same for every contender."""
        ...

    def outline(self, config: RunConfig, data: Any) -> Any: ...

    def flops_per_token(self, config: RunConfig, data: Any) -> float:
        """Of a forward pass; 0 where nothing is descended."""
        ...

    def tokens_per_step(self, config: RunConfig) -> int:
        """About how many tokens an update learns from."""
        ...

    def load_test_set(self, run: Any, data: Sequence[str] | None, split: str, skips_bad: bool) -> TestSet: ...

    def answer(
        self, run: Any, test_set: TestSet, chosen: Sequence[int], decoding: Decoding, tell: Callable[[int], None]
    ) -> list[Any]:
        """One JSON value for each chosen item; `tell` is told how many are done."""
        ...

    def judge(self, test_set: TestSet, chosen: Sequence[int]) -> Judge: ...

    def show(self, run: Any, test_set: TestSet, prompt: str, note: Callable[[str], None]) -> Views:
        """What a run shows of itself beside its score."""
        ...


class LanguageModelJob:
    """Items are blocks of the test text; an answer is what a block costs."""

    name, items, decodes = "language-model", "blocks of text", False
    n_parameters: int | None = 1_000_000
    # In a few minutes a CPU gets further by many small updates (an LSTM of 1M parameters in 15 s on two cores: 2.56
    # bits per byte with 8 x 64, 2.72 with 8 x 128); a GPU is hardly busy with so little.
    train: Mapping[str, Mapping[str, Any]] = {
        "cpu": {"n_batch": 8, "n_context": 64},
        "cuda": {"n_batch": 32, "n_context": 128},
    }

    def prepare(self, config: RunConfig, progress: Progress | None) -> Any:
        return prepare(config.text, config.tokenizer, progress=progress)

    def check_test_data(self, data: Any) -> None:
        if data.tokenizer.is_lossless:
            cut_into_blocks(documents_of(data.test, data.tokenizer))

    def describe(self, data: Any) -> str:
        sizes = [f"{count_text(getattr(data, split).n_bytes)}B" for split in ("train", "valid", "test")]
        return "{} to train on, {} to watch, {} to test on".format(*sizes)

    def describe_batch(self, config: RunConfig) -> str:
        lanes = f"{config.train.n_batch} lanes of {config.train.n_context} tokens"
        return f"the same text in the same order, {lanes} a step, for every contender"

    def outline(self, config: RunConfig, data: Any) -> Any:
        from regard.text_training import outline

        return outline(config, data.tokenizer.vocab_size)

    def flops_per_token(self, config: RunConfig, data: Any) -> float:
        if model_entry(config.model_name).kind == "count":
            return 0.0
        return float(self.outline(config, data).flops_per_token(config.train.n_context))

    def tokens_per_step(self, config: RunConfig) -> int:
        return config.train.n_batch * (config.train.n_context or 64)

    def load_test_set(self, run: Run, data: Sequence[str] | None, split: str, skips_bad: bool) -> TestSet:
        if skips_bad:
            raise RegardError("--skip-bad is for pairs and pictures: of a text, everything is read. Leave it out.")
        watched = None
        if data is not None:
            test, about = cut_into_blocks(documents(run._other_text(data))), ", ".join(data)
        else:
            found = prepared_again(run.folder, run.config)
            watched = key_of(found.valid.n_bytes, found.valid.n_words)
            if not found.tokenizer.is_lossless:  # read the text itself through a tokenizer that does not lose any
                found = prepare(run.config.text, TokenizerConfig(kind="byte", vocab_size=None))
            test, about = cut_into_blocks(documents_of(getattr(found, split), found.tokenizer)), _own(run.config, split)
        passage = choose_passage(test.text)
        return TestSet(
            about=f"{about}: {count_text(test.n_bytes)}B in {len(test.block_bytes)} blocks",
            sources=test.documents,
            fits=np.ones(len(test.block_bytes), dtype=bool),
            fingerprint=key_of(test.documents),
            watched=watched,
            is_comparable=run.tokenizer.is_lossless,
            own=test,
            passage=passage,
            prompt=choose_prompt(passage),
            sampling=", ".join(f"{k.replace('_', '-')} {v}" for k, v in SAMPLING.items()),
        )

    def answer(
        self, run: Run, test_set: TestSet, chosen: Sequence[int], decoding: Decoding, tell: Callable[[int], None]
    ) -> list[Any]:
        test: TestText = test_set.own
        blocks = add_up_blocks(score_text(run.next_token, run.tokenizer, test), test)
        if not all(block["nats"] < float("inf") for block in blocks):  # NaN too
            raise RegardError("it gives some test text no probability at all, so its bits per byte are infinite")
        return [blocks[i] for i in chosen]

    def judge(self, test_set: TestSet, chosen: Sequence[int]) -> Judge:
        return BitsPerByte([test_set.own.block_bytes[i] for i in chosen])

    def show(self, run: Run, test_set: TestSet, prompt: str, note: Callable[[str], None]) -> Views:
        return look_inside(run, test_set.own, test_set.passage, prompt, note)


class TranslationJob:
    """Items are sentences; an answer is the best translation a beam search finds."""

    name, items, decodes = "translation", "sentences", True
    n_parameters: int | None = None
    train: Mapping[str, Mapping[str, Any]] = {}

    def prepare(self, config: RunConfig, progress: Progress | None) -> Any:
        return prepare_pairs(config.pairs, config.tokenizer, config.target_tokenizer, progress=progress)

    def check_test_data(self, data: Any) -> None:
        _refuse_empty(len(data.test))

    def describe(self, data: Any) -> str:
        return str(data.counts)

    def describe_batch(self, config: RunConfig) -> str:
        assert config.teaching is not None
        return f"batches of {config.teaching.max_tokens:,} tokens, source and target, for every contender"

    def outline(self, config: RunConfig, data: Any) -> Any:
        from regard.pair_training import outline

        return outline(config, data)

    def flops_per_token(self, config: RunConfig, data: Any) -> float:
        from regard.pair_training import task_of

        return float(task_of(config, self.outline(config, data), data).flops_per_token)

    def tokens_per_step(self, config: RunConfig) -> int:
        assert config.teaching is not None
        return config.teaching.max_tokens // 2  # which counts both sides

    def load_test_set(self, run: PairRun, data: Sequence[str] | None, split: str, skips_bad: bool) -> TestSet:
        other = None if data is None else run.other_pairs(data, split, skips_bad)
        pairs = run.pairs_of(None, split) if other is None else other.train
        numbers = range(len(pairs))
        targets = self.read_targets(run, pairs)
        watched = None
        if data is None:
            valid = prepared_pairs_again(run.folder, run.config).valid
            watched = key_of([valid.target_text(i) for i in range(len(valid))])
        n_split = sum(target.rstrip().endswith(" .") for target in targets)
        split_note = "The references are split into words already: this BLEU compares with no published score."
        return TestSet(
            about=_own(run.config, split) if data is None else ", ".join(data),
            sources=tuple(pairs.source_text(i) for i in numbers),
            references=tuple((target,) for target in targets),
            fits=np.isin(pairs.rows, readable_pairs(run.model, pairs).rows),
            fingerprint=key_of(targets),
            watched=watched,
            skipped={} if other is None else other.counts.skipped,
            notes=(split_note,) if n_split >= MANY_ENDS and not run.is_parser else (),
            own=(pairs, run.config.pairs.tree_words),
        )

    def read_targets(self, run: PairRun, pairs: Any) -> list[str]:
        return [pairs.target_text(i) for i in range(len(pairs))]

    def answer(
        self, run: PairRun, test_set: TestSet, chosen: Sequence[int], decoding: Decoding, tell: Callable[[int], None]
    ) -> list[Any]:
        pairs, _ = test_set.own
        decode = self.decoder(run, pairs, decoding.beam)
        batches = batches_by_tokens(list(chosen), pairs.source_lengths.tolist(), decoding.max_tokens)
        return _answer_batches(batches, decode, chosen, tell)

    def decoder(self, run: PairRun, pairs: Any, beam: int) -> Callable[[Sequence[int]], list[str]]:
        translator = run.translator(BeamConfig(beam=beam, max_ratio=MAX_RATIO))

        def decode(batch: Sequence[int]) -> list[str]:
            sentences = [translator.read(pairs.source_text(i), pairs.tag(i)) for i in batch]
            return [best[0].text for best in translator.all(sentences)]

        return decode

    def judge(self, test_set: TestSet, chosen: Sequence[int]) -> Judge:
        return Bleu([test_set.references[i] for i in chosen])

    def show(self, run: PairRun, test_set: TestSet, prompt: str, note: Callable[[str], None]) -> Views:
        return Views()


class ParsingJob(TranslationJob):
    """Items are sentences; an answer is the best tree, in brackets."""

    name = "parsing"

    def read_targets(self, run: PairRun, pairs: Any) -> list[str]:
        words = run.config.pairs.tree_words
        return [bracketed(gold_tree(pairs, i, words)) for i in range(len(pairs))]

    def decoder(self, run: PairRun, pairs: Any, beam: int) -> Callable[[Sequence[int]], list[str]]:
        parser = run.parser(BeamConfig(beam=beam))

        def decode(batch: Sequence[int]) -> list[str]:
            parses = parser.all([pairs.source_text(i) for i in batch], [pairs.tag(i) for i in batch])
            return ["" if parse.tree is None else bracketed(parse.tree) for parse in parses]

        return decode

    def judge(self, test_set: TestSet, chosen: Sequence[int]) -> Judge:
        return BracketF1([test_set.references[i][0] for i in chosen], FORMS[test_set.own[1]].has_tags)


class CaptionJob:
    """Items are pictures; an answer is the best caption a beam search finds."""

    name, items, decodes = "captions", "pictures", True
    n_parameters: int | None = None
    train: Mapping[str, Mapping[str, Any]] = {}

    def prepare(self, config: RunConfig, progress: Progress | None) -> Any:
        return prepare_captions(config.captions, config.tokenizer, progress=progress)

    def check_test_data(self, data: Any) -> None:
        _refuse_empty(len(data.data.test))

    def describe(self, data: Any) -> str:
        return str(data.told())

    def describe_batch(self, config: RunConfig) -> str:
        return f"{config.train.n_batch} captions a step, for every contender"

    def outline(self, config: RunConfig, data: Any) -> Any:
        from regard.caption_training import outline

        return outline(config, data)

    def flops_per_token(self, config: RunConfig, data: Any) -> float:
        from regard.caption_training import task_of

        return float(task_of(config, self.outline(config, data), data).flops_per_token)

    def tokens_per_step(self, config: RunConfig) -> int:
        return 12 * config.train.n_batch  # a caption has a dozen words

    def load_test_set(self, run: CaptionRun, data: Sequence[str] | None, split: str, skips_bad: bool) -> TestSet:
        prepared, pictures = run.pictures_of(data, split, skips_bad)
        watched = None
        if data is None:
            valid = prepared_captions_again(run.folder, run.config).data.valid
            watched = key_of(valid.captions)
        return TestSet(
            about=_own(run.config, split) if data is None else ", ".join(data),
            sources=pictures.names,
            references=pictures.captions,
            fits=np.ones(len(pictures), dtype=bool),
            fingerprint=key_of(pictures.captions),
            watched=watched,
            skipped={} if data is None else prepared.data.skipped,
            own=(prepared, pictures),
            picture=lambda i: prepared.data.centre([pictures.numbers[i]])[0],
        )

    def answer(
        self, run: CaptionRun, test_set: TestSet, chosen: Sequence[int], decoding: Decoding, tell: Callable[[int], None]
    ) -> list[Any]:
        prepared, pictures = test_set.own
        beam = BeamConfig(beam=decoding.beam, max_length=MAX_LENGTH)

        def decode(batch: Sequence[int]) -> list[str]:
            seen = torch.from_numpy(square(prepared.data, [pictures.numbers[i] for i in batch]))
            return [best[0].text for best in captions_of(run.model, run.tokenizer, seen, beam)]

        batches = [list(chosen[i : i + N_PICTURES]) for i in range(0, len(chosen), N_PICTURES)]
        return _answer_batches(batches, decode, chosen, tell)

    def judge(self, test_set: TestSet, chosen: Sequence[int]) -> Judge:
        return Bleu([test_set.references[i] for i in chosen], "BLEU-4", is_lowercase=True)

    def show(self, run: CaptionRun, test_set: TestSet, prompt: str, note: Callable[[str], None]) -> Views:
        return Views()


JOBS: dict[str, Job] = {
    "language-model": LanguageModelJob(),
    "translation": TranslationJob(),
    "parsing": ParsingJob(),
    "captions": CaptionJob(),
}


def job_of(config: RunConfig) -> Job:
    if config.reads_pictures:
        return JOBS["captions"]
    if config.reads_pairs:
        return JOBS["parsing" if config.pairs.has_trees else "translation"]
    return JOBS["language-model"]


def _answer_batches(
    batches: Iterable[list[int]],
    decode: Callable[[Sequence[int]], list[str]],
    chosen: Sequence[int],
    tell: Callable[[int], None],
) -> list[Any]:
    """The answers of all batches in the order of `chosen`, always one line each."""
    found: dict[int, str] = {}
    for batch in batches:
        found |= zip(batch, (" ".join(text.split("\n")) for text in decode(batch)), strict=True)
        tell(len(found))
    return [found[i] for i in chosen]


def _own(config: RunConfig, split: str) -> str:
    """What a split of a run's own data is called."""
    given: Any = config.data.to_dict()
    if given.get(split) is not None:
        return _join(given[split])
    source = given["train"] if "pictures" not in given else [given["pictures"], given["captions"]]
    return f"the {split} split of {_join(source)}"


def _join(names: Any) -> str:
    return names if isinstance(names, str) else ", ".join(_join(name) for name in names)


def _refuse_empty(n_test: int) -> None:
    if not n_test:
        raise RegardError(
            "There is nothing to test on: the test split is empty. Name test data (data.test), or raise data.p_test."
        )
