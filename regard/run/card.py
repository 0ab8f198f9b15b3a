"""README.md of a run folder: what the model is, what it was trained on, how good it is, how to use it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from regard import __version__
from regard.files import write_atomically
from regard.models.table import model_entry
from regard.score.measured import Measured
from regard.tasks.run_facts import IMPORTED
from regard.tasks.table import task_of
from regard.tasks.task import Evaluation, OpenRun
from regard.untrusted.values import make_printable

Rows = list[tuple[str, str]]
FENCES = ("```", "```sh", "```python")


def write_card(opened: OpenRun, data: Any | None, test: Evaluation | None, note: str = "") -> None:
    """Write the model card, which is read by people and by model hubs alike; `data` is None for an imported run."""
    task, config, facts = task_of(opened.config), opened.config, opened.facts
    entry = model_entry(config.model_name)
    rows = _model_rows(opened)
    if data is not None:
        rows.append(("data", f"{task.describe_sources(config)}; fingerprint {facts.data[:16]}"))
        rows += [*task.card_rows(config, facts, data), ("seed", str(config.seed))]
    rows.append(("written by", f"Regard {__version__}, {datetime.now(UTC):%Y-%m-%d}"))
    lines = [f"# {escape_markdown(opened.folder.name)}: {entry.summary}", "", "| | |", "|---|---|"]
    lines += [f"| {escape_markdown(name)} | {escape_markdown(value)} |" for name, value in rows]
    if facts.data == IMPORTED:
        lines += ["", "Its weights are as they were imported; on which text they were trained is not known here."]
    else:
        lines += ["", "## Test score", "", *_score_lines(None if test is None else test.measure())]
    lines += ["", escape_markdown(note)] if note else []
    usage = task.usage(config, opened.folder, data)
    lines += ["", "## How to use it", "", *(("```sh", *map(_fence, usage.shell), "```", "") if usage.shell else ())]
    lines += ["```python", "import regard"]
    load = f"run = regard.load({json.dumps(str(opened.folder), ensure_ascii=False)})"
    lines += map(_fence, (load, *usage.python))
    lines += ["```", ""]
    lines += ["## In other programs", ""] if usage.elsewhere else []
    lines += [line if line in FENCES else _fence(line) for program in usage.elsewhere for line in program.lines()]
    lines += [
        f"`config.yaml` holds every setting, `model.safetensors` the weights, {usage.files},",
        "`metrics.jsonl` and `tensorboard/` hold the learning curve, `state/` what resuming needs.",
        "",
    ]
    write_atomically(opened.folder / "README.md", "\n".join(lines))


def escape_markdown(text: str) -> str:
    """A text that Markdown shows as it is, in a cell of a table too: no tag, link, emphasis, formula or new row.

    Bare addresses, which many programs make links of, are broken by a space of no width. An underscore inside a word
    means nothing in Markdown, and stays as it is.

    >>> escape_markdown("a|b <b>c</b> [d](e) _f_ g_h")
    'a\\\\|b &lt;b&gt;c&lt;/b&gt; \\\\[d\\\\](e) \\\\_f\\\\_ g_h'
    """
    text = make_printable(" ".join(text.split()))
    text = re.sub(r"&(?=#?\w+;)", "&amp;", text).replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"[\\|\[\]`*~$#]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", text)
    text = re.sub(r"^(\d*)([-+.)])(?=[\s-]|$)", r"\1\\\2", text)  # the beginning of a list, or a line across the page
    return re.sub(r":(?=//)|www(?=\.)|(?<!\w)@(?=\w)|@(?=[\w-]+\.)", r"\g<0>&#8203;", text, flags=re.IGNORECASE)


def _fence(line: str) -> str:
    """A line of code that cannot end the block it stands in."""
    return make_printable(" ".join(line.splitlines())).replace("```", "'''")


def _model_rows(opened: OpenRun) -> Rows:
    config, facts = opened.config, opened.facts
    entry = model_entry(config.model_name)
    rows = [("model", f"{config.model_name}: {entry.summary} ({entry.paper})"), ("task", config.task)]
    if facts.started_from is not None:
        parts = [key.removesuffix("_from") for key in ("decoder_from", "encoder_from") if key in config.folders]
        what = f"its {parts[0]} began as" if parts else "started from"
        rows.append((what, f"{facts.started_from}; weights sha256 {facts.started_weights}"))
    counts = entry.is_counted and config.task == "language-model"
    rows.append(("n-grams" if counts else "parameters", f"{facts.n_parameters:,}"))
    looked_up = "none: counts are looked up" if counts else "none: rows are looked up"
    flops = f"{facts.flops_per_token:,}" if facts.flops_per_token else looked_up
    unit = "target token" if "target_tokenizer" in config.sections else task_of(config).unit
    return [*rows, (f"FLOPs a {unit}", flops), ("vocabulary", _describe_vocabulary(opened))]


def _describe_vocabulary(opened: OpenRun) -> str:
    each = [f"{t.kind}, {t.vocab_size:,} tokens, sha256 {t.hash[:16]}" for t in opened.tokenizers]
    if len(each) == 2:
        return f"source {each[0]}; target {each[1]}"
    return f"{each[0]}, shared by both sides" if "target_tokenizer" in opened.config.sections else each[0]


def _score_lines(test: Measured | None) -> list[str]:
    if test is None:
        return ["Not evaluated yet; run `regard eval`."]
    names = [*(figure.name for figure in test.figures), *test.counts]
    values = [*(figure.text for figure in test.figures), *(f"{n:,}" for n in test.counts.values())]
    rows = [" | ".join(map(escape_markdown, cells)) for cells in (names, values)]
    lines = [f"| {rows[0]} |", "|---" * len(names) + "|", f"| {rows[1]} |"]
    after = [*test.notes, *([f"{test.signature}."] if test.signature else [])]
    return [*lines, *(["", escape_markdown(" ".join(after))] if after else [])]
