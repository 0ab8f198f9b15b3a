from __future__ import annotations

import math
import shutil
import tracemalloc
from pathlib import Path

import pytest
from tiny_training import run_tiny

from regard.errors import RegardError
from regard.training import metrics as metrics_file
from regard.training.checkpoint import checkpoint_folders
from regard.training.metrics import Metrics, Speed, check_metrics, read_metrics


def metrics(folder: Path, step: int = 0, offset: int = 0) -> Metrics:
    return Metrics(folder, step=step, offset=offset, has_tensorboard=False)


def test_a_line_is_what_was_measured_without_what_is_unknown(tmp_path: Path) -> None:
    written = metrics(tmp_path)
    written.write("train", 3, nats_per_token=0.1 + 0.2, bits_per_byte=None, lr=math.inf)
    written.close()
    assert read_metrics(tmp_path) == [{"kind": "train", "step": 3, "nats_per_token": 0.30000000000000004, "lr": None}]


def test_lines_after_the_offset_of_the_checkpoint_are_dropped(tmp_path: Path) -> None:
    first = metrics(tmp_path)
    first.write("train", 1)
    offset = first.sync()
    first.write("train", 2)
    first.close()
    again = metrics(tmp_path, step=1, offset=offset)
    again.write("valid", 2)
    again.close()
    assert [(line["kind"], line["step"]) for line in read_metrics(tmp_path)] == [("train", 1), ("valid", 2)]
    assert [line["step"] for line in read_metrics(tmp_path, "valid")] == [2]


@pytest.mark.parametrize("how", ["garbage", "cut", "a line removed", "zeros"])
def test_a_run_does_not_go_on_with_damaged_measurements(tmp_path: Path, how: str) -> None:
    first = metrics(tmp_path)
    first.write("train", 1)
    first.write("valid", 1, nats_per_token=1.5)
    offset = first.sync()
    first.write("train", 2, lr=0.1)
    first.close()
    path = tmp_path / "metrics.jsonl"
    check_metrics(tmp_path, offset)
    whole = path.read_bytes()
    damaged = {
        "garbage": b"x" * 5 + whole[5:],
        "cut": whole[: offset - 7],
        "a line removed": whole[whole.index(b"\n") + 1 :],
        "zeros": whole[: offset - 7] + b"\0" * 7,
    }
    path.write_bytes(damaged[how])
    with pytest.raises(
        RegardError, match=r"not as it was when the run was saved, in line \d or after it\. Take it from a copy"
    ):
        check_metrics(tmp_path, offset)
    path.write_bytes(whole[:offset] + b"garbage after what was saved\n")  # which is made again
    check_metrics(tmp_path, offset)
    path.unlink()
    check_metrics(tmp_path, offset)


def test_a_line_that_is_cut_short_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"kind": "train", "step": 1}\n{"kind": "tr')
    assert [line["step"] for line in read_metrics(tmp_path)] == [1]
    assert read_metrics(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    "number", ["Infinity", "-Infinity", "NaN", "1e308", "1" + "0" * 400, '"many"', "[]", "true", '{"a": 1}']
)
def test_a_value_that_nothing_measures_is_refused(tmp_path: Path, number: str) -> None:
    (tmp_path / "metrics.jsonl").write_text(f'{{"kind": "valid", "step": 1, "bits_per_byte": {number}}}\n')
    with pytest.raises(RegardError, match=r"metrics\.jsonl, line 1 is no measurement: .* Remove that line, and say so"):
        read_metrics(tmp_path)


@pytest.mark.parametrize("step", ["-1", "1e5", "true", "9223372036854775808", "null"])
def test_a_step_that_is_no_count_is_refused(tmp_path: Path, step: str) -> None:
    (tmp_path / "metrics.jsonl").write_text(f'{{"kind": "valid", "step": {step}}}\n')
    with pytest.raises(RegardError, match="line 1 is no measurement"):
        read_metrics(tmp_path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from inside tensorboard
def test_tensorboard_shows_each_step_once_after_a_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.summary.writer import event_file_writer

    # The ninth and the tenth file of a process: by their names alone, the tenth comes first within one second.
    monkeypatch.setattr(event_file_writer._global_uid, "get", iter((9, 10)).__next__)
    checkpoint = {"has_tensorboard": True, "every_steps": 4, "keep": 3}
    run_tiny(tmp_path, checkpoint=checkpoint)
    for later in checkpoint_folders(tmp_path)[1:]:  # as if killed after step 12 with step 4 as its last checkpoint
        shutil.rmtree(later)
    run_tiny(tmp_path, resume=True, checkpoint=checkpoint)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [e.step for e in events.Scalars("train/nats_per_token")] == [2, 4, 6, 8, 10, 12]
    assert [e.step for e in events.Scalars("valid/bits_per_byte")] == [5, 10, 12]
    losses = [line["nats_per_token"] for line in read_metrics(tmp_path, "train")]
    assert [e.value for e in events.Scalars("train/nats_per_token")] == pytest.approx(losses, rel=1e-6)


def test_the_speed_is_that_of_a_window_of_updates() -> None:
    speed = Speed(window=3)
    assert speed.tokens_per_second is None
    for n_tokens, seconds in ((100, 0.0), (100, 1.0), (100, 1.0), (100, 1e-6), (100, 2.0)):
        speed.count(n_tokens, seconds)
    assert speed.tokens_per_second == 300 / (1.0 + 1e-6 + 2.0)


def test_metrics_are_read_line_by_line_and_only_those_asked_for_are_kept(tmp_path: Path) -> None:
    train = '{"kind": "train", "step": 1, "nats_per_token": 2.5}\n'
    valid = train.replace("train", "valid")
    (tmp_path / "metrics.jsonl").write_text(train * 50_000 + valid)  # 2.5 MB
    tracemalloc.start()
    found = read_metrics(tmp_path, "valid")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [line["kind"] for line in found] == ["valid"]
    assert peak < 500_000


def test_more_measurements_than_a_run_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_file, "MAX_LINES", 2)
    line = '{"kind": "train", "step": 1}\n'
    (tmp_path / "metrics.jsonl").write_text(2 * line)
    assert len(read_metrics(tmp_path)) == 2
    (tmp_path / "metrics.jsonl").write_text(3 * line)
    with pytest.raises(RegardError, match=r"metrics\.jsonl' has more than 2 measurements, .* Leave some lines out"):
        read_metrics(tmp_path)
    assert read_metrics(tmp_path, "valid") == []
    monkeypatch.setattr(metrics_file, "MAX_BYTES", 20)
    with pytest.raises(RegardError, match=r"has a line of more than 20 bytes"):
        read_metrics(tmp_path)


def test_a_backup_of_hard_links_keeps_what_was_measured(tmp_path: Path) -> None:
    first = metrics(tmp_path)
    first.write("train", 1)
    first.close()
    backup = tmp_path / "backup.jsonl"
    backup.hardlink_to(tmp_path / "metrics.jsonl")
    before = backup.read_bytes()
    again = metrics(tmp_path, step=1, offset=0)
    again.write("train", 2)
    again.close()
    assert backup.read_bytes() == before
    assert [line["step"] for line in read_metrics(tmp_path)] == [2]
