"""The trees of sentences as one self-contained page, each with its probability."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.report.page_folder import TREES, finish_page
from regard.report.shell import report_page, section
from regard.report.trees import svg_width, tree_svg

if TYPE_CHECKING:
    from regard.decode.parse import Parse  # with torch, which the command line starts without

SMALLEST = 0.7  # to how much of its size a tree is made smaller before it scrolls
MOST = 200  # sentences on a page; more would be slow to open
CSS = """
.readings { display: flex; flex-wrap: wrap; gap: 16px; margin-top: 14px; }
.readings figure { flex: 0 1 auto; min-width: min(100%, 440px); max-width: max(50% - 8px, min(100%, 460px)); margin: 0;
  border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
.readings figcaption { padding: 8px 14px; border-bottom: 1px solid var(--line); font-size: 14px; color: var(--soft); }
.readings figcaption b { color: var(--ink); font-size: 17px; margin-right: 8px; }
.readings .share { height: 4px; background: #0072b2; }
.readings .scroll { overflow-x: auto; background: #fff; padding: 4px; }
.readings .tree { display: block; margin: 0 auto; max-width: 100%; min-width: var(--least); height: auto; }
"""


def write_parses(parses: Sequence[tuple[str, Parse]], run: Path, out: Path) -> Path:
    """Write `out`/report.html, the trees of every sentence, and return its path. The folder was checked before."""
    return finish_page(out, render_parses(parses, run), TREES)


def render_parses(parses: Sequence[tuple[str, Parse]], run: Path) -> str:
    """The whole page as text."""
    n_trees = sum(len(parsed.all) for _, parsed in parses)
    notes = []
    if len(parses) > MOST:
        notes.append(f"Of {len(parses):,} sentences the first {MOST} are drawn; --json or --svg writes all of them.")
    has_several = any(parsed.others for _, parsed in parses)
    ranked = " A bar is as long as its tree is probable." if has_several else ""
    return report_page(
        title=f"Regard: trees of {len(parses)} sentences",
        kicker=f"Regard · parses by {run}",
        headline="What is the structure of these sentences?",
        lede=f"{n_trees:,} trees of {len(parses):,} sentences; a probability is P(tree | sentence) by the "
        f"model.{ranked}",
        notes=notes,
        sections=[section(sentence.strip(), "", _draw_readings(parsed)) for sentence, parsed in parses[:MOST]],
        made="Made by Regard.",
        own_css=CSS,
    )


def _draw_readings(parsed: Parse) -> str:
    """All trees of a sentence, side by side where there is room."""
    figures = []
    for rank, each in enumerate(parsed.all, 1):
        assert each.tree is not None
        said = f"<b>{each.probability:.3f}</b>" + (f"tree {rank} of {len(parsed.all)}" if parsed.others else "")
        least = f"--least:{SMALLEST * svg_width(each.tree):.0f}px"
        figures.append(
            f'<figure><div class="share" style="width:{100 * each.probability:.1f}%"></div>'
            f"<figcaption>{said}</figcaption>"
            f'<div class="scroll" tabindex="0" role="region" style="{least}" aria-label="tree {rank}">'
            f"{tree_svg(each.tree)}</div></figure>"
        )
    return f'<div class="readings">{"".join(figures)}</div>'
