"""What all jobs share whose model learns by gradients: rehearse, fit, load.

Such a job is a `GradientTask` and adds three functions: `sizes`, the numbers a model is built for; `objective`, the
loss to minimise; and `initialise`, what is done to fresh weights before training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import RunConfig
from regard.errors import InterruptedRunError, RegardError
from regard.models.outline import outline as outline_of
from regard.models.outline import outline_for
from regard.models.table import build_model
from regard.tasks.initial_weights import InitialWeights
from regard.tasks.task import Fitting, OpenRun, Rehearsal
from regard.tasks.vectors_as_embedding import Embeddings, check_width, fill_embeddings, load_vectors
from regard.text.tokenizer import Tokenizer
from regard.training.checkpoint import MODEL, latest_checkpoint
from regard.training.config import TrainConfig
from regard.training.device import pick_device
from regard.training.loop import train_by_gradient
from regard.training.memory import check_memory, estimate_memory
from regard.training.objective import Objective
from regard.training.weights import load_weights

Sizes = tuple[int | None, ...]


class GradientTask:
    """A task whose model learns by gradients. What is here suits most of them; a task says what it does otherwise."""

    run_type: type[Any]
    summary: str
    unit = "token"
    optional: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    def sizes(self, config: RunConfig, tokenizers: tuple[Tokenizer, ...]) -> Sizes:
        """What the model is built for beside its config: sizes of vocabularies, of pictures."""
        return (tokenizers[0].vocab_size,)

    def build(self, config: RunConfig, tokenizers: tuple[Tokenizer, ...]) -> nn.Module:
        """The model with fresh weights from torch's random numbers."""
        model: nn.Module = build_model(config.model_name, config.model, *self.sizes(config, tokenizers))
        return model

    def fill_in(self, config: RunConfig, data: Any) -> RunConfig:
        """The config with what the data decide about the model."""
        return config

    def objective(self, config: RunConfig, model: Any, data: Any, fitting: Fitting | None = None) -> Objective:
        """The loss to minimise; `fitting` is None in a rehearsal, whose model has no weights."""
        raise NotImplementedError

    def embeddings(self, config: RunConfig, model: Any, tokenizers: tuple[Tokenizer, ...]) -> Embeddings:
        """The tables that hold a row a token, which may begin as word vectors (`train.vectors`)."""
        return [(model.embedding, tokenizers[-1])]

    def check_vectors(self, config: RunConfig, model: Any, data: Any, start: InitialWeights | None) -> None:
        """Refuse vectors (`train.vectors`) that cannot be the embeddings of the model, which is an outline."""
        if config.train.vectors is None:
            return
        if start is not None:
            raise RegardError("train.vectors gives embeddings their first values, and so does the model to start from.")
        tables = self.embeddings(config, model, self.tokenizers(data))
        check_width(load_vectors(config.train.vectors), config.train.vectors, tables)

    def fill_vectors(self, config: RunConfig, model: Any, data: Any) -> list[str]:
        """Let fresh embeddings begin as vectors, where `train.vectors` names any. Says how many were found."""
        if config.train.vectors is None:
            return []
        tables = self.embeddings(config, model, self.tokenizers(data))
        return fill_embeddings(load_vectors(config.train.vectors), config.train.vectors, tables)

    def initialise(self, config: RunConfig, model: Any, fitting: Fitting) -> None:
        """What fresh weights become before the first update."""

    def recognises(self, given: Mapping[str, Any]) -> bool:
        return True

    def name_sources(self, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        return {**given, "train": names[0] if len(names) == 1 else list(names)}

    def defaults(self, given: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def adapt(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        return given

    def check(self, config: RunConfig) -> RunConfig:
        return config

    def complete(self, config: RunConfig) -> RunConfig:
        return config.with_section("optimizer", config.optimizer.complete(is_recurrent=False))

    def reopen(self, config: RunConfig, fingerprint: str) -> Any | None:
        return None

    def tokenizers(self, data: Any) -> tuple[Tokenizer, ...]:
        return (data.tokenizer,)

    def fit(self, config: RunConfig, data: Any, fitting: Fitting) -> None:
        fit(self, config, data, fitting)

    def load(self, opened: OpenRun, weights: dict[str, Tensor], device: torch.device, dtype: torch.dtype) -> Any:
        return self.run_type(self, opened, load_model(self, opened, weights, device, dtype))

    def export(self, run: Any, to: Path) -> None:
        raise RegardError(f"'{run.folder}' {self.summary}, and there is no form of other programs to export it to.")

    def export_onnx(self, run: Any, to: Path) -> None:
        raise RegardError(refuse_onnx(run.folder, self.summary))

    def export_marian(self, run: Any, to: Path) -> None:
        raise RegardError(refuse_marian(run.folder, self.summary))


def refuse_marian(folder: Path, summary: str) -> str:
    """The sentence about a run that Marian, a model that translates, cannot be."""
    return f"'{folder}' {summary}, and Marian translates. Leave out --marian (in Python: is_marian)."


def refuse_onnx(folder: Path, summary: str) -> str:
    """The sentence about a run whose model is not written as ONNX."""
    return (
        f"'{folder}' {summary}, and is not written as ONNX: that is done for language models of attention (gpt2, "
        "transformer), for bert, and for what is trained on top of these. Give a name without .onnx for another form."
    )


def check_parts(train: TrainConfig) -> None:
    """Refuse a batch of `train.n_batch` rows that is to be computed in more parts than it has rows."""
    if train.n_accumulate > train.n_batch:
        raise RegardError(
            f"train.n_accumulate {train.n_accumulate} is more than train.n_batch {train.n_batch}, and it is the number "
            "of parts a batch is computed in. Lower it or raise train.n_batch."
        )


def outline(task: GradientTask, config: RunConfig, data: Any) -> Any:
    """The model with shapes and no memory."""
    return outline_of(lambda: task.build(task.fill_in(config, data), task.tokenizers(data)))


def rehearse(
    task: GradientTask,
    config: RunConfig,
    data: Any,
    start: InitialWeights | None,
    *,
    n_units: Mapping[str, int],
    first_batch: Callable[[Any], tuple[str, ...]],
    check: Callable[[Any, Any], tuple[str, ...]] = lambda model, objective: (),
    facts: Mapping[str, Any] | None = None,
) -> Rehearsal:
    """Estimate a training, and refuse it where memory is short.

    `first_batch` gives the texts of the objective's first batch. `check` is handed the outline and the objective; it
    refuses what cannot work and returns notes.
    """
    model = outline(task, config, data)
    objective = task.objective(config, model, data)
    notes = check(model, objective)
    task.check_vectors(config, model, data, start)
    needed = estimate_memory(model, objective, config.train, config.optimizer, config.runtime)
    return Rehearsal(
        config=config,
        n_parameters=sum(p.numel() for p in model.parameters()),
        flops_per_token=objective.flops_per_token,
        tokens_per_step=objective.n_rows * objective.n_target,
        memory=needed,
        n_units=n_units,
        unit=task.unit,
        vocab_size=task.tokenizers(data)[-1].vocab_size,
        read_first_batch=lambda: first_batch(objective),
        notes=(*config.notes(), *notes),
        start=None if start is None else str(start),
        facts=facts or {},
        check_memory=lambda: check_memory(
            needed, config.runtime, pick_device(config.runtime.device), objective.memory_settings
        ),
    )


def fit(task: GradientTask, config: RunConfig, data: Any, fitting: Fitting) -> None:
    """Train to the end; InterruptedRunError where a person ended it before."""
    torch.manual_seed(config.seed)
    model = task.build(config, task.tokenizers(data))
    task.initialise(config, model, fitting)
    if latest_checkpoint(fitting.folder) is None:
        for note in task.fill_vectors(config, model, data):
            fitting.reporter.note(note)
    objective = task.objective(config, model, data, fitting)
    folder, reporter, before = fitting.folder, fitting.reporter, latest_checkpoint(fitting.folder)
    result = train_by_gradient(
        model,
        objective,
        folder,
        train=config.train,
        optimizer=config.optimizer,
        schedule=config.schedule,
        runtime=config.runtime,
        checkpoint=config.checkpoint,
        seed=config.seed,
        resume=fitting.resume,
        reporter=reporter,
        begin_writing=fitting.begin_writing,
    )
    if not result.is_finished:
        raise InterruptedRunError(
            f"Stopped at step {result.step}; all is saved. Continue with: regard train --resume --out {folder}"
        )
    if before is not None and before == latest_checkpoint(folder):
        reporter.note(f"Nothing was left to do: the run ended at step {result.step} ({result.reason}).")
    elif result.reason == "patience":
        n = config.train.patience
        reporter.note(
            f"Stopped after step {result.step}: no better score in {n} evaluation{'' if n == 1 else 's'} "
            f"(train.patience). The best was at step {result.best_step}, whose weights are kept."
        )


def load_model(
    task: GradientTask, opened: OpenRun, weights: dict[str, Tensor], device: torch.device, dtype: torch.dtype
) -> Any:
    """The trained model of a run, ready to be used."""
    config, where = opened.config, opened.folder / MODEL
    # A config from elsewhere may describe a model of any size: its shapes are compared before memory is taken.
    load_weights(outline_for(weights, lambda: task.build(config, opened.tokenizers)), weights, where)
    model = task.build(config, opened.tokenizers)
    load_weights(model, weights, where)
    return model.to(device, dtype).eval()
