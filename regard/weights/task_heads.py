"""Heads of tasks as Hugging Face has them: a class or a number for a text, a tag for each token, the span of an answer.

    bert        classes and numbers   φ(W h_1 + b) is `pooler.dense`, φ = tanh, then `classifier`
    roberta                           `classifier.dense`, tanh, `classifier.out_proj`
    distilbert                        `pre_classifier`, relu, `classifier`
    gpt2                              `score` of the last token's state, without a bias
    all         tags                  `classifier` of each state
                spans                 `qa_outputs` of each state: begin, end

The models of ours are readers (`regard/models/reader.py`), whose encoder is one of these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError

if TYPE_CHECKING:
    from torch import Tensor

ENDINGS = {
    "classification": "ForSequenceClassification",
    "rating": "ForSequenceClassification",
    "tagging": "ForTokenClassification",
    "answering": "ForQuestionAnswering",
}
"""What the names of transformers' models end in."""
STEMS = {"bert": "Bert", "distilbert": "DistilBert", "roberta": "Roberta", "gpt2": "GPT2"}
PREFIXES = {"bert": "bert.", "distilbert": "distilbert.", "roberta": "roberta.", "gpt2": "transformer."}
"""What stands before the names of an encoder's tensors."""
HIDDEN, OUT = "head.answer.hidden.0", "head.answer.out"
_POOLED = {
    "bert": {HIDDEN: "bert.pooler.dense", OUT: "classifier"},
    "roberta": {HIDDEN: "classifier.dense", OUT: "classifier.out_proj"},
    "distilbert": {HIDDEN: "pre_classifier", OUT: "classifier"},
    "gpt2": {OUT: "score"},
}


@dataclass(frozen=True)
class TaskHead:
    """A head by its task, one of `regard.models.table.ENCODER_TASKS`, and its classes or tags in their order."""

    task: str
    labels: tuple[str, ...] = ()
    pool: str | None = None
    """How it makes one vector of a text, in words of our `encoder.pool`; None: it does not, or that is not asked."""


_POOLS = {"bert": "pooler", "roberta": "pooler", "distilbert": "pooler", "gpt2": "last"}
_NAMES = re.compile(r"((pre_)?classifier|qa_outputs|score)\..*")


def has_task(found: Mapping[str, Any]) -> bool:
    """Whether a config.json is of a model with the head of a task."""
    return str((found.get("architectures") or [""])[0]).endswith(tuple(ENDINGS.values()))


def is_of_head(name: str, family: str) -> bool:
    """Whether a tensor belongs to the head of a task and to nothing else."""
    return _NAMES.fullmatch(name.removeprefix(PREFIXES[family])) is not None


def name_layers(task: str, family: str) -> dict[str, str]:
    """What Hugging Face calls the layers of our head.

    >>> name_layers("tagging", "roberta"), name_layers("rating", "distilbert")["head.answer.hidden.0"]
    ({'head.answer.out': 'classifier'}, 'pre_classifier')
    """
    if task in ("classification", "rating"):
        return _POOLED[family]
    return {OUT: "classifier" if task == "tagging" else "qa_outputs"}


def name_tensors(task: str, family: str) -> dict[str, str]:
    """What Hugging Face calls the tensors of our head."""
    layers = name_layers(task, family)
    kinds = ("weight",) if layers[OUT] == "score" else ("weight", "bias")
    return {f"{ours}.{kind}": f"{theirs}.{kind}" for ours, theirs in layers.items() for kind in kinds}


def describe_head(head: TaskHead, family: str) -> dict[str, Any]:
    """What config.json says of a head."""
    written: dict[str, Any] = {"architectures": [STEMS[family] + ENDINGS[head.task]]}
    if head.task == "answering":
        return written
    if head.task == "classification":
        written["problem_type"] = "single_label_classification"
    if head.task == "rating":
        return written | {"problem_type": "regression", "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    numbered = list(enumerate(head.labels))
    return written | {"id2label": {str(i): name for i, name in numbered}, "label2id": {name: i for i, name in numbered}}


def find_head(found: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], where: str) -> TaskHead | None:
    """The head that a config.json and the shapes of the tensors tell of; None: none, or none that a task has."""
    family = found.get("model_type", "gpt2")
    architectures = found.get("architectures") or [""]
    ending = str(architectures[0]).removeprefix(STEMS[family])
    task = next((task for task, each in ENDINGS.items() if each == ending), None)
    if task is None or found.get("problem_type") == "multi_label_classification":
        return None
    out = shapes.get(f"{name_layers(task, family)[OUT]}.weight", ())
    if len(out) != 2 or not all(name in shapes for name in name_tensors(task, family).values()):
        raise RegardError(
            f"{where} describes {architectures[0]}, and the weights lack a part of its head: "
            f"{', '.join(sorted(set(name_tensors(task, family).values()) - set(shapes))) or 'its last layer'}. Copy "
            "the whole folder again."
        )
    if task == "answering":
        return TaskHead(task)
    if task == "classification" and (found.get("problem_type") == "regression" or out[0] == 1):
        return None if family == "gpt2" else TaskHead("rating", pool=_POOLS[family])  # whose head has no bias
    return TaskHead(task, _read_labels(found, out[0], where), _POOLS[family] if task == "classification" else None)


def _read_labels(found: Mapping[str, Any], n: int, where: str) -> tuple[str, ...]:
    """The names of n labels in their order; what Hugging Face calls them where config.json has none."""
    given = found.get("id2label")
    if given is None:
        return tuple(f"LABEL_{i}" for i in range(n))
    labels: list[Any] = [given.get(str(i)) for i in range(n)] if isinstance(given, dict) else []
    if len(labels) != n or not all(isinstance(label, str) and label for label in labels) or len(set(labels)) < n:
        raise RegardError(
            f'{where} must name each of the head\'s {n} labels once in id2label, from "0" to "{n - 1}". Correct it '
            "there."
        )
    return tuple(labels)


def split_head(
    tensors: Mapping[str, Tensor], own: Mapping[str, Tensor], head: TaskHead, family: str, where: str
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The tensors of a head by our names, in float32, and those of the layers below; `own` are a reader's."""
    names = name_tensors(head.task, family)
    found = {}
    for ours, theirs in names.items():
        if tuple(tensors[theirs].shape) != tuple(own[ours].shape) or not tensors[theirs].is_floating_point():
            raise RegardError(
                f"'{theirs}' in {where} is {tuple(tensors[theirs].shape)} of {tensors[theirs].dtype}, and by "
                f"config.json it must be {tuple(own[ours].shape)} in floating point. Copy the weights again."
            )
        found[ours] = tensors[theirs].float().contiguous()
    return found, {name: tensor for name, tensor in tensors.items() if name not in names.values()}


def join_head(
    own: Mapping[str, Tensor], head: TaskHead, family: str, centre: float, spread: float
) -> dict[str, Tensor]:
    """The tensors of our head by Hugging Face's names. A number is centre + spread (w·v + b): both go into w and b."""
    names = name_tensors(head.task, family)
    result = {theirs: own[ours] for ours, theirs in names.items()}
    if (centre, spread) != (0.0, 1.0):
        weight, bias = (f"{name_layers(head.task, family)[OUT]}.{kind}" for kind in ("weight", "bias"))
        result |= {weight: result[weight] * spread, bias: result[bias] * spread + centre}
    return {name: tensor.contiguous() for name, tensor in result.items()}
