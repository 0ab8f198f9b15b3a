"""docs/lineage.md names files that are there and commands that can be given."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main
from click import Context

from regard.cli import app
from regard.config import read_yaml, with_settings
from regard.models.table import MODELS
from regard.studies.table import STUDIES
from regard.tasks.table import build_config

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lineage.md").read_text()
NAMED = re.findall(r"`([^`\n]+)`", PAGE)
FILES = sorted({name for name in NAMED if re.fullmatch(r"(regard|recipes|tests|docs)/\S+", name)})
COMMANDS = [name for name in NAMED if len(name.split()) > 2 and name.startswith("regard ") and "NAME" not in name]


def idea_rows(page: str) -> list[str]:
    """The rows of all tables whose first column is an idea, whatever they look like."""
    rows, is_inside = [], False
    for line in page.splitlines():
        if not line.startswith("|"):
            is_inside = False
        elif line.startswith("| idea"):
            is_inside = True
        elif is_inside and not line.startswith("|---"):
            rows.append(line)
    return rows


def parsed(command: str) -> tuple[str, dict[str, object]]:
    """The verb, and what its words mean to the command line."""
    verb, *words = shlex.split(command)[1:]
    group = typer.main.get_command(app)
    found = group.get_command(Context(group), verb)  # type: ignore[attr-defined]
    assert found is not None, f"there is no verb {verb}"
    return verb, found.make_context(verb, words).params


def test_the_page_has_a_row_for_every_model() -> None:
    trained = {build_config(read_yaml(ROOT / f)).model_name for f in recipes_in(COMMANDS)}
    assert trained == {name for name in MODELS if name != "captioner"}
    assert {f"regard study {name}" for name in STUDIES} <= set(COMMANDS)


def recipes_in(commands: list[str]) -> list[str]:
    return [word for command in commands for word in command.split() if word.startswith("recipes/")]


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_named_is_there(name: str) -> None:
    assert (ROOT / name).is_file()


@pytest.mark.parametrize("row", idea_rows(PAGE))
def test_a_row_has_its_file_and_its_command_or_says_that_there_is_none(row: str) -> None:
    cells = [cell.strip() for cell in row.split("|")]
    assert len(cells) == 6, "idea, sentence, equation and command, between five bars"
    _, _, sentence, file, command, _ = cells
    assert sentence.endswith(".")
    if file == "not in Regard yet":
        assert not command
    else:
        assert file.strip("`") in FILES
        assert command.strip("`") in COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_can_be_given(command: str) -> None:
    verb, given = parsed(command)
    if verb == "train" and given["recipe"] is not None:
        settings = given["settings"] or []
        assert isinstance(settings, list)
        build_config(with_settings(read_yaml(ROOT / str(given["recipe"])), settings))
    elif verb == "study":
        assert given["name"] in STUDIES
    elif verb == "compare":
        assert set(given["contenders"]) <= set(MODELS)  # type: ignore[call-overload]
