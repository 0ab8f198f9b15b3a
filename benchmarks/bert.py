"""BERT against Hugging Face's, measured in one run: an update of its pre-training on a GPU, its vectors on a CPU.

    python benchmarks/bert.py [--device cuda|cpu] [--dropout 0.1] [--precision bf16] [--contexts 128 512] [--threads N]
                              [--out results.json] [--tiny]

cuda  BERT base, bf16, masked tokens and next sentences, 256 x 128 and 64 x 512 tokens, a whole update (forward,
      backward, clipping at 1, AdamW): Regard's own training loop, which masks new rows for every update, compiled,
      against BertForPreTraining under torch.compile with the fused AdamW, on one batch that lies on the device. Ours,
      theirs, ours again; each the best of three times 20 updates. Theirs computes the logits of every token, as its
      loss does; ours those of the masked ones.
cpu   BERT base, the states of the last layer against BertModel with its SDPA attention, the weights copied across; the
      states must be equal. Each side has a process of its own, set up as it comes (ours as `regard embed` does: weights
      packed, freed memory kept), and they take turns. Once 16 texts of 128 tokens, and once 64 texts as long as
      paragraphs of python-docs (1.4 tokens a word, 128 at most) in batches of 16: theirs in order and padded to the
      longest of a batch, ours sorted by length first, as `regard embed` sorts them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from ours import updates
from rivals import update
from timing import Figures, describe_machine, options, serve, take_turns_apart, time_best
from torch import Tensor

from regard.data.builtin import python_docs
from regard.data.masked_config import MaskingConfig
from regard.data.stream import Stream
from regard.kernels.linear import lay_out
from regard.models.bert import Bert
from regard.models.bert_config import BertConfig
from regard.models.table import build_model
from regard.tasks.masked_objective import MaskedObjective
from regard.text.marks import BERT_MARKS, find_marks
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.freed_memory import keep_freed_memory
from regard.training.learner import Learner
from regard.training.weights import load_weights, named_weights
from regard.weights.bert_form import to_our_bert

V = 30_522
TOKENS = 32_768  # of an update
ROWS = 16  # texts of a batch whose vectors are wanted
BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def main() -> None:
    parser = options(__doc__ or "")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--dropout", type=float, default=0.1, help="of both sides, in training")
    parser.add_argument("--precision", choices=("float32", "bf16"), default="float32", help="of both sides, on a CPU")
    parser.add_argument("--contexts", type=int, nargs="+", default=(128, 512), help="tokens of a row, on a GPU")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="on a CPU")
    parser.add_argument("--rounds", type=int, default=7, help="on a CPU")
    parser.add_argument("--side", help="serve this side: what the script itself starts")
    parser.add_argument("--lengths", choices=("full", "real"), default="full", help="for --side")
    given = parser.parse_args()
    if given.side is not None:
        torch.set_num_threads(given.threads)
        dtype = torch.bfloat16 if given.precision == "bf16" else torch.float32
        serve_vectors(given.side, given.lengths, given.tiny, dtype)
        return
    if given.device == "cuda" and not torch.cuda.is_available() and not given.tiny:
        raise SystemExit("torch finds no GPU. `--device cpu` measures vectors; `--tiny` tries the script on the CPU.")
    print(describe_machine())
    figures = Figures()
    if given.device == "cuda" or given.tiny:
        for context in (24,) if given.tiny else given.contexts:
            rows = 2 if given.tiny else TOKENS // context
            pre_train(figures, rows, context, given.dropout, given.tiny)
    if given.device == "cpu" or given.tiny:
        embed(figures, given.tiny, given.precision, given.threads, 1 if given.tiny else given.rounds)
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


def embed(figures: Figures, is_tiny: bool, precision: str, n_threads: int, rounds: int) -> None:
    how = ["--precision", precision, "--threads", str(n_threads), *(["--tiny"] if is_tiny else [])]
    for lengths in ("full", "real"):
        rows = [len(row) for batch in batches_in_order(lengths, is_tiny) for row in batch]
        taken = take_turns_apart(__file__, ("ours", "Hugging Face"), [*how, "--lengths", lengths], rounds, n_warm=1)
        what = f"vectors of {len(rows)} texts, {min(rows)} to {max(rows)} tokens, {precision}"
        figures.note_turns(what, taken, sum(rows), bar=1.2)


def serve_vectors(side: str, lengths: str, is_tiny: bool, dtype: torch.dtype) -> None:
    """Make the states of the last layer, again and again; ours are held equal to theirs first."""
    import transformers

    shape, vocab_size = (TINY, 200) if is_tiny else (BASE, V)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=vocab_size, **shape, max_position_embeddings=512, attn_implementation="sdpa"
    )
    theirs = transformers.BertModel(config).eval()
    batches = batches_in_order(lengths, is_tiny)
    with torch.inference_mode():
        if side == "Hugging Face":
            theirs = theirs.to(dtype)
            padded = [pad(batch) for batch in batches]
            serve(lambda: [theirs(ids, attention_mask=mask.long()).last_hidden_state for ids, mask in padded])
            return
        rows = sorted((row for batch in batches for row in batch), key=len)  # as `regard embed` reads texts
        padded = [pad(rows[at : at + ROWS]) for at in range(0, len(rows), ROWS)]
        model = copy_bert(theirs, shape, vocab_size)
        lay_out(model, n_rows=512)
        ids, mask = padded[0]
        found, right = model.encode(ids, mask)[-1], theirs(ids, attention_mask=mask.long()).last_hidden_state
        torch.testing.assert_close(found[mask], right[mask], rtol=0, atol=1e-4)
        model = model.to(dtype)
        lay_out(model, n_rows=512)
        with keep_freed_memory():
            serve(lambda: [model.encode(ids, mask)[-1] for ids, mask in padded])


def copy_bert(theirs: Any, shape: dict[str, int], vocab_size: int) -> Bert:
    """Regard's BERT with the weights of Hugging Face's."""
    ours = BertConfig(
        d_model=shape["hidden_size"], n_layers=shape["num_hidden_layers"], n_heads=shape["num_attention_heads"],
        d_ff=shape["intermediate_size"], has_masked_head=False, has_next_head=False,
    )  # fmt: skip
    model: Bert = build_model("bert", ours, vocab_size).eval()
    load_weights(model, to_our_bert(theirs.state_dict(), named_weights(model), "bert", "theirs"))
    return model


def batches_in_order(lengths: str, is_tiny: bool) -> list[list[list[int]]]:
    """Batches of random tokens: one of full length, or four of the lengths that paragraphs of python-docs have."""
    n = 16 if is_tiny else 128
    draws = np.random.default_rng(0)
    if lengths == "full":
        return [[draws.integers(5, 200, n).tolist() for _ in range(ROWS)]]
    paragraphs = (part.split() for document in python_docs() for part in document.split("\n\n"))
    words = islice((len(paragraph) for paragraph in paragraphs if paragraph), 4 * ROWS)
    rows = [draws.integers(5, 200, min(n, 2 + round(1.4 * n_words))).tolist() for n_words in words]
    return [rows[at : at + ROWS] for at in range(0, len(rows), ROWS)]


def pad(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Token ids, and where there are any."""
    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    return ids, torch.arange(ids.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]


if __name__ == "__main__":
    main()
