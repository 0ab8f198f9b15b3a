"""What a model would say if it stopped at a layer: its last norm and its head, read from the states of every layer.

    P_l = softmax(W norm(h^l_t) + b)      ("logit lens", nostalgebraist 2020)

The last one is the model's own prediction. It is that of the last layer, or stands beside it as `logits`, where more
comes between: a recurrent decoder's look at its source, the words that a model copies. Of a BERT the masked head reads
each layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.errors import RegardError
from regard.lens.trace import Trace
from regard.mixers.attention import AttentionStack
from regard.mixers.convolution import Convolution
from regard.mixers.convolution_decoder import ConvolutionDecoder
from regard.mixers.transformer_decoder import TransformerDecoder
from regard.models.bert import Bert
from regard.models.captioner import Captioner
from regard.models.gradient_model import GradientModel
from regard.models.language_model import LanguageModel
from regard.models.seq2seq import Seq2Seq

Array = NDArray[np.float64]


@torch.no_grad()
def read_out(model: Any, trace: Trace, rows: Sequence[int] | slice = slice(None)) -> dict[str, Array]:
    """log P of every token, (rows, V), by the name of the layer that it is read from: embedding, layers.0, ...

    `logits` comes last where more than the norm and the head stands behind the last layer. Layers of another width than
    the head reads are left out. `rows` are those of the trace, all by default.
    """
    norm, head, width = _find_head(model)
    found: dict[str, Array] = {}
    for name in ["embedding", *(n for n in trace.taps if n.startswith("layers.") and n.endswith(".hidden"))]:
        states = trace[name][rows]
        if name.count(".") > 2 or states.shape[-1] != width:
            continue
        weight = next(model.parameters())
        h = torch.from_numpy(states).to(weight.device, weight.dtype)
        found[name.removesuffix(".hidden")] = head(norm(h)).double().log_softmax(dim=-1).cpu().numpy()
    if "logits" in trace.taps and not _ends_with_head(norm, trace, [*found][-1]):
        found["logits"] = torch.from_numpy(trace["logits"][rows]).double().log_softmax(dim=-1).numpy()
    return found


def can_read_out(model: Any) -> bool:
    """Whether a model predicts tokens by a head that could read each of its layers."""
    return isinstance(model, Bert | GradientModel | Seq2Seq | Captioner)


def _ends_with_head(norm: nn.Module, trace: Trace, last: str) -> bool:
    """Whether the head reads the last layer's states, and nothing is added to what it says."""
    if "probabilities.mixed" in trace.taps:  # words that are copied
        return False
    states = torch.from_numpy(trace[last if last == "embedding" else f"{last}.hidden"])
    weight = next(norm.parameters(), states)
    read = norm(states.to(weight.device, weight.dtype)).cpu().numpy()
    return bool(np.allclose(read, trace["hidden"], rtol=0, atol=1e-4))


def _find_head(model: Any) -> tuple[nn.Module, Any, int]:
    """What stands between the last layer's states and the logits: a norm, the head, and how wide it reads."""
    if isinstance(model, Bert):
        return nn.Identity(), lambda h: model.logits(h)[..., : model.vocab_size], model.d_model
    if isinstance(model, GradientModel):
        inner = model if isinstance(model, LanguageModel) else model.language_model
        norm = inner.mixer.norm if isinstance(inner.mixer, AttentionStack | Convolution) else nn.Identity()
        return norm, lambda h: inner.logits(h)[..., : inner.vocab_size], inner.d_model
    if isinstance(model, Seq2Seq | Captioner):
        target = model.target
        norm = (
            target.decoder.norm
            if isinstance(target.decoder, TransformerDecoder | ConvolutionDecoder)
            else nn.Identity()
        )

        def read(h: Tensor) -> Tensor:
            return nn.functional.linear(h, target.output_weight, target.bias)

        return norm, read, target.d_model
    raise RegardError(
        f"A {type(model).__name__} predicts no token at each position: there is nothing to read out of its layers. "
        "Take a language model, a BERT, a translator or a captioner."
    )
