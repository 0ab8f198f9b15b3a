"""Transformers that translate, written as Marian, against `transformers`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_exported import tiny_pair_run
from tiny_pairs import TEXTS

from regard.errors import RegardError
from regard.run.exchange import export_run

transformers = pytest.importorskip("transformers")
POST = {"norm": "post", "activation": "relu"}


@pytest.mark.parametrize(
    ("name", "is_shared", "more"),
    [
        ("vaswani", True, {"tying": "all"}),
        ("seq2seq", False, {**POST, "tying": "target"}),
        ("seq2seq", False, {"norm": "post", "activation": "gelu", "tying": "none"}),
    ],
)
def test_marian_gives_the_same_probabilities_of_targets(
    name: str, is_shared: bool, more: dict[str, Any], tmp_path: Path
) -> None:
    run = tiny_pair_run(name, is_shared=is_shared, **more)
    export_run(run, tmp_path / "marian", is_marian=True)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "marian", dtype=torch.float64).eval()
    assert type(theirs).__name__ == "MarianMTModel"
    sources = [run.source_tokenizer.encode(source).tolist() for source, _ in TEXTS[:3]]
    targets = [run.target_tokenizer.encode(target).tolist() for _, target in TEXTS[:3]]
    S, T = max(map(len, sources)), max(map(len, targets))
    eos = run.target_tokenizer.eos
    x = torch.tensor([[*row, *[eos] * (S - len(row))] for row in sources])
    mask = torch.tensor([[True] * len(row) + [False] * (S - len(row)) for row in sources])
    y = torch.tensor([[eos, *row, *[eos] * (T - len(row))] for row in targets])
    with torch.no_grad():
        right = run.model.double()(x, mask, y)
        found = theirs(input_ids=x, attention_mask=mask.long(), decoder_input_ids=y).logits.log_softmax(dim=-1)
    torch.testing.assert_close(found, right, rtol=0, atol=1e-10)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "marian")
    assert tokenizer(TEXTS[0][0])["input_ids"] == sources[0]
    assert theirs.generation_config.decoder_start_token_id == eos
    written = json.loads((tmp_path / "marian" / "config.json").read_text())
    assert written["share_encoder_decoder_embeddings"] == is_shared
    assert (tmp_path / "marian" / "target_tokenizer.json").exists() != is_shared


@pytest.mark.parametrize(
    ("model", "words"),
    [({"norm": "pre"}, "model.norm = pre, which Hugging Face's Marian cannot say: it has post alone"),
     ({"norm": "post", "positions": "learned"}, "model.positions = learned"),
     ({"encoder": "lstm"}, "model.encoder = lstm")],
)  # fmt: skip
def test_what_marian_cannot_say_is_refused_in_a_sentence(model: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=words):
        export_run(tiny_pair_run(**model), tmp_path / "out", is_marian=True)
    assert not (tmp_path / "out").exists()
