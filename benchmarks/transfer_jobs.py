"""The trainings of `transfer.py`: which there are, what each reads, and which place of which table its score fills."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

RECIPES = Path(__file__).parents[1] / "recipes"
TABLE = "By what reads the texts"
BARS = "One encoder on one task"
LABELS = "IMDb by labelled reviews, accuracy: an LSTM language model of novels, and the same from scratch"
SCRATCH, LANGUAGE_MODEL, ELMO, BERT, MINILM = "BiLSTM from scratch", "language model", "ELMo", "our BERT", "MiniLM"
ENCODERS = (SCRATCH, LANGUAGE_MODEL, ELMO, BERT, MINILM)
TUNED = "elmo-conll2003"
"""The recipe, and the run, of an ELMo that has read on in the words of a task."""
PRE_TRAINED = {LANGUAGE_MODEL: "novels-lstm", ELMO: "elmo", BERT: "bert-small"}
"""Which recipe makes an encoder; its run has the same name."""
TASKS: dict[str, dict[str, str]] = {
    "cola": {"CoLA, Matthews": "Matthews"},
    "mrpc": {"MRPC, F1": "F1 of 1", "MRPC, accuracy": "accuracy, %"},
    "rte": {"RTE, accuracy": "accuracy, %"},
    "sick": {"SICK relatedness, Pearson": "Pearson"},
    "sick-entailment": {"SICK entailment, accuracy": "accuracy, %"},
    "ud-tags": {"UD English tags, accuracy": "accuracy, %"},
    "conll2000": {"CoNLL-2000 chunks, F1": "entity F1"},
    "squad": {"SQuAD (38 articles), F1": "F1", "SQuAD (38 articles), exact match": "exact match, %"},
}
"""Recipes, and of each the rows that its scores fill."""
CONLL, SST2, SST5 = "CoNLL-2003 names, F1", "SST-2 sentences, accuracy", "SST-5 sentences, accuracy"
FIRST: dict[str, tuple[str, str]] = {
    "conll2003-minilm": (CONLL, "entity F1"),
    "conll2003-minilm --set optimizer.lr=4e-4": (CONLL, "entity F1"),
    "conll2003-minilm --set head.has_crf=false": (CONLL, "entity F1"),
    "conll2003-lstm": (CONLL, "entity F1"),
    "conll2003-elmo": (CONLL, "entity F1"),
    "conll2003-elmo --set encoder_from=runs/elmo-conll2003": (CONLL, "entity F1"),
    "sst2-minilm": (SST2, "accuracy, %"),
    "sst2-minilm --set data.train=data/sst/stsa.binary.train": (SST2, "accuracy, %"),
    "imdb-minilm": ("IMDb, accuracy", "accuracy, %"),
    "imdb-stars-minilm": ("IMDb stars, Pearson", "Pearson"),
    "sst2-lstm": (SST2, "accuracy, %"),
    "sst2-bag": (SST2, "accuracy, %"),
    "sst5-minilm": (SST5, "accuracy, %"),
    "sst5-lstm": (SST5, "accuracy, %"),
    "sst5-bag": (SST5, "accuracy, %"),
}
"""Recipes that are trained as they stand, or with a setting changed, and which row and score of theirs is told. What
matters most comes first."""
RAW_TEXTS = ("cola", "mrpc", "rte", "sick", "sick-entailment", "squad")
SIZES = (100, 1000, None)
N_VALID = 1250
LAYERS = ("first", "second-to-last", "last", "sum", "sum-last-four", "concat-last-four", "mix")


@dataclass(frozen=True)
class Job:
    """One command of Regard, and what it waits for."""

    name: str
    """Of its run folder."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """What `regard train` is given; empty: `command` says it all."""
    command: tuple[str, ...] = ()
    needs: str | None = None
    """The run that must have ended before."""
    table: str = ""
    column: str = ""
    rows: Mapping[str, str] = field(default_factory=dict)
    """Rows of the table, and which score fills each."""
    seed: int = 0
    keeps_weights: bool = False
    is_pre_training: bool = False
    is_judged_by_all: bool = False
    """Score it on every test example: training ends with 5,000 of them at most."""


@dataclass(frozen=True)
class Places:
    """Where things lie."""

    data: Path
    minilm: Path
    runs: Path


def place_data(value: Any, places: Places) -> Any:
    """A setting in which files of `data/` are those of this machine."""
    if isinstance(value, list):
        return [place_data(each, places) for each in value]
    if not isinstance(value, str) or not value.startswith("data/"):
        return value
    own = value.removeprefix("data/")
    return str(places.runs / "data" / own if own.startswith("squad/") else places.data / own)


def read_recipe(name: str, places: Places) -> dict[str, Any]:
    """A recipe as plain settings, with the data and the encoder of this machine."""
    config: dict[str, Any] = yaml.safe_load((RECIPES / f"{name}.yaml").read_text(encoding="utf-8"))
    for section in ("data", "train"):
        config[section] = {key: place_data(value, places) for key, value in config[section].items()}
    if "encoder_from" in config:
        config["encoder_from"] = str(places.minilm)
    return config


def adapt(recipe: Mapping[str, Any], task: str, encoder: str, places: Places) -> dict[str, Any]:
    """The recipe of a task, which is MiniLM's, for another encoder."""
    config = deepcopy(dict(recipe))
    if encoder == MINILM:
        return config
    if encoder == BERT:  # it was pre-trained on rows of 128 tokens
        config["encoder_from"], config["model"] = str(places.runs / PRE_TRAINED[BERT]), {"p_dropout": 0.1}
        config["encoder"] = {**config["encoder"], "max_window": 128, "stride": 64}
        return config
    is_pooled = config["task"] in ("classification", "rating")
    config["encoder"] = {"pool": "max"} if is_pooled else {}
    del config["encoder_from"], config["model"], config["optimizer"]
    config["runtime"] = {"precision": "tf32"}
    if encoder == SCRATCH:
        config["model"] = {"name": "lstm", "d_model": 256, "n_layers": 1, "p_dropout": 0.3}
        punctuation = "apart" if task in RAW_TEXTS else "attached"
        config["tokenizer"] = {
            "kind": "word", "vocab_size": None, "min_count": 2, "lowercase": True, "punctuation": punctuation
        }  # fmt: skip
        config["optimizer"] = {"lr": 2e-3, "weight_decay": 0.01}
        return config
    config["encoder_from"] = str(places.runs / PRE_TRAINED[encoder])
    if encoder == ELMO:
        config["encoder"] |= {"frozen": True, "layers": "mix"}
        config["mixer"] = {"cell": "lstm", "d_model": 256, "p_dropout": 0.3}
        config["optimizer"] = {"lr": 1e-3, "weight_decay": 0.01}
    else:
        config["model"] = {"p_dropout": 0.3}
        config["optimizer"] = {"lr": 5e-4, "head_rate": 5, "weight_decay": 0.01}
    return config


def label_sizes(seeds: int, places: Places) -> Iterator[Job]:
    """IMDb with few labels and with all: the language model fine-tuned, and the same model from scratch."""
    start = places.runs / PRE_TRAINED[LANGUAGE_MODEL]
    for seed in range(seeds):
        for size in SIZES:
            for column in ("pre-trained", "from scratch"):
                train = {"n_batch": 32, "max_epochs": 2, "eval_every": 350}
                few = {"n_batch": 16, "max_steps": 300, "eval_every": 25, "patience": 6}
                config: dict[str, Any] = {
                    "task": "classification",
                    "data": {
                        "train": str(places.runs / "data" / f"imdb-{size or 'all'}-{seed}.tsv"),
                        "valid": str(places.runs / "data" / "imdb-valid.tsv"),
                        "test": str(places.data / "imdb/test.tsv.xz"),
                        "text": "text",
                        "label": "sentiment",
                    },
                    "encoder": {"pool": "mean"},
                    "schedule": {"name": "linear", "n_warmup": 50, "p_final": 0.0},
                    "train": train if size is None else few,
                    # Reviews have many lengths: captured, nine trainings fill 140 GB; so, eighteen take 60.
                    "runtime": {"precision": "tf32", "is_replayed": False},
                }
                if column == "pre-trained":
                    config |= {"encoder_from": str(start), "model": {"p_dropout": 0.3}}
                    config["optimizer"] = {"lr": 5e-4, "head_rate": 5, "weight_decay": 0.01}
                else:
                    own = yaml.safe_load((RECIPES / "novels-lstm.yaml").read_text(encoding="utf-8"))
                    config |= {"model": {**own["model"], "p_dropout": 0.3}}
                    config["tokenizer"] = {**own["tokenizer"], "path": str(start)}
                    config["encoder"]["is_bidirectional"] = False
                    config["optimizer"] = {"lr": 1e-3, "weight_decay": 0.01}
                yield Job(
                    name=f"imdb-{size or 'all'}-{column.replace(' ', '-')}-{seed}",
                    config=config,
                    needs=PRE_TRAINED[LANGUAGE_MODEL],
                    table=LABELS,
                    column=column,
                    rows={f"{size or 24_000:,} labels": "accuracy, %"},
                    seed=seed,
                )


def pre_trainings(places: Places, seconds: Mapping[str, float]) -> Iterator[Job]:
    """The encoders that are made first; so many seconds of training each, by recipe."""
    for recipe in (PRE_TRAINED[ELMO], PRE_TRAINED[BERT], PRE_TRAINED[LANGUAGE_MODEL]):
        config = read_recipe(recipe, places)
        limits = ("max_steps", "max_tokens", "max_epochs")
        train = {key: value for key, value in config["train"].items() if key not in limits}
        config["train"] = {**train, "max_seconds": seconds[recipe]}
        yield Job(name=recipe, config=config, keeps_weights=True, is_pre_training=True)


def layer_study(name: str, run: Path, places: Places, seeds: int) -> Job:
    """`regard study layers` on CoNLL-2003."""
    conll = places.data / "conll2003"
    settings = {
        "data": conll / "eng.train",
        "test": conll / "eng.testb",
        "n_steps": 800,
        "lr": 0.003,
        "layers": f"[{', '.join(LAYERS)}]",
    }
    given = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    command = ("study", "layers", "--run", str(run), "--seeds", str(seeds), *given)
    return Job(name=f"layers-{name}", command=command, needs=run.name)


def as_it_stands(given: str, seed: int, places: Places) -> Job:
    """A recipe, perhaps with a setting, on the data and the encoders of this machine, with a seed."""
    recipe, _, setting = given.partition(" --set ")
    config, (row, score) = read_recipe(recipe, places), FIRST[given]
    needs = PRE_TRAINED[ELMO] if recipe.endswith("-elmo") else None
    name, command = f"{recipe}-{seed}", f"`regard train recipes/{recipe}.yaml`"
    if setting:
        path, _, value = setting.partition("=")
        section, _, key = path.partition(".")
        command = f"`regard train recipes/{recipe}.yaml --set {setting}`"
        if path == "encoder_from":
            name, needs = f"{recipe}-tuned-{seed}", Path(value).name
        else:
            name = f"{recipe}-{key}-{seed}"
            config[section] = {**config.get(section, {}), key: place_data(yaml.safe_load(value), places)}
    if needs is not None:
        config["encoder_from"] = str(places.runs / needs)
    return Job(
        name=name, config=config, needs=needs, table=BARS, column=command, rows={row: score}, seed=seed,
        keeps_weights=seed == 0 and not setting, is_judged_by_all=recipe.startswith("imdb"),
    )  # fmt: skip


def list_jobs(places: Places, seeds: int, seconds: Mapping[str, float]) -> list[Job]:
    """Every job, those first that matter most or that others wait for."""
    jobs = list(pre_trainings(places, seconds))
    tuned = {**read_recipe(TUNED, places), "start_from": str(places.runs / PRE_TRAINED[ELMO])}
    jobs.append(Job(name=TUNED, config=tuned, needs=PRE_TRAINED[ELMO], keeps_weights=True))
    jobs.append(
        Job(name="minilm", command=("import", str(places.minilm)), keeps_weights=True)  # for the study of layers
    )
    jobs += [as_it_stands(recipe, seed, places) for seed in range(seeds) for recipe in FIRST]
    jobs.append(layer_study("minilm", places.runs / "minilm", places, seeds))
    table = []
    for seed in range(seeds):
        for task, rows in TASKS.items():
            recipe = read_recipe(task, places)
            for encoder in ENCODERS:
                name = f"{task}-{encoder.lower().replace(' ', '-')}-{seed}"
                config = adapt(recipe, task, encoder, places)
                table.append(Job(name, config, (), PRE_TRAINED.get(encoder), TABLE, encoder, rows, seed))
    late = [layer_study("our-bert", places.runs / PRE_TRAINED[BERT], places, seeds), *label_sizes(seeds, places)]
    return [*jobs, *table, *late]


def write_data(places: Places, seeds: int) -> None:
    """Write the files that the data sets do not come as: SQuAD by article, and IMDb in random order and in part."""
    folder = places.runs / "data"
    (folder / "squad").mkdir(parents=True, exist_ok=True)
    whole = json.loads((places.data / "squad/dev-v1.1.json").read_text(encoding="utf-8"))
    for name, articles in (("train", whole["data"][:38]), ("test", whole["data"][-10:])):
        text = json.dumps({"version": "1.1", "data": articles}, ensure_ascii=False)
        (folder / "squad" / f"{name}.json").write_text(text, encoding="utf-8")
    with lzma.open(places.data / "imdb/train.tsv.xz", "rt", encoding="utf-8", newline="\n") as file:
        header, *lines = file.read().rstrip("\n").split("\n")
    random.Random(0).shuffle(lines)
    valid, lines = lines[:N_VALID], lines[N_VALID:]

    def write(name: str, chosen: list[str]) -> None:
        (folder / f"{name}.tsv").write_text("\n".join([header, *chosen]) + "\n", encoding="utf-8")

    write("imdb-valid", valid)
    for seed in range(seeds):
        mixed = random.Random(seed).sample(lines, len(lines))
        for size in SIZES:
            write(f"imdb-{size or 'all'}-{seed}", mixed[:size])
