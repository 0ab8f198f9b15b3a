"""Cells in a comparison's report: what was saved with it, drawn by the same script as `regard look`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.compare.result import Comparison
from regard.lens.cell_view import describe_cells
from regard.report.look import hold_views, place_view
from regard.report.palette import Look
from regard.report.shell import Tab, tabs


def cells_figure(comparison: Comparison, looks: Mapping[str, Look], first: int) -> tuple[str, list[dict[str, Any]]]:
    """A frame for every contender whose cells were searched, and their panels, which have numbers from `first` on."""
    shown = [(c, c.views.cells) for c in comparison.ranked if c.views.cells is not None and c.views.cells.traces]
    appeal = [(found.tap == "cell", abs(found.traces[0].score)) for _, found in shown]
    frames, panels = [], []
    for k, (contender, found) in enumerate(shown):
        view, colour = describe_cells(found), looks[contender.name].colour
        frames.append(Tab(f"cells-{k}", contender.name, place_view(view, first + k), colour))
        panels.append(hold_views([view], contender.name, colour))
    return tabs(frames, appeal.index(max(appeal)) if appeal else 0), panels
