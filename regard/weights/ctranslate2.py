"""Transformers as CTranslate2 describes them, and folders of those that translate: fast on a CPU, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from regard.errors import RegardError
from regard.files import write_folder_atomically
from regard.mixers.config import TransformerConfig
from regard.models.gpt2_config import GPT2Config
from regard.models.seq2seq_config import Seq2SeqConfig, VaswaniConfig
from regard.settings import Settings
from regard.text.tokenizer import TARGET_TOKENIZER, UNK, Tokenizer
from regard.untrusted.small_files import MAX_NOTE, read_bytes
from regard.weights.hugging_face import refuse_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from regard.mixers.transformer import TransformerBlock
    from regard.models.language_model import LanguageModel
    from regard.models.seq2seq import Seq2Seq

NOTE = """\
# A translator for CTranslate2

{name}, {n_parameters:,} parameters, trained and written by Regard. {what}

This program translates the lines of its standard input; it needs `pip install ctranslate2 tokenizers` and nothing else.

```python
import sys

import ctranslate2
import tokenizers

folder = "."  # where this file is
read = tokenizers.Tokenizer.from_file(f"{{folder}}/tokenizer.json")
write = {write}
model = ctranslate2.Translator(folder, device="cpu", compute_type="float32")

lines = read.encode_batch([line.strip() for line in sys.stdin])
sources = [{tag}line.tokens for line in lines]
results = model.translate_batch(sources, beam_size=5, max_input_length={M}, max_decoding_length={M})
for result in results:
    print(write.decode([write.token_to_id(token) for token in result.hypotheses[0]]))
```

`compute_type="int8"` is faster, takes less memory, and rounds. The model reads {M} tokens at most and writes as many: a
longer source is cut off.
"""
ACTIVATIONS = {"relu": "RELU", "gelu": "GELUTanh", "gelu_erf": "GELU", "swish": "SWISH"}
"""What CTranslate2 calls them."""


def is_our_ctranslate2(folder: Path) -> bool:
    """Whether an export wrote a folder for CTranslate2: its note says so, and a model is beside it."""
    try:
        note = read_bytes(folder / "README.md", MAX_NOTE).decode("utf-8", "replace")
    except OSError:
        return False
    return note.startswith(NOTE.splitlines()[0]) and "written by Regard" in note and (folder / "model.bin").is_file()


def write_ctranslate2(
    model: Seq2Seq,
    config: Settings,
    source: Tokenizer,
    target: Tokenizer,
    folder: Path,
    *,
    where: str,
    tags: Sequence[str] = (),
    is_parser: bool = False,
) -> None:
    """Write a model as a folder that `ctranslate2.Translator` loads, with the tokenizers and a note on how to use it.

    `where` names the model in errors; `tags` are what its sources begin with, if anything.
    """
    described = describe_as_transformer(config, where)
    check_marks((source, target), where)
    _import_specs()  # before anything is computed
    if folder.exists():
        raise RegardError(refuse_folder(folder))
    spec = build_spec(model, described, source, target)
    has_one = target.hash == source.hash
    what = "Both sides share one vocabulary." if has_one else "Each side has a vocabulary of its own."
    if tags:
        what += f" Every source begins with a tag, one of {', '.join(tags)}: change the one in the program."
    if is_parser:
        what += " It writes trees as lines; that they are trees only `regard parse` sees to."
    note = NOTE.format(
        name="vaswani" if isinstance(config, VaswaniConfig) else "seq2seq",
        n_parameters=model.n_parameters,
        what=what,
        write="read" if has_one else f'tokenizers.Tokenizer.from_file(f"{{folder}}/{TARGET_TOKENIZER}")',
        tag=f"[{tags[0]!r}] + " if tags else "",
        M=described.max_context,
    )

    def fill(aside: Path) -> None:
        spec.save(str(aside))
        source.save(aside / "tokenizer.json")
        if not has_one:
            target.save(aside / TARGET_TOKENIZER)
        (aside / "README.md").write_text(note, encoding="utf-8")

    write_folder_atomically(folder, fill)


def describe_as_transformer(config: Settings, where: str) -> Seq2SeqConfig:
    """The config of a model that CTranslate2 can run; an error with the first key that it cannot."""
    config = config.seq2seq() if isinstance(config, VaswaniConfig) else config
    assert isinstance(config, Seq2SeqConfig), "a model of pairs is of one of these"
    can = {"encoder": "transformer", "decoder": "transformer", "copies": False}
    for key, only in can.items():
        if (value := getattr(config, key)) != only:
            raise RegardError(
                f"{where} has model.{key} = {str(value).lower()}, which CTranslate2 cannot run: it has "
                f"{str(only).lower()} alone. Train one with model.{key} {str(only).lower()}, or translate with `regard "
                "translate`."
            )
    if config.has_output_bias:
        raise RegardError(
            f"{where} has model.has_output_bias = true, which Regard does not write for CTranslate2. Train one with "
            "model.has_output_bias false, or translate with `regard translate`."
        )
    return config


def check_marks(tokenizers: Sequence[Tokenizer], where: str) -> None:
    """Refuse tokenizers of published Marians: their targets begin after another mark than they end with."""
    if any(tokenizer.pieces is not None for tokenizer in tokenizers):
        raise RegardError(
            f"{where} has the tokenizer of a published Marian, with which Regard runs no other program. Give that "
            "program the folder that it was imported from."
        )


def build_spec(model: Seq2Seq, config: Seq2SeqConfig, source: Tokenizer, target: Tokenizer) -> Any:
    """Describe the model as CTranslate2 does, complete and ready to be saved, in float32.

    Tables of positions are written out, since CTranslate2's own sinusoids are in another order than the paper's; where
    there are no positions, the table is zero.
    """
    specs = _import_specs()
    spec = specs.TransformerSpec.from_config(
        config.depths,
        config.n_heads,
        pre_norm=config.norm == "pre",
        activation=getattr(specs.Activation, ACTIVATIONS[config.activation]),
        alignment_heads=config.n_heads,  # the attention it returns is the mean of the last layer's heads, as ours
    )
    E = model.embedding if model.source_embedding is None else model.source_embedding
    sides: tuple[tuple[Any, Any, Any, Tensor], ...] = (
        (spec.encoder, model.encoder, spec.encoder.embeddings[0], E),
        (spec.decoder, model.target.decoder, spec.decoder.embeddings, model.embedding),
    )
    for theirs, ours, embeddings, table in sides:
        embeddings.weight = _array(table)
        theirs.scale_embeddings = config.positions == "sinusoidal"
        theirs.position_encodings.encodings = _positions(ours, config)
        if config.norm == "pre":
            _copy_norm(theirs.layer_norm, ours.norm)
        for layer, block in zip(theirs.layer, ours.layers, strict=True):
            _copy_block(layer, block)
    spec.decoder.projection.weight = _array(model.target.output_weight)
    for register, tokenizer in (
        (spec.register_source_vocabulary, source),
        (spec.register_target_vocabulary, target),
    ):
        register(spell_vocabulary(tokenizer))
    spec.config.decoder_start_token = target.end_mark
    _set_marks(spec.config, target, cast(Any, model.target.decoder).layers)
    spec.validate()
    spec.optimize()
    return spec


def describe_as_lm(name: str, config: Settings, where: str) -> TransformerConfig:
    """The config of a language model that CTranslate2 can run; an error for any other."""
    config = config.transformer() if isinstance(config, GPT2Config) else config
    if not isinstance(config, TransformerConfig):
        raise RegardError(
            f"{where} is a model '{name}', which CTranslate2 cannot run: of language models it has transformer and "
            "gpt2 alone. Leave out --engine (in Python: engine)."
        )
    if config.without:
        raise RegardError(
            f"{where} has model.without = {list(config.without)}, and CTranslate2 runs whole Transformers alone. Leave "
            "out --engine (in Python: engine)."
        )
    return config


def build_lm_spec(model: LanguageModel, config: TransformerConfig, tokenizer: Tokenizer) -> Any:
    """Describe a language model as CTranslate2 does, complete and ready to be saved, in float32."""
    specs, stack = _import_specs(), cast(Any, model.mixer)
    spec = specs.TransformerDecoderModelSpec.from_config(
        config.n_layers,
        config.n_heads,
        pre_norm=config.norm == "pre",
        activation=getattr(specs.Activation, ACTIVATIONS[config.activation]),
        no_final_norm=config.norm == "post",
    )
    decoder = spec.decoder
    decoder.embeddings.weight = _array(model.embedding[: tokenizer.vocab_size])
    decoder.scale_embeddings = config.positions == "sinusoidal"
    decoder.position_encodings.encodings = _positions(stack, config)
    if config.norm == "pre":
        _copy_norm(decoder.layer_norm, stack.norm)
    for layer, block in zip(decoder.layer, stack.layers, strict=True):
        _copy_block(layer, block)
    decoder.projection.weight = _array(model.output_weight)
    spec.register_vocabulary(spell_vocabulary(tokenizer))
    _set_marks(spec.config, tokenizer, stack.layers)
    spec.validate()
    spec.optimize()
    return spec


def _set_marks(config: Any, target: Tokenizer, layers: Any) -> None:
    """A target is read after <eos> and ends with it; nothing is put around a source.

    CTranslate2 must have an unknown token. A vocabulary that can spell everything has none and never needs it: its end
    mark stands in, for CTranslate2 would else number one beyond the embeddings.
    """
    config.bos_token = config.eos_token = target.end_mark
    config.unk_token = target.end_mark if target.unk is None else UNK
    config.layer_norm_epsilon = layers[0].norm_attention.eps


def spell_vocabulary(tokenizer: Tokenizer) -> list[str]:
    """List every entry as tokenizer.json spells it, by id; ids that stand for nothing get names that no text has."""
    spellings = {i: token for token, i in tokenizer.hf.get_vocab().items()}
    return [spellings.get(i, f"<no entry {i}>") for i in range(tokenizer.vocab_size)]


def _copy_block(layer: Any, block: TransformerBlock) -> None:
    """Copy a block that has all its parts: others were refused."""
    assert block.feed_forward is not None and not block.without  # noqa: PT018
    attention = layer.self_attention
    _copy_norm(attention.layer_norm, block.norm_attention)
    _copy_linear(attention.linear[0], block.attention.qkv)
    _copy_linear(attention.linear[1], block.attention.out)
    cross = block.cross_attention
    if cross is not None and block.norm_cross is not None:
        _copy_norm(layer.attention.layer_norm, block.norm_cross)
        for theirs, ours in zip(layer.attention.linear, (cross.q, cross.kv, cross.out), strict=True):
            _copy_linear(theirs, ours)
    _copy_norm(layer.ffn.layer_norm, block.norm_feed_forward)
    _copy_linear(layer.ffn.linear_0, block.feed_forward.up)
    _copy_linear(layer.ffn.linear_1, block.feed_forward.out)


def _copy_linear(theirs: Any, ours: nn.Linear) -> None:
    theirs.weight, theirs.bias = _array(ours.weight), _array(ours.bias)


def _copy_norm(theirs: Any, ours: Any) -> None:
    theirs.gamma, theirs.beta = _array(ours.weight), _array(ours.bias)


def _positions(stack: Any, config: Seq2SeqConfig | TransformerConfig) -> NDArray[np.float32]:
    import numpy as np

    if config.positions == "none":
        return np.zeros((config.max_context, config.d_model), dtype=np.float32)
    return _array(stack.positions.table)


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return array


def _import_specs() -> Any:
    """Import CTranslate2's own descriptions of models."""
    try:
        from ctranslate2 import specs
    except ImportError:
        raise RegardError(
            "ctranslate2, which this needs, is not installed. Install it: pip install 'regard[export]'"
        ) from None
    return specs
