"""The job of describing pictures: a network that sees, and a decoder that says what it looks at, word by word."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import RunConfig
from regard.data.cache import key_of
from regard.data.caption_config import CaptionConfig
from regard.data.pictures import fit_square, read_picture
from regard.data.prepared_captions import CaptionSet, PreparedCaptions, encode_captions, prepare_captions
from regard.data.rows import encode_line
from regard.data.split import describe_skipped
from regard.decode.caption import MAX_LENGTH, Caption, measure_attention, write_captions
from regard.decode.config import BeamConfig
from regard.errors import RegardError, explain_old_name
from regard.lens.picture_attention import PictureAttention
from regard.lens.trace import Trace
from regard.models.captioner import Captioner
from regard.models.captioner_config import CaptionerConfig
from regard.models.outline import outline_model
from regard.models.picture_encoder import EfficientNetPictures
from regard.score.judges import Bleu
from regard.score.measured import Figure, Measured
from regard.score.target_loss import TargetLoss
from regard.score.translation import BleuScore
from regard.settings import Settings
from regard.tasks import gradient
from regard.tasks.caption_objective import (
    N_PICTURES,
    CaptionObjective,
    Features,
    caption_bleu,
    sum_caption_nats,
)
from regard.tasks.decoder_start import begin_decoder, check_decoder
from regard.tasks.picture_features import picture_features
from regard.tasks.task import (
    Ending,
    Fitting,
    InitialWeights,
    OpenRun,
    ProgressBar,
    Rehearsal,
    RunFacts,
    Usage,
    check_split,
    name_split,
    read_test_result,
    reopen_data,
    tell_part,
)
from regard.tasks.test_set import Comparing, Decoding, TestSet, answer_in_batches
from regard.text.learning import Progress
from regard.text.tokenizer import Tokenizer
from regard.text.word_pieces import words_of_ids
from regard.training.checkpoint import MODEL, latest_checkpoint
from regard.training.device import pick_device
from regard.training.teaching_config import TeachingConfig
from regard.training.weights import load_weights, read_tensors
from regard.weights.efficientnet_lite import find_published, load_published

MAX_TEST_PICTURES = 1000
"""A run is scored on so many of its test pictures when it ends; `regard eval` takes them all."""

Square = NDArray[np.uint8]
"""A picture as the model sees it, (size, size, 3)."""

UNUSED = {
    "teaching.max_tokens": "a batch has train.n_batch whole captions",
    "teaching.p_bpe_dropout": "captions are cut into tokens once",
    "train.n_context": "a caption is read whole, up to model.max_context",
    "train.varies_context": "a caption is read whole",
    "train.order": "captions come in random order",
    "train.max_eval_tokens": "the loss is that of all validation captions",
}


@dataclass(frozen=True, kw_only=True)
class CaptionEvaluation(TargetLoss):
    """How well captions are predicted, and how good the model's own are against all that people said."""

    n_pictures: int
    n_captions: int
    bleu: BleuScore
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Pictures and captions that could not be used and were left out, by kind."""

    def to_dict(self) -> dict[str, Any]:
        found = self.plain("n_pictures", "n_captions")
        return found | {"skipped": dict(self.skipped), "bleu": self.bleu.to_dict()}

    def measure(self) -> Measured:
        orders = [Figure(f"BLEU-{n}", score) for n, score in enumerate(self.bleu.up_to, start=1)]
        return Measured(
            figures=(*self.figures(), *orders),
            headline=orders[-1].name,
            is_higher_better=True,
            counts={"pictures": self.n_pictures, "captions": self.n_captions, "tokens": self.n_tokens},
            signature=f"sacreBLEU {self.bleu.signature}",
            notes=(*self.notes, *((f"{describe_skipped(self.skipped, '')}.",) if self.skipped else ())),
        )


OLD_NAMES = {"looked": "attend", "described": "describe"}


class CaptionRun:
    """A trained captioner: caption, evaluate, see where each word looked."""

    def __init__(self, opened: OpenRun, model: Captioner) -> None:
        self.folder, self.config, self.facts, self.model = opened.folder, opened.config, opened.facts, model
        self.opened, self.tokenizers, self.tokenizer = opened, opened.tokenizers, opened.tokenizers[0]
        self.ending: Ending | None = None

    def __repr__(self) -> str:
        return f"<CaptionRun {self.folder}: {self.config.model_name}, {self.facts.n_parameters:,} parameters>"

    if not TYPE_CHECKING:  # or every attribute would have a type: any

        def __getattr__(self, name: str) -> Any:
            raise explain_old_name(self, name, OLD_NAMES)

    def test_result(self) -> dict[str, Any] | None:
        """The test scores that were written when training ended."""
        return read_test_result(self.folder)

    def caption(self, pictures: str | Path | Sequence[str | Path], **beam: Any) -> Any:
        """The caption of a picture, or a list of them for a list of pictures.

        `beam`: beam, length_penalty, alpha, max_length, ... as in BeamConfig. With n_best > 1 each picture has a list
        of Captions instead of one string.
        """
        config = BeamConfig.from_dict({"max_length": MAX_LENGTH} | beam)
        given = [pictures] if isinstance(pictures, str | Path) else list(pictures)
        found = [best for _, _, best in self.describe([Path(picture) for picture in given], config)]
        results: list[Any] = found if config.n_best != 1 else [best[0].text for best in found]
        return results[0] if isinstance(pictures, str | Path) else results

    def predict(self, items: Iterable[str | Path], **beam: Any) -> Iterator[list[Caption]]:
        """The best captions of each picture, as many as n_best says."""
        config = BeamConfig.from_dict({"max_length": MAX_LENGTH} | beam)
        return (best for _, _, best in self.describe([Path(item) for item in items], config))

    def captions(self, squares: Sequence[Square], config: BeamConfig | None = None) -> list[list[Caption]]:
        """The best captions of each picture, best first, in one batch."""
        seen = torch.from_numpy(np.stack(squares)).permute(0, 3, 1, 2)  # (B, 3, size, size)
        return write_captions(self.model, self.tokenizer, seen, config or BeamConfig(max_length=MAX_LENGTH))

    def describe(
        self, files: Sequence[Path], config: BeamConfig, tell_skipped: Callable[[str], None] | None = None
    ) -> Iterator[tuple[Path, Square, list[Caption]]]:
        """Every picture with what the model sees of it and its captions, in order.

        One that cannot be read is an error, once all before it are given; or, where there is `tell_skipped`, it is
        left out, and `tell_skipped` is told why.
        """
        for first in range(0, len(files), N_PICTURES):
            shown: list[tuple[Path, Square]] = []
            for path in files[first : first + N_PICTURES]:
                try:
                    shown.append((path, self.square(path)))
                except RegardError as error:
                    if tell_skipped is None:
                        yield from self._add_captions(shown, config)  # those before it are not lost
                        others = " To leave out such and go on: --skip-bad." if len(files) > 1 else ""
                        raise RegardError(f"{error}{others}") from None
                    tell_skipped(str(error))
            yield from self._add_captions(shown, config)

    def _add_captions(
        self, shown: Sequence[tuple[Path, Square]], config: BeamConfig
    ) -> Iterator[tuple[Path, Square, list[Caption]]]:
        found = self.captions([square for _, square in shown], config) if shown else []
        yield from ((path, square, best) for (path, square), best in zip(shown, found, strict=True))

    def square(self, path: Path) -> Square:
        """A picture in a file, cut as those were that the model learned from."""
        data = self.config.section("data", CaptionConfig)
        try:
            image = read_picture(path.read_bytes())
        except OSError as error:
            raise RegardError(f"The picture '{path}' cannot be read: {error.strerror}.") from None
        except RegardError as error:
            raise RegardError(f"The picture '{path}' cannot be used: {error}. Give JPEG, PNG or the like.") from None
        first = data.n_margin // 2
        whole = fit_square(image, data.side, data.fit)
        return whole[first : first + data.size, first : first + data.size].copy()  # Pillow's own cannot be written

    def attend(
        self, picture: str | Path | Square, caption: str | Caption, name: str = "", references: Sequence[str] = ()
    ) -> PictureAttention:
        """Where in a picture the model looks when it writes each word of a caption, its own or any other.

        Its `weights` are (words, rows, columns): of a word in several pieces, the mean over its pieces.
        """
        self.check_attention()
        square = self.square(Path(picture)) if isinstance(picture, str | Path) else picture
        tokens = self._read(caption) if isinstance(caption, str) else caption.tokens
        seen = torch.from_numpy(square[None]).permute(0, 3, 1, 2)
        weights = measure_attention(self.model, self.tokenizer, seen, tokens)  # (tokens, places)
        words, numbers = words_of_ids(self.tokenizer, tokens)
        if words:
            rows = ([i for i, n in enumerate(numbers) if n == number] for number in range(len(words)))
            weights = np.stack([weights[row].mean(axis=0) for row in rows])  # (words, places)
        else:  # it still looked somewhere before it ended
            words, weights = ["(nothing)"], weights[:1]
        return PictureAttention.over(self.model.grid, square, words, weights, name, references)

    def _read(self, caption: str) -> tuple[int, ...]:
        """The tokens of a caption, as in training."""
        text, limit = " ".join(caption.split()), self.model.max_context
        tokens: tuple[int, ...] = tuple(encode_line(self.tokenizer, text).tolist()) if text else ()
        if limit is not None and len(tokens) > limit:
            raise RegardError(f"The caption has {len(tokens)} tokens; at most {limit} fit into the model. Shorten it.")
        return tokens

    def check_attention(self) -> None:
        """Refuse to draw what is not there."""
        assert isinstance(self.config.model, CaptionerConfig)
        if self.config.model.attention == "none":
            raise RegardError(
                f"'{self.folder}' has no attention to draw: it was trained with attention none. Train one with "
                "model.attention mlp, say."
            )

    def trace(self, *texts: str) -> Trace:
        raise RegardError("Use attend(picture, caption) to see where a captioner looked: it reads pictures, not texts.")

    def evaluate(
        self,
        data: Sequence[str] | None = None,
        *,
        split: str = "test",
        beam: BeamConfig | int | None = None,
        skips_bad: bool = False,
    ) -> CaptionEvaluation:
        """Loss and BLEU on a split of the pictures the run was trained on, or on others: [folder, captions].

        What of others cannot be used is an error, or, where `skips_bad`, left out and counted.
        """
        prepared, pictures = self.pictures_of(data, split, skips_bad)
        config = BeamConfig(beam=beam, max_length=MAX_LENGTH) if isinstance(beam, int) else beam
        found = evaluate_captions(self.model, prepared, pictures, config)
        return found if data is None else replace(found, skipped=prepared.data.skipped)

    def pictures_of(
        self, data: Sequence[str] | None, split: str = "test", skips_bad: bool = False
    ) -> tuple[PreparedCaptions, CaptionSet]:
        """Other pictures, or a split of the run's own, with their captions."""
        check_split(split)
        if data is None:
            prepared = reopen_data(CAPTIONS, self.opened)
            pictures: CaptionSet = getattr(prepared.data, split)
        else:
            if isinstance(data, str) or len(data) != 2:
                raise RegardError(f"Other pictures are two names, a folder and a file of captions, not {data!r}.")
            own = self.config.section("data", CaptionConfig)
            skips = skips_bad or own.skips_bad
            other = own.replace(pictures=data[0], captions=data[1], train=None, valid=None, test=None, skips_bad=skips)
            prepared = encode_captions(self.tokenizer, other)
            pictures = prepared.data.train
        if not len(pictures):
            raise RegardError(
                f"There are no pictures to evaluate on: the {split} split is empty. Name a folder and its captions "
                "with --data FOLDER --data CAPTIONS."
            )
        return prepared, pictures


def evaluate_captions(
    model: Captioner,
    prepared: PreparedCaptions,
    pictures: CaptionSet,
    beam: BeamConfig | None = None,
    features: Features | None = None,
) -> CaptionEvaluation:
    """Loss and BLEU on some pictures; `features` are of all pictures, where they were computed before."""
    nats, n_tokens = sum_caption_nats(model, prepared, pictures, features)
    config = beam or BeamConfig(max_length=MAX_LENGTH)
    return CaptionEvaluation(
        nats=nats,
        n_tokens=n_tokens,
        n_bytes=pictures.n_bytes,
        n_pictures=len(pictures),
        n_captions=pictures.n_captions,
        bleu=caption_bleu(model, prepared, pictures, config, features),
    )


class CaptionTask:
    """Describe pictures."""

    name, verb, summary = "captions", "caption", "describes pictures"
    sections: Mapping[str, type[Settings]] = {"data": CaptionConfig, "teaching": TeachingConfig}
    optional = ()
    folders = ("decoder_from",)
    example = "--data photos --data captions.txt"
    run_type = CaptionRun
    comparing = Comparing(items="pictures")

    def recognises(self, given: Mapping[str, Any]) -> bool:
        return True

    def name_sources(self, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        if len(names) != 2:
            raise RegardError(
                "--data of a model that describes pictures names two things, their folder and the file of captions, "
                f"not {', '.join(names)}."
            )
        kept = {key: value for key, value in given.items() if key != "train"}
        return {**kept, "pictures": names[0], "captions": names[1]}

    def adapt(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        return given

    def complete(self, config: RunConfig) -> RunConfig:
        size = config.section("data", CaptionConfig).size
        is_recurrent = outline_model(config.model_name, config.model, 2, size).bridge is not None
        return config.with_section("optimizer", config.optimizer.complete(is_recurrent))

    def check(self, config: RunConfig) -> RunConfig:
        train, teaching = config.train, config.section("teaching", TeachingConfig)
        if train.n_accumulate > train.n_batch:
            raise RegardError(
                f"train.n_accumulate {train.n_accumulate} is more than train.n_batch {train.n_batch}, and it is the "
                "number of parts a batch is computed in. Lower it or raise train.n_batch."
            )
        if teaching.select_by not in ("loss", "bleu"):
            raise RegardError(
                f"teaching.select_by is {teaching.select_by}, which is not for captions. Take loss or bleu."
            )
        _model(config).seeing(config.section("data", CaptionConfig).size)  # which it must be able to take
        return config

    def list_unused(self, config: RunConfig) -> Mapping[str, str]:
        return UNUSED

    def describe_sources(self, config: RunConfig) -> str:
        data = config.section("data", CaptionConfig)
        return f"{data.pictures}, {data.captions}"

    def prepare(self, config: RunConfig, progress: Progress | None = None) -> PreparedCaptions:
        return prepare_captions(config.section("data", CaptionConfig), config.tokenizer, progress=progress)

    def reopen(self, config: RunConfig, fingerprint: str) -> PreparedCaptions | None:
        return None  # pictures are looked for where the run found them

    def tokenizers(self, data: PreparedCaptions) -> tuple[Tokenizer, ...]:
        return (data.tokenizer,)

    def sizes(self, config: RunConfig, tokenizers: tuple[Tokenizer, ...]) -> gradient.Sizes:
        return tokenizers[0].vocab_size, config.section("data", CaptionConfig).size

    def objective(
        self, config: RunConfig, model: Captioner, data: PreparedCaptions, fitting: Fitting | None = None
    ) -> CaptionObjective:
        features = None
        if fitting is not None and keeps_features(config):
            features = features_of(config, model, data, fitting.progress)
        teaching = config.section("teaching", TeachingConfig)
        return CaptionObjective(model, data, config.train, teaching, config.seed, features)

    def initialise(self, config: RunConfig, model: Captioner, fitting: Fitting) -> None:
        begin_decoder(model, fitting.start)
        before = latest_checkpoint(fitting.folder)
        if before is not None:  # what a frozen encoder sees is computed before the loop loads the checkpoint
            load_weights(model, read_tensors(before / MODEL), before / MODEL)
        elif isinstance(model.encoder, EfficientNetPictures):
            load_published(model.encoder.network)

    def rehearse(self, config: RunConfig, data: PreparedCaptions, start: InitialWeights | None) -> Rehearsal:
        def check(model: Captioner, objective: CaptionObjective) -> tuple[str, ...]:
            check_decoder(model, data.tokenizer, start)
            if isinstance(model.encoder, EfficientNetPictures):
                find_published()
            seen = _model(config).notes_for(config.section("data", CaptionConfig).size)
            return (*seen, *_notes_on_features(config), f"{data.counts.describe()}.")

        def first_batch(objective: CaptionObjective) -> tuple[str, ...]:
            batch = objective.batches.at(0)
            rows = zip(batch.targets, batch.mask, strict=True)
            return tuple(data.tokenizer.decode(row[mask]).rstrip() for row, mask in rows)

        n_tokens = {
            name: sum(len(data.tokenizer.encode(text)) for text in getattr(data, name).texts)
            for name in ("train", "valid", "test")
        }
        return gradient.rehearse(self, config, data, start, n_tokens=n_tokens, first_batch=first_batch, check=check)

    def fit(self, config: RunConfig, data: PreparedCaptions, fitting: Fitting) -> None:
        gradient.fit(self, config, data, fitting)

    def load(self, opened: OpenRun, weights: dict[str, Tensor], device: torch.device, dtype: torch.dtype) -> CaptionRun:
        return CaptionRun(opened, gradient.load_model(self, opened, weights, device, dtype))

    def test(self, run: CaptionRun, data: PreparedCaptions) -> CaptionEvaluation | None:
        if not len(data.data.test):
            return None
        some = data.data.test.first(MAX_TEST_PICTURES)
        features = features_of(run.config, run.model, data) if keeps_features(run.config) else None
        found = evaluate_captions(run.model, data, some, features=features)
        return replace(found, notes=tell_part(len(some), len(data.data.test), "pictures"))

    def card_rows(self, config: RunConfig, facts: RunFacts, data: PreparedCaptions) -> list[tuple[str, str]]:
        given = config.section("data", CaptionConfig)
        return [("pictures", f"{given.size} x {given.size} pixels, {given.fit}"), ("how much", data.counts.describe())]

    def usage(self, folder: Path, data: PreparedCaptions) -> Usage:
        path, splits = shlex.quote(str(folder)), data.data
        name = (splits.test or splits.valid or splits.train).names[0]
        example = str(Path(splits.config.pictures) / name)
        return Usage(
            shell=(
                f"regard caption {path} {shlex.quote(example)}",
                f"regard caption {path} photos/ --draw attention",
                f"regard eval {path}",
            ),
            python=(f"run.caption({json.dumps(example, ensure_ascii=False)})",),
            files="`model.safetensors` holds all weights, those of the picture encoder too, `tokenizer.json` loads in "
            "Hugging Face `tokenizers`",
        )

    def load_test_set(self, run: CaptionRun, data: Sequence[str] | None, split: str, skips_bad: bool) -> TestSet:
        prepared, pictures = run.pictures_of(data, split, skips_bad)
        about, watched = ", ".join(data or ()), None
        if data is None:
            watched = key_of(prepared.data.valid.captions)
            about = name_split(run.config, split, self.describe_sources(run.config))
        return TestSet(
            about=about,
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

        def decode(numbers: Sequence[int]) -> list[str]:
            seen = torch.from_numpy(prepared.data.squares([pictures.numbers[i] for i in numbers]))
            return [best[0].text for best in write_captions(run.model, run.tokenizer, seen, beam)]

        batches = [chosen[i : i + N_PICTURES] for i in range(0, len(chosen), N_PICTURES)]
        return answer_in_batches(batches, decode, chosen, tell)

    def judge(self, test_set: TestSet, chosen: Sequence[int]) -> Bleu:
        return Bleu([test_set.references[i] for i in chosen], "BLEU-4", is_lowercase=True)

    def export(self, run: CaptionRun, to: Path) -> None:
        raise RegardError(f"'{run.folder}' describes pictures, and there is no form of other programs to export it to.")


def _model(config: RunConfig) -> CaptionerConfig:
    assert isinstance(config.model, CaptionerConfig)
    return config.model


def keeps_features(config: RunConfig) -> bool:
    """Whether each picture is seen once, before training: the encoder is frozen and no picture is cut or mirrored."""
    data = config.section("data", CaptionConfig)
    return _model(config).is_fixed and not (data.flips or data.n_margin)


def _notes_on_features(config: RunConfig) -> list[str]:
    if not _model(config).is_fixed or keeps_features(config):
        return []
    return [
        "data.flips and data.n_margin show a picture anew each time, so the encoder runs at every step although it is "
        "frozen; without them it would run once."
    ]


def features_of(
    config: RunConfig, model: Captioner, data: PreparedCaptions, progress: ProgressBar | None = None
) -> Features:
    """What the frozen encoder sees of every picture: from the cache, or computed where the model will be trained."""
    encoder, n_pictures = model.encoder, len(data.data.pictures)
    assert isinstance(encoder, EfficientNetPictures), "no other encoder is frozen"
    encoder.to(pick_device(config.runtime.device))
    if progress is None:
        return picture_features(encoder, data.data)
    with progress() as draw:
        tell = None if draw is None else lambda n: draw("looking at pictures", n, n_pictures)
        return picture_features(encoder, data.data, tell=tell)


CAPTIONS = CaptionTask()
