"""Every file that Regard reads, and the commands that read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

WORDS = "--set tokenizer.kind=word --set tokenizer.vocab_size=null --set model.d_model=8"
DRY = "train --dry-run --model lstm --set tokenizer.kind=char --set model.d_model=8 --set train.n_context=8 --data"
PAIRS = f"train --dry-run --model vaswani {WORDS} --set model.n_heads=2 --data"
SERVE = "serve {} --host 192.0.2.1 --port 1 --no-browser"
"""An address that no machine has: every run is opened, and nothing is served."""

RUN = ("config.yaml", "run.json", "tokenizer.json", "model.safetensors")
STATE = ("state.json", "model.safetensors", "optimizer.safetensors", "random.safetensors", "carried.safetensors")
COMPARED = ("metrics.jsonl", "run.json", "config.yaml", "model.safetensors")
HUGGING_FACE = "config.json model.safetensors tokenizer.json tokenizer_config.json".split()  # noqa: SIM905

OF_RUNS: dict[str, tuple[str, ...]] = {
    "lstm": (
        "generate {} --max-tokens 3", "eval {}", "score {} data/few.txt", "train --resume --out {}",
        "next {} 'the cat'", "look {} --text 'the cat sat' --view surprise --out out", "check {}",
        "embed {} data/words.txt --out out.npz", "look {} --text 'the cat' --view cells --out out",
        "look {} --over-time --text 'the cat' --out out", "compare {} runs/lstm --out out",
        "train --dry-run --from {} --data data/few.txt", SERVE,
    ),
    "transformer": (
        "generate {} --max-tokens 3 --beam 2", "eval {}", "score {} data/few.txt --by line", "train --resume --out {}",
        "next {} 'the cat' --json", "look {} --text 'the cat' --view attention --out out", "export {} out.onnx",
        "look {} --steps --text 'the cat' --out out", "look {} --text 'the cat' --view influence --out out",
        "study recency --run {} --out out", "export {} folder",
        "generate {} --max-tokens 3 --engine ctranslate2",
    ),
    "ngram": (
        "generate {} --max-tokens 3", "eval {}", "score {} data/few.txt", "train --resume --out {}", "next {} 'the'",
        "export {} out.arpa", "look {} --text 'the cat' --out out", SERVE,
    ),
    "pointer": ("next {} 'the cat sat'", "generate {} --max-tokens 3", "score {} data/few.txt", "eval {}"),
    "pairs": (
        "translate {} data/words.txt", "translate {} data/words.txt --align --json", "eval {}", "export {} folder",
        "score {} data/words.txt data/words.txt", "align {} data/words.txt data/words.txt", "export {} out --marian",
        "look {} --text 'the old boat' --view alignment --out out", "next {} 'the old boat' --target 'taob'",
        "check {}", SERVE,
    ),
    "opus": (
        "translate {} data/words.txt", "score {} data/words.txt data/words.txt", "eval {} --data data/pairs.tsv",
        "align {} data/words.txt data/words.txt", "look {} --text 'the old boat' --view alignment --out out",
        "next {} 'the old boat'", SERVE,
        f"train --dry-run --model vaswani {WORDS} --set model.n_heads=2 --set tokenizer.path={{}} "
        "--set target_tokenizer.path={} --data data/pairs.tsv",
    ),
    "parser": (
        "parse {} data/words.txt", "parse {} data/words.txt --draw --n-best 2", "eval {}",
        "look {} --text 'the dog barks' --out out", SERVE,
    ),
    "classify": (
        "predict {} data/few.txt", "predict {} data/words.txt --json", "eval {}", "embed {} data/words.txt --out o.npz",
        "look {} --text 'the film was dull' --view influence --out out", SERVE,
    ),
    "tagger": ("predict {} data/words.txt", "eval {}", "look {} --text 'the film' --out out", SERVE),
    "rater": ("predict {} data/words.txt", "eval {}"),
    "answerer": ("predict {} data/questions.tsv", "eval {}", "look {} --text 'what was it?\tthe film' --out out"),
    "bert": (
        "fill {} 'the [MASK] sat'", "fill {} 'the [MASK] sat' --beside runs/lstm --json", "eval {}", "export {} folder",
        "embed {} data/words.txt --out out.npz --pool none", "embed {} data/words.txt --layers concat-last-four",
        "generate {} --max-tokens 2", "next {} 'the [MASK] sat'",
        "look {} --text 'the cat sat' --view attention --out out",
        "look {} --word cat -t 'the cat sat' -t 'a cat left' --out out", "export {} out.onnx", SERVE,
        "train --dry-run {} --task classify --data data/reviews.tsv",
    ),
    "elmo": (
        "eval {}", "embed {} data/words.txt --out out.npz", "look {} --text 'the cat sat' --view cells --out out",
        f"train --dry-run {{}} --task tag {WORDS} --data data/tagged.conll",
    ),
    "vectors": (
        "vectors nearest {} the", "vectors analogy {} cat dog the", "vectors eval {} data/words.txt",
        "vectors map {} --out out", "vectors coverage {} --data data/few.txt", "vectors convert {} out.bin", "eval {}",
    ),
    "lsa": ("vectors nearest {} the", "vectors convert {} out.vec", "eval {}"),
    "caption": (
        "caption {} pictures/0.png", "caption {} pictures/0.png --draw out", "eval {}",
        "look {} --picture pictures/0.png --out out",
    ),
}  # fmt: skip

OF_HUGGING_FACE: dict[str, tuple[str, ...]] = {
    "gpt2": (
        "import {} --out out", "next {} 'the cat'", "look {} --text 'the cat' --view attention --out out",
        "embed {} data/words.txt --out out.npz",
        "train --dry-run --from {} --data data/few.txt",
    ),
    "bert": (
        "import {} --out out", "embed {} data/words.txt --out out.npz",
        "look {} --text 'the cat' --view attention --out out",
        "next {} 'the [MASK] sat'", "train --dry-run {} --task classify --data data/reviews.tsv",
    ),
    "task": ("import {} --out out", "import {} --out out --pair", "look {} --text 'the film' --out out"),
    "opus": ("import {} --out out",),
}  # fmt: skip
OF_HUGGING_FACE |= {"old-gpt2": OF_HUGGING_FACE["gpt2"], "old-bert": OF_HUGGING_FACE["bert"]}
FILES_OF: dict[str, tuple[str, ...]] = {
    "gpt2": (*HUGGING_FACE,),
    "bert": (*HUGGING_FACE,),
    "task": (*HUGGING_FACE,),
    "old-gpt2": ("vocab.json", "merges.txt", "model.safetensors.index.json", "part-1.safetensors"),
    "opus": (
        "source.spm", "source.spm", "target.spm", "vocab.json", "config.json", "generation_config.json",
        "model.safetensors",
    ),
    "old-bert": ("vocab.txt", "tokenizer_config.json", "pytorch_model.bin", "config.json"),
}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A file of the corpus, and command lines that read it; the corpus is copied, and {} is the copy."""

    file: str
    commands: tuple[str, ...]
    folder: str = ""
    """What is copied: the whole folder the file lies in; empty: the file alone."""


def list_kinds() -> list[Kind]:
    """Every file that Regard reads, and how."""
    return [*_list_folders(), *_list_texts(), *_list_others()]


def _list_folders() -> Iterator[Kind]:
    for run, commands in OF_RUNS.items():
        yield from (Kind(f"runs/{run}/{file}", commands, f"runs/{run}") for file in RUN)
    longer = ("train --resume --out {} --set train.max_steps=4",)
    state = "runs/lstm/state/step-00000002"
    yield from (Kind(f"{state}/{file}", longer, "runs/lstm") for file in STATE)
    yield Kind(
        "runs/lstm/metrics.jsonl",
        (*longer, "train --resume --out {}", "compare {} runs/transformer --out out"),
        "runs/lstm",
    )
    over_time = ("look {} --over-time --text 'the cat' --out out",)
    yield Kind("runs/lstm/snapshots/step-00000002.safetensors", over_time, "runs/lstm")
    for run in ("parser", "opus"):
        yield Kind(f"runs/{run}/target_tokenizer.json", OF_RUNS[run], f"runs/{run}")
    for folder, files in FILES_OF.items():
        yield from (Kind(f"hf/{folder}/{file}", OF_HUGGING_FACE[folder], f"hf/{folder}") for file in files)
    elmo = ("import {} --out out",)
    yield from (Kind(f"elmo/{file}", elmo, "elmo") for file in ("options.json", "weights.hdf5", "weights.hdf5"))
    words = ("options.json", "weights.hdf5", "vocab.txt")
    yield from (Kind(f"elmo-words/{file}", elmo, "elmo-words") for file in words)
    compared = "compare runs/lstm runs/transformer --device cpu --out {}"
    goes_on = "compare ngram bag --data data/few.txt --budget 100tokens --jobs 1 --out {}"
    for folder, again, run in (("compare", compared, "lstm"), ("compare-trained", goes_on, "bag-seed0")):
        drawn = ("report {}", "report {}", again)
        yield from (Kind(f"{folder}/{file}", drawn, folder) for file in ("compare.json", "compare.json", "report.html"))
        answers = (f"outputs/{run}.json", f"outputs/{run}.txt", f"views/{run}.json")
        yield from (Kind(f"{folder}/{file}", (again,), folder) for file in answers)
    yield Kind("compare/runs.json", (compared,), "compare")
    for file in ("plan.yaml", "plan.yaml", "pace.json", "data.json", *(f"runs/bag-seed2/{name}" for name in COMPARED)):
        yield Kind(f"compare-trained/{file}", (goes_on,), "compare-trained")
    yield Kind("study/report.html", ("study by-hand --out {}",), "study")
    yield Kind(
        "looked/index.html", ("next runs/ngram 'the cat' --out {}", "look runs/lstm --text a --out {}"), "looked"
    )
    yield Kind("begun/.lock", ("train recipes/lstm.yaml --out {}", "import data/ngram.arpa --out {}"), "begun")


def _list_texts() -> Iterator[Kind]:
    yield from (Kind(f"data/{file}", ("import {} --out out",)) for file in ("ngram.arpa", "ngram.arpa.gz"))
    texts = ("few.txt", "few.txt.gz", "few.txt.xz", "few.txt.zst", "few.jsonl", "few.csv", "few.tsv")
    yield from (Kind(f"data/{file}", (f"{DRY} {{}}", "score runs/lstm {}", "data {}")) for file in texts)
    lines = (
        "bleu {} -r {}", "translate runs/pairs {}", "predict runs/classify {}", "predict runs/tagger {}",
        "parse runs/parser {}", "embed runs/bert {} --out out.npz",
        "vectors coverage runs/vectors --data {}", "eval runs/lstm --data {}", "eval runs/bert --data {}",
    )  # fmt: skip
    yield Kind("data/words.txt", (*lines, "vectors eval data/few.vec {}", "align runs/pairs {} data/words.txt"))
    yield Kind("data/few.txt", (*lines, "look runs/lstm --text x --view cells --search {} --out out"))
    yield Kind("data/questions.tsv", ("predict runs/answerer {}",))
    yield Kind("data/few.align", ("align runs/pairs data/words.txt data/words.txt --gold {}",))
    pairs = (f"{PAIRS} {{}}", "eval runs/pairs --data {}", "data {}")
    yield from (Kind(f"data/{file}", pairs) for file in ("pairs.tsv", "pairs.jsonl", "pairs.csv"))
    labelled = f"train lstm --dry-run --task {{}} {WORDS} --data {{{{}}}}"
    for file, task, run in (
        ("reviews.tsv", "classify", "classify"), ("reviews.csv", "classify", "classify"),
        ("squad.json", "answer", "answerer"),
        ("tagged.conll", "tag", "tagger"), ("tagged.conllu", "tag", "tagger"), ("rated.jsonl", "rate", "rater"),
    ):  # fmt: skip
        yield Kind(f"data/{file}", (labelled.format(task), f"eval runs/{run} --data {{}}", "data {}"))
    trees = "train --dry-run --model seq2seq --set data.format=trees --set model.d_model=8 --data {}"
    yield Kind("data/few.mrg", (trees, "eval runs/parser --data {}"))
    yield Kind("data/documents.csv", (f"{DRY} data/few.txt --set data.boundaries={{}}",))


def _list_others() -> Iterator[Kind]:
    for i, form in enumerate(("png", "jpg", "gif", "bmp", "webp", "tiff")):
        yield Kind(
            f"pictures/{i}.{form}",
            ("caption runs/caption {}", "look runs/caption --picture {} --view picture --out out"),
        )
    yield Kind("data/captions.txt", ("eval runs/caption --data pictures --data {}",))
    vectors = (
        "vectors nearest {} the", "vectors eval {} data/words.txt", "vectors analogy {} the cat dog",
        "vectors map {} --out out", "vectors convert {} out.bin", "vectors coverage {} --data data/few.txt",
        f"train --dry-run --model lstm {WORDS} --set model.d_model=3 --set train.vectors={{}} --data data/few.txt",
    )  # fmt: skip
    yield from (Kind(f"data/{file}", vectors) for file in ("few.vec", "few.bin", "glove.txt", "few.vec.gz"))
    recipes = ("lstm", "ngram", "transformer", "pairs", "parser", "classify", "tagger", "bert", "elmo", "vectors")
    yield from (Kind(f"recipes/{name}.yaml", ("train {} --dry-run",)) for name in (*recipes, "caption"))
    yield from (Kind("recipe.yaml", ("train {} --dry-run",)) for _ in range(3))
    compare = ("compare {} --budget 100tokens --jobs 1 --out out",)
    yield from (Kind("compare.yaml", compare) for _ in range(2))
