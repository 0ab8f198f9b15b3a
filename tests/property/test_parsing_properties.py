"""Whatever the weights and whatever the sentence: a tree, whole, over exactly the words."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_parsing import random_parser

from regard.data.tree_lines import escape_word, to_brackets
from regard.data.trees import parse_brackets

RNN: dict[str, Any] = {"encoder": "gru", "decoder": "gru", "attention": "dot"}
words = st.one_of(
    st.sampled_from(["the", "dog", ".", "(", ")", "-LRB-", "XX", "<eos>", "<unk>", "(S", ")S"]),
    st.text(min_size=1, max_size=6).filter(lambda text: text.split() == [text]),
)


@settings(max_examples=25)
@given(
    st.lists(st.lists(words, max_size=12), min_size=1, max_size=3),
    st.sampled_from(["slot", "tag", "bare"]),
    st.integers(0, 5),
    st.integers(1, 3),
    st.booleans(),
)
def test_a_random_model_gives_nothing_but_trees_over_the_words(
    sentences: list[list[str]], tree_words: str, seed: int, beam: int, is_transformer: bool
) -> None:
    # The Transformer has room for 16 tokens: of the longest sentences hardly a bracket more than the one around them.
    model = {"encoder": "gru", "max_context": 16} if is_transformer else RNN
    parser = random_parser(tree_words, seed, beam, **model)
    found = parser.all([" ".join(sentence) for sentence in sentences])
    for sentence, parse in zip(sentences, found, strict=True):
        if not sentence:
            assert parse.tree is None
            continue
        assert parse.tree is not None
        assert list(parse.tree.words) == sentence
        assert len(parse.tree.tags if tree_words != "bare" else sentence) == len(sentence)
        ((again, _),) = parse_brackets([to_brackets(parse.tree)])
        assert list(again.words) == [escape_word(word) for word in sentence]


@settings(max_examples=10)
@given(st.lists(st.lists(words, max_size=5), min_size=1, max_size=5), st.integers(1, 3), st.integers(10, 200))
def test_lines_give_what_all_gives_in_their_order(sentences: list[list[str]], window: int, max_tokens: int) -> None:
    parser, lines = random_parser("tag", **RNN), [" ".join(sentence) for sentence in sentences]
    streamed = [parse.tree for parse in parser.lines(lines, window=window, max_tokens=max_tokens)]
    assert streamed == [parse.tree for parse in parser.all(lines)]
