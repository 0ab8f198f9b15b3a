"""Where the command line begins."""

import sys
from collections.abc import Sequence
from typing import Any

import pytest

from regard.__main__ import main


class Interrupted:
    """Ctrl-C in the middle of an import."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> None:
        if name == "regard.cli":
            raise KeyboardInterrupt


def test_an_interrupt_while_modules_are_imported_is_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "regard.cli", raising=False)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 130
    assert capsys.readouterr().err == "\nregard: interrupted.\n"
