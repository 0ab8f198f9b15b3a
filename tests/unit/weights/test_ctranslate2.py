import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_exported import tiny_pair_run
from tiny_pairs import TEXTS
from typer.testing import CliRunner

from regard.cli import app
from regard.decode.config import BeamConfig
from regard.errors import RegardError
from regard.run.exchange import export_run
from regard.tasks.translation import TranslationRun
from regard.text.tokenizer import Tokenizer
from regard.weights.ctranslate2 import spell_vocabulary


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"encoder": "lstm"}, "has model.encoder = lstm, which CTranslate2 cannot run: it has transformer alone"),
        ({"decoder": "gru"}, "has model.decoder = gru, which CTranslate2 cannot run: it has transformer alone"),
        ({"copies": True}, "has model.copies = true, which CTranslate2 cannot run: it has false alone"),
    ],
)
def test_what_ctranslate2_cannot_run_is_refused_in_a_sentence(
    model: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(RegardError, match=words):
        export_run(tiny_pair_run(**model), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_ctranslate2_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(RegardError, match=re.escape("Install it: pip install 'regard[export]'")):
        export_run(tiny_pair_run(), tmp_path / "out")


def test_ids_without_an_entry_get_names_of_their_own() -> None:
    vocab = {"a": 0, "b": 4, "<|endoftext|>": 2}
    model = {"type": "BPE", "vocab": vocab, "merges": []}
    pre = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = Tokenizer.from_json(json.dumps({"version": "1.0", "pre_tokenizer": pre, "model": model}))
    assert spell_vocabulary(tokenizer) == ["a", "<no entry 1>", "<|endoftext|>", "<no entry 3>", "b"]


class TestWithCTranslate2:
    @pytest.fixture(autouse=True)
    def _is_there(self) -> None:
        pytest.importorskip("ctranslate2")

    def test_a_folder_that_exists_is_left_alone(self, tmp_path: Path) -> None:
        with pytest.raises(RegardError, match="is there already; give the name of a folder that does not exist yet"):
            export_run(tiny_pair_run(), tmp_path)

    @pytest.mark.parametrize(
        ("is_shared", "files"),
        [
            (True, {"shared_vocabulary.json", "tokenizer.json"}),
            (False, {"source_vocabulary.json", "target_vocabulary.json", "tokenizer.json", "target_tokenizer.json"}),
        ],
    )
    def test_the_folder_holds_model_vocabularies_tokenizers_and_a_note(
        self, is_shared: bool, files: set[str], tmp_path: Path
    ) -> None:
        export_run(tiny_pair_run(is_shared=is_shared), tmp_path / "out")
        assert {path.name for path in (tmp_path / "out").iterdir()} == files | {"model.bin", "config.json", "README.md"}

    @pytest.mark.parametrize(("kind", "unknown"), [("word", "<unk>"), ("bpe", "<eos>")])
    def test_a_target_begins_after_and_ends_with_the_end_mark(self, kind: str, unknown: str, tmp_path: Path) -> None:
        export_run(tiny_pair_run(kind=kind), tmp_path / "out")
        config = json.loads((tmp_path / "out" / "config.json").read_text())
        marks = {name: config[name] for name in ("decoder_start_token", "eos_token", "unk_token")}
        assert marks == {"decoder_start_token": "<eos>", "eos_token": "<eos>", "unk_token": unknown}
        assert (config["add_source_bos"], config["add_source_eos"]) == (False, False)

    @pytest.mark.parametrize(("kind", "is_shared"), [("word", False), ("bpe", True), ("char", True)])
    def test_the_program_in_the_note_translates_as_we_do(self, kind: str, is_shared: bool, tmp_path: Path) -> None:
        run = tiny_pair_run(kind=kind, is_shared=is_shared, max_context=32, tying="none", std=1.0)
        write_letters_only(run)
        found = written_by_the_note(run, tmp_path / "out", [source for source, _ in TEXTS[::3]])
        ours = run.translator(BeamConfig(beam=1, max_length=32))
        assert found == [ours.all([ours.read(source)])[0][0].text for source, _ in TEXTS[::3]]
        assert len(set(found)) > 1

    def test_the_note_puts_the_tag_before_each_source(self, tmp_path: Path) -> None:
        run = tiny_pair_run(data={"tag": "<2de>"})
        export_run(run, tmp_path / "out")
        note = (tmp_path / "out" / "README.md").read_text()
        assert "sources = [['<2de>'] + line.tokens for line in lines]" in note
        assert "Every source begins with a tag, one of <2de>" in note


def write_letters_only(run: TranslationRun) -> None:
    """Make everything else improbable: bytes that are no text are shown in more than one way."""
    norm, head = run.model.target.decoder.norm, run.model.target.head  # type: ignore[attr-defined]
    assert head is not None
    with torch.no_grad():
        head -= head.mean(dim=1, keepdim=True)  # so that a bias of ones says nothing about letters
        norm.bias.fill_(1.0)
        for i in range(len(head)):
            if not run.target_tokenizer.token_text(i).strip().isalpha():
                head[i] = -3.0


def written_by_the_note(run: TranslationRun, folder: Path, sources: list[str]) -> list[str]:
    """What the program in README.md prints; greedy, in which the two searches are the same."""
    export_run(run, folder)
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    code = code.replace("beam_size=5", "beam_size=1, min_decoding_length=0")
    given = "".join(f"{source}\n" for source in sources)
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code], cwd=folder, input=given, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_command_writes_a_folder_for_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ctranslate2")
    monkeypatch.setattr("regard.run.engine.load", lambda folder, device: tiny_pair_run())
    done = CliRunner().invoke(app, ["export", "runs/tiny", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "model.bin").exists()
