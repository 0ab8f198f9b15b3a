"""Decoding by CTranslate2 gives the texts and scores of our own decoding."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_exported import tiny_pair_run
from tiny_pairs import TEXTS

from regard.decode.config import SamplingConfig
from regard.decode.generate import generate_all
from regard.errors import RegardError
from regard.models.gradient_next_token import GradientNextToken
from regard.models.language_model import LanguageModel
from regard.models.table import MODELS, build_model
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.weights.ctranslate2_engine import GeneratorEngine

pytest.importorskip("ctranslate2")

SOURCES = [source for source, _ in TEXTS]
TOLERANCE = 2e-5  # see test_ctranslate2_parity.py
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "as it comes": ("transformer", {}),
    "norm after the sums, sinusoids": ("transformer", {"norm": "post", "positions": "sinusoidal"}),
    "no positions, relu": ("transformer", {"positions": "none", "activation": "relu"}),
    "gelu by erf, not tied": ("transformer", {"activation": "gelu_erf", "tie_embeddings": False}),
    "gpt2 with rows to spare and a large epsilon": ("gpt2", {"n_rows": 320, "epsilon": 0.01}),
}  # fmt: skip


def made_lm(name: str, **settings: Any) -> tuple[LanguageModel, Any, Tokenizer]:
    text = " ".join(source + " " + target for source, target in TEXTS)
    tokenizer = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=300), [text])
    sizes = {"d_model": 32, "n_layers": 2, "n_heads": 2, "max_context": 40}
    config = MODELS[name].config.from_dict(sizes | settings)
    model = build_model(name, config, tokenizer.vocab_size)
    assert isinstance(model, LanguageModel)
    draws = torch.Generator().manual_seed(0)
    with torch.no_grad():  # norms and biases not quite 1 and 0, so that each of them matters
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.zero_()
            parameter += 0.25 * torch.randn(parameter.shape, generator=draws)
    return model.eval(), config, tokenizer


def engine_of(name: str, precision: str = "float32", **settings: Any) -> tuple[GeneratorEngine, LanguageModel]:
    model, config, tokenizer = made_lm(name, **settings)
    return GeneratorEngine(model, name, config, tokenizer, precision, "'runs/tiny'"), model


@pytest.mark.parametrize(("name", "settings"), CASES.values(), ids=CASES)
def test_greedy_texts_are_those_of_our_own_decoding(name: str, settings: dict[str, Any]) -> None:
    engine, model = engine_of(name, **settings)
    config = SamplingConfig(temperature=0.0, max_tokens=20)
    prompts = [[], [70], [71, 80, 90, 72]]
    ours = [generate_all(GradientNextToken(model), torch.tensor([p], dtype=torch.long), config)[0] for p in prompts]
    theirs = [engine.generate(p, 1, config, None)[0] for p in prompts]
    assert theirs == ours
    assert len({tuple(text) for text in ours}) > 1


def test_a_text_ends_with_its_end_mark_where_one_is_given() -> None:
    engine, model = engine_of("transformer")
    config = SamplingConfig(temperature=0.0, max_tokens=20)
    (text,) = generate_all(GradientNextToken(model), torch.tensor([[70]]), config)
    stop = text[5]
    assert engine.generate([70], 2, config, stop) == [text[: text.index(stop) + 1]] * 2


def test_draws_are_the_same_for_the_same_seed_and_follow_the_model() -> None:
    engine, model = engine_of("transformer")
    config = SamplingConfig(temperature=1.0, max_tokens=2, seed=3)
    drawn = engine.generate([70], 400, config, None)
    assert drawn == engine.generate([70], 400, config, None)
    assert drawn != engine.generate([70], 400, config.replace(seed=4), None)
    log_probs, _ = GradientNextToken(model).start(torch.tensor([[70]]))
    shares = np.bincount([text[0] for text in drawn], minlength=model.vocab_size) / 400
    p = log_probs[0].exp().numpy()
    assert np.abs(shares - p).max() < 5 * np.sqrt(p.max() / 400)


def test_a_beam_gives_as_many_texts_as_are_asked_for() -> None:
    engine, _ = engine_of("transformer")
    texts = engine.generate([70], 3, SamplingConfig(beam=2, max_tokens=4), None)
    assert len({tuple(text) for text in texts}) == 3


def test_eight_bits_round_and_the_first_tokens_stay() -> None:
    config = SamplingConfig(temperature=0.0, max_tokens=3)
    ours, eight = (engine_of("transformer", precision)[0] for precision in ("float32", "int8"))
    texts = [[engine.generate([i], 1, config, None)[0][0] for i in range(60, 100)] for engine in (ours, eight)]
    assert sum(a == b for a, b in zip(*texts, strict=True)) >= 36


@pytest.mark.parametrize("alpha", [0.0, 1.0, 0.5])
def test_translations_and_their_scores_are_those_of_our_own_search(alpha: float) -> None:
    run = tiny_pair_run(tying="none")
    how = {"beam": 1, "max_ratio": 1.0, "alpha": alpha, "n_best": 1}
    config = run.translator().config.replace(**how)
    ours, engine = run.translator(config), None
    found = ours.all([ours.read(text) for text in SOURCES])
    run.use_ctranslate2("float32")
    engine = run.translator(config)
    theirs = engine.all([engine.read(text) for text in SOURCES])
    for (a,), (b,) in zip(found, theirs, strict=True):
        assert (a.text, a.tokens) == (b.text, b.tokens)
        assert (b.log_prob, b.score) == pytest.approx((a.log_prob, a.score), abs=TOLERANCE)
    assert len({best[0].text for best in theirs}) > 1


def test_each_source_has_its_own_limit() -> None:
    run = tiny_pair_run(tying="none")
    run.use_ctranslate2("float32")
    assert run.engine is not None
    config = run.translator().config.replace(beam=2, n_best=2, min_length=3)
    sources, limits = [[3, 4], [5, 6, 7], [4]], [3, 6, 4]
    together = run.engine.search(sources, config, limits)
    alone = [run.engine.search([s], config, [limit])[0] for s, limit in zip(sources, limits, strict=True)]
    assert [[h.tokens for h in best] for best in together] == [[h.tokens for h in best] for best in alone]
    assert all(len(h.tokens) <= limit for best, limit in zip(together, limits, strict=True) for h in best)


def test_what_ctranslate2_cannot_do_is_refused() -> None:
    run = tiny_pair_run()
    with pytest.raises(RegardError, match="precision is one of float32, int8, not 'bf16'"):
        run.use_ctranslate2("bf16")
    run.use_ctranslate2("float32")
    with pytest.raises(RegardError, match="length penalties none and length, not wu"):
        run.translate(SOURCES[0], length_penalty="wu")
    with pytest.raises(RegardError, match="Only the engine torch draws targets"):
        run.translate(SOURCES[0], sampling={"seed": 1})
    with pytest.raises(RegardError, match=r"Only the engine torch averages several runs \(--with\)"):
        run.translator(others=[run])
    engine, _ = engine_of("transformer")
    with pytest.raises(RegardError, match="no min_p"):
        engine.generate([70], 1, SamplingConfig(min_p=0.1), None)
    with pytest.raises(
        RegardError, match=r"prompt has 1 tokens and 40 more are asked for.*has 40 at most.*--max-tokens 39"
    ):
        engine.generate([70], 1, SamplingConfig(max_tokens=40), None)
    model, config, tokenizer = made_recurrent()
    with pytest.raises(RegardError, match="is a model 'lstm', which CTranslate2 cannot run"):
        GeneratorEngine(model, "lstm", config, tokenizer, "int8", "'runs/tiny'")


def made_recurrent() -> tuple[Any, Any, Tokenizer]:
    _, _, tokenizer = made_lm("transformer")
    config = MODELS["lstm"].config.from_dict({"d_model": 8, "n_layers": 1})
    return build_model("lstm", config, tokenizer.vocab_size), config, tokenizer


def test_a_missing_ctranslate2_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(RegardError, match=r"not installed. Install it: pip install 'regard\[export\]'"):
        tiny_pair_run().use_ctranslate2("int8")


def test_the_command_line_says_what_int8_needs(tmp_path: Path) -> None:
    import regard

    with pytest.raises(RegardError, match="add --engine ctranslate2"):
        regard.load(tmp_path, precision="int8")
    with pytest.raises(RegardError, match="engine must be one of torch, ctranslate2, not 'ctranslate'"):
        regard.load(tmp_path, engine="ctranslate")
    with pytest.raises(RegardError, match="on the CPU here, not on 'cuda'"):
        regard.load(tmp_path, "cuda", "int8", engine="ctranslate2")
