"""Our encoder-decoder models against torch's Transformer and Hugging Face's Marian, weights copied across."""

import pytest
import torch
from tiny_seq2seq import V, pairs, tiny_seq2seq
from torch import nn

from regard.layers.attention import MultiHeadAttention
from regard.layers.cross_attention import CrossAttention
from regard.layers.taps import Taps
from regard.mixers.recurrent_encoder import RecurrentEncoder
from regard.mixers.transformer import TransformerBlock

EXACT = {"rtol": 0, "atol": 1e-10}
D, N, F = 8, 2, 12
PATHS = pytest.mark.parametrize("is_plain", [False, True], ids=["fused", "plain"])


def randomise(module: nn.Module) -> None:
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)


def copy_self(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    ours.load_state_dict(
        {"qkv.weight": theirs.in_proj_weight, "qkv.bias": theirs.in_proj_bias}
        | {f"out.{name}": weight for name, weight in theirs.out_proj.named_parameters()}
    )


def copy_cross(ours: CrossAttention, theirs: nn.MultiheadAttention) -> None:
    W, b = theirs.in_proj_weight, theirs.in_proj_bias
    ours.load_state_dict(
        {"q.weight": W[:D], "q.bias": b[:D], "kv.weight": W[D:], "kv.bias": b[D:]}
        | {f"out.{name}": weight for name, weight in theirs.out_proj.named_parameters()}
    )


def copy_encoder_block(ours: TransformerBlock, theirs: nn.TransformerEncoderLayer) -> None:
    copy_self(ours.attention, theirs.self_attn)
    ours.norm_attention.load_state_dict(theirs.norm1.state_dict())
    ours.norm_feed_forward.load_state_dict(theirs.norm2.state_dict())
    ours.feed_forward.up.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.out.load_state_dict(theirs.linear2.state_dict())


def copy_decoder_block(ours: TransformerBlock, theirs: nn.TransformerDecoderLayer) -> None:
    copy_self(ours.attention, theirs.self_attn)
    assert ours.cross_attention is not None
    copy_cross(ours.cross_attention, theirs.multihead_attn)
    for norm, other in (("attention", "norm1"), ("cross", "norm2"), ("feed_forward", "norm3")):
        getattr(ours, f"norm_{norm}").load_state_dict(getattr(theirs, other).state_dict())
    ours.feed_forward.up.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.out.load_state_dict(theirs.linear2.state_dict())


@PATHS
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_both_stacks_equal_torchs_transformer(norm: str, is_plain: bool) -> None:
    torch.manual_seed(0)
    theirs = nn.Transformer(
        D, N, 2, 3, F, dropout=0.0, batch_first=True, norm_first=norm == "pre", dtype=torch.float64
    ).eval()
    randomise(theirs)
    model = tiny_seq2seq(norm=norm, positions="none", n_layers=[2, 3])
    for ours, other in zip(model.encoder.layers, theirs.encoder.layers, strict=True):
        copy_encoder_block(ours, other)
    for ours, other in zip(model.target.decoder.layers, theirs.decoder.layers, strict=True):
        copy_decoder_block(ours, other)
    if norm == "pre":
        model.encoder.norm.load_state_dict(theirs.encoder.norm.state_dict())
        model.target.decoder.norm.load_state_dict(theirs.decoder.norm.state_dict())
    else:  # the paper has no norm after the last one; torch puts one there all the same
        theirs.encoder.norm = theirs.decoder.norm = None
    batch = pairs(0, [5, 2, 4], [3, 6, 4])
    record = Taps() if is_plain else None
    h, _ = model.target.hidden(batch.inputs, model.encode(batch.source, batch.mask, None, record), None, record)
    hidden = nn.Transformer.generate_square_subsequent_mask(6).bool()  # torch's masks mark what is hidden
    assert model.source_embedding is not None
    expected = theirs(
        model.source_embedding[batch.source],
        model.embedding[batch.inputs],
        tgt_mask=hidden,
        src_key_padding_mask=~batch.mask,
        memory_key_padding_mask=~batch.mask,
    )
    torch.testing.assert_close(h, expected, **EXACT)


def marian() -> nn.Module:
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=V, d_model=D, encoder_layers=2, decoder_layers=2, encoder_attention_heads=N,
        decoder_attention_heads=N, encoder_ffn_dim=F, decoder_ffn_dim=F, max_position_embeddings=9,
        activation_function="relu", dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
        scale_embedding=True, pad_token_id=V - 1, eos_token_id=0, forced_eos_token_id=0,
        decoder_start_token_id=0,
    )  # fmt: skip
    model: nn.Module = MarianMTModel(config).double().eval()
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name:
            nn.init.normal_(parameter, std=0.5)
    model.final_logits_bias.normal_()
    return model


def from_marian(theirs: nn.Module, side: str, layer: int, decoder: bool) -> dict[str, torch.Tensor]:
    """One block's weights under our names."""
    weights = theirs.state_dict()
    at = f"model.{side}.layers.{layer}."
    pick = {}
    for kind in ("weight", "bias"):
        parts = [weights[f"{at}self_attn.{p}_proj.{kind}"] for p in "qkv"]
        pick[f"attention.qkv.{kind}"] = torch.cat(parts)
        pick[f"attention.out.{kind}"] = weights[f"{at}self_attn.out_proj.{kind}"]
        pick[f"norm_attention.{kind}"] = weights[f"{at}self_attn_layer_norm.{kind}"]
        pick[f"feed_forward.up.{kind}"] = weights[f"{at}fc1.{kind}"]
        pick[f"feed_forward.out.{kind}"] = weights[f"{at}fc2.{kind}"]
        pick[f"norm_feed_forward.{kind}"] = weights[f"{at}final_layer_norm.{kind}"]
        if decoder:
            pick[f"cross_attention.q.{kind}"] = weights[f"{at}encoder_attn.q_proj.{kind}"]
            pick[f"cross_attention.kv.{kind}"] = torch.cat([weights[f"{at}encoder_attn.{p}_proj.{kind}"] for p in "kv"])
            pick[f"cross_attention.out.{kind}"] = weights[f"{at}encoder_attn.out_proj.{kind}"]
            pick[f"norm_cross.{kind}"] = weights[f"{at}encoder_attn_layer_norm.{kind}"]
    return pick


@PATHS
def test_the_post_norm_transformer_equals_marian(is_plain: bool) -> None:
    theirs = marian()
    ours = tiny_seq2seq(norm="post", tying="all")
    ours.target.bias = nn.Parameter(theirs.final_logits_bias[0].clone())
    ours.target.embedding.data.copy_(theirs.model.shared.weight)
    for i in range(2):
        ours.encoder.layers[i].load_state_dict(from_marian(theirs, "encoder", i, decoder=False))
        ours.target.decoder.layers[i].load_state_dict(from_marian(theirs, "decoder", i, decoder=True))
    for stack in (ours.encoder, ours.target.decoder):  # Marian has all sines first, then all cosines
        stack.positions.table.copy_(theirs.model.encoder.embed_positions.weight)
    batch = pairs(0, [5, 2, 4], [3, 6, 4])
    log_probs = ours(batch.source, batch.mask, batch.inputs, None, Taps() if is_plain else None)
    logits = theirs(
        input_ids=batch.source, attention_mask=batch.mask.long(), decoder_input_ids=batch.inputs, use_cache=False
    ).logits
    torch.testing.assert_close(log_probs, logits.log_softmax(dim=-1), **EXACT)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("is_bidirectional", [False, True])
def test_a_recurrent_encoder_equals_torchs_packed_one(kind: str, is_bidirectional: bool) -> None:
    torch.manual_seed(0)
    H = D // 2 if is_bidirectional else D
    theirs = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[kind](
        D, H, 2, batch_first=True, bidirectional=is_bidirectional, dtype=torch.float64
    )
    randomise(theirs)
    ours = RecurrentEncoder(kind, D, 2, is_bidirectional).double()
    for index, layer in enumerate(ours.layers):
        for direction, suffix in ((layer.ahead, ""), (layer.back, "_reverse")):
            if direction is not None:
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    getattr(direction.kernel, f"{name}_l0").data.copy_(getattr(theirs, f"{name}_l{index}{suffix}"))
    x, lengths = torch.randn(3, 5, D, dtype=torch.float64), torch.tensor([2, 5, 1])
    mask = torch.arange(5) < lengths[:, None]
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    out, last = theirs(packed)
    expected, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    h = last[0] if kind == "lstm" else last  # (L directions, B, H)
    for record in (None, Taps()):
        states, ends = ours(x, mask, record)
        torch.testing.assert_close(states[mask], expected[mask], **EXACT)
        for index, end in enumerate(ends):
            both = h.view(2, -1, 3, H)[index].transpose(0, 1).reshape(3, D)
            torch.testing.assert_close(end, both, **EXACT)
