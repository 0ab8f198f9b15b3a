"""Trees, and parsers with random weights, for tests."""

from __future__ import annotations

from typing import Any

import torch

from regard.data.tree_lines import linearise
from regard.data.tree_pairs import FORMS
from regard.data.trees import Tree, parse_trees
from regard.decode.config import BeamConfig
from regard.decode.parse import Parser
from regard.models.seq2seq import Seq2Seq
from regard.models.seq2seq_assemblies import seq2seq
from regard.models.seq2seq_config import Seq2SeqConfig
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer

LINES = [
    "(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))",
    "(S (NP (DT the) (NN cat)) (VP (VBZ sees) (NP (DT the) (NN dog))) (. .))",
    "(S (NP (NNS dogs)) (VP (VBP bark)) (. .))",
    "(S (NP (PRP he)) (VP (VBD saw) (NP (NNS dogs)) (PP (IN in) (NP (NN town)))) (. .))",
    "(NP (NP (DT the) (NN cat)) (PP (IN in) (NP (NN town))))",
    "(S (VP (VB go)) (. !))",
]
TREES = list(parse_trees(LINES))


def tokenizers(tree_words: str, kind: str = "char") -> tuple[Tokenizer, Tokenizer]:
    """Of the words, and of the brackets."""
    trees = [without_tags(tree) for tree in TREES] if tree_words == "bare" else TREES
    source = train_tokenizer(TokenizerConfig(kind=kind, vocab_size=None), [" ".join(tree.words) for tree in trees])
    targets = [" ".join(linearise(tree, FORMS[tree_words])) for tree in trees]
    return source, train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), targets)


def without_tags(tree: Tree) -> Tree:
    """Words stand in their phrases, with no part of speech around them."""
    children = (c if isinstance(c, str) else c.children[0] if c.is_tag else without_tags(c) for c in tree.children)
    return Tree(tree.label, tuple(children))


def random_model(source: Tokenizer, target: Tokenizer, seed: int, **settings: Any) -> Seq2Seq:
    """With weights so large that it is sure of what it writes, whatever that is."""
    small = {"d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 8, "p_dropout": 0.0}
    model = seq2seq(Seq2SeqConfig.from_dict(small | settings), target.vocab_size, source.vocab_size).eval().double()
    draws = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7, generator=draws)
    return model


def random_parser(
    tree_words: str, seed: int = 0, beam: int = 2, is_constrained: bool = True, **settings: Any
) -> Parser:
    source, target = tokenizers(tree_words)
    model = random_model(source, target, seed, **settings)
    config = BeamConfig(beam=beam, max_length=3)  # a tree's own limits count, not these
    return Parser([model], source, target, tree_words, config, is_constrained=is_constrained)
