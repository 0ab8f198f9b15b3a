"""What every page has around its own content: one file, its styles and scripts inside it, that loads nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from importlib import resources

NOTHING_INSIDE: dict[str, object] = {"surprise": {}, "attention": [], "cells": []}
"""For page.js, of a page that shows none of these."""


def page(title: str, css: str, body: str, js: str) -> str:
    """A whole document; `title` is escaped, all else is as it will stand."""
    return PAGE.format(title=escape(title), css=css, body=body, js=js)


def report_page(
    *,
    title: str,
    kicker: str,
    headline: str,
    lede: str,
    sections: Iterable[str],
    made: str,
    notes: str = "",
    own_css: str = "",
    data: object = NOTHING_INSIDE,
) -> str:
    """A page in the look of the report; `sections` and `notes` are HTML, the rest is text."""
    body = REPORT.format(
        kicker=escape(kicker),
        headline=escape(headline),
        lede=escape(lede),
        notes=notes,
        sections="\n".join(section for section in sections if section),
        made=escape(made),
        data=_script_json(data),
    )
    return page(title, text_of("page.css") + own_css, body, text_of("page.js"))


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


def with_code(text: str) -> str:
    """Escaped, with `what is typed` in the type of code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def text_of(name: str) -> str:
    """A style sheet or a script that the package carries."""
    return resources.files("regard.report").joinpath(name).read_text(encoding="utf-8")


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
{body}
<script>
{js}
</script>
</body>
</html>
"""

REPORT = """<main>
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
<script type="application/json" id="data">{data}</script>"""


def _script_json(value: object) -> str:
    """JSON that cannot end the script element it stands in, whatever text it holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\u2028", "\\u2028")
