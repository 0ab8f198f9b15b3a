"""Marians as they are published (Helsinki-NLP/opus-mt), against `sentencepiece` and `transformers`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny_published import SOURCES, TARGETS, list_pieces, train_pieces, write_published

from regard.data.pair_batches import read_in_order
from regard.data.pairs import Pairs
from regard.data.rows import encode_source
from regard.errors import RegardError
from regard.run.exchange import export_run, import_run
from regard.text.charsmap import Charsmap
from regard.text.sentencepiece_file import read_sentencepiece
from regard.text.unigram import Unigram

sentencepiece = pytest.importorskip("sentencepiece")

ODD = (
    "A dog runs.", "  A  dog\tsees\n the cats  ", "日本語 dog", "ﬁne ½ Ⅳ ①", "ｶﾞｷﾞ", "e\u0301 läuft Häuser", "😀👩‍👧",
    "\u200b", "\u00a0\u3000 x", "\ufeffdog", "\x01\x85dog\x00", "▁▁ a ▁", "aaaa aaaaaaaaaaa aaaaaaa", ">>de<< A dog",
    ">>xx<<A dog", ">>", "<<>>", "a >>de<< b", "</", "가각가ᅡᆨ", "İSTANBUL ŒЖк", "zzz", "x" * 300, "the " * 100,
)  # fmt: skip


def write_odd_texts(n: int) -> list[str]:
    """Texts that no one would write, of letters that are known, unknown, changed, or nothing."""
    draws = np.random.default_rng(0)
    letters = list("ADdogse thrunca t.?äüßﬁ日😀\t\u0301 ｶﾞ½▁\u200b\u00a0\x01Öé")
    return ["".join(draws.choice(letters, size=draws.integers(40))) for _ in range(n)]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    folder = tmp_path_factory.mktemp("published") / "opus"
    return folder, *write_published(folder)


@pytest.fixture(scope="module")
def run(published: tuple[Path, Any, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    found: Any = import_run(published[0], tmp_path_factory.mktemp("runs") / "opus")
    found.model.double()
    return found


@pytest.mark.parametrize("rule", ["nmt_nfkc", "nfkc_cf", "identity"])
def test_texts_are_cut_as_sentencepiece_cuts_them(rule: str, tmp_path: Path) -> None:
    model = train_pieces((*SOURCES, *TARGETS, "aaaa aa aaaaaaaa abab"), normalization_rule_name=rule)
    (tmp_path / "source.spm").write_bytes(model)
    found = read_sentencepiece(tmp_path / "source.spm")
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
    charsmap, unigram = Charsmap(found.charsmap), Unigram(found.pieces)
    assert sorted(found.pieces) == sorted(list_pieces(model))
    draws = np.random.default_rng(1)
    alike = ["".join(draws.choice(list("aab "), size=60)) for _ in range(500)]  # many ways are equally probable
    for text in (*ODD, *write_odd_texts(2000), *alike):
        normalized, spans = charsmap.normalize(text)
        assert len(spans) == len(normalized)
        cut = [normalized[start:end] for start, end, _ in unigram.cut(normalized)]
        assert cut == theirs.encode(text, out_type=str), repr(text)


def test_both_sides_have_the_ids_of_marian_tokenizer(published: tuple[Path, Any, Any], run: Any) -> None:
    _, _, theirs = published
    for text in ("", *ODD, *write_odd_texts(1000)):
        source, target = run.source_tokenizer, run.target_tokenizer
        assert encode_source(source, text).tolist() == theirs(text)["input_ids"], repr(text)
        assert [*target.encode(text).tolist(), target.eos] == theirs(text_target=text)["input_ids"], repr(text)
        ids, spans = source.encode_with_offsets(text)
        assert ids.tolist() == source.encode(text).tolist()
        assert all(0 <= start <= end <= len(text) for start, end in spans)


def test_ids_are_read_as_marian_tokenizer_reads_them(published: tuple[Path, Any, Any], run: Any) -> None:
    _, _, theirs = published
    draws = np.random.default_rng(2)
    for _ in range(500):
        ids = draws.integers(run.target_tokenizer.vocab_size, size=draws.integers(12)).tolist()
        assert run.target_tokenizer.decode(ids) == theirs.decode(ids, skip_special_tokens=True)


def test_the_probabilities_of_targets_are_those_of_marian(published: tuple[Path, Any, Any], run: Any) -> None:
    _, theirs, tokenizer = published
    texts = tokenizer(list(SOURCES[:4]), text_target=list(TARGETS[:4]), return_tensors="pt", padding=True)
    x, mask, labels = texts["input_ids"], texts["attention_mask"], texts["labels"]
    y = torch.cat([torch.full((len(labels), 1), run.target_tokenizer.start), labels[:, :-1]], dim=1)
    with torch.no_grad():
        right = theirs(input_ids=x, attention_mask=mask, decoder_input_ids=y).logits.log_softmax(dim=-1)
        found = run.model(x, mask.bool(), y)
    torch.testing.assert_close(found, right, rtol=0, atol=1e-10)
    for i in range(4):  # and what a text costs
        n = int((labels[i] != tokenizer.pad_token_id).sum())
        nats = -right[i, range(n), labels[i, :n]]
        assert run.score(SOURCES[i], TARGETS[i]).nats == pytest.approx(nats.numpy(), rel=0, abs=1e-10)
    pairs = Pairs.of(list(zip(SOURCES[:4], TARGETS[:4], strict=True)), *run.tokenizers)
    for numbers, batch in read_in_order(pairs, 10_000):
        for row, i in enumerate(numbers):
            n = int((labels[i] != tokenizer.pad_token_id).sum())
            assert batch.inputs[row][batch.mask[row]].tolist() == y[i, :n].tolist()
            assert batch.source[row][batch.source_mask[row]].tolist() == tokenizer(SOURCES[i])["input_ids"]


@pytest.mark.parametrize("beam", [1, 4])
def test_translations_are_those_of_marian(beam: int, published: tuple[Path, Any, Any], run: Any) -> None:
    """Greedy ones; a beam prunes otherwise there, so that a few may differ, and none has another score."""
    _, theirs, tokenizer = published
    texts = [*SOURCES, "A cat.", "the tree and the house run", "zzz", "Is a dog there?", "see", "Where the mat sat."]
    read = tokenizer(texts, return_tensors="pt", padding=True)
    limits = {"max_new_tokens": 24, "max_length": None, "forced_eos_token_id": None}
    with torch.no_grad():
        written = theirs.generate(**read, num_beams=beam, **limits)
    right = tokenizer.batch_decode(written, skip_special_tokens=True)
    searched = {"beam": beam, "max_length": 24, "max_ratio": None, "length_penalty": "length", "alpha": 1.0}
    found = run.translate(texts, **searched)
    assert sum(a != b for a, b in zip(found, right, strict=True)) <= (0 if beam == 1 else 2)
    assert len(set(found)) > 6
    V, start, eos = theirs.config.vocab_size, run.target_tokenizer.start, run.target_tokenizer.eos
    for text, best in zip(texts, run.predict(texts, **searched), strict=True):
        ids = [*best[0].tokens, eos][:24]
        with torch.no_grad():
            y = torch.tensor([[start, *ids[:-1]]])
            logits = theirs(**tokenizer(text, return_tensors="pt"), decoder_input_ids=y).logits[0]
        log_probs = logits[:, [i for i in range(V) if i != start]].log_softmax(dim=-1)  # <pad> is the last
        assert best[0].log_prob == pytest.approx(float(log_probs[range(len(ids)), ids].sum()), rel=0, abs=1e-10)


def test_padding_is_never_written(run: Any) -> None:
    start = run.target_tokenizer.start
    drawn = run.translate(["A dog runs."] * 20, n_best=3, sampling={"temperature": 3.0, "seed": 1})
    assert not any(start in each.tokens for best in drawn for each in best)
    assert run.translate("") == ""


def test_weights_in_a_pickle_are_read_without_running_it(published: tuple[Path, Any, Any], tmp_path: Path) -> None:
    folder, theirs, _ = published
    shutil.copytree(folder, tmp_path / "old")
    tensors = load_file(folder / "model.safetensors")
    (tmp_path / "old" / "model.safetensors").unlink()
    (tmp_path / "old" / "generation_config.json").unlink()
    shared = tensors["model.shared.weight"]
    tensors |= {"model.encoder.embed_tokens.weight": shared, "lm_head.weight": shared}  # old folders name it thrice
    tensors["model.encoder.embed_positions.weight"] = theirs.model.encoder.embed_positions.weight.detach().float()
    torch.save(tensors, tmp_path / "old" / "pytorch_model.bin")
    first: Any = import_run(folder, tmp_path / "first")
    again: Any = import_run(tmp_path / "old", tmp_path / "again")
    for name, tensor in first.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], tensor), name


def test_a_run_looks_into_what_it_wrote(run: Any) -> None:
    trace = run.trace("A dog runs.", "Ein Hund läuft.")
    assert trace.inputs[0] == "<pad>"
    assert trace.sources[-1] == "</s>"
    assert trace.source_spans[-1] is None
    assert trace["encoder.embedding"].shape[0] == len(trace.sources)
    weights = run.attend_words("A dog runs.", "Ein Hund läuft.")
    assert weights.shape == (3, 3)


@pytest.fixture(scope="module")
def folder(published: tuple[Path, Any, Any]) -> Path:
    return published[0]


def refuse(folder: Path, tmp_path: Path, words: str, change: Any) -> None:
    """A copy of a folder that is changed is refused in these words, and nothing is written."""
    shutil.copytree(folder, tmp_path / "changed")
    change(tmp_path / "changed")
    with pytest.raises(RegardError, match=words):
        import_run(tmp_path / "changed", tmp_path / "run")
    assert not (tmp_path / "run").exists()
    shutil.rmtree(tmp_path / "changed")


def test_broken_files_are_refused_in_a_sentence(folder: Path, tmp_path: Path) -> None:
    def write(name: str, data: bytes) -> Any:
        return lambda changed: (changed / name).write_bytes(data)

    whole, bpe = (folder / "source.spm").read_bytes(), train_pieces(SOURCES, model_type="bpe", vocab_size=60)
    vocab = json.loads((folder / "vocab.json").read_text())
    without = {name: number for name, number in vocab.items() if name != "<pad>"}
    refuse(folder, tmp_path, "ends in the middle of a value", write("source.spm", whole[:500]))
    refuse(folder, tmp_path, r"source\.spm'", write("source.spm", bytes(range(256)) * 4))
    refuse(folder, tmp_path, "no model of SentencePiece's: it has no pieces", write("target.spm", b""))
    refuse(folder, tmp_path, "model of type bpe, and Regard reads unigram models", write("source.spm", bpe))
    refuse(folder, tmp_path, "lacks <pad>", write("vocab.json", json.dumps(without).encode()))
    refuse(folder, tmp_path, "none twice", write("vocab.json", json.dumps(vocab | {"<pad>": 0}).encode()))
    refuse(folder, tmp_path, r"must hold a JSON object", write("vocab.json", b"[1, 2]"))
    refuse(folder, tmp_path, "has a vocabulary for each side", write("target_vocab.json", b"{}"))
    refuse(folder, tmp_path, r"lacks target\.spm: a published Marian has", lambda f: (f / "target.spm").unlink())
    for name, text in (("user_defined_symbols", ["<x>"]), ("byte_fallback", True)):
        given = train_pieces(SOURCES, **{name: text}, vocab_size=360)
        refuse(folder, tmp_path, "which Regard does not read", write("source.spm", given))
    given = train_pieces(SOURCES, add_dummy_prefix=False)
    refuse(folder, tmp_path, "has add_dummy_prefix = false", write("source.spm", given))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"normalize_before": True}, "has normalize_before = true, and Regard reads Marians with false there, as publ"),
        ({"static_position_embeddings": False}, "has static_position_embeddings = false"),
        ({"scale_embedding": False}, "has scale_embedding = false"),
        ({"decoder_start_token_id": 0}, "has decoder_start_token_id = 0"),
        ({"bad_words_ids": [[3]]}, r"has bad_words_ids = \[\[3\]\], and of Marians Regard leaves out <pad> alone"),
        ({"activation_function": "mish"}, "the activation mish, which Regard does not compute"),
        ({"vocab_size": 7}, "has vocab_size = 7"),
        ({"decoder_attention_heads": 4}, "has decoder_attention_heads = 4"),
    ],
)
def test_a_config_of_another_model_is_refused(
    changes: dict[str, Any], words: str, folder: Path, tmp_path: Path
) -> None:
    def change(changed: Path) -> None:
        found = json.loads((changed / "config.json").read_text()) | changes
        (changed / "config.json").write_text(json.dumps(found))

    refuse(folder, tmp_path, words, change)


def test_what_was_imported_is_not_written_for_other_programs(run: Any, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="use the folder that it came from"):
        export_run(run, tmp_path / "out", is_marian=True)
    with pytest.raises(RegardError, match="does not write for CTranslate2"):
        export_run(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()
