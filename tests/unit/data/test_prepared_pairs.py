"""From files to pairs on disk: right, once, whole or not at all."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.pairs import Pairs, add_tags, find_tags
from regard.data.pairs_config import PairsConfig
from regard.data.prepared_pairs import PreparedPairs, encode_pairs, open_pairs, prepare_pairs
from regard.errors import RegardError
from regard.files import PARTIAL
from regard.text.config import KINDS, TokenizerConfig
from regard.text.learning import train_tokenizer

NOUNS = {"dog": "Hund", "cat": "Kater", "man": "Mann", "mouse": "Mäuserich", "wolf": "Wolf"}
VERBS = {"sees": "sieht", "hears": "hört", "hates": "hasst", "finds": "findet"}


def made_up(n: int) -> list[tuple[str, str]]:
    """Different sentences and their translations."""
    found = [
        (f"the {a} {v} the {b} {k}", f"der {NOUNS[a]} {VERBS[v]} den {NOUNS[b]} {k}")
        for k in range(n)
        for a in NOUNS
        for v in VERBS
        for b in NOUNS
    ]
    return found[:n]


def tsv(path: Path, pairs: list[tuple[str, str]]) -> str:
    path.write_text("".join(f"{s}\t{t}\n" for s, t in pairs))
    return str(path)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def given(tmp_path: Path) -> str:
    return tsv(tmp_path / "pairs.tsv", made_up(300))


def tokenizer_config(kind: str = "bpe", **settings: Any) -> TokenizerConfig:
    return TokenizerConfig(kind=kind, vocab_size={"bpe": 300, "wordpiece": 80}.get(kind), **settings)


def texts(pairs: Pairs) -> list[tuple[str, str]]:
    return [(pairs.source_text(i), pairs.target_text(i)) for i in range(len(pairs))]


def ids(prepared: PreparedPairs) -> list[Any]:
    splits = (prepared.train, prepared.valid, prepared.test)
    return [[(p.source_ids(i).tolist(), p.target_ids(i).tolist()) for i in range(len(p))] for p in splits]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_shared", [True, False])
def test_pairs_hold_their_texts_and_the_ids_of_both_sides(kind: str, is_shared: bool, given: str, cache: Path) -> None:
    config = tokenizer_config(kind)
    found = prepare_pairs(PairsConfig(train=given), config, None if is_shared else config, cache=cache)
    splits = (found.train, found.valid, found.test)
    assert sorted(pair for pairs in splits for pair in texts(pairs)) == sorted(made_up(300))
    assert [len(pairs) for pairs in splits] == [270, 15, 15]
    assert (found.counts.n_train, found.counts.n_valid, found.counts.n_test, found.counts.skipped) == (270, 15, 15, {})
    assert found.has_one_vocabulary == (is_shared or kind == "byte")
    for pairs in splits:
        for i in range(len(pairs)):
            assert pairs.source_ids(i).tolist() == found.source_tokenizer.encode(pairs.source_text(i)).tolist()
            assert pairs.target_ids(i).tolist() == found.target_tokenizer.encode(pairs.target_text(i)).tolist()
        assert pairs.source_lengths.tolist() == [len(pairs.source_ids(i)) for i in range(len(pairs))]
        assert pairs.target_lengths.tolist() == [len(pairs.target_ids(i)) for i in range(len(pairs))]


def test_bytes_and_words_of_the_targets_are_counted(tmp_path: Path, cache: Path) -> None:
    path = tsv(tmp_path / "a.tsv", [("a mouse", "eine  Mäusin"), ("go", "geh")])
    found = prepare_pairs(PairsConfig(train=path, p_valid=0, p_test=0), tokenizer_config("word"), cache=cache)
    assert found.train.n_bytes == len("eine  Mäusin".encode()) + 3
    assert found.train.n_words == 2 + 1 + 1 + 1
    assert len(found.valid) == len(found.test) == 0


def test_vocabularies_see_the_training_split_of_their_side_only(tmp_path: Path, cache: Path) -> None:
    for name, word in (("train", "alpha"), ("valid", "beta"), ("test", "gamma")):
        tsv(tmp_path / f"{name}.tsv", [(f"the {word}", f"das {word}s")])
    data = PairsConfig(**{name: str(tmp_path / f"{name}.tsv") for name in ("train", "valid", "test")})
    words = tokenizer_config("word")
    shared = prepare_pairs(data, words, cache=cache)
    assert set(shared.source_tokenizer.hf.get_vocab()) == {"<eos>", "<unk>", "the", "alpha", "das", "alphas"}
    apart = prepare_pairs(data, words, words, cache=cache)
    assert set(apart.source_tokenizer.hf.get_vocab()) == {"<eos>", "<unk>", "the", "alpha"}
    assert set(apart.target_tokenizer.hf.get_vocab()) == {"<eos>", "<unk>", "das", "alphas"}
    assert apart.valid.source_ids(0).tolist() == [apart.source_tokenizer.id_of("the"), 1]


def test_equal_sources_are_never_in_two_splits(tmp_path: Path, cache: Path) -> None:
    pairs = [(source, f"{target} {k}") for source, target in made_up(60) for k in range(3)]
    data = PairsConfig(train=tsv(tmp_path / "a.tsv", pairs), p_valid=0.2, p_test=0.2)
    found = prepare_pairs(data, tokenizer_config("byte"), cache=cache)
    sources = [{source for source, _ in texts(split)} for split in (found.train, found.valid, found.test)]
    assert [len(s) for s in sources] == [36, 12, 12]
    assert len(set.union(*sources)) == 60
    other = prepare_pairs(data.replace(split_seed=1), tokenizer_config("byte"), cache=cache)
    assert {source for source, _ in texts(other.test)} != sources[2]


def test_too_few_different_sources_cannot_be_split(tmp_path: Path, cache: Path) -> None:
    data = PairsConfig(train=tsv(tmp_path / "a.tsv", [("go", "geh")] * 30))
    message = r"30 pairs with one and the same source are too few.*p_valid 0\.05.*Give more pairs, separate files"
    with pytest.raises(RegardError, match=message):
        prepare_pairs(data, tokenizer_config("byte"), cache=cache)


def three_languages(folder: Path, n: int) -> tuple[tuple[str, ...], ...]:
    """Parts from English to German, back, and between German and French: every sentence is in four pairs."""
    texts = {
        "en": [source for source, _ in made_up(n)],
        "de": [target for _, target in made_up(n)],
        "fr": [f"fr {source}" for source, _ in made_up(n)],
    }
    files = {}
    for language, lines in texts.items():
        files[language] = folder / f"a.{language}"
        files[language].write_text("".join(f"{line}\n" for line in lines))
    ways = (("en", "de"), ("de", "en"), ("de", "fr"), ("fr", "de"))
    return tuple((str(files[a]), str(files[b]), f"<2{b}>") for a, b in ways)


def test_in_several_parts_no_text_of_either_side_is_in_two_splits(tmp_path: Path, cache: Path) -> None:
    found = prepare_pairs(PairsConfig(train=three_languages(tmp_path, 300)), tokenizer_config("byte"), cache=cache)
    splits = (found.train, found.valid, found.test)
    assert [len(pairs) for pairs in splits] == [1080, 60, 60]
    sides = [{text for pair in texts(pairs) for text in pair} for pairs in splits]
    assert [len(s) for s in sides] == [810, 45, 45]  # three of a sentence's texts in its four pairs
    assert len(set.union(*sides)) == 900


def test_parts_that_share_too_much_cannot_be_split(tmp_path: Path, cache: Path) -> None:
    ring = [(f"w{i}", f"w{(i + 1) % 60}") for i in range(60)]
    data = PairsConfig(train=(tsv(tmp_path / "a.tsv", ring[:30]), tsv(tmp_path / "b.tsv", ring[30:])))
    message = r"60 pairs in 1 group are too few to set some apart.*share a text.*separate files"
    with pytest.raises(RegardError, match=message):
        prepare_pairs(data, tokenizer_config("byte"), cache=cache)


def test_one_part_is_split_by_its_sources_alone_as_ever(tmp_path: Path, cache: Path) -> None:
    """The key and the split that published runs name."""
    data = PairsConfig(train=tsv(tmp_path / "a.tsv", [(s, f"{k % 2}") for k, (s, _) in enumerate(made_up(100))]))
    found = prepare_pairs(data, tokenizer_config("byte"), cache=cache)
    assert found.fingerprint == "f08c02f75100adff0b704f253d360b57"
    assert [source for source, _ in texts(found.test)] == [
        "the man sees the mouse 0",
        "the man hears the dog 0",
        "the mouse hates the cat 0",
        "the mouse hates the wolf 0",
        "the wolf sees the mouse 0",
    ]


def test_a_second_call_finds_the_cache(given: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = PairsConfig(train=given, skips_bad=True)
    first = prepare_pairs(data, tokenizer_config(), tokenizer_config("word"), cache=cache)
    monkeypatch.setattr("regard.data.pair_texts.PairReader", None)
    monkeypatch.setattr("regard.data.prepared_pairs.train_tokenizer", None)
    monkeypatch.setattr("regard.data.prepared_pairs.encode_rows", None)
    second = prepare_pairs(data, tokenizer_config(), tokenizer_config("word"), cache=cache)
    by_name = open_pairs(first.fingerprint, cache)
    assert by_name is not None
    for again in (second, by_name):
        assert (again.fingerprint, again.counts, ids(again)) == (first.fingerprint, first.counts, ids(first))
    assert open_pairs("0" * 32, cache) is None


def test_ids_and_texts_are_mapped_and_small(given: str, cache: Path) -> None:
    found = prepare_pairs(PairsConfig(train=given), tokenizer_config(), cache=cache)
    for side in (found.train.source, found.train.target):
        assert isinstance(side.ids.flat.base, np.memmap)
        assert isinstance(side.texts.flat.base, np.memmap)
        assert (side.ids.flat.dtype, side.texts.flat.dtype) == (np.uint16, np.uint8)


def test_a_large_vocabulary_has_wide_ids(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.prepared_pairs.MAX_NARROW", 600)
    path = tsv(tmp_path / "a.tsv", [(f"w{i}", "x") for i in range(599)])
    data = PairsConfig(train=path, p_valid=0, p_test=0)
    found = prepare_pairs(data, tokenizer_config("word"), tokenizer_config("word"), cache=cache)
    assert (found.train.source.ids.flat.dtype, found.train.target.ids.flat.dtype) == (np.uint32, np.uint16)
    assert int(found.train.source.ids.flat.max()) == 600


def test_the_fingerprint_follows_content_reading_split_and_vocabularies(
    tmp_path: Path, given: str, cache: Path
) -> None:
    base = PairsConfig(train=given)
    copy = tsv(tmp_path / "copy.tsv", made_up(300))

    def fingerprint(data: PairsConfig, *kinds: str) -> str:
        return prepare_pairs(data, *map(tokenizer_config, kinds or ("byte",)), cache=cache).fingerprint

    first = fingerprint(base)
    assert fingerprint(base.replace(train=copy)) == first
    assert fingerprint(base.replace(max_length=3)) == first
    changes = [{"p_test": 0.1}, {"is_reversed": True}, {"max_pairs": 100}, {"split_seed": 1}, {"tag": "<2de>"}]
    others = [fingerprint(base.replace(**change)) for change in changes]
    others += [fingerprint(base, "byte", "word"), fingerprint(base, "char")]
    tsv(tmp_path / "copy.tsv", made_up(299))
    others.append(fingerprint(base.replace(train=copy)))
    assert len({first, *others}) == 9


def test_bad_lines_are_counted_and_a_cache_of_them_is_not_taken_for_a_clean_one(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in made_up(100)) + "one column\n\nx\t\n")
    data = PairsConfig(train=str(path), skips_bad=True)
    found = prepare_pairs(data, tokenizer_config("byte"), cache=cache)
    assert found.counts.skipped == {"one column": 1, "empty side": 2}
    assert found.counts.describe() == (
        "90 pairs for training, 5 for validation, 5 for test; 3 lines left out (empty side: 2, one column: 1)"
    )
    with pytest.raises(RegardError, match=r"a\.tsv, line 101 has one column"):
        prepare_pairs(data.replace(skips_bad=False), tokenizer_config("byte"), cache=cache)


def test_max_pairs_takes_the_first_of_train_over_all_its_parts(tmp_path: Path, cache: Path) -> None:
    pairs = made_up(80)
    parts = ((tsv(tmp_path / "a.tsv", pairs[:20]),), (tsv(tmp_path / "b.tsv", pairs[20:40]),))
    data = PairsConfig(train=parts, valid=tsv(tmp_path / "c.tsv", pairs[40:]), p_test=0, max_pairs=25)
    found = prepare_pairs(data, tokenizer_config("byte"), cache=cache)
    assert texts(found.train) == pairs[:25]
    assert texts(found.valid) == pairs[40:]


def test_a_file_without_pairs_is_named(tmp_path: Path, given: str, cache: Path) -> None:
    (tmp_path / "bad.tsv").write_text("no target\t\n")
    data = PairsConfig(train=given, valid=str(tmp_path / "bad.tsv"), skips_bad=True)
    with pytest.raises(RegardError, match=r"There is no pair in .*bad\.tsv \(valid\)"):
        prepare_pairs(data, tokenizer_config("byte"), cache=cache)


def test_a_split_that_leaves_nothing_to_train_on_says_how_many_pairs_there_are(tmp_path: Path, cache: Path) -> None:
    data = PairsConfig(train=tsv(tmp_path / "two.tsv", made_up(2)))
    message = (
        r"There are 2 pairs in .*two\.tsv, and none is left to train on: at least one goes to validation \(p_valid "
        r"0\.05\) and to test \(p_test 0\.05\)\. Give more pairs, separate files, or set p_valid and p_test to 0\."
    )
    with pytest.raises(RegardError, match=message):
        prepare_pairs(data, tokenizer_config("byte"), cache=cache)
    with pytest.raises(RegardError, match=r"There is 1 pair in .*: at least one goes to test \(p_test 0\.05\)\."):
        prepare_pairs(data.replace(max_pairs=1, p_valid=0.0), tokenizer_config("byte"), cache=cache)


def test_the_same_pairs_for_training_and_test_are_refused(tmp_path: Path, given: str, cache: Path) -> None:
    copy = tsv(tmp_path / "copy.tsv", made_up(300))
    with pytest.raises(RegardError, match=r"pairs\.tsv \(train\) and .*copy\.tsv \(test\) hold the same pairs"):
        prepare_pairs(PairsConfig(train=given, test=copy), tokenizer_config(), cache=cache)


def test_sources_that_training_has_too_are_counted(tmp_path: Path, cache: Path) -> None:
    pairs = made_up(100)
    train, test = tsv(tmp_path / "a.tsv", pairs), [(pairs[3][0], "x"), ("y", "z"), (pairs[3][0], "w")]
    data = PairsConfig(train=train, test=tsv(tmp_path / "b.tsv", test), p_valid=0)
    found = prepare_pairs(data, tokenizer_config("byte"), cache=cache)
    assert found.counts.seen == {"test": 2}
    assert found.counts.describe().endswith("3 for test; the sources of 2 of test are in training too")


@pytest.mark.parametrize("kind", KINDS)
def test_a_tag_is_one_token_before_the_source_and_in_no_text(kind: str, tmp_path: Path, cache: Path) -> None:
    german = tsv(tmp_path / "de.tsv", made_up(30))
    french = tsv(tmp_path / "fr.tsv", [("the dog", "le chien"), ("the cat", "le chat")])
    data = PairsConfig(train=((german, "<2de>"), (french, "<2fr>"), (french,)), p_valid=0, p_test=0)
    found = prepare_pairs(data, tokenizer_config(kind), cache=cache)
    tokenizer = found.source_tokenizer
    plain = prepare_pairs(data.replace(train=((german,), (french,), (french,))), tokenizer_config(kind), cache=cache)
    assert tokenizer.vocab_size == plain.source_tokenizer.vocab_size + 2
    de, fr = find_tags(tokenizer, ["<2de>", "<2fr>"])
    assert sorted((de, fr)) == [plain.source_tokenizer.vocab_size, plain.source_tokenizer.vocab_size + 1]
    for i, (first, tag) in enumerate([([de], "<2de>")] * 30 + [([fr], "<2fr>")] * 2 + [([], None)] * 2):
        assert found.train.source_ids(i).tolist() == first + plain.train.source_ids(i).tolist()
        assert found.train.target_ids(i).tolist() == plain.train.target_ids(i).tolist()
        assert found.train.tag(i) == tag
    assert found.train.source_text(0) == made_up(1)[0][0]
    assert found.train.source_lengths[0] == plain.train.source_lengths[0] + 1


def test_the_same_source_in_two_languages_stays_in_one_split(tmp_path: Path, cache: Path) -> None:
    pairs = made_up(100)
    parts = tuple(
        (tsv(tmp_path / f"{tag}.tsv", [(s, f"{t} {tag}") for s, t in pairs]), f"<2{tag}>") for tag in ("de", "fr")
    )
    found = prepare_pairs(PairsConfig(train=parts, p_valid=0.1, p_test=0.1), tokenizer_config("byte"), cache=cache)
    for split in (found.valid, found.test):
        sources = [source for source, _ in texts(split)]
        assert len(sources) == 20
        assert len(set(sources)) == 10


def test_an_unknown_tag_is_refused_with_those_there_are(tmp_path: Path, given: str, cache: Path) -> None:
    learned = add_tags(train_tokenizer(tokenizer_config("byte"), []), ["<2de>", "<2fr>"])
    learned.save(tmp_path / "tokenizer.json")
    config = TokenizerConfig(path=str(tmp_path))
    data = PairsConfig(train=given, tag="<2dd>")
    message = (
        r"The tag <2dd> is not in the vocabulary\. Did you mean '<2de>'\? .*: <2de>, <2fr>, <eos>\. Use one of these"
    )
    with pytest.raises(RegardError, match=message):
        prepare_pairs(data, config, cache=cache)
    with pytest.raises(RegardError, match=message):
        encode_pairs(learned, learned, data, cache=cache)
    found = prepare_pairs(data.replace(tag="<2de>"), config, cache=cache)
    assert found.train.source_ids(0)[0] == 257
    assert add_tags(learned, ["<2fr>", "<2de>"]) is learned


def test_other_pairs_can_be_encoded_with_what_was_learned(tmp_path: Path, given: str, cache: Path) -> None:
    first = prepare_pairs(PairsConfig(train=given), tokenizer_config(), tokenizer_config("word"), cache=cache)
    other = tsv(tmp_path / "other.tsv", [("the fox sees", "der Fuchs sieht")])
    tokenizers = first.source_tokenizer, first.target_tokenizer
    pairs = encode_pairs(*tokenizers, PairsConfig(train=other), cache=cache).train
    assert texts(pairs) == [("the fox sees", "der Fuchs sieht")]
    assert pairs.target_ids(0).tolist() == first.target_tokenizer.encode("der Fuchs sieht").tolist()
    assert pairs.target_ids(0)[1] == 1


@pytest.mark.parametrize("name", ["pairs/{}/source.flat", "pairs/{}/target.npy", "pairs/{}/source-tokenizer.json"])
def test_a_damaged_cache_is_made_again(name: str, given: str, cache: Path) -> None:
    first = prepare_pairs(PairsConfig(train=given), tokenizer_config(), cache=cache)
    expected = ids(first)
    path = cache / name.format(first.fingerprint)
    path.write_bytes(path.read_bytes()[:-50])
    assert open_pairs(first.fingerprint, cache) is None
    assert ids(prepare_pairs(PairsConfig(train=given), tokenizer_config(), cache=cache)) == expected


def test_damaged_texts_are_read_again(given: str, cache: Path) -> None:
    first = prepare_pairs(PairsConfig(train=given), tokenizer_config(), cache=cache)
    expected = ids(first)
    (path,) = cache.glob("pair-texts/*/target.flat")
    path.write_bytes(path.read_bytes()[:-1])
    assert open_pairs(first.fingerprint, cache) is None
    assert ids(prepare_pairs(PairsConfig(train=given), tokenizer_config(), cache=cache)) == expected


def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    given: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("regard.data.rows.np.save", full)
    with pytest.raises(RegardError, match="No space left"):
        prepare_pairs(PairsConfig(train=given), tokenizer_config(), cache=cache)
    assert list((cache / "pair-texts").iterdir()) == []


def test_what_was_stopped_or_killed_in_the_middle_leaves_nothing(given: str, cache: Path) -> None:
    def stopped(what: str, done: int, total: int | None) -> None:
        if what == "encoding":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_pairs(PairsConfig(train=given), tokenizer_config(), cache=cache, progress=stopped)
    assert list((cache / "pairs").iterdir()) == []
    killed = cache / "pairs" / f"{PARTIAL}killed"  # its writer is gone, and with it the lock
    killed.mkdir()
    (killed / "lock").write_bytes(b"held")
    found = prepare_pairs(PairsConfig(train=given), tokenizer_config(), cache=cache)
    assert [path.name for path in (cache / "pairs").iterdir()] == [found.fingerprint]
    assert list(cache.glob(f"{PARTIAL}*")) == []


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_batches_and_processes_change_nothing_but_time(
    kind: str, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = PairsConfig(train=given)
    whole = prepare_pairs(data, tokenizer_config(kind), cache=tmp_path / "a")
    monkeypatch.setattr("regard.data.rows.BATCH_BYTES", 700)
    monkeypatch.setattr("regard.data.pair_texts.BATCH", 7)
    monkeypatch.setattr("regard.data.rows.count_workers", lambda tokenizer, n_bytes: 2)
    small = prepare_pairs(data, tokenizer_config(kind), cache=tmp_path / "b")
    assert (small.fingerprint, ids(small)) == (whole.fingerprint, ids(whole))
    folders = [
        {p.name: p.read_bytes() for p in sorted((tmp_path / name / "pairs" / whole.fingerprint).iterdir())}
        for name in ("a", "b")
    ]
    assert folders[0] == folders[1]


def test_texts_that_spell_the_end_mark_or_have_no_token_are_unknown_words() -> None:
    words = train_tokenizer(tokenizer_config("word"), ["a b"])
    pairs = Pairs.of([("a <eos> b", "a"), ("b", "<eos>")], words)
    assert pairs.source_ids(0).tolist() == [2, 1, 3]
    assert pairs.target_ids(1).tolist() == [1]
    pieces = train_tokenizer(tokenizer_config("wordpiece"), ["a b"])
    assert Pairs.of([("\u200b", "a")], pieces).source_ids(0).tolist() == [1]


def test_progress_is_told_by_name_and_reaches_its_end(given: str, cache: Path) -> None:
    calls: list[tuple[str, int, int | None]] = []
    prepare_pairs(PairsConfig(train=given), tokenizer_config(), cache=cache, progress=lambda *call: calls.append(call))
    assert list(dict.fromkeys(call[0] for call in calls)) == ["reading", "learning the vocabulary", "encoding"]
    size = sum(len(s.encode()) + len(t.encode()) for s, t in made_up(300))
    assert calls[-1] == ("encoding", size, size)


def test_the_vocabulary_is_learned_from_an_even_part_of_many_pairs(tmp_path: Path, cache: Path) -> None:
    path = tsv(tmp_path / "a.tsv", [(f"s{i:03d}", f"t{i:03d}") for i in range(1000)])
    seen: list[int] = []
    config = TokenizerConfig(kind="bpe", vocab_size=257, max_bytes=400)
    prepare_pairs(
        PairsConfig(train=path, p_valid=0, p_test=0),
        config,
        cache=cache,
        progress=lambda what, done, _: seen.append(done) if "learn" in what else None,
    )
    assert seen[-1] == pytest.approx(400, abs=10)


def test_a_run_with_two_vocabularies_lends_each_side_its_own(tmp_path: Path, given: str, cache: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    config, data = tokenizer_config("word"), PairsConfig(train=given)
    own = prepare_pairs(data, config, config, cache=cache)
    own.source_tokenizer.save(run / "tokenizer.json")
    own.target_tokenizer.save(run / "target_tokenizer.json")
    lent = TokenizerConfig(path=str(run))
    found = prepare_pairs(data, lent, lent, cache=cache)
    assert found.source_tokenizer.hash == own.source_tokenizer.hash
    assert found.target_tokenizer.hash == own.target_tokenizer.hash != own.source_tokenizer.hash
    with pytest.raises(
        RegardError, match=r"run' has two vocabularies.*target_tokenizer\.path to .*run.* too, or .*json"
    ):
        prepare_pairs(data, lent, cache=cache)
    (run / "target_tokenizer.json").unlink()
    assert prepare_pairs(data, lent, lent, cache=cache).target_tokenizer.hash == own.source_tokenizer.hash
