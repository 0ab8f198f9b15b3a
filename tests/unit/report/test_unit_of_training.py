"""A comparison names what its trainings counted."""

import io
from dataclasses import replace

import pytest
from made_up_comparison import made_up_comparison
from rich.console import Console

from regard.compare.budget import Budget
from regard.report.comparison_picture import draw_overview
from regard.report.comparison_table import ComparisonTable
from regard.report.curves import learning_curves
from regard.report.palette import looks_of
from regard.report.ranking import ranking_figure


@pytest.mark.parametrize("unit", ["token", "example"])
def test_tables_charts_and_pictures_name_what_training_counts(unit: str) -> None:
    found = made_up_comparison(("bag", "lstm"), n_seeds=2)
    found = replace(found, setup=replace(found.setup, unit=unit))
    other = {"token": "example", "example": "token"}[unit]
    console = Console(width=260, record=True, file=io.StringIO())
    console.print(ComparisonTable(found))
    heads = next(line for line in console.export_text().splitlines() if "95% interval" in line)
    assert f"{unit}s/s" in heads
    assert f"{other}s" not in heads
    looks = looks_of(c.name for c in found.contenders)
    ranking, curves = ranking_figure(found, looks), learning_curves(found, looks)
    assert f"training<br>{unit}s" in ranking
    assert f"{other}s" not in ranking
    assert f"training {unit}s" in curves
    assert f"training {other}s" not in curves
    titles = [axes.get_title(loc="left") or axes.get_title() for axes in draw_overview(found).axes]
    assert any(f"by training {unit}s" in title for title in titles)
    assert Budget(tokens=5000, flops=1e9).describe(unit) == f"5k {unit}s, 1e9 FLOPs"
