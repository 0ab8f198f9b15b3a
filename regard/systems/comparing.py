"""The comparison itself: the same test data for all, what each makes of them, who is better, at what cost.

OUT/outputs/            what every system wrote; what is there is not made again
OUT/compare.json, overview.png, report.html
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard import __version__
from regard.comparison.budget import duration_text
from regard.comparison.result import to_json
from regard.errors import RegardError
from regard.files import check_can_be_made, write_atomically
from regard.systems.finished import FinishedRun, finished_runs
from regard.systems.keep import OUTPUTS, keep_outputs, kept_outputs
from regard.systems.material import Material, check_same, digest, file_digest, material_of, outputs_of
from regard.systems.ranked import compared
from regard.systems.result import SystemsComparison, holds_systems
from regard.systems.seeds import groups_of
from regard.tasks.task import ProgressBar
from regard.text.learning import Progress
from regard.training.device import pick_device
from regard.training.progress import Reporter, Silent

MAX_TOKENS = 4096
WRITTEN = ("compare.json", "overview.png", "report.html", OUTPUTS)


@dataclass(frozen=True)
class Decoding:
    """How every system is asked for its outputs."""

    beam: int
    device: str
    max_tokens: int

    @property
    def words(self) -> str:
        return "greedy" if self.beam == 1 else f"beam search of width {self.beam}"


def compare_runs(
    folders: Sequence[str | Path],
    *,
    data: Sequence[str] | None = None,
    split: str = "test",
    beam: int = 5,
    device: str = "auto",
    max_tokens: int = MAX_TOKENS,
    levels: Sequence[float] = (),
    is_each: bool = False,
    skips_bad: bool = False,
    out: str | Path | None = None,
    progress: ProgressBar | None = None,
    reporter: Reporter | None = None,
) -> SystemsComparison:
    """Compare finished runs of models that translate, parse or describe pictures, and write the report into `out`.

    `data` are other test data than the runs' own, in the form that `regard eval --data` takes; `levels` are validation
    scores whose cost is told. Runs that differ by their seed alone are one system, unless `is_each`. What of `data`
    cannot be used is an error, or, where `skips_bad`, left out and counted.
    """
    decoding, reporter = Decoding(beam, device, max_tokens), reporter or Silent()
    pick_device(device, "--device")
    runs = finished_runs([Path(folder) for folder in folders])
    place = default_out(runs) if out is None else Path(out)
    check_place(place)
    with (progress or nullcontext)() as draw:
        tell = draw or _silent
        materials = [_read(run, data, split, skips_bad, tell) for run in runs]
        check_same(runs, materials)
        chosen = np.flatnonzero(np.all([material.fits for material in materials], axis=0)).tolist()
        if not chosen:
            raise RegardError(
                "No test sentence is short enough for all of these models. Name shorter ones with --data."
            )
        outputs = [
            _outputs(run, material, chosen, decoding, place, tell, reporter)
            for run, material in zip(runs, materials, strict=True)
        ]
        tell("resampling", 0, None)
        comparison = compared(
            runs,
            materials,
            chosen,
            outputs,
            groups=groups_of(runs, is_each=is_each),
            levels=levels,
            data=_data_words(runs[0], data, split),
            decoding=decoding.words,
            command=_command(
                folders, data, split, decoding, levels, {"--each": is_each, "--skip-bad": skips_bad}, place
            ),
        )
    write_atomically(place / "compare.json", to_json(comparison))
    draw_systems(comparison, place, reporter.note)
    return comparison


def _read(run: FinishedRun, data: Sequence[str] | None, split: str, skips_bad: bool, tell: Progress) -> Material:
    tell(f"{run.name}: reading", 0, None)
    return material_of(run, data, split, skips_bad)


def _outputs(
    run: FinishedRun,
    material: Material,
    chosen: list[int],
    decoding: Decoding,
    out: Path,
    tell: Progress,
    reporter: Reporter,
) -> list[str]:
    """What was kept, or what the system writes now, which is kept."""
    made_by = {
        "regard": __version__,
        "weights": file_digest(run.folder / "model.safetensors"),
        "sources": digest(material.sources[i] for i in chosen),
        "beam": decoding.beam,
    }
    if (found := kept_outputs(out, run.name, made_by)) is not None:
        reporter.note(f"{run.name}: {len(found):,} outputs are kept in {out / OUTPUTS}.")
        return found
    began = time.monotonic()
    found = outputs_of(run, material, chosen, decoding.beam, decoding.device, decoding.max_tokens, tell)
    keep_outputs(out, run.name, made_by, found)
    reporter.note(f"{run.name}: {len(found):,} outputs in {duration_text(time.monotonic() - began)}.")
    return found


def _data_words(run: FinishedRun, data: Sequence[str] | None, split: str) -> str:
    if data is not None:
        return ", ".join(data)
    given: Any = run.config.data.to_dict()
    named = given.get(split)
    if named is None:
        source = given.get("train") if run.task != "captions" else [given["pictures"], given["captions"]]
        return f"the {split} split of {_joined(source)}"
    return _joined(named)


def _joined(names: Any) -> str:
    return names if isinstance(names, str) else ", ".join(_joined(name) for name in names)


def default_out(runs: Sequence[FinishedRun]) -> Path:
    """Where the report goes if nothing else is said."""
    return Path("compare") / "-".join(run.name for run in runs)[:100]


def check_place(out: Path) -> None:
    """Refuse a folder that holds anything but an earlier comparison of runs."""
    if not out.exists():
        check_can_be_made(out)
        return
    if not out.is_dir():
        raise RegardError(f"'{out}' is a file; give --out a folder.")
    strangers = sorted(p.name for p in out.iterdir() if p.name not in WRITTEN and not p.name.startswith("."))
    if strangers or ((out / "compare.json").exists() and not holds_systems(out)):
        what = strangers[0] if strangers else "the comparison of language models"
        raise RegardError(f"'{out}' is not empty (it holds {what}); choose another --out.")


def draw_systems(comparison: SystemsComparison, out: Path, note: Callable[[str], None] | None = None) -> Path:
    """Draw report.html, whose path is returned, and overview.png."""
    from regard.systems.page import render_systems
    from regard.systems.picture import write_overview

    path = out / "report.html"
    write_atomically(path, render_systems(comparison).encode("utf-8"))
    try:
        write_atomically(out / "overview.png", lambda aside: write_overview(comparison, aside))
    except ImportError as error:
        if note is not None:
            note(f"overview.png was not drawn ({error}).")
    return path


def _command(
    folders: Sequence[str | Path],
    data: Sequence[str] | None,
    split: str,
    decoding: Decoding,
    levels: Sequence[float],
    flags: Mapping[str, bool],
    out: Path,
) -> str:
    words = ["regard", "compare", *map(str, folders)]
    for source in data or ():
        words += ["--data", source]
    if split != "test":
        words += ["--split", split]
    for level in levels:
        words += ["--reach", f"{level:g}"]
    words += [flag for flag, is_given in flags.items() if is_given]
    return shlex.join([*words, "--beam", str(decoding.beam), "--out", str(out)])


def _silent(what: str, done: int, total: int | None) -> None:
    """No progress is shown."""
