"""The build: pyproject.toml says all but one thing, that `recipes/` travels inside the package as `regard/recipes/`."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithRecipes(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:  # a clone has its recipes beside the package
            return
        folder = Path(self.build_lib) / "regard" / "recipes"
        self.mkpath(str(folder))
        for recipe in sorted(Path("recipes").glob("*.yaml")):
            self.copy_file(str(recipe), str(folder / recipe.name))


setup(cmdclass={"build_py": BuildWithRecipes})
