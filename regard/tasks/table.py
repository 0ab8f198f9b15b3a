"""The jobs that Regard does, by name, and the config of a run, whose sections its job decides.

A new kind of job is a file in this folder, a model in `regard/models`, and a line here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from regard.config import COMMON, RunConfig, folder_of, mapping
from regard.data.config import OF_ONE_SOURCE
from regard.errors import RegardError, nearest
from regard.models.table import MODELS, model_entry
from regard.settings import FieldHelp, Settings, suggest_setting
from regard.tasks.answering import ANSWERING, AnsweringRun
from regard.tasks.bidirectional import BIDIRECTIONAL
from regard.tasks.bidirectional_run import BidirectionalRun
from regard.tasks.caption_run import CaptionRun
from regard.tasks.captions import CAPTIONS
from regard.tasks.classification import CLASSIFICATION, ClassificationRun
from regard.tasks.language_model import LANGUAGE_MODEL
from regard.tasks.language_model_run import LanguageModelRun
from regard.tasks.masked_language_model import MASKED_LANGUAGE_MODEL
from regard.tasks.masked_language_model_run import MaskedLanguageModelRun
from regard.tasks.parsing import PARSING, ParsingRun
from regard.tasks.rating import RATING, RatingRun
from regard.tasks.tagging import TAGGING, TaggingRun
from regard.tasks.task import Task
from regard.tasks.translation import TRANSLATION, TranslationRun
from regard.tasks.word_vectors import WORD_VECTORS
from regard.tasks.word_vectors_run import WordVectorsRun
from regard.untrusted.values import has_lone_surrogate, quote

TASKS: dict[str, Task] = {
    "language-model": LANGUAGE_MODEL,
    "translation": TRANSLATION,
    "parsing": PARSING,
    "captions": CAPTIONS,
    "classification": CLASSIFICATION,
    "rating": RATING,
    "tagging": TAGGING,
    "answering": ANSWERING,
    "bidirectional-language-model": BIDIRECTIONAL,
    "masked-language-model": MASKED_LANGUAGE_MODEL,
    "word-vectors": WORD_VECTORS,
}
SHORT_NAMES = {"classify": "classification", "rate": "rating", "tag": "tagging", "answer": "answering"}
"""What a task may be called too."""

AnyRun = (
    LanguageModelRun | TranslationRun | ParsingRun | CaptionRun | BidirectionalRun | MaskedLanguageModelRun
    | ClassificationRun | RatingRun | TaggingRun | AnsweringRun | WordVectorsRun
)  # fmt: skip
"""What `regard.load` returns; which of them, the run's task decides."""


def task_of(config: RunConfig) -> Task:
    return TASKS[config.task]


def choose_task(given: Mapping[str, Any]) -> Task:
    """The task that a plain config is for: the one it names, or the first of its model's that recognises the data."""
    model_name = mapping(given, "model").get("name")
    if not isinstance(model_name, str):
        raise RegardError(f"'model.name' is required: one of {', '.join(MODELS)}; on the command line, --model NAME.")
    entry = model_entry(model_name)
    if given.get("task") is None:
        return next(TASKS[task] for task in entry.tasks if TASKS[task].recognises(given))
    name = task_name(given["task"])
    if name not in entry.all_tasks:
        raise RegardError(
            f"The model {model_name} is not for the task {name}, but for {_join(entry.tasks)}. Take another model, or "
            "leave out `task`."
        )
    return TASKS[name]


def task_name(given: Any) -> str:
    """The name of a task, which may be given by its short one.

    >>> task_name("classify"), task_name("parsing")
    ('classification', 'parsing')
    """
    name = SHORT_NAMES.get(given, given) if isinstance(given, str) else given
    if not isinstance(name, str) or name not in TASKS:
        long = ", ".join(name for name in TASKS if name not in SHORT_NAMES.values())
        raise RegardError(
            f"There is no task {quote(given)}.{nearest(str(given), (*TASKS, *SHORT_NAMES))} With --task: "
            f"{', '.join(SHORT_NAMES)}; in a recipe also: {long}."
        )
    return name


def build_config(
    given: Mapping[str, Any], *, is_new: bool = False, is_complete: bool = False, begun: RunConfig | None = None
) -> RunConfig:
    """The complete config that a recipe describes, checked.

    In that of a run that `is_new`, settings that were left open follow from others that were set; in that of one that
    goes on they are those of the config that it was `begun` with. Where `is_complete`, it is a run folder's
    `config.yaml`: settings that it does not name are younger than the run.
    """
    if not isinstance(given, Mapping):
        raise RegardError(f"A run config must be a mapping with the keys {', '.join(_all_keys())}, not {quote(given)}.")
    for key in given:
        if key == "contenders":
            raise RegardError("'contenders' belongs in a comparison, which `regard compare FILE` runs.")
        if key not in _all_keys():
            raise RegardError(
                f"Unknown key '{key}'.{suggest_setting(str(key), _all_keys())} Allowed here: {', '.join(_all_keys())}."
            )
    _refuse_names_without_text(given)
    seed = given.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise RegardError(f"'seed' must be a whole number from 0 to 2^63 - 1, not {quote(seed)}.")
    task = choose_task(given)
    if not is_complete:
        own = task.defaults(given)
        given = {**given, **{name: {**values, **mapping(given, name)} for name, values in own.items()}}
    given = task.adapt(given) if is_new else given
    given = given if begun is None else _leave_as_begun(task, given, begun)
    model = dict(mapping(given, "model"))
    entry = model_entry(model_name := model.pop("name"))
    _refuse_foreign(given, task, model_name)
    config = RunConfig(
        task=task.name,
        seed=seed,
        model_name=model_name,
        model=entry.config.from_dict(model, "model"),
        sections={
            name: None
            if name in task.optional and given.get(name) is None
            # A section that is missing from a whole config is not used: its defaults are not those of an older version.
            else (kind.from_complete if is_complete and name in given else kind.from_dict)(mapping(given, name), name)
            for name, kind in sections_of(task).items()
        },
        folders={key: folder_of(given, key) for key in task.folders},
    )
    config = task.check(config)
    return replace(config, unused=task.list_unused(config))


def _refuse_names_without_text(given: Mapping[str, Any]) -> None:
    """Refuse file names that config.yaml, which is UTF-8, could not hold: the run could not be opened again."""
    for key, value in given.items():
        for name, inner in value.items() if isinstance(value, Mapping) else [("", value)]:
            if has_lone_surrogate(inner):
                where = f"{key}.{name}" if name else key
                raise RegardError(f"{where} must be UTF-8 text, not {quote(inner)}. If it names a file, rename that.")


def _leave_as_begun(task: Task, given: Mapping[str, Any], begun: RunConfig) -> Mapping[str, Any]:
    """The plain config with what a new run would derive from other settings as the run that was begun has it."""
    try:
        adapted = task.adapt(given)
    except RegardError:  # a rule that is younger than the run
        return given
    before, filled = begun.to_dict(), dict(given)
    for name, values in adapted.items():
        if isinstance(values, Mapping) and isinstance(before.get(name), Mapping):
            own = mapping(given, name)
            derived = {key: before[name][key] for key in values if key not in own and key in before[name]}
            filled[name] = {**own, **derived}
    return filled


def name_sources(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The plain config with other sources, what `--data` names, in the form that the tasks of its model share.

    Splits of their own are those of the sources before. Without a model, `names` are the training data.
    """
    kept = {k: v for k, v in mapping(given, "data").items() if k not in OF_ONE_SOURCE}
    model_name = mapping(given, "model").get("name")
    if not isinstance(model_name, str):  # it comes from elsewhere, or `build_config` says that it is missing
        return {**given, "data": {**kept, "train": names[0] if len(names) == 1 else list(names)}}
    task = model_entry(model_name).tasks[0] if given.get("task") is None else task_name(given["task"])
    return {**given, "data": TASKS[task].name_sources(kept, names)}


def sections_of(task: Task) -> dict[str, type[Settings]]:
    """All config sections of a task but `model`, in the order in which they are written."""
    own = dict(task.sections)
    return {"data": own.pop("data"), "tokenizer": COMMON["tokenizer"], **own, **COMMON}


def example_config(model_name: str) -> RunConfig:
    """A config of a model with every default, for its first task whose example data it recognises."""
    task = TASKS[model_entry(model_name).tasks[-1]]
    data = task.name_sources({}, task.example.replace("--data ", "").split())
    return build_config({"task": task.name, "model": {"name": model_name}, "data": data}, is_new=True)


def list_settings(config: RunConfig) -> dict[str, list[FieldHelp]]:
    """Every setting by section, without those that do nothing for the config's task and model."""
    kinds = {"model": type(config.model), **sections_of(task_of(config))}
    return {
        name: [line for line in kind.help() if f"{name}.{line.name}" not in config.unused]
        for name, kind in kinds.items()
        if name not in config.unused
    }


def _all_keys() -> list[str]:
    keys = ["task", "seed"]
    for task in TASKS.values():
        keys += [key for key in (*task.folders, *sections_of(task), "model") if key not in keys]
    return keys


def _refuse_foreign(given: Mapping[str, Any], task: Task, model_name: str) -> None:
    """Refuse a key that only other tasks have, unless it is null."""
    allowed = {"task", "seed", "model", *task.folders, *sections_of(task)}
    for key, value in given.items():
        if key not in allowed and value is not None:
            owners = [t.name for t in TASKS.values() if key in (*t.folders, *t.sections)]
            raise RegardError(
                f"'{key}' is only for {_join(owners)}, and the model {model_name} is for {task.name}. Leave it out."
            )
        if key in sections_of(task):
            mapping(given, key)  # a section that is none is refused before what it would hold


def _join(names: Sequence[str]) -> str:
    """
    >>> _join(["translation", "parsing", "captions"])
    'translation, parsing and captions'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
