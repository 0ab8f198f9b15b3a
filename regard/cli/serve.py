"""`regard serve`: the local page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import options

Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders to serve.")]
Host = Annotated[str, typer.Option("--host", help="Address to listen on; beyond this machine a token is asked for.")]
Port = Annotated[int | None, typer.Option("--port", "-p", min=0, max=65535, help="Default: 8642, or the next free.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the address and open nothing.")]
Token = Annotated[
    str | None, typer.Option("--token", help="Ask for this token on loopback too; beyond it, default: a random one.")
]
AllowHost = Annotated[
    list[str] | None, typer.Option("--allow-host", help="Answer to this name too, such as a proxy's (repeatable).")
]
Batch = Annotated[int, typer.Option("--max-batch", min=1, help="Requests of one kind that are computed together.")]


def serve(
    runs: Runs,
    host: Host = "127.0.0.1",
    port: Port = None,
    no_browser: NoBrowser = False,
    token: Token = None,
    allow_host: AllowHost = None,
    max_batch: Batch = 64,
    device: options.Device = "auto",
) -> None:
    """Serve runs as a local web page and a JSON API, until Ctrl-C.

    The page writes, scores, translates, parses, tags, fills and looks inside, whatever the runs can, two of them side
    by side. The API has the same functions: /api/openapi.json describes it. Only this machine can reach it unless
    --host says otherwise.

    Examples:
      regard serve runs/lstm
      # two runs to compare
      regard serve runs/lstm runs/transformer --port 9000
      # for other machines too: the printed address has a token
      regard serve runs/lstm --host 0.0.0.0 --no-browser
      # from a program
      curl http://127.0.0.1:8642/api/runs/lstm/next --json '{"text": "In May"}'
    """
    # Here, since other verbs start the sooner without it.
    from regard.serve.server import ServeOptions, serve_folders

    asked = ServeOptions(host=host, port=port, token=token, hosts=tuple(allow_host or ()), n_batch=max_batch)
    serve_folders(runs, asked, _print_address, opens_browser=not no_browser, device=device)


def _print_address(address: str) -> None:
    typer.echo(f"Regard is at {address}\nStop it with Ctrl-C.")
