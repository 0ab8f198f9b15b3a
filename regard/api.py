"""The few functions that Regard is: train, load, compare, trace. The command line calls these and nothing deeper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard import folder as run_folder
from regard.config import RunConfig, folder_of, load_config, mapping, read_yaml, with_settings
from regard.decoder_start import in_its_vocabulary
from regard.errors import RegardError, naming_recipe
from regard.lens.trace import trace
from regard.models.table import PICTURE_MODELS
from regard.plan import Drawing, Plan, caption_plan, pair_plan, text_plan
from regard.run import Run
from regard.run import load as load_text_run
from regard.start import start_at, started_at, starting_from
from regard.text_training import train_text
from regard.training.progress import Reporter, Silent

if TYPE_CHECKING:
    from regard.comparison.result import Comparison
    from regard.studies.finding import Study
    from regard.text.learning import Progress

__all__ = ["Plan", "Run", "compare", "load", "plan", "report", "study", "trace", "train"]


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
    how: dict[str, Any] = {"resume": resume, "is_tested": is_tested, "progress": progress, "reporter": reporter}
    with naming_recipe(recipe if data is None else None):
        if config.reads_pairs:
            from regard.pair_training import train_pairs

            return train_pairs(config, folder, **how)
        if config.reads_pictures:
            from regard.caption_training import train_captions

            return train_captions(config, folder, **how)
        return train_text(config, folder, **how)


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
    planned = pair_plan if config.reads_pairs else caption_plan if config.reads_pictures else text_plan
    with naming_recipe(recipe if data is None else None):
        return planned(config, progress or _drawing_nothing)


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


def _drawing_nothing() -> AbstractContextManager[None]:
    return nullcontext()
