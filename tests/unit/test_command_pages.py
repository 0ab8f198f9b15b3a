"""docs/lineage.md and docs/lectures.md name files that are there and commands that can be given, from top to bottom."""

import re
import sys
from pathlib import Path

import pytest
import typer.main
from click import Context

from regard.cli import app
from regard.config import read_yaml, with_settings
from regard.models.table import MODELS
from regard.studies.table import STUDIES, study_config
from regard.tasks.table import build_config

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

from run_page import BROUGHT, PAGES, Command, list_commands, shorten  # noqa: E402  (a script beside the pages)

TEXTS = {name: (ROOT / "docs" / f"{name}.md").read_text() for name in PAGES}
TYPED = {name: list_commands(text) for name, text in TEXTS.items()}
LINEAGE, LECTURES = TEXTS["lineage"], TEXTS["lectures"]
NAMED = re.findall(r"`([^`\n]+)`", LINEAGE + LECTURES)
FILES = sorted({name for name in NAMED if re.fullmatch(r"(regard|recipes|tests|docs)/\S+", name)})
ALL = [command for name in PAGES for command in TYPED[name]]
COMMANDS = [command.text for command in ALL if command.words[0] == "regard"]


def rows_of(page: str, first: str) -> list[str]:
    """The rows of all tables whose first column has this name, whatever they look like."""
    rows, is_inside = [], False
    for line in page.splitlines():
        if not line.startswith("|"):
            is_inside = False
        elif line.startswith(f"| {first} |"):
            is_inside = True
        elif is_inside and not line.startswith("|---"):
            rows.append(line)
    return rows


def parsed(command: str) -> tuple[str, dict[str, object]]:
    """The verb, and what its words mean to the command line."""
    verb, *words = Command(command.split(" > ")[0]).words[1:]
    group = typer.main.get_command(app)
    found = group.get_command(Context(group), verb)  # type: ignore[attr-defined]
    if verb == "data" and words[0] == "grammar":
        found = found.get_command(Context(found), words.pop(0))
    assert found is not None, f"there is no verb {verb}"
    return verb, found.make_context(verb, words).params


def test_the_lineage_has_a_row_for_every_model() -> None:
    trained = {build_config(read_yaml(ROOT / f)).model_name for f in recipes_in(TYPED["lineage"])}
    assert trained == {name for name in MODELS if name != "captioner"}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_every_study(page: str) -> None:
    assert set(STUDIES) <= {command.words[2] for command in TYPED[page] if command.words[1] == "study"}


def recipes_in(commands: list[Command]) -> list[str]:
    return [word for command in commands for word in command.words if word.startswith("recipes/")]


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_named_is_there(name: str) -> None:
    assert (ROOT / name).is_file()


@pytest.mark.parametrize("row", rows_of(LINEAGE, "idea"))
def test_an_idea_has_a_sentence_its_file_and_its_command(row: str) -> None:
    cells = [cell.strip() for cell in row.split("|")]
    assert len(cells) == 6, "idea, sentence, equation and command, between five bars"
    _, _, sentence, file, command, _ = cells
    assert sentence.endswith(".")
    assert file.strip("`") in FILES
    assert command.strip("`") in COMMANDS


@pytest.mark.parametrize("row", rows_of(LECTURES, "slide"))
def test_a_slide_has_its_command_its_minutes_and_what_to_look_at(row: str) -> None:
    cells = [cell.strip() for cell in row.split("|")]
    assert len(cells) == 6, "slide, command, minutes and what to look at, between five bars"
    _, slide, command, minutes, shows, _ = cells
    assert slide
    assert shows
    assert command.strip("`") in COMMANDS
    assert re.fullmatch(r"(about |<)?\d+(\.\d)?", minutes) or Command(command.strip("`")).is_endless


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_can_be_given(command: str) -> None:
    verb, given = parsed(command)
    if verb == "train" and str(given["recipe"]).endswith(".yaml"):
        settings = given["settings"] or []
        assert isinstance(settings, list)
        build_config(with_settings(read_yaml(ROOT / str(given["recipe"])), settings))
    elif verb == "study":
        assert given["name"] in STUDIES
    elif verb == "compare":
        assert set(given["contenders"]) <= set(MODELS)  # type: ignore[call-overload]


@pytest.mark.parametrize("page", PAGES)
def test_no_two_commands_write_the_same_place(page: str) -> None:
    written = [command.writes for command in TYPED[page] if command.writes is not None]
    assert sorted(set(written)) == sorted(written)
    assert all(place.startswith(f"{page}/") for place in written)


@pytest.mark.parametrize("command", ALL, ids=lambda command: command.text)
def test_a_command_that_writes_a_folder_says_which(command: Command) -> None:
    """Else two of them would meet in the folder that is taken by default."""
    writes = command.words[1] in ("train", "study", "compare", "import", "embed", "parse", "data", "look", "caption")
    assert (command.writes is not None) or not writes or "--dry-run" in command.words


@pytest.mark.parametrize("page", PAGES)
def test_what_a_command_reads_is_written_before_or_named_in_the_text(page: str) -> None:
    written: set[str] = set()
    for command in TYPED[page]:
        for name in command.reads:
            is_there = any(name == place or name.startswith(f"{place}/") for place in written)
            is_brought = name in BROUGHT and f"`{name}`" in TEXTS[page]
            assert is_there or is_brought, f"{command.text}: nothing writes {name}"
        written |= {command.writes} - {None}  # type: ignore[arg-type]


@pytest.mark.parametrize("page", PAGES)
def test_paths_are_all_under_the_folder_of_the_page_or_brought(page: str) -> None:
    """So that nothing is read which the test above does not look at."""
    for command in TYPED[page]:
        paths = [word for word in command.words if "/" in word and not word.startswith(("recipes/", "grammar:"))]
        assert all(f"{page}/" in path for path in paths), command.text


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_can_be_shortened(command: str) -> None:
    verb, given = parsed(shorten(Command(command)).text)
    if verb == "train" and str(given["recipe"]).endswith(".yaml"):
        build_config(with_settings(read_yaml(ROOT / str(given["recipe"])), given["settings"] or []))  # type: ignore[arg-type]
    elif verb == "study":
        study_config(str(given["name"]), with_settings({}, given["settings"] or []))  # type: ignore[arg-type]
        assert not given["run"] or "n_steps" not in " ".join(given["settings"] or []), "refused beside --run"  # type: ignore[arg-type]
