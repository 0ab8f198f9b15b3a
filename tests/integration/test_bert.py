"""BERT at the command line: train, fill, embed, write, export."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_bert import write_hf_bert

import regard
from regard.errors import RegardError
from regard.run.embed import open_encoder
from regard.tasks.embedding import POOLS, Embedder
from regard.tasks.reader_config import LAYERS

TEXT = "The cat sat on the mat. The dog barked at the old man. It did not bark again.\n\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    (folder / "my.txt").write_text(TEXT * 60)
    given = {
        "model": {"name": "bert", "size": "tiny", "d_model": 16, "n_layers": 4},
        "tokenizer": {"vocab_size": 90, "lowercase": True},
        "train": {"max_steps": 3, "n_batch": 4, "n_context": 24, "eval_every": 3},
        "checkpoint": {"has_tensorboard": False},
    }
    regard.train(given, data=str(folder / "my.txt"), out=folder / "run")
    return folder / "run"


def regard_says(*words: object, text: str = "") -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "regard", *map(str, words)], capture_output=True, text=True, input=text
    )
    return done.returncode, done.stdout, done.stderr


def test_masks_are_filled_with_probabilities(run: Path) -> None:
    code, out, _ = regard_says("fill", run, "The [MASK] sat on the [MASK].", "--json", "--top-k", 3)
    found = json.loads(out)
    assert code == 0
    assert [len(place) for place in found["places"]] == [3, 3]
    chances = [candidate["probability"] for candidate in found["places"][0]]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) < 1
    assert "[MASK]" not in found["best"]
    assert not {candidate["token"] for candidate in found["places"][0]} & {"[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"}


def test_a_text_without_a_mask_is_refused(run: Path) -> None:
    code, _, err = regard_says("fill", run, "The dog barked.")
    assert code == 2
    assert "There is no [MASK] in 'The dog barked.'" in err
    assert "Traceback" not in err


def test_a_left_to_right_run_says_what_it_sees_beside(run: Path, tmp_path: Path) -> None:
    given = {
        "model": {"name": "lstm", "d_model": 8, "d_hidden": 8},
        "train": {"max_steps": 2, "n_batch": 2, "eval_every": 2},
    }
    given |= {"tokenizer": {"kind": "word", "vocab_size": None}, "checkpoint": {"has_tensorboard": False}}
    other = regard.train(given, data=str(run.parent / "my.txt"), out=tmp_path / "lm")
    assert isinstance(other, regard.LanguageModelRun)
    assert regard.api.embed(tmp_path / "lm", ["The dog", ""], tmp_path / "lm.npz") == (2, 8)
    code, out, _ = regard_says("fill", run, "The dog [MASK] at", "--beside", tmp_path / "lm", "--json")
    assert code == 0
    beside = json.loads(out)["beside"][0]
    assert [(b["token"], b["probability"]) for b in beside] == other.predict_next("The dog", 5)
    code, out, _ = regard_says("fill", run, "The dog [MASK] at", "--beside", tmp_path / "lm")
    assert "from the left alone" in out


def test_all_probabilities_of_a_place_sum_to_one_and_neighbours_change_nothing(run: Path) -> None:
    loaded = regard.load(run, kind=regard.MaskedLanguageModelRun)
    n = loaded.tokenizer.vocab_size
    alone = loaded.fill("The [MASK] sat.", n)
    assert abs(sum(c.probability for c in alone.places[0]) - 1) < 1e-5
    together = list(loaded.predict(["The old man sat on the [MASK] mat.", "The [MASK] sat."], n))[1]
    for a, b in zip(alone.places[0], together.places[0], strict=True):
        assert abs(a.probability - b.probability) < 1e-6


def test_a_text_that_is_too_long_to_fill_is_refused(run: Path) -> None:
    loaded = regard.load(run, kind=regard.MaskedLanguageModelRun)
    with pytest.raises(RegardError, match=r"reads at most 24\. Give less of it around \[MASK\]"):
        loaded.fill("the cat " * 30 + "[MASK]")


@pytest.mark.parametrize("layers", LAYERS[:-1])
@pytest.mark.parametrize("pool", POOLS)
def test_vectors_do_not_depend_on_the_texts_beside_and_long_texts_lose_no_token(
    run: Path, layers: str, pool: str
) -> None:
    encoder, tokenizer, _ = open_encoder(run, "cpu", "float32")
    embedder = Embedder(encoder, tokenizer, layers, pool, stride=5)
    long = "the old dog barked at the cat " * 8
    texts = ["The cat sat.", long, "", "on"]
    together = list(embedder.embed(texts, n_batch=3))
    for text, found in zip(texts, together, strict=True):
        (alone,) = embedder.embed([text])
        np.testing.assert_allclose(found, alone, rtol=0, atol=1e-5)
    width = 64 if layers == "concat-last-four" else 16
    n_tokens = len(tokenizer.encode(long))
    assert together[1].shape == ((n_tokens, width) if pool == "none" else (width,))


def test_a_vector_is_what_the_encoder_gives(run: Path) -> None:
    encoder, tokenizer, _ = open_encoder(run, "cpu", "float32")
    marks = tokenizer.marks
    assert marks is not None
    ids = torch.tensor([marks.frame(tokenizer.encode("The cat sat.").tolist())[0]])
    with torch.no_grad():
        states = encoder.encode(ids, torch.ones_like(ids, dtype=torch.bool))
    sums = torch.stack(states[-4:]).sum(dim=0)[0, 1:-1].mean(dim=0)
    (found,) = Embedder(encoder, tokenizer, "sum-last-four", "mean").embed(["The cat sat."])
    np.testing.assert_allclose(found, sums.numpy(), rtol=0, atol=1e-5)
    (found,) = Embedder(encoder, tokenizer, "last", "first").embed(["The cat sat."])
    np.testing.assert_allclose(found, states[-1][0, 0].numpy(), rtol=0, atol=1e-5)


def test_a_file_of_vectors_is_written_from_a_run_or_a_hugging_face_folder(run: Path, tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text("the cat sat\nthe dog\n")
    code, out, err = regard_says("embed", run, tmp_path / "my.txt", "--out", tmp_path / "a.npz")
    assert code == 0, err
    assert "2 texts, 2 vectors of width 16" in out
    assert np.load(tmp_path / "a.npz")["vectors"].shape == (2, 16)
    pytest.importorskip("transformers")
    write_hf_bert(tmp_path / "theirs", "roberta", "Model")
    regard.api.embed(tmp_path / "theirs", ["the cat sat", "the dog"], tmp_path / "b.npz", pool="none")
    with np.load(tmp_path / "b.npz") as found:
        assert found["vectors"].shape == (found["lengths"].sum(), 12)


def test_what_cannot_be_embedded_says_why(run: Path, tmp_path: Path) -> None:
    cases = (
        ({"layers": "mix"}, "this model has learned none"),
        ({"layers": "lsat"}, "Did you mean 'last'"),
        ({"pool": "sum"}, "pool must be one of mean, max"),
        ({"to": tmp_path / "x.csv"}, r"ends in \.npz or \.parquet"),
    )
    for changes, sentence in cases:
        options = {"folder": run, "texts": ["a"], "to": tmp_path / "x.npz"} | changes
        with pytest.raises(RegardError, match=sentence):
            regard.api.embed(**options)  # type: ignore[arg-type]


def test_text_is_written_by_repeated_masking_and_says_so(run: Path) -> None:
    loaded = regard.load(run, kind=regard.MaskedLanguageModelRun)
    text = loaded.generate("The cat", max_tokens=6, seed=1)
    assert isinstance(text, str)
    assert text.startswith("the cat")
    assert loaded.generate("The cat", max_tokens=6, seed=1) == text
    several = loaded.generate("The cat", n=3, max_tokens=6, seed=1)
    assert several[0] == text
    assert len(set(several)) > 1
    code, out, err = regard_says("generate", run, "--prompt", "The cat", "--max-tokens", 6)
    assert code == 0
    assert "repeated masking" in err
    assert out.startswith("the cat")


def test_a_bert_whose_weights_are_no_numbers_says_so(run: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(run, tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    save_file({name: torch.full_like(w, torch.nan) for name, w in weights.items()}, broken / "model.safetensors")
    regard.api.check(broken, is_trusted=True)
    loaded = regard.load(broken, kind=regard.MaskedLanguageModelRun)
    for temperature in (0.0, 1.0):
        with pytest.raises(RegardError, match=r"are not numbers \(NaN\).* Take its model.safetensors from a copy"):
            loaded.generate(max_tokens=3, temperature=temperature)
    with pytest.raises(RegardError, match=r"are not numbers \(NaN\)"):
        loaded.fill("The [MASK] sat")
    with pytest.raises(RegardError, match="from 1 to 10,000, not 10001"):
        loaded.generate(n=10_001)
    words = ("--word", "cat", "--text", "the cat sat", "--text", "a cat left", "--out", tmp_path / "page")
    code, _, err = regard_says("look", broken, *words)
    assert code == 2, err
    assert "are not numbers (NaN)" in err


def test_its_text_is_scored_under_a_left_to_right_run_beside_that_runs_own(run: Path, tmp_path: Path) -> None:
    regard.train(model="ngram", data=str(run.parent / "my.txt"), out=tmp_path / "lm")
    words = ("--prompt", "The cat", "--max-tokens", 6, "--score-under", tmp_path / "lm", "--json", "--n", 2)
    code, out, err = regard_says("generate", run, *words)
    assert code == 0, err
    judge = regard.load(tmp_path / "lm")
    for found in map(json.loads, out.splitlines()):
        assert found["bits_per_byte"] == pytest.approx(judge.score(found["text"]).bits_per_byte)
        own = found["its_own_text"]
        assert own.startswith("The cat")
        assert len(own) <= len(found["text"])
        assert found["bits_per_byte_of_its_own"] == pytest.approx(judge.score(own).bits_per_byte)
        assert found["bits_per_byte_of_its_own"] < found["bits_per_byte"]  # three steps taught BERT nothing
    code, _, err = regard_says("generate", tmp_path / "lm", "--score-under", tmp_path / "lm")
    assert code == 2
    assert "is for text by repeated masking" in err


def test_the_mix_that_a_task_learned_gives_vectors_in_a_parquet_file(run: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    data = {"train": "grammar:en-ner:30", "valid": "grammar:en-ner:6", "test": "grammar:en-ner:6"}
    given = {"data": data, "encoder_from": str(run), "encoder": {"layers": "mix"}, "optimizer": {"lr": 0.01}}
    given |= {"train": {"max_steps": 3, "n_batch": 8}, "checkpoint": {"has_tensorboard": False}}
    tagger = regard.train(given, task="tag", out=tmp_path / "tagger")
    texts = ["The cat sat.", "The dog"]
    shape = regard.api.embed(tmp_path / "tagger", texts, tmp_path / "x.parquet", layers="mix", pool="mean")
    assert shape == (2, 16)
    table = parquet.read_table(tmp_path / "x.parquet")
    assert table.column_names == ["text", "vector"]
    assert table["text"].to_pylist() == [0, 1]
    marks = tagger.tokenizers[0].marks
    for text, found in zip(texts, table["vector"].to_pylist(), strict=True):
        ids = torch.tensor([marks.frame(tagger.tokenizers[0].encode(text).tolist())[0]])
        with torch.no_grad():
            states = tagger.model.encoder.encode(ids, torch.ones_like(ids, dtype=torch.bool))
            right = tagger.model.choice(states)[0, 1:-1].mean(dim=0)
        np.testing.assert_allclose(found, right.numpy(), rtol=0, atol=1e-5)
    regard.api.embed(tmp_path / "tagger", texts, tmp_path / "y.parquet", layers="last", pool="none")
    assert parquet.read_table(tmp_path / "y.parquet")["text"].to_pylist() == [0, 0, 0, 0, 1, 1]


def test_masked_language_models_of_one_vocabulary_are_compared_in_masked_nats(run: Path, tmp_path: Path) -> None:
    text, steps = str(run.parent / "my.txt"), "train.max_steps=30"
    given = regard.load(run).config.to_dict() | {"tokenizer": {"path": str(run)}}
    regard.train(given, data=text, settings=[steps, "optimizer.lr=0.02"], out=tmp_path / "longer")
    found = regard.compare_runs([run, tmp_path / "longer"], out=tmp_path / "compare")
    assert found.setup.metric == "nats a masked token"
    assert [contender.name for contender in found.ranked] == ["longer", "run"]
    assert found.ranked[0].score.value < found.ranked[1].score.value < 5
    assert all(0 <= contender.score.others["masked tokens right, %"] <= 100 for contender in found.ranked)
    other = given | {"tokenizer": {"vocab_size": 60, "lowercase": True}}
    regard.train(other, data=text, out=tmp_path / "other")
    with pytest.raises(RegardError, match="These runs are not tested on the same data"):
        regard.compare_runs([run, tmp_path / "other"], out=tmp_path / "refused")


def test_its_own_export_loads_in_transformers_with_the_same_probabilities(run: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    loaded = regard.load(run, kind=regard.MaskedLanguageModelRun)
    regard.api.export(run, tmp_path / "theirs")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "theirs", dtype=torch.float64).eval()
    rows = tokenizer("The [MASK] sat.", return_tensors="pt")
    ids = loaded.encode_masked("The [MASK] sat.")
    assert rows["input_ids"][0].tolist() == ids
    with torch.no_grad():
        ours = loaded.model.double().encode(rows["input_ids"], None)[-1]
        torch.testing.assert_close(model(**rows).logits, loaded.model.logits(ours), rtol=0, atol=1e-10)


def test_a_trace_has_attention_to_both_sides(run: Path) -> None:
    trace = regard.load(run).trace("The cat sat.")
    attention = trace.taps["layers.0.attention"]
    np.testing.assert_allclose(attention.sum(axis=-1), 1, atol=1e-5)
    assert (attention[:, 0, 1:] > 0).all()
    assert trace.tokens[0] == "[CLS]"
    assert trace.nats[0] == 0
    assert (trace.nats[1:-1] > 0).all()


def test_other_kinds_of_tokens_are_refused_for_masked_text(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text(TEXT)
    given = {"model": {"name": "bert"}, "tokenizer": {"kind": "bpe"}}
    with pytest.raises(RegardError, match=r"tokenizer\.kind is bpe, and a masked language model learns a wordpiece"):
        regard.plan(given, data=str(tmp_path / "my.txt"))
