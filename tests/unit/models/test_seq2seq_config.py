import pytest
from tiny_seq2seq import pairs, tiny_config, tiny_seq2seq

from regard.errors import RegardError
from regard.models.seq2seq_assemblies import seq2seq
from regard.models.seq2seq_config import Seq2SeqConfig, VaswaniConfig

REFUSED = [
    ({"attention": "dot"}, "attention is 'dot' and the decoder is a transformer, whose score is scaled-dot"),
    (
        {"decoder": "convolution", "attention": "mlp"},
        "attention is 'mlp' and the decoder is a convolution, whose score",
    ),
    ({"decoder": "convolution", "input_feeding": True}, "the decoder is a convolution, which looks at the source in"),
    ({"input_feeding": True}, "input_feeding is true and the decoder is a transformer"),
    ({"decoder": "lstm", "attention": "none", "copies": True}, "copies is true and attention is none"),
    ({"decoder": "gru", "attention": "none", "input_feeding": True}, "input_feeding is true and attention is none"),
    ({"encoder": "gru", "decoder": "gru", "d_model": 5}, "Use d_model 6, or set is_bidirectional to false"),
    ({"d_model": 10, "n_heads": 4}, "d_model 10 cannot be shared by n_heads 4"),
    ({"encoder": "ltsm"}, "Did you mean 'lstm'?"),
    ({"n_layers": [1, 2, 3]}, "n_layers must be a whole number or list of a whole number"),
    ({"n_layers": [0, 2]}, "n_layers must be at least 1, not 0"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_cannot_work_is_refused_in_words(changes: dict[str, object], message: str) -> None:
    with pytest.raises(RegardError) as refusal:
        Seq2SeqConfig.from_dict(changes)
    assert message in str(refusal.value)


def test_layers_are_a_number_or_a_pair() -> None:
    assert Seq2SeqConfig(n_layers=4).depths == (4, 4)
    config = Seq2SeqConfig.from_dict({"n_layers": [6, 2]})
    assert config.depths == (6, 2)
    assert Seq2SeqConfig.from_dict(config.to_dict()) == config


def test_settings_that_change_nothing_are_named() -> None:
    config = Seq2SeqConfig(encoder="gru", decoder="gru", n_heads=2, norm="post")
    assert config.notes() == [
        "n_heads changes nothing: neither encoder nor decoder is a transformer.",
        "norm changes nothing: neither encoder nor decoder is a transformer.",
    ]
    assert Seq2SeqConfig(is_bidirectional=False).notes() == [
        "is_bidirectional changes nothing: the encoder is transformer, not rnn, gru or lstm."
    ]
    assert Seq2SeqConfig(encoder="bag", n_layers=(1, 2)).notes() == [
        "the encoder's number of layers changes nothing: a bag has none."
    ]
    assert Seq2SeqConfig().notes() == []


def test_one_matrix_for_all_needs_one_vocabulary() -> None:
    with pytest.raises(RegardError, match=r"13 tokens of the source, 11 of the target\. Use one tokenizer for both"):
        seq2seq(tiny_config(tying="all"), 11, 13)


@pytest.mark.parametrize(("tying", "n_matrices"), [("none", 3), ("target", 2), ("all", 1)])
def test_tying_says_how_many_matrices_there_are(tying: str, n_matrices: int) -> None:
    model = tiny_seq2seq(tying=tying)
    shapes = [
        tuple(p.shape) for p in (model.source_embedding, model.target.embedding, model.target.head) if p is not None
    ]
    assert len(shapes) == n_matrices


def test_what_is_too_long_is_refused_in_words() -> None:
    model, batch = tiny_seq2seq(), pairs(0, [10], [3])
    with pytest.raises(RegardError, match=r"a source of 10 tokens and reads at most 9\. .* max_context 10"):
        model.encode(batch.source, batch.mask)
    batch = pairs(0, [3], [10])
    source = model.encode(batch.source, batch.mask)
    with pytest.raises(RegardError, match=r"a target of 10 tokens and reads at most 9\. .* max_context 10"):
        model.target.hidden(batch.inputs, source)
    with pytest.raises(RegardError, match="up to 10 tokens was asked for, and the model writes at most 9"):
        model.target.start(source, 10)
    assert tiny_seq2seq(encoder="gru", decoder="gru").max_context is None
    assert tiny_seq2seq(encoder="gru", decoder="transformer").max_context == 9
    assert tiny_seq2seq(encoder="transformer", decoder="gru").max_context == 9


def test_the_papers_sizes_are_filled_in_and_can_be_overridden() -> None:
    filled = VaswaniConfig(size="big", n_layers=2).fill_in()
    assert (filled.d_model, filled.n_layers, filled.n_heads, filled.d_ff, filled.p_dropout) == (1024, 2, 16, 4096, 0.3)
    config = VaswaniConfig(p_dropout=0.0).seq2seq()
    assert (config.d_model, config.depths, config.norm, config.positions) == (512, (6, 6), "post", "sinusoidal")
    assert (config.activation, config.tying, config.p_dropout) == ("relu", "all", 0.0)
    with pytest.raises(RegardError, match="d_model 100 cannot be shared by n_heads 8"):
        VaswaniConfig(d_model=100)
