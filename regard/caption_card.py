"""README.md of a run that describes pictures: what it is, what it was trained on, how good it is, how to use it."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path

from regard import __version__
from regard.caption_run import CaptionEvaluation
from regard.config import RunConfig
from regard.data.prepared_captions import PreparedCaptions
from regard.files import write_atomically
from regard.folder import RunFacts
from regard.models.table import model_entry


def write_caption_card(
    folder: Path, config: RunConfig, facts: RunFacts, prepared: PreparedCaptions, test: CaptionEvaluation | None
) -> None:
    """Write the model card; it is read by people and by model hubs alike."""
    entry, data, tokenizer = model_entry(config.model_name), config.captions, prepared.tokenizer
    rows = [
        ("model", f"{config.model_name}: {entry.summary} ({entry.paper})"),
        ("parameters", f"{facts.n_parameters:,}"),
        ("pictures", f"{data.size} x {data.size} pixels, {data.fit}"),
        ("vocabulary", f"{tokenizer.kind}, {tokenizer.vocab_size:,} tokens, sha256 {tokenizer.hash[:16]}"),
        ("data", f"{data.pictures}, {data.captions}; fingerprint {facts.data[:16]}"),
        ("how much", prepared.counts.describe()),
        ("seed", str(config.seed)),
        ("written by", f"Regard {__version__}, {datetime.now(UTC):%Y-%m-%d}"),
    ]
    if facts.started_from is not None:
        rows.insert(1, ("its decoder began as", f"{facts.started_from}; weights sha256 {facts.started_weights}"))
    lines = [f"# {folder.name}: {entry.summary}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows]
    lines += ["", "## Test score", "", *_score(test), *_use(folder)]
    write_atomically(folder / "README.md", "\n".join(lines).encode())


def _score(test: CaptionEvaluation | None) -> list[str]:
    if test is None:
        return ["None was taken when it was trained; `regard eval` does."]
    orders = " | ".join(f"{score:.2f}" for score in test.bleu.up_to)
    return [
        "| BLEU-1 | BLEU-2 | BLEU-3 | BLEU-4 | perplexity a token | pictures |",
        "|---|---|---|---|---|---|",
        f"| {orders} | {test.perplexity:.2f} | {test.n_pictures:,} |",
        "",
        f"Beam search of width 5, on at most 1,000 pictures; sacreBLEU {test.bleu.signature}.",
    ]


def _use(folder: Path) -> list[str]:
    path = shlex.quote(str(folder))
    return [
        "",
        "## How to use it",
        "",
        "```sh",
        f"regard caption {path} photo.jpg",
        f"regard caption {path} photos/ --draw looked",
        f"regard eval {path}",
        "```",
        "",
        "```python",
        "import regard",
        f'run = regard.load("{folder}")',
        'run.caption("photo.jpg")',
        "```",
        "",
        "`config.yaml` holds every setting, `model.safetensors` all weights, those of the picture encoder too,",
        "`tokenizer.json` loads in Hugging Face `tokenizers`, `metrics.jsonl` and `tensorboard/` hold the learning",
        "curve, `state/` what resuming needs.",
        "",
    ]
