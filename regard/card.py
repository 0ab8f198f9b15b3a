"""README.md of a run folder: what the model is, what it was trained on, how good it is, how to use it."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path

from regard import __version__
from regard.config import RunConfig
from regard.data.prepared_text import PreparedText
from regard.files import write_atomically
from regard.folder import RunFacts
from regard.models.table import model_entry
from regard.score.evaluate import Evaluation


def write_card(
    folder: Path, config: RunConfig, facts: RunFacts, prepared: PreparedText, test: Evaluation | None
) -> None:
    """Write the model card; it is read by people and by model hubs alike."""
    write_atomically(folder / "README.md", card_text(folder, config, facts, prepared, test).encode())


def card_text(folder: Path, config: RunConfig, facts: RunFacts, prepared: PreparedText, test: Evaluation | None) -> str:
    entry = model_entry(config.model_name)
    source = config.text.train if isinstance(config.text.train, str) else ", ".join(config.text.train)
    rows = [
        *_model_rows(config, facts, prepared.tokenizer.kind),
        ("data", f"{source}; fingerprint {facts.data[:16]}"),
        ("training text", f"{len(prepared.train):,} tokens, {prepared.train.n_bytes:,} bytes"),
        ("seed", str(config.seed)),
        ("written by", f"Regard {__version__}, {datetime.now(UTC):%Y-%m-%d}"),
    ]
    lines = [f"# {folder.name}: {entry.summary}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows]
    lines += ["", "## Test score", ""]
    if test is None:
        lines += ["None was taken when it was trained; `regard eval` does."]
    else:
        lossy = "" if prepared.tokenizer.is_lossless else " (the tokenizer loses text, so not comparable with others)"
        lines += [
            "| bits per byte | perplexity a token | perplexity a word | tokens |",
            "|---|---|---|---|",
            f"| {test.bits_per_byte:.4f}{lossy} | {test.perplexity:.2f} | {test.perplexity_per_word:.2f} "
            f"| {test.n_tokens:,} |",
        ]
    return "\n".join([*lines, *_use(folder, sample_prompt(prepared))])


def sample_prompt(prepared: PreparedText) -> str:
    """Words to begin with, from the validation text, or from the training text where that has none."""
    return prepared.valid.first_words() or prepared.train.first_words()


def write_imported_card(folder: Path, config: RunConfig, facts: RunFacts, tokenizer_kind: str, note: str = "") -> None:
    """The card of a run that was trained elsewhere."""
    written = ("written by", f"Regard {__version__}, {datetime.now(UTC):%Y-%m-%d}")
    rows = [*_model_rows(config, facts, tokenizer_kind), written]
    lines = [f"# {folder.name}: {model_entry(config.model_name).summary}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows]
    lines += ["", "Its weights are as they were imported; on which text they were trained is not known here."]
    lines += ["", note] if note else []
    write_atomically(folder / "README.md", "\n".join([*lines, *_use(folder, "The")]).encode())


def _model_rows(config: RunConfig, facts: RunFacts, tokenizer_kind: str) -> list[tuple[str, str]]:
    entry = model_entry(config.model_name)
    size = "n-grams" if entry.kind == "count" else "parameters"
    flops = f"{facts.flops_per_token:,}" if facts.flops_per_token else "none: counts are looked up"
    rows = [
        ("model", f"{config.model_name}: {entry.summary} ({entry.paper})"),
        (size, f"{facts.n_parameters:,}"),
        ("FLOPs a token", flops),
        ("tokenizer", f"{tokenizer_kind}, {facts.vocab_size:,} tokens, sha256 {facts.tokenizer[:16]}"),
    ]
    if facts.started_from is not None:
        rows.append(("started from", f"{facts.started_from}; weights sha256 {facts.started_weights}"))
    return rows


def _use(folder: Path, prompt: str) -> list[str]:
    path = shlex.quote(str(folder))
    return [
        "",
        "## How to use it",
        "",
        "```sh",
        f"regard generate {path} --prompt {shlex.quote(prompt)}",
        f"regard score {path} FILE",
        f"regard eval {path}",
        "```",
        "",
        "```python",
        "import regard",
        f'run = regard.load("{folder}")',
        f"run.generate({json.dumps(prompt, ensure_ascii=False)})",
        "```",
        "",
        "`config.yaml` holds every setting, `model.safetensors` the weights, `tokenizer.json` loads in Hugging Face",
        "`tokenizers`, `metrics.jsonl` and `tensorboard/` the learning curve, `state/` what resuming needs.",
        "",
    ]
