"""What every page has around its own content: one file, its styles and scripts inside it, that loads nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources


def report_page(
    *,
    title: str,
    kicker: str,
    headline: str,
    lede: str,
    sections: Iterable[str],
    made: str,
    notes: Iterable[str] = (),
    own_css: str = "",
    own_js: str = "",
    modules: str = "",
    data: object = None,
) -> str:
    """A whole page. `sections` are HTML, `notes` stand below the lede; all else is text and is escaped.

    A page with a script of its own reads `data` as JSON from the element called data. `modules` are script elements.
    """
    return PAGE.format(
        title=escape(title),
        css=text_of("page.css") + own_css,
        kicker=escape(kicker),
        headline=escape(headline),
        lede=escape(lede),
        notes="".join(f'<p class="note">{with_code(note)}</p>' for note in notes),
        sections="\n".join(section for section in sections if section),
        made=escape(made),
        data=script_json(data),
        js=text_of("page.js") + own_js,
        modules=modules,
    )


def frame_page(page: str, max_height: int = 720) -> str:
    """A whole page inside a notebook: as high as it is, and scrolled where that is more than `max_height` pixels."""
    page = page.replace("</head>", f"<style>{FRAMED}</style>\n</head>", 1)
    fit = f"this.style.height=Math.min({max_height},this.contentDocument.documentElement.offsetHeight+4)+'px'"
    style = f"width:100%;height:{max_height}px;border:0"
    return f'<iframe srcdoc="{escape(page, quote=True)}" style="{style}" onload="{fit}" title="Regard"></iframe>'


def section(title: str, note: str, body: str, name: str | None = None) -> str:
    """A heading, a note below it and what it is about; nothing where that is nothing."""
    if not body:
        return ""
    identity = "" if name is None else f' id="{name}"'
    lede = f'<p class="note">{with_code(note)}</p>' if note else ""
    return f"<section{identity}><h2>{escape(title)}</h2>{lede}{body}</section>"


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Names and what is to be said of them."""
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{with_code(value)}</dd>' for name, value in rows)}</dl>"


def how_to_repeat(command: str) -> str:
    """The command that gives this page again."""
    return f"<p>To repeat it:</p><pre class=command>{escape(command)}</pre>"


def fold(summary: str, body: str) -> str:
    """What is long and is shown when someone asks."""
    return f"<details><summary>{escape(summary)}</summary>{body}</details>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], unclear: Iterable[int] = ()) -> str:
    """A table that scrolls by itself where the screen is narrow, so that the page never does.

    `unclear` are the numbers of the rows that say something unsettled.
    """
    marked = set(unclear)
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr{' class=unclear-row' if i in marked else ''}>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in row)
        + "</tr>"
        for i, row in enumerate(rows)
    )
    return f'<div class="numbers"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


@dataclass(frozen=True)
class Tab:
    """A panel behind a button; `colour` is that of the model that it shows."""

    name: str
    label: str
    body: str
    colour: str | None = None


def tabs(given: Sequence[Tab], first: int = 0) -> str:
    """Buttons, and the panel of the one that is pressed; one panel needs no button."""
    chips = " chips" if any(tab.colour for tab in given) else ""
    buttons, panels = [], []
    for i, tab in enumerate(given):
        look = f' style="--c:{tab.colour}"' if tab.colour else ""
        on, hidden = (" class=on", "") if i == first else ("", " hidden")
        buttons.append(f'<button data-tab="{tab.name}"{on}{look}>{escape(tab.label)}</button>')
        panels.append(f'<div class="panel" id="{tab.name}"{hidden}>{tab.body}</div>')
    bar = f'<div class="tabs{chips}" role="tablist">{"".join(buttons)}</div>' if len(given) > 1 else ""
    return bar + "".join(panels)


def with_code(text: str) -> str:
    """Escaped, with `what is typed` in the type of code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def text_of(name: str) -> str:
    """A style sheet or a script that the package carries."""
    return resources.files("regard.report").joinpath(name).read_text(encoding="utf-8")


def setting_text(value: object) -> str:
    """The value of a setting in a list of settings.

    >>> [setting_text(value) for value in (True, (1, 2), None, 0.5, "adamw")]
    ['yes', '1/2', 'default', '0.5', 'adamw']
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return "/".join(map(str, value))
    if isinstance(value, float):
        return f"{value:g}"
    return "default" if value is None else str(value)


FRAMED = """
main { padding: 8px 12px 12px; } header { margin-bottom: 8px; } section { margin-top: 20px; }
.kicker, footer { display: none; }
h1 { font-size: 20px; margin-bottom: 6px; } .lede { font-size: 15px; } h2 { font-size: 17px; padding-top: 10px; }
"""
"""Styles of a page that stands in a notebook, beside a text that says what it is."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{css}
</style>
</head>
<body>
<main>
<header>
<p class="kicker">{kicker}</p>
<h1>{headline}</h1>
<p class="lede">{lede}</p>
{notes}
</header>
{sections}
<footer>{made} This page is one file and loads nothing from the network.</footer>
</main>
<div id="tip" hidden></div>
<script type="application/json" id="data">{data}</script>
<script>
{js}
</script>
{modules}
</body>
</html>
"""


def script_json(value: object) -> str:
    """JSON that cannot end the script element it stands in, whatever text it holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\u2028", "\\u2028")
