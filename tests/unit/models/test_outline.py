"""Models without numbers, and what is counted of them."""

from __future__ import annotations

from typing import Any

import pytest

from regard.models.outline import count_non_embedding, outline_model
from regard.models.table import build_model, model_config

V, D = 13, 8


@pytest.mark.parametrize(
    ("name", "changes", "tables"),
    [
        ("bag", {}, V * D + V),  # one matrix for both ways, and the output's bias
        ("bag", {"tie_embeddings": False}, 2 * V * D + V),
        ("lstm", {"n_layers": 1}, V * D + V),
        ("pointer", {"n_vocab": 9}, 9 * D + 9),
        ("transformer", {"max_context": 5}, V * D + 5 * D),
        ("transformer", {"positions": "sinusoidal"}, V * D),
        ("transformer", {"positions": "sinusoidal", "tie_embeddings": False}, 2 * V * D),
    ],
)
def test_embeddings_outputs_and_positions_are_no_part_of_the_count(
    name: str, changes: dict[str, Any], tables: int
) -> None:
    outline = outline_model(name, model_config(name, {"d_model": D} | changes), V)
    assert count_non_embedding(outline) == outline.n_parameters - tables


@pytest.mark.parametrize(("tying", "tables"), [("none", V * D + 2 * V * D), ("target", V * D + V * D), ("all", V * D)])
def test_embeddings_that_are_shared_are_left_out_once(tying: str, tables: int) -> None:
    settings = {"d_model": D, "n_heads": 2, "tying": tying, "positions": "sinusoidal"}
    outline = outline_model("seq2seq", model_config("seq2seq", settings), V, V)
    assert count_non_embedding(outline) == outline.n_parameters - tables


def test_rows_and_columns_of_a_picture_are_positions() -> None:
    settings = {"d_model": D, "n_heads": 2, "encoder": "patches", "patch": 8, "decoder": "lstm"}
    outline = outline_model("captioner", model_config("captioner", settings), V, 32)
    assert count_non_embedding(outline) == outline.n_parameters - (V * D + V) - 2 * 4 * D


def test_an_outline_counts_what_the_model_counts() -> None:
    config = model_config("attention", {"d_model": D, "n_heads": 2})
    assert count_non_embedding(outline_model("attention", config, V)) == count_non_embedding(
        build_model("attention", config, V)
    )
