"""The complete description of a run: YAML in, `--set a.b=c` on top, every default written out again.

    seed: 0
    start_from: null     # or a folder: a run, or a Hugging Face GPT-2, whose model, tokenizer and weights are taken
    data: {train: my.txt}
    tokenizer: {kind: bpe, vocab_size: 4096}
    model: {name: lstm, d_model: 256, n_layers: 2}
    optimizer: ...   schedule: ...   train: ...   runtime: ...   checkpoint: ...

Models that read pairs have other data, and three keys more:

    decoder_from: null        # or a folder: a run, or a Hugging Face GPT-2, that the decoder begins as
    data: {train: [train.en, train.de]}
    target_tokenizer: null    # null: source and target share one vocabulary; brackets of trees have their own
    teaching: {smoothing: 0.1}

Models that describe pictures have the first and the last of these, and

    data: {pictures: photos/, captions: captions.txt, size: 160}

Each section is the config class of the room it belongs to; unknown keys are refused with the nearest valid name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import yaml

from regard.data.caption_config import CaptionConfig
from regard.data.config import DataConfig
from regard.data.pairs_config import PairsConfig
from regard.errors import RegardError, nearest
from regard.mixers.looking_back_config import PointerConfig
from regard.models.captioner_config import CaptionerConfig
from regard.models.table import MODEL_NAMES, model_config, model_entry
from regard.settings import Settings, suggest_setting
from regard.text.config import KINDS_WITH_UNK, TokenizerConfig
from regard.training.config import CheckpointConfig, OptimizerConfig, RuntimeConfig, ScheduleConfig, TrainConfig
from regard.training.teaching_config import TeachingConfig

SECTIONS: dict[str, type[Settings]] = {
    "data": DataConfig,
    "tokenizer": TokenizerConfig,
    "optimizer": OptimizerConfig,
    "schedule": ScheduleConfig,
    "train": TrainConfig,
    "runtime": RuntimeConfig,
    "checkpoint": CheckpointConfig,
}
"""Every section but `model`, whose class depends on `model.name`, of a model that reads text."""

PAIR_SECTIONS: dict[str, type[Settings]] = SECTIONS | {
    "data": PairsConfig,
    "target_tokenizer": TokenizerConfig,
    "teaching": TeachingConfig,
}
"""The same of a model that reads pairs."""

PICTURE_SECTIONS: dict[str, type[Settings]] = SECTIONS | {"data": CaptionConfig, "teaching": TeachingConfig}
"""The same of a model that describes pictures."""

SECTIONS_OF = {"text": SECTIONS, "pairs": PAIR_SECTIONS, "pictures": PICTURE_SECTIONS}

FOLDERS = ("start_from", "decoder_from")
KEYS = (
    "seed", *FOLDERS, "data", "tokenizer", "target_tokenizer", "model", "teaching", "optimizer", "schedule", "train",
    "runtime", "checkpoint",
)  # fmt: skip
FOR_PAIRS = ("decoder_from", "target_tokenizer", "teaching")
KEYS_OF = {
    reads: tuple(key for key in KEYS if key not in missing)
    for reads, missing in {"text": FOR_PAIRS, "pairs": (), "pictures": ("target_tokenizer",)}.items()
}
"""What a config may hold, by what its model reads."""


UNUSED: dict[str, dict[str, str]] = {
    "text": {},
    "pairs": {
        "train.n_batch": "a batch has as many pairs as make teaching.max_tokens tokens",
        "train.n_context": "a pair is read whole, up to data.max_length and model.max_context",
        "train.varies_context": "a pair is read whole",
        "train.order": "pairs come in random order, like lengths together",
        "train.max_eval_tokens": "the loss is that of all validation pairs",
    },
    "pictures": {
        "teaching.max_tokens": "a batch has train.n_batch whole captions",
        "teaching.p_bpe_dropout": "captions are cut into tokens once",
        "train.n_context": "a caption is read whole, up to model.max_context",
        "train.varies_context": "a caption is read whole",
        "train.order": "captions come in random order",
        "train.max_eval_tokens": "the loss is that of all validation captions",
    },
}
"""What other models are trained by and these are not, and why."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """All that decides what a run computes."""

    seed: int
    start_from: str | None
    data: DataConfig | PairsConfig | CaptionConfig
    tokenizer: TokenizerConfig
    model_name: str
    model: Settings
    optimizer: OptimizerConfig
    schedule: ScheduleConfig
    train: TrainConfig
    runtime: RuntimeConfig
    checkpoint: CheckpointConfig
    target_tokenizer: TokenizerConfig | None = None
    teaching: TeachingConfig | None = None
    decoder_from: str | None = None

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        if not isinstance(given, Mapping):
            raise RegardError(f"A run config must be a mapping with the keys {', '.join(KEYS)}, not {given!r}.")
        for key in given:
            if key not in KEYS:
                raise RegardError(
                    f"Unknown key '{key}'.{suggest_setting(str(key), KEYS)} Allowed here: {', '.join(KEYS)}."
                )
        seed = given.get("seed", 0)
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise RegardError(f"'seed' must be a whole number from 0 to 2^63 - 1, not {seed!r}.")
        folders = {key: folder_of(given, key) for key in FOLDERS}
        for key in KEYS[3:]:
            mapping(given, key)  # a section that is none is refused before what it would hold
        model = dict(mapping(given, "model"))
        model_name = model.pop("name", None)
        if not isinstance(model_name, str):
            raise RegardError(f"'model.name' is required: one of {', '.join(MODEL_NAMES)}.")
        reads = model_entry(model_name).reads
        kinds = dict(SECTIONS_OF[reads])
        if reads == "pairs" and given.get("target_tokenizer") is None:
            del kinds["target_tokenizer"]  # one vocabulary for both sides, unless the targets are trees
        for key in FOR_PAIRS:
            if key not in KEYS_OF[reads] and given.get(key) is not None:
                raise RegardError(
                    f"'{key}' is for models that read pairs, and {model_name} reads {reads}: leave it out."
                )
        sections = {name: kind.from_dict(mapping(given, name), name) for name, kind in kinds.items()}
        if isinstance(pairs := sections["data"], PairsConfig) and pairs.has_trees:
            sections["target_tokenizer"] = tokenizer_of_trees(sections.get("target_tokenizer"))
        elif isinstance(teaching := sections.get("teaching"), TeachingConfig) and teaching.select_by == "f1":
            raise RegardError("teaching.select_by is f1, which is for trees (data.format: trees). Take loss or bleu.")
        train = sections["train"]
        assert isinstance(train, TrainConfig)
        if reads != "pairs" and train.n_accumulate > train.n_batch:  # of pairs a batch has no fixed number
            raise RegardError(
                f"train.n_accumulate {train.n_accumulate} is more than train.n_batch {train.n_batch}, and it is the "
                "number of parts a batch is computed in. Lower it or raise train.n_batch."
            )
        chosen = model_config(model_name, model)
        if isinstance(chosen, CaptionerConfig) and isinstance(pictures := sections["data"], CaptionConfig):
            chosen.seeing(pictures.size)  # which it must be able to take
        tokenizer = sections["tokenizer"]
        assert isinstance(tokenizer, TokenizerConfig)
        if tokenizer.path is None:  # what a file holds is checked once it is read
            check_unknown_words(chosen, tokenizer.kind)
        return cls(seed=seed, **folders, model_name=model_name, model=chosen, **sections)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """Plain values in the order a reader would want them, every default written out."""
        whole: dict[str, Any] = {}
        for key in KEYS_OF[model_entry(self.model_name).reads]:
            value = getattr(self, key)
            whole[key] = value.to_dict() if isinstance(value, Settings) else value
        whole["model"] = {"name": self.model_name, **whole["model"]}
        return whole

    @property
    def reads_pairs(self) -> bool:
        return model_entry(self.model_name).reads == "pairs"

    @property
    def reads_pictures(self) -> bool:
        return model_entry(self.model_name).reads == "pictures"

    @property
    def text(self) -> DataConfig:
        """The data of a model that reads text."""
        assert isinstance(self.data, DataConfig), f"{self.model_name} reads pairs"
        return self.data

    @property
    def pairs(self) -> PairsConfig:
        """The data of a model that reads pairs."""
        assert isinstance(self.data, PairsConfig), f"{self.model_name} reads text"
        return self.data

    @property
    def captions(self) -> CaptionConfig:
        """The data of a model that describes pictures."""
        assert isinstance(self.data, CaptionConfig), f"{self.model_name} reads no pictures"
        return self.data

    def to_yaml(self) -> str:
        """Ends with YAML's own end mark, by which a file that was cut short is told from a whole one."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True, width=110, explicit_end=True)

    def notes(self) -> list[str]:
        """What is set and changes nothing, as sentences."""
        sections = ("data", "model", "teaching")
        own = {name: section for name in sections if (section := getattr(self, name)) is not None}
        notes = [f"{name}.{note}" for name, section in own.items() for note in section.notes()]
        if isinstance(self.model, CaptionerConfig):
            notes += self.model.notes_for(self.captions.size)
        for key, why in UNUSED[model_entry(self.model_name).reads].items():
            name, field = key.split(".")
            section = getattr(self, name)
            if getattr(section, field) != section.help_of(field).default:
                notes.append(f"{key} changes nothing: {why}.")
        return notes

    def replace(self, **changes: Any) -> Self:
        return replace(self, **changes)


def folder_of(given: Mapping[str, Any], key: str) -> str | None:
    """The folder that a plain config starts from (`start_from`), or whose model its decoder begins as."""
    folder = given.get(key)
    if folder is not None and (not isinstance(folder, str) or not folder):
        raise RegardError(f"'{key}' must be a folder, a run's or a Hugging Face GPT-2's, or null, not {folder!r}.")
    return folder


def tokenizer_of_trees(given: Settings | None) -> TokenizerConfig:
    """Brackets and slots are whole words, and all are needed: what was opened must be closed."""
    whole = TokenizerConfig(kind="word", vocab_size=None)
    if given is None:
        return whole
    assert isinstance(given, TokenizerConfig)
    if given.path is None and given.replace(max_bytes=whole.max_bytes) != whole:
        raise RegardError(
            "The targets are trees, whose vocabulary is every bracket as a word of its own: target_tokenizer must be "
            "{kind: word, vocab_size: null}, or be left out."
        )
    return given


def check_unknown_words(model: Settings, kind: str, where: str = "tokenizer.kind") -> None:
    """Words that a model leaves out are read as <unk>, so the tokenizer must be of a kind that has it."""
    n_vocab = model.n_vocab if isinstance(model, PointerConfig) else None
    if n_vocab is not None and kind not in KINDS_WITH_UNK:
        raise RegardError(
            f"model.n_vocab {n_vocab} leaves tokens out that are read as <unk>, and only {' and '.join(KINDS_WITH_UNK)}"
            f" tokenizers have <unk>; {where} is {kind}. Leave out model.n_vocab, or take one of these tokenizers."
        )


def load_config(path: Path) -> RunConfig:
    """The config that a recipe or a run folder's `config.yaml` describes."""
    return RunConfig.from_dict(read_yaml(path))


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; what is wrong with it, and where, if it is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        folder = path.parent if str(path.parent) else Path(".")
        siblings = [p.name for p in folder.iterdir()] if folder.is_dir() else []
        raise RegardError(f"There is no file '{path}'.{nearest(path.name, siblings)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RegardError(f"'{path}' cannot be read as a YAML recipe: {error}.") from None
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        raise RegardError(f"'{path}' is not valid YAML{where}: {problem}.") from None
    if not isinstance(value, dict):
        raise RegardError(
            f"'{path}' must hold a mapping of keys to values (seed, data, model, ...), not {value!r:.60}."
        )
    return value


def with_settings(
    given: Mapping[str, Any], assignments: Sequence[str], example: str = "model.d_model=256 or seed=1"
) -> dict[str, Any]:
    """A copy of the plain config with `a.b=c` assignments laid on top; values are read as YAML.

    `example` is what the error says to who forgot the value.

    >>> with_settings({"model": {"name": "lstm"}}, ["model.n_layers=2", "seed=7"])
    {'model': {'name': 'lstm', 'n_layers': 2}, 'seed': 7}
    """
    result = {k: dict(v) if isinstance(v, Mapping) else v for k, v in given.items()}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys) or len(keys) > 2:
            raise RegardError(f"--set takes KEY=VALUE such as {example}, not '{assignment}'.")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            raise RegardError(f"The value in --set {assignment} cannot be read as YAML; quote it.") from None
        if len(keys) == 1:
            result[keys[0]] = value
            continue
        section = result[keys[0]] = {} if result.get(keys[0]) is None else result[keys[0]]
        if not isinstance(section, dict):
            raise RegardError(f"--set {assignment}: '{keys[0]}' is a single value and has no keys inside it.")
        section[keys[1]] = value
    return result


def mapping(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A section of a plain config; empty where it is not there."""
    section = given.get(name)
    if section is None:
        return {}
    if not isinstance(section, Mapping):
        raise RegardError(f"'{name}' must be a mapping of keys to values, not {section!r}.")
    return section
