"""A server of runs on this machine: its socket, its address, its end."""

from __future__ import annotations

import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import uvicorn

from regard.errors import RegardError
from regard.run.exchange import open_model
from regard.serve.app import make_app
from regard.serve.security import TOKEN, Guard, is_loopback
from regard.serve.served import ServedRuns
from regard.serve.service import Service
from regard.serve.worker import Limits
from regard.training.freed_memory import bound_memory
from regard.untrusted.values import quote

PORT = 8642
N_PORTS = 50
"""So many ports from the first on are tried, then any that is free."""


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Where a server listens and whom it answers."""

    host: str = "127.0.0.1"
    port: int | None = None
    """None: 8642, or the next that is free."""
    token: str | None = None
    """What requests must know; beyond loopback a random one is made where none is given."""
    hosts: tuple[str, ...] = ()
    """Other names that the server answers to."""
    ancestors: str = "'self'"
    """Pages that may show this one in a frame."""
    n_batch: int = 64
    """Requests of one kind that are computed together."""
    n_waiting: int = 512
    """Requests that wait for their turn; more are refused."""


def bind(host: str, port: int | None) -> socket.socket:
    """A socket that listens: on `port`, or where that is None on the first free one from 8642 on."""
    if not host:  # the system would take it for every address that the machine has
        raise RegardError("--host is the name or the address of this machine, and is empty here; 0.0.0.0 means all.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    tried = [port] if port is not None else [*range(PORT, PORT + N_PORTS), 0]
    problem: OSError | None = None
    for number in tried:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
        except (OSError, OverflowError, TypeError, UnicodeError) as error:
            listener.close()
            if isinstance(error, OverflowError):
                raise RegardError(f"--port is a number from 0 to 65535, not {number}.") from None
            if not isinstance(error, OSError):
                raise RegardError(f"--host is the name or the address of this machine, not {quote(host)}.") from None
            problem = error
            continue
        listener.listen(1024)
        return listener
    assert problem is not None
    raise RegardError(
        f"Cannot listen on {host}, port {port if port is not None else PORT}: {problem.strerror}. Give another --port "
        "or --host, or leave out --port for one that is free."
    )


class _Server(uvicorn.Server):
    """A server that answers those who wait before it goes: one that drops them writes a traceback for each."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.stop()
        await super().shutdown(sockets)


class RunServer:
    """Runs that are served from a thread of their own until `close`."""

    def __init__(self, runs: Sequence[Any], options: ServeOptions | None = None) -> None:
        """`runs` are loaded runs or their folders."""
        options = options or ServeOptions()
        is_local = is_loopback(options.host)
        if options.token is not None and not TOKEN.fullmatch(options.token):
            raise RegardError(
                f"--token is made of letters, digits and . _ ~ - (1 to 200), not {options.token!r:.40}. Leave it out "
                "for none on this machine, and for a random one beyond it."
            )
        token = options.token if options.token is not None or is_local else secrets.token_urlsafe(24)
        served = ServedRuns.open(runs)
        limits = Limits(n_batch=options.n_batch, n_waiting=options.n_waiting)
        self.token = token
        self._socket = bind(options.host, options.port)
        self.host, self.port = options.host, int(self._socket.getsockname()[1])
        guard = Guard(
            is_loopback=is_local, token=token, hosts=frozenset(name.lower() for name in options.hosts),
            ancestors=options.ancestors, cookie=f"regard_token_{self.port}",
        )  # fmt: skip
        app, self.service = make_app(served, guard=guard, limits=limits)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, lifespan="off", backlog=1024,
            timeout_graceful_shutdown=3, timeout_keep_alive=15,
        )  # fmt: skip
        self._server = _Server(config, self.service)
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """What to open in a browser on this machine, without the token."""
        name = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname(), "::1": "[::1]"}.get(self.host, self.host)
        return f"http://{name}:{self.port}/"

    def link(self, **state: str) -> str:
        """The address with the token, where there is one, and with a state of the page."""
        query = f"?{urlencode({'token': self.token})}" if self.token is not None else ""
        return self.address + query + (f"#{urlencode(state)}" if state else "")

    def run(self) -> None:
        """Serve until Ctrl-C or SIGTERM."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self.service.close()

    def start(self) -> RunServer:
        """Serve from a thread; returns when requests are answered."""
        self._thread = threading.Thread(target=self.run, name="regard-serve", daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.005)
        return self

    def close(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> RunServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


def serve_folders(
    folders: Sequence[str | Path],
    options: ServeOptions,
    tell: Callable[[str], None],
    *,
    opens_browser: bool = True,
    device: str = "auto",
) -> None:
    """Serve the runs in some folders until Ctrl-C; `tell` is given the address, which a browser is opened at."""
    bound_memory()
    server = RunServer([open_model(folder, device) for folder in folders], options)
    tell(server.link())
    if opens_browser:
        threading.Thread(target=webbrowser.open, args=(server.link(),), daemon=True).start()
    server.run()
