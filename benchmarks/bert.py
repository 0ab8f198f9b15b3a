"""BERT against Hugging Face's, measured in one run: an update of its pre-training on a GPU, its vectors on a CPU.

    python benchmarks/bert.py [--device cuda|cpu] [--dropout 0.1] [--precision bf16] [--out results.json] [--tiny]

cuda  BERT base, bf16, masked tokens and next sentences, 256 x 128 and 64 x 512 tokens, a whole update (forward,
      backward, clipping at 1, AdamW): Regard's own training loop, which masks new rows for every update, compiled,
      against BertForPreTraining under torch.compile with the fused AdamW, on one batch that lies on the device. Ours,
      theirs, ours again; each the best of three times 20 updates. Theirs computes the logits of every token, as its
      loss does; ours those of the masked ones.
cpu   BERT base, the states of the last layer of 16 texts of 128 tokens, against BertModel with its SDPA attention, in
      turns, the weights copied across; the states must be equal.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from ours import updates
from rivals import update
from timing import Figures, describe_machine, options, take_turns, time_best
from torch import Tensor

from regard.data.masked_config import MaskingConfig
from regard.data.stream import Stream
from regard.models.bert import Bert
from regard.models.bert_config import BertConfig
from regard.models.table import build_model
from regard.tasks.masked_objective import MaskedObjective
from regard.text.marks import BERT_MARKS, find_marks
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.learner import Learner
from regard.training.weights import load_weights, named_weights
from regard.weights.bert_form import to_our_bert

V = 30_522
BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def main() -> None:
    parser = options(__doc__ or "")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--dropout", type=float, default=0.1, help="of both sides, in training")
    parser.add_argument("--precision", choices=("float32", "bf16"), default="float32", help="of both sides, on a CPU")
    given = parser.parse_args()
    if given.device == "cuda" and not torch.cuda.is_available() and not given.tiny:
        raise SystemExit("torch finds no GPU. `--device cpu` measures vectors; `--tiny` tries the script on the CPU.")
    print(describe_machine())
    figures = Figures()
    if given.device == "cuda" or given.tiny:
        for rows, context in ((2, 24),) if given.tiny else ((256, 128), (64, 512)):
            pre_train(figures, rows, context, given.dropout, given.tiny)
    if given.device == "cpu" or given.tiny:
        embed(figures, given.tiny, torch.bfloat16 if given.precision == "bf16" else torch.float32)
    figures.write(given.out)


def pre_train(figures: Figures, rows: int, context: int, p_dropout: float, is_tiny: bool) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    vocab_size, n = (200, 1) if is_tiny else (V, 20)
    learner = masked_learner(rows, context, vocab_size, p_dropout, device, is_tiny)
    theirs = their_update(learner.objective, vocab_size, p_dropout, device, is_tiny)
    seconds: dict[str, list[float]] = {"ours": [], "Hugging Face": []}
    ours = updates(learner)
    for who, step in (("ours", ours), ("Hugging Face", theirs), ("ours", ours)):
        taken, gib = time_best(step, n, n_warm=1 if is_tiny else 5)
        seconds[who].append(taken)
        figures.note(f"pre-training {rows} x {context}: {who}", taken, rows * context, gib)
    ratio = min(seconds["Hugging Face"]) / max(seconds["ours"])
    figures.note_ratio(f"pre-training {rows} x {context}, ratio", ratio, bar=1.15)


def masked_learner(
    rows: int, context: int, vocab_size: int, p_dropout: float, device: torch.device, is_tiny: bool
) -> Learner:
    """What pre-trains a BERT, on random tokens in documents of 300."""
    shape = TINY if is_tiny else BASE
    config = BertConfig(
        d_model=shape["hidden_size"], n_layers=shape["num_hidden_layers"], n_heads=shape["num_attention_heads"],
        max_context=context, p_dropout=p_dropout,
    )  # fmt: skip
    names = [*BERT_MARKS, ".", *(f"w{i}" for i in range(vocab_size - 6))]
    vocab = {name: i for i, name in enumerate(names)}
    tokenizer: Any = SimpleNamespace(
        marks=find_marks(vocab), vocab_size=vocab_size, kind="wordpiece", hf=SimpleNamespace(get_vocab=lambda: vocab)
    )
    ids = np.random.default_rng(0).integers(5, vocab_size, 8 * rows * context, dtype=np.int32)
    ids[299::300], ids[15::16] = 3, 5
    text: Any = SimpleNamespace(train=Stream.of(ids), tokenizer=tokenizer, fingerprint="")
    train = TrainConfig(n_batch=rows, n_context=context)
    model: Bert = build_model("bert", config, vocab_size).to(device)
    runtime = RuntimeConfig(precision="float32" if is_tiny else "bf16", is_compiled=not is_tiny)
    objective = MaskedObjective(model, text, MaskingConfig(), train, seed=0)
    return Learner(model, objective, train=train, optimizer=OptimizerConfig(lr=1e-4), runtime=runtime)


def their_update(
    objective: Any, vocab_size: int, p_dropout: float, device: torch.device, is_tiny: bool
) -> Callable[[], float | None]:
    """An update of Hugging Face's BertForPreTraining on the first batch."""
    import transformers

    config = transformers.BertConfig(
        vocab_size=vocab_size, **(TINY if is_tiny else BASE), max_position_embeddings=objective.batches.n_context,
        hidden_dropout_prob=p_dropout, attention_probs_dropout_prob=p_dropout, attn_implementation="sdpa",
    )  # fmt: skip
    model = transformers.BertForPreTraining(config).to(device).train()
    tokens, segments, places, targets, is_there, is_next = (t.to(device) for t in objective.at(0).tensors)
    labels = torch.full_like(tokens, -100).scatter(1, places, targets.masked_fill(~is_there, -100))
    call: Any = model if is_tiny else torch.compile(model)

    def loss() -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=not is_tiny):
            found: Tensor = call(
                input_ids=tokens, token_type_ids=segments, labels=labels, next_sentence_label=1 - is_next
            ).loss
        return found

    return update(model, loss, is_fused=True)


def embed(figures: Figures, is_tiny: bool, dtype: torch.dtype) -> None:
    import transformers

    shape, vocab_size, rows, context, n = (TINY, 200, 2, 16, 2) if is_tiny else (BASE, V, 16, 128, 7)
    config = transformers.BertConfig(
        vocab_size=vocab_size, **shape, max_position_embeddings=512, attn_implementation="sdpa"
    )
    theirs = transformers.BertModel(config).eval()
    ours = BertConfig(
        d_model=shape["hidden_size"], n_layers=shape["num_hidden_layers"], n_heads=shape["num_attention_heads"],
        d_ff=shape["intermediate_size"], has_masked_head=False, has_next_head=False,
    )  # fmt: skip
    model: Bert = build_model("bert", ours, vocab_size).eval()
    load_weights(model, to_our_bert(theirs.state_dict(), named_weights(model), "bert", "theirs"))
    ids = torch.randint(5, vocab_size, (rows, context), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids, dtype=torch.bool)
    with torch.inference_mode():
        found, right = model.encode(ids, mask)[-1], theirs(ids, attention_mask=mask.long()).last_hidden_state
        torch.testing.assert_close(found, right, rtol=0, atol=1e-4)
        model, theirs = model.to(dtype), theirs.to(dtype)
        sides = {
            "ours": lambda: model.encode(ids, mask)[-1],
            "Hugging Face": lambda: theirs(ids, attention_mask=mask.long()).last_hidden_state,
        }
        figures.note_turns(f"vectors of {rows} x {context}", take_turns(sides, n), rows * context, bar=1.2)


if __name__ == "__main__":
    main()
