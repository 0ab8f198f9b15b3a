"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest

import regard

LEFT_OUT = ("__main__", "_cuda")  # the first runs when it is imported, kernels need a GPU
MODULES = sorted(m.name for m in pkgutil.walk_packages(regard.__path__, "regard.") if not m.name.endswith(LEFT_OUT))


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_print_what_they_say(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0
