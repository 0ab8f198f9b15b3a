"""What lies beside the package agrees with it: versions, pins, hashes."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize(
    "name", ["requirements.lock", "requirements-build.lock", "requirements-dev.lock", "requirements-kenlm.lock"]
)
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
    assert "--no-build-isolation" in (ROOT / "Makefile").read_text()


def test_the_audit_reads_every_lock() -> None:
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "audit.yml").read_text())["jobs"]["audit"]["steps"]
    assert {"run": "make audit"} in steps
    assert "$(wildcard requirements*.lock)" in (ROOT / "Makefile").read_text()


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
