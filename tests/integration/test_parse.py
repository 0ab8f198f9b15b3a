"""Parsing as a user does it: train on trees, `regard parse`, `regard eval`, from the shell and from Python."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_parsing import LINES, TREES

from regard import api
from regard.config import read_yaml
from regard.data.pairs_config import PairsConfig
from regard.data.tree_lines import to_brackets
from regard.data.trees import Tree, parse_trees
from regard.decode.config import BeamConfig
from regard.errors import RegardError
from regard.run.folder import load_config
from regard.tasks.parsing import ParsingRun
from regard.text.config import TokenizerConfig

Regard = Callable[..., Any]
SENTENCES = [" ".join(tree.words) for tree in TREES]
MEMORISING = {
    "tokenizer": {"kind": "word", "vocab_size": None},
    "model": {
        "name": "seq2seq", "encoder": "gru", "decoder": "gru", "attention": "mlp", "d_model": 32, "n_layers": 1,
        "p_dropout": 0.0,
    },
    "teaching": {"smoothing": 0.0, "max_tokens": 400},
    "optimizer": {"lr": 0.02},
    "train": {"max_steps": 80, "eval_every": 80},
    "checkpoint": {"has_tensorboard": False},
}  # fmt: skip


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bank") / "my.mrg"
    path.write_text("\n".join(LINES) + "\n")
    return path


def trained(bank: Path, out: Path, **changes: Any) -> ParsingRun:
    data = {"train": str(bank), "p_valid": 0, "p_test": 0, "tree_words": "tag"}
    run = api.train({**MEMORISING, "data": data, **changes}, out=out)
    assert isinstance(run, ParsingRun)
    return run


@pytest.fixture(scope="module")
def memorised(bank: Path, tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> ParsingRun:
    return trained(bank, tmp_path_factory.mktemp("runs") / "memorised")


@pytest.fixture(scope="module")
def untrained(bank: Path, tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> ParsingRun:
    return trained(bank, tmp_path_factory.mktemp("runs") / "untrained", train={"max_steps": 1})


def test_trees_that_were_memorised_come_back(memorised: ParsingRun) -> None:
    assert memorised.parse(SENTENCES) == TREES
    assert memorised.parse(SENTENCES[0], beam=1) == TREES[0]
    assert memorised.parse(["", SENTENCES[2]]) == [None, TREES[2]]
    assert memorised.parse("  ") is None


def test_a_trace_has_a_row_for_every_token_of_the_tree(memorised: ParsingRun) -> None:
    sentence = SENTENCES[0]
    trace, best = memorised.trace(sentence), next(memorised.predict([sentence]))
    assert trace.nats.sum() == pytest.approx(-best.log_prob, abs=1e-4)
    assert trace.tokens[0].startswith("(")
    assert all(tap.shape[-2] == len(trace.tokens) for tap in trace.named("cross_attention").values())
    other = memorised.trace(sentence, TREES[1])
    assert other.nats.sum() > trace.nats.sum()
    with pytest.raises(RegardError, match="The sentence must be a str, not 3"):
        memorised.trace(3)  # type: ignore[arg-type]


def test_eval_is_what_one_works_out_by_hand(memorised: ParsingRun, tmp_path: Path, regard: Regard) -> None:
    """The gold trees are other ones than those that were memorised.

    Without punctuation the parses have S NP VP, S NP VP NP and S NP VP: 10 brackets, of which 8 are in the gold trees,
    which have S NP, S NP VP and S NP VP: 8. One sentence of three is all right.
    """
    gold = [
        "(S (NP (DT the) (NN dog)) (VBZ barks) (. .))",
        "(S (NP (DT the) (NN cat)) (VP (VBZ sees) (DT the) (NN dog)) (. .))",
        "(S (NP (NNS dogs)) (VP (VBP bark)) (. .))",
    ]
    (tmp_path / "gold.txt").write_text("\n".join(gold) + "\n")
    words = ("eval", memorised.folder, "--data", tmp_path / "gold.txt")
    found = json.loads(regard(*words, "--json").out)
    assert found["n_pairs"] == 3
    assert found["nats_per_token"] > 0
    parses = found["parses"]
    assert (parses["n_matched"], parses["n_gold"], parses["n_predicted"], parses["n_exact"]) == (8, 8, 10, 1)
    assert (parses["precision"], parses["recall"]) == (0.8, 1.0)
    assert parses["f1"] == pytest.approx(16 / 18)
    assert parses["n_ill_formed"] == 0
    said = [line.split() for line in regard(*words, "--beam", 1).out.splitlines()]
    assert ["labelled", "F1", "88.89"] in said
    assert ["sentences", "all", "right,", "%", "33.33"] in said
    free = "Ill-formed without the constraint that makes every parse a tree: 0 of 3."
    assert free.split() in said


def test_eval_leaves_out_broken_trees_where_it_is_told_to(
    memorised: ParsingRun, tmp_path: Path, regard: Regard
) -> None:
    (tmp_path / "gold.mrg").write_text("\n".join([LINES[0], "(S (NP (DT the)", LINES[1]]) + "\n")
    words = ("eval", memorised.folder, "--data", tmp_path / "gold.mrg")
    done = regard(*words)
    assert (done.code, "--skip-bad" in done.err) == (2, True)
    done = regard(*words, "--skip-bad")
    assert (done.code, "1 line left out (" in done.out) == (0, True), done
    found = json.loads(regard(*words, "--skip-bad", "--json").out)
    assert (found["n_pairs"], sum(found["skipped"].values())) == (2, 1)


def test_with_slots_punctuation_is_what_the_gold_trees_call_so(
    bank: Path, tmp_path: Path, own_cache: Path, regard: Regard
) -> None:
    """« and … are punctuation by their tags alone: S, NP and VP are left of the first tree, S and VP of the second.

    So it is with what was prepared before tags were kept.
    """
    gold = "(S (PRN (`` «)) (NP (NNS dogs)) (VP (VBP bark) (PRN (: …))))\n(S (VP (VB go)) (. !))\n"
    (tmp_path / "gold.mrg").write_text(gold)
    data = {"train": str(bank), "test": str(tmp_path / "gold.mrg"), "p_valid": 0}
    run = trained(bank, tmp_path / "run", data=data, train={"max_steps": 1})
    told = json.loads(regard("eval", run.folder, "--data", tmp_path / "gold.mrg", "--json").out)
    assert told["parses"]["n_gold"] == 5
    for file in own_cache.glob("**/word_tags.*"):
        file.unlink()
    assert json.loads(regard("eval", run.folder, "--json").out)["parses"] == told["parses"]


def test_an_untrained_run_writes_no_trees_unless_it_is_held_to(untrained: ParsingRun) -> None:
    score = untrained.evaluate(split="train").parses
    assert score is not None
    assert score.n_ill_formed == len(LINES)
    assert [tree.words for tree in untrained.parse(SENTENCES)] == [tree.words for tree in TREES]


def test_one_tree_a_line_in_order_from_a_pipe(memorised: ParsingRun, regard_process: Regard) -> None:
    done = regard_process("parse", memorised.folder, stdin=f"{SENTENCES[3]}\n\n  \n{SENTENCES[0]}\n( dogs )\n")
    assert (done.code, done.err) == (0, "")
    lines = done.out.split("\n")
    assert lines[:4] == [LINES[3], "", "", LINES[0]]
    assert [tree.words for tree in parse_trees(lines[4:])] == [("-LRB-", "dogs", "-RRB-")]


def test_trees_as_drawings_pictures_and_json(memorised: ParsingRun, tmp_path: Path, regard: Regard) -> None:
    (tmp_path / "in.txt").write_text(f"{SENTENCES[2]}\n\n{SENTENCES[5]}\n")
    drawn = regard(
        "parse", memorised.folder, tmp_path / "in.txt", "--draw", "--svg", tmp_path / "pictures" / "of trees"
    )
    assert drawn.out.splitlines()[:8] == [
        "      S",
        " ┌────┴┬────┐",
        " NP    VP   .",
        " │     │    │",
        "NNS   VBP   │",
        " │     │    │",
        "dogs  bark  .",
        "",
    ]
    pictures = sorted((tmp_path / "pictures" / "of trees").iterdir())
    assert [picture.name for picture in pictures] == ["1.svg", "3.svg"]
    assert all(ET.fromstring(picture.read_text()).tag.endswith("svg") for picture in pictures)
    lines = [
        json.loads(line) for line in regard("parse", memorised.folder, tmp_path / "in.txt", "--json").out.splitlines()
    ]
    assert [(line["line"], line["tree"]) for line in lines] == [(1, LINES[2]), (2, ""), (3, LINES[5])]
    assert -1 < lines[0]["log_prob"] < 0


def test_several_trees_come_with_their_probabilities(memorised: ParsingRun, tmp_path: Path, regard: Regard) -> None:
    (tmp_path / "in.txt").write_text(f"{SENTENCES[2]}\n\n{SENTENCES[5]}\n")
    told = ("parse", memorised.folder, tmp_path / "in.txt", "--n-best", 3)
    rows = [line.split("\t") for line in regard(*told).out.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "1", "", "3", "3", "3"]
    assert rows[0][1] == LINES[2]
    assert len({row[1] for row in rows[:3]}) == 3
    for group in (rows[:3], rows[4:]):
        shares = [float(row[2]) for row in group]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) <= 1.0001
    objects = [json.loads(line) for line in regard(*told, "--json").out.splitlines()]
    assert [line["line"] for line in objects] == [1, 1, 1, 2, 3, 3, 3]
    assert [f"{line['probability']:.3g}" for line in objects[:3]] == [row[2] for row in rows[:3]]
    found = memorised.parse(SENTENCES[2], n_best=3)
    assert [to_brackets(parse.tree) for parse in found] == [row[1] for row in rows[:3]]
    assert memorised.parse(["", SENTENCES[2]], n_best=3) == [(), found]


def test_the_probability_of_a_tree_is_that_of_its_tokens(memorised: ParsingRun) -> None:
    for parse in memorised.parse(SENTENCES[1], n_best=2):
        trace = memorised.trace(SENTENCES[1], parse.tree)
        assert parse.log_prob == pytest.approx(-trace.nats.sum(), abs=1e-4)


@pytest.mark.slow  # 150 updates: what the recipe does, in little
def test_a_parser_that_learned_ambiguous_sentences_gives_both_readings(tmp_path: Path, own_cache: Path) -> None:
    recipe = read_yaml(Path(__file__).parents[2] / "recipes" / "ambiguous.yaml")
    name = "grammar:en-trees/ambiguous"
    little = {
        "data": recipe["data"] | {"train": f"{name}:1500", "valid": f"{name}:20"},
        "model": recipe["model"] | {"d_model": 64},
        "teaching": recipe["teaching"] | {"max_tokens": 1024},
        "train": {"max_steps": 150, "eval_every": 150},
        "checkpoint": {"has_tensorboard": False},
    }
    run = api.train(recipe | little, out=tmp_path / "run", is_tested=False)
    assert isinstance(run, ParsingRun)
    found = run.parse("I saw an elephant in my pajamas .", n_best=3)
    pajamas = "(PP (ADP in) (NP (DET my) (NOUN pajamas)))"
    assert {to_brackets(parse.tree) for parse in found[:2]} == {
        f"(S (NP (PRON I)) (VP (VERB saw) (NP (DET an) (NOUN elephant)) {pajamas}) (PUNCT .))",
        f"(S (NP (PRON I)) (VP (VERB saw) (NP (NP (DET an) (NOUN elephant)) {pajamas})) (PUNCT .))",
    }
    first, second, third = (parse.probability for parse in found)
    assert first < 4 * second  # neither is sure
    assert second > 20 * third  # and there is no third


def test_several_trees_are_drawn_on_a_page_and_as_pictures(
    memorised: ParsingRun, tmp_path: Path, regard: Regard
) -> None:
    (tmp_path / "in.txt").write_text(f"{SENTENCES[2]}\n\n<b>dogs</b> bark .\n")
    done = regard("parse", memorised.folder, tmp_path / "in.txt", "-n", 2, "--draw", "--out", tmp_path / "page",
                  "--svg", tmp_path / "svg")  # fmt: skip
    assert done.code == 0
    assert done.out.startswith("1.1  probability ")
    assert done.out.count("\n1.2  probability ") == 1
    assert f"The trees are drawn in {tmp_path / 'page' / 'report.html'}." in done.err
    assert sorted(path.name for path in (tmp_path / "svg").iterdir()) == ["1-1.svg", "1-2.svg", "3-1.svg", "3-2.svg"]
    page = (tmp_path / "page" / "report.html").read_text()
    assert page.count("<svg") == 4
    assert "4 trees of 2 sentences" in page
    assert "<b>dogs" not in page
    assert "&lt;b&gt;dogs&lt;/b&gt;" in page


def test_more_trees_than_the_beam_keeps_are_refused(memorised: ParsingRun, tmp_path: Path, regard: Regard) -> None:
    (tmp_path / "in.txt").write_text(f"{SENTENCES[2]}\n")
    refused = regard("parse", memorised.folder, tmp_path / "in.txt", "--n-best", 4, "--beam", 2)
    assert refused.code == 2
    assert "--n-best 4 of a search that keeps 2: make --beam 4 at least, or leave it out." in refused.err


def test_drawings_have_a_blank_line_between_them_and_are_no_json(
    memorised: ParsingRun, tmp_path: Path, regard: Regard
) -> None:
    (tmp_path / "in.txt").write_text(f"{SENTENCES[2]}\n{SENTENCES[5]}\n\n{SENTENCES[2]}\n")
    drawn = regard("parse", memorised.folder, tmp_path / "in.txt", "--draw").out.split("\n\n")
    assert [block.rstrip().splitlines()[-1].split() for block in drawn] == [
        ["dogs", "bark", "."],
        ["go", "!"],
        ["dogs", "bark", "."],
    ]
    both = regard("parse", memorised.folder, tmp_path / "in.txt", "--draw", "--json")
    assert both.code == 2
    assert "--draw draws trees for people, --json writes objects for programs. Leave one of them out." in both.err


def test_runs_of_one_vocabulary_parse_together(
    memorised: ParsingRun, untrained: ParsingRun, tmp_path: Path, regard: Regard
) -> None:
    (tmp_path / "in.txt").write_text(f"{SENTENCES[1]}\n")
    both = regard("parse", memorised.folder, tmp_path / "in.txt", "--with", untrained.folder, "--json")
    alone = regard("parse", memorised.folder, tmp_path / "in.txt", "--json")
    (one,), (other,) = (list(parse_trees([json.loads(done.out)["tree"]])) for done in (both, alone))
    assert one.words == other.words == TREES[1].words
    assert json.loads(both.out)["log_prob"] < json.loads(alone.out)["log_prob"]


def test_what_cannot_be_parsed_is_said(memorised: ParsingRun, tmp_path: Path, regard: Regard) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"a b{i}\tc d{i}\n" for i in range(40)))
    short = {**MEMORISING, "train": {"max_steps": 1}, "data": {"train": str(tmp_path / "pairs.tsv")}}
    run = api.train(short, out=tmp_path / "translator", is_tested=False)
    with pytest.raises(RegardError, match=r"translator' is a run of seq2seq that translates, and one that parses is n"):
        api.load(run.folder, kind=ParsingRun)
    refused = regard("parse", tmp_path / "translator")
    assert refused.code == 2
    assert "Use this one with: regard translate" in refused.err
    for verb, files in (("translate", ["words"]), ("align", ["words", "words"]), ("score", ["words", "words"])):
        (tmp_path / "words").write_text("a b\n")
        other = regard(verb, memorised.folder, *(tmp_path / file for file in files))
        assert other.code == 2
        way_out = "with regard eval" if verb == "score" else "that parses, and one that translates is needed here. "
        assert way_out in other.err
    missing = regard("parse", memorised.folder, tmp_path / "none.txt")
    assert (missing.code, missing.err) == (2, f"regard: There is no file '{tmp_path / 'none.txt'}'.\n")


def test_a_folder_for_pictures_that_cannot_be_made_is_one_sentence(
    memorised: ParsingRun, tmp_path: Path, regard: Regard
) -> None:
    (tmp_path / "file").touch()
    refused = regard("parse", memorised.folder, tmp_path / "file", "--svg", tmp_path / "file")
    told = f"regard: The folder '{tmp_path / 'file'}' cannot be made: File exists. Choose another.\n"
    assert (refused.code, refused.err) == (2, told)


def test_the_best_weights_can_be_those_of_the_highest_f1(bank: Path, tmp_path: Path) -> None:
    data = {"train": str(bank), "valid": str(tmp_path / "valid.mrg"), "p_test": 0, "tree_words": "tag"}
    (tmp_path / "valid.mrg").write_text(LINES[0].replace("dog", "cat") + "\n" + LINES[1].replace("cat", "dog") + "\n")
    train = {"max_steps": 30, "eval_every": 10}
    taught = MEMORISING["teaching"] | {"select_by": "f1"}  # type: ignore[operator]
    run = trained(bank, tmp_path / "run", data=data, train=train, teaching=taught)
    metrics = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    scores = [line["f1"] for line in metrics if line["kind"] == "valid"]
    assert len(scores) == 3
    found = run.evaluate(split="valid", beam=BeamConfig(beam=1)).parses
    assert found is not None
    assert 100 * found.brackets.f1 == pytest.approx(max(scores))
    assert max(scores) > 0


def test_the_run_says_how_good_it_is_and_how_to_parse_with_it(bank: Path, tmp_path: Path, regard: Regard) -> None:
    (tmp_path / "test.mrg").write_text("(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (NNS dogs))) (. .))\n")
    recipe = {"data": {"train": str(bank), "test": str(tmp_path / "test.mrg"), "p_valid": 0}}
    (tmp_path / "my.yaml").write_text(json.dumps({**MEMORISING, **recipe, "train": {"max_steps": 2, "eval_every": 2}}))
    done = regard("train", tmp_path / "my.yaml", "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert re.search(r"test score +value.*sentences, target tokens +1, ", done.out, re.DOTALL)
    assert f"| regard parse {tmp_path / 'run'}" in done.out
    card = (tmp_path / "run" / "README.md").read_text()
    assert "| labelled precision | labelled recall | sentences all right, % | labelled F1 |" in card
    assert 'run.parse("' in card
    config = load_config(tmp_path / "run" / "config.yaml")
    assert config.section("data", PairsConfig).tree_words == "slot"
    assert config.section("target_tokenizer", TokenizerConfig).kind == "word"
    run = api.load(tmp_path / "run")
    tree = run.parse("the dog barks .")
    assert isinstance(tree, Tree)
    assert set(tree.tags) == {"XX"}
    assert to_brackets(tree).count("(XX ") == 4
    assert json.loads((tmp_path / "run" / "test.json").read_text())["parses"]["n_gold"] == 4


def test_the_test_score_of_a_run_is_that_of_eval(bank: Path, tmp_path: Path, regard: Regard) -> None:
    (tmp_path / "test.mrg").write_text("\n".join(line.replace("dog", "town") for line in LINES[:4]) + "\n")
    recipe = {"data": {"train": str(bank), "test": str(tmp_path / "test.mrg"), "p_valid": 0}, "train": {"max_steps": 8}}
    (tmp_path / "my.yaml").write_text(json.dumps(MEMORISING | recipe))
    done = regard("train", tmp_path / "my.yaml", "--out", tmp_path / "run")
    assert done.code == 0, done.err
    told = json.loads((tmp_path / "run" / "test.json").read_text())
    assert re.search(rf"labelled F1 +{100 * told['parses']['f1']:.2f}\n", done.out)
    assert told == json.loads(regard("eval", tmp_path / "run", "--json").out)
    greedy = json.loads(regard("eval", tmp_path / "run", "--beam", 1, "--json").out)
    assert told["parses"] != greedy["parses"]  # so the two could be told apart


def test_sentences_are_read_with_the_tag_of_the_trees_they_were_learned_from(
    bank: Path, tmp_path: Path, regard: Regard
) -> None:
    (tmp_path / "other.mrg").write_text("\n".join(line.replace("dog", "frog") for line in LINES) + "\n")
    (tmp_path / "in.txt").write_text(SENTENCES[0] + "\n")
    parts = [[str(bank), "<news>"], [str(tmp_path / "other.mrg"), "<pond>"]]
    for n_parts in (1, 2):
        data = {"train": parts[:n_parts], "p_valid": 0, "p_test": 0}
        run = trained(bank, tmp_path / f"of {n_parts}", data=data, train={"max_steps": 1})
        as_news = run.parser(tag="<news>").all(SENTENCES)
        assert as_news == run.parser().all(SENTENCES, ["<news>"] * len(SENTENCES))
        assert [parse.log_prob for parse in as_news] != [parse.log_prob for parse in run.parser().all(SENTENCES)]
        assert run.parse(SENTENCES, tag="<news>") == [parse.tree for parse in as_news]
        done = regard("parse", run.folder, tmp_path / "in.txt", "--json", *(["--to", "<news>"] if n_parts == 2 else []))
        assert json.loads(done.out)["log_prob"] == pytest.approx(as_news[0].log_prob)
        assert run.evaluate(split="train").n_pairs == n_parts * len(LINES)
    with pytest.raises(RegardError, match=r"has to be told which: --to \(or tag\) is one of <news>, <pond>"):
        run.parse(SENTENCES)
    with pytest.raises(RegardError, match=r"does not know the tag <ponds>\. Did you mean '<pond>'\?"):
        run.parse(SENTENCES, tag="<ponds>")
    assert "regard parse" in (card := (run.folder / "README.md").read_text())
    assert "--to '<news>'" in card


def test_parsing_needs_no_treebank(regard: Regard, tmp_path: Path) -> None:
    """The built-in grammar writes one: train, score and draw, with nothing but commands."""
    out = tmp_path / "trees"
    small = [
        "data.valid=grammar:en-trees:4", "data.test=grammar:en-trees:5", "train.max_steps=2", "model.d_model=16",
        "model.n_layers=1", "checkpoint.has_tensorboard=false",
    ]  # fmt: skip
    settings = [word for each in small for word in ("--set", each)]
    done = regard("train", "--model", "seq2seq", "--data", "grammar:en-trees:30", "--out", out, *settings)
    assert done.code == 0, done.err
    assert "labelled F1" in (out / "README.md").read_text()
    scored = json.loads(regard("eval", out, "--json").out)
    assert scored["n_pairs"] == 5
    assert 0 <= scored["parses"]["f1"] <= 1
    (tmp_path / "one.txt").write_text("The old king sees a dog .\n")
    drawn = regard("parse", out, tmp_path / "one.txt", "--draw")
    assert drawn.code == 0, drawn.err
    assert "king" in drawn.out
    other = regard("eval", out, "--data", "grammar:en-de:5@test")
    assert other.code == 2
    assert "format is trees, and grammar:en-de:5@test names no trees" in other.err


def test_a_parser_is_looked_into_by_the_tree_that_it_writes(untrained: ParsingRun) -> None:
    look = api.look(untrained, "the dog barks .", views=["surprise", "attention", "alignment", "influence"])
    panel = look.panels[0]
    assert set(look.views) >= {"surprise", "alignment", "influence"}
    assert panel.text == untrained.write_tree(untrained.parse("the dog barks ."))
    shown = [panel.text[a:b] for a, b in (span for span in panel.spans if span is not None)]
    assert shown == panel.text.split()  # every bracket is coloured
    for stack in look.views["attention"].data["stacks"] if "attention" in look.views else ():
        assert all(head["share"] > 0 for row in stack["layers"] for head in row)
    with pytest.raises(RegardError, match="says no next word"):
        api.predict_next(untrained, "the dog barks .")
