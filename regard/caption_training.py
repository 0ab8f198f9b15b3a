"""`regard train` for models that describe pictures: the same folder, loop and promises as for text."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from regard import __version__
from regard import folder as run_folder
from regard.caption_card import write_caption_card
from regard.caption_run import CaptionEvaluation, CaptionRun, evaluate_captions, load_caption_run
from regard.config import RunConfig
from regard.data.prepared_captions import PreparedCaptions, prepare_captions
from regard.decode.caption import MAX_LENGTH
from regard.decode.config import BeamConfig
from regard.decoder_start import begin_decoder, check_decoder
from regard.files import write_atomically
from regard.fitting import fit
from regard.models.captioner import Captioner
from regard.models.captioner_config import CaptionerConfig
from regard.models.picture_encoder import EfficientNetPictures
from regard.models.table import build_picture_model
from regard.plan import Drawing
from regard.start import Start, first_weights_of
from regard.training.caption_task import CaptionTask, Features
from regard.training.checkpoint import MODEL, latest_checkpoint
from regard.training.device import pick_device
from regard.training.memory import check_memory
from regard.training.picture_features import picture_features
from regard.training.progress import Reporter
from regard.training.weights import load_weights, read_tensors
from regard.weights.efficientnet_lite import find_published, load_published

MAX_TEST_PICTURES = 1000
"""A run is scored on so many of its test pictures when it ends; `regard eval` takes them all."""
SEEING = "looking at pictures"


def train_captions(
    config: RunConfig, folder: Path, *, resume: bool, is_tested: bool, progress: Drawing, reporter: Reporter
) -> CaptionRun:
    """Train into `folder`, which was checked to be free or to hold this very run."""
    is_begun = (folder / "config.yaml").exists()
    with progress() as draw:
        if is_begun:
            prepared = run_folder.prepared_captions_again(folder, config, progress=draw)
        else:
            prepared = prepare_captions(config.captions, config.tokenizer, progress=draw)
    for note in (*config.notes(), *_notes_on_seeing(config), f"{prepared.counts.describe()}."):
        reporter.note(note)
    start = first_weights_of(config.decoder_from, folder)
    facts = _rehearsed(config, prepared, start)
    with run_folder.alone_in(folder):
        if not is_begun:
            run_folder.begin(folder, config, prepared.tokenizer, facts)
        features = _fit(config, prepared, folder, resume, start, progress, reporter)
        return _finished(config, prepared, folder, is_tested, features)


def keeps_features(config: RunConfig) -> bool:
    """Whether each picture is seen once, before training: the encoder is frozen and no picture is cut or mirrored."""
    assert isinstance(config.model, CaptionerConfig)
    return config.model.is_fixed and not (config.captions.flips or config.captions.n_margin)


def _notes_on_seeing(config: RunConfig) -> list[str]:
    assert isinstance(config.model, CaptionerConfig)
    if not config.model.is_fixed or keeps_features(config):
        return []
    return [
        "data.flips and data.n_margin show a picture anew each time, so the encoder runs at every step although it is "
        "frozen; without them it would run once."
    ]


def task_of(
    config: RunConfig, model: Captioner, prepared: PreparedCaptions, features: Features | None = None
) -> CaptionTask:
    assert config.teaching is not None, "a model that describes pictures is taught"
    return CaptionTask(model, prepared, config.train, config.teaching, config.seed, features)


def outline(config: RunConfig, prepared: PreparedCaptions) -> Captioner:
    """The model with shapes and no memory."""
    with torch.device("meta"):
        return build(config, prepared)


def build(config: RunConfig, prepared: PreparedCaptions) -> Captioner:
    return build_picture_model(config.model_name, config.model, prepared.tokenizer.vocab_size, config.captions.size)


def _rehearsed(config: RunConfig, prepared: PreparedCaptions, start: Start | None) -> run_folder.RunFacts:
    """All that can be refused is refused here, with no weights allocated and before anything is written."""
    network = outline(config, prepared)
    if start is not None:
        check_decoder(network, prepared.tokenizer, start)
    if isinstance(network.encoder, EfficientNetPictures):
        find_published()
    task = task_of(config, network, prepared)
    needed = task.memory(network, config.optimizer, config.runtime)
    check_memory(needed, config.runtime, pick_device(config.runtime.device), task.sizes)
    return run_folder.RunFacts(
        format=run_folder.FORMAT,
        regard=__version__,
        model=config.model_name,
        vocab_size=prepared.tokenizer.vocab_size,
        tokenizer=prepared.tokenizer.hash,
        data=prepared.fingerprint,
        n_parameters=network.n_parameters,
        flops_per_token=task.flops_per_token,
        started_from=None if start is None else str(start.path),
        started_weights=None if start is None else start.sha256,
    )


def _fit(
    config: RunConfig,
    prepared: PreparedCaptions,
    folder: Path,
    resume: bool,
    start: Start | None,
    progress: Drawing,
    reporter: Reporter,
) -> Features | None:
    """Train; what a frozen encoder saw of all pictures comes back, if it was kept."""
    torch.manual_seed(config.seed)
    network = build(config, prepared)
    if start is not None:
        begin_decoder(network, start)
    before = latest_checkpoint(folder)
    if before is not None:
        load_weights(network, read_tensors(before / MODEL), before / MODEL)
    elif isinstance(network.encoder, EfficientNetPictures):
        load_published(network.encoder.network)
    features = features_of(config, network, prepared, progress) if keeps_features(config) else None
    fit(config, network, task_of(config, network, prepared, features), folder, resume=resume, reporter=reporter)
    return features


def features_of(config: RunConfig, network: Captioner, prepared: PreparedCaptions, progress: Drawing) -> Features:
    """What the frozen encoder sees of every picture: from the cache, or computed where the model will be trained."""
    encoder, n_pictures = network.encoder, len(prepared.data.pictures)
    assert isinstance(encoder, EfficientNetPictures), "no other encoder is frozen"
    encoder.to(pick_device(config.runtime.device))
    with progress() as draw:
        tell = None if draw is None else lambda n: draw(SEEING, n, n_pictures)
        return picture_features(encoder, prepared.data, tell=tell)


def _finished(
    config: RunConfig, prepared: PreparedCaptions, folder: Path, is_tested: bool, features: Features | None
) -> CaptionRun:
    """The run, loaded, with its test score and its card written."""
    run = load_caption_run(folder)
    test: CaptionEvaluation | None = None
    if is_tested and len(prepared.data.test):
        some = prepared.data.test.first(MAX_TEST_PICTURES)
        test = evaluate_captions(run.model, prepared, some, BeamConfig(max_length=MAX_LENGTH), features)
        write_atomically(folder / "test.json", (json.dumps(test.to_dict(), indent=2) + "\n").encode())
    write_caption_card(folder, config, run.facts, prepared, test)
    return run
