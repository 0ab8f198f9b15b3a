"""The worked examples of the lectures: attention in numbers that fit on a blackboard, each worked out again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.lens.by_hand import Example, regress
from regard.lens.view import View
from regard.studies.config import ByHandConfig
from regard.studies.finding import Chart, Finding, Line, Numbers
from regard.text.learning import Progress

A, B = (1.0, 0.0), (0.0, 1.0)
XS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
YS = (0.1, 0.9, 1.0, 0.2, -0.7, -1.0, -0.3, 0.6)
CURVE = 141  # points of a line


def measure(config: ByHandConfig, runs: Sequence[Any], tell: Progress, n_jobs: int = 1) -> Finding:
    """Work every example out. Nothing is trained, and nothing is drawn at random."""
    examples = list_examples(config)
    rows = []
    for example in examples:
        found = example.solve()
        rows.append((
            example.title,
            " ".join(f"{w:.3f}" for w in found.weights),
            "" if example.printed is None else " ".join(f"{w:.2f}" for w in example.printed),
            "" if found.z is None else f"[{', '.join(f'{x:.3f}' for x in found.z)}]",
        ))  # fmt: skip
    grid = np.linspace(XS[0], XS[-1], CURVE)
    widths = (config.bandwidth / 3, config.bandwidth, 3 * config.bandwidth)
    lines = [Line("the points", tuple(zip(XS, YS, strict=True)), dash="1 5")]
    lines += [Line(f"h = {h:.2g}", tuple((float(x), regress(float(x), XS, YS, h)[1]) for x in grid)) for h in widths]
    first, second = (example.solve().weights for example in examples[3:5])
    return Finding(
        question="What comes out of attention, worked by hand?",
        sentence="112, 96, 16, 8 over √64 give "
        + " ".join(f"{w:.3f}" for w in first)
        + " and not .87 .12 .01 0; 92, 124, 22, 8 give "
        + " ".join(f"{w:.3f}" for w in second)
        + " and not .08 .91 .01 0.",
        charts=(
            Chart(
                "Regression as attention", "x", "ŷ", tuple(lines), is_y_log=False,
                note="Nadaraya-Watson regression: the query is x, the keys are the x of the points, the values their "
                "y, and the score is -(x - x_i)² / 2h². The wider the kernel, the more even the attention.",
            ),
        ),
        summary=Numbers("The weights", ("example", "weights", "as a slide prints them", "z"), tuple(rows)),
        method={"Computed": "in float64; the page computes all of it again when a number is changed"},
        views=(describe_examples(examples, config),),
        numbers={"examples": [e.to_json() | {"weights": e.solve().weights.tolist()} for e in examples]},
    )  # fmt: skip


def list_examples(config: ByHandConfig) -> list[Example]:
    """The examples with one query."""
    aaba: dict[str, Any] = {"words": ("A", "A", "B", "A"), "keys": (A, A, B, A), "values": (A, A, B, A)}
    slide: dict[str, Any] = {"words": ("word 1", "word 2", "word 3", "word 4"), "d": 64.0}
    by_three = f"The exponential is taken to the base {config.base:g}, so that all of it can be done in the head."
    return [
        Example(
            title="A A B A", query=B, base=config.base, asker="“was there a B?”", **aaba,
            note=f"A is [1, 0], B is [0, 1], and the query [0, 1] asks for B. {by_three} A plain average of the four "
            "would be [3/4, 1/4].",
        ),
        Example(
            title="A A B A, a query ten times as long", query=(0.0, 10.0), asker="“was there a B?”", **aaba,
            note="The longer the query, the sharper the softmax: nearly all of the weight is on the B, to the base e.",
        ),
        Example(
            title="1.5, .9, .2, -.5", words=("key 1", "key 2", "key 3", "key 4"), scores=(1.5, 0.9, 0.2, -0.5),
            note="A softmax alone: .51, .28, .14 and .07.",
        ),
        Example(
            title="112, 96, 16, 8 over √64", scores=(112.0, 96.0, 16.0, 8.0), printed=(0.87, 0.12, 0.01, 0.0), **slide,
            note="Scores of the first word in a slide that is copied widely; its weights are misprinted.",
        ),
        Example(
            title="92, 124, 22, 8 over √64", scores=(92.0, 124.0, 22.0, 8.0), printed=(0.08, 0.91, 0.01, 0.0), **slide,
            note="Scores of the second word in the same slide; .08 and .91 are not their softmax.",
        ),
    ]  # fmt: skip


def describe_examples(examples: Sequence[Example], config: ByHandConfig) -> View:
    """All of them as one view, with matrices and regression, which have more than one query."""
    matrices = {
        "kind": "project", "title": "W^Q, W^K, W^V and S = QKᵀ", "words": ["A", "B", "C"], "d": None,
        "note": "Every word has a query, a key and a value: its row of X times a matrix. S holds all queries times all "
        "keys, a softmax of each row gives the weights, and Z = softmax(S) V.",
        "X": [[1, 0], [0, 1], [1, 1]], "WQ": [[1, 0], [1, 1]], "WK": [[0, 1], [1, 0]], "WV": [[1, 0], [0, 2]],
    }  # fmt: skip
    regression = {
        "kind": "regress", "title": "Nadaraya-Watson regression", "xs": list(XS), "ys": list(YS),
        "h": config.bandwidth, "x": 2.5,
        "note": "Attention with a Gaussian kernel: move x and see which points it looks at, and what it predicts.",
    }  # fmt: skip
    return View(
        name="steps",
        title="Worked by hand",
        note="Every number in a box can be changed, and the rest follows.",
        data={"examples": [*(example.to_json() for example in examples), matrices, regression]},
    )
