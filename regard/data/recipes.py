"""The recipes that come with Regard: their names, what they say of themselves, their text, copies of them."""

from __future__ import annotations

import re
from pathlib import Path

from regard.errors import RegardError, nearest
from regard.files import write_atomically

SUFFIX = ".yaml"


def recipe_folder() -> Path:
    """Where the recipes are: inside an installed package, or beside the package in a clone."""
    installed = Path(__file__).parents[1] / "recipes"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "recipes"


def list_recipes() -> dict[str, str]:
    """The names of all recipes, each with the first sentence of the comment that it begins with."""
    return {path.stem: _first_sentence(path) for path in sorted(recipe_folder().glob(f"*{SUFFIX}"))}


def is_recipe(path: Path) -> bool:
    """Whether a file is called what a recipe of Regard's is called."""
    return path.suffix == SUFFIX and (recipe_folder() / path.name).is_file()


def read_recipe(name: str) -> str:
    """The text of a recipe; `name` may end in .yaml."""
    return _find(name).read_text(encoding="utf-8")


def copy_recipes(name: str | None, to: Path) -> list[Path]:
    """Copy one recipe, or all where `name` is None, and return the files; none that says something else is overwritten.

    `to` is a folder, or for one recipe a file that ends in .yaml.
    """
    sources = sorted(recipe_folder().glob(f"*{SUFFIX}")) if name is None else [_find(name)]
    is_file = name is not None and to.suffix == SUFFIX
    targets = [to if is_file else to / source.name for source in sources]
    for source, target in zip(sources, targets, strict=True):
        if target.exists() and not (target.is_file() and target.read_bytes() == source.read_bytes()):
            raise RegardError(f"'{target}' exists already and is not overwritten. Give --copy another place.")
    for source, target in zip(sources, targets, strict=True):
        write_atomically(target, source.read_bytes())
    return targets


def _find(name: str) -> Path:
    path = recipe_folder() / f"{name.removesuffix(SUFFIX)}{SUFFIX}"
    if path.parent != recipe_folder() or not path.is_file():
        known = list(list_recipes())
        raise RegardError(f"There is no recipe '{name}'.{nearest(name, known)} `regard recipes` lists them.")
    return path


def _first_sentence(path: Path) -> str:
    words: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        comment = line.removeprefix("#").strip()
        if not line.startswith("#") or not comment:
            break
        words.append(comment)
    return re.split(r"(?<=\.)\s+(?=[A-Z`])", " ".join(words))[0]  # "et al. 2017" is no end of a sentence
