"""CTranslate2 folders of encoder-decoder Transformers, written: fast on a CPU, in eight bits too, without torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.data.pairs_config import PairsConfig
from regard.errors import RegardError
from regard.files import write_folder_atomically
from regard.models.seq2seq_config import Seq2SeqConfig, VaswaniConfig
from regard.text.tokenizer import TARGET_TOKENIZER, UNK, Tokenizer
from regard.weights.exportable import Exportable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from regard.mixers.transformer_decoder import DecoderBlock
    from regard.mixers.transformer_encoder import EncoderBlock
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
ACTIVATIONS = {"relu": "RELU", "gelu": "GELUTanh", "gelu_erf": "GELU"}
"""What CTranslate2 calls them."""


def export_ctranslate2(run: Exportable, folder: Path | str) -> None:
    """Write a run as a folder that `ctranslate2.Translator` loads, with the tokenizers and a note on how to use it."""
    folder = Path(folder)
    config = expressed_as_transformer(run)
    _specs()  # before anything is computed
    if folder.exists():
        raise RegardError(f"'{folder}' is there already; give the name of a folder that does not exist yet.")
    source, target = run.tokenizers[0], run.tokenizers[-1]
    spec = transformer_spec(run.model, config, source, target)
    note = _note(run, config.max_context)

    def fill(aside: Path) -> None:
        spec.save(str(aside))
        source.save(aside / "tokenizer.json")
        if target.hash != source.hash:
            target.save(aside / TARGET_TOKENIZER)
        (aside / "README.md").write_text(note, encoding="utf-8")

    write_folder_atomically(folder, fill)


def expressed_as_transformer(run: Exportable) -> Seq2SeqConfig:
    """The config of a run that CTranslate2 can run; else the first key that it cannot."""
    model = run.config.model
    config = model.seq2seq() if isinstance(model, VaswaniConfig) else model
    assert isinstance(config, Seq2SeqConfig), "a run of pairs is of one of these"
    can = {"encoder": "transformer", "decoder": "transformer", "copies": False}
    for key, only in can.items():
        if (value := getattr(config, key)) != only:
            shown = str(value).lower()
            raise RegardError(
                f"'{run.folder}' has model.{key} = {shown}, which CTranslate2 cannot run: it has {str(only).lower()} "
                f"alone. Train one with model.{key} {str(only).lower()}, or translate with `regard translate`."
            )
    return config


def transformer_spec(model: Seq2Seq, config: Seq2SeqConfig, source: Tokenizer, target: Tokenizer) -> Any:
    """The model as CTranslate2 describes one, complete and ready to be saved, in float32.

    Tables of positions are written out, since CTranslate2's own sinusoids are in another order than the paper's; where
    there are no positions, the table is zero.
    """
    specs = _specs()
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
            _norm(theirs.layer_norm, ours.norm)
        for layer, block in zip(theirs.layer, ours.layers, strict=True):
            _block(layer, block)
    spec.decoder.projection.weight = _array(model.target.output_weight)
    for register, tokenizer in (
        (spec.register_source_vocabulary, source),
        (spec.register_target_vocabulary, target),
    ):
        register(spelled(tokenizer))
    _say_marks(spec.config, target, model)
    spec.validate()
    spec.optimize()
    return spec


def _say_marks(config: Any, target: Tokenizer, model: Seq2Seq) -> None:
    """A target is read after <eos> and ends with it; nothing is put around a source.

    CTranslate2 must have an unknown token. A vocabulary that can spell everything has none and never needs it: its end
    mark stands in, for CTranslate2 would else number one beyond the embeddings.
    """
    config.bos_token = config.eos_token = config.decoder_start_token = target.end_mark
    config.unk_token = target.end_mark if target.unk is None else UNK
    config.layer_norm_epsilon = model.target.decoder.layers[0].norm_attention.eps  # type: ignore[attr-defined]


def spelled(tokenizer: Tokenizer) -> list[str]:
    """Every entry as tokenizer.json spells it, by id; ids that stand for nothing get names that no text has."""
    spellings = {i: token for token, i in tokenizer.hf.get_vocab().items()}
    return [spellings.get(i, f"<no entry {i}>") for i in range(tokenizer.vocab_size)]


def _block(layer: Any, block: EncoderBlock | DecoderBlock) -> None:
    from regard.mixers.transformer_decoder import DecoderBlock

    attention = layer.self_attention
    _norm(attention.layer_norm, block.norm_attention)
    _linear(attention.linear[0], block.attention.qkv)
    _linear(attention.linear[1], block.attention.out)
    if isinstance(block, DecoderBlock):
        cross = block.cross_attention
        _norm(layer.attention.layer_norm, block.norm_cross)
        for theirs, ours in zip(layer.attention.linear, (cross.q, cross.kv, cross.out), strict=True):
            _linear(theirs, ours)
    _norm(layer.ffn.layer_norm, block.norm_feed_forward)
    _linear(layer.ffn.linear_0, block.feed_forward.up)
    _linear(layer.ffn.linear_1, block.feed_forward.out)


def _linear(theirs: Any, ours: nn.Linear) -> None:
    theirs.weight, theirs.bias = _array(ours.weight), _array(ours.bias)


def _norm(theirs: Any, ours: nn.LayerNorm) -> None:
    theirs.gamma, theirs.beta = _array(ours.weight), _array(ours.bias)


def _positions(stack: Any, config: Seq2SeqConfig) -> NDArray[np.float32]:
    import numpy as np

    if config.positions == "none":
        return np.zeros((config.max_context, config.d_model), dtype=np.float32)
    return _array(stack.positions.table)


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return array


def _specs() -> Any:
    """CTranslate2's own descriptions of models."""
    try:
        from ctranslate2 import specs
    except ImportError:
        raise RegardError(
            "ctranslate2, which writes this folder, is not installed. Install it: pip install 'regard[export]'"
        ) from None
    return specs


def _note(run: Exportable, max_context: int) -> str:
    """README.md of the folder: a program that translates with it and needs no Regard."""
    pairs = run.config.section("data", PairsConfig)
    has_one = len(run.tokenizers) == 1
    tags = sorted({part.tag for part in pairs.parts("train") if part.tag is not None})
    what = "Both sides share one vocabulary." if has_one else "Each side has a vocabulary of its own."
    if tags:
        what += f" Every source begins with a tag, one of {', '.join(tags)}: change the one in the program."
    if pairs.has_trees:
        what += " It writes trees as lines; that they are trees only `regard parse` sees to."
    return NOTE.format(
        name=run.config.model_name,
        n_parameters=sum(p.numel() for p in run.model.parameters()),
        what=what,
        write="read" if has_one else f'tokenizers.Tokenizer.from_file(f"{{folder}}/{TARGET_TOKENIZER}")',
        tag=f"[{tags[0]!r}] + " if tags else "",
        M=max_context,
    )
