"""A trained language model that a run starts from: all of it, or its decoder.

In a config it is one key. With `start_from: FOLDER`, a run or a Hugging Face GPT-2, all weights are taken from there.
With `decoder_from: FOLDER` the decoder of a model with a source begins as that language model, in its vocabulary; the
encoder, and what looks at the source, begin at random.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.data.checksums import sha256_of
from regard.errors import RegardError
from regard.models.bert import Bert
from regard.models.captioner import Captioner
from regard.models.elmo import Elmo
from regard.models.gradient_model import GradientModel
from regard.models.initialise_from import initialise_from
from regard.models.language_model import LanguageModel
from regard.models.outline import outline_for
from regard.models.seq2seq import Seq2Seq
from regard.models.table import build_model
from regard.settings import Settings
from regard.tasks.run_facts import RunFacts, check_file, read_run_weights
from regard.text.tokenizer import Tokenizer
from regard.training.checkpoint import MODEL
from regard.training.weights import check_finite, load_weights, named_weights, read_tensors
from regard.weights import hugging_face
from regard.weights.weight_files import list_weight_files, read_file_shapes


@dataclass(frozen=True)
class InitialWeights:
    """A trained language model in a folder. Its weights are read when they are asked for."""

    path: Path
    is_run: bool
    """Or a Hugging Face folder."""
    model_name: str
    model: Settings
    tokenizer: Tokenizer
    tokenizer_settings: dict[str, Any]
    trained: dict[str, dict[str, Any]] = field(default_factory=dict)
    """How a run was trained, in sections of a config; none of it where the weights come from elsewhere."""
    has_small_rate: bool = False
    """Whether these weights were fine-tuned before, so that the rate in `trained` is one for fine-tuning."""
    note: str = ""
    """A sentence where something in the folder was not taken as it stands."""
    facts: RunFacts | None = None
    """Of a run: what its run.json says, the checksum of the weights among it."""

    def __str__(self) -> str:
        form = "a run" if self.is_run else "a Hugging Face folder"
        return f"{self.path} ({form}; weights sha256 {self.sha256[:16]}). {self.note}".removesuffix(". ")

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.path / MODEL,) if self.is_run else list_weight_files(self.path)

    @cached_property
    def sha256(self) -> str:
        """Of the file that holds the weights; of all of them one after the other where there are shards.

        Weights of a run that are not those that were written are refused.
        """
        found = sha256_of(*self.files)
        if self.facts is not None:
            check_file(self.path, self.facts, MODEL, found)
        return found

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """By our names, in float32; what does not fit the model is refused."""
        if not self.is_run:
            return hugging_face.read_weights(self.path, named_weights(self.outline()))
        if self.facts is None:
            weights = read_tensors(self.files[0])
        else:
            weights = read_run_weights(self.path, self.facts, self.sha256)
        check_finite(weights, f"'{self.files[0]}'", "Take the file from a copy, or train that run again")
        load_weights(self.outline(), weights, self.files[0])  # into no memory at all: this only compares
        return weights

    def load_into(self, model: GradientModel | Bert | Elmo) -> None:
        """Give a model the weights, and forget them: so much memory is not needed twice."""
        load_weights(model, self.weights)
        del self.__dict__["weights"]

    def outline(self) -> Any:
        """The model with shapes and no memory."""
        sizes = self.model_name, self.model, self.tokenizer.vocab_size
        shapes = {name: shape for file in self.files for name, shape in read_file_shapes(file).items()}
        return outline_for(shapes, lambda: build_model(*sizes))


def check_decoder(model: Seq2Seq | Captioner, tokenizer: Tokenizer, start: InitialWeights | None) -> None:
    """Refuse a language model of another vocabulary or shape. `model` is an outline: nothing is read or copied."""
    if start is None:
        return
    if tokenizer.hash != start.tokenizer.hash:
        theirs, ours = (f"{t.kind}, {t.vocab_size:,} tokens" for t in (start.tokenizer, tokenizer))
        raise RegardError(
            f"The decoder is to begin as '{start.path}', whose vocabulary ({theirs}) is not that of the targets "
            f"({ours}). Leave out target_tokenizer, or set its path to {start.path}; where source and target share one "
            f"vocabulary, or pictures are described, set tokenizer.path to {start.path}."
        )
    _initialise(model, start.outline())


def begin_decoder(model: Seq2Seq | Captioner, start: InitialWeights | None) -> None:
    """Give the decoder the weights of the language model, where there is one."""
    if start is None:
        return
    language_model = start.outline().to_empty(device="cpu")
    start.load_into(language_model)
    _initialise(model, language_model)


def _initialise(model: Seq2Seq | Captioner, language_model: GradientModel | Bert | Elmo) -> None:
    if isinstance(language_model, Bert | Elmo):
        name = "BERT" if isinstance(language_model, Bert) else "ELMo"
        raise RegardError(
            f"The decoder cannot begin as {name}, which reads both sides and does not write. Give a run of rnn, gru, "
            "lstm, transformer or gpt2."
        )
    if not isinstance(language_model, LanguageModel):
        raise RegardError(
            "The decoder cannot begin as a pointer, which reads its past as a decoder reads its source. Give a run of "
            "rnn, gru, lstm, transformer or gpt2."
        )
    initialise_from(model.target, language_model)
