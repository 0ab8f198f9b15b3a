"""What a layer costs by length n and by width d, measured, beside what the table of the lectures predicts.

    self-attention               n² d      1 sequential step    longest path 1
    recurrent                    n d²      n                    n
    convolution, width k         k n d²    1                    log_k n
    restricted attention, r      r n d     1                    n / r

(Vaswani et al. 2017, table 1). The table counts the mixing alone: queries, keys and values are given. Their four d x d
products cost 4 n d² more and hide the rest where d is not much smaller than n; `has_projections` measures them too.
Attention is measured twice: by the plain path, which makes the n x n weights, and by the fused one, which does not keep
them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.kernels.causal_attention import MAX_T, causal_attention, window_attention
from regard.layers.attention import MultiHeadAttention, plain_attention
from regard.layers.convolution import CausalConvolution
from regard.layers.recurrent import RecurrentLayer
from regard.layers.taps import Taps
from regard.score.figures import join_names
from regard.studies.brief import watch
from regard.studies.config import CostConfig
from regard.studies.finding import Chart, Finding, Numbers, lines_of
from regard.studies.fits import MAX_OFF, PowerLaw, fit_power_law, to_text
from regard.text.learning import Progress
from regard.training.device import pick_device

Forward = Callable[[Float[Tensor, "B T D"]], Tensor]
Made = tuple[Forward, list[nn.Parameter]]
MIN_SECONDS = 0.02  # a measurement that is over sooner is made of several passes


@dataclass(frozen=True)
class Layer:
    """A kind of layer: how one is made at width d, what the table says of it, and its FLOPs forward."""

    name: str
    make: Callable[[int, CostConfig, torch.device], Made]
    formula: str
    by_n: int
    by_d: int
    n_sequential: str
    path: str
    flops: Callable[[int, int, CostConfig], int]


@dataclass(frozen=True)
class Point:
    """One layer at one size: the shortest of several forward and backward passes, and the bytes kept between them."""

    layer: str
    n: int
    d: int
    seconds: float
    n_bytes: int
    flops: int


def _make_attention(kind: str, d: int, config: CostConfig, device: torch.device) -> Made:
    r = config.n_window if kind == "restricted" else None
    if config.has_projections:
        layer = MultiHeadAttention(d, 1, n_window=r).to(device)
        return lambda x: layer(x, None, Taps() if kind == "attention" else None)[0], list(layer.parameters())
    if r is not None:
        return lambda x: window_attention(x[:, None], x[:, None], x[:, None], r, 0.0), []
    if kind == "fused":
        return lambda x: causal_attention(x[:, None], x[:, None], x[:, None], 0.0), []
    return lambda x: plain_attention(x[:, None], x[:, None], x[:, None], 0.0, Taps()), []


def _make_recurrent(d: int, config: CostConfig, device: torch.device) -> Made:
    layer = RecurrentLayer("rnn", d, d).to(device)
    return lambda x: layer(x, layer.start(len(x), x))[0], list(layer.parameters())


def _make_convolution(d: int, config: CostConfig, device: torch.device) -> Made:
    layer = CausalConvolution(d, d, config.n_kernel).to(device)
    return lambda x: layer(x, layer.start(len(x), x))[0], list(layer.parameters())


def _attention_flops(n: int, d: int, config: CostConfig, n_keys: int) -> int:
    return 4 * n * n_keys * d + (2 * 4 * n * d * d if config.has_projections else 0)


LAYERS: tuple[Layer, ...] = (
    Layer("attention", partial(_make_attention, "attention"), "n² d", 2, 1, "1", "1",
          lambda n, d, c: _attention_flops(n, d, c, n)),
    Layer("fused", partial(_make_attention, "fused"), "n² d", 2, 1, "1", "1",
          lambda n, d, c: _attention_flops(n, d, c, n)),
    Layer("recurrent", _make_recurrent, "n d²", 1, 2, "n", "n", lambda n, d, c: 4 * n * d * d),
    Layer("convolution", _make_convolution, "k n d²", 1, 2, "1", "log_k n", lambda n, d, c: 2 * c.n_kernel * n * d * d),
    Layer("restricted", partial(_make_attention, "restricted"), "r n d", 1, 1, "1", "n / r",
          lambda n, d, c: _attention_flops(n, d, c, min(c.n_window, n))),
)  # fmt: skip


def measure(config: CostConfig, runs: Sequence[Any], tell: Progress) -> Finding:
    """Every layer at every length, and at every width."""
    device = pick_device(config.device, "device")
    by_n = _measure("by length", [(n, config.d_fixed) for n in config.lengths], config, device, tell)
    by_d = _measure("by width", [(config.n_fixed, d) for d in config.widths], config, device, tell)
    return _finding(config, by_n, by_d, device)


def _measure(
    what: str, sizes: Sequence[tuple[int, int]], config: CostConfig, device: torch.device, tell: Progress
) -> list[Point]:
    """Every layer at every size. Rounds go through all of them in turn, so that a busy moment hits none alone."""
    cases = [(layer, n, d) for n, d in sizes for layer in LAYERS]
    best: dict[tuple[str, int, int], float] = {}
    kept: dict[tuple[str, int, int], int] = {}
    for layer, n, d in watch(f"cost {what}", (1 + config.n_repeats) * cases, tell):
        torch.manual_seed(0)
        forward, parameters = layer.make(d, config, device)
        x = torch.randn(1, n, d, device=device, requires_grad=True)
        key = layer.name, n, d
        if key not in kept:  # the first round: memory is the same each time; and this warms up
            kept[key] = count_kept_bytes(forward, x, parameters)
        else:
            best[key] = min(best.get(key, float("inf")), time_pass(forward, x, parameters))
    return [
        Point(layer.name, n, d, best[layer.name, n, d], kept[layer.name, n, d], layer.flops(n, d, config))
        for layer, n, d in cases
    ]


def time_pass(forward: Forward, x: Tensor, parameters: Sequence[Tensor]) -> float:
    """Seconds of one forward and backward pass; short ones are made again and again, and divided."""
    n_passes = 1
    while True:
        _wait(x)
        began = time.perf_counter()
        for _ in range(n_passes):
            _pass(forward, x, parameters)
        _wait(x)
        seconds = time.perf_counter() - began
        if seconds >= MIN_SECONDS:
            return seconds / n_passes
        n_passes = max(2 * n_passes, int(n_passes * MIN_SECONDS / max(seconds, 1e-6)) + 1)


def _pass(forward: Forward, x: Tensor, parameters: Sequence[Tensor]) -> None:
    y = forward(x)
    torch.autograd.grad(y, [x, *parameters], torch.ones_like(y))


def _wait(x: Tensor) -> None:
    if x.is_cuda:
        torch.cuda.synchronize(x.device)


def count_kept_bytes(forward: Forward, x: Tensor, parameters: Sequence[Tensor]) -> int:
    """What a forward and backward pass needs beside its input and weights.

    On a GPU the highest level that was allocated. On a CPU, where none is counted, the bytes that autograd keeps from
    the forward pass for the backward pass, each piece of memory once: the same every time.
    """
    if x.is_cuda:
        _pass(forward, x, parameters)
        torch.cuda.synchronize(x.device)
        torch.cuda.reset_peak_memory_stats(x.device)
        before = torch.cuda.memory_allocated(x.device)
        _pass(forward, x, parameters)
        return max(1, torch.cuda.max_memory_allocated(x.device) - before)
    own = {_address(tensor) for tensor in (x, *parameters)}
    kept: dict[Any, int] = {}
    alive: list[Tensor] = []  # so that no address is used again for another tensor

    def keep(tensor: Tensor) -> Tensor:
        alive.append(tensor)
        if _address(tensor) not in own:
            kept[_address(tensor)] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        y = forward(x)
    alive.append(y)
    kept[_address(y)] = y.untyped_storage().nbytes()
    return sum(kept.values())


def _address(tensor: Tensor) -> Any:
    return tensor.untyped_storage()._cdata


Exponents = dict[str, PowerLaw | None]
"""Of one layer: how time, memory and counted FLOPs grow with n and with d, such as `time_by_n`; None: as no power."""


def exponents(layer: str, by_n: Sequence[Point], by_d: Sequence[Point], n_largest: int) -> Exponents:
    """The power laws of one layer's points."""
    return {
        f"{what}_by_{size}": fit_power_law(
            [getattr(p, size) for p in points if p.layer == layer],
            [getattr(p, value) for p in points if p.layer == layer],
            n_largest,
        )
        for what, value in (("time", "seconds"), ("memory", "n_bytes"), ("flops", "flops"))
        for size, points in (("n", by_n), ("d", by_d))
    }


def _finding(config: CostConfig, by_n: list[Point], by_d: list[Point], device: torch.device) -> Finding:
    fitted = {layer.name: exponents(layer.name, by_n, by_d, config.n_largest) for layer in LAYERS}
    n, d = f"at width d = {config.d_fixed}", f"at length n = {config.n_fixed:,}"
    time_label = "milliseconds, forward and backward"
    kept = "memory at its highest, MB" if device.type == "cuda" else "memory kept for the way back, MB"
    return Finding(
        question="What does a layer cost?",
        sentence=cost_sentence(fitted, config),
        charts=(
            _chart("Time by length", "length n", time_label, by_n, "n", 1e3, "seconds", n),
            _chart("Time by width", "width d", time_label, by_d, "d", 1e3, "seconds", d),
            _chart("Memory by length", "length n", kept, by_n, "n", 2**-20, "n_bytes", n + _kink(config, device)),
            _chart("Memory by width", "width d", kept, by_d, "d", 2**-20, "n_bytes", d),
        ),
        summary=_exponent_table(fitted, config),
        tables=(_lecture_table(fitted), _every(by_n, "By length", n), _every(by_d, "By width", d)),
        method=_method(config, device),
        numbers={
            "exponents": [
                {"layer": layer, **{key: law and asdict(law) for key, law in laws.items()}}
                for layer, laws in fitted.items()
            ],
            "by_length": [vars(p) for p in by_n],
            "by_width": [vars(p) for p in by_d],
            "device": str(device),
        },
    )


def _exponent_table(fitted: Mapping[str, Exponents], config: CostConfig) -> Numbers:
    rows = []
    for layer in LAYERS:
        time_n, time_d, memory_n, memory_d, *_ = (str(law or "none") for law in fitted[layer.name].values())
        rows.append((layer.name, layer.formula, str(layer.by_n), time_n, memory_n, str(layer.by_d), time_d, memory_d))
    return Numbers(
        "Exponents: predicted and measured",
        ("layer", "cost", "n^", "time", "memory", "d^", "time", "memory"),
        tuple(rows),
        note="Cost grows as n to the power in the first group and as d to the power in the second: what the lectures' "
        f"table says, then what was fitted to the {config.n_largest} largest sizes, ± how far one of them lies off the "
        f"fit; none: no power law at these sizes. k = {config.n_kernel}, r = {config.n_window}.",
    )


def _lecture_table(fitted: Mapping[str, Exponents]) -> Numbers:
    rows = tuple(
        (
            layer.name, layer.formula, *(str(fitted[layer.name][f"flops_by_{size}"] or "none") for size in "nd"),
            layer.n_sequential, layer.path,
        )
        for layer in LAYERS
    )  # fmt: skip
    return Numbers(
        "The rest of the lectures' table",
        ("layer", "cost", "FLOPs, n^", "FLOPs, d^", "steps one after the other", "longest path"),
        rows,
        note="Exponents of the counted operations at the same sizes; how many steps have to wait for each other; and "
        "over how many steps two positions can be connected.",
    )


def _chart(
    title: str, x_label: str, y_label: str, points: Sequence[Point], size: str, unit: float, value: str, note: str
) -> Chart:
    lines = lines_of((p.layer, getattr(p, size), unit * getattr(p, value)) for p in points)
    sizes = tuple(sorted({float(getattr(p, size)) for p in points}))
    note = f"One layer, one sequence, {note}."
    return Chart(title, x_label, y_label, lines, is_x_log=True, measured_at=sizes, note=note)


def _kink(config: CostConfig, device: torch.device) -> str:
    """Why the line of fused attention bends, where it does."""
    if device.type == "cuda" or not min(config.lengths) <= MAX_T < max(config.lengths):
        return ""
    return f". Up to {MAX_T} tokens the fused path keeps half of the weights, because that is faster on a CPU"


def _every(points: Sequence[Point], title: str, note: str) -> Numbers:
    sizes = list(dict.fromkeys((p.n, p.d) for p in points))
    at = {(p.layer, p.n, p.d): f"{to_text(1e3 * p.seconds)} ms, {to_text(p.n_bytes / 2**20)} MB" for p in points}
    rows = tuple((layer.name, *(at[layer.name, n, d] for n, d in sizes)) for layer in LAYERS)
    return Numbers(title, ("layer", *(f"n {n:,}, d {d:,}" for n, d in sizes)), rows, note=f"One sequence, {note}.")


def cost_sentence(fitted: Mapping[str, Exponents], config: CostConfig) -> str:
    """What the numbers say, in one sentence."""
    times: list[str] = []
    memory: list[str] = []
    uneven: list[str] = []
    for layer, laws in fitted.items():
        powers = {size: _power(size, laws[f"time_by_{size}"]) for size in "nd"}
        if any(powers.values()):
            times.append(f"{layer} {' '.join(power for power in powers.values() if power)}")
        uneven += [f"the time of {layer} with {size}" for size, power in powers.items() if not power]
    for layer, name in (("attention", "plain attention"), ("fused", "fused attention")):
        power = _power("n", fitted[layer]["memory_by_n"])
        (memory if power else uneven).append(f"{power} in {name}" if power else f"the memory of {name} with n")
    text = [f"time grew as {join_names(times)}"] if times else []
    text += [f"memory with n as {join_names(memory)}"] if memory else []
    if not text:
        text = ["neither time nor memory followed a power law"]
    elif uneven:
        text.append(f"no power law fits {join_names(uneven)}")
    sizes = f"with n up to {max(config.lengths):,} and d up to {max(config.widths):,}"
    return f"Measured once on this machine, {sizes}: {'; '.join(text)}."


def _power(size: str, law: PowerLaw | None) -> str:
    return "" if law is None else f"{size}^{law.exponent:.1f}"


def _method(config: CostConfig, device: torch.device) -> dict[str, str]:
    what = (
        "with their four d x d products"
        if config.has_projections
        else "queries, keys and values given: the products that make them, 4 n d² more, are not in the table either"
    )
    memory = (
        "the highest level of allocated memory in a forward and backward pass"
        if device.type == "cuda"
        else "bytes that autograd keeps from the forward for the backward pass, output included; input and weights are "
        "left out"
    )
    n_threads = torch.get_num_threads()
    return {
        "Layers": f"attention with one head, {what}; Elman's network for recurrent; k = {config.n_kernel}, r = "
        f"{config.n_window}; float32, one sequence, on {device}, {n_threads} thread{'s' * (n_threads > 1)}",
        "Time": f"forward and backward; the shortest of {config.n_repeats} measurements, made in turns",
        "Memory": memory,
        "Fit": f"least squares in log-log over the {config.n_largest} largest sizes, three or more; no exponent is "
        f"given where a size lies more than {MAX_OFF:.0%} off the fit, or cost falls",
        "FLOPs": "2 × multiply-adds of the forward pass; restricted attention as its window asks (blocks compute "
        "twice as many scores and hide half)",
    }
