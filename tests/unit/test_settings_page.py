"""The reference page of every setting is what the settings say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from regard.config import COMMON
from regard.models.table import MODELS
from regard.tasks.table import TASKS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_settings", DOCS / "make_settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(script: ModuleType) -> None:
    written = (DOCS / "settings.md").read_text(encoding="utf-8")
    assert written == script.write_page(), "docs/settings.md is not what the settings say any more: run `make docs`"


def test_every_setting_has_a_line_and_says_what_it_means(script: ModuleType) -> None:
    page = script.write_page()
    kinds = [*COMMON.values(), *(entry.config for entry in MODELS.values())]
    kinds += [kind for task in TASKS.values() for kind in task.sections.values()]
    for kind in kinds:
        for line in kind.help():
            assert line.doc, f"{kind.__name__}.{line.name}"
            assert f"| `{line.name}` | {script.show_default(line.default)} | " in page
