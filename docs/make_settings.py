"""Write docs/settings.md, the reference of every setting, from the settings themselves: `make docs`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import yaml

from regard.config import COMMON
from regard.decode.config import BeamConfig, SamplingConfig
from regard.models.table import MODELS
from regard.settings import Settings
from regard.studies.table import STUDIES
from regard.tasks.table import TASKS

PAGE = Path(__file__).with_name("settings.md")
INTRODUCTION = """\
# Every setting

What a recipe may hold, and so what `--set section.key=value` may change. Written by `make docs` from the settings
themselves; do not edit. `regard models NAME` prints those of one model and leaves out what does nothing for it. What
happens where a default is null, the line of the setting says; a run's `config.yaml` has every default written out.

Recipes of comparisons have other keys at the top (contenders, budget, params, seeds): [comparing.md](comparing.md).
"""
TOP = {
    "task": ("null", "what the run is for; null: it follows from the model and the data", tuple(TASKS)),
    "seed": ("0", "seed of the weights, the order of the data and all else that is drawn", ("a whole number",)),
    "start_from": ("null", "a run or a Hugging Face GPT-2 folder whose model, tokenizer and weights are taken", ()),
    "decoder_from": ("null", "a language model's run or GPT-2 folder that the decoder begins as", ()),
    "encoder_from": (
        "null",
        "a pre-trained model's run or folder that reads the texts of a task",
        (),
    ),
}


def write_page() -> str:
    """The whole page as Markdown."""
    parts = [INTRODUCTION, "## The top of a recipe\n", _table(_top_rows()), "## Sections of every run\n"]
    parts += [_section(name, kind) for name, kind in COMMON.items()]
    parts.append("## Sections of a task\n")
    owners: dict[tuple[str, type[Settings]], list[str]] = {}
    for task in TASKS.values():
        for name, kind in task.sections.items():
            owners.setdefault((name, kind), []).append(task.name)
    parts += [_section(name, kind, ", ".join(tasks)) for (name, kind), tasks in owners.items()]
    parts.append("## Models\n\nThe section `model`, by `model.name`.\n")
    parts += [_model(name) for name in MODELS]
    parts.append("## Writing text\n\nNot in a recipe: options of `regard generate`, and arguments of `run.generate`.\n")
    parts += [_section("sampling", SamplingConfig)]
    parts.append("Options of `regard translate`, `regard parse` and `regard caption`, and arguments of these verbs.\n")
    parts += [_section("beam", BeamConfig)]
    parts.append("## Studies\n\nWhat `regard study NAME --set key=value` takes.\n")
    parts += [_section(f"study {name}", entry.config) for name, entry in STUDIES.items()]
    return "\n".join(parts)


def _section(name: str, kind: type[Settings], owners: str = "") -> str:
    title = f"{name} ({owners})" if owners else name
    return _write_section(title, (kind.__doc__ or "").strip().splitlines()[0], kind)


def _model(name: str) -> str:
    entry = MODELS[name]
    return _write_section(name, f"{entry.summary[0].upper()}{entry.summary[1:]} ({entry.paper}).", entry.config)


def _write_section(title: str, sentence: str, kind: type[Settings]) -> str:
    old = " ".join(f"`{new}` was called `{old}`, which still works." for old, new in sorted(kind.renamed.items()))
    return f"### {title}\n\n{sentence}\n\n{_table(_rows(kind))}" + (f"\n{old}\n" if old else "")


def _top_rows() -> Iterable[tuple[str, str, str, str]]:
    return ((name, default, " | ".join(kinds) or "a folder", doc) for name, (default, doc, kinds) in TOP.items())


def _rows(kind: type[Settings]) -> Iterable[tuple[str, str, str, str]]:
    for line in kind.help():
        yield line.name, show_default(line.default), line.kind, line.doc


def show_default(value: Any) -> str:
    if value is MISSING:
        return "required"
    plain = list(value) if isinstance(value, tuple) else value
    return yaml.safe_dump(plain, default_flow_style=True, allow_unicode=True).removesuffix("...\n").strip()


def _table(rows: Iterable[tuple[str, str, str, str]]) -> str:
    lines = ["| setting | default | may be | meaning |", "|---|---|---|---|"]
    for name, default, kind, doc in rows:
        escaped = [cell.replace("|", "\\|").replace("<", "&lt;") for cell in (kind, doc)]
        lines.append(f"| `{name}` | {default} | {escaped[0]} | {escaped[1]} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
