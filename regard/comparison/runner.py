"""The comparison itself: prepare, train every contender with every seed, measure, rank, write.

OUT/plan.yaml                  what is compared; another plan in the same folder is refused
OUT/text.json                  a fingerprint of the text for each contender; other text is refused too
OUT/runs/NAME-seedK/           an ordinary run folder each
OUT/results/NAME-seedK.json    its measurements: what is there is not done again
OUT/results/NAME-views.json    what the first seed shows of itself
OUT/compare.json, overview.png, report.html
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from regard.comparison import trial
from regard.comparison.budget import count_text
from regard.comparison.keep import keep, kept
from regard.comparison.machine import hardware, versions
from regard.comparison.measure import SAMPLING
from regard.comparison.passages import TestText, choose_passage, choose_prompt, read_test_text
from regard.comparison.plan import Contender, Plan
from regard.comparison.rank import ranked_comparison
from regard.comparison.result import (
    Comparison,
    ContenderResult,
    Failure,
    SeedResult,
    Setup,
    TokenizerFacts,
    Views,
    to_json,
)
from regard.comparison.views import look_inside
from regard.comparison.width import Matched
from regard.config import read_yaml
from regard.data.prepared_text import PreparedText, prepare_text
from regard.errors import InterruptedRunError, RegardError
from regard.files import write_atomically
from regard.tasks.task import ProgressBar
from regard.text.config import TokenizerConfig
from regard.training.progress import Reporter

if TYPE_CHECKING:
    from regard.text.learning import Progress


@dataclass(frozen=True)
class Ground:
    """What all contenders share once the text is read."""

    plan: Plan
    prepared: dict[str, PreparedText]  # by contender
    test: TestText
    passage: str
    prompt: str


def run_comparison(plan: Plan, *, progress: ProgressBar, reporter: Reporter) -> Comparison:
    """Run what is not done yet, and write everything. A contender that fails is reported and the others go on."""
    began = time.monotonic()
    _check_same(plan)
    reporter.note(plan.summary())
    try:
        with progress() as draw:
            ground = _prepared(plan, draw)
        _check_text(ground)
        results = [_contender(c, ground, reporter) for c in plan.contenders]
    except (KeyboardInterrupt, InterruptedRunError):
        done = len(list((plan.out / "results").glob("*-seed*.json")))
        raise InterruptedRunError(
            f"Stopped with {done} of {plan.n_trainings} trainings finished; all is saved. Go on with: {plan.command}"
        ) from None
    comparison = ranked_comparison(_setup(ground, time.monotonic() - began), results)
    write_atomically(plan.out / "compare.json", to_json(comparison))
    draw_again(plan.out, note=reporter.note)
    return comparison


def draw_again(folder: Path, note: Callable[[str], None] | None = None) -> Path:
    """Draw report.html and overview.png from compare.json; the report's path.

    A picture that cannot be drawn (matplotlib missing, say) is told through `note`, and takes nothing else down.
    """
    from regard.report.comparison import write_report
    from regard.systems.result import SystemsComparison, holds_systems

    if holds_systems(folder):
        from regard.systems.comparing import draw_systems

        return draw_systems(SystemsComparison.load(folder), folder, note)
    comparison = Comparison.load(folder)
    path = write_report(folder)
    try:
        from regard.report.comparison_picture import write_overview

        write_atomically(folder / "overview.png", lambda aside: write_overview(comparison, aside))
    except ImportError as error:
        if note is not None:
            note(f"No overview.png: {error}. Install matplotlib, then: regard report {folder}")
    return path


def _check_same(plan: Plan) -> None:
    """Remember the plan, or refuse a folder that holds another comparison or something else."""
    path = plan.out / "plan.yaml"
    text = yaml.safe_dump(plan.to_dict(), sort_keys=False, allow_unicode=True)
    if path.exists():
        before, now = _plan_before(plan.out), yaml.safe_load(text)
        changed = [key for key in now if before.get(key) != now[key]]
        if changed:
            old, new = _short(before.get(changed[0])), _short(now[changed[0]])
            raise RegardError(
                f"'{plan.out}' holds another comparison: its {changed[0]} was {old}, and now is {new}. "
                "Choose another --out, or ask for the same again to go on with it."
            )
        return
    if plan.out.exists() and (not plan.out.is_dir() or any(plan.out.iterdir())):
        raise RegardError(f"'{plan.out}' is there already and holds no comparison; choose another --out.")
    write_atomically(path, text.encode())


def _plan_before(out: Path) -> dict[str, Any]:
    try:
        return read_yaml(out / "plan.yaml")
    except RegardError as error:
        raise RegardError(
            f"{error} What '{out}' compares cannot be known any more; choose another --out, or remove that folder."
        ) from None


def _check_text(ground: Ground) -> None:
    """Remember the text itself, or refuse to mix it with what was measured on another: a path may hold new content."""
    path = ground.plan.out / "text.json"
    now = {name: prepared.fingerprint for name, prepared in ground.prepared.items()}
    if not path.exists():
        write_atomically(path, (json.dumps(now, indent=1) + "\n").encode())
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise RegardError(
            f"'{path}' is damaged, so that the text of this comparison is not known; choose another --out."
        ) from None
    if before != now:
        raise RegardError(
            f"'{ground.plan.out}' was begun on other text: what 'data' names has changed since; choose another --out."
        )


def _short(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000).replace("\n...", "").strip()
    return text if len(text) <= 160 else text[:157] + "..."


def _prepared(plan: Plan, draw: Progress | None) -> Ground:
    by_config: dict[str, PreparedText] = {}
    prepared = {}
    for contender in plan.contenders:
        key = repr(contender.tokenizer)
        if key not in by_config:
            by_config[key] = prepare_text(plan.data, contender.tokenizer, progress=draw)
        prepared[contender.name] = by_config[key]
    lossless = next((p for p in by_config.values() if p.tokenizer.is_lossless), None)
    if lossless is None:  # every contender loses text: read the text itself through a tokenizer that does not
        lossless = prepare_text(plan.data, TokenizerConfig(kind="byte", vocab_size=None), progress=draw)
    test = read_test_text(lossless.test, lossless.tokenizer)
    passage = choose_passage(test.text)
    prompt = plan.prompt if plan.prompt is not None else choose_prompt(passage)
    return Ground(plan, prepared, test, passage, prompt)


def _contender(contender: Contender, ground: Ground, reporter: Reporter) -> ContenderResult:
    """All seeds of one contender. Counting draws no random numbers: one seed says it all."""
    plan, tokenizer = ground.plan, ground.prepared[contender.name].tokenizer
    failures: list[Failure] = []
    seeds: list[SeedResult] = []
    size: Matched | None = None
    try:
        size = trial.sized(contender, tokenizer.vocab_size, plan)
    except RegardError as error:
        failures.append(Failure(seed=plan.seeds[0], reason=str(error)))
    for seed in plan.seeds[:1] if contender.is_counted else plan.seeds:
        if size is None:
            break
        result = _seed(contender, size, seed, ground, reporter)
        if isinstance(result, Failure):
            failures.append(result)
        else:
            seeds.append(result)
    views = _views(contender, seeds, ground, reporter) if seeds else Views()
    return ContenderResult(
        name=contender.name,
        model=contender.model_name,
        config=size.config.to_dict() if size else dict(contender.model),
        training={"optimizer": contender.optimizer.to_dict(), "schedule": contender.schedule.to_dict()},
        tokenizer=TokenizerFacts(
            kind=tokenizer.kind,
            vocab_size=tokenizer.vocab_size,
            is_lossless=tokenizer.is_lossless,
            hash=tokenizer.hash,
        ),
        n_parameters=seeds[0].n_parameters if seeds else (size.n_parameters if size else None),
        parameters_note=size.note if size else "",
        seeds=tuple(seeds),
        failures=tuple(failures),
        score=None,
        sample=views.sample,
        positions=views.positions,
        surprise=views.surprise,
        attention=views.attention,
        cells=views.cells,
    )


def _seed(contender: Contender, size: Matched, seed: int, ground: Ground, reporter: Reporter) -> SeedResult | Failure:
    plan = ground.plan
    name = f"{contender.name}-seed{seed}"
    path = plan.out / "results" / f"{name}.json"
    if (done := kept(SeedResult, path)) is not None:
        return done
    parameters = "" if size.n_parameters is None else f", {count_text(size.n_parameters)} parameters"
    reporter.note(f"{contender.name}, seed {seed}{parameters}")
    vocab_size = ground.prepared[contender.name].tokenizer.vocab_size
    try:
        result = trial.train_and_measure(contender, size, vocab_size, seed, plan, ground.test, reporter)
    except InterruptedRunError:
        raise
    except Exception as error:
        failure = trial.failure_of(error, contender.name, seed, plan.out)
        reporter.note(f"{contender.name}, seed {seed}, failed: {failure.reason}")
        return failure
    keep(result, path)
    return result


def _views(contender: Contender, seeds: list[SeedResult], ground: Ground, reporter: Reporter) -> Views:
    path = ground.plan.out / "results" / f"{contender.name}-views.json"
    if (done := kept(Views, path)) is not None:
        return done
    views = look_inside(ground.plan.out / seeds[0].run, ground.test, ground.passage, ground.prompt, reporter.note)
    keep(views, path)
    return views


def _setup(ground: Ground, seconds: float) -> Setup:
    plan = ground.plan
    first = next(iter(ground.prepared.values()))
    return Setup(
        data=plan.data.to_dict(),
        data_hash=first.fingerprint,
        n_train_bytes=first.train.n_bytes,
        n_valid_bytes=first.valid.n_bytes,
        n_test_bytes=first.test.n_bytes,
        block_bytes=ground.test.block_bytes,
        budget=str(plan.budget),
        n_parameters=plan.n_parameters,
        seeds=plan.seeds,
        n_batch=plan.train["n_batch"],
        n_context=plan.train["n_context"],
        prompt=ground.prompt,
        sampling=", ".join(f"{k.replace('_', '-')} {v}" for k, v in SAMPLING.items()),
        passage=ground.passage,
        versions=versions(),
        hardware=hardware(),
        date=datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
        seconds=seconds,
        command=plan.command,
    )
