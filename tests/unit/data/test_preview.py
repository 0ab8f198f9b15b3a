"""What a source holds, before anything is trained on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from regard.data.caption_config import CaptionConfig
from regard.data.config import DataConfig
from regard.data.labelled_config import LabelledConfig
from regard.data.pairs_config import PairsConfig
from regard.data.preview import choose_config, preview_labelled, preview_pairs, show_example
from regard.errors import RegardError

PAIR = json.dumps({"source": "a", "target": "b"})
FILES = {
    "a.en": "one\ntwo\n",
    "a.de": "eins\nzwei\n",
    "pairs.tsv": "one\teins\n",
    "pairs.csv": "en,de\none,eins\n",
    "texts.csv": "id,text\n1,one\n",
    "pairs.jsonl": f"{PAIR}\n",
    "texts.jsonl": '{"text": "one"}\n',
    "my.txt": "one\teins\n",
    "posts.csv": "id,title,body\n1,One,It is one.\n",
    "two.csv": "id,body\n1,It is one.\n",
    "numbered.csv": "id,en,de\n1,one,eins\n",
    "more.tsv": "It is one.\tEins.\tby me\n",
    "photos/a.png": "",
    "stars.csv": 'review,stars\n"A film, good",5\nDull,1\n',
    "rated.csv": "comment,rating\nA film,5\nDull one,1\n",
    "bare.tsv": "a film\tpos\nbad\tneg\nso long\tneg\nso good\tpos\nno\tneg\n",
    "labelled.jsonl": '{"text": "one", "label": "x"}\n',
    "words.tsv": "dog\tHund\ncat\tKatze\nhouse\tHaus\n",
    "captions.tsv": "a.png\tone\n",
}


@pytest.mark.parametrize(
    ("sources", "settings", "kind"),
    [
        (["a.en", "a.de"], {}, PairsConfig),
        (["a.en", "a.de", "my.txt"], {}, DataConfig),
        (["pairs.tsv"], {}, PairsConfig),
        (["pairs.csv"], {}, PairsConfig),
        (["pairs.csv"], {"field": "de"}, DataConfig),
        (["texts.csv"], {}, DataConfig),
        (["pairs.jsonl"], {}, PairsConfig),
        (["pairs.jsonl"], {"field": "source"}, DataConfig),
        (["texts.jsonl"], {}, DataConfig),
        (["my.txt"], {}, DataConfig),
        (["posts.csv"], {}, DataConfig),
        (["two.csv"], {}, DataConfig),
        (["numbered.csv"], {}, PairsConfig),
        (["more.tsv"], {}, PairsConfig),
        (["photos", "captions.tsv"], {}, CaptionConfig),
        (["stars.csv"], {}, LabelledConfig),
        (["stars.csv"], {"field": "review"}, DataConfig),
        (["stars.csv"], {"source_field": "review", "target_field": "stars"}, PairsConfig),
        (["rated.csv"], {}, LabelledConfig),
        (["bare.tsv"], {}, LabelledConfig),
        (["labelled.jsonl"], {}, LabelledConfig),
        (["words.tsv"], {}, PairsConfig),
        (["posts.csv"], {"label": "title", "text": "body"}, LabelledConfig),
        (["my.txt"], {"source_field": "2", "target_field": "1"}, PairsConfig),
        (["my.txt"], {"source_field": "2", "split_seed": 1}, PairsConfig),
        (["trees.mrg"], {}, PairsConfig),
        (["grammar:en-de"], {}, PairsConfig),
        (["grammar:en-ner:40"], {}, LabelledConfig),
        (["tags.conll"], {}, LabelledConfig),
        (["python-docs"], {}, DataConfig),
    ],
)
def test_pairs_and_labelled_texts_are_told_from_text(
    sources: list[str], settings: dict[str, Any], kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("photos").mkdir()
    for name, content in FILES.items():
        Path(name).write_text(content)
    assert type(choose_config(sources, settings)) is kind


def test_a_preview_of_pairs_has_splits_first_pairs_and_what_was_left_out(tmp_path: Path) -> None:
    lines = [f"source {n}\ttarget {n}\n" for n in range(60)]
    (tmp_path / "a.tsv").write_text("source\ttarget\n" + "".join(lines) + "no target\t\n")
    found = preview_pairs(PairsConfig(train=str(tmp_path / "a.tsv"), skips_bad=True), cache=tmp_path / "cache")
    assert [(split.split, split.n_pairs, len(split.first)) for split in found.splits] == [
        ("train", 54, 3), ("valid", 3, 3), ("test", 3, 3)
    ]  # fmt: skip
    for source, target in found.splits[0].first:
        assert target == source.replace("source", "target")
    assert found.summary == (
        "54 pairs for training, 3 for validation, 3 for test; 2 lines left out (empty side: 1, header: 1)"
    )


def test_a_misspelt_setting_does_not_make_pairs_of_a_text(tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text("id,text\n1,hello\n")
    with pytest.raises(RegardError, match=r"Unknown key 'data\.feild'\. Did you mean 'data\.field'\?"):
        choose_config([str(tmp_path / "posts.csv")], {"feild": "text"})


def test_labelled_sentences_of_the_grammar_are_shown_with_their_labels() -> None:
    kind, found = preview_labelled(LabelledConfig(train="grammar:questions:2"))
    assert (kind, len(found.train), len(found.test)) == ("answers", 2, 1000)
    text, answer = show_example(found.train[0])
    assert answer in text


def test_columns_of_labels_are_found_with_their_names_and_kind(tmp_path: Path) -> None:
    rows = [(f"film number {i}", i % 5) for i in range(60)]
    (tmp_path / "rated.csv").write_text("comment,rating\n" + "".join(f"{text},{n}\n" for text, n in rows))
    config = choose_config([str(tmp_path / "rated.csv")], {})
    assert isinstance(config, LabelledConfig)
    assert (config.text, config.label) == ("comment", "rating")
    kind, found = preview_labelled(config)
    assert (kind, sum(map(len, (found.train, found.valid, found.test)))) == ("numbers", 60)
    (tmp_path / "bare.tsv").write_text("".join(f"{'pos' if n else 'neg'}\t{text}\n" for text, n in rows))
    config = choose_config([str(tmp_path / "bare.tsv")], {})
    assert isinstance(config, LabelledConfig)
    assert (config.text, config.label) == ("2", "1")
    kind, found = preview_labelled(config)
    assert (kind, {example.label for example in found.train}) == ("classes", {"pos", "neg"})
