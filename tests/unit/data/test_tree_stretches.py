"""Files of trees with something broken in them: what is whole is read, and what is broken is told and counted."""

from __future__ import annotations

import random
from collections import Counter
from itertools import chain, islice, repeat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import tree_pairs
from regard.data.reading import BadLine
from regard.data.source import TextFile
from regard.data.tree_pairs import Stretches, read_tree_pairs
from regard.errors import RegardError

FLUSH = "(S\n(NP (DT the) (NN dog{0}))\n(VP (VBZ barks))\n(. .))\n"
PENN = "( (S \n    (NP (DT the) (NN dog{0}) )\n    (VP (VBZ barks) )\n    (. .) ))\n"
SHIFTED = "  (S\n    (NP (DT the) (NN dog{0}))\n    (VP (VBZ barks))\n    (. .))\n"
ONE = "(S (NP (DT the) (NN dog{0})) (VP (VBZ barks)) (. .))\n"
LAYOUTS = {"flush": FLUSH, "penn": PENN, "one a line": ONE, "shifted": SHIFTED}
BAD = b"(NP (NN \xff))\n"


def found_in(tmp_path: Path, text: str | bytes) -> tuple[list[str], dict[str, int], str]:
    """The sentences, how many of what were left out, and the first fault."""
    path = tmp_path / "my.mrg"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    sentences, kinds, faults = [], Counter[str](), []
    for place, sides in read_tree_pairs(TextFile(path, "my.mrg"), "slot"):
        if isinstance(sides, BadLine):
            kinds[sides.kind] += 1
            faults.append(f"{place} {sides.why}")
        else:
            sentences.append(sides[0])
    return sentences, dict(kinds), (faults or [""])[0]


def dogs(*numbers: int) -> list[str]:
    return [f"the dog{number} barks ." for number in numbers]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("gap", ["", "\n"])
def test_whole_trees_are_read_in_every_layout(tmp_path: Path, layout: str, gap: str) -> None:
    text = gap.join(LAYOUTS[layout].format(i) for i in range(40))
    assert found_in(tmp_path, text) == (dogs(*range(40)), {}, "")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_missing", [1, 2])
def test_a_tree_that_is_never_closed_takes_no_other_along_and_is_told_by_its_first_line(
    tmp_path: Path, layout: str, n_missing: int
) -> None:
    trees = [LAYOUTS[layout].format(i) for i in range(6)]
    first = sum(tree.count("\n") for tree in trees[:3]) + 1
    trees[3] = trees[3].rstrip().replace(" ))", "))")[:-n_missing] + "\n"
    sentences, kinds, fault = found_in(tmp_path, "".join(trees))
    assert (sentences, kinds) == (dogs(0, 1, 2, 4, 5), {"broken tree": 1})
    missing = "1 closing bracket is" if n_missing == 1 else "2 closing brackets are"
    assert fault == f"my.mrg, line {first}: this tree is never closed: {missing} missing."


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_bracket_too_many_takes_no_other_tree_along(tmp_path: Path, layout: str) -> None:
    trees = [LAYOUTS[layout].format(i) for i in range(6)]
    trees[3] = trees[3].rstrip() + ")\n"
    assert found_in(tmp_path, "".join(trees))[:2] == (dogs(0, 1, 2, 4, 5), {"broken tree": 1})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_line_that_cannot_be_read_between_trees_costs_nothing_else(tmp_path: Path, layout: str) -> None:
    trees = [LAYOUTS[layout].format(i).encode() for i in range(4)]
    long = b"(NP (NN " + b"a" * 100_001 + b"))\n"
    text = b"".join([trees[0], trees[1], BAD, BAD, trees[2], long, trees[3]])
    sentences, kinds, fault = found_in(tmp_path, text)
    assert (sentences, kinds) == (dogs(0, 1, 2, 3), {"broken UTF-8": 2, "too long": 1})
    n_lines = len(trees[0].splitlines())
    assert fault.startswith(f"my.mrg, line {2 * n_lines + 1} is not UTF-8 text")


@pytest.mark.parametrize("layout", ["flush", "penn", "shifted"])
@pytest.mark.parametrize("at", [0, 2])
def test_a_line_that_cannot_be_read_inside_a_tree_costs_this_tree(tmp_path: Path, layout: str, at: int) -> None:
    trees = [LAYOUTS[layout].format(i).encode() for i in range(4)]
    trees[at] = trees[at].replace(b"barks", b"\xff")
    sentences, kinds, fault = found_in(tmp_path, b"".join(trees))
    assert (sentences, kinds) == (dogs(*({0, 1, 2, 3} - {at})), {"broken UTF-8": 1})
    assert fault.startswith(f"my.mrg, line {4 * at + 3} is not UTF-8 text")


def test_words_outside_of_brackets_cost_no_tree(tmp_path: Path) -> None:
    sentences, kinds, fault = found_in(tmp_path, ONE.format(0) + "dog\n" + ONE.format(1))
    assert (sentences, kinds) == (dogs(0, 1), {"broken tree": 1})
    assert fault == "my.mrg, line 2: 'dog' stands outside of any bracket."


def test_a_tree_of_too_many_characters_is_refused_and_the_next_is_read(tmp_path: Path) -> None:
    text = "(S\n" + 1100 * f" (NP (NN {90 * 'a'}))\n" + ")\n" + ONE.format(0)
    sentences, kinds, fault = found_in(tmp_path, text)
    assert (sentences, kinds) == (dogs(0), {"too long": 1})
    assert fault.startswith("my.mrg, line 1 begins a tree of more than 100,000 characters. Are there closing")


def test_not_all_of_a_file_is_held_to_find_that_a_tree_is_never_closed() -> None:
    endless = chain(["(S (NP (NN b))"], repeat("(NP (NN c))"))
    found = islice(Stretches(endless), 3)
    assert [[(each.number, each.line) for each in stretch] for stretch in found] == [
        [(1, "(S (NP (NN b))")],
        [(2, "(NP (NN c))")],
        [(3, "(NP (NN c))")],
    ]


def test_each_of_many_trees_that_are_never_closed_is_lost_alone(tmp_path: Path) -> None:
    text = "".join(ONE.format(i) if i % 10 else "(S (NP (NN a))\n" for i in range(3_000))
    sentences, kinds, _ = found_in(tmp_path, text)
    assert (len(sentences), kinds) == (2_700, {"broken tree": 300})


def test_lines_are_not_read_again_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_pairs, "FREE_LINES", 500)
    broken = ("(A\n" + 60 * "(X (Y a))\n") * 40
    with pytest.raises(RegardError, match=r"my\.mrg has too many trees that are never closed: to find where .* again"):
        found_in(tmp_path, broken)
    sentences, kinds, _ = found_in(tmp_path, broken[: len(broken) // 40])
    assert (len(sentences), kinds) == (60, {"broken tree": 1})


@pytest.mark.parametrize("line", ["", " (S (NN a))", ")"])
@pytest.mark.parametrize("begins", ["(S (NN a))", "(S (NN a)"])
def test_lines_without_end_are_not_held_at_once(line: str, begins: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_pairs, "MAX_LINE", 500)
    stretches = list(Stretches(chain([begins], repeat(line, 3000))))
    assert max(map(len, stretches)) <= 502


@given(seed=st.integers(0, 10**6), layout=st.sampled_from(sorted(LAYOUTS)), n_lost=st.integers(0, 3))
def test_only_broken_trees_are_lost(
    seed: int, layout: str, n_lost: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    trees, draws = [LAYOUTS[layout].format(i) for i in range(12)], random.Random(seed)
    lost = sorted(draws.sample(range(1, 12), n_lost))
    for i in lost:
        trees[i] = trees[i].rstrip()[:-1] + "\n"
    sentences, kinds, _ = found_in(tmp_path_factory.mktemp("bank"), "".join(trees))
    assert sentences == dogs(*(i for i in range(12) if i not in lost))
    assert sum(kinds.values()) == n_lost
