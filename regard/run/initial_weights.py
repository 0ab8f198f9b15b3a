"""Where a run starts from: the weights, the model and the tokenizer of another run or of a Hugging Face folder.

In a config it is one key. With `start_from: FOLDER` the model and the tokenizer come from there, what is said about
them beside it must agree, and what is left open about the training is set as for fine-tuning. With `decoder_from:
FOLDER` the decoder of a model with a source begins as that language model, in its vocabulary. With `encoder_from:
FOLDER` a task reads its texts by the model in the folder, frozen or fine-tuned.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.config import RunConfig, folder_of, mapping
from regard.errors import RegardError
from regard.models.encoder import Encoder
from regard.models.table import build_model, model_entry
from regard.run.folder import load_config, open_folder
from regard.settings import Settings
from regard.tasks.initial_weights import InitialWeights
from regard.tasks.run_facts import IMPORTED, check_has_weights, read_facts
from regard.tasks.table import build_config, choose_task, task_of
from regard.text.config import TokenizerConfig
from regard.text.tokenizer import Tokenizer
from regard.training.checkpoint import latest_checkpoint
from regard.training.config import OptimizerConfig
from regard.weights import hugging_face

MAY_DIFFER = ("p_dropout",)
LIMITS = ("max_steps", "max_tokens", "max_seconds", "max_epochs")
KEPT = (
    "n_batch", "n_context", "varies_context", "n_accumulate", "order", "average", "average_decay", "average_patience",
)  # fmt: skip
"""Keys of a run's `train` section that say how it is trained, and not for how long."""


def open_initial_weights(path: Path) -> InitialWeights:
    """What a folder holds: a run of a language model, of a masked one or of ELMo, or a Hugging Face folder."""
    hugging_face.check_folder(path)
    if hugging_face.is_hugging_face(path):
        found = hugging_face.read_config(path)
        tokenizer, note = found.tokenizer, " ".join(filter(None, (found.note, found.left_out)))
        settings = TokenizerConfig(kind=tokenizer.kind, vocab_size=tokenizer.vocab_size, path=str(path))
        return InitialWeights(path, False, found.model_name, found.config, tokenizer, settings.to_dict(), note=note)
    opened = open_folder(path)
    run = opened.config
    if "start_from" not in task_of(run).folders:
        raise RegardError(
            f"'{path}' is a run of {run.model_name} for {run.task}, and no language model. Give a run of a language "
            "model, an ELMo, or a Hugging Face folder of GPT-2 or BERT."
        )
    if model_entry(run.model_name).is_counted:
        raise RegardError(
            f"'{path}' is a run of {run.model_name}: counts are no weights to start from. Give a run of another model, "
            "or a Hugging Face folder of GPT-2 or BERT."
        )
    check_has_weights(path)
    settings = run.tokenizer.replace(path=str(path))
    trained = {} if opened.facts.data == IMPORTED else _list_training(run)
    is_tuned = run.folders.get("start_from") is not None
    model, tokenizer = (run.model_name, run.model), opened.tokenizers[0]
    return InitialWeights(path, True, *model, tokenizer, settings.to_dict(), trained, is_tuned, facts=opened.facts)


def load_encoder(folder: Path) -> tuple[Encoder, Tokenizer, str, Settings]:
    """The pre-trained model of a folder, which gives states by layer, its tokenizer, its name and its settings."""
    start = open_initial_weights(folder)
    _ = start.weights  # read first: their shapes are compared with the config's before memory is taken for a model
    model = build_model(start.model_name, start.model, start.tokenizer.vocab_size)
    start.load_into(model)
    return model.eval(), start.tokenizer, start.model_name, start.model


def _open_begun(folder: Path) -> InitialWeights:
    """What the run in `folder` took from where it started; that need not be there any more."""
    opened = open_folder(folder)
    config, path = opened.config, opened.config.folders["start_from"]
    assert path is not None
    settings, trained = config.tokenizer.to_dict(), _list_training(config)
    model, tokenizer = (config.model_name, config.model), opened.tokenizers[0]
    return InitialWeights(Path(path), True, *model, tokenizer, settings, trained, has_small_rate=True)


def find_initial_weights(config: RunConfig, folder: Path | None = None) -> InitialWeights | None:
    """What a run takes its first weights from; None: random ones, or the run in `folder` has a saved state already."""
    path = next((path for path in config.folders.values() if path is not None), None)
    if path is None or (folder is not None and latest_checkpoint(folder) is not None):
        return None
    start = open_initial_weights(Path(path))
    if folder is not None and (folder / "config.yaml").exists():
        before = read_facts(folder).started_weights
        if before != start.sha256:
            raise RegardError(
                f"The weights in '{start.path}' are not those that '{folder}' was begun with (sha256 "
                f"{start.sha256[:12]}, then {str(before)[:12]}). Restore the old ones, or train a new run."
            )
    return start


def _list_training(run: RunConfig) -> dict[str, dict[str, Any]]:
    own = run.train.to_dict()
    return {
        "train": {name: own[name] for name in KEPT},
        "optimizer": run.optimizer.to_dict(),
        "schedule": run.schedule.to_dict(),
    }


def apply_start(given: Mapping[str, Any], begun: Path | None) -> Mapping[str, Any]:
    """A plain config with all that follows from the folder it starts from, if it names one.

    A run that is in `begun` already has all that it took from there: that folder need not be there any more.
    """
    if (path := folder_of(given, "start_from")) is not None:
        before = None if begun is None else load_config(begun / "config.yaml")
        is_begun = before is not None and before.folders.get("start_from") == path
        start = _open_begun(begun) if begun is not None and is_begun else open_initial_weights(Path(path))
        if not is_begun:
            _check_context(mapping(given, "train").get("n_context"), start)
        given = _start_from(given, start)
    return _take_vocabulary(_take_encoder(given, begun), begun)


def _take_encoder(given: Mapping[str, Any], begun: Path | None) -> Mapping[str, Any]:
    """A plain config whose texts are read by the model of a folder, in its vocabulary, where it names one."""
    path = folder_of(given, "encoder_from")
    if path is None:
        return given
    before = None if begun is None else load_config(begun / "config.yaml")
    if before is not None and before.folders.get("encoder_from") == path:  # that folder need not be there any more
        own = before.to_dict()
        return {**given, "model": own["model"], "tokenizer": own["tokenizer"]}
    start = open_initial_weights(Path(path))
    model = {"name": start.model_name, **start.model.to_dict()}
    _check_agree("model", mapping(given, "model"), model, start, "Only model.p_dropout may differ.")
    _check_agree("tokenizer", mapping(given, "tokenizer"), start.tokenizer_settings, start, "")
    tokenizer = {**start.tokenizer_settings, **mapping(given, "tokenizer")}
    return {**given, "model": {**model, **mapping(given, "model")}, "tokenizer": tokenizer}


def _start_from(given: Mapping[str, Any], start: InitialWeights) -> dict[str, Any]:
    """A plain config that starts from `start`: complete in its model and tokenizer, or refused where it contradicts."""
    model = {"name": start.model_name, **start.model.to_dict()}
    own_model = mapping(given, "model")
    if own_model.get("name") is not None and "start_from" not in choose_task(given).folders:
        raise RegardError(
            f"'start_from' is for language models, and {own_model['name']} is none. To let its decoder begin as "
            f"'{start.path}', set decoder_from instead."
        )
    _check_agree("model", own_model, model, start, "Only model.p_dropout may differ.")
    tokenizer, own_tokenizer = start.tokenizer_settings, mapping(given, "tokenizer")
    _check_agree("tokenizer", own_tokenizer, tokenizer, start, "")
    tuned = _choose_fine_tuning(start, given)
    sections = {name: {**tuned[name], **mapping(given, name)} for name in tuned}
    return {**given, **sections, "model": {**model, **own_model}, "tokenizer": {**tokenizer, **own_tokenizer}}


def _check_agree(
    section: str, own: Mapping[str, Any], found: Mapping[str, Any], start: InitialWeights, more: str
) -> None:
    for key, value in own.items():
        if key in found and value != found[key] and key not in MAY_DIFFER:
            raise RegardError(
                f"{section}.{key} is {value!r} here and {found[key]!r} in '{start.path}', which the run starts from. "
                f"Leave it out: the {section} comes from there. {more}".rstrip()
            )


def _check_context(n_context: Any, start: InitialWeights) -> None:
    limit = start.outline().max_positions
    if limit is not None and isinstance(n_context, int) and n_context > limit:
        raise RegardError(
            f"train.n_context is {n_context}, but the model in '{start.path}', which the run starts from, sees at most "
            f"{limit} tokens. Lower it to {limit} or less."
        )


def _choose_fine_tuning(start: InitialWeights, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What suits weights that know much already; everything else keeps its own default.

    For a GPT-2 that was not trained here a rate of 5e-5, 8 sequences an update and 3 passes over the text, as in
    Hugging Face's own example; the sequences one after the other, since 8 x 1,024 tokens at once take 21 GB for the
    smallest. Runs are trained as they were, at a tenth of the rate; the second time at the rate of the first.
    """
    train = mapping(given, "train")
    sections: dict[str, dict[str, Any]] = {
        **start.trained,
        "optimizer": _choose_optimizer(start, mapping(given, "optimizer")),
    }
    sections["train"] = {**start.trained.get("train", {}), "eval_every": 50}
    if not start.trained:
        n_batch = train.get("n_batch", 8)
        sections["train"] |= {"n_batch": n_batch, "n_accumulate": min(8, n_batch) if isinstance(n_batch, int) else 1}
    if not any(train.get(name) is not None for name in LIMITS):
        sections["train"]["max_epochs"] = 3.0
    return sections


def _choose_optimizer(start: InitialWeights, given: Mapping[str, Any]) -> dict[str, Any]:
    """The run's own optimizer section; of another update rule the defaults, since a rate or decay is for one rule."""
    before = OptimizerConfig.from_dict(start.trained.get("optimizer", {}))
    name = OptimizerConfig.from_dict(given, "optimizer").name if "name" in given else before.name
    is_same_rule = name == before.name
    if is_same_rule and not start.trained:
        return {"lr": 5e-5}
    base = before if is_same_rule else OptimizerConfig(name=name)
    share = 1.0 if is_same_rule and start.has_small_rate else 0.1
    model = {"name": start.model_name, **start.model.to_dict()}
    given = {"model": model, "tokenizer": start.tokenizer_settings, "data": {"train": str(start.path)}}
    config = build_config({**given, "optimizer": base.to_dict()})
    whole = task_of(config).complete(config).optimizer
    assert whole.lr is not None
    return whole.to_dict() | {"lr": share * whole.lr}


def _take_vocabulary(given: Mapping[str, Any], begun: Path | None) -> Mapping[str, Any]:
    """A plain config whose targets are in the vocabulary of the model that its decoder begins as, where it names one.

    What the config says about the target's vocabulary itself stays as it is. Of a run that is in `begun` already it is
    known which one that was.
    """
    path = folder_of(given, "decoder_from")
    if path is None or mapping(given, "model").get("name") is None:
        return given
    task = choose_task(given)
    if "decoder_from" not in task.folders:
        return given
    section = "target_tokenizer" if "target_tokenizer" in task.sections else "tokenizer"
    is_one_vocabulary = section == "target_tokenizer" and mapping(given, "tokenizer").get("path") is not None
    if mapping(given, section) or is_one_vocabulary:
        return given
    before = None if begun is None else load_config(begun / "config.yaml")
    if before is not None and before.folders.get("decoder_from") == path:
        return {**given, section: before.to_dict()[section]}
    return {**given, section: open_initial_weights(Path(path)).tokenizer_settings}
