"""How other programs use a run, for its card: what to export, and lines of Python that work; or why they cannot."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Program:
    """Another program, and how it uses a run; `why_not` where it cannot."""

    name: str
    shell: str = ""
    python: tuple[str, ...] = ()
    why_not: str = ""

    def lines(self) -> list[str]:
        """As they stand in a card."""
        if self.why_not:
            return [f"Not in {self.name}: {self.why_not}", ""]
        python = ["```python", *self.python, "```"] if self.python else []
        return [f"In {self.name}:", "", "```sh", self.shell, "```", *python, ""]


def use_transformers(folder: Path, kind: str, texts: Sequence[str], why_not: str = "") -> Program:
    """Hugging Face transformers; `kind` follows AutoModel."""
    name = f"{folder.name}-hf"
    given = ", ".join(json.dumps(text, ensure_ascii=False) for text in texts)
    return Program(
        "transformers",
        f"regard export {shlex.quote(str(folder))} {shlex.quote(name)}",
        (
            f"from transformers import AutoModel{kind}, AutoTokenizer",
            f'tokenizer = AutoTokenizer.from_pretrained("{name}")',
            f'model = AutoModel{kind}.from_pretrained("{name}")',
            f'model(**tokenizer({given}, return_tensors="pt"))',
        ),
        why_not,
    )


def use_onnxruntime(folder: Path, texts: Sequence[str], has_types: bool, why_not: str = "") -> Program:
    """The runtime of ONNX, for what reads whole texts; `has_types`: tokens of two texts are told apart."""
    name = folder.name
    given = ", ".join(json.dumps(text, ensure_ascii=False) for text in texts)
    types = ', "token_type_ids": [x.type_ids]' if has_types else ""
    return Program(
        "onnxruntime",
        f"regard export {shlex.quote(str(folder))} {shlex.quote(f'{name}.onnx')}   # extra: onnx",
        (
            "import onnxruntime, tokenizers",
            f'session = onnxruntime.InferenceSession("{name}.onnx")',
            f'x = tokenizers.Tokenizer.from_file("{name}.tokenizer.json").encode({given})',
            f'session.run(None, {{"input_ids": [x.ids], "attention_mask": [x.attention_mask]{types}}})',
        ),
        why_not,
    )


def use_cached_onnx(folder: Path, text: str, why_not: str = "") -> Program:
    """The runtime of ONNX, for a language model: keys and values that it gives are those it is given next."""
    name = folder.name
    return Program(
        "onnxruntime",
        f"regard export {shlex.quote(str(folder))} {shlex.quote(f'{name}.onnx')}   # extra: onnx",
        (
            "import numpy, onnxruntime, tokenizers",
            f'session = onnxruntime.InferenceSession("{name}.onnx")',
            f'tokenizer = tokenizers.Tokenizer.from_file("{name}.tokenizer.json")',
            f"ids = tokenizer.encode({json.dumps(text, ensure_ascii=False)}).ids",
            'past = {i.name: numpy.zeros((1, i.shape[1], 0, i.shape[3]), "float32") for i in session.get_inputs()[1:]}',
            'logits, *present = session.run(None, {"input_ids": [ids], **past})  # present is the next past',
        ),
        why_not,
    )


def use_ctranslate2(folder: Path, why_not: str = "") -> Program:
    """CTranslate2, whose folder has a README.md with a program that translates."""
    name = shlex.quote(f"{folder.name}-ct2")
    shell = f"regard export {shlex.quote(str(folder))} {name}   # extra: export; {name}/README.md says how to go on"
    return Program("CTranslate2", shell, (), why_not)


def use_marian(folder: Path, text: str, why_not: str = "") -> Program:
    """Hugging Face's Marian. Where there are two vocabularies, the target's lies beside the source's."""
    name = f"{folder.name}-marian"
    return Program(
        "transformers",
        f"regard export {shlex.quote(str(folder))} {shlex.quote(name)} --marian",
        (
            "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer",
            f'tokenizer, model = (A.from_pretrained("{name}") for A in (AutoTokenizer, AutoModelForSeq2SeqLM))',
            f'model.generate(**tokenizer({json.dumps(text, ensure_ascii=False)}, return_tensors="pt"))',
        ),
        why_not,
    )


def use_kenlm(folder: Path, text: str) -> Program:
    """KenLM, which reads ARPA files."""
    name = f"{folder.name}.arpa"
    return Program(
        "KenLM",
        f"regard export {shlex.quote(str(folder))} {shlex.quote(name)}",
        ("import kenlm", f'kenlm.Model("{name}").score({json.dumps(text, ensure_ascii=False)})'),
    )


def use_gensim(folder: Path) -> Program:
    """gensim, and whatever else reads word2vec's text format."""
    name = f"{folder.name}.vec"
    return Program(
        "gensim",
        f"regard export {shlex.quote(str(folder))} {shlex.quote(name)}",
        ("from gensim.models import KeyedVectors", f'KeyedVectors.load_word2vec_format("{name}")'),
    )
