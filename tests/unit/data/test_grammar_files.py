"""The files say of each sentence, line by line, what the grammar knows."""

import csv
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard.cli import app
from regard.data.builtin.grammar import Grammar
from regard.data.builtin.grammar.corpus_files import FILES, PARTS, CorpusPlan, write_corpus
from regard.errors import RegardError

N_OF = {"train": 40, "valid": 7, "test": 6}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grammar") / "corpus"
    write_corpus(folder, CorpusPlan(N_OF, seed=3, n_pixels=16))
    return folder


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("split", N_OF)
def test_every_file_has_a_line_for_every_sentence(corpus: Path, split: str) -> None:
    known = list(Grammar(3).sentences(split, N_OF[split]))
    for language in ("en", "de", "fr"):
        assert lines(corpus / f"{split}.{language}") == [s.text(language) for s in known]
        assert [tuple(line.split()) for line in lines(corpus / f"{split}.tok.{language}")] == [
            s.words(language) for s in known
        ]
        assert lines(corpus / f"{split}.{language}.mrg") == [s.trees[language] for s in known]
        for ending, tags in (("pos", "tags"), ("ner", "entities")):
            blocks = (corpus / f"{split}.{language}.{ending}").read_text(encoding="utf-8").strip().split("\n\n")
            rows = [[tuple(line.split("\t")) for line in block.splitlines()] for block in blocks]
            assert rows == [list(zip(s.words(language), getattr(s, tags)[language], strict=True)) for s in known]
    read = [
        [tuple(map(int, link.split("-"))) for link in line.split()] for line in lines(corpus / f"{split}.de-fr.align")
    ]
    assert read == [list(s.alignments["de", "fr"]) for s in known]
    for language in ("en", "de", "fr"):
        rows = [tuple(line.split("\t")) for line in lines(corpus / f"{split}.{language}.sentiment.tsv")]
        assert rows == [(s.text(language), s.sentiment) for s in known]


def test_answers_stand_where_the_questions_file_says(corpus: Path) -> None:
    content = json.loads((corpus / "train.questions.json").read_text(encoding="utf-8"))
    paragraphs = content["data"][0]["paragraphs"]
    known = [s for s in Grammar(3).sentences("train", 40) if s.question is not None]
    assert len(paragraphs) == len(known) > 20
    for paragraph, sentence in zip(paragraphs, known, strict=True):
        (answer,) = paragraph["qas"][0]["answers"]
        start = answer["answer_start"]
        assert paragraph["context"][start : start + len(answer["text"])] == answer["text"]
        assert answer["text"].replace("'s", " 's").split() == list(sentence.en[slice(*sentence.answer)])


def test_each_scene_has_a_picture_and_captions(corpus: Path) -> None:
    with open(corpus / "scenes" / "captions.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert {row["file"] for row in rows} == {path.name for path in (corpus / "scenes").glob("*.png")}
    assert len(rows) > 3
    for row in rows:
        index = int(row["file"].split("-")[1].removesuffix(".png"))
        sentence = Grammar(3).sentence(index, row["split"])
        assert sentence.scene is not None
        assert row["fr"] == sentence.text("fr")
        assert (corpus / "scenes" / row["file"]).read_bytes() == sentence.scene.png(16)
    german = [tuple(line.split("\t")) for line in lines(corpus / "scenes" / "captions.de.tsv")]
    assert german == [(row["file"], row["de"]) for row in rows]
    for split in N_OF:
        assert lines(corpus / "scenes" / f"{split}.txt") == [row["file"] for row in rows if row["split"] == split]


def test_diagnostics_are_two_columns(corpus: Path) -> None:
    for task in ("dates", "numbers", "reversal", "copying"):
        for split, n in N_OF.items():
            assert [line.count("\t") for line in lines(corpus / f"{split}.{task}.tsv")] == [1] * n


def test_the_readme_names_every_file_with_its_first_line_and_counts_what_there_is(corpus: Path) -> None:
    said = (corpus / "README.md").read_text(encoding="utf-8")
    for path in corpus.rglob("*"):
        name = re.sub(r"\b(valid|test)\.", "train.", str(path.relative_to(corpus)))
        assert path.is_dir() or path.suffix == ".png" or path.name == "README.md" or f"`{name}`" in said, name
    assert "regard data grammar --n 40 --valid 7 --test 6 --seed 3 --pixels 16" in said
    for example in (
        lines(corpus / "train.en")[0],
        lines(corpus / "train.tok.en")[0],
        lines(corpus / "train.en-de.align")[0],
        lines(corpus / "train.en.mrg")[0],
        lines(corpus / "train.dates.tsv")[0].replace("\t", " ⇥ "),
        lines(corpus / "train.en.sentiment.tsv")[0].replace("\t", " ⇥ "),
        lines(corpus / "train.en.pos")[0].replace("\t", " ⇥ "),
        lines(corpus / "scenes" / "captions.en.tsv")[0].replace("\t", " ⇥ "),
        next(line.strip() for line in lines(corpus / "train.questions.json") if '"question"' in line),
    ):
        assert example in said
    known = list(Grammar(3).sentences("train", 40))
    n_asked, n_drawn = sum(s.question is not None for s in known), sum(s.scene is not None for s in known)
    assert f"| train | 40 | {n_asked} | {n_drawn} | 40 |" in said


def test_the_readme_speaks_of_what_was_written_alone(tmp_path: Path) -> None:
    write_corpus(tmp_path / "dates", CorpusPlan({"train": 4}, parts=("dates",)))
    said = (tmp_path / "dates" / "README.md").read_text(encoding="utf-8")
    assert "`train.dates.tsv`" in said
    assert not any(word in said for word in ("train.en", "scenes", "sentiment", "captions"))
    assert "--only dates" in said
    assert "| train | 4 |" in said


def test_the_documentation_names_every_part() -> None:
    said = (Path(__file__).parents[3] / "docs" / "data.md").read_text(encoding="utf-8")
    for part in PARTS:
        for described in FILES[part]:
            assert f"`{described.names('train')[0]}`" in said


def test_what_a_kind_has_none_of_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="kind 'event' has no scenes, but the kind scene does: give --kind scene"):
        CorpusPlan({"train": 1}, parts=("text", "scenes"), kind="event")
    with pytest.raises(RegardError, match="kind 'question' has no questions, but the kinds event, opinion, "):
        CorpusPlan({"train": 1}, parts=("questions",), kind="question")
    words = ["data", "grammar", "--n", "5", "--kind", "event", "--only", "scenes", "--out", str(tmp_path / "out")]
    with pytest.raises(RegardError, match="has no scenes"):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []


def test_everything_of_a_kind_is_what_that_kind_has(tmp_path: Path) -> None:
    write_corpus(tmp_path / "event", CorpusPlan({"train": 3}, kind="event"))
    names = {path.name for path in (tmp_path / "event").iterdir()}
    assert "scenes" not in names
    assert {"train.en", "train.questions.json"} <= names
    write_corpus(tmp_path / "question", CorpusPlan({"train": 3}, kind="question"))
    assert "train.questions.json" not in {path.name for path in (tmp_path / "question").iterdir()}


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(RegardError, match=r"is not empty \(it holds mine.txt\); choose another --out"):
        write_corpus(tmp_path, CorpusPlan({"train": 1}))
    with pytest.raises(RegardError, match="is a file; give --out a folder"):
        write_corpus(tmp_path / "mine.txt", CorpusPlan({"train": 1}))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_inside_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(RegardError, match=r"The folder '.*mine.txt/x' cannot be made: Not a directory\."):
        write_corpus(tmp_path / "mine.txt" / "x", CorpusPlan({"train": 1}))


def test_a_word_near_the_verb_is_told_what_it_is_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["gramar", "--n", "5", "--out", "x"], ["gramar"]):
        with pytest.raises(RegardError, match=r"built-in text or verb called 'gramar'. Did you mean 'grammar'\?"):
            CliRunner().invoke(app, ["data", *words], catch_exceptions=False)
    Path("gramar").write_text("the cat sat on the mat\n" * 50)
    assert CliRunner().invoke(app, ["data", "gramar"]).exit_code == 0


def test_an_unknown_part_is_refused_with_the_nearest() -> None:
    with pytest.raises(RegardError, match=r"nothing called 'tree' to write. Did you mean 'trees'\? There is: text, "):
        CorpusPlan({"train": 1}, parts=("tree",))
    with pytest.raises(RegardError, match="kind must be one of"):
        CorpusPlan({"train": 1}, kind="scnee")


def test_the_verb_writes_only_what_is_asked_for(tmp_path: Path) -> None:
    words = ["data", "grammar", "--n", "20", "--test", "3", "--only", "text", "--only", "dates", "--out"]
    (tmp_path / "out").mkdir()  # an empty folder is as good as none
    done = CliRunner().invoke(app, [*words, str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert f"Wrote {tmp_path / 'out'}: 22 files; its README.md says what each holds." in done.output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    splits = ("train", "valid", "test")
    endings = ("en", "de", "fr", "tok.en", "tok.de", "tok.fr", "dates.tsv")
    assert names == {"README.md", *(f"{split}.{ending}" for split in splits for ending in endings)}
    assert [len(lines(tmp_path / "out" / f"{s}.en")) for s in splits] == [20, 2, 3]


def test_the_verbs_help_names_every_part_and_a_source_is_still_looked_at(tmp_path: Path) -> None:
    said = " ".join(CliRunner().invoke(app, ["data", "grammar", "--help"], env={"COLUMNS": "200"}).output.split())
    assert all(part in said for part in PARTS)
    source = tmp_path / "mine.txt"
    source.write_text("the cat sat on the mat\n" * 50)
    assert "python-docs" in CliRunner().invoke(app, ["data"]).output
    with pytest.raises(RegardError, match="There is no file"):
        CliRunner().invoke(app, ["data", str(tmp_path / "gone.txt")], catch_exceptions=False)
