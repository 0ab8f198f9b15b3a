"""torch.compile, in a process of its own: the tests' shape checks cannot be compiled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_training import lasting_metrics

SCRIPT = Path(__file__).parents[1] / "tiny_training.py"


def trained(folder: Path, model: str, backend: str) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """What the plain model and the compiled one measured, one after the other in one process."""
    jobs = [
        {"folder": str(folder / name), "model": model, "sections": {"runtime": {"is_compiled": used is not None}},
         "backend": used}
        for name, used in (("plain", None), ("compiled", backend))
    ]  # fmt: skip
    subprocess.run([sys.executable, SCRIPT, json.dumps(jobs)], check=True, capture_output=True, timeout=300)
    return lasting_metrics(folder / "plain"), lasting_metrics(folder / "compiled")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "backend"),
    [
        ("transformer", "inductor"),
        ("lstm", "inductor"),
        # Making code takes up to a minute; of these it is tested that they can be traced, and that the trace is right.
        ("rnn-attention", "eager"),
        ("pointer", "eager"),
        ("convolution", "eager"),
        ("restricted", "eager"),
    ],
)
def test_a_compiled_model_learns_what_the_plain_one_learns(model: str, backend: str, tmp_path: Path) -> None:
    plain, compiled = trained(tmp_path, model, backend)
    assert len(plain) == len(compiled) == 9
    for a, b in zip(plain, compiled, strict=True):
        assert a["nats_per_token"] == pytest.approx(b["nats_per_token"], abs=1e-4)
