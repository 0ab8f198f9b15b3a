"""Batches of pairs: what is in them, worked by hand, and how full they are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from regard.data import pair_dropout_order
from regard.data.pair_batches import PairBatches, read_in_order
from regard.data.pair_order import classify_lengths, cut_batches, round_up
from regard.data.pairs import MaxLengths, Pairs, Side, add_tags
from regard.data.pairs_config import PairsConfig
from regard.data.prepared_pairs import prepare_pairs
from regard.data.rows import Rows
from regard.errors import RegardError
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer

BPE = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=300), ["cat the cat sat on the mat and the hat "] * 20)
BYTES = train_tokenizer(TokenizerConfig(kind="byte"), [])


def words(text: str) -> Tokenizer:
    return train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), [text])


def of_lengths(lengths: list[tuple[int, int]]) -> Pairs:
    return Pairs.of([("x" * s, "y" * t) for s, t in lengths], BYTES)


def test_a_batch_by_hand() -> None:
    pairs = Pairs.of([("ab", "c"), ("d", "ef")], BYTES)
    batches = PairBatches(pairs, max_tokens=10)
    batch = batches.at(0)
    a, b, c, d, e, f = (ord(char) + 1 for char in "abcdef")
    # Targets of 1 and 2 tokens, the shorter first: the cut_batches are known, and one batch holds both.
    assert batches.per_epoch == 1
    assert batches.indices(0).tolist() == [0, 1]
    assert batch.source.tolist() == [[a, b], [d, 0]]
    assert batch.source_mask.tolist() == [[True, True], [True, False]]
    assert batch.inputs.tolist() == [[0, c, 0], [0, e, f]]
    assert batch.targets.tolist() == [[c, 0, 0], [e, f, 0]]
    assert batch.mask.tolist() == [[True, True, False], [True, True, True]]
    assert batch.words is None


def test_the_end_mark_is_that_of_the_target() -> None:
    parsed = json.loads(BPE.json)
    vocab = parsed["model"]["vocab"]
    vocab["<|endoftext|>"], vocab["!"] = vocab["!"], vocab.pop("<eos>")
    target = Tokenizer.from_json(json.dumps(parsed))
    end, cat = BPE.id_of("!"), BPE.id_of("cat")
    assert target.eos == end != 0
    batch = PairBatches(Pairs.of([("cat", "cat")], BPE, target), max_tokens=10).at(0)
    assert batch.inputs.tolist() == [[end, cat]]
    assert batch.targets.tolist() == [[cat, end]]


def test_lengths_are_rounded_up_four_to_an_octave() -> None:
    lengths = np.arange(1, 70)
    classes = sorted(set(round_up(lengths).tolist()))
    assert classes == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80]
    assert (round_up(lengths) >= lengths).all()
    assert round_up(round_up(lengths)).tolist() == round_up(lengths).tolist()


def test_classes_go_up_by_target_and_to_and_fro_by_source() -> None:
    pairs = of_lengths([(1, 1), (9, 1), (1, 2), (10, 2), (1, 3), (5, 3)])
    number, n_source, n_target = classify_lengths(pairs)
    assert number.tolist() == [0, 1, 3, 2, 4, 5]
    assert n_source.tolist() == [1, 9, 10, 1, 1, 5]
    assert n_target.tolist() == [2, 2, 3, 3, 4, 4]


def test_one_class_has_the_length_of_its_longest() -> None:
    number, n_source, n_target = classify_lengths(of_lengths([(9, 16), (10, 18), (9, 17)]))
    assert number.tolist() == [0, 0, 0]
    assert n_source.tolist() == [10, 10, 10]
    assert n_target.tolist() == [19, 19, 19]


def test_cuts_by_hand() -> None:
    # 2 x (3 + 4) = 14 fits into 14, 3 x 7 does not; then 1 x (3 + 9), to which another of its like would add 12.
    n_source, n_target = np.array([3, 2, 3, 3, 3]), np.array([4, 4, 4, 9, 9])
    assert cut_batches(n_source, n_target, max_tokens=14) == [0, 2, 3, 4, 5]
    assert cut_batches(n_source, n_target, max_tokens=100) == [0, 5]


def test_long_pairs_are_left_out_and_counted() -> None:
    batches = PairBatches(of_lengths([(3, 3), (4, 2), (2, 4), (1, 1)]), max_tokens=100, max_lengths=MaxLengths(3, 3))
    assert (batches.n_left_out, len(batches.pairs)) == (2, 2)
    assert sorted(batches.pairs.source_lengths.tolist()) == [1, 3]
    assert PairBatches(of_lengths([(3, 3)]), max_tokens=100).n_left_out == 0


def test_pairs_that_no_batch_has_room_for_are_left_out_and_counted_where_bad_ones_are() -> None:
    pairs = of_lengths([(3, 3), (30, 9), (30, 10), (1, 1), (9, 31)])
    batches = PairBatches(pairs, max_tokens=40, max_lengths=MaxLengths(target=30), skips_bad=True)
    assert (batches.n_left_out, batches.n_too_large) == (1, 1)
    assert batches.pairs.rows.tolist() == [0, 1, 3]
    assert PairBatches(pairs, max_tokens=41, skips_bad=True).n_too_large == 0


def test_batches_do_not_come_in_the_order_of_their_lengths() -> None:
    batches = PairBatches(of_lengths([(1 + i % 3, 1 + i % 40) for i in range(200)]), max_tokens=120)
    longest = [int(batches.at(i).mask.sum(axis=1).max()) for i in range(batches.per_epoch)]
    assert longest != sorted(longest)


def test_epochs_and_seeds_differ_in_what_goes_together() -> None:
    pairs = of_lengths([(5, 5)] * 60)

    def groups(batches: PairBatches, epoch: int) -> set[frozenset[int]]:
        first = epoch * batches.per_epoch
        return {frozenset(batches.indices(first + i).tolist()) for i in range(batches.per_epoch)}

    first, other_seed = (PairBatches(pairs, max_tokens=110, seed=seed) for seed in (0, 1))
    assert groups(first, 0) != groups(first, 1)
    assert groups(first, 0) != groups(other_seed, 0)


def test_in_order_gives_every_pair_once_with_its_number() -> None:
    draws = np.random.default_rng(0)
    pairs = of_lengths([(int(s), int(t)) for s, t in draws.integers(1, 30, size=(100, 2))])
    seen = []
    for numbers, batch in read_in_order(pairs, 300):
        assert batch.source.size + batch.targets.size <= 300
        assert batch.source_mask.sum(axis=1).tolist() == pairs.source_lengths[numbers].tolist()
        assert batch.mask.sum(axis=1).tolist() == (pairs.target_lengths[numbers] + 1).tolist()
        seen += numbers.tolist()
    assert sorted(seen) == list(range(100))


def test_in_order_leaves_out_nothing() -> None:
    pairs = of_lengths([(30, 30), (2, 2), (3, 2)])
    assert [numbers.tolist() for numbers, _ in read_in_order(pairs, 20)] == [[1, 2], [0]]
    assert list(read_in_order(pairs.select(np.array([], dtype=np.int64)), 20)) == []


def test_copied_words_have_ids_beyond_the_vocabulary_in_words_and_targets_alone() -> None:
    source, target = words("the cat sat near"), words("die Katze saß the")
    pairs = Pairs.of([("the wug saw the blick", "die blick the wug dax"), ("the cat", "die Katze")], source, target)
    batch = PairBatches(pairs, max_tokens=100, copies=True).at(0)
    V, the, die, cat = target.vocab_size, target.id_of("the"), target.id_of("die"), target.id_of("Katze")
    assert batch.words is not None
    # cat, then the three words of the other source, are unknown to the target.
    assert batch.words.tolist() == [[the, V, -1, -1, -1], [the, V, V + 1, the, V + 2]]
    assert batch.targets.tolist() == [[die, cat, 0, 0, 0, 0], [die, V + 2, the, V, 1, 0]]
    assert batch.inputs.tolist() == [[0, die, cat, 0, 0, 0], [0, die, 1, the, 1, 1]]
    assert batch.source.tolist()[0][:2] == source.encode("the cat").tolist()
    ((_, again),) = read_in_order(pairs, 100, copies=True)
    assert again.words is not None
    assert again.words.tolist() == batch.words.tolist()


def tagged(tokenizer: Tokenizer, text: str, target: str) -> Pairs:
    tokenizer = add_tags(tokenizer, ["<2de>"])
    plain = Pairs.of([(text, target)], tokenizer)
    ids = Rows.of([[tokenizer.id_of("<2de>"), *plain.source_ids(0)]])
    return Pairs(Side(plain.source.texts, ids, tokenizer), plain.target, plain.rows, np.array([1]), ("<2de>",))


def test_a_tag_is_not_copied() -> None:
    batch = PairBatches(tagged(words("the cat"), "the wug", "wug"), max_tokens=100, copies=True).at(0)
    assert batch.words is not None
    assert batch.source.tolist() == [[4, 3, 1]]
    assert batch.words.tolist() == [[-1, 3, 5]]
    assert batch.targets.tolist() == [[5, 0]]


def test_bpe_dropout_cuts_anew_each_epoch_and_keeps_text_and_tag() -> None:
    batches = PairBatches(tagged(BPE, "the cat sat", "on the mat"), max_tokens=100, p_bpe_dropout=0.5)
    found = [batches.at(epoch) for epoch in range(20)]
    tag = batches.pairs.source.tokenizer.id_of("<2de>")
    assert {row.source[0, 0] for row in found} == {tag}
    assert {BPE.decode(row.source[0, 1:]) for row in found} == {"the cat sat"}
    assert {BPE.decode(row.targets[0, :-1]) for row in found} == {"on the mat"}
    assert len({tuple(row.source[0]) for row in found}) > 5
    assert found[3].inputs[0, 1:].tolist() == found[3].targets[0, :-1].tolist()


def test_bpe_dropout_cuts_equal_texts_differently() -> None:
    pairs = Pairs.of([("the cat sat on the mat", "the hat and the cat")] * 20, BPE)
    batch = PairBatches(pairs, max_tokens=2000, p_bpe_dropout=0.5).at(0)
    assert len({tuple(row) for row in batch.source}) > 10
    assert len({tuple(row) for row in batch.targets}) > 10


def test_bpe_dropout_never_makes_a_side_longer_than_max_lengths() -> None:
    pairs = Pairs.of([("the cat sat", "the mat")], BPE)
    n = int(pairs.source_lengths[0])
    batch = PairBatches(pairs, max_tokens=100, max_lengths=MaxLengths(n, n), p_bpe_dropout=1.0).at(0)
    assert batch.source.tolist() == [pairs.source_ids(0).tolist()]
    assert batch.inputs.tolist() == [[0, *pairs.target_ids(0)]]
    longer = PairBatches(pairs, max_tokens=100, p_bpe_dropout=1.0).at(0)
    assert longer.source.shape == (1, len("the cat sat"))
    assert longer.targets.shape == (1, len("the mat") + 1)


def test_what_cannot_work_is_refused() -> None:
    pairs = of_lengths([(3, 4), (30, 10)])
    with pytest.raises(
        RegardError,
        match=r"A pair \('x{30}' to 'y{10}'\) has 41 tokens .* a batch holds 40\. .* at least 41, .*--skip-bad",
    ):
        PairBatches(pairs, max_tokens=40)
    with pytest.raises(RegardError, match=r"all 2 have more than 7 tokens.* teaching\.max_tokens at least 8"):
        PairBatches(pairs, max_tokens=7, skips_bad=True)
    with pytest.raises(
        RegardError, match=r"no pairs to make batches of: all 2 have more than 2 tokens in the source\."
    ):
        PairBatches(pairs, max_tokens=100, max_lengths=MaxLengths(source=2))
    with pytest.raises(RegardError, match=r"There are no pairs to make batches of\. Give others"):
        PairBatches(pairs.select(np.array([], dtype=np.int64)), max_tokens=100)
    with pytest.raises(RegardError, match=r"Only words can be copied, and the target tokenizer is one of 'byte'"):
        PairBatches(pairs, max_tokens=100, copies=True)
    with pytest.raises(RegardError, match=r"BPE dropout needs a byte-level BPE tokenizer .*, not one of 'byte'"):
        PairBatches(pairs, max_tokens=100, p_bpe_dropout=0.1)
    with pytest.raises(RegardError, match=r"copies needs word tokenizers and p_bpe_dropout 0\.1 needs bpe"):
        PairBatches(pairs, max_tokens=100, p_bpe_dropout=0.1, copies=True)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif("REGARD_DATA" not in os.environ, reason="REGARD_DATA is not set")
def test_under_a_tenth_of_a_batch_is_padding(tmp_path: Path) -> None:
    folder = Path(os.environ["REGARD_DATA"]) / "multi30k"
    data = PairsConfig(train=(str(folder / "train.en"), str(folder / "train.de")), p_valid=0, p_test=0)
    pairs = prepare_pairs(data, TokenizerConfig(kind="bpe", vocab_size=8000), cache=tmp_path).train
    assert len(pairs) == 29_000
    n_tokens = int((pairs.source_lengths + pairs.target_lengths + 1).sum())
    for max_tokens in (1024, 4096, 16384):
        batches = PairBatches(pairs, max_tokens=max_tokens)
        shapes = [batches.at(i) for i in range(batches.per_epoch)]
        n_places = sum(batch.source.size + batch.targets.size for batch in shapes)
        assert n_tokens / n_places > 0.9


@pytest.mark.parametrize("max_together", [2**15, 7])
def test_under_bpe_dropout_every_pair_comes_once_an_epoch_and_batches_depend_on_their_number_alone(
    monkeypatch: pytest.MonkeyPatch, max_together: int
) -> None:
    monkeypatch.setattr(pair_dropout_order, "MAX_TOGETHER", max_together)
    texts = ["the cat", "the cat sat", "the cat sat on the mat", "the cat and the hat sat on the mat"]
    pairs = Pairs.of([(texts[i % 4], texts[i % 3]) for i in range(20)], BPE)
    used, orders = PairBatches(pairs, max_tokens=60, p_bpe_dropout=0.4), set()
    for epoch in range(2):
        numbers = range(epoch * used.per_epoch, (epoch + 1) * used.per_epoch)
        order = [i for number in numbers for i in used.indices(number).tolist()]
        assert sorted(order) == list(range(20))
        orders.add(tuple(order))
    assert len(orders) == 2
    for number in (used.per_epoch, 0, 2 * used.per_epoch - 1):
        again, found = PairBatches(pairs, max_tokens=60, p_bpe_dropout=0.4).at(number), used.at(number)
        assert np.array_equal(found.source, again.source)
        assert np.array_equal(found.targets, again.targets)
        assert used.shape(number) == (*found.source.shape, found.targets.shape[1])
        chosen = used.indices(number).tolist()
        assert [BPE.decode(row[mask]) for row, mask in zip(found.source, found.source_mask, strict=True)] == [
            pairs.source_text(i) for i in chosen
        ]


def test_under_bpe_dropout_pairs_of_like_lengths_in_that_epoch_go_together() -> None:
    pairs = Pairs.of([("the cat sat on the mat", "the hat and the cat")] * 200, BPE)
    batches = PairBatches(pairs, max_tokens=200, p_bpe_dropout=0.5)
    n_real = sum(int(batches.at(i).source_mask.sum()) for i in range(batches.per_epoch))
    n_padded = sum(batches.at(i).source_mask.size for i in range(batches.per_epoch))
    assert n_padded < 1.1 * n_real  # by their lengths without dropout they are all alike, and it is 1.2
