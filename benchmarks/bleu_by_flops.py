"""How good a translator gets for its training FLOPs: the best run of each family at each budget.

    python benchmarks/bleu_by_flops.py runs/* --at 5e13 1e14 2.3e14 5.2e14 1e15 --out bleu_by_flops.png

A family is the kind of encoder. A run belongs to the budget that it is nearest to, if within a factor of 1.3. Of a
family's runs at a budget the one with the best validation BLEU is taken, and its test BLEU shown beside it: who chooses
by test scores measures luck. Runs that did not end are left out. Prints the table in Markdown. `--tiny` needs no runs:
it trains two that are.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FACTOR = 1.3
COLOURS = {"lstm": "#d55e00", "transformer": "#0072b2"}


class Point(NamedTuple):
    family: str
    flops: float
    valid: float
    test: float
    settings: str


def point_of(run: Path) -> Point | None:
    """None for a run without a test score."""
    if not (run / "test.json").exists():
        return None
    config = yaml.safe_load((run / "config.yaml").read_text())
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    valid = max(row["bleu"] for row in rows if "bleu" in row)
    test = json.loads((run / "test.json").read_text())["bleu"]["score"]
    return Point(config["model"]["encoder"], rows[-1]["flops"], valid, test, settings_of(config))


def settings_of(config: dict[str, Any]) -> str:
    model, teaching = config["model"], config["teaching"]
    layers = model.get("n_layers", 3)
    said = [f"width {model['d_model']}"]
    if model["encoder"] == "transformer":
        said.append(" + ".join(map(str, layers if isinstance(layers, list) else [layers, layers])) + " layers")
        said.append(f"feed-forward {model.get('d_ff') or 4 * model['d_model']}")
    elif not model.get("input_feeding", False):
        said.append("no input feeding")
    said.append(f"dropout {model['p_dropout']:g}, of pieces {teaching['p_bpe_dropout']:g}")
    said.append(f"{teaching['max_tokens']:,} tokens, lr {config['optimizer']['lr']:g}")
    return "; ".join([*said, f"{config['train']['max_epochs']:g} epochs"])


def nearest(flops: float, budgets: list[float]) -> float | None:
    budget = min(budgets, key=lambda b: abs(math.log(b / flops)))
    return budget if abs(math.log(budget / flops)) < math.log(FACTOR) else None


def best_of(points: list[Point], budgets: list[float]) -> dict[tuple[float, str], Point]:
    """By validation BLEU."""
    found: dict[tuple[float, str], Point] = {}
    for point in points:
        budget = nearest(point.flops, budgets)
        if budget is not None and point.valid > getattr(found.get((budget, point.family)), "valid", -1.0):
            found[budget, point.family] = point
    return found


def draw(points: list[Point], best: dict[tuple[float, str], Point], out: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.5, 4.2), dpi=150, layout="constrained")
    for family in sorted({point.family for point in points}):
        colour = COLOURS.get(family, "#009e73")
        own = [point for point in points if point.family == family]
        axes.scatter([p.flops for p in own], [p.test for p in own], color=colour, alpha=0.45, s=16, linewidths=0)
        line = [best[key] for key in sorted(best) if key[1] == family]
        axes.plot([p.flops for p in line], [p.test for p in line], "o-", color=colour, label=family)
    axes.set_xscale("log")
    axes.set_xlabel("training FLOPs")
    axes.set_ylabel("BLEU on the test data")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, title="best by validation BLEU", loc="lower right")
    figure.savefig(out)


def train_two(folder: Path) -> list[Path]:
    """An LSTM and a Transformer of almost no size, on pairs of the built-in grammar."""
    import regard

    pairs = {split: f"grammar:en-de:{n}@{split}" for split, n in (("train", 40), ("valid", 4), ("test", 4))}
    for encoder in COLOURS:
        attention = "mlp" if encoder == "lstm" else "scaled-dot"
        shape = {"encoder": encoder, "decoder": encoder, "attention": attention, "d_model": 8, "n_layers": 1}
        given = {
            "data": pairs,
            "model": {"name": "seq2seq", **shape},
            "tokenizer": {"kind": "word", "vocab_size": None},
            "teaching": {"judged_by": "bleu", "max_judged": 4},
            "optimizer": {"lr": 0.01},
            "train": {"max_epochs": 1, "eval_every": 1},
            "runtime": {"device": "cpu", "n_threads": 1},
        }
        regard.train(given, out=folder / encoder)
    return [folder / encoder for encoder in COLOURS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--at", nargs="+", type=float, help="budgets in FLOPs")
    parser.add_argument("--out", type=Path, default=Path("bleu_by_flops.png"))
    parser.add_argument("--tiny", action="store_true", help="try the script on two runs that it trains itself")
    given = parser.parse_args()
    if not given.tiny and not (given.runs and given.at):
        parser.error("give runs, and budgets with --at; or --tiny")
    with tempfile.TemporaryDirectory() as folder:
        runs = train_two(Path(folder)) if given.tiny else given.runs
        points = [point for run in runs if (point := point_of(run)) is not None]
    show(points, given.at or [point.flops for point in points])
    draw(points, best_of(points, given.at or [point.flops for point in points]), given.out)


def show(points: list[Point], budgets: list[float]) -> None:
    print("| FLOPs | family | runs | validation BLEU | test BLEU | settings |\n|---|---|---|---|---|---|")
    for (budget, family), p in sorted(best_of(points, budgets).items()):
        n = sum(q.family == family and nearest(q.flops, budgets) == budget for q in points)
        print(f"| {p.flops:.1e} | {family} | {n} | {p.valid:.1f} | {p.test:.1f} | {p.settings} |")


if __name__ == "__main__":
    main()
