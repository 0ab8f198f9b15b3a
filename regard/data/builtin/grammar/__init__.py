"""A synchronous grammar of English, German and French: data that needs no download, with every answer known.

>>> from regard.data.builtin.grammar import Grammar
>>> sentence = Grammar(seed=0).sentence(0, "test")
>>> len(sentence.en) == len(sentence.tags["en"])
True
"""

from regard.data.builtin.grammar.grammar import PAIRS, Grammar, Sentence
from regard.data.builtin.grammar.held_out import SPLITS
from regard.data.builtin.grammar.scene import Item, Scene
from regard.data.builtin.grammar.sentences import KINDS

__all__ = ["KINDS", "PAIRS", "SPLITS", "Grammar", "Item", "Scene", "Sentence"]
