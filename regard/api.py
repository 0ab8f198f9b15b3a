"""The few functions that Regard is: train, load, compare, trace. The command line calls these and nothing deeper."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard import __version__
from regard import folder as run_folder
from regard.card import write_card
from regard.config import RunConfig, check_unknown_words, folder_of, load_config, mapping, read_yaml, with_settings
from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel
from regard.data.encode import Prepared, prepare
from regard.decoder_start import in_its_vocabulary
from regard.errors import InterruptedRunError, RegardError, naming_recipe
from regard.files import write_atomically
from regard.lens.trace import trace
from regard.models.gradient_model import GradientModel
from regard.models.table import PICTURE_MODELS, build_language_model, model_entry
from regard.plan import Drawing, Plan, caption_plan, pair_plan
from regard.run import Run
from regard.run import load as load_text_run
from regard.score.evaluate import evaluate
from regard.start import Start, first_weights_of, start_at, started_at, starting_from
from regard.training.checkpoint import latest_checkpoint
from regard.training.count import check_end_mark, train_count
from regard.training.device import pick_device
from regard.training.evaluation import first_tokens
from regard.training.loop import train_task
from regard.training.memory import check_memory
from regard.training.memory import estimate as estimate_memory
from regard.training.progress import Reporter, Silent
from regard.training.reading import batches_for, context_of
from regard.training.text_task import TextTask
from regard.training.weights import load_weights

if TYPE_CHECKING:
    from regard.comparison.result import Comparison
    from regard.studies.finding import Study
    from regard.text.learning import Progress

__all__ = ["Plan", "Run", "compare", "load", "plan", "report", "study", "trace", "train"]

MAX_TEST_TOKENS = 200_000
"""A run is scored on so much of its test text when it ends; `regard eval` scores all of it."""


def resolve(
    recipe: RunConfig | Mapping[str, Any] | str | Path | None,
    *,
    model: str | None = None,
    data: str | Sequence[str] | None = None,
    start_from: str | Path | None = None,
    settings: Sequence[str] = (),
    begun: Path | None = None,
) -> RunConfig:
    """The complete config: the recipe, then `model`, `data` and `start_from`, then every `a.b=c` of `settings`.

    A run that is in `begun` already has all that it took from where it started: that folder need not be there any more.
    """
    if isinstance(recipe, RunConfig):
        given = recipe.to_dict()
    elif isinstance(recipe, Mapping):
        given = dict(recipe)
    else:
        given = read_yaml(Path(recipe)) if recipe is not None else {}
    if model is not None:
        current = mapping(given, "model")
        # Another model's settings mean nothing to this one.
        given["model"] = current if current.get("name") == model else {"name": model}
    if data is not None:
        given["data"] = _data_of(given, [data] if isinstance(data, str) else list(data))
    given = with_settings(given, settings)
    if start_from is not None:
        given["start_from"] = str(start_from)
    if (path := folder_of(given, "start_from")) is not None:
        is_begun = begun is not None and load_config(begun / "config.yaml").start_from == path
        given = starting_from(given, started_at(begun) if begun is not None and is_begun else start_at(Path(path)))
    return RunConfig.from_dict(in_its_vocabulary(given, begun))


def _data_of(given: Mapping[str, Any], named: list[str]) -> dict[str, Any]:
    """The data section with other sources: what `data.train` takes, or for pictures a folder and their captions."""
    kept = {k: v for k, v in mapping(given, "data").items() if k not in ("valid", "test")}
    name = mapping(given, "model").get("name")
    if name not in PICTURE_MODELS:
        return kept | {"train": named[0] if len(named) == 1 else named}
    if len(named) != 2:
        raise RegardError(
            f"--data of a model that describes pictures names two things, their folder and the file of captions, not "
            f"{', '.join(named)}."
        )
    kept.pop("train", None)
    return kept | {"pictures": named[0], "captions": named[1]}


def train(
    recipe: RunConfig | Mapping[str, Any] | str | Path | None = None,
    *,
    model: str | None = None,
    data: str | Sequence[str] | None = None,
    start_from: str | Path | None = None,
    settings: Sequence[str] = (),
    out: str | Path | None = None,
    resume: bool = False,
    is_tested: bool = True,
    progress: Drawing | None = None,
    reporter: Reporter | None = None,
) -> Any:
    """Train one model into the run folder `out` and return it, loaded: a Run, PairRun or CaptionRun.

    `recipe` is a path to YAML, a mapping of the same form, or None for every default; `model`, `data` and `settings`
    lie on top of it. With `resume`, the run in `out` is continued from its last state; a recipe is not needed then,
    and one that differs from the run's own config is refused. `is_tested` scores the test text at the end.
    `start_from` is a folder, a run or a Hugging Face GPT-2, whose model, tokenizer and weights are trained further.

        run = regard.train({"model": {"name": "lstm"}}, data="my.txt", out="runs/mine")
        run = regard.train(start_from="gpt2", data="my.txt", out="runs/mine")
    """
    asked = {"model": model, "data": data, "start_from": start_from, "settings": settings}
    if resume and out is not None:
        run_folder.check_resumable(Path(out))
    folder, config = _place(recipe, asked, out=out, resume=resume)
    reporter, progress = reporter or Silent(), progress or _drawing_nothing
    named = recipe if data is None else None
    if config.reads_pairs:
        from regard.pair_training import train_pairs

        with naming_recipe(named):
            return train_pairs(config, folder, resume=resume, is_tested=is_tested, progress=progress, reporter=reporter)
    if config.reads_pictures:
        from regard.caption_training import train_captions

        with naming_recipe(named):
            return train_captions(
                config, folder, resume=resume, is_tested=is_tested, progress=progress, reporter=reporter
            )
    return _train_text(config, folder, named, resume, is_tested, progress, reporter)


def _train_text(
    config: RunConfig,
    folder: Path,
    recipe: Any,
    resume: bool,
    is_tested: bool,
    progress: Drawing,
    reporter: Reporter,
) -> Run:
    start = first_weights_of(config.start_from, folder)
    for note in [*([start.note] if start is not None and start.note else []), *config.notes()]:
        reporter.note(note)
    is_begun = (folder / "config.yaml").exists()
    with progress() as draw, naming_recipe(recipe):
        if is_begun:
            prepared = run_folder.prepared_again(folder, config, progress=draw)
        else:
            prepared = prepare(config.text, config.tokenizer, progress=draw)
    facts = _rehearsed(config, prepared, start)
    first_weights = None if start is None else start.weights()
    with run_folder.alone_in(folder):
        if not is_begun:
            run_folder.begin(folder, config, prepared.tokenizer, facts)
        _fit(config, prepared, folder, resume, reporter, first_weights)
        return _finished(config, prepared, folder, is_tested)


def load(folder: str | Path, device: str = "auto", precision: str = "float32") -> Any:
    """Open a run folder: a Run, a PairRun where its model reads pairs, a CaptionRun where it describes pictures.

    Nothing in it is executed. `precision="bf16"` rounds the weights to bfloat16: half the memory, and faster on a GPU.
    """
    config = run_folder.open_folder(Path(folder))[0]
    if config.reads_pictures:
        from regard.caption_run import load_caption_run

        return load_caption_run(folder, device, precision)
    if config.reads_pairs:
        from regard.pair_run import load_pair_run

        return load_pair_run(folder, device, precision)
    return load_text_run(folder, device, precision)


def _finished(config: RunConfig, prepared: Prepared, folder: Path, is_tested: bool) -> Run:
    """The run, loaded, with its test score and its card written."""
    run = load_text_run(folder)
    if isinstance(run.model, NgramModel):  # how many n-grams a text has is known once they are counted
        run.facts = replace(run.facts, n_parameters=sum(run.model.n_ngrams))
        run_folder.write_facts(folder, run.facts)
    test = None
    if is_tested and len(prepared.test):
        test = evaluate(run.next_token, first_tokens(prepared.test, MAX_TEST_TOKENS))
        write_atomically(folder / "test.json", (json.dumps(test.to_dict(), indent=2) + "\n").encode())
    write_card(folder, config, run.facts, prepared, test)
    return run


def _fit(
    config: RunConfig,
    prepared: Prepared,
    folder: Path,
    resume: bool,
    reporter: Reporter,
    first_weights: dict[str, Tensor] | None,
) -> None:
    """Count or descend, whichever the model does."""
    if isinstance(config.model, NgramConfig):
        train_count(config.model, prepared, folder, train=config.train, reporter=reporter)
        return
    torch.manual_seed(config.seed)
    network = build_language_model(config.model_name, config.model, prepared.tokenizer.vocab_size)
    if first_weights is not None:
        load_weights(network, first_weights)
        first_weights.clear()  # so much memory is not needed twice
    before = latest_checkpoint(folder)
    result = train_task(
        network,
        TextTask(network, prepared, config.train, config.seed),
        folder,
        train=config.train,
        optimizer=config.optimizer,
        schedule=config.schedule,
        runtime=config.runtime,
        checkpoint=config.checkpoint,
        seed=config.seed,
        resume=resume,
        reporter=reporter,
    )
    if not result.is_finished:
        raise InterruptedRunError(
            f"Stopped at step {result.step}; all is saved. Continue with: regard train --resume --out {folder}"
        )
    if before is not None and before == latest_checkpoint(folder):
        reporter.note(f"Nothing was left to do: the run ended at step {result.step} ({result.reason}).")


def _place(
    recipe: RunConfig | Mapping[str, Any] | str | Path | None,
    asked: Mapping[str, Any],
    *,
    out: str | Path | None,
    resume: bool,
) -> tuple[Path, RunConfig]:
    """Where the run lives and what it is, checked against what is there already."""
    if resume and recipe is None and not any(asked.values()):
        if out is None:
            raise RegardError("--resume needs to know which run: give its folder with --out.")
        return Path(out), run_folder.open_folder(Path(out))[0]
    begun = Path(out) if resume and out is not None and (Path(out) / "config.yaml").exists() else None
    if begun is not None and recipe is None:  # what is asked for lies on top of what the run is
        recipe = run_folder.open_folder(begun)[0]
    config = resolve(recipe, **asked, begun=begun)
    name = Path(recipe).stem if isinstance(recipe, str | Path) else config.model_name
    folder = Path(out) if out is not None else Path("runs") / name
    if resume and (folder / "config.yaml").exists():
        run_folder.check_same(folder, config)
    else:
        run_folder.check_free(folder)
    return folder, config


def plan(
    recipe: RunConfig | Mapping[str, Any] | str | Path | None = None,
    *,
    model: str | None = None,
    data: str | Sequence[str] | None = None,
    start_from: str | Path | None = None,
    settings: Sequence[str] = (),
    progress: Drawing | None = None,
) -> Plan:
    """The complete config, size, cost and first batch of a run; nothing is trained and no run folder is written."""
    config = resolve(recipe, model=model, data=data, start_from=start_from, settings=settings)
    if config.reads_pairs:
        with naming_recipe(recipe if data is None else None):
            return pair_plan(config, progress or _drawing_nothing)
    if config.reads_pictures:
        with naming_recipe(recipe if data is None else None):
            return caption_plan(config, progress or _drawing_nothing)
    start = None if config.start_from is None else start_at(Path(config.start_from))
    with (progress or _drawing_nothing)() as draw, naming_recipe(recipe if data is None else None):
        prepared = prepare(config.text, config.tokenizer, progress=draw)
    sizes = {name: len(getattr(prepared, name)) for name in ("train", "valid", "test")}
    tokenizer = prepared.tokenizer
    check_unknown_words(config.model, tokenizer.kind, "the one at tokenizer.path")
    if model_entry(config.model_name).kind == "count":
        check_end_mark(tokenizer)
        beginning = tokenizer.decode(prepared.train[:256])
        return Plan(config, None, None, None, sizes, tokenizer.vocab_size, (beginning,))
    network = _outline(config, tokenizer.vocab_size)
    memory = estimate_memory(network, train=config.train, optimizer=config.optimizer, runtime=config.runtime)
    batches = batches_for(network, prepared.train, config.train, config.seed)
    return Plan(
        config,
        network.n_parameters,
        network.flops_per_token(context_of(network, config.train)),
        memory,
        sizes,
        tokenizer.vocab_size,
        tuple(tokenizer.decode(row) for row in batches.at(0).inputs),
        start,
    )


def compare(
    contenders: Sequence[str] | str | Path | Mapping[str, Any],
    *,
    data: str | Sequence[str] | None = None,
    budget: str | None = None,
    params: str | None = None,
    seeds: int | Sequence[int] | None = None,
    tokenizer: str | None = None,
    prompt: str | None = None,
    out: str | Path | None = None,
    progress: Drawing | None = None,
    reporter: Reporter | None = None,
) -> Comparison:
    """Train every contender under one budget and rank them; see `regard compare --help`."""
    from regard.comparison.plan import comparison_plan
    from regard.comparison.runner import run_comparison

    given = comparison_plan(
        contenders, data=data, budget=budget, params=params, seeds=seeds, tokenizer=tokenizer, prompt=prompt, out=out
    )
    recipe = contenders if isinstance(contenders, str | Path) else None
    with naming_recipe(recipe if data is None else None):
        return run_comparison(given, progress=progress or _drawing_nothing, reporter=reporter or Silent())


def report(folder: str | Path) -> Path:
    """Draw a comparison's report.html and overview.png again from its compare.json."""
    from regard.comparison.runner import draw_again

    return draw_again(Path(folder))


def study(
    name: str,
    *,
    runs: str | Path | Sequence[str | Path] = (),
    settings: Sequence[str] = (),
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Study:
    """Run the study called `name` (see `regard study`), write its page into `out` and return what it found."""
    from regard.studies.runner import run_study

    given = [runs] if isinstance(runs, str | Path) else list(runs)
    folder = study_folder(name) if out is None else Path(out)
    return run_study(name, runs=given, settings=settings, out=folder, tell=progress)


def study_folder(name: str) -> Path:
    """Where the page of a study goes if nothing else is said."""
    return Path("study") / name


def _rehearsed(config: RunConfig, prepared: Prepared, start: Start | None) -> run_folder.RunFacts:
    """All that can be refused is refused here, with no weights allocated and before anything is written."""
    tokenizer, n_parameters, flops = prepared.tokenizer, 0, 0
    check_unknown_words(config.model, tokenizer.kind, "the one at tokenizer.path")
    if model_entry(config.model_name).kind == "count":
        check_end_mark(tokenizer)
    if model_entry(config.model_name).kind == "gradient":
        network = _outline(config, tokenizer.vocab_size)
        batches_for(network, prepared.train, config.train, config.seed)
        needed = estimate_memory(network, train=config.train, optimizer=config.optimizer, runtime=config.runtime)
        check_memory(needed, config.runtime, pick_device(config.runtime.device))
        n_parameters, flops = network.n_parameters, network.flops_per_token(context_of(network, config.train))
    return run_folder.RunFacts(
        format=run_folder.FORMAT,
        regard=__version__,
        model=config.model_name,
        vocab_size=tokenizer.vocab_size,
        tokenizer=tokenizer.hash,
        data=prepared.fingerprint,
        n_parameters=n_parameters,
        flops_per_token=flops,
        started_from=None if start is None else str(start.path),
        started_weights=None if start is None else start.sha256,
    )


def _outline(config: RunConfig, vocab_size: int) -> GradientModel:
    """The model with shapes and no memory."""
    with torch.device("meta"):
        return build_language_model(config.model_name, config.model, vocab_size)


def _drawing_nothing() -> AbstractContextManager[None]:
    return nullcontext()
