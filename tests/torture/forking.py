"""Command lines in forked processes: torch is imported once, and a start costs a hundredth of a second."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

SAID = "said"
"""The file in a working folder that has all that a command printed, where no other is given."""


def warm_up() -> None:
    """Import what commands import, and start no thread: a process with threads cannot be forked."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import torch

    torch.set_num_threads(1)
    import regard.api
    import regard.cli
    import regard.compare.comparing
    import regard.report.comparison
    import regard.report.look_pictures
    import regard.report.word_map  # noqa: F401


def fork(act: Callable[[], int]) -> int:
    """Call a function in a process of its own, which ends with the code that it returns; returns the process's id."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        os.setsid()
        code = act()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def start(
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    prepare: Callable[[], None] | None = None,
    said: Path | None = None,
) -> int:
    """Start `regard WORDS` in `folder`; returns the process's id. `prepare` is called in it before the command."""

    def act() -> int:
        os.chdir(folder)
        os.environ.update(environment or {})
        printed = os.open(said or SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = ["regard", *words]
        if prepare is not None:
            prepare()
        return run_command()

    return fork(act)


def run_command() -> int:
    """Run the command line that `sys.argv` holds; returns its exit code."""
    from regard import cli

    try:
        cli.main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def wait_for(process: int, seconds: float = 600.0) -> int:
    """The exit code of a process, negative where a signal ended it; one that takes longer is killed."""
    ends = time.monotonic() + seconds
    pause = 0.001
    while True:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > ends:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise TimeoutError(f"process {process} took longer than {seconds:.0f} s")
        time.sleep(pause)


def call_in_fork(act: Callable[[], object]) -> None:
    """Call a function that may start threads, in a process of its own."""

    def succeed() -> int:
        act()
        return 0

    if (code := wait_for(fork(succeed))) != 0:
        fail(f"What the driver needs could not be made (exit code {code}); see above.")


def find_fast_disk() -> str | None:
    """A folder in memory, where there is one: what a kill leaves is the same, and fsync costs nothing there."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def fail(message: str) -> NoReturn:
    raise SystemExit(message)
