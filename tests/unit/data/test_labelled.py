"""Labelled files of every form, and a sentence for each way in which one can be broken."""

import contextlib
import json
from pathlib import Path
from types import ModuleType

import pytest

from regard.data import labelled, labelled_splits, reading
from regard.data.labelled import ANSWERS, CLASSES, NUMBERS, TAGS, Answer
from regard.data.labelled_config import LabelledConfig
from regard.data.labelled_splits import prepare_labelled
from regard.errors import RegardError
from regard.text.config import TokenizerConfig

WORDS = TokenizerConfig(kind="word", vocab_size=None)


def read(path: Path, content: str, kind: str, **settings: object) -> list[tuple[object, ...]]:
    path.write_text(content)
    data = LabelledConfig(train=str(path), p_valid=0, p_test=0, **settings)  # type: ignore[arg-type]
    return [(*example.texts, example.label) for example in prepare_labelled(data, kind, WORDS).train]


def test_tables_lines_and_records_give_the_same_examples(tmp_path: Path) -> None:
    wanted = [("good film", "pos"), ("bad film", "neg")]
    assert read(tmp_path / "a.tsv", "good film\tpos\nbad film\tneg\n", CLASSES) == wanted
    assert read(tmp_path / "b.tsv", "id\tlabel\ttext\n1\tpos\tgood film\n2\tneg\tbad film\n", CLASSES) == wanted
    assert read(tmp_path / "c.csv", 'review,stars\n"good film",pos\nbad film,neg\n', CLASSES, text="review") == wanted
    assert read(tmp_path / "d.txt", "pos good film\nneg bad film\n", CLASSES) == wanted
    records = [{"sentence": "good film", "label": "pos"}, {"sentence": "bad film", "label": "neg"}]
    assert read(tmp_path / "e.jsonl", "".join(json.dumps(r) + "\n" for r in records), CLASSES) == wanted


def test_two_texts_and_numbers_are_read_by_name_or_number(tmp_path: Path) -> None:
    text = "id\tsentence_A\tsentence_B\tscore\n1\ta dog\ta cat\t3.5\n2\tx y\tz\t1\n"
    wanted = [("a dog", "a cat", 3.5), ("x y", "z", 1.0)]
    assert read(tmp_path / "a.tsv", text, NUMBERS, text="sentence_A", second="sentence_B", label="score") == wanted
    bare = "\n".join(text.splitlines()[1:]) + "\n"
    assert read(tmp_path / "b.tsv", bare, NUMBERS, text=2, second=3, label=4) == wanted


def test_conll_columns_become_bio_and_conllu_has_parts_of_speech(tmp_path: Path) -> None:
    conll = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\nPeter NNP I-NP I-PER\n"
    assert read(tmp_path / "eng.train", conll, TAGS) == [("EU rejects", ("B-ORG", "O")), ("Peter", ("B-PER",))]
    assert read(tmp_path / "b", conll, TAGS, label=2)[0][1] == ("NNP", "VBZ")
    columns = "\t_\t_\t_\t_\t_"
    conllu = f"# text\n1-2\tdon't\t_\t_\t_{columns}\n1\tdo\t_\tAUX\tVB{columns}\n2\tn't\t_\tPART\tRB{columns}\n\n"
    assert read(tmp_path / "a.conllu", conllu, TAGS) == [("do n't", ("AUX", "PART"))]


def squad(answer: str, start: int, **more: object) -> str:
    question = {"id": "q1", "question": "Who?", "answers": [{"text": answer, "answer_start": start}], **more}
    return json.dumps({"data": [{"paragraphs": [{"context": "Anna barks.", "qas": [question]}]}]})


def test_squad_gives_spans_and_impossible_questions_none(tmp_path: Path) -> None:
    assert read(tmp_path / "a.json", squad("Anna", 0), ANSWERS) == [("Who?", "Anna barks.", (Answer(0, "Anna"),))]
    assert read(tmp_path / "b.json", squad("Anna", 0, is_impossible=True), ANSWERS)[0][2] == ()


@pytest.mark.parametrize(
    ("name", "text", "kind", "settings", "said"),
    [
        ("a.tsv", "text\tlabel\nx\ty\n", CLASSES, {"label": "stars"}, "no column 'stars'.*first row is: text, label"),
        ("a.jsonl", '{"text": "x"}\n', CLASSES, {}, "line 1 has no field 'label'.*Set data.label"),
        ("a.tsv", "  \tpos\nx\tneg\n", CLASSES, {}, "line 1 has an empty text"),
        ("a.txt", "pos good film\nword\n", CLASSES, {}, "line 2 has no label: it is one word, 'word'.*lines such as"),
        ("a.txt", "".join(f"w{i} is here\n" for i in range(9)), CLASSES, {},
         "a.txt has no labels, it seems: the first word.*9 lines have 9 different ones, 'w0' and 'w1'"),
        ("a.tsv", "one column\n", CLASSES, {}, "has one column"),
        ("a.tsv", "x\thigh\n", NUMBERS, {}, "the label 'high', which is no number"),
        ("a.jsonl", '{"words": ["a", "b"], "tags": ["O"]}\n', TAGS, {}, "has 2 words and 1 tag\\."),
        ("a.conll", "word\n", TAGS, {}, "line 1 has 1 column"),
        ("a.json", squad("Anna", 3), ANSWERS, {}, "question q1 has the answer 'Anna' at character 3"),
        ("a.json", "[1", ANSWERS, {}, "is not valid JSON.*Copy it again"),
        ("a.json", '{"data": [{}]}', ANSWERS, {}, r"is not SQuAD's JSON \(it lacks 'paragraphs'\)"),
        ("a.tsv", "x\tpos\ny\tpos\n", CLASSES, {}, "All training examples have the label 'pos'"),
        ("a.tsv", "", CLASSES, {}, "is empty. Give a file"),
    ],
)  # fmt: skip
def test_what_is_broken_is_said_in_a_sentence(
    tmp_path: Path, name: str, text: str, kind: str, settings: dict[str, object], said: str
) -> None:
    with pytest.raises(RegardError, match=said):
        read(tmp_path / name, text, kind, **settings)


def test_a_label_that_training_lacks_is_named_and_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("x\tpos\ny\tneg\n")
    (tmp_path / "test.tsv").write_text("z\tpos\nw\tpositive\n")
    data = LabelledConfig(train=str(tmp_path / "train.tsv"), test=str(tmp_path / "test.tsv"), p_valid=0)
    with pytest.raises(RegardError, match="line 2 has the label 'positive', which does not come"):
        prepare_labelled(data, CLASSES, WORDS)
    found = prepare_labelled(data.replace(skips_bad=True), CLASSES, WORDS)
    assert len(found.test) == 1
    assert found.skipped == {"unknown label": 1}


def test_too_few_examples_to_set_some_apart_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\tpos\ny\tneg\n")
    with pytest.raises(RegardError, match="2 examples are too few to set some apart: none is left to learn from"):
        prepare_labelled(LabelledConfig(train=str(tmp_path / "a.tsv")), CLASSES, WORDS)


def test_a_split_keeps_equal_texts_and_one_passage_together(tmp_path: Path) -> None:
    lines = [f"text {i % 40}\t{'pos' if i % 2 else 'neg'}" for i in range(80)]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n")
    found = prepare_labelled(LabelledConfig(train=str(tmp_path / "a.tsv")), CLASSES, WORDS)
    seen = [{example.texts for example in split} for split in (found.train, found.valid, found.test)]
    assert all(seen)
    assert sum(map(len, seen)) == len(set.union(*seen))


def test_the_built_in_grammar_has_a_label_of_every_kind() -> None:
    for name, kind in (("en-sentiment", CLASSES), ("de-stars", NUMBERS), ("fr-ner", TAGS), ("questions", ANSWERS)):
        data = LabelledConfig(train=f"grammar:{name}:20", valid=f"grammar:{name}:5", test=f"grammar:{name}:5")
        found = prepare_labelled(data, kind, WORDS)
        assert (len(found.train), len(found.valid), len(found.test)) == (20, 5, 5)
    with pytest.raises(RegardError, match="has tags, and classes are wanted"):
        prepare_labelled(LabelledConfig(train="grammar:en-pos:20"), CLASSES, WORDS)


def test_a_sentence_with_a_line_of_too_few_columns_is_left_out_whole(tmp_path: Path) -> None:
    text = "Anna B-PER\nlives\nhere O\n\nshe O\nsings O\n"
    with pytest.raises(RegardError, match=r"a\.conll, line 2 has 1 column\. A line is a word and its tag.*--skip-bad"):
        read(tmp_path / "a.conll", text, TAGS)
    assert read(tmp_path / "a.conll", text, TAGS, skips_bad=True) == [("she sings", ("O", "O"))]
    with pytest.raises(RegardError, match=r"data\.label is ner, and the columns of .*a\.conll have no names"):
        read(tmp_path / "a.conll", text, TAGS, label="ner")
    conllu = "1\tAnna\n\n" + "\t".join(["1", "she", "she", "PRON", *"______"]) + "\n"
    assert read(tmp_path / "b.conllu", conllu, TAGS, skips_bad=True) == [("she", ("PRON",))]


@pytest.mark.parametrize("record", ['{"words": 5, "tags": ["O"]}', '{"words": ["a"], "tags": null}'])
def test_words_or_tags_that_are_no_list_are_refused_with_a_sentence(tmp_path: Path, record: str) -> None:
    with pytest.raises(RegardError, match="line 1 needs words and tags, each a list"):
        read(tmp_path / "a.jsonl", record, TAGS)


def test_an_answer_that_is_no_text_is_not_in_its_passage(tmp_path: Path) -> None:
    for answer in ({"text": 5, "answer_start": 0}, {"text": "here", "answer_start": -4}):
        asked = {"context": "Anna is here", "qas": [{"question": "Where?", "answers": [answer]}]}
        with pytest.raises(RegardError, match="is not in its passage there"):
            read(tmp_path / "a.json", json.dumps({"data": [{"paragraphs": [asked]}]}), ANSWERS)


def test_too_few_examples_to_set_some_apart_are_called_examples(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("good film\tpos\n")
    data = LabelledConfig(train=str(tmp_path / "a.tsv"))
    with pytest.raises(
        RegardError, match=r"None of the 1 examples can be set apart for valid.*data\.valid and data\.test"
    ):
        prepare_labelled(data, CLASSES, WORDS)


def squad_of(passage: str, n: int) -> str:
    """SQuAD's JSON with n questions about one passage."""
    asked = [{"question": f"Who {i}?", "answers": [{"text": passage[0], "answer_start": 0}]} for i in range(n)]
    return json.dumps({"data": [{"paragraphs": [{"context": passage, "qas": asked}]}]})


def test_a_passage_is_checked_and_hashed_once_for_all_its_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def watch(module: ModuleType, name: str) -> None:
        plain = getattr(module, name)

        def note(text: str, *more: object) -> object:
            seen.append(text)
            return plain(text, *more)

        monkeypatch.setattr(module, name, note)

    watch(labelled, "refuse_surrogates")
    watch(labelled_splits, "hash_key")
    (tmp_path / "a.json").write_text(squad_of("b " * 100, 50))
    (tmp_path / "b.json").write_text(squad_of("c " * 100, 50))
    data = LabelledConfig(train=(str(tmp_path / "a.json"), str(tmp_path / "b.json")), p_valid=0.5, p_test=0)
    with contextlib.suppress(RegardError):  # two passages may be too few to set some apart
        prepare_labelled(data, ANSWERS, WORDS)
    n_long = sum(len(text) >= 200 for text in seen)
    assert n_long == 2 * 2


def test_passages_have_a_limit_each_and_all_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RegardError, match=r"question 1 has a passage of 100,002 characters; at most 100,000 are read"):
        read(tmp_path / "a.json", squad_of("b " * 50_001, 2), ANSWERS)
    assert len(read(tmp_path / "b.json", squad_of("b " * 50_000, 2), ANSWERS)) == 2
    monkeypatch.setattr(labelled, "MAX_PASSAGES", 1000)
    monkeypatch.setattr(labelled, "PER_FILE", 0)
    assert len(read(tmp_path / "c.json", squad_of("b " * 50, 10), ANSWERS)) == 10
    with pytest.raises(RegardError, match=r"passages of more than 1,000 characters, each counted once for every"):
        read(tmp_path / "d.json", squad_of("b " * 50, 11), ANSWERS, skips_bad=True)


def test_a_passage_that_is_no_text_is_a_bad_example(tmp_path: Path) -> None:
    asked = {"context": None, "qas": [{"question": "Where?", "answers": []}]}
    with pytest.raises(RegardError, match="has an empty passage"):
        read(tmp_path / "a.json", json.dumps({"data": [{"paragraphs": [asked]}]}), ANSWERS)


@pytest.mark.parametrize("form", ["conll", "conllu"])
def test_a_sentence_without_end_is_one_bad_line_and_is_not_held(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labelled, "MAX_WORDS", 3)
    held = []
    plain = labelled._tag_words

    def note(words: list[str], *more: object) -> object:
        held.append(len(words))
        return plain(words, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(labelled, "_tag_words", note)
    rest = "\t_" * 6
    line = "{}\tT\n" if form == "conll" else "1\t{}\t_\tT" + rest + "\n"
    text = "".join(map(line.format, "abc")) + "\n" + line.format("w") * 1000 + "\n" + line.format("d")
    found = read(tmp_path / f"a.{form}", text, TAGS, skips_bad=True)
    assert [words for words, _ in found] == ["a b c", "d"]
    assert max(held) == 3
    with pytest.raises(RegardError, match=r"line 5 begins a sentence of more than 3 words. Are there blank lines"):
        read(tmp_path / f"b.{form}", text, TAGS)


def test_words_of_a_record_have_the_same_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelled, "MAX_WORDS", 3)
    with pytest.raises(RegardError, match="line 1 begins a sentence of more than 3 words"):
        read(tmp_path / "a.jsonl", '{"words": "a b c d", "tags": "A B C D"}\n', TAGS)


def test_an_error_shows_and_compares_the_first_fields_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def note(given: str, names: list[str]) -> str:
        compared.extend(names)
        return ""

    monkeypatch.setattr(reading, "nearest", note)
    record = {f"f{i}": 0 for i in range(5000)}
    for field, kind in (("labels", CLASSES), ("words", TAGS)):
        with pytest.raises(RegardError, match=r"has no field 'sentence9'\. It has: f0, f1") as error:
            read(tmp_path / f"{field}.jsonl", json.dumps(record), kind, text="sentence9")
        assert len(str(error.value)) < 600
    assert 0 < len(compared) <= 200


def test_an_error_shows_the_beginning_of_a_label(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="which is no number") as error:
        read(tmp_path / "a.tsv", f"x\t{'y' * 90_000}\n", NUMBERS)
    assert len(str(error.value)) < 400
