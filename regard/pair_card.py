"""README.md of a run that reads pairs: what it is, what it was trained on, how good it is, how to use it."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path

from regard import __version__
from regard.config import RunConfig
from regard.data.pairs_config import PairsConfig
from regard.data.prepared_pairs import PreparedPairs
from regard.files import write_atomically
from regard.folder import RunFacts
from regard.models.table import model_entry
from regard.pair_evaluation import PairEvaluation


def write_pair_card(
    folder: Path, config: RunConfig, facts: RunFacts, prepared: PreparedPairs, test: PairEvaluation | None
) -> None:
    """Write the model card; it is read by people and by model hubs alike."""
    entry = model_entry(config.model_name)
    source, target = prepared.source_tokenizer, prepared.target_tokenizer
    words = f"{source.kind}, {source.vocab_size:,} tokens, sha256 {source.hash[:16]}"
    if not prepared.has_one_vocabulary:
        words = f"source {words}; target {target.kind}, {target.vocab_size:,} tokens, sha256 {target.hash[:16]}"
    rows = [
        ("model", f"{config.model_name}: {entry.summary} ({entry.paper})"),
        ("parameters", f"{facts.n_parameters:,}"),
        ("FLOPs a target token", f"{facts.flops_per_token:,}"),
        ("vocabulary", words + (", shared by both sides" if prepared.has_one_vocabulary else "")),
        ("data", f"{source_names(config.pairs)}; fingerprint {facts.data[:16]}"),
        ("training pairs", f"{len(prepared.train):,}"),
        ("seed", str(config.seed)),
        ("written by", f"Regard {__version__}, {datetime.now(UTC):%Y-%m-%d}"),
    ]
    if facts.started_from is not None:
        rows.insert(1, ("its decoder began as", f"{facts.started_from}; weights sha256 {facts.started_weights}"))
    lines = [f"# {folder.name}: {entry.summary}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows]
    lines += ["", "## Test score", "", *_score(test)]
    pairs = prepared.valid if len(prepared.valid) else prepared.train
    verb = "parse" if config.pairs.has_trees else "translate"
    use = _use(folder, pairs.source_text(0), verb, pairs.tag(0))
    write_atomically(folder / "README.md", "\n".join([*lines, *use]).encode())


def source_names(pairs: PairsConfig) -> str:
    """The files that the training pairs come from."""
    names = [name for part in pairs.parts("train") for name in part.names]
    return ", ".join(names)


def _score(test: PairEvaluation | None) -> list[str]:
    if test is None:
        return ["None was taken when it was trained; `regard eval` does."]
    if test.parses is not None:
        found = test.parses.brackets
        shares = " | ".join(f"{100 * share:.2f}" for share in (found.f1, found.precision, found.recall, found.exact))
        return [
            "| labelled F1 | precision | recall | all right, % | perplexity a token | sentences |",
            "|---|---|---|---|---|---|",
            f"| {shares} | {test.perplexity:.2f} | {test.n_pairs:,} |",
            "",
            "As `regard eval` scores, on 1,000 sentences at most, evenly from all, by the rules of evalb. Every parse "
            f"is held to be a tree over the words given; without that {test.parses.n_ill_formed:,} were none.",
        ]
    lines = [
        "| BLEU | chrF | perplexity a token | pairs |",
        "|---|---|---|---|",
        f"| {test.bleu.score:.2f} | {test.chrf.score:.2f} | {test.perplexity:.2f} | {test.n_pairs:,} |"
        if test.bleu is not None and test.chrf is not None
        else f"| | | {test.perplexity:.2f} | {test.n_pairs:,} |",
    ]
    if test.bleu is not None:
        how = "As `regard eval` scores, on 1,000 pairs at most, evenly from all"
        lines += ["", f"{how}; sacreBLEU {test.bleu.signature}."]
    return lines


def _use(folder: Path, example: str, verb: str, tag: str | None) -> list[str]:
    path = shlex.quote(str(folder))
    to, named = ("", "") if tag is None else (f" --to {shlex.quote(tag)}", f", tag={json.dumps(tag)}")
    return [
        "",
        "## How to use it",
        "",
        "```sh",
        f"echo {shlex.quote(example)} | regard {verb} {path}{to}",
        f"regard eval {path}",
        "```",
        "",
        "```python",
        "import regard",
        f'run = regard.load("{folder}")',
        f"run.{verb}({json.dumps(example, ensure_ascii=False)}{named})",
        "```",
        "",
        "`config.yaml` holds every setting, `model.safetensors` the weights, `tokenizer.json` loads in Hugging Face",
        "`tokenizers` (with two vocabularies it is the source's, and `target_tokenizer.json` the target's),",
        "`metrics.jsonl` and `tensorboard/` hold the learning curve, `state/` what resuming needs.",
        "",
    ]
