"""Trained readers out to Hugging Face: an encoder of BERT's family or a GPT-2, with the head that transformers has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from regard.config import RunConfig
from regard.errors import RegardError
from regard.models.bert_config import BertConfig
from regard.models.gpt2_config import GPT2Config
from regard.models.heads import States
from regard.models.reader import Reader
from regard.tasks.elsewhere import Program, use_onnxruntime, use_transformers
from regard.tasks.reader_config import EncoderConfig, NumberConfig, TagConfig
from regard.weights.hugging_face import describe_as_gpt2, write_reader
from regard.weights.onnx import write_encoder
from regard.weights.task_heads import ENDINGS, TaskHead
from regard.weights.tokenizer_files import frame_texts

POOLED = ("classification", "rating")


def export_reader(run: Any, to: Path) -> None:
    """Write a run as a folder that `AutoModelForSequenceClassification`, or that of its task, loads."""
    config: RunConfig = run.config
    if why := say_why_not(config):
        raise RegardError(f"'{run.folder}' cannot be written as a Hugging Face folder: {why}")
    encoder = _describe_encoder(config)
    plain = config.sections["head"].to_dict()  # type: ignore[union-attr]
    head = TaskHead(config.task, tuple(plain.get("labels") or ()))
    numbers = {}
    if config.task == "rating":
        own = config.section("head", NumberConfig)
        numbers = {"centre": own.centre or 0.0, "spread": own.spread or 1.0}
    write_reader(run.model, encoder, run.tokenizers[0], head, to, **numbers)


def say_why_not(config: RunConfig) -> str:
    """Why Hugging Face has no model of this form, and what to train instead; empty where it has one."""
    encoder = config.section("encoder", EncoderConfig)
    is_bert = isinstance(config.model, BertConfig)
    if why := _name_more(config):
        return why
    if not is_bert:
        if config.folders.get("encoder_from") is None and config.model_name != "gpt2":
            return f"its encoder is {config.model_name}, and it has bert and gpt2. Train with one as encoder_from."
        try:
            _describe_encoder(config)
        except RegardError as error:
            return f"{error}"
    if encoder.layers != "last":
        return f"encoder.layers is {encoder.layers}, and its heads read the last layer. Train with encoder.layers=last."
    if config.task in POOLED:
        pool = "pooler" if is_bert else "last"
        if encoder.pool != pool:
            return (
                f"encoder.pool is {encoder.pool}, and its {'BERT' if is_bert else 'GPT-2'} has {pool}. Train with "
                f"encoder.pool={pool}."
            )
    if config.task == "tagging" and config.section("head", TagConfig).has_crf:
        return "it has no conditional random field. Train with head.has_crf=false."
    if not is_bert and config.task == "rating":
        return "the head of its GPT-2 has no bias, which a number needs. Train with encoder_from a BERT."
    if not is_bert and config.task == "classification" and config.sections["head"].to_dict()["has_bias"]:  # type: ignore[union-attr]
        return "the head of its GPT-2 has no bias. Train with head.has_bias=false."
    return ""


def _name_more(config: RunConfig) -> str:
    """What a reader has that no other program does; empty where there is nothing."""
    for name in ("words", "mixer"):
        if config.sections.get(name) is not None:
            return f"it has layers of its own ({name}) between its encoder and its head. Train without {name}."
    if config.section("encoder", EncoderConfig).has_case:
        return "its encoder is told capitals beside the tokens. Train with encoder.has_case=false."
    return ""


def _describe_encoder(config: RunConfig) -> BertConfig | GPT2Config:
    if isinstance(config.model, BertConfig):
        return config.model
    return describe_as_gpt2(config.model_name, config.model, "Its encoder")


OUTPUTS = {
    "classification": ("logits",),
    "rating": ("value",),
    "tagging": ("logits",),
    "answering": ("start_logits", "end_logits"),
}
"""What an ONNX file gives by task: of a text, or of each of its tokens."""
NOT_TRACED = ("rnn-attention", "pointer", "restricted", "elmo")
"""Encoders that do one thing or another by the length of a text: torch does not trace these for every length."""


class ReaderFace(nn.Module):
    """A reader of short texts, one window each: the answer about each text, or scores of each of its tokens."""

    def __init__(self, model: Reader, task: str) -> None:
        super().__init__()
        self.model, self.task = model, task

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        mask, model = attention_mask.bool(), self.model
        h = model.choice(model.encoder.encode(input_ids, mask, token_type_ids))  # (B, T, E)
        if self.task in POOLED:
            window = mask[:, None]
            return (model.head(States(h[:, None], window, window, input_ids[:, :1])),)
        scores = model.head.answer(h)  # (B, T, K)
        return (scores,) if self.task == "tagging" else (scores[..., 0], scores[..., 1])


def export_onnx(run: Any, to: Path) -> None:
    """Write a run as an ONNX file with the tokenizer that makes its inputs."""
    config: RunConfig = run.config
    if why := say_why_no_onnx(config):
        raise RegardError(f"'{run.folder}' cannot be written as ONNX: {why}")
    labels = config.sections["head"].to_dict().get("labels")  # type: ignore[union-attr]
    facts = {"task": config.task} | ({} if labels is None else {"labels": labels})
    face, tokenizer = ReaderFace(run.model, config.task), frame_texts(run.tokenizers[0])
    write_encoder(face, OUTPUTS[config.task], tokenizer, to, facts, _has_types(config, run.has_segments))


def say_why_no_onnx(config: RunConfig) -> str:
    """Why a run is not written as ONNX, and what to train instead; empty where it is."""
    if why := _name_more(config):
        return why
    if config.model_name in NOT_TRACED:
        return (
            f"its encoder is {config.model_name}, which torch does not trace for every length. Train with bert, gpt2, "
            "transformer, attention, rnn, gru, lstm, convolution, window or bag."
        )
    if config.task == "tagging" and config.section("head", TagConfig).has_crf:
        return (
            "its tags are those of a conditional random field, whose best sequence is searched for. Train with "
            "head.has_crf=false."
        )
    return ""


def _has_types(config: RunConfig, has_two_texts: bool) -> bool:
    """Whether an encoder is told which of two texts a token is of."""
    return config.model.n_segments > 1 if isinstance(config.model, BertConfig) else has_two_texts


def list_programs(config: RunConfig, folder: Path, texts: Sequence[str], n_texts: int) -> tuple[Program, ...]:
    """How other programs use a run, with texts to try it on."""
    ending = ENDINGS[config.task]
    return (
        use_transformers(folder, ending, texts, say_why_not(config)),
        use_onnxruntime(folder, texts, _has_types(config, n_texts == 2), say_why_no_onnx(config)),
    )
