"""Whatever is chosen among the allowed tokens, the end is a tree over exactly the words of the source."""

import random

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.tree_lines import LineForm, TreeLimits, build_tree, linearise
from regard.data.trees import Tree
from regard.decode.beam import beam_search
from regard.decode.config import BeamConfig
from regard.decode.tree_constraint import TreeConstraint

limits = st.builds(
    TreeLimits,
    max_chain=st.integers(1, 4),
    brackets_per_word=st.sampled_from([0.0, 0.5, 1.5, 3.0]),
    extra_brackets=st.integers(1, 6),
    max_depth=st.integers(1, 12),
)
forms = st.sampled_from([LineForm(), LineForm(words="tag")])


def vocabulary(form: LineForm) -> list[str]:
    return ["<eos>", "<unk>", "(S", "(NP", ")S", ")NP", *(["NN", ","] if form.words == "tag" else ["XX"])]


@given(n=st.integers(1, 12), limits=limits, form=forms, draws=st.randoms(use_true_random=False), likes=st.floats(0, 1))
def test_any_allowed_sequence_ends_as_a_tree_over_the_words(
    n: int, limits: TreeLimits, form: LineForm, draws: random.Random, likes: float
) -> None:
    tokens = vocabulary(form)
    constraint = TreeConstraint(tokens, [n], stop=0, form=form, limits=limits)
    state, line = constraint.start(0), []
    while True:
        ids = constraint.allowed(state).nonzero().flatten().tolist()
        opening = [i for i in ids if tokens[i].startswith("(")]
        token = draws.choice(opening if opening and draws.random() < likes else ids)
        if token == 0:
            break
        line.append(tokens[token])
        state = constraint.step(state, token)
        assert len(line) < limits.max_length(n)
    words = [f"w{i}" for i in range(n)]
    tree = build_tree(line, words, form=form)
    assert tree.words == tuple(words)
    assert linearise(tree, form) == line
    spans = [(start, end) for inner, start, end in tree.brackets() if not inner.is_tag]
    assert len(spans) <= limits.max_brackets(n)
    assert max(spans.count(span) for span in spans) <= limits.max_chain


class AtRandom:
    """A stepper that knows nothing."""

    def __init__(self, n_tokens: int, seed: int) -> None:
        self.n_tokens, self.draws = n_tokens, torch.Generator().manual_seed(seed)

    def log_probs(self, n_rows: int) -> torch.Tensor:
        return (3 * torch.randn(n_rows, self.n_tokens, generator=self.draws)).log_softmax(-1)

    def step(self, tokens: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.log_probs(len(tokens)), state

    def reorder(self, state: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return state[rows]


@settings(max_examples=10)
@given(seed=st.integers(0, 2**16), beam=st.integers(1, 4), n_words=st.lists(st.integers(1, 6), min_size=1, max_size=3))
def test_a_beam_search_over_anything_finds_trees(seed: int, beam: int, n_words: list[int]) -> None:
    tokens, limits = vocabulary(LineForm()), TreeLimits()
    stepper = AtRandom(len(tokens), seed)
    found = beam_search(
        stepper,
        stepper.log_probs(len(n_words)),
        torch.zeros(len(n_words)),
        BeamConfig(beam=beam, n_best=beam),
        max_lengths=[limits.max_length(n) for n in n_words],
        stop=0,
        constraint=TreeConstraint(tokens, n_words, stop=0, limits=limits),
    )
    for n, hypotheses in zip(n_words, found, strict=True):
        assert hypotheses
        for hypothesis in hypotheses:
            *line, end = hypothesis.tokens
            assert end == 0
            assert len(build_tree([tokens[i] for i in line], ["w"] * n).words) == n


words = st.just("w")


def over(children: st.SearchStrategy[Tree | str]) -> st.SearchStrategy[Tree]:
    return st.builds(
        lambda label, found: Tree(label, tuple(found)),
        st.sampled_from(["S", "NP"]),
        st.lists(children, min_size=1, max_size=3),
    )


@given(tree=over(st.recursive(words, over, max_leaves=10)))
def test_every_tree_within_the_limits_is_allowed(tree: Tree) -> None:
    spans = [(start, end) for _, start, end in tree.brackets()]
    limits = TreeLimits(
        max_chain=max(spans.count(span) for span in spans),
        brackets_per_word=0.0,
        extra_brackets=len(spans),
        max_depth=tree.depth,
    )
    form = LineForm(has_tags=False)
    tokens = vocabulary(form)
    constraint = TreeConstraint(tokens, [len(tree.words)], stop=0, form=form, limits=limits)
    state = constraint.start(0)
    for token in linearise(tree, form):
        assert constraint.allowed(state)[tokens.index(token)]
        state = constraint.step(state, tokens.index(token))
    assert constraint.allowed(state).nonzero().tolist() == [[0]]
