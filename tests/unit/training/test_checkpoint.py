from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_training import change_state
from torch import nn

from regard.errors import RegardError
from regard.training.checkpoint import (
    Checkpoint,
    checkpoint_folders,
    clean_run_folder,
    latest_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from regard.training.learner import detach, flatten, unflatten
from regard.training.randomness import random_tensors, restore_random, seed_everything
from regard.training.state import TrainState
from regard.training.weights import load_weights, named_weights, read_tensors, write_weights


def checkpoint(step: int = 3) -> Checkpoint:
    tensors = {"model": {"w": torch.arange(4.0)}, "random": random_tensors()}
    return Checkpoint(TrainState(step=step, seconds=0.1 + 0.2), tensors, [None], {"seed": 1})


def test_what_is_loaded_is_what_was_saved(tmp_path: Path) -> None:
    saved = checkpoint()
    loaded = load_checkpoint(save_checkpoint(tmp_path, saved, keep=1))
    assert loaded.state == saved.state  # seconds are 0.30000000000000004 on both sides
    assert torch.equal(loaded.tensors["model"]["w"], torch.arange(4.0))
    assert loaded.tensors["optimizer"] == {}
    assert (loaded.carried_shape, loaded.started_with) == ([None], {"seed": 1})


def test_only_the_newest_are_kept_and_found(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path) is None
    for step in (1, 2, 10, 9):
        save_checkpoint(tmp_path, checkpoint(step), keep=3)
    assert [f.name for f in checkpoint_folders(tmp_path)] == ["step-00000002", "step-00000009", "step-00000010"]
    assert latest_checkpoint(tmp_path) == tmp_path / "state" / "step-00000010"


def test_one_killed_before_it_removed_the_oldest_removes_it_when_it_goes_on(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, checkpoint(step), keep=3)
    save_checkpoint(tmp_path, checkpoint(3), keep=2)
    assert [f.name for f in checkpoint_folders(tmp_path)] == ["step-00000002", "step-00000003"]


def test_what_a_killed_writer_left_is_no_checkpoint(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, checkpoint(1), keep=1)
    left = tmp_path / "state" / ".partial-step-00000002-9-0123abcd"
    left.mkdir()
    (left / "state.json").write_text("{}")
    assert len(checkpoint_folders(tmp_path)) == 1
    assert clean_run_folder(tmp_path) == [".partial-step-00000002-9-0123abcd"]
    assert not left.exists()


def test_a_truncated_file_is_named_with_both_sizes(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(), keep=1)
    size = (folder / "model.safetensors").stat().st_size
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-3])
    with pytest.raises(RegardError, match=rf"damaged: model.safetensors should have {size} bytes and has {size - 3}"):
        load_checkpoint(folder)


def test_a_missing_file_is_named_and_the_way_out_told(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(), keep=1)
    (folder / "random.safetensors").unlink()
    with pytest.raises(
        RegardError, match=r"random.safetensors should have \d+ bytes and is missing. Delete that folder"
    ):
        load_checkpoint(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}'])
def test_a_broken_state_file_is_told(text: str, tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(), keep=1)
    (folder / "state.json").write_text(text)
    with pytest.raises(RegardError, match=r"damaged: state.json cannot be read"):
        load_checkpoint(folder)


def test_a_state_with_an_unknown_counter_is_told(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(), keep=1)
    with change_state(folder) as written:
        written["state"]["moon"] = 1
    with pytest.raises(RegardError, match=r"state.json does not hold a state"):
        load_checkpoint(folder)


def test_a_state_of_another_version_is_refused(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(), keep=1)
    with change_state(folder) as written:
        written["format"] = 9
    with pytest.raises(RegardError, match="was written in format 9 and this version of Regard reads format 1"):
        load_checkpoint(folder)


def test_every_generator_goes_on_with_the_numbers_it_would_have_drawn(tmp_path: Path) -> None:
    def draw() -> list[float]:
        normal = [random.gauss(0, 1), float(np.random.standard_normal())]  # both keep half a pair for the next call
        return [*torch.rand(3).tolist(), *np.random.rand(3).tolist(), random.random(), *normal]

    seed_everything(5)
    draw()
    write_weights(random_tensors(), tmp_path / "random.safetensors")
    expected = draw()
    seed_everything(6)
    restore_random(read_tensors(tmp_path / "random.safetensors"))
    assert draw() == expected


def test_nested_state_is_taken_apart_and_put_together() -> None:
    tree = ((torch.ones(2), (torch.zeros(1), 3)), None)
    tensors, shape = flatten(tree)
    again = unflatten(tensors, json.loads(json.dumps(shape)))
    assert torch.equal(again[0][0], tree[0][0])
    assert again[0][1][1] == 3
    assert again[1] is None


def test_carried_state_has_memory_of_its_own_as_after_a_resume() -> None:
    whole = torch.arange(24.0, requires_grad=True).reshape(4, 6)
    ((view, number),) = detach(((whole[1:3].t(), 7),))
    assert torch.equal(view, whole[1:3].t())
    assert number == 7
    assert view.is_contiguous()
    assert view.storage_offset() == 0
    assert view.untyped_storage().nbytes() == 12 * 4
    assert not view.requires_grad


class Tied(nn.Module):
    def __init__(self, n: int = 3) -> None:
        super().__init__()
        self.first = nn.Linear(n, n, bias=False)
        self.second = self.first
        self.register_buffer("scale", torch.ones(1))
        self.register_buffer("cache", torch.ones(1), persistent=False)


def test_a_shared_weight_is_saved_once_and_loaded_into_both(tmp_path: Path) -> None:
    model = Tied()
    write_weights(named_weights(model), tmp_path / "w.safetensors")
    tensors = read_tensors(tmp_path / "w.safetensors")
    assert set(tensors) == {"first.weight", "scale"}
    other = Tied()
    load_weights(other, tensors)
    assert torch.equal(other.second.weight, model.first.weight)


def test_weights_that_do_not_fit_are_refused_with_the_name() -> None:
    with pytest.raises(RegardError, match=r"do not fit this model: no 'scale', an unknown 'size'.*another config"):
        load_weights(Tied(), {"first.weight": torch.ones(3, 3), "size": torch.ones(1)})
    with pytest.raises(RegardError, match=r"'first.weight' is \(4, 4\) there and \(3, 3\) here.*config or vocabulary"):
        load_weights(Tied(), named_weights(Tied(4)))


def test_a_broken_weights_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"w.safetensors is missing: the run is incomplete"):
        read_tensors(tmp_path / "w.safetensors")
    (tmp_path / "w.safetensors").write_bytes(b"nonsense")
    with pytest.raises(RegardError, match=r"w.safetensors \(8 bytes\) is no whole safetensors file"):
        read_tensors(tmp_path / "w.safetensors")
