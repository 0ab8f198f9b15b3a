"""The job of describing pictures: a network that sees, and a decoder that says what it looks at, word by word."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.config import RunConfig
from regard.data.cache import key_of
from regard.data.caption_config import CaptionConfig
from regard.data.prepared_captions import PreparedCaptions, prepare_captions
from regard.decode.caption import MAX_LENGTH, write_captions
from regard.decode.config import BeamConfig
from regard.errors import RegardError
from regard.models.captioner import Captioner
from regard.models.captioner_config import CaptionerConfig
from regard.models.outline import outline_model
from regard.models.picture_encoder import EfficientNetPictures
from regard.score.judges import Bleu
from regard.settings import Settings
from regard.tasks import gradient
from regard.tasks.caption_objective import (
    N_PICTURES,
    CaptionObjective,
    Features,
)
from regard.tasks.caption_run import CaptionEvaluation, CaptionRun, evaluate_captions
from regard.tasks.initial_weights import InitialWeights, begin_decoder, check_decoder
from regard.tasks.picture_features import picture_features
from regard.tasks.run_facts import RunFacts
from regard.tasks.task import (
    Fitting,
    ProgressBar,
    Rehearsal,
    Usage,
    name_split,
    tell_part,
)
from regard.tasks.test_set import Comparing, Decoding, TestSet, answer_in_batches
from regard.text.learning import Progress
from regard.text.tokenizer import Tokenizer
from regard.training.checkpoint import MODEL, latest_checkpoint
from regard.training.device import pick_device
from regard.training.teaching_config import TeachingConfig
from regard.training.weights import load_weights, read_tensors
from regard.weights.efficientnet_lite import find_published, load_published

MAX_TEST_PICTURES = 1000
"""A run is scored on so many of its test pictures when it ends; `regard eval` takes them all."""

UNUSED = {
    "teaching.max_tokens": "a batch has train.n_batch whole captions",
    "teaching.p_bpe_dropout": "captions are cut into tokens once",
    "train.n_context": "a caption is read whole, up to model.max_context",
    "train.varies_context": "a caption is read whole",
    "train.order": "captions come in random order",
    "train.max_eval_tokens": "the loss is that of all validation captions",
}


class CaptionTask(gradient.GradientTask):
    """Describe pictures."""

    name, verb, summary = "captions", "caption", "describes pictures"
    sections: Mapping[str, type[Settings]] = {"data": CaptionConfig, "teaching": TeachingConfig}
    folders = ("decoder_from",)
    example = "--data photos --data captions.txt"
    run_type = CaptionRun
    comparing = Comparing(items="pictures")

    def name_sources(self, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        if len(names) != 2:
            raise RegardError(
                "The data of a model that describes pictures are two names, their folder and the file of captions, not "
                f"{', '.join(names)}."
            )
        kept = {key: value for key, value in given.items() if key != "train"}
        return {**kept, "pictures": names[0], "captions": names[1]}

    def complete(self, config: RunConfig) -> RunConfig:
        size = config.section("data", CaptionConfig).size
        is_recurrent = outline_model(config.model_name, config.model, 2, size).bridge is not None
        return config.with_section("optimizer", config.optimizer.complete(is_recurrent))

    def check(self, config: RunConfig) -> RunConfig:
        gradient.check_parts(config.train)
        teaching = config.section("teaching", TeachingConfig)
        if teaching.select_by not in ("loss", "bleu"):
            raise RegardError(
                f"teaching.select_by is {teaching.select_by}, which is not for captions. Take loss or bleu."
            )
        _model(config).check_size(config.section("data", CaptionConfig).size)
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

        n_units = {
            name: sum(len(data.tokenizer.encode(text)) for text in getattr(data, name).texts)
            for name in ("train", "valid", "test")
        }
        return gradient.rehearse(self, config, data, start, n_units=n_units, first_batch=first_batch, check=check)

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

    def usage(self, config: RunConfig, folder: Path, data: PreparedCaptions) -> Usage:
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
