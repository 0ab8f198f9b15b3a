"""What lies beside the package agrees with it: versions, pins, hashes."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import regard

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PIN = re.compile(r"^([A-Za-z0-9_.-]+)==(\S+)", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    found = PIN.findall((ROOT / name).read_text())
    return {re.sub(r"[-_.]+", "-", package).lower(): version for package, version in found}


def test_one_version_everywhere() -> None:
    assert PROJECT["version"] == regard.__version__
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == regard.__version__


HASHED = sorted(path.name for path in ROOT.glob("requirements*.lock") if path.name != "requirements-torch.lock")


@pytest.mark.parametrize("name", HASHED)
def test_every_pin_has_hashes(name: str) -> None:
    """pip reads a requirement to the end of the line, and a backslash goes on."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert lines
    for line in lines:
        assert re.fullmatch(r"\S+==\S+( +--hash=sha256:[0-9a-f]{64})+", line), line


def test_every_dependency_is_pinned() -> None:
    core = pins("requirements.lock") | pins("requirements-torch.lock")
    tools = core | pins("requirements-dev.lock") | pins("requirements-kenlm.lock")
    for given, pinned in ((PROJECT["dependencies"], core), (PROJECT["optional-dependencies"]["dev"], tools)):
        for requirement in given:
            name = re.sub(r"[-_.]+", "-", re.split(r"[><=]", requirement)[0]).lower()
            assert name in pinned, requirement


def test_the_build_backend_is_the_one_that_is_pinned_with_hashes() -> None:
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert given == [f"{name}=={version}" for name, version in pins("requirements-build.lock").items()]
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if "requirements-kenlm.lock 2>" in line]
    installs += [line for line in (ROOT / "Makefile").read_text().splitlines() if "--editable" in line]
    assert ["--no-build-isolation" in line for line in installs] == [True, True]


def test_the_audit_asks_about_every_lock_and_about_what_has_no_hashes_by_itself(tmp_path: Path) -> None:
    """pip-audit refuses pins without a hash beside pins with one; a stand-in for it writes down what it was asked."""
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "audit.yml").read_text())["jobs"]["audit"]["steps"]
    assert {"run": "make audit"} in steps
    asked, program = tmp_path / "asked", tmp_path / "v-audit" / "bin" / "pip-audit"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {asked}\nfor one in "$@"; do test "$one" != --no-deps || exit 1; done\n'
    )
    program.chmod(0o755)
    (tmp_path / "v-audit" / ".installed").touch()
    done = subprocess.run(
        ["make", "audit", f"VENV={tmp_path}/v"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    hashed, unhashed = (re.findall(r"requirements\S*", line) for line in asked.read_text().splitlines())
    assert (sorted(hashed), unhashed) == (HASHED, ["requirements-torch.lock"])
    assert all("--strict" in line for line in asked.read_text().splitlines())
    assert done.returncode != 0
    assert "could not be asked about, so nothing is known of it" in done.stdout


def test_workflow_and_hooks_run_what_a_contributor_runs() -> None:
    job = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())["jobs"]["test"]
    assert {"run": "make test"} in job["steps"]
    named = {line.split(" :: ")[-1] for line in PROJECT["classifiers"] if ":: Python :: 3." in line}
    assert set(job["strategy"]["matrix"]["python"]) == named
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert [hook["id"] for hook in hooks] == ["ruff-check", "ruff-format", "mypy"]


def test_the_folders_of_the_unit_tests_are_the_rooms() -> None:
    rooms = {path.parent.name for path in (ROOT / "regard").glob("*/__init__.py")}
    folders = {path.parent.name for path in (ROOT / "tests" / "unit").glob("*/test_*.py")}
    assert folders
    assert folders <= rooms
