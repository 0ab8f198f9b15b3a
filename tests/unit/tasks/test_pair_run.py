"""A run of pairs in its folder: what is kept, told, translated, aligned and refused."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_pairs import TEXTS, tokenizer_of, write_pairs

from regard import api
from regard.cli import terminal
from regard.data.known_sources import remember_sources
from regard.data.pair_grammar import preview_grammar
from regard.decode.config import BeamConfig
from regard.errors import RegardError
from regard.run.engine import load
from regard.tasks import translation
from regard.tasks.language_model_run import LanguageModelRun
from regard.tasks.translation import ForcedTranslation, TranslationRun
from regard.training.progress import Lines, Silent

GIVEN: dict[str, Any] = {
    "tokenizer": {"kind": "word", "vocab_size": None},
    "model": {"name": "seq2seq", "encoder": "gru", "decoder": "gru", "attention": "mlp", "d_model": 16, "n_layers": 1},
    "teaching": {"max_tokens": 200},
    "train": {"max_steps": 3},
    "runtime": {"device": "cpu", "n_threads": 1},
    "checkpoint": {"has_tensorboard": False},
}
LONG = ("the " * 30, "haus " * 30)


class Notes(Silent):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, text: str) -> None:
        self.told.append(text)


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def trained(folder: Path, files: Any = None, reporter: Any = None, **sections: Any) -> TranslationRun:
    folder.mkdir(exist_ok=True)
    train = [str(path) for path in write_pairs(folder)] if files is None else files
    given = {**GIVEN, "data": {"train": train, "p_valid": 0.2, "p_test": 0.2}}
    for name, section in sections.items():
        given[name] = given.get(name, {}) | section
    run = api.train(given, out=folder / "run", reporter=reporter)
    assert isinstance(run, TranslationRun)
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> TranslationRun:
    return trained(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> TranslationRun:
    """Into German and back, one model for both."""
    folder = tmp_path_factory.mktemp("tagged")
    english, german = map(str, write_pairs(folder))
    return trained(folder, [[english, german, "<2de>"], [german, english, "<2en>"]])


def test_trees_are_no_translations_to_score(run: TranslationRun) -> None:
    with pytest.raises(RegardError, match="was trained on translations, and grammar:en-trees:5@test holds trees"):
        run.evaluate("grammar:en-trees:5@test")


def test_pairs_of_the_grammar_are_those_of_the_test_split_unless_their_name_says_so(run: TranslationRun) -> None:
    """A score on what the grammar writes to train on would mean nothing to a run that was trained on it."""
    for name, split, expected in (
        ("grammar:en-de:9", "test", "grammar:en-de:9@test"),
        ("grammar:en-de:9", "valid", "grammar:en-de:9@valid"),
        ("grammar:en-de:9@train", "test", "grammar:en-de:9@train"),
    ):
        pairs, written = run.reader.pairs_of(name, split), preview_grammar(expected, 9)[0]
        assert [(pairs.source_text(i), pairs.target_text(i)) for i in range(len(pairs))] == written.first
        for several in (run.reader.pairs_of([name], split), run.reader.pairs_of([[name]], split)):  # type: ignore[list-item]
            assert [several.source_text(i) for i in range(len(several))] == [source for source, _ in written.first]


def test_a_loaded_run_translates_the_same(run: TranslationRun) -> None:
    again = api.load(run.folder)
    sources = [source for source, _ in TEXTS]
    assert isinstance(again, TranslationRun)
    assert again.translate(sources) == run.translate(sources)
    for a, b in zip(again.translate(sources, n_best=2), run.translate(sources, n_best=2), strict=True):
        assert a == b
    assert repr(again) == f"<TranslationRun {run.folder}: seq2seq, {run.model.n_parameters:,} parameters>"


def test_one_text_gives_one_text_and_a_list_a_list(run: TranslationRun) -> None:
    one = run.translate("the red house sleeps")
    assert isinstance(one, str)
    assert run.translate(["the red house sleeps", ""]) == [one, ""]
    assert len(run.translate("the red house sleeps", n_best=3, beam=3)) == 3
    with pytest.raises(RegardError, match=r"Unknown key .*beem.*Did you mean 'beam'"):
        run.translate("the", beem=3)


def test_the_evaluation_is_that_of_its_pairs(run: TranslationRun, tmp_path: Path) -> None:
    found = run.evaluate(split="valid", beam=BeamConfig(beam=1, max_ratio=3.0))
    pairs = run.reader.pairs_of(split="valid")
    assert (found.n_pairs, found.n_left_out) == (len(pairs), 0)
    assert found.n_tokens == sum(len(pairs.target_text(i).split()) + 1 for i in range(len(pairs)))
    assert found.n_bytes == sum(len(pairs.target_text(i).encode()) for i in range(len(pairs)))
    nats = sum(
        run.force(pairs.source_text(i), pairs.target_text(i)).nats.sum() for i in range(len(pairs))
    )  # fmt: skip
    assert abs(found.nats - nats) < 1e-3
    assert found.perplexity == math.exp(found.nats / found.n_tokens)
    assert found.bits_per_byte == found.nats / math.log(2) / found.n_bytes
    written = write_pairs(tmp_path, [(pairs.source_text(i), pairs.target_text(i)) for i in range(len(pairs))])
    other = run.evaluate([str(path) for path in written], beam=BeamConfig(beam=1, max_ratio=3.0))
    assert other == found
    assert {"bleu", "chrf", "n_left_out"} <= other.to_dict().keys()
    bare = run.evaluate(split="valid", is_translated=False)
    assert (bare.bleu, bare.nats) == (None, found.nats)


def test_test_scores_are_kept_in_the_folder_and_on_the_card(run: TranslationRun) -> None:
    scores = run.test_result()
    assert scores is not None
    assert scores["n_pairs"] == len(run.reader.pairs_of())
    assert scores == run.evaluate().to_dict()
    card = (run.folder / "README.md").read_text()
    for part in ("shared by both sides", f"regard translate {run.folder}", "| chrF | BLEU |", "sacreBLEU nrefs:1"):
        assert part in card, part


def test_pairs_that_are_too_long_are_left_out_told_and_counted(tmp_path: Path) -> None:
    """Training ends, though a pair of every split is longer than the model reads."""
    told = Notes()
    for name, some in (("train", TEXTS[:12]), ("valid", TEXTS[12:18]), ("test", TEXTS[18:])):
        write_pairs(tmp_path, [*some, LONG], name)
    data = {name: [str(tmp_path / f"{name}.{side}") for side in ("en", "de")] for name in ("train", "valid", "test")}
    model = {"encoder": "transformer", "decoder": "transformer", "attention": "scaled-dot", "max_context": 8}
    run = trained(tmp_path, data["train"], told, data=data, model=model | {"n_heads": 2})
    assert "Left out, since they are longer than the model reads: 1 of 13 training pairs." in told.told
    assert "Left out, since they are longer than the model reads: 1 of 7 validation pairs." in told.told
    scores = run.test_result()
    assert scores is not None
    assert (scores["n_pairs"], scores["n_left_out"]) == (6, 1)
    only_long = write_pairs(tmp_path, [LONG], "long")
    with pytest.raises(RegardError, match="Of 1 pairs given, none is short enough for the model, which reads 8 tokens"):
        run.evaluate([str(path) for path in only_long])


def test_a_pair_that_no_batch_has_room_for_is_left_out_with_skip_bad_and_named_without(tmp_path: Path) -> None:
    pairs = [*TEXTS, ("the " * 150, "haus " * 150)]
    files, told = [str(path) for path in write_pairs(tmp_path, pairs, "long")], Notes()
    data = {"train": files, "p_valid": 0.0, "p_test": 0.0}
    with pytest.raises(RegardError, match=r"'the the the.*\.\.\.' to 'haus haus.* has 301 tokens.*--skip-bad"):
        trained(tmp_path / "strict", files, data=data)
    trained(tmp_path / "lenient", files, told, data=data | {"skips_bad": True})
    share = f"1 of {len(pairs)} training pairs"
    assert f"Left out, since a batch holds 200 tokens (teaching.max_tokens) and they have more: {share}." in told.told


def test_pairs_that_are_left_out_by_a_setting_are_told_apart_from_those_that_the_model_cannot_read(
    tmp_path: Path,
) -> None:
    told = Notes()
    (tmp_path / "files").mkdir()
    middle = ("the house the house the", "haus haus")  # 5 tokens: the model reads them, and data.max_length is 4
    files = [str(path) for path in write_pairs(tmp_path / "files", [*TEXTS[:12], middle, middle, LONG])]
    model = {"encoder": "transformer", "decoder": "transformer", "attention": "scaled-dot", "max_context": 8}
    data = {"train": files, "p_valid": 0, "p_test": 0, "max_length": 4}
    trained(tmp_path, files, told, data=data, model=model | {"n_heads": 2})
    left_out = [note for note in told.told if note.startswith("Left out")]
    assert left_out == [
        "Left out, since they are longer than the model reads: 1 of 15 training pairs.",
        "Left out, since a side has more than 4 tokens (data.max_length): 2 of 15 training pairs.",
    ]


def test_a_finished_run_that_is_resumed_has_nothing_to_do(run: TranslationRun) -> None:
    told = Notes()
    before = (run.folder / "model.safetensors").read_bytes()
    api.train(out=run.folder, resume=True, reporter=told)
    assert "Nothing was left to do: the run ended at step 3 (max_steps)." in told.told
    assert (run.folder / "model.safetensors").read_bytes() == before


def test_a_run_that_stops_early_says_why_and_shows_the_score_it_was_judged_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = iter([10.0, 31.24, 5.0, 31.0])
    monkeypatch.setattr(translation, "greedy_bleu", lambda *_: next(scripted))
    out = io.StringIO()
    train = {"max_steps": 50, "eval_every": 1, "patience": 2}
    run = trained(tmp_path, reporter=Lines(out, every_seconds=0.0), train=train, teaching={"select_by": "bleu"})
    assert (
        "Stopped after step 4: no better score in 2 evaluations (train.patience). "
        "The best was at step 2, whose weights are kept.\n"
    ) in out.getvalue()
    assert "best BLEU 31.2" in out.getvalue()
    assert "best valid" not in out.getvalue()
    api.train(out=run.folder, resume=True, reporter=Lines(out))
    assert "Nothing was left to do: the run ended at step 4 (patience)." in out.getvalue()
    assert out.getvalue().count("Stopped after step") == 1


def test_two_vocabularies_are_kept_and_are_not_tied(tmp_path: Path) -> None:
    run = trained(tmp_path / "two", target_tokenizer={"kind": "char"})
    again = load(run.folder)
    assert (again.source_tokenizer.kind, again.target_tokenizer.kind) == ("word", "char")
    assert again.model.source_vocab_size == again.source_tokenizer.vocab_size
    assert again.translate("the red house") == run.translate("the red house")
    # Of the same size, ids would fit and mean other words.
    same_size = {"kind": "word", "vocab_size": 8}
    with pytest.raises(RegardError, match=r"model.tying is all, and source and target have vocabularies of their own"):
        trained(tmp_path / "tied", tokenizer=same_size, target_tokenizer=same_size, model={"tying": "all"})
    assert not (tmp_path / "tied" / "run").exists()


def test_one_vocabulary_that_both_sides_name_is_found_again_without_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer_of("word", None).save(tmp_path / "words.json")
    named = {"kind": "word", "vocab_size": None, "path": str(tmp_path / "words.json")}
    run = trained(tmp_path / "both", tokenizer=named, target_tokenizer=named)
    assert run.facts.target_tokenizer is None
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "another cache"))
    remember_sources(run.config.data.to_dict(), run.facts.data)  # or that cache would not know them
    assert run.evaluate(is_translated=False).n_pairs > 0


def test_a_run_whose_test_pairs_are_all_too_long_ends_with_no_test_score(tmp_path: Path) -> None:
    given = {"encoder": "transformer", "decoder": "transformer", "attention": "scaled-dot", "max_context": 8}
    (tmp_path / "files").mkdir()
    splits = {"train": TEXTS, "valid": TEXTS[:3], "test": [LONG]}
    data = {name: [str(p) for p in write_pairs(tmp_path / "files", pairs, name)] for name, pairs in splits.items()}
    notes = Notes()
    run = trained(tmp_path / "long", reporter=notes, model=given, data=data)
    assert run.test_result() is None
    assert "Not evaluated yet" in (run.folder / "README.md").read_text(encoding="utf-8")
    assert "Left out, since they are longer than the model reads: 1 of 1 test pairs." in notes.told


def test_runs_of_other_vocabularies_do_not_translate_together(run: TranslationRun, tagged: TranslationRun) -> None:
    with pytest.raises(RegardError, match="have different vocabularies of the source: only runs that share them"):
        run.translator(others=[tagged])
    both = run.translator(BeamConfig(max_ratio=3.0), others=[load(run.folder)])
    sentence = both.read("the red house sleeps")
    assert both.translate([sentence])[0][0].text == run.translate("the red house sleeps")


def test_a_run_with_several_tags_has_to_be_told_which(tagged: TranslationRun) -> None:
    assert tagged.reader.tags == ("<2de>", "<2en>")
    german, english = (tagged.translator(tag=tag).read("the").ids[0] for tag in tagged.reader.tags)
    assert german != english
    assert isinstance(tagged.translate("the red house", tag="<2de>"), str)
    with pytest.raises(RegardError, match=r"has to be told which: --to \(or tag\) is one of <2de>, <2en>"):
        tagged.translate("the red house")
    with pytest.raises(RegardError, match=r"does not know the tag <2da>. Did you mean '<2de>'\? It knows <2de>, <2en>"):
        tagged.translate("the red house", tag="<2da>")


def test_what_the_card_says_of_a_run_with_tags_can_be_run(
    tagged: TranslationRun, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = tagged.reader.pairs_of(split="valid")
    source, tag = pairs.source_text(0), pairs.tag(0)
    assert tag in tagged.reader.tags
    card = (tagged.folder / "README.md").read_text()
    assert f"echo '{source}' | regard translate {tagged.folder} --to '{tag}'" in card
    assert f'run.translate("{source}", tag="{tag}")' in card
    assert isinstance(tagged.translate(source, tag=tag), str)
    terminal.print_trained(tagged)
    assert f"--to '{tag}'" in capsys.readouterr().out


def test_pairs_are_evaluated_with_their_own_tags(tagged: TranslationRun, tmp_path: Path) -> None:
    assert tagged.evaluate(split="valid").n_pairs == len(tagged.reader.pairs_of(split="valid"))
    paths = [str(path) for path in write_pairs(tmp_path, TEXTS[:2])]
    assert tagged.reader.pairs_of([*paths, "<2de>"]).source_ids(0)[0] == tagged.source_tokenizer.id_of("<2de>")
    with pytest.raises(RegardError, match="has to be told which"):
        tagged.reader.pairs_of(paths)


def test_one_direction_of_several_is_evaluated_alone(tagged: TranslationRun, tmp_path: Path) -> None:
    both = tagged.evaluate(split="test", is_translated=False)
    german, english = (tagged.evaluate(split="test", tag=tag, is_translated=False) for tag in tagged.reader.tags)
    own = [tagged.reader.pairs_of(split="test").tag(i) for i in range(both.n_pairs)]
    assert (german.n_pairs, english.n_pairs) == (own.count("<2de>"), own.count("<2en>"))
    assert german.nats + english.nats == pytest.approx(both.nats, rel=1e-5)
    paths = [str(path) for path in write_pairs(tmp_path, TEXTS[:3])]
    said, told = (tagged.evaluate(paths, tag="<2de>"), tagged.evaluate([*paths, "<2de>"]))
    assert said == told
    assert said.nats != tagged.evaluate(paths, tag="<2en>").nats
    with pytest.raises(RegardError, match=r"does not know the tag <2da>. Did you mean '<2de>'"):
        tagged.evaluate(paths, tag="<2da>")
    with pytest.raises(RegardError, match=r"no pair that is given has the tag <2en>"):
        tagged.evaluate([*paths, "<2de>"], tag="<2en>")


def test_the_only_tag_of_a_run_need_not_be_said(tmp_path: Path, run: TranslationRun) -> None:
    english, german = map(str, write_pairs(tmp_path))
    one = trained(tmp_path, [english, german, "<2de>"])
    assert one.reader.choose_tag(None) == "<2de>"
    assert one.translate("the red house") == one.translate("the red house", tag="<2de>")
    assert one.reader.pairs_of([english, german]).source_ids(0)[0] == one.source_tokenizer.id_of("<2de>")
    assert run.reader.choose_tag(None) is None
    with pytest.raises(RegardError, match=r"does not know the tag the\. It was trained with none: leave it out"):
        run.translate("house", tag="the")  # a word of the vocabulary is no tag


def test_what_was_looked_at_is_a_distribution_for_every_token(run: TranslationRun) -> None:
    looked = run.force("the red house sleeps", "haus rot schläft")
    assert looked.attention is not None
    assert looked.attention.shape == (4, 4)  # three words and the end, on four words
    np.testing.assert_allclose(looked.attention.sum(axis=1), 1.0, atol=1e-5)
    assert looked.nats.shape == (4,)


def test_words_are_aligned_by_where_the_model_looked(run: TranslationRun, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.0, 1.0, 0.0]])  # the end looks at the second word

    def seen(source: str, target: str, tag: str | None = None) -> ForcedTranslation:
        sentence = run.translator().read(source)
        return ForcedTranslation(sentence, (5, 6), np.zeros(3), weights)

    monkeypatch.setattr(run, "force", seen)
    assert str(run.align("the red house", "haus rot")) == "0-1 2-0"


def test_nothing_is_aligned_with_nothing(run: TranslationRun) -> None:
    assert str(run.align("the red house", "")) == str(run.align("", "haus")) == ""


def test_a_tag_is_no_word_of_an_alignment(tagged: TranslationRun) -> None:
    links = tagged.align("the red house", "haus rot", tag="<2de>")
    assert {t for _, t in links.sure} == {0, 1}
    assert {s for s, _ in links.sure} <= {0, 1, 2}


def test_a_target_that_was_cut_off_at_the_models_limit_can_be_aligned(tmp_path: Path) -> None:
    model = {"encoder": "transformer", "decoder": "transformer", "attention": "scaled-dot", "max_context": 6}
    run = trained(tmp_path, model=model | {"n_heads": 2})
    looked = run.force("the red house", "haus " * 6)
    assert looked.attention is not None
    assert looked.attention.shape == (6, 3)
    assert {t for _, t in run.align("the red house", "haus " * 6).sure} == set(range(6))
    with pytest.raises(RegardError, match="given a target of 8 tokens and reads at most 6"):
        run.force("the red house", "haus " * 7)


def test_a_model_without_attention_aligns_nothing(tmp_path: Path) -> None:
    run = trained(tmp_path, model={"attention": "none"})
    with pytest.raises(RegardError, match=r"has no attention to align words by.*Train one with model.attention mlp"):
        run.align("the red house", "haus rot")


def test_other_verbs_and_other_runs_are_refused_in_one_sentence(run: TranslationRun, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"seq2seq that translates, and one that predicts .*: regard translate "):
        load(run.folder, kind=LanguageModelRun)
    (tmp_path / "my.txt").write_text("a few words of text\n" * 200)
    text = {"train": str(tmp_path / "my.txt"), "p_valid": 0, "p_test": 0}
    api.train({"model": {"name": "ngram"}, "tokenizer": {"kind": "char"}, "data": text}, out=tmp_path / "text")
    with pytest.raises(
        RegardError, match=r"ngram that predicts the next token of a text, and one that translates is n"
    ):
        load(tmp_path / "text", kind=TranslationRun)
    with pytest.raises(RegardError, match="precision must be one of float32, bf16, not 'half'"):
        load(run.folder, precision="half")
    with pytest.raises(RegardError, match="split must be train, valid or test, not 'dev'"):
        run.evaluate(split="dev")


def test_bf16_translates_too(run: TranslationRun) -> None:
    low = load(run.folder, precision="bf16")
    assert low.model.embedding.dtype == torch.bfloat16
    assert isinstance(low.translate("the red house"), str)


def test_every_row_of_a_trace_has_a_name_the_end_too(run: TranslationRun) -> None:
    trace = run.trace("the red house", "das rote haus")
    assert trace.tokens[-1] == "<end>"
    assert all(trace.tokens)
    assert len(trace.inputs) == len(trace.tokens) == len(trace.nats)


def test_what_a_translator_cannot_do_is_said_with_what_it_can(run: TranslationRun) -> None:
    with pytest.raises(RegardError, match=r"a run that translates, and has no 'generate'\. It can translate, score, "):
        run.generate("The")  # type: ignore[attr-defined]
    assert not hasattr(run, "generate")
    with pytest.raises(AttributeError, match="has no 'aligned'; it is called 'align' now"):
        run.aligned  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda run: run.translate(3), "Give one text or a list of them, each a str, not 3"),
        (
            lambda run: run.translate(["the house", 3]),
            r"Give one text or a list of them, each a str, not \['the",
        ),
        (lambda run: run.score("the house", 3), "Give one text or a list of them, each a str, not 3"),
        (lambda run: run.align("the house", None), "The target must be a str, not None"),
        (lambda run: run.trace(3, "das haus"), "The source must be a str, not 3"),
    ],
)
def test_what_is_no_text_is_refused_in_a_sentence(run: TranslationRun, call: Any, told: str) -> None:
    with pytest.raises(RegardError, match=told):
        call(run)


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u00a0"])
def test_a_source_without_text_is_refused_in_a_sentence(run: TranslationRun, text: str) -> None:
    for call in (run.trace, run.force, run.attend_words, run.open_target, run.prediction):
        with pytest.raises(RegardError, match="The source is empty"):
            call(text, "das haus")
    with pytest.raises(RegardError, match="The source is empty"):
        run.trace(text)


def test_held_out_text_is_opened_once(run: TranslationRun, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = load(run.folder)
    text = opened.held_out_text(200)
    monkeypatch.setattr("regard.tasks.base_run.reopen_data", lambda *_, **__: pytest.fail("opened again"))
    assert opened.held_out_text(200) == text
    assert opened.held_out_text(10) == text[:10] != ""


def test_an_evaluation_warns_of_references_that_are_split_into_words(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("the house\n" * 120)
    (tmp_path / "a.de").write_text("das haus .\n" * 120)
    found = trained(tmp_path / "run").evaluate([str(tmp_path / "a.en"), str(tmp_path / "a.de")], beam=1)
    assert any("split into words already" in note for note in found.measure().notes)
