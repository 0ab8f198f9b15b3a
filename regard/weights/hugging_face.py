"""Hugging Face folders of GPT-2 and of BERT's family, with or without the head of a task, in and out."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from safetensors.torch import save_file

from regard.data.checksums import crc32_of
from regard.errors import RegardError, suggest_path
from regard.files import write_folder_atomically
from regard.models.bert_config import FAMILIES, BertConfig
from regard.models.gpt2_config import GPT2Config
from regard.settings import Settings
from regard.text.tokenizer import Tokenizer
from regard.training.weights import named_weights
from regard.untrusted.small_files import read_object
from regard.untrusted.values import make_printable
from regard.weights.bert_files import describe_bert
from regard.weights.bert_form import note_bert, read_bert_config, to_our_bert, to_their_bert
from regard.weights.gpt2_files import describe_gpt2, describe_gpt2_reader, ends_texts
from regard.weights.gpt2_form import note_dropouts, quote_names, read_config_json, to_our_tensors, to_their_tensors
from regard.weights.task_heads import (
    PREFIXES,
    TaskHead,
    describe_head,
    find_head,
    has_task,
    is_of_head,
    join_head,
    split_head,
)
from regard.weights.weight_files import PICKLES, Shapes, read_folder, read_shapes, refuse_pickle

if TYPE_CHECKING:
    from torch import Tensor, nn

MARK = "regard-export.json"
"""The file by which an export knows a folder that an earlier one wrote, with the checksum of the weights."""
HUB_NAMES = ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "distilgpt2")
"""What these models are called where they are published."""


def is_hugging_face(path: Path) -> bool:
    """Whether a folder is one of Hugging Face's: a run of ours has config.yaml."""
    return path.is_dir() and not (path / "config.yaml").exists()


def is_for_hugging_face(path: Path) -> bool:
    """Whether what was given is, or was meant to be, a Hugging Face folder rather than an ARPA file."""
    return path.is_dir() or path.suffix in (*PICKLES, ".safetensors", ".json") or not (path.exists() or path.suffix)


def check_folder(path: Path) -> None:
    """Refuse what is no folder, with the way out."""
    if not path.exists():
        raise RegardError(f"There is no folder '{path}'.{suggest_path(path, is_folder=True)}{_say_where_to_get(path)}")
    if path.is_file() and path.suffix in PICKLES:
        raise RegardError(refuse_pickle(path, path.parent))
    if not path.is_dir():
        raise RegardError(
            f"'{path}' is a file; give the folder that holds config.json, model.safetensors and the tokenizer's files."
        )


def _say_where_to_get(path: Path) -> str:
    if path.name not in HUB_NAMES:
        return ""
    folder = shlex.quote(str(path))
    name = path.name if path.is_absolute() else folder
    return (
        " Regard downloads nothing; Hugging Face's own command does: "
        f"hf download {name} config.json model.safetensors tokenizer.json --local-dir {folder}"
    )


class Described(NamedTuple):
    """What a folder describes, without its weights."""

    model_name: str
    config: GPT2Config | BertConfig
    tokenizer: Tokenizer
    note: str
    """What is read otherwise than the folder says, and that its weights are not those of an export, if anything."""
    head: TaskHead | None = None
    """The head of a task that it has, if that is one of ours."""
    left_out: str = ""
    """What is to be said where the layers below the head of a task are read alone."""

    @property
    def reader_config(self) -> GPT2Config | BertConfig:
        """The encoder below the head of a task: the layer above BERT's first token belongs to the head."""
        if self.head is not None and self.head.pool == "pooler" and isinstance(self.config, BertConfig):
            return self.config.replace(has_pooler=False)
        return self.config


def read_config(path: Path) -> Described:
    """Read the model and the tokenizer that a folder describes. Of its weights only the names are read."""
    check_folder(path)
    if not (path / "config.json").exists():
        raise RegardError(
            f"'{path}' is no Hugging Face folder: config.json is missing. Give the folder that a model was saved to, "
            "with config.json, model.safetensors and the tokenizer's files, or a run folder of Regard's."
        )
    found, where = read_object(path / "config.json"), f"'{path}/config.json'"
    family = find_family(found, where)
    is_bert = family in FAMILIES
    config: GPT2Config | BertConfig
    if is_bert:
        shapes = read_shapes(path)
        config, n_rows = read_bert_config(found, shapes, where)
    else:
        config, n_rows = read_config_json(found, where)
        shapes = read_shapes(path) if has_task(found) else {}
    if not any((path / name).exists() for name in ("tokenizer.json", "vocab.json", "vocab.txt")):
        raise RegardError(
            f"'{path}' has no tokenizer: neither tokenizer.json nor vocab.json with merges.txt, nor BERT's vocab.txt. "
            "Copy these files there from where the model came from."
        )
    tokenizer = Tokenizer.load(path)
    if tokenizer.vocab_size > n_rows:
        raise RegardError(
            f"The tokenizer in '{path}' has {tokenizer.vocab_size:,} tokens and the model {n_rows:,} rows for them "
            "(vocab_size in config.json). They do not belong together: copy the tokenizer and config.json from where "
            "the weights came from."
        )
    if is_bert and tokenizer.marks is None:
        raise RegardError(
            f"The tokenizer in '{path}' has not the marks of BERT or RoBERTa, such as [CLS] and [MASK]. Copy it again "
            "from where the model came from."
        )
    config = config.replace(n_rows=None if n_rows == tokenizer.vocab_size else n_rows)
    note = " ".join(filter(None, (note_bert(found) if is_bert else note_dropouts(found), _note_change(path))))
    head, left_out = _find_head(path, found, family, shapes, tokenizer)
    return Described("bert" if is_bert else "gpt2", config, tokenizer, note, head, left_out)


def _find_head(
    path: Path, found: Mapping[str, Any], family: str, shapes: Shapes, tokenizer: Tokenizer
) -> tuple[TaskHead | None, str]:
    """The head of a task in a folder, and what is to be said where it is left out."""
    names = sorted(name for name in shapes if is_of_head(name, family))
    if not names:
        return None, ""
    left_out = f"The head of its task ({quote_names(names)}) is left out: the layers below it are read."
    if family == "gpt2" and not ends_texts(path, tokenizer):
        why = f"Regard's readers end a text with {tokenizer.end_mark}, and its tokenizer does not."
        return None, f"{left_out} {why}"
    return find_head(found, shapes, f"'{path}/config.json'"), left_out


def find_family(found: Mapping[str, Any], where: str) -> str:
    """The family of models that a config.json is of; an error that says which are known."""
    family = found.get("model_type", "gpt2")  # what old folders of GPT-2 leave out
    architectures = found.get("architectures")
    is_names = isinstance(architectures, list) and all(isinstance(name, str) for name in architectures)
    if architectures is not None and not is_names:
        raise RegardError(
            f'{where} has "architectures": {make_printable(json.dumps(architectures), 80)}, which must be a list of '
            'names, such as ["GPT2LMHeadModel"]. Correct it there.'
        )
    if family in ("gpt2", *FAMILIES):
        return str(family)
    given = ", ".join(architectures) if architectures else make_printable(f"model_type {family}", 80)
    raise RegardError(
        f"{where} describes an architecture that Regard does not read: {given}. It reads the families gpt2, "
        f"{', '.join(FAMILIES[:-1])} and {FAMILIES[-1]} (model_type)."
    )


def read_weights(path: Path, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Read the weights of a folder, by our names and in float32; `own` are those of a model of its config."""
    tensors, where = read_folder(path)
    return _to_our_names(tensors, own, path, where)


def read_reader_weights(path: Path, head: TaskHead, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Read the weights of a folder with the head of a task, by our names; `own` are those of a reader of its config."""
    tensors, where = read_folder(path)
    family = find_family(read_object(path / "config.json"), where)
    found, below = split_head(tensors, own, head, family, where)
    encoder = {name.removeprefix("encoder."): w for name, w in own.items() if name.startswith("encoder.")}
    read = _to_our_names(below, encoder, path, where)
    return found | {f"encoder.{name}": tensor for name, tensor in read.items()}


def _to_our_names(
    tensors: Mapping[str, Tensor], own: Mapping[str, Tensor], path: Path, where: str
) -> dict[str, Tensor]:
    family = find_family(read_object(path / "config.json"), where)
    if family in FAMILIES:
        return to_our_bert(tensors, own, family, where)
    return to_our_tensors(tensors, own, where)


def write_hugging_face(model: nn.Module, config: GPT2Config | BertConfig, tokenizer: Tokenizer, folder: Path) -> None:
    """Write a model as a folder that transformers' `AutoModel...` and `AutoTokenizer` load."""
    weights = {name: tensor.cpu() for name, tensor in named_weights(model).items()}
    n_rows = len(weights["embedding"])
    if isinstance(config, BertConfig):
        files, tensors = describe_bert(config, n_rows, tokenizer), to_their_bert(weights, config)
    else:
        files, tensors = describe_gpt2(config, n_rows, tokenizer), to_their_tensors(weights)
    write_folder(folder, files, tensors)


def write_reader(
    model: nn.Module,
    config: GPT2Config | BertConfig,
    tokenizer: Tokenizer,
    head: TaskHead,
    folder: Path,
    *,
    centre: float = 0.0,
    spread: float = 1.0,
) -> None:
    """Write an encoder with the head of a task; `centre` and `spread` are those of a head that gives numbers."""
    whole = {name: tensor.cpu() for name, tensor in named_weights(model).items()}
    weights = {name.removeprefix("encoder."): w for name, w in whole.items() if name.startswith("encoder.")}
    n_rows = len(weights["embedding"])
    if isinstance(config, BertConfig):
        family = config.family
        config = config.replace(has_pooler=False, has_masked_head=False, has_next_head=False)
        body = {name: w for name, w in weights.items() if not name.startswith(("pooler", "masked_head", "next_head"))}
        files, tensors = describe_bert(config, n_rows, tokenizer), to_their_bert(body, config)
        tensors = {PREFIXES[family] + name: tensor for name, tensor in tensors.items()}
    else:
        family, body = "gpt2", {name: w for name, w in weights.items() if name != "head"}
        files, body["embedding"] = describe_gpt2_reader(config, body["embedding"], tokenizer)
        tensors = to_their_tensors(body)
    files["config.json"] |= describe_head(head, family)
    write_folder(folder, files, tensors | join_head(whole, head, family, centre, spread))


def refuse_folder(folder: Path) -> str:
    """The sentence about a folder that is in the way."""
    return (
        f"'{folder}' is there already; give the name of a folder that does not exist yet. A folder that `regard "
        "export` wrote is written again with --force (in Python: force=True)."
    )


def is_our_export(folder: Path) -> bool:
    """Whether an export wrote a folder of Hugging Face, and no other program has saved weights there since."""
    weights = folder / "model.safetensors"
    try:
        return bool(read_object(folder / MARK).get("model.safetensors") == crc32_of(weights))
    except (OSError, RegardError):
        return False


def _note_change(folder: Path) -> str:
    """What is to be said where the weights of a folder are not those that an export wrote there; else nothing."""
    weights = folder / "model.safetensors"
    try:
        wanted = read_object(folder / MARK).get(weights.name)
        if wanted is None or wanted == crc32_of(weights):
            return ""
    except (OSError, RegardError):  # no export, or another program's weights in files of other names
        return ""
    return (
        f"'{weights}' is not as Regard exported it ({MARK} has another checksum): another program has saved weights "
        "there since, or it was damaged."
    )


def write_folder(folder: Path, files: Mapping[str, Mapping[str, Any]], tensors: dict[str, Tensor]) -> None:
    """Write JSON files and safetensors as a new folder, whole or not at all."""
    if folder.exists():
        raise RegardError(refuse_folder(folder))

    def fill(aside: Path) -> None:
        for name, content in files.items():
            (aside / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        save_file(tensors, aside / "model.safetensors", metadata={"format": "pt"})
        mark = {"made_by": "Regard", "model.safetensors": crc32_of(aside / "model.safetensors")}
        (aside / MARK).write_text(json.dumps(mark, indent=2) + "\n", encoding="utf-8")

    write_folder_atomically(folder, fill)


def describe_as_gpt2(name: str, config: Settings, where: str) -> GPT2Config:
    """The config of a model as GPT-2's, where that says all of it; an error with the first key that it cannot say."""
    if isinstance(config, GPT2Config):
        return config
    if name != "transformer":
        raise RegardError(
            f"{where} is a run of {name}. Regard writes gpt2 runs, and transformer runs of GPT-2's form, as Hugging "
            "Face folders, n-gram runs as ARPA files, and Transformers that translate or parse for CTranslate2."
        )
    own, fixed = config.to_dict(), type(config)().to_dict() | {"norm": "pre", "positions": "learned"}
    free = ("d_model", "n_layers", "n_heads", "d_ff", "activation", "max_context", "p_dropout", "tie_embeddings")
    for key, value in own.items():
        if key not in free and value != fixed[key]:
            raise RegardError(
                f"{where} has model.{key} = {value}, which Hugging Face's GPT-2 cannot say: it has {fixed[key]} alone."
            )
    return GPT2Config.from_dict({key: own[key] for key in free})
