"""Hugging Face folders of GPT-2 and of BERT's family, in and out. Weights are safetensors; no pickle is opened."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from regard.errors import RegardError, nearest
from regard.files import write_folder_atomically
from regard.models.bert_config import FAMILIES, BertConfig
from regard.models.gpt2_config import GPT2Config
from regard.settings import Settings
from regard.text.gpt2_tokenizer import read_object
from regard.text.tokenizer import Tokenizer
from regard.training.weights import check_finite, named_weights, read_tensors
from regard.weights.bert_files import describe_bert
from regard.weights.bert_form import note_bert, read_bert_config, to_our_bert, to_their_bert
from regard.weights.gpt2_form import note_dropouts, read_config_json, to_our_tensors, to_their_tensors, write_config

if TYPE_CHECKING:
    from torch import Tensor, nn

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
INDEX = "model.safetensors.index.json"
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
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise RegardError(f"There is no folder '{path}'.{nearest(path.name, siblings)}{_say_where_to_get(path)}")
    if path.is_file() and path.suffix in PICKLES:
        raise RegardError(_refuse_pickle(path, path.parent))
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
    """What is read otherwise than the folder says, if anything."""


def read_config(path: Path) -> Described:
    """Read the model and the tokenizer that a folder describes. Of its weights only the names are read."""
    check_folder(path)
    if not (path / "config.json").exists():
        raise RegardError(
            f"'{path}' is no Hugging Face folder: config.json is missing. Give the folder that a model was saved to, "
            "with config.json, model.safetensors and the tokenizer's files, or a run folder of Regard's."
        )
    found, where = read_object(path / "config.json"), f"'{path}/config.json'"
    is_bert = find_family(found, where) in FAMILIES
    names = list_tensor_names(path) if is_bert else []
    config: GPT2Config | BertConfig
    config, n_rows = read_bert_config(found, names, where) if is_bert else read_config_json(found, where)
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
    note = note_bert(found, names) if is_bert else note_dropouts(found)
    return Described("bert" if is_bert else "gpt2", config, tokenizer, note)


def find_family(found: Mapping[str, Any], where: str) -> str:
    """The family of models that a config.json is of; an error that says which are known."""
    family = found.get("model_type", "gpt2")  # what old folders of GPT-2 leave out
    if family in ("gpt2", *FAMILIES):
        return str(family)
    architectures = found.get("architectures")
    given = ", ".join(map(str, architectures)) if isinstance(architectures, list) else f"model_type {family}"
    raise RegardError(
        f"{where} describes an architecture that Regard does not read: {given}. It reads the families gpt2, "
        f"{', '.join(FAMILIES[:-1])} and {FAMILIES[-1]} (model_type)."
    )


def list_tensor_names(path: Path) -> list[str]:
    """The names of the tensors in a folder, from the heads of its files."""
    names: list[str] = []
    for file in list_weight_files(path):
        try:
            with safe_open(file, "pt") as opened:
                names += opened.keys()
        except (SafetensorError, OSError):
            read_tensors(file, "copy or download it again")  # which says what is wrong with it
    return names


def list_weight_files(path: Path) -> tuple[Path, ...]:
    """List the safetensors files of a folder: one, or the shards that its index names."""
    if (path / "model.safetensors").exists():
        return (path / "model.safetensors",)
    if not (path / INDEX).exists():
        pickle = next((p for p in sorted(path.iterdir()) if p.suffix in PICKLES), None)
        if pickle is not None:
            raise RegardError(_refuse_pickle(pickle, path))
        raise RegardError(f"'{path}' has no weights: neither model.safetensors nor {INDEX} is there.")
    index = read_object(path / INDEX).get("weight_map")
    names = sorted(set(index.values())) if isinstance(index, dict) else []
    if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise RegardError(f"'{path / INDEX}' must have a weight_map from tensors to names of files in the same folder.")
    for name in names:
        if not (path / name).exists():
            raise RegardError(f"'{path}' lacks {name}, which {INDEX} names. Copy the whole folder again.")
    return tuple(path / name for name in names)


def read_weights(path: Path, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Read the weights of a folder, by our names and in float32; `own` are those of a model of its config."""
    tensors: dict[str, Tensor] = {}
    files = list_weight_files(path)
    for file in files:
        found = read_tensors(file, "copy or download it again")
        check_finite(found, f"'{file}'", "Copy or download the file again, or ask who made it")
        tensors |= found
    where = f"'{files[0] if len(files) == 1 else path}'"
    family = find_family(read_object(path / "config.json"), where)
    if family in FAMILIES:
        return to_our_bert(tensors, own, family, where)
    return to_our_tensors(tensors, own, where)


def _refuse_pickle(file: Path, folder: Path) -> str:
    """The sentence that refuses a pickle, with the command that converts it.

    `transformers` loads a whole folder if the file has the name that it knows. Of any other file, torch reads the
    tensors and nothing else.
    """
    refusal = f"'{file}' is a pickle, and opening one can run any code that is in it; Regard reads safetensors alone."
    if file.name.startswith("pytorch_model") and (folder / "config.json").exists():
        code = (
            "from transformers import AutoModelForCausalLM as M, AutoTokenizer as T; "
            f"a, b = {str(folder)!r}, {(folder.name or 'model') + '-safetensors'!r}; "
            "M.from_pretrained(a).save_pretrained(b); T.from_pretrained(a).save_pretrained(b)"
        )
        return f"{refusal} If you trust it, convert it where you have transformers: python -c {shlex.quote(code)}"
    code = (
        "import torch; from safetensors.torch import save_file; "
        f"w = torch.load({str(file)!r}, map_location='cpu', weights_only=True); w = w.get('state_dict', w); "
        f"save_file({{k: v.clone().contiguous() for k, v in w.items()}}, {str(folder / 'model.safetensors')!r})"
    )
    needed = [name for name in ("config.json", "tokenizer.json") if not (folder / name).exists()]
    beside = f" Put {' and '.join(needed)} beside it, from where it came, and give the folder." if needed else ""
    return f"{refusal}{beside} This converts its tensors and runs none of its code: python -c {shlex.quote(code)}"


def write_hugging_face(model: nn.Module, config: GPT2Config | BertConfig, tokenizer: Tokenizer, folder: Path) -> None:
    """Write a model as a folder that transformers' `AutoModel...` and `AutoTokenizer` load."""
    if folder.exists():
        raise RegardError(f"'{folder}' is there already; give the name of a folder that does not exist yet.")
    weights = {name: tensor.cpu() for name, tensor in named_weights(model).items()}
    n_rows = len(weights["embedding"])
    if isinstance(config, BertConfig):
        files, tensors = describe_bert(config, n_rows, tokenizer), to_their_bert(weights, config)
    else:
        files, tensors = _describe_gpt2(config, n_rows, tokenizer), to_their_tensors(weights)

    def fill(aside: Path) -> None:
        for name, content in files.items():
            (aside / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        save_file(tensors, aside / "model.safetensors", metadata={"format": "pt"})

    write_folder_atomically(folder, fill)


def _describe_gpt2(config: GPT2Config, n_rows: int, tokenizer: Tokenizer) -> dict[str, dict[str, Any]]:
    """The JSON files of a GPT-2 folder."""
    eos, mark = tokenizer.eos, tokenizer.end_mark
    return {
        "config.json": write_config(config, n_rows, eos),
        "generation_config.json": {"bos_token_id": eos, "eos_token_id": eos},
        "tokenizer.json": _mark_end(tokenizer),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": mark,
            "eos_token": mark,
            "model_max_length": config.max_context,
            "clean_up_tokenization_spaces": False,
        },
    }


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


def _mark_end(tokenizer: Tokenizer) -> dict[str, Any]:
    """Make tokenizer.json with the end mark as a special token, by which Hugging Face leaves it out of texts."""
    whole: dict[str, Any] = json.loads(tokenizer.json)
    mark = {"id": tokenizer.eos, "content": tokenizer.end_mark, "single_word": False, "lstrip": False}
    whole["added_tokens"] = [mark | {"rstrip": False, "normalized": False, "special": True}]
    return whole
