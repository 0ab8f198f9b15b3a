"""Hugging Face folders that are missing something, broken or of another kind: each is refused in one sentence."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_gpt2 import write_hf_folder, write_hf_tokenizer

import regard as package

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "gpt2"
    write_hf_folder(folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return shutil.copytree(whole, tmp_path / "gpt2")


@pytest.fixture
def refused(regard: Callable[..., Any], tmp_path: Path) -> Callable[..., None]:
    """`refused(source, "part", ...)`: neither `import` nor `train --from` takes it, and nothing is written."""

    def check(source: Path, *parts: str) -> None:
        (tmp_path / "some.txt").write_text("the cat sat on the mat\n" * 200)
        for words in (["import", source], ["train", "--from", source, "--data", tmp_path / "some.txt"]):
            done = regard(*words, "--out", tmp_path / "run")
            assert done.code == 2, done
            assert "Traceback" not in done.err
            sentence = " ".join(done.err.split())
            for part in parts:
                assert part in sentence, sentence
            assert not (tmp_path / "run" / "config.yaml").exists()

    return check


def changed(folder: Path, **changes: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def rewritten(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> Path:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors")
    return folder


def test_missing_tensors_are_named(folder: Path, refused: Callable[..., None]) -> None:
    rewritten(folder, lambda w: [w.pop(f"transformer.h.1.{name}.bias") for name in ("ln_1", "mlp.c_fc")])
    refused(
        folder,
        "lacks tensors that its config.json calls for: 'h.1.ln_1.bias', 'h.1.mlp.c_fc.bias'.",
        "Copy the whole folder again, or correct n_layer and tie_word_embeddings there.",
    )


def test_extra_tensors_are_named(folder: Path, refused: Callable[..., None]) -> None:
    rewritten(folder, lambda w: w.update({"transformer.h.2.ln_1.bias": torch.ones(12), "other.weight": torch.ones(2)}))
    refused(folder, "has tensors that a GPT-2 of its config.json has not: 'transformer.h.2.ln_1.bias', 'other.weight'")


def test_a_wrong_shape_is_given_with_the_right_one(folder: Path, refused: Callable[..., None]) -> None:
    rewritten(folder, lambda w: w.update({"transformer.h.0.mlp.c_fc.weight": torch.ones(48, 12)}))
    refused(
        folder,
        "'transformer.h.0.mlp.c_fc.weight'",
        "is (48, 12), and by config.json it must be (12, 48).",
        "Correct the widths in config.json (n_embd, n_inner, n_positions, vocab_size), or copy the weights again.",
    )


def test_numbers_that_are_not_floating_point(folder: Path, refused: Callable[..., None]) -> None:
    rewritten(folder, lambda w: w.update({"transformer.ln_f.bias": torch.ones(12, dtype=torch.int8)}))
    refused(folder, "'transformer.ln_f.bias'", "torch.int8, not floating point", "Save the weights as float32")


def test_a_head_that_is_not_the_embedding_though_tied(folder: Path, refused: Callable[..., None]) -> None:
    rewritten(folder, lambda w: w.update({"lm_head.weight": w["transformer.wte.weight"] + 1}))
    refused(folder, "lm_head.weight", "differs from wte.weight", "Set tie_word_embeddings to false")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("weights.pt", ("torch.load", "weights_only=True", "save_file")),
        ("model.pth", ("torch.load",)),
        ("last.ckpt", ("torch.load",)),
    ],
)
def test_a_pickle_is_refused_with_the_command_that_converts_it(
    folder: Path, refused: Callable[..., None], name: str, parts: tuple[str, ...]
) -> None:
    (folder / "model.safetensors").rename(folder / name)
    sentences = (
        "is a pickle",
        "Regard reads model.safetensors and, without running it, pytorch_model.bin",
        "python -c",
        *parts,
    )
    refused(folder, name, *sentences)
    refused(folder / name, name, *sentences)


class Hostile:
    """What runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_hostile_pytorch_model_bin_is_refused_and_not_run(
    folder: Path, refused: Callable[..., None], is_zip: bool, tmp_path: Path
) -> None:
    (folder / "model.safetensors").unlink()
    file = folder / "pytorch_model.bin"
    torch.save({"wte.weight": Hostile(f"touch {tmp_path / 'run-by-it'}")}, file, _use_new_zipfile_serialization=is_zip)
    refused(folder, "pytorch_model.bin' cannot be read as weights", "asks for 'posix system'")
    assert not (tmp_path / "run-by-it").exists()


def test_gpt2_is_read_from_an_old_pytorch_model_bin(folder: Path, regard: Callable[..., Any], tmp_path: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    assert regard("import", folder, "--out", tmp_path / "from-safetensors").code == 0
    (folder / "model.safetensors").unlink()
    torch.save(
        {name: w.bfloat16() if ".h.0." in name else w for name, w in weights.items()}, folder / "pytorch_model.bin"
    )
    assert regard("import", folder, "--out", tmp_path / "from-pickle").code == 0
    right, found = (load_file(tmp_path / f"from-{name}/model.safetensors") for name in ("safetensors", "pickle"))
    assert right.keys() == found.keys()
    assert all(w.equal(right[n].bfloat16().float() if "layers.0." in n else right[n]) for n, w in found.items())


@pytest.mark.parametrize(
    ("changes", "given"),
    [
        ({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}, "LlamaForCausalLM"),
        ({"model_type": "t5", "architectures": None}, "model_type t5"),
    ],
)
def test_another_family_is_told_which_are_read(
    folder: Path, refused: Callable[..., None], changes: dict[str, Any], given: str
) -> None:
    refused(changed(folder, **changes), given, "It reads the families gpt2, bert, distilbert and roberta (model_type).")


def test_another_head_of_gpt_2_is_told_which_are_read(folder: Path, refused: Callable[..., None]) -> None:
    given = "GPT2DoubleHeadsModel"
    refused(changed(folder, architectures=[given]), given, "Supported are GPT2LMHeadModel, GPT2Model, GPT2For")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("scale_attn_weights", False),
        ("scale_attn_by_inverse_layer_idx", True),
        ("reorder_and_upcast_attn", True),
        ("add_cross_attention", True),
    ],
)
def test_what_is_not_computed_here_is_named(folder: Path, refused: Callable[..., None], key: str, value: bool) -> None:
    refused(changed(folder, **{key: value}), f"sets {key} to {value}", "Regard does not compute")


def test_an_unknown_activation(folder: Path, refused: Callable[..., None]) -> None:
    refused(changed(folder, activation_function="tanh"), "activation 'tanh'", "gelu_new, gelu_pytorch_tanh")


def test_a_config_that_no_model_can_have(folder: Path, refused: Callable[..., None]) -> None:
    refused(changed(folder, n_head=5), "describes no GPT-2 that can be built: n_embd 12 cannot be shared by n_head 5")
    refused(
        changed(folder, n_head=3, n_layer=2, resid_pdrop=0.97),
        """has "resid_pdrop": 0.97, which must be a number from 0 to 0.95.""",
    )


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (
            "activation_function",
            ["x"],
            """has "activation_function": ["x"], which must be a name, such as "gelu_new".""",
        ),
        (
            "architectures",
            "GPT2LMHeadModel",
            """has "architectures": "GPT2LMHeadModel", which must be a list of names""",
        ),
        ("architectures", [3], """has "architectures": [3], which must be a list of names"""),
        ("vocab_size", None, """has "vocab_size": null, which must be a whole number from 1 on. Correct it there."""),
        ("n_layer", "two", """has "n_layer": "two", which must be a whole number from 1 on."""),
        ("n_embd", True, """has "n_embd": true, which must be a whole number from 1 on."""),
        ("n_inner", 0, """has "n_inner": 0, which must be a whole number from 1 on, or null."""),
        ("attn_pdrop", [0.1], """has "attn_pdrop": [0.1], which must be a number from 0 to 0.95."""),
        ("layer_norm_epsilon", "1e-5", """has "layer_norm_epsilon": "1e-5", which must be a number from 0 on."""),
        ("tie_word_embeddings", None, """has "tie_word_embeddings": null, which must be true or false."""),
    ],
)
def test_a_value_of_the_wrong_type_is_named_as_it_is_written(
    folder: Path, refused: Callable[..., None], key: str, value: Any, sentence: str
) -> None:
    refused(changed(folder, **{key: value}), sentence)


def test_three_dropouts_that_differ_are_read_as_one_and_that_is_said(
    regard: Callable[..., Any], folder: Path, text: Path, tmp_path: Path
) -> None:
    same = regard("import", folder, "--out", tmp_path / "same")
    assert "Its dropouts" not in same.out
    changed(folder, resid_pdrop=0.2, attn_pdrop=0.0, embd_pdrop=0.1)
    sentence = (
        "Its dropouts differ: resid_pdrop 0.2, attn_pdrop 0, embd_pdrop 0.1. Regard has one for all three, and reads "
        "0.2 (model.p_dropout); it matters in training alone."
    )
    done = regard("import", folder, "--out", tmp_path / "run")
    assert sentence in " ".join(done.out.split())
    assert sentence in (tmp_path / "run" / "README.md").read_text()
    dry = regard("train", "--from", folder, "--data", text, "--dry-run", "--set", "train.n_context=16")
    assert "Its dropouts differ" in " ".join(dry.out.split())


def test_broken_json(folder: Path, refused: Callable[..., None]) -> None:
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text[: len(text) // 2])
    refused(folder, "config.json is not valid JSON", "cut short")
    (folder / "config.json").unlink()
    refused(folder, "config.json is missing", "Give the folder that a model was saved to")


def test_no_tokenizer(folder: Path, refused: Callable[..., None]) -> None:
    (folder / "tokenizer.json").unlink()
    refused(folder, "has no tokenizer: neither tokenizer.json nor vocab.json with merges.txt")


def test_a_tokenizer_larger_than_the_model(folder: Path, refused: Callable[..., None]) -> None:
    write_hf_tokenizer(folder, n_tokens=310)
    refused(
        folder,
        "has 310 tokens and the model 307 rows",
        "copy the tokenizer and config.json from where the weights came from",
    )


def test_a_folder_that_is_not_there_names_the_nearest(folder: Path, refused: Callable[..., None]) -> None:
    refused(folder.with_name("gtp2"), "There is no folder", f"Did you mean '{folder.with_name('gpt2')}'?")


def test_a_truncated_weights_file(folder: Path, refused: Callable[..., None]) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:2000])
    refused(folder, "model.safetensors (2000 bytes) is no whole safetensors file")


def test_no_weights_and_missing_shards(folder: Path, refused: Callable[..., None]) -> None:
    (folder / "model.safetensors").unlink()
    refused(folder, "has no weights: neither model.safetensors nor pytorch_model.bin, nor an index of shards")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"wte.weight": "model-00001-of-00002.safetensors"}}))
    refused(folder, "lacks model-00001-of-00002.safetensors, which model.safetensors.index.json names")
    index.write_text(json.dumps({"weight_map": {"wte.weight": "../other.safetensors"}}))
    refused(folder, "must have a weight_map from tensors to names of files in the same folder")


def test_a_single_file_of_the_folder(folder: Path, refused: Callable[..., None]) -> None:
    refused(folder / "model.safetensors", "is a file; give the folder that holds config.json")


def test_a_run_is_not_imported_again(regard: Callable[..., Any], lstm_run: Path, tmp_path: Path) -> None:
    done = regard("import", lstm_run, "--out", tmp_path / "run")
    assert done.code == 2
    assert "is a run already" in done.err


def test_exports_that_cannot_be_said_are_refused(
    regard: Callable[..., Any], lstm_run: Path, transformer_run: Path, text: Path, tmp_path: Path
) -> None:
    assert "is a run of lstm. Regard writes gpt2 runs" in regard("export", lstm_run, tmp_path / "out").err
    (tmp_path / "there").mkdir()
    assert "is there already" in regard("export", transformer_run, tmp_path / "there").err
    copy = shutil.copytree(transformer_run, tmp_path / "copy")
    config = (copy / "config.yaml").read_text()
    (copy / "config.yaml").write_text(config.replace("norm: pre", "norm: post"))
    weights = load_file(copy / "model.safetensors")
    save_file({k: w for k, w in weights.items() if "mixer.norm." not in k}, copy / "model.safetensors")
    package.api.check(copy, is_trusted=True)
    done = regard("export", copy, tmp_path / "out")
    assert "model.norm = post, which Hugging Face's GPT-2 cannot say: it has pre alone" in done.err
    assert not (tmp_path / "out").exists()
