"""The page inside a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.serve.server import RunServer, ServeOptions

LOCAL_PAGES = "http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:* vscode-webview:"
"""Pages that may show this one in a frame: notebooks on this machine."""


class Shown:
    """A served page that a notebook shows in a frame; `close` ends its server."""

    def __init__(self, server: RunServer, state: dict[str, str], height: int) -> None:
        self.server, self.state, self.height = server, state, height

    @property
    def address(self) -> str:
        """What to open in a browser instead."""
        return self.server.link(**self.state)

    def __repr__(self) -> str:
        return f"<page at {self.address}>"

    def _repr_html_(self) -> str:
        """A frame around the page."""
        frame = f'src="{escape(self.address, quote=True)}" width="100%" height="{self.height}" title="Regard"'
        return f'<iframe {frame} style="border:1px solid #ccc"></iframe>'

    def close(self) -> None:
        """Stop the server; the frame stays as it is."""
        self.server.close()


def show(
    runs: Any,
    text: str | None = None,
    *,
    panel: str | None = None,
    port: int | None = None,
    height: int = 720,
    ancestors: str = LOCAL_PAGES,
) -> Shown:
    """Serve runs, loaded or given by their folders, from this process, and show the page in a notebook.

    `text` and `panel` (write, next, score, translate, parse, caption, predict, fill, nearest, look, game) are what it
    begins with.
    `ancestors` are the pages that may show it, in the words of Content-Security-Policy's frame-ancestors: by default
    those on this machine.

        regard.show([run, "runs/transformer"], "In October, people", panel="look")
    """
    given: Sequence[Any] = list(runs) if isinstance(runs, Sequence) and not isinstance(runs, str | Path) else [runs]
    if height < 1:
        raise RegardError(f"height is a number of pixels, 1 at least, not {height}.")
    server = RunServer(given, ServeOptions(port=port, ancestors=ancestors))
    state = {"text": text, "panel": panel}
    return Shown(server.start(), {name: value for name, value in state.items() if value is not None}, height)
