"""The page: one HTML document, and the scripts and styles that it names. Only files of this package are served."""

from __future__ import annotations

import hashlib
import secrets
from functools import cache
from html import escape
from importlib import resources
from importlib.resources.abc import Traversable

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from regard import __version__
from regard.report.shell import script_json
from regard.serve.security import Guard

TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
SHARED = ("page.css",)
"""What reports look like, and this page too."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Regard</title>
<link rel="icon" href="data:,">
{styles}
<script type="importmap" nonce="{nonce}">{imports}</script>
<script type="module" src="/static/app.js"></script>
</head>
<body>
<main>
<div id="app"><p class="note" role="status">Loading the runs …</p></div>
<noscript><p>This page is drawn by its scripts; the JSON API, <code>/api/openapi.json</code>, needs none.</p></noscript>
<footer>Regard {version} on this machine. Nothing is loaded from elsewhere.</footer>
</main>
<div id="tip" hidden></div>
</body>
</html>
"""


@cache
def list_files() -> dict[str, tuple[bytes, str, str]]:
    """Every file that is served: its bytes, its type and its mark. What is not in this table does not exist."""
    own, report = resources.files("regard.serve").joinpath("static"), resources.files("regard.report")
    places: dict[str, Traversable] = {file.name: file for file in own.iterdir()}
    places |= {f"views/{file.name}": file for file in report.joinpath("views").iterdir()}
    places |= {name: report.joinpath(name) for name in SHARED}
    found = {}
    for name, file in places.items():
        kind = TYPES.get(name.rpartition(".")[2])
        if kind is not None:
            content = file.read_bytes()
            found[name] = (content, kind, hashlib.sha256(content).hexdigest()[:16])
    return found


def write_page(nonce: str) -> str:
    """The document; its import map, which must stand inside it, has the nonce."""
    names = list_files()
    imports = {
        f"regard/{name.removeprefix('views/').removesuffix('.js')}": f"/static/{name}"
        for name in names
        if name.startswith("views/") and name.endswith(".js")
    }
    sheets = [*SHARED, *sorted(n for n in names if n.startswith("views/") and n.endswith(".css")), "serve.css"]
    styles = "\n".join(f'<link rel="stylesheet" href="/static/{escape(name)}">' for name in sheets)
    return PAGE.format(styles=styles, nonce=nonce, imports=script_json({"imports": imports}), version=__version__)


def add_page(app: FastAPI, guard: Guard) -> None:
    """The addresses of the page and of its files."""

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def page() -> Response:
        nonce = secrets.token_urlsafe(16)
        return Response(
            write_page(nonce),
            media_type="text/html",
            headers={"Content-Security-Policy": guard.policy(nonce), "Cache-Control": "no-store"},
        )

    @app.api_route("/static/{name:path}", methods=["GET", "HEAD"], include_in_schema=False)
    async def static(request: Request, name: str) -> Response:
        if name not in list_files():
            raise HTTPException(404)
        content, kind, mark = list_files()[name]
        headers = {"ETag": f'"{mark}"', "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == f'"{mark}"':
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)
