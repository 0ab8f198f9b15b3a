"""The study of zero-shot translation: who learns from what, what is said of it, and the study at a tiny size."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.data.pairs_config import PairsConfig
from regard.errors import RegardError
from regard.studies.config import ZeroShotConfig
from regard.studies.fits import Spread
from regard.studies.table import study_config
from regard.studies.three_languages import count_lines, list_tagged_files, read_texts, taught_directions, write_parts
from regard.studies.trainer import Trainer, Training
from regard.studies.zero_shot import Way, intervals, translate_texts, zero_shot_sentence

LANGUAGES = ("en", "de", "fr")
DIRECTIONS = taught_directions(LANGUAGES)


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


NUMBERS = {
    "en": ["one", "two", "three", "four", "five", "six"],
    "de": ["eins", "zwei", "drei", "vier", "fünf", "sechs"],
    "fr": ["un", "deux", "trois", "quatre", "cinq", "six"],
}


def write_numbers(folder: Path, n: int = 36, train: str = "train") -> Path:
    """Two numbers a line: line i says the same in each language."""
    folder.mkdir(exist_ok=True)
    for language, words in NUMBERS.items():
        lines = [f"{words[i // 6 % 6]} {words[i % 6]}\n" for i in range(n)]
        (folder / f"{train}.{language}").write_text("".join(lines), encoding="utf-8")
        for split in ("valid", "test"):
            (folder / f"{split}.{language}").write_text("".join(lines[:6]), encoding="utf-8")
    return folder


# Who learns from what


def lines_of(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def test_no_sentence_is_in_two_pairs_of_languages_and_lines_stay_aligned(tmp_path: Path) -> None:
    data = write_numbers(tmp_path / "data")
    (tmp_path / "parts").mkdir()
    n_of = write_parts(data, tmp_path / "parts", ZeroShotConfig(data=str(data), n_pairs=None))
    assert n_of == {"train": 12, "valid": 6}
    parts = list_tagged_files(tmp_path / "parts", "train", (*DIRECTIONS, ("en", "fr")))
    assert [part[2] for part in parts] == ["<2de>", "<2en>", "<2fr>", "<2de>", "<2fr>"]
    whole = read_texts(data, "train", LANGUAGES, 36)
    for (x, y), (source, target, _), start in zip((*DIRECTIONS, ("en", "fr")), parts, (0, 0, 12, 12, 24), strict=True):
        assert lines_of(source) == whole[x][start : start + 12]
        assert lines_of(target) == whole[y][start : start + 12]


def test_a_carriage_return_within_a_sentence_ends_no_line(tmp_path: Path) -> None:
    """Found in collections of the web: were it an end, all lines after it would stand beside the wrong ones."""
    data = write_numbers(tmp_path / "data")
    lines = (data / "train.en").read_bytes().split(b"\n")
    lines[1] = b"one\rtwo"
    (data / "train.en").write_bytes(b"\n".join(lines))
    (tmp_path / "parts").mkdir()
    write_parts(data, tmp_path / "parts", ZeroShotConfig(data=str(data), n_pairs=None))
    source, target, _ = list_tagged_files(tmp_path / "parts", "train", DIRECTIONS)[0]
    assert [len(Path(path).read_bytes().split(b"\n")) for path in (source, target)] == [13, 13]
    assert Path(source).read_bytes().split(b"\n")[2] == b"one three"
    assert read_texts(data, "train", LANGUAGES, 3)["en"] == ["one one", "one\rtwo", "one three"]


def test_what_is_longer_than_a_model_reads_is_not_translated_and_ends_nothing(tmp_path: Path) -> None:
    data = write_numbers(tmp_path / "data")
    (tmp_path / "parts").mkdir()
    config = ZeroShotConfig(data=str(data), n_pairs=None)
    write_parts(data, tmp_path / "parts", config)
    given = {
        "data": {split: list_tagged_files(tmp_path / "parts", split, DIRECTIONS) for split in ("train", "valid")},
        "tokenizer": {"kind": "word", "vocab_size": None},
        "model": {"name": "seq2seq", "d_model": 8, "n_heads": 2, "n_layers": 1, "max_context": 5},
        "teaching": {"max_tokens": 100},
        "runtime": {"device": "cpu", "n_threads": 1},
    }
    run = Trainer(lambda *_: None).train(Training(tmp_path / "run", given, 2, 0, ""))
    assert isinstance(run, regard.TranslationRun)
    short = "one two three four"
    found = translate_texts(config, run, [f"{short} five", short], "de")
    assert found == ["", run.translate(short, tag="<2de>", beam=1, max_ratio=2.0)]


def test_sentences_are_shared_where_that_is_asked_for(tmp_path: Path) -> None:
    data = write_numbers(tmp_path / "data")
    (tmp_path / "parts").mkdir()
    config = ZeroShotConfig(data=str(data), n_pairs=20, shares_sentences=True)
    assert write_parts(data, tmp_path / "parts", config)["train"] == 20
    for source, target, _ in list_tagged_files(tmp_path / "parts", "train", DIRECTIONS):
        assert len(lines_of(source)) == len(lines_of(target)) == 20
        assert lines_of(source)[0].split()[0] in ("one", "eins", "un")


def test_validation_sentences_are_the_same_for_all(tmp_path: Path) -> None:
    data = write_numbers(tmp_path / "data")
    (tmp_path / "parts").mkdir()
    write_parts(data, tmp_path / "parts", ZeroShotConfig(data=str(data), n_pairs=None))
    for (x, _), (source, _, _) in zip(
        DIRECTIONS, list_tagged_files(tmp_path / "parts", "valid", DIRECTIONS), strict=True
    ):
        assert lines_of(source) == read_texts(data, "valid", LANGUAGES, 6)[x]


def test_the_parts_are_what_a_recipe_takes(tmp_path: Path) -> None:
    train = tuple(tuple(part) for part in list_tagged_files(tmp_path, "train", DIRECTIONS))
    found = PairsConfig(train=train).parts("train")
    assert [(part.form, part.tag) for part in found] == [
        ("files", "<2de>"), ("files", "<2en>"), ("files", "<2fr>"), ("files", "<2de>"),
    ]  # fmt: skip
    assert found[0].names == found[1].names[::-1]


def test_too_few_sentences_missing_files_and_files_that_are_not_aligned_are_told(tmp_path: Path) -> None:
    data = write_numbers(tmp_path / "data")
    few = "has 36 sentences to learn from, and 60 are needed, different ones for each two languages. Set n_pairs to 12"
    with pytest.raises(RegardError, match=re.escape(few)):
        write_parts(data, tmp_path, ZeroShotConfig(data=str(data), n_pairs=20))
    few = "has 36 sentences to learn from, and 40 are needed. Set n_pairs to 36 or less."
    with pytest.raises(RegardError, match=re.escape(few)):
        write_parts(data, tmp_path, ZeroShotConfig(data=str(data), n_pairs=40, shares_sentences=True))
    with pytest.raises(RegardError, match=r"no file '.*tran\.en'\. Did you mean '.*/train\.en'\?.*--set splits="):
        count_lines(data, "tran", LANGUAGES)
    with pytest.raises(RegardError, match=r"There is no file '.*nowhere/train\.en'"):
        count_lines(tmp_path / "nowhere", "train", LANGUAGES)
    (data / "train.fr").write_text("un\n")
    aligned = "are not aligned: en has 36 lines, de has 36 lines, fr has 1 lines. Line i of all must be one sentence."
    with pytest.raises(RegardError, match=re.escape(aligned)):
        count_lines(data, "train", LANGUAGES)


# What is said


@pytest.mark.parametrize(
    ("languages", "said"),
    [
        ({"de": 0.75, "fr": 0.25}, "75% of it in the wrong language"),
        ({"fr": 1.0}, "all of it in the right language"),
        ({"fr": 0.996}, "0.4% of it in the wrong language"),  # the rest is empty: in no language
        ({"en": 0.995, "fr": 0.005}, "99.5% of it in the wrong language"),
    ],
)
def test_the_sentence_says_what_the_numbers_say(languages: dict[str, float], said: str) -> None:
    scores = {"zero-shot": Spread(3.21, 2.0, 4.5), "pivot": Spread(20.04, 19.0, 21.0), "supervised": Spread(30.0)}
    assert zero_shot_sentence(LANGUAGES, scores, [1 - languages["fr"]]) == (
        "Trained once (95% intervals over sentences in brackets): from en to fr, of which it saw no pair, the model "
        f"reaches BLEU 3.2 (2.0 to 4.5) with {said}; by way of de it reaches 20.0 (19.0 to 21.0), and a model that was "
        "taught en to fr 30.0."
    )
    assert zero_shot_sentence(LANGUAGES, scores, [0.0, 0.0]).startswith("Over 2 seeds (95% intervals in brackets): ")


def test_the_interval_holds_the_score_and_is_a_point_where_every_text_is_right() -> None:
    references = ["a b c d e", "f g h i j", "k l m n o"]
    texts = {"zero-shot": ["q", "r", "s"], "pivot": ["a b c d e", "f g h i x", "y z"], "supervised": references}
    found = intervals({name: Way(name, 1, tuple(given), 0.0, {}) for name, given in texts.items()}, references)
    assert found["supervised"] == pytest.approx((100.0, 100.0))
    assert found["zero-shot"][1] < 1
    assert found["pivot"][0] < 50 < found["pivot"][1]  # from three times the worst text to three times the best


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"languages": ["en", "de", "en"]}, "languages names en twice"),
        ({"languages": ["en", "de", "c s"], "data": "x"}, "languages must be short names of letters, such as en"),
        ({"languages": ["en", "de", "cs"]}, "The built-in grammar writes en, de and fr, not en, de, cs. Name a folder"),
        ({"n_pairs": None}, "n_pairs is null, and the built-in grammar has no end"),
        ({"splits": ["train", "val", "test"]}, "splits names files of a folder, and none is given"),
        ({"d_model": 9}, "d_model must be even"),
    ],
)
def test_settings_that_mean_nothing_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(RegardError, match=re.escape(said)):
        study_config("zero-shot", given)


# The study, at a tiny size

SMALL = ["n_steps=2", "d_model=8", "n_test=2"]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that learned nothing never end a text by themselves."""
    monkeypatch.setattr("regard.studies.zero_shot.MAX_RATIO", 0.1)


@pytest.mark.usefixtures("short")
def test_the_study_on_the_grammar_writes_its_page(tmp_path: Path) -> None:
    found = regard.study("zero-shot", settings=[*SMALL, "n_pairs=20", "n_points=2", "n_seeds=2"], out=tmp_path / "z")
    ways = found.numbers["ways"]
    each = [("zero-shot", 1), ("pivot", 1), ("zero-shot", 2), ("pivot", 2), ("supervised", 1), ("supervised", 2)]
    assert [(w["seed"], w["way"], w["step"]) for w in ways] == [(seed, *w) for seed in (0, 1) for w in each]
    assert found.sentence.startswith("Over 2 seeds (95% intervals in brackets): from en to fr")
    assert all(sum(w["languages"].values()) <= 1 + 1e-9 for w in ways)
    assert [len(found.numbers["texts"][name]) for name in ("zero-shot", "pivot", "supervised")] == [2, 2, 2]
    page = (tmp_path / "z" / "report.html").read_text()
    assert found.sentence in page
    assert "In the wrong language" in page


@pytest.mark.usefixtures("short")
def test_only_the_supervised_model_is_taught_the_pair_that_is_asked_for_and_a_recipe_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught: dict[str, Any] = {}

    def noted(trainer: Trainer, training: Training) -> Any:
        taught[training.folder.name.removesuffix("-0")] = training.given["data"]
        return train(trainer, training)

    train = Trainer.train
    monkeypatch.setattr(Trainer, "train", noted)
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        "seed: 7\ntokenizer: {kind: word, vocab_size: null}\ntrain: {max_steps: 1}\n"
        "model: {name: seq2seq, d_model: 8, n_layers: 1, n_heads: 2, d_ff: 8}\n"
    )
    data = write_numbers(tmp_path / "data", train="learn")
    own = [f"data={data}", f"recipe={recipe}", "splits=[learn, valid, test]", "languages=[fr, en, de]"]
    found = regard.study("zero-shot", settings=[*SMALL, "n_pairs=12", "n_points=1", *own], out=tmp_path / "z")
    for split in ("train", "valid"):
        ends = {
            name: {tuple(Path(file).suffix for file in part[:2]) for part in given[split]}
            for name, given in taught.items()
        }
        assert ends["zero-shot"] == {(".fr", ".en"), (".en", ".fr"), (".en", ".de"), (".de", ".en")}
        assert ends["supervised"] - ends["zero-shot"] == {(".fr", ".de")}
    rows = [(t["model"], t["from"], t["to"]) for t in found.numbers["taught"]]
    assert ("supervised", "fr", "de") in rows
    assert ("zero-shot", "fr", "de") not in rows
    method = dict(found.finding.method)
    assert method["Models"].startswith(f"as `{recipe}` says; 2 updates each")  # and not the recipe's
    assert method["Texts"] == f"'{data}': 12 sentences for each two languages, others for each"
    assert found.finding.question == "Can a model translate fr to de if it never saw such a pair?"
    assert {w["step"] for w in found.numbers["ways"]} == {2}


def test_it_takes_no_runs(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"takes no --run; gradients, .*layers, transfer and faithfulness do"):
        regard.study("zero-shot", runs=tmp_path, out=tmp_path / "z")


def test_four_list_tagged_files_train_end_to_end_and_translate_both_ways(tmp_path: Path) -> None:
    data = write_numbers(tmp_path / "data")
    (tmp_path / "parts").mkdir()
    write_parts(data, tmp_path / "parts", ZeroShotConfig(data=str(data), n_pairs=None, shares_sentences=True))
    parts = list_tagged_files(tmp_path / "parts", "train", DIRECTIONS)
    recipe = tmp_path / "many.yaml"
    lines = "".join(f"    - [{source}, {target}, {tag}]\n" for source, target, tag in parts)
    recipe.write_text(
        f"data:\n  p_valid: 0.0\n  p_test: 0.0\n  train:\n{lines}"
        "tokenizer: {kind: word, vocab_size: null}\n"
        "model: {name: seq2seq, encoder: gru, decoder: gru, attention: mlp, d_model: 32, n_layers: 1, p_dropout: 0.0}\n"
        "teaching: {smoothing: 0.0, max_tokens: 512}\noptimizer: {lr: 0.01}\n"
        "train: {max_steps: 120}\ncheckpoint: {has_tensorboard: false}\n"
    )
    run = regard.train(recipe, out=tmp_path / "run")
    for x, y in DIRECTIONS:
        texts = read_texts(data, "train", LANGUAGES, 36)
        assert run.translate(texts[x][:12], tag=f"<2{y}>") == texts[y][:12]
