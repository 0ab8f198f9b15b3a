"""A tiny Marian in the files in which they are published: SentencePiece's models, vocab.json, and random weights."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers

SOURCES = (
    "A dog runs.", "The cat sat on the mat.", "Where is the dog?", "I see a small house and a tree.",
    "The dogs run to the houses, and the cats see them.", "Run!", "Is the ﬁne house (half: ½) there?",
)  # fmt: skip
TARGETS = (
    "Ein Hund läuft.", "Die Katze saß auf der Matte.", "Wo ist der Hund?",
    "Ich sehe ein kleines Haus und einen Baum.", "Die Hunde laufen zu den Häusern, und die Katzen sehen sie.", "Lauf!",
)  # fmt: skip


def train_pieces(lines: tuple[str, ...], **more: Any) -> bytes:
    """A model of SentencePiece's."""
    found = io.BytesIO()
    given: dict[str, Any] = {"vocab_size": 70, "model_type": "unigram", "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 3), model_writer=found, **(given | {"num_threads": 1} | more)
    )
    return found.getvalue()


def list_pieces(model: bytes) -> list[str]:
    """The pieces of a model of SentencePiece's, without its marks."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(3, processor.get_piece_size())]


def write_published(folder: Path, *, std: float = 0.2, **config: Any) -> tuple[Any, Any]:
    """Write such a folder; returns the model, in float64, and the tokenizer of transformers'.

    vocab.json lacks some pieces, as published ones do, and has a language.
    """
    folder.mkdir(parents=True)
    models = {"source": train_pieces(SOURCES), "target": train_pieces(TARGETS)}
    for side, model in models.items():
        (folder / f"{side}.spm").write_bytes(model)
    pieces = sorted({piece for model in models.values() for piece in list_pieces(model)})
    names = ["</s>", "<unk>", *(piece for i, piece in enumerate(pieces) if i % 9 != 3), ">>de<<", "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends a package that it then does not use
        tokenizer = transformers.MarianTokenizer(*(str(folder / f) for f in ("source.spm", "target.spm", "vocab.json")))
    V = len(names)
    marks = {"pad_token_id": V - 1, "decoder_start_token_id": V - 1, "eos_token_id": 0, "forced_eos_token_id": 0}
    sizes = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 3, "max_position_embeddings": 64}
    sizes |= {
        f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in (("ffn_dim", 24), ("attention_heads", 2))
    }
    flags = {"activation_function": "swish", "scale_embedding": True, "static_position_embeddings": True}
    flags |= {"normalize_before": False, "normalize_embedding": False, "add_final_layer_norm": False}
    torch.manual_seed(0)
    given = {"vocab_size": V, "decoder_vocab_size": V, "init_std": std, **marks, **sizes, **flags, **config}
    model = transformers.MarianMTModel(transformers.MarianConfig(**given)).eval()
    model.final_logits_bias.normal_()
    _learn(model, tokenizer)
    with torch.no_grad():
        model.final_logits_bias[0, V - 1] += 4  # <pad> would be written if it could be
    model.generation_config.update(bad_words_ids=[[V - 1]], renormalize_logits=True, num_beams=4, max_length=40)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.double(), tokenizer


def _learn(model: Any, tokenizer: Any) -> None:
    """Some steps on the sentences, so that what is written for them differs, and ends."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    batch = tokenizer(list(SOURCES[:6]), text_target=list(TARGETS), return_tensors="pt", padding=True)
    batch["labels"] = batch["labels"].masked_fill(batch["labels"] == tokenizer.pad_token_id, -100)
    for _ in range(60):
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
