"""The few functions that Regard is: train, load, compare, trace. The command line calls these and nothing deeper."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from regard.config import RunConfig, mapping, read_yaml, with_settings
from regard.data.known_sources import remember_starts, trust_sources
from regard.errors import RegardError, naming_recipe, nearest
from regard.files import check_not_there
from regard.lens.recording import trace
from regard.models.table import MODELS
from regard.report.evaluation import check_evaluation_folder, draw_evaluation
from regard.report.look import look_next
from regard.report.looking import look, look_alignments, open_models, predict_next
from regard.report.page_folder import check_page_folder
from regard.run import engine
from regard.run import folder as run_folder
from regard.run.checksums import Checked, check_run, trust_run
from regard.run.embed import embed_texts
from regard.run.engine import load as load_run
from regard.run.exchange import export_run, import_run
from regard.run.initial_weights import apply_start
from regard.score.word_tests import WordEvaluation, read_word_test, score_word_test
from regard.tasks.labelled_run import LabelledEvaluation
from regard.tasks.run_facts import read_facts
from regard.tasks.table import AnyRun, build_config, name_sources, task_name, task_of
from regard.tasks.task import ProgressBar, Rehearsal
from regard.tasks.vectors_as_embedding import load_vectors
from regard.tasks.word_coverage import measure_coverage
from regard.text.learning import Progress
from regard.training.device import take_free_threads
from regard.training.progress import Reporter, python_reporter
from regard.weights.word_vectors import write_vectors

if TYPE_CHECKING:
    from regard.compare.result import Comparison
    from regard.studies.finding import Study

Recipe = RunConfig | Mapping[str, Any] | str | Path | None
"""A path to YAML, a mapping of the same form, a complete config, or None for every default."""
NAME_MODEL = ("model", "model.name", "start_from", "encoder_from", "decoder_from")
"""Settings that say which model is to be trained."""
Kind = TypeVar("Kind")

__all__ = [
    "check", "check_page_folder", "compare", "compare_runs", "draw_word_map", "export", "export_vectors", "import_run",
    "load", "load_vectors", "look", "look_alignments", "look_next", "measure_coverage", "open_models", "plan",
    "predict_next", "report", "score_vectors", "study", "trace", "train",
]  # fmt: skip


def resolve(
    recipe: Recipe,
    *,
    model: str | None = None,
    task: str | None = None,
    data: str | Sequence[str] | None = None,
    start_from: str | Path | None = None,
    settings: Sequence[str] = (),
    begun: Path | None = None,
) -> RunConfig:
    """The config of a run: the recipe, then `model`, `task`, `data` and `start_from`, then every `a.b=c` of `settings`.

    The name of a model in place of the recipe is `model`. A run that is in `begun` already has all that it took from
    where it started: that folder need not be there any more.
    """
    recipe, model = _name_model(recipe, model, task)
    if isinstance(recipe, RunConfig):
        given = recipe.to_dict()
    elif isinstance(recipe, Mapping):
        given = dict(recipe)
    elif task is not None and recipe is not None and not str(recipe).endswith((".yaml", ".yml")):
        given = name_encoder(str(recipe))
    else:
        given = read_yaml(Path(recipe)) if recipe is not None else {}
    if model is not None:
        current = mapping(given, "model")
        # Another model's settings mean nothing to this one.
        given["model"] = current if current.get("name") == model else {"name": model}
        given.pop("task", None)
    if task is not None:
        given["task"] = task_name(task)
    if data is not None:
        given = name_sources(given, [data] if isinstance(data, str) else list(data))
    given = with_settings(given, settings)
    if start_from is not None:
        given["start_from"] = str(start_from)
    before = None if begun is None else run_folder.load_config(begun / "config.yaml")
    return build_config(apply_start(given, begun), is_new=begun is None, begun=before)


def _says_which_model(recipe: Recipe, asked: Mapping[str, Any]) -> bool:
    """Whether a new run could begin with what is asked for, or only one go on that knows its model."""
    is_named = recipe is not None or any(asked[name] is not None for name in ("model", "start_from"))
    return is_named or any(setting.partition("=")[0].strip() in NAME_MODEL for setting in asked["settings"])


def _name_model(recipe: Recipe, model: str | None, task: str | None) -> tuple[Recipe, str | None]:
    """The recipe and the model, where `recipe` may be the name of a model: `regard train lstm` is `--model lstm`.

    With a task the first word is what reads the texts (`name_encoder`) and stays as it is.
    """
    name = str(recipe)
    if recipe is None or task is not None or not isinstance(recipe, str | Path) or Path(recipe).is_file():
        return recipe, model
    if name in MODELS:
        if model not in (None, name):
            raise RegardError(f"'{name}' and --model {model} name two models. Leave one of them out.")
        return None, name
    if not Path(name).suffix and Path(name).name == name and not Path(name).exists():
        raise RegardError(
            f"'{name}' is neither a model nor a recipe.{nearest(name, MODELS)} Give a name of `regard models`, or a "
            "YAML file (`regard recipes`)."
        )
    return recipe, model


def name_encoder(given: str) -> dict[str, Any]:
    """The plain config of what reads texts for a task: a model by name, or the folder of one that was pre-trained."""
    if given in MODELS:
        return {"model": {"name": given}}
    if not Path(given).is_dir():
        known = [name for name, entry in MODELS.items() if entry.encodes]
        raise RegardError(
            f"'{given}' is no recipe, no model and no folder of one.{nearest(given, known)} Models that read texts: "
            f"{', '.join(known)}."
        )
    return {"encoder_from": given}


def train(
    recipe: Recipe = None,
    *,
    model: str | None = None,
    task: str | None = None,
    data: str | Sequence[str] | None = None,
    start_from: str | Path | None = None,
    settings: Sequence[str] = (),
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    is_tested: bool = True,
    progress: ProgressBar | None = None,
    reporter: Reporter | None = None,
) -> AnyRun:
    """Train one model into the run folder `out` and return it, loaded, with the verbs of its task.

    `recipe` is a path to YAML, a mapping of the same form, or None for every default; `model`, `data` and `settings`
    lie on top of it. With `resume`, the run in `out` is continued from its last state; a recipe is not needed then,
    and one that differs from the run's own config is refused. `force` writes into a folder that holds other files; a
    run in it is never written over. `is_tested` scores the test text at the end. `start_from` is a folder, a run or a
    Hugging Face GPT-2, whose model, tokenizer and weights are trained further.

        run = regard.train({"model": {"name": "lstm"}}, data="my.txt", out="runs/mine")
        run = regard.train(start_from="gpt2", data="my.txt", out="runs/mine")
    """
    asked = {"model": model, "task": task, "data": data, "start_from": start_from, "settings": settings}
    folder, config = _place(recipe, asked, out=out, resume=resume, force=force)
    with naming_recipe(recipe if data is None else None):
        return engine.train(
            config,
            folder,
            resume=resume,
            force=force,
            is_tested=is_tested,
            progress=progress or nullcontext,
            reporter=reporter or python_reporter(),
        )


@overload
def load(
    folder: str | Path,
    device: str = "auto",
    precision: str = "float32",
    *,
    engine: str = "torch",
    step: int | None = None,
) -> AnyRun: ...


@overload
def load(
    folder: str | Path,
    device: str = "auto",
    precision: str = "float32",
    *,
    kind: type[Kind],
    engine: str = "torch",
    step: int | None = None,
) -> Kind: ...


def load(
    folder: str | Path,
    device: str = "auto",
    precision: str = "float32",
    *,
    kind: type[Any] | None = None,
    engine: str = "torch",
    step: int | None = None,
) -> Any:
    """Open a run folder: a LanguageModelRun, TranslationRun, MaskedLanguageModelRun or another, as its task says.

    With `kind`, one of these classes, any other run is refused, and editors know what is returned. Nothing in the
    folder is executed. `precision="bf16"` rounds the weights to bfloat16: half the memory, and faster on a GPU.
    `engine="ctranslate2"` decodes a Transformer that writes text or translates by CTranslate2, on the CPU, with
    `precision` float32 or int8. `step` opens the weights that the run kept after that step (`checkpoint.snapshots`).
    A loaded run may be used from several threads.

        run = regard.load("runs/en-de", kind=regard.TranslationRun)
    """
    return load_run(folder, device, precision, kind, engine, step)


def _place(
    recipe: Recipe, asked: Mapping[str, Any], *, out: str | Path | None, resume: bool, force: bool
) -> tuple[Path, RunConfig]:
    """Where the run lives and what it is, checked against what is there already."""
    if resume and out is not None:
        run_folder.check_resumable(Path(out))
    if resume and recipe is None and not any(asked.values()):
        if out is None:
            raise RegardError("Say which run to resume: give its folder with --out (in Python: out).")
        return Path(out), run_folder.open_folder(Path(out)).config
    recipe, model = _name_model(recipe, asked["model"], asked["task"])
    asked = {**asked, "model": model}
    begun = Path(out) if resume and out is not None and (Path(out) / "config.yaml").exists() else None
    if resume and out is not None and begun is None and not _says_which_model(recipe, asked):
        run_folder.open_folder(Path(out))  # says what is missing there
    has_recipe = recipe is not None
    names_data = has_recipe or asked["data"] is not None
    opened = None if begun is None else run_folder.open_folder(begun)  # a config that has changed is refused
    if opened is not None and recipe is None:  # what is asked for lies on top of what the run is
        recipe = opened.config
    config = resolve(recipe, **asked, begun=begun)
    name = Path(recipe).stem if isinstance(recipe, str | Path) else config.model_name
    folder = Path(out) if out is not None else Path("runs") / name
    if resume and (folder / "config.yaml").exists():
        run_folder.check_same(folder, config)
        if names_data:  # by the user, and not by the folder alone
            trust_sources(config.data.to_dict(), read_facts(folder).data)
        if has_recipe:
            remember_starts(config.to_dict(), read_facts(folder).data)
    else:
        run_folder.check_free(folder, force=force)
    return folder, config


@take_free_threads()
def evaluate(
    run: AnyRun,
    data: str | Sequence[str] | None = None,
    *,
    split: str = "test",
    out: str | Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Score a run on a split of its own data, or on other data; options that are None are left out.

    Which options there are depends on the run's task: `stride` for language models, `beam`, `tag` and `skips_bad` for
    those that write targets. With `out`, what classifies, rates, tags or answers has a page drawn in that folder:
    reliability, confusions, the worst errors; `force` draws into one that holds files of somebody else. `progress` is
    told how far decoding is, which of all that is scored takes longest.
    """
    asked = {name: value for name, value in options.items() if value is not None}
    allowed = inspect.signature(run.evaluate).parameters
    if progress is not None and "progress" in allowed:
        asked["progress"] = progress
    for name in asked:
        if name not in allowed:
            option = {"tag": "to", "skips_bad": "skip-bad"}.get(name, name)
            raise RegardError(f"--{option} does not apply to '{run.folder}', a run that {task_of(run.config).summary}.")
    if "skips_bad" in asked and data is None:
        raise RegardError("--skip-bad is for what --data names: name some, or leave it out.")
    if out is not None:
        check_evaluation_folder(run, Path(out), force)
    found = run.evaluate(data, split=split, **asked)
    if out is not None:
        assert isinstance(found, LabelledEvaluation), "any other run was refused before"
        draw_evaluation(found, run.folder.resolve().name, Path(out), force)
    return found


def check(folder: str | Path, *, is_trusted: bool = False) -> Checked:
    """Compare the files of a run with their checksums, and say whether the data that it names may be read here.

    `is_trusted` takes the files as they are now, and lets the data be read.
    """
    if is_trusted:
        trust_run(Path(folder))
    return check_run(Path(folder))


def export(folder: str | Path, to: str | Path, *, force: bool = False, is_marian: bool = False) -> None:
    """Write a run for another program: a name in .onnx as that, else ARPA, a folder of Hugging Face or CTranslate2.

    A file that is there already, or a folder that an earlier export wrote, is written over with `force` only, and any
    other folder never. `is_marian`: a Transformer that
    translates is written for Hugging Face, as Marian, and not for CTranslate2.
    """
    check_not_there(Path(to), force)  # before anything is loaded
    export_run(engine.load(folder, device="cpu"), to, is_marian, force)


def embed(
    folder: str | Path,
    texts: Sequence[str],
    to: str | Path,
    *,
    layers: str = "last",
    pool: str = "mean",
    stride: int | None = None,
    n_batch: int = 32,
    force: bool = False,
    device: str = "auto",
    precision: str = "float32",
) -> tuple[int, int]:
    """Write the vectors of texts, from the layers of a BERT in a run or a Hugging Face folder, as .npz or .parquet.

    Returns how many vectors there are and how wide they are: one a text, or with the pool "none" one a token.
    """
    return embed_texts(
        Path(folder), texts, Path(to), layers=layers, pool=pool, stride=stride, n_batch=n_batch, force=force,
        device=device, precision=precision,
    )  # fmt: skip


def plan(
    recipe: Recipe = None,
    *,
    model: str | None = None,
    task: str | None = None,
    data: str | Sequence[str] | None = None,
    start_from: str | Path | None = None,
    settings: Sequence[str] = (),
    out: str | Path | None = None,
    resume: bool = False,
    progress: ProgressBar | None = None,
) -> Rehearsal:
    """The complete config, size, cost and first batch of a run; nothing is trained and no run folder is written.

    With `resume` it is the run in `out`, with what is to change.
    """
    asked: dict[str, Any] = {
        "model": model, "task": task, "data": data, "start_from": start_from, "settings": settings,
    }  # fmt: skip
    folder = None
    if resume:
        folder, config = _place(recipe, asked, out=out, resume=True, force=False)
    else:
        config = resolve(recipe, **asked)
    with naming_recipe(recipe if data is None else None):
        return engine.rehearse(config, progress or nullcontext, folder)


def compare(
    contenders: Sequence[str | Path] | str | Path | Mapping[str, Any],
    *,
    task: str | None = None,
    data: str | Sequence[str] | None = None,
    budget: str | None = None,
    seconds: float | None = None,
    params: str | int | None = None,
    match: str | None = None,
    seeds: int | Sequence[int] | None = None,
    jobs: int | None = None,
    tokenizer: str | None = None,
    prompt: str | None = None,
    split: str | None = None,
    beam: int | None = None,
    context: int | str | None = None,
    max_tokens: int | None = None,
    device: str | None = None,
    levels: Sequence[float] = (),
    is_each: bool | None = None,
    skips_bad: bool | None = None,
    out: str | Path | None = None,
    progress: ProgressBar | None = None,
    reporter: Reporter | None = None,
) -> Comparison:
    """Compare finished runs, given by their folders, or train models under one budget and compare these.

    Models are given by their names, or by a recipe (a YAML file, or a mapping of the same form) that describes the
    whole comparison; `data` is what they are trained on, `budget` (1e14flops, 5Mtokens) what each may cost; a time such
    as 2min is turned into FLOPs by the speed of this machine, while `seconds` are those of the clock. `match` says what
    of their parameters is equal (total, non-embedding, none); `jobs` how many are trained at a time. Runs are tested on
    the `split` of their own data, or on `data`; those that differ by their seed alone are one contender, unless
    `is_each`. `levels` are validation scores whose cost is told. Language models are scored a second time with the same
    `context` for all, so many tokens, by default as few as one of them sees; "own" leaves that out.

        regard.compare(["ngram", "lstm"], data="my.txt", budget="2min", out="compare/mine").ranking
        regard.compare(["runs/lstm", "runs/transformer"], out="compare/runs").to_frame()
    """
    # Here, since most verbs need none of it and start the sooner.
    from regard.compare.comparing import Options, run_comparison
    from regard.report.comparison import draw_comparison

    reporter = reporter or python_reporter()
    options = Options(
        task=task, data=data, budget=budget, seconds=seconds, params=params, match=match, seeds=seeds, jobs=jobs,
        tokenizer=tokenizer,
        prompt=prompt, split=split, beam=beam, context=None if context is None else str(context),
        max_tokens=max_tokens, device=device, levels=levels, each=is_each or None, skip_bad=skips_bad or None, out=out,
    )  # fmt: skip
    given = [contenders] if isinstance(contenders, str | Path) else list(contenders)
    recipe = next((name for name in given if str(name).endswith((".yaml", ".yml"))), None)
    with naming_recipe(recipe if data is None else None):
        comparison = run_comparison(contenders, options, progress or nullcontext, reporter)
    assert comparison.folder is not None
    draw_comparison(comparison, comparison.folder, reporter.note)
    return comparison


compare_runs = compare


def report(folder: str | Path, force: bool = False) -> Path:
    """Draw a comparison's report.html and overview.png again from its compare.json.

    `force` draws over a page or a picture of somebody else.
    """
    # Here, since most verbs need none of it and start the sooner.
    from regard.compare.result import Comparison
    from regard.report.comparison import check_drawn, draw_comparison

    comparison, place = Comparison.load(Path(folder)), Path(folder)
    if not force:
        check_drawn(place, "add --force (in Python: force=True)")
    return draw_comparison(comparison, place)


def study(
    name: str,
    *,
    runs: str | Path | Sequence[str | Path] = (),
    settings: Sequence[str] = (),
    out: str | Path | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Study:
    """Run the study called `name` (see `regard study`), write its page into `out` and return what it found.

    `jobs` is how many models are trained at a time, each in a process of its own.
    """
    from regard.studies.runner import run_study  # here, since most verbs need no study and start the sooner

    given = [runs] if isinstance(runs, str | Path) else list(runs)
    folder = study_folder(name) if out is None else Path(out)
    return run_study(name, runs=given, settings=settings, out=folder, n_jobs=jobs, tell=progress)


def study_folder(name: str) -> Path:
    """Where the page of a study goes if nothing else is said."""
    return Path("study") / name


def export_vectors(source: str | Path, to: str | Path, form: str | None = None, *, force: bool = False) -> None:
    """Write the word vectors of a run or a file as word2vec's text or binary or as GloVe's text, as `to` is named."""
    check_not_there(Path(to), force)
    write_vectors(load_vectors(source), Path(to), form)


def score_vectors(source: str | Path, tests: Sequence[str | Path]) -> WordEvaluation:
    """Score the word vectors of a run or a file on files of rated pairs or of analogies."""
    vectors = load_vectors(source)
    return WordEvaluation(tuple(score_word_test(vectors, read_word_test(Path(test))) for test in tests))


def draw_word_map(
    source: str | Path,
    words: Sequence[str] = (),
    *,
    n: int = 12,
    by: str = "pca",
    seed: int = 0,
    out: str | Path = "map",
    force: bool = False,
) -> Path:
    """Draw words of a run or a file in two dimensions, each of `words` with its n nearest; returns the page.

    Without words, the most frequent ones of four letters and more are drawn. The page, a picture and the numbers behind
    them go into the folder `out`; `force` writes into one that holds files of somebody else.
    """
    from regard.report.word_map import write_word_map  # here, since most verbs need none of it and start the sooner

    return write_word_map(load_vectors(source), str(source), words, n=n, by=by, seed=seed, out=Path(out), force=force)
