"""A decoder that begins as a trained language model; its encoder, and what looks at the source, begin at random.

In a config it is one key, `decoder_from: FOLDER`, a run or a Hugging Face GPT-2. Its vocabulary is then the target's,
unless the config names another.
"""

from __future__ import annotations

from regard.errors import RegardError
from regard.models.captioner import Captioner
from regard.models.gradient_model import GradientModel
from regard.models.initialise_from import initialise_from
from regard.models.language_model import LanguageModel
from regard.models.seq2seq import Seq2Seq
from regard.tasks.task import InitialWeights
from regard.text.tokenizer import Tokenizer
from regard.training.weights import load_weights


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
    weights = start.read()
    load_weights(language_model, weights)
    weights.clear()  # so much memory is not needed twice
    _initialise(model, language_model)


def _initialise(model: Seq2Seq | Captioner, language_model: GradientModel) -> None:
    if not isinstance(language_model, LanguageModel):
        raise RegardError(
            "The decoder cannot begin as a pointer, which reads its past as a decoder reads its source. Give a run of "
            "rnn, gru, lstm, transformer or gpt2."
        )
    initialise_from(model.target, language_model)
