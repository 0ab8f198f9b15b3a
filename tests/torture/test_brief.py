"""A short slice of the drivers that `make torture` runs: kills, full disks, starts at once, and a long pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from torture import kill
from torture.disk import judge
from torture.soak import MAX_GROWTH, Soaked

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """In a process of its own, which has no threads and can be forked."""
    script = Path(__file__).with_name("brief.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize(("what", "n"), [("kills", 4), ("full disks", 2), ("starts", 16), ("lines", 20_000)])
def test_nothing_is_lost(found: dict[str, Any], what: str, n: int) -> None:
    assert found[what]["faults"] == []
    assert found[what]["n"] >= n


def test_a_driver_sees_other_bits_leftovers_and_tracebacks(tmp_path: Path) -> None:
    job = kill.Job("a job", "", out=("out",))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "metrics.jsonl").write_text('{"step": 1, "seconds": 0.5}\n')
    (tmp_path / "out" / "weights").write_bytes(b"one")
    wanted = kill.summarise(tmp_path, job)
    (tmp_path / "out" / "metrics.jsonl").write_text('{"step": 1, "seconds": 0.75}\n')
    assert kill.tell_difference(wanted, kill.summarise(tmp_path, job)) is None
    (tmp_path / "out" / "weights").write_bytes(b"two")
    (tmp_path / "out" / "metrics.jsonl").unlink()
    (tmp_path / "out" / ".partial-x").touch()
    said = kill.tell_difference(wanted, kill.summarise(tmp_path, job))
    assert said == "missing: out/metrics.jsonl; new: out/.partial-x; other bits: out/weights"
    assert kill.find_leftovers(tmp_path, job) == ["out/.partial-x"]
    assert judge(2, "regard: No space left") is None
    assert judge(-7, "") == "exit -7: "
    assert judge(2, "") == "exit 2 without a word"
    assert "Traceback" in (judge(1, "Traceback (most recent call last)\nOSError") or "")


def test_memory_that_grows_after_the_first_fifth_is_a_fault() -> None:
    assert Soaked(10, 1.0, [1, MAX_GROWTH, MAX_GROWTH, MAX_GROWTH, MAX_GROWTH, MAX_GROWTH]).fault is None
    assert Soaked(10, 1.0, [0, 0, 0, 0, 0, MAX_GROWTH + 1]).fault is not None


def test_a_process_is_killed_before_its_nth_change_of_the_disk(tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\nfrom torture.kill import kill_before\nfrom pathlib import Path\n"
        f"kill_before(2)\nPath('one').write_text('1')\nPath('two').write_text('2')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == -9
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
