"""Models of pairs on the command line: train, translate, evaluate, and whatever can be wrong with the input."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_pairs import TEXTS, write_pairs

from regard.api import load
from regard.cli.terminal import MAX_ROWS
from regard.decode.translate import Translator

WORDS = ["tokenizer.kind=word", "tokenizer.vocab_size=null"]
SMALL = ["model.d_model=8", "model.n_layers=1", "model.n_heads=2", "model.max_context=12", "train.max_steps=2"]
NO_SPLIT = ["data.p_valid=0", "data.p_test=0", "checkpoint.has_tensorboard=false"]


def setting(*assignments: str) -> list[str]:
    return [word for assignment in assignments for word in ("--set", assignment)]


def small(*data: object) -> list[object]:
    """A `regard train` of pairs that is over in a moment."""
    named = [word for name in data for word in ("--data", name)]
    return ["train", "--model", "seq2seq", *named, *setting(*WORDS, *SMALL, *NO_SPLIT)]


@pytest.fixture(scope="module")
def pair_run(tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> Path:
    """A run that has learned its 24 pairs by heart."""
    from regard import api

    folder = tmp_path_factory.mktemp("learned")
    data = [str(path) for path in write_pairs(folder)]
    return api.train(
        {
            "data": {"train": data, "p_valid": 0, "p_test": 0},
            "tokenizer": {"kind": "word", "vocab_size": None},
            "model": {
                "name": "seq2seq", "encoder": "gru", "decoder": "transformer", "d_model": 32, "n_layers": 1,
                "p_dropout": 0.0, "max_context": 12, "d_ff": 32,
            },
            "teaching": {"max_tokens": 400, "smoothing": 0.0},
            "train": {"max_steps": 120},
            "optimizer": {"lr": 0.01},
            "checkpoint": {"has_tensorboard": False},
        },
        out=folder / "run",
    ).folder  # fmt: skip


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """Two sources with an empty line between them."""
    path = tmp_path / "lines.en"
    path.write_text(f"{TEXTS[7][0]}\n\n{TEXTS[2][0]}\n", encoding="utf-8")
    return path


@pytest.fixture
def refuses(regard: Callable[..., Any]) -> Callable[..., None]:
    """`refuses("part", ..., words=[...])`: the command ends with code 2 and one sentence that has all parts."""

    def check(*parts: str, words: list[Any]) -> None:
        done = regard(*words)
        assert done.code == 2, done
        assert "Traceback" not in done.err
        sentence = " ".join(done.err.split())
        for part in parts:
            assert part in sentence, sentence

    return check


def test_a_pipe_is_translated_line_by_line_in_a_process_of_its_own(regard_process: Any, pair_run: Path) -> None:
    sources = [TEXTS[7], ("", ""), *TEXTS[::-3], ("  ", "")]
    done = regard_process("translate", pair_run, "--window", 4, stdin="".join(f"{s}\n" for s, _ in sources))
    assert (done.code, done.err) == (0, "")
    assert done.out.split("\n") == [*(target for _, target in sources), ""]


def test_a_file_is_translated_alike_by_one_run_and_by_two(regard: Any, pair_run: Path, lines: Path) -> None:
    expected = f"{TEXTS[7][1]}\n\n{TEXTS[2][1]}\n"
    assert regard("translate", pair_run, lines).out == expected
    assert regard("translate", pair_run, lines, "--with", pair_run, "--beam", 1).out == expected


def test_a_line_is_the_same_with_a_byte_order_mark_compressed_and_piped(
    regard_process: Any, regard: Any, pair_run: Path, lines: Path, tmp_path: Path
) -> None:
    expected = regard("translate", pair_run, lines).out
    (tmp_path / "mark.en").write_bytes(b"\xef\xbb\xbf" + lines.read_bytes())
    assert regard("translate", pair_run, tmp_path / "mark.en").out == expected
    (tmp_path / "lines.en.gz").write_bytes(gzip.compress(lines.read_bytes()))
    assert regard("translate", pair_run, tmp_path / "lines.en.gz").out == expected
    assert regard_process("translate", pair_run, "-", stdin=lines.read_text()).out == expected
    (tmp_path / "said.de").write_bytes(b"\xef\xbb\xbf" + expected.encode())
    (tmp_path / "meant.de").write_text(expected)
    done = regard_process("bleu", "-", "--reference", tmp_path / "said.de", "--json", stdin=expected)
    assert done.out == regard("bleu", tmp_path / "meant.de", "--reference", tmp_path / "meant.de", "--json").out


def test_tabs_in_a_target_break_no_columns(
    regard: Any, pair_run: Path, lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Translator, "_spell", lambda *_: "a\tb")
    assert regard("translate", pair_run, lines).out == "a\tb\n\na\tb\n"
    rows = regard("translate", pair_run, lines, "--n-best", 2).out.splitlines()
    assert [row.split("\t")[1] for row in rows] == ["a\\tb", "a\\tb", "", "a\\tb", "a\\tb"]


def test_more_than_the_search_keeps_is_refused(refuses: Any, pair_run: Path, lines: Path) -> None:
    refuses("--n-best 5 of a search that keeps 2", words=["translate", pair_run, lines, "--beam", 2, "--n-best", 5])


def test_the_best_are_sorted_and_numbered(regard: Any, pair_run: Path, lines: Path) -> None:
    rows = [line.split("\t") for line in regard("translate", pair_run, lines, "--n-best", 3).out.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "1", "2", "3", "3", "3"]
    scores = [float(row[2]) for row in rows]
    assert scores[:3] == sorted(scores[:3], reverse=True)
    assert rows[0][1] == TEXTS[7][1]


def test_json_has_scores_and_alignments(regard: Any, pair_run: Path, lines: Path) -> None:
    done = regard("translate", pair_run, lines, "--json", "--align")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["line"] for row in rows] == [1, 2, 3]
    assert [row["text"] for row in rows] == [TEXTS[7][1], "", TEXTS[2][1]]
    assert rows[1]["alignment"] == ""
    links = [link.split("-") for link in rows[0]["alignment"].split()]
    assert sorted(int(target) for _, target in links) == [0, 1, 2]
    assert all(0 <= int(source) <= 3 for source, _ in links)
    assert rows[0]["log_prob"] <= 0


def test_samples_are_those_of_python_whatever_the_window(regard: Any, pair_run: Path, tmp_path: Path) -> None:
    from regard import api

    sources = [source for source, _ in TEXTS[:6]]
    path = tmp_path / "my.en"
    path.write_text("".join(f"{source}\n" for source in sources), encoding="utf-8")
    hot = ["--sample", "--temperature", 3, "--n-best", 2, "--seed", 4, "--json"]
    found = [json.loads(line) for line in regard("translate", pair_run, path, *hot).out.splitlines()]
    alone = regard("translate", pair_run, path, *hot, "--window", 1)
    assert [json.loads(line)["text"] for line in alone.out.splitlines()] == [row["text"] for row in found]
    assert [row["line"] for row in found] == [i for i in range(1, 7) for _ in range(2)]
    drawn = api.load(pair_run).translate(sources, n_best=2, sampling={"temperature": 3.0, "seed": 4})
    assert [row["text"] for row in found] == [each.text for several in drawn for each in several]
    assert len({row["text"] for row in found}) > 6
    with_twin = regard("translate", pair_run, path, *hot, "--with", pair_run)
    assert [json.loads(line)["text"] for line in with_twin.out.splitlines()] == [row["text"] for row in found]
    cold = regard("translate", pair_run, path, "--sample", "--top-k", 1)
    assert cold.out == regard("translate", pair_run, path, "--beam", 1).out


def test_what_is_of_sampling_alone_is_refused_without_it(refuses: Any, pair_run: Path, lines: Path) -> None:
    words = ["translate", pair_run, lines]
    refuses("--top-k and --seed only apply with --sample", words=[*words, "--top-k", 3, "--seed", 1])
    refuses("--sample draws and --beam searches: leave out one", words=[*words, "--sample", "--beam", 3])
    refuses("top_p must be between 0 and 1, not 2", words=[*words, "--sample", "--top-p", 2])


def test_alignments_stand_behind_a_tab(regard: Any, pair_run: Path, lines: Path) -> None:
    rows = regard("translate", pair_run, lines, "--align").out.split("\n")
    assert rows[0].split("\t")[0] == TEXTS[7][1]
    assert rows[1] == "\t"
    assert len(rows) == 4


def test_a_line_that_is_too_long(regard: Any, refuses: Any, pair_run: Path, tmp_path: Path) -> None:
    """The decoder writes 12 tokens and the encoder, a recurrent one, reads any number of them."""
    path = tmp_path / "long.en"
    path.write_text("the " * 50 + f"\n{TEXTS[7][0]}\n")
    assert regard("translate", pair_run, path, "--align").out.splitlines()[1].split("\t")[0] == TEXTS[7][1]
    pairs = write_pairs(tmp_path, TEXTS[:6])
    assert regard(*small(*pairs), "--out", tmp_path / "run").code == 0
    refuses(
        "Line 1 has 50 tokens; at most 12 can be read",
        "leave it out: --skip-bad",
        words=["translate", tmp_path / "run", path],
    )
    done = regard("translate", tmp_path / "run", path, "--skip-bad", "--align")
    assert (done.code, done.out.splitlines()[0]) == (0, "\t")
    assert len(done.out.splitlines()) == 2
    assert done.err == "regard: left out, each an empty line: 1 too long.\n"


@pytest.mark.parametrize("line", ["the " * 30_000, "x" * 500_000, "the " * 4_100])
def test_a_line_that_never_ends_is_refused_or_left_out(
    regard: Any, refuses: Any, pair_run: Path, tmp_path: Path, line: str
) -> None:
    """The encoder, a recurrent one, would read it, and its decoder write for minutes."""
    path = tmp_path / "endless.en"
    path.write_text(f"\ufeff{TEXTS[7][0]}\n{line}\n{TEXTS[2][0]}\n", encoding="utf-8")
    done = regard("translate", pair_run, path)
    assert (done.code, done.out) == (2, f"{TEXTS[7][1]}\n")
    size = "4100 tokens" if len(line) < 100_000 else "more than 100,000 characters"
    assert done.err.startswith(f"regard: Line 2 has {size}")
    assert "--skip-bad" in done.err
    done = regard("translate", pair_run, path, "--skip-bad")
    assert (done.code, done.out) == (0, f"{TEXTS[7][1]}\n\n{TEXTS[2][1]}\n")
    assert done.err == "regard: left out, each an empty line: 1 too long.\n"


def test_files_of_lines_that_cannot_be_read(refuses: Any, pair_run: Path, lines: Path, tmp_path: Path) -> None:
    refuses("There is no file", f"Did you mean '{lines}'?", words=["translate", pair_run, lines.with_name("line.en")])
    refuses("is a folder, not a file", words=["translate", pair_run, tmp_path])
    (tmp_path / "latin.en").write_bytes(b"the red house\ncaf\xe9\n")
    latin = tmp_path / "latin.en"
    refuses("Line 2 is not UTF-8", "or leave it out: --skip-bad", words=["translate", pair_run, latin])


def test_a_bad_line_loses_nothing_of_those_before_it(regard: Any, pair_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "latin.en"
    path.write_bytes(f"{TEXTS[7][0]}\n{TEXTS[2][0]}\ncaf".encode() + b"\xe9\n" + f"{TEXTS[3][0]}\n".encode())
    done = regard("translate", pair_run, path, "--align", "--json")
    assert done.code == 2
    assert [json.loads(line)["text"] for line in done.out.splitlines()] == [TEXTS[7][1], TEXTS[2][1]]
    assert done.err.startswith("regard: Line 3 is not UTF-8")


def test_lines_that_are_not_utf8_can_be_left_out_and_are_counted(regard: Any, pair_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "latin.en"
    path.write_bytes(f"{TEXTS[7][0]}\ncaf".encode() + b"\xe9\n" + f"{TEXTS[2][0]}\n".encode())
    done = regard("translate", pair_run, path, "--skip-bad")
    assert (done.code, done.out) == (0, f"{TEXTS[7][1]}\n\n{TEXTS[2][1]}\n")
    assert done.err == "regard: left out, each an empty line: 1 not UTF-8.\n"


def test_a_closed_standard_input_is_one_sentence(pair_run: Path) -> None:
    """What a service without an input has, or `<&-` in a shell."""
    command = f"{Path(sys.executable).with_name('regard')} translate {pair_run} <&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "regard: Standard input is closed. Pipe lines in, or name a file of them.\n"


def test_wrong_verbs_and_wrong_tags(refuses: Any, pair_run: Path, lstm_run: Path, lines: Path) -> None:
    refuses("seq2seq that translates", "Use this one with: regard translate", words=["generate", pair_run])
    for verb in ("translate", "parse", "align"):
        files = [lines, lines] if verb == "align" else [lines]
        needed = "parses" if verb == "parse" else "translates"
        message = f"is a run of lstm that predicts the next token of a text, and one that {needed} is needed here"
        refuses(message, words=[verb, lstm_run, *files])
    refuses(
        "does not know the tag <2de>. It was trained with none", words=["translate", pair_run, lines, "--to", "<2de>"]
    )
    refuses("does not know the tag <2de>. It was trained with none", words=["eval", pair_run, "--to", "<2de>"])
    refuses("--to does not apply to", words=["eval", lstm_run, "--to", "<2de>"])
    refuses("There is no run folder", words=["translate", pair_run.with_name("rnu"), lines])


def test_eval_has_bleu_and_chrf(regard: Any, refuses: Any, pair_run: Path, tmp_path: Path) -> None:
    english, german = write_pairs(tmp_path, TEXTS[:8])
    found = json.loads(regard("eval", pair_run, "--data", english, "--data", german, "--json").out)
    assert found["n_pairs"] == 8
    assert found["chrf"]["score"] == 100.0
    shown = regard("eval", pair_run, "--data", english, "--data", german)
    assert "BLEU" in shown.out
    assert "sacreBLEU nrefs:1" in shown.out
    refuses("the test split is empty. Name some: --data", words=["eval", pair_run])
    told: list[tuple[str, int, int | None]] = []
    other = [str(english), str(german)]
    load(pair_run).evaluate(other, progress=lambda *how_far: told.append(how_far))
    assert (told[0], told[-1]) == (("translating", 0, 8), ("translating", 8, 8))


def test_a_dry_run_shows_the_plan_and_writes_nothing(regard: Any, tmp_path: Path) -> None:
    done = regard(*small(*write_pairs(tmp_path)), "--dry-run", "--out", tmp_path / "run")
    assert done.code == 0, done
    for part in ("name: seq2seq", "target_tokenizer: null", "FLOPs a token", "memory, estimated"):
        assert part in done.out, part
    assert not (tmp_path / "run").exists()
    shown = done.out[done.out.index("The first batch, decoded") :]
    assert sum(target in shown for _, target in TEXTS) == MAX_ROWS
    assert f"and {len(TEXTS) - MAX_ROWS} more" in shown  # a batch may hold hundreds of pairs


def test_models_lists_what_can_be_set(regard: Any) -> None:
    done = regard("models", "seq2seq")
    assert done.code == 0
    for part in (
        "teaching.",
        "target_tokenizer.",
        "is_bidirectional",
        "p_bpe_dropout",
        "--data train.en --data train.de",
    ):
        assert part in done.out, part
    assert {"seq2seq", "vaswani"} <= set(regard("models").out.split())


def bad_files(folder: Path, source: bytes, target: bytes) -> tuple[Path, Path]:
    paths = folder / "bad.en", folder / "bad.de"
    for path, side, bad in zip(paths, (0, 1), (source, target), strict=True):
        path.write_bytes(b"".join(f"{pair[side]}\n".encode() for pair in TEXTS[:10]) + bad)
    return paths


BAD: dict[str, tuple[bytes, bytes, list[str], str]] = {
    "files of unequal length": (b"one\n", b"", ["bad.de ends after line 10", "bad.en has 11 lines"], "no partner: 1"),
    "an empty line": (b"\n", b"\n", ["bad.en, line 11 is empty"], "empty side: 1"),
    "an empty side": (b"one\n", b" \n", ["bad.de, line 11 has an empty target"], "empty side: 1"),
    "a line of 100,001 characters": (
        b"x" * 100_001 + b"\n",
        b"eins\n",
        ["line 11 has 100,001 characters"],
        "too long: 1",
    ),
    "broken UTF-8": (b"caf\xe9\n", b"eins\n", ["bad.en, line 11 is not UTF-8", "0xe9"], "broken UTF-8: 1"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_lines_are_refused_or_counted(regard: Any, refuses: Any, fault: str, tmp_path: Path) -> None:
    source, target, parts, counted = BAD[fault]
    words = [*small(*bad_files(tmp_path, source, target)), "--out", tmp_path / "run"]
    refuses(*parts, "--skip-bad (data.skips_bad)", words=words)
    assert not (tmp_path / "run").exists()
    done = regard(*words, "--skip-bad")
    assert done.code == 0, done
    assert f"10 pairs for training, 0 for validation, 0 for test; 1 line left out ({counted})" in done.out


def test_a_line_of_100000_characters_is_left_out_where_the_model_cannot_read_it(regard: Any, tmp_path: Path) -> None:
    done = regard(*small(*bad_files(tmp_path, b"x " * 50_000 + b"\n", b"eins\n")), "--out", tmp_path / "run")
    assert done.code == 0, done
    assert "Left out, since they are longer than the model reads: 1 of 11 training pairs." in done.out


def test_other_faults_of_the_files(refuses: Any, tmp_path: Path) -> None:
    english, german = write_pairs(tmp_path)
    out = ["--out", tmp_path / "run"]
    refuses("my.dd", f"Did you mean '{german}'?", words=[*small(english, tmp_path / "my.dd"), *out])
    (tmp_path / "noise.de").write_bytes(bytes(range(256)) * 9)
    refuses("noise.de", "not text", words=[*small(english, tmp_path / "noise.de"), *out])
    (tmp_path / "empty.de").touch()
    refuses("empty.de", words=[*small(english, tmp_path / "empty.de"), *out])
    refuses("my.en has one column", words=[*small(english), *out])
    refuses("names 3 files of lines", "come in twos", words=[*small(english, german, german), *out])
    assert not (tmp_path / "run").exists()


def test_skip_bad_is_for_pairs(refuses: Any, text: Path, tmp_path: Path) -> None:
    words = ["train", "--model", "lstm", "--data", text, "--out", tmp_path / "run", "--skip-bad"]
    refuses("Unknown key 'data.skips_bad'", words=words)
