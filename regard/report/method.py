"""What every model wrote, and how everything was measured."""

from __future__ import annotations

import re
from html import escape

from regard.comparison.budget import count_text, duration_text
from regard.comparison.result import Comparison
from regard.report.order import best_first
from regard.report.palette import colour_of


def samples(comparison: Comparison) -> str:
    """One card a contender, best first, the prompt set apart from what the model wrote."""
    prompt = comparison.setup.prompt
    cards = [
        f'<article class="card" style="--c:{colour_of(i)}"><h3>{escape(c.name)}</h3>'
        f'<p class="sample"><span class="prompt">{escape(prompt)}</span>{escape(_tight(c.sample))}</p></article>'
        for i, c in best_first(comparison)
        if c.sample
    ]
    return f'<div class="cards">{"".join(cards)}</div>' if cards else ""


def method(comparison: Comparison) -> str:
    """Enough to judge the comparison, and to repeat it."""
    s = comparison.setup
    seeds = ", ".join(str(k) for k in s.seeds)
    source = s.data.get("train")
    name = ", ".join(source) if isinstance(source, list | tuple) else str(source)
    rows = [
        (
            "Text",
            f"{name}: {_bytes(s.n_train_bytes)} to train on, {_bytes(s.n_valid_bytes)} to watch, "
            f"{_bytes(sum(s.block_bytes))} of {_bytes(s.n_test_bytes)} to test on; SHA-256 {s.data_hash[:16]}",
        ),
        ("Budget", f"{s.budget}, for each contender and seed"),
        ("Size", f"{count_text(s.n_parameters)} parameters within 2%: widths are solved for. {_unmatched(comparison)}"),
        (
            "Order",
            f"the same text in the same order, {s.n_batch} lanes of {s.n_context} tokens a step, for every contender",
        ),
        (
            "Tuning",
            "one trial each, with the package's default learning rate and schedule unless the settings below differ",
        ),
        ("Seeds", seeds),
        ("Samples", s.sampling),
        (
            "Score",
            "bits per byte: nats of all test tokens / (bytes of the test text × ln 2), the mean over seeds. It does "
            "not depend on how the text is cut into tokens",
        ),
        (
            "Interval",
            f"95%, from a bootstrap over {len(s.block_bytes)} blocks of the test text"
            + (
                f" and the variance over {len(s.seeds)} seeds with Student's t"
                if len(s.seeds) > 1
                else "; one seed: other seeds were not tried, so luck of the seed is not in it"
            ),
        ),
        (
            "p",
            "sign-flip test on the blocks' differences between neighbours; settled means p < 0.05 and an interval "
            "of the difference, over blocks and seeds, that leaves out zero; one seed of a trained model "
            "settles nothing",
        ),
        (
            "FLOPs",
            "2 × multiply-adds of the matrix products, three times the forward pass for training; counting has none",
        ),
        ("Machine", s.hardware),
        ("Versions", ", ".join(f"{k} {v}" for k, v in s.versions.items())),
        ("When", f"{s.date}, {duration_text(s.seconds)} in all"),
    ]
    facts = "".join(f"<dt>{k}</dt><dd>{escape(v)}</dd>" for k, v in rows)
    command = f"<p>To repeat it:</p><pre class=command>{escape(s.command)}</pre>"
    return f"<dl>{facts}</dl>{command}{_settings(comparison)}"


def _settings(comparison: Comparison) -> str:
    """Every contender's settings, folded away until someone asks."""
    blocks = []
    for i, contender in enumerate(comparison.contenders):
        rates = [s.highest_lr for s in contender.seeds if s.highest_lr is not None]
        optimizer = {**contender.training.get("optimizer", {}), **({"lr": f"{rates[0]:.3g}"} if rates else {})}
        sections = {"model": {"name": contender.model, **contender.config}}
        if rates or contender.score is None:  # counting has no optimizer
            sections |= {"optimizer": optimizer, "schedule": contender.training.get("schedule", {})}
        lines = "".join(
            f"<dt>{escape(name)}</dt><dd>{escape(', '.join(f'{k} {_value(v)}' for k, v in section.items()))}</dd>"
            for name, section in sections.items()
        )
        blocks.append(f'<h3 style="color:{colour_of(i)}">{escape(contender.name)}</h3><dl>{lines}</dl>')
    return f"<details><summary>Every contender's settings</summary>{''.join(blocks)}</details>"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return "/".join(map(str, value))
    return "default" if value is None else str(value)


def _unmatched(comparison: Comparison) -> str:
    notes = [f"* {c.name}: {c.parameters_note}." for c in comparison.contenders if c.parameters_note]
    lossy = [f"† {c.name}: its tokenizer loses text." for c in comparison.ranked if not c.is_comparable]
    return " ".join(notes + lossy)


def _tight(text: str) -> str:
    """Without blank lines, which say little and take much room."""
    return re.sub(r"\n\s*\n", "\n", text)


def _bytes(n: int) -> str:
    return f"{count_text(n)}B"
