"""Hugging Face folders in and out: the logits of `transformers`' GPT-2, in float64."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_gpt2 import TEXT, hf_model, write_hf_folder, write_hf_tokenizer, write_vocab_and_merges

import regard
from regard.models.table import build_model, model_config
from regard.run.exchange import export_run, import_run
from regard.tasks.language_model_run import LanguageModelRun
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.training.weights import load_weights

transformers = pytest.importorskip("transformers")
EXACT = {"rtol": 0, "atol": 1e-10}
SHAPES: dict[str, dict[str, Any]] = {
    "one head, prime vocabulary": {"n_head": 1, "vocab_size": 307},
    "five heads, odd context": {"n_head": 5, "n_embd": 35, "n_positions": 13},
    "one layer, as many rows as tokens": {"n_layer": 1, "vocab_size": 300},
    "narrow feed-forward": {"n_inner": 7, "n_layer": 3},
    "gelu by erf": {"activation_function": "gelu"},
    "gelu by tanh": {"activation_function": "gelu_pytorch_tanh"},
    "relu": {"activation_function": "relu"},
    "another epsilon": {"layer_norm_epsilon": 0.03},
    "untied": {"tie_word_embeddings": False, "vocab_size": 311},
}


def logits_of(run: LanguageModelRun, ids: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return run.model.double()(ids)[0]  # type: ignore[union-attr]


def some_ids(theirs: Any) -> torch.Tensor:
    config = theirs.config
    draws = torch.Generator().manual_seed(1)
    return torch.randint(config.vocab_size, (3, config.n_positions), generator=draws)


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_imported_logits_equal_hugging_faces_and_come_out_again(changes: dict[str, Any], tmp_path: Path) -> None:
    theirs = write_hf_folder(tmp_path / "theirs", **changes).double()
    run = import_run(tmp_path / "theirs", tmp_path / "run")
    ids = some_ids(theirs)
    expected = theirs(ids).logits.detach()
    torch.testing.assert_close(logits_of(run, ids), expected, **EXACT)
    export_run(regard.load(tmp_path / "run"), tmp_path / "again")
    again = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "again", dtype=torch.float64).eval()
    torch.testing.assert_close(again(ids).logits, expected, **EXACT)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    assert tokenizer.encode(TEXT) == run.tokenizer.encode(TEXT).tolist()
    assert (tokenizer.eos_token_id, again.config.eos_token_id) == (299, 299)


def test_the_four_published_sizes_are_recognised() -> None:
    from regard.weights.gpt2_form import read_config_json

    for size, (n_layer, n_embd, n_head) in {"small": (12, 768, 12), "xl": (48, 1600, 25)}.items():
        found = {"model_type": "gpt2", "n_layer": n_layer, "n_embd": n_embd, "n_head": n_head, "n_inner": None}
        config, n_rows = read_config_json(found, "config.json")
        assert (config.size, config.d_model, n_rows) == (size, None, 50_257)


@pytest.mark.parametrize(
    "form", ["no prefix", "older buffers", "lm_head too", "half", "bfloat16", "shards", "vocab.json"]
)
def test_every_way_a_folder_is_written_gives_the_same_model(form: str, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    theirs = write_hf_folder(folder)
    weights = load_file(folder / "model.safetensors")
    if form == "no prefix":
        weights = {name.removeprefix("transformer."): w for name, w in weights.items()}
        (folder / "config.json").write_text(
            (folder / "config.json").read_text().replace("GPT2LMHeadModel", "GPT2Model")
        )
    elif form == "older buffers":
        weights["transformer.h.0.attn.bias"] = torch.ones(1, 1, 32, 32).tril().bool()
        weights["transformer.h.1.attn.masked_bias"] = torch.tensor(-1e4)
    elif form == "lm_head too":
        weights["lm_head.weight"] = weights["transformer.wte.weight"].clone()
    elif form in ("half", "bfloat16"):
        kind = torch.float16 if form == "half" else torch.bfloat16
        weights = {name: w.to(kind) for name, w in weights.items()}
        theirs.load_state_dict({name: w.float() for name, w in weights.items()}, strict=False)
    elif form == "vocab.json":
        (folder / "tokenizer.json").unlink()
        write_vocab_and_merges(folder)
    if form == "shards":
        (folder / "model.safetensors").unlink()
        theirs.save_pretrained(folder, max_shard_size="5KB")
        assert len(list(folder.glob("model-*.safetensors"))) > 1
    else:
        save_file(weights, folder / "model.safetensors")
    run = import_run(folder, tmp_path / "run")
    assert {w.dtype for w in run.model.parameters()} == {torch.float32}  # type: ignore[union-attr]
    ids = some_ids(theirs)
    torch.testing.assert_close(logits_of(run, ids), theirs.double()(ids).logits, **EXACT)
    assert run.tokenizer.eos == 299


def test_greedy_text_is_that_of_generate_after_an_end_mark(tmp_path: Path) -> None:
    """GPT-2 was trained on documents with end marks between them, so every text of ours begins after one."""
    theirs = write_hf_folder(tmp_path / "theirs", vocab_size=300)
    run = import_run(tmp_path / "theirs", tmp_path / "run")
    prompt = run.tokenizer.encode("The cat").tolist()
    whole = theirs.generate(
        torch.tensor([[299, *prompt]]), attention_mask=torch.ones(1, 1 + len(prompt), dtype=torch.long),
        do_sample=False, max_new_tokens=12, pad_token_id=299,
    )[0, 1:].tolist()  # fmt: skip
    assert run.generate("The cat", temperature=0.0, max_tokens=12) == run.tokenizer.decode(whole)


def test_no_token_beyond_the_tokenizer_is_generated(tmp_path: Path) -> None:
    theirs = hf_model(vocab_size=400)
    with torch.no_grad():
        theirs.transformer.wte.weight[300:] *= 50  # the rows that stand for no token would win nearly always
    theirs.save_pretrained(tmp_path / "theirs")
    write_hf_tokenizer(tmp_path / "theirs")
    run = import_run(tmp_path / "theirs", tmp_path / "run")
    assert run.model.embedding.shape[0] == 400  # type: ignore[union-attr]
    for temperature in (0.0, 1.0):
        text = run.generate("The", temperature=temperature, max_tokens=40)
        assert isinstance(text, str)
    assert run.next_token.vocab_size == 300
    assert run.score("The cat sat").bits_per_byte > 0


@pytest.mark.parametrize("kind", ["bpe", "char", "word"])
def test_a_transformer_of_gpt_2s_form_is_written_with_its_own_tokenizer(kind: str, tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text(TEXT * 30)
    given = {
        "data": {"train": str(tmp_path / "my.txt")},
        "tokenizer": {"kind": kind, "vocab_size": 300},
        "model": {"name": "transformer", "d_model": 12, "n_layers": 2, "n_heads": 3, "max_context": 16},
        "train": {"max_steps": 2, "n_batch": 2, "eval_every": 1},
        "checkpoint": {"has_tensorboard": False},
    }
    run = regard.train(given, out=tmp_path / "run")
    export_run(run, tmp_path / "theirs")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "theirs", dtype=torch.float64).eval()
    ids = torch.randint(run.tokenizer.vocab_size, (2, 16))
    torch.testing.assert_close(theirs(ids).logits, logits_of(run, ids), **EXACT)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    assert tokenizer.encode(TEXT) == run.tokenizer.encode(TEXT).tolist()
    assert tokenizer.eos_token_id == 0
    back = import_run(tmp_path / "theirs", tmp_path / "back")
    assert back.tokenizer.hash == run.tokenizer.hash
    torch.testing.assert_close(logits_of(back, ids), logits_of(run, ids), **EXACT)


def test_a_folder_made_by_hand_from_the_config_alone_loads_there(tmp_path: Path) -> None:
    """config.json has nothing that only our own reader understands."""
    write_hf_folder(tmp_path / "theirs")
    run = import_run(tmp_path / "theirs", tmp_path / "run")
    export_run(run, tmp_path / "again")
    found = json.loads((tmp_path / "again" / "config.json").read_text())
    config = transformers.GPT2Config(**found)
    assert (config.n_embd, config.n_layer, config.n_inner, config.activation_function) == (12, 2, 48, "gelu_new")
    shutil.rmtree(tmp_path / "theirs")
    assert regard.load(tmp_path / "run").generate("The", max_tokens=3)


def test_our_own_presets_take_their_names() -> None:
    """Every parameter of ours has a name there, and the other way round."""
    from regard.weights.gpt2_form import to_their_tensors

    model = build_model("gpt2", model_config("gpt2", {"d_model": 12, "n_layers": 2, "n_heads": 2}), 29)
    theirs = hf_model(vocab_size=29, n_positions=1024, n_head=2)
    named = to_their_tensors(dict(model.named_parameters()))
    expected = {name: tuple(w.shape) for name, w in theirs.named_parameters()}
    assert {name: tuple(w.shape) for name, w in named.items()} == expected
    load_weights(model, {name: w.detach() for name, w in model.named_parameters()})


def test_words_are_written_with_their_unknown_word(tmp_path: Path) -> None:
    words = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["the cat sat\n"])
    words.save(tmp_path / "tokenizer.json")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert theirs.encode("the dog sat\n") == words.encode("the dog sat\n").tolist()
