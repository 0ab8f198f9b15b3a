"""Transformers that translate, written as Marian and read again, against `transformers`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_exported import tiny_pair_run
from tiny_pairs import TEXTS

from regard.errors import RegardError
from regard.run.exchange import export_run, import_run
from regard.training.weights import named_weights

transformers = pytest.importorskip("transformers")
POST = {"norm": "post", "activation": "relu"}


@pytest.mark.parametrize(
    ("name", "is_shared", "more"),
    [
        ("vaswani", True, {"tying": "all"}),
        ("seq2seq", False, {**POST, "tying": "target"}),
        ("seq2seq", False, {"norm": "post", "activation": "gelu", "tying": "none"}),
        ("seq2seq", True, {"norm": "post", "activation": "swish", "tying": "all"}),
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
     ({"norm": "post", "has_output_bias": True}, "has model.has_output_bias = true, which Regard does not write"),
     ({"encoder": "lstm"}, "model.encoder = lstm")],
)  # fmt: skip
def test_what_marian_cannot_say_is_refused_in_a_sentence(model: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=words):
        export_run(tiny_pair_run(**model), tmp_path / "out", is_marian=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "is_shared", "more"),
    [("vaswani", True, {"tying": "all"}), ("seq2seq", False, {**POST, "tying": "none"}),
     ("seq2seq", False, {**POST, "tying": "target"})],
)  # fmt: skip
def test_going_out_to_marian_and_back_changes_no_bit(
    name: str, is_shared: bool, more: dict[str, Any], tmp_path: Path
) -> None:
    run = tiny_pair_run(name, is_shared=is_shared, **more)
    export_run(run, tmp_path / "marian", is_marian=True)
    again: Any = import_run(tmp_path / "marian", tmp_path / "again")
    for ours, back in zip(run.tokenizers, again.tokenizers, strict=True):
        assert back.hash == ours.hash
    before, after = named_weights(run.model), named_weights(again.model)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert again.translate(TEXTS[0][0]) == run.translate(TEXTS[0][0])
    export_run(again, tmp_path / "twice", is_marian=True)
    assert (tmp_path / "twice" / "model.safetensors").read_bytes() == (
        tmp_path / "marian" / "model.safetensors"
    ).read_bytes()
    assert "echo 'The cat sat on the mat.' | regard translate" in (tmp_path / "again" / "README.md").read_text()


def test_a_marian_that_transformers_saved_in_shards_is_read(tmp_path: Path) -> None:
    export_run(tiny_pair_run("vaswani", tying="all"), tmp_path / "marian", is_marian=True)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "marian", dtype=torch.float64).eval()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "embed_positions" not in name:  # which no training changes
                parameter.mul_(1.5)
    theirs.float().save_pretrained(tmp_path / "saved", max_shard_size="5KB")
    assert len(list((tmp_path / "saved").glob("*.safetensors"))) > 1
    shutil.copy(tmp_path / "marian" / "tokenizer.json", tmp_path / "saved")
    run: Any = import_run(tmp_path / "saved", tmp_path / "run")
    x = torch.from_numpy(run.source_tokenizer.encode(TEXTS[0][0])).long()[None]
    y = torch.tensor([[run.target_tokenizer.eos, 3, 5, 2]])
    with torch.no_grad():
        right = theirs.double()(input_ids=x, decoder_input_ids=y).logits.log_softmax(dim=-1)
        found = run.model.double()(x, torch.ones_like(x, dtype=torch.bool), y)
    torch.testing.assert_close(found, right, rtol=0, atol=1e-10)


def test_a_marian_that_is_not_read_says_why(tmp_path: Path) -> None:
    export_run(tiny_pair_run("vaswani", tying="all"), tmp_path / "marian", is_marian=True)

    def refuse(words: str, **changes: Any) -> None:
        folder = tmp_path / f"changed-{len(list(tmp_path.iterdir()))}"
        shutil.copytree(tmp_path / "marian", folder)
        written = json.loads((folder / "config.json").read_text()) | changes
        (folder / "config.json").write_text(json.dumps(written))
        with pytest.raises(RegardError, match=words):
            import_run(folder, tmp_path / "run")

    refuse(r"has pad_token_id = 7, and Regard reads Marians with 0 there", pad_token_id=7)
    refuse(r"has scale_embedding = false", scale_embedding=False)
    refuse(r"the activation mish, which Regard does not compute", activation_function="mish")
    refuse(r"the activation \[\], which Regard does not compute", activation_function=[])
    refuse(r"more than 1,000,000 max_position_embeddings", max_position_embeddings=10**9)
    refuse(r"lacks tensors that its config.json calls for: 'model.encoder.layers.2", encoder_layers=3)
    refuse(r"which does not fit config.json", encoder_ffn_dim=8, decoder_ffn_dim=8)
    weights = load_file(tmp_path / "marian" / "model.safetensors")
    save_file(weights | {"final_logits_bias": torch.ones(1, 4)}, tmp_path / "marian" / "model.safetensors")
    refuse(r"has the tensor 'final_logits_bias'.* add no number to the score of each word")
    (tmp_path / "marian" / "tokenizer.json").unlink()
    refuse(r"has no tokenizer: neither tokenizer.json, .* nor source.spm, target.spm and vocab.json, as published")
    assert not (tmp_path / "run").exists()
