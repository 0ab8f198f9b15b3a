"""A decoder that begins as a trained language model; its encoder, and what looks at the source, begin at random.

In a config it is one key, `decoder_from: FOLDER`, a run or a Hugging Face GPT-2. Its vocabulary is then the target's,
unless the config names another. A run that has begun needs the folder no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.config import folder_of, load_config, mapping
from regard.errors import RegardError
from regard.models.table import PAIR_MODELS, PICTURE_MODELS
from regard.start import Start, start_at
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from regard.models.captioner import Captioner
    from regard.models.gradient_model import GradientModel
    from regard.models.seq2seq import Seq2Seq


def in_its_vocabulary(given: Mapping[str, Any], begun: Path | None) -> Mapping[str, Any]:
    """A plain config whose targets are in the vocabulary of the model that its decoder begins as, where it names one.

    What the config says about the target's vocabulary itself stays as it is. Of a run that is in `begun` already it is
    known which one that was.
    """
    path, name = folder_of(given, "decoder_from"), mapping(given, "model").get("name")
    section = "target_tokenizer" if name in PAIR_MODELS else "tokenizer" if name in PICTURE_MODELS else None
    if path is None or section is None or mapping(given, section):
        return given
    if section == "target_tokenizer" and mapping(given, "tokenizer").get("path") is not None:
        return given  # one vocabulary for both sides
    before = None if begun is None else load_config(begun / "config.yaml")
    if before is not None and before.decoder_from == path:
        return {**given, section: before.to_dict()[section]}
    return {**given, section: start_at(Path(path)).tokenizer_settings}


def check_decoder(model: Seq2Seq | Captioner, tokenizer: Tokenizer, start: Start) -> None:
    """Refuse a language model of another vocabulary or shape. `model` is an outline: nothing is read or copied."""
    if tokenizer.hash != start.tokenizer.hash:
        theirs, ours = (f"{t.kind}, {t.vocab_size:,} tokens" for t in (start.tokenizer, tokenizer))
        raise RegardError(
            f"The decoder is to begin as '{start.path}', whose vocabulary ({theirs}) is not that of the targets "
            f"({ours}). Leave out target_tokenizer, or set its path to {start.path}; where source and target share one "
            f"vocabulary, or pictures are described, set tokenizer.path to {start.path}."
        )
    _initialise(model, start.outline())


def begin_decoder(model: Seq2Seq | Captioner, start: Start) -> None:
    """Give the decoder the weights of the language model."""
    from regard.training.weights import load_weights

    language_model = start.outline().to_empty(device="cpu")
    load_weights(language_model, start.weights())
    _initialise(model, language_model)


def _initialise(model: Seq2Seq | Captioner, language_model: GradientModel) -> None:
    from regard.models.initialise_from import initialise_from
    from regard.models.language_model import LanguageModel

    if not isinstance(language_model, LanguageModel):
        raise RegardError(
            "The decoder cannot begin as a pointer, which reads its past as a decoder reads its source. Give a run of "
            "rnn, gru, lstm, transformer or gpt2."
        )
    initialise_from(model.target, language_model)
