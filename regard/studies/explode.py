"""Exploding gradients: what the spectral radius of V does to a recurrent network, and what clipping does about it.

    linear   h_t = V h_{t-1} + E x_t + b            tanh   h_t = tanh(V h_{t-1} + E x_t + b)

Of a loss that reads h_t alone, ∂L/∂h_{t-k} = (Vᵀ)^k ∂L/∂h_t in the linear network: with V of spectral radius ρ it
shrinks or grows as ρ^k, exactly so where V is ρ times an orthogonal matrix. In the tanh network every factor is
multiplied by 1 - h² as well, which is at most 1 (Bengio et al. 1994; Pascanu et al. 2013).

Clipping multiplies the gradient of all weights by min(1, c/‖g‖), and so every distance by the same factor: no update is
longer than c, and what is far away is heard as little beside what is near as before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from regard.layers.recurrent import elman_step
from regard.score.figures import join_names
from regard.studies import brief
from regard.studies.finding import Chart, Finding, Line, Numbers, lines_of
from regard.studies.fits import Spread, say_seeds, spread, to_text
from regard.studies.mechanism_config import ExplodeConfig
from regard.text.learning import Progress

KINDS = ("linear", "tanh")
N_SYMBOLS = 8
LAG = 2  # the symbol to be named is the one read so many steps before
SPREAD = 0.3  # of the embeddings, as Regard's recurrent language models start
N_LAST = 10  # the loss at the end is the mean of so many updates
LEARNED = 0.5  # nats below which the task counts as learned; guessing costs log 8 = 2.08


class Network(NamedTuple):
    """A recurrent network that names symbols."""

    V: Float[Tensor, "H H"]
    E: Float[Tensor, "S H"]
    b: Float[Tensor, " H"]
    W: Float[Tensor, "S H"]
    """log P(symbol) = log softmax(W h)"""


@dataclass(frozen=True)
class Fading:
    """Norms ‖∂L/∂h_{t-k}‖ by k of one fresh network, mean over sequences; and what clipping leaves of them."""

    kind: str
    radius: float
    seed: int
    norms: list[float]
    clipped: list[float]


@dataclass(frozen=True)
class Lesson:
    """One brief training: the loss by update, None from where it was no number."""

    kind: str
    radius: float
    seed: int
    is_clipped: bool
    losses: list[float | None]
    largest: float
    """The largest norm of a gradient, before clipping."""

    @property
    def end(self) -> float:
        """The loss over the last updates; infinite where training broke down."""
        last = self.losses[-N_LAST:]
        return math.inf if None in last else sum(filter(None, last)) / len(last)


def measure(config: ExplodeConfig, runs: Sequence[Any], tell: Progress, n_jobs: int = 1) -> Finding:
    """Follow gradients through fresh networks of every radius, then train them with clipping and without.

    `n_jobs` changes nothing: all of it takes a minute.
    """
    cases = [(kind, radius, seed) for kind in KINDS for radius in config.radii for seed in brief.list_seeds(config)]
    fading = [follow(config, *case) for case in brief.watch("gradients", cases, tell)]
    lessons = [
        teach(config, *case, is_clipped)
        for case in brief.watch("trainings", cases, tell)
        for is_clipped in (False, True)
    ]
    return _finding(config, fading, lessons)


def scale_matrix(kind: str, width: int, radius: float, draws: torch.Generator) -> Float[Tensor, "H H"]:
    """A random matrix whose largest eigenvalue has absolute value `radius`.

    orthogonal: all eigenvalues have it, and so V stretches every vector alike; gaussian: most are smaller, and single
    steps can stretch more than ρ, though many together cannot.
    """
    V = torch.randn(width, width, generator=draws, dtype=torch.float64)
    if kind == "orthogonal":
        V = torch.linalg.qr(V).Q
    largest: Tensor = torch.linalg.eigvals(V).abs().max()
    return V * (radius / largest)


def draw_network(config: ExplodeConfig, radius: float, seed: int) -> Network:
    """Fresh weights, in float64: a gradient that has grown by 1.5^50 must not overflow before it is seen."""
    draws = torch.Generator().manual_seed(seed)
    H = config.d_model
    V = scale_matrix(config.matrix, H, radius, draws)
    E, W = (torch.randn(N_SYMBOLS, H, generator=draws, dtype=torch.float64) for _ in range(2))
    weights = Network(V, SPREAD * E, torch.zeros(H, dtype=torch.float64), W / math.sqrt(H))
    return Network(*(part.requires_grad_() for part in weights))


def read_symbols(network: Network, kind: str, symbols: Int[Tensor, "B T"]) -> list[Float[Tensor, "B H"]]:
    """h_1 ... h_T, each a tensor of its own that all later ones come from."""
    h = network.V.new_zeros(len(symbols), len(network.b))
    states = []
    for x in symbols.unbind(1):
        from_x, from_h = network.E[x] + network.b, functional.linear(h, network.V)
        h = from_x + from_h if kind == "linear" else elman_step(from_x, from_h, (h,))[0]
        states.append(h)
    return states


def draw_symbols(n: int, length: int, draws: torch.Generator) -> Int[Tensor, "n length"]:
    return torch.randint(N_SYMBOLS, (n, length), generator=draws)


def follow(config: ExplodeConfig, kind: str, radius: float, seed: int) -> Fading:
    """The gradient of the loss at the last step with respect to every state before it."""
    network = draw_network(config, radius, seed)
    symbols = draw_symbols(config.n_texts, config.max_distance + 1, torch.Generator().manual_seed(seed))
    states = read_symbols(network, kind, symbols)
    loss = functional.cross_entropy(functional.linear(states[-1], network.W), symbols[:, -1 - LAG], reduction="sum")
    *of_states, V, E, b, W = torch.autograd.grad(loss, [*states, *network])
    whole = norm_of([part / config.n_texts for part in (V, E, b, W)])
    norms = [float(torch.linalg.vector_norm(g, dim=-1).mean()) for g in reversed(of_states)]  # nearest first
    factor = min(1.0, config.clip / whole)
    return Fading(kind, radius, seed, norms, [factor * norm for norm in norms])


def norm_of(gradients: Sequence[Tensor]) -> float:
    """The length of all gradients as one vector."""
    return float(torch.stack([torch.linalg.vector_norm(g) for g in gradients]).norm())


def teach(config: ExplodeConfig, kind: str, radius: float, seed: int, is_clipped: bool) -> Lesson:
    """Plain gradient descent on naming the symbol read LAG steps before, at every step; ends where it breaks down."""
    network, draws = draw_network(config, radius, seed), torch.Generator().manual_seed(seed)
    losses: list[float | None] = []
    largest = 0.0
    while len(losses) < config.n_steps:
        symbols = draw_symbols(config.n_batch, config.max_distance + 1, draws)
        states = torch.stack(read_symbols(network, kind, symbols), dim=1)[:, LAG:]  # (B, T - LAG, H)
        logits = functional.linear(states, network.W).flatten(0, 1)
        loss = functional.cross_entropy(logits, symbols[:, :-LAG].flatten())
        gradients = torch.autograd.grad(loss, list(network))
        size = norm_of(gradients)
        if not (math.isfinite(loss.item()) and math.isfinite(size)):
            return Lesson(kind, radius, seed, is_clipped, losses + [None] * (config.n_steps - len(losses)), math.inf)
        losses.append(loss.item())
        largest = max(largest, size)
        step = config.lr * (min(1.0, config.clip / size) if is_clipped and size > 0 else 1.0)
        with torch.no_grad():
            for weight, gradient in zip(network, gradients, strict=True):
                weight -= step * gradient
    return Lesson(kind, radius, seed, is_clipped, losses, largest)


def measure_factor(fading: Fading) -> float:
    """By what factor the norm changes a step, from the middle of the distances to the farthest.

    >>> measure_factor(Fading("linear", 0.5, 0, [8.0, 4.0, 2.0, 1.0, 0.5], []))
    0.5
    """
    far, near = len(fading.norms) - 1, len(fading.norms) // 2
    a, b = fading.norms[near], fading.norms[far]
    return (b / a) ** (1 / (far - near)) if a > 0 else 0.0


def _finding(config: ExplodeConfig, fading: Sequence[Fading], lessons: Sequence[Lesson]) -> Finding:
    return Finding(
        question="When do gradients explode, and what does clipping do about it?",
        sentence=explode_sentence(config, fading, lessons),
        charts=_charts(config, fading, lessons),
        summary=_summary(config, fading, lessons),
        method=_method(config),
        numbers={
            "distances": list(range(config.max_distance + 1)),
            "curves": [asdict(f) | {"factor": measure_factor(f)} for f in fading],
            "lessons": [asdict(each) | {"end": each.end if math.isfinite(each.end) else None} for each in lessons],
        },
    )


def _charts(config: ExplodeConfig, fading: Sequence[Fading], lessons: Sequence[Lesson]) -> tuple[Chart, ...]:
    def follow_kind(kind: str, of: Callable[[Fading], list[float]]) -> tuple[Line, ...]:
        rows = [(_name(f.radius), k, norm) for f in fading if f.kind == kind for k, norm in enumerate(of(f))]
        return lines_of(rows, is_log=True)

    def theory(line: Line, radius: float) -> Line:
        first = line.points[0][1]
        return Line(f"{radius:g}^k", tuple((k, first * radius**k) for k, _ in line.points), (), "2 3", "theory")

    linear = follow_kind("linear", lambda f: f.norms)
    limits = _limits(linear)
    learning = [
        (f"{_name(each.radius)}, {'clipped' if each.is_clipped else 'not clipped'}", step, loss)
        for each in lessons
        if each.kind == "linear" and each.radius == max(config.radii)
        for step, loss in enumerate(each.losses, start=1)
        if loss is not None
    ]
    back, norm = "steps back", "norm of ∂L/∂h"
    return (
        Chart(
            "Linear network, and ρ^k", back, norm,
            (*linear, *(theory(line, radius) for line, radius in zip(linear, config.radii, strict=True))),
            y_limits=limits, note="The gradient of the last loss with respect to the state k steps back. Dotted: ρ^k "
            "times the gradient at the last state.",
        ),
        Chart(
            "Tanh network", back, norm, follow_kind("tanh", lambda f: f.norms), y_limits=limits,
            note="The same with tanh, whose slope is below 1 wherever a state is not zero.",
        ),
        Chart(
            "Linear network, clipped", back, norm, follow_kind("linear", lambda f: f.clipped), y_limits=limits,
            note=f"What is left where the gradient of all weights is clipped to {config.clip:g}: the same lines, each "
            "moved down as a whole.",
        ),
        Chart(
            "Training the linear network", "updates", "nats a symbol", lines_of(learning, is_log=True),
            note="Plain gradient descent at the largest radius. A line that ends early became infinite or no number.",
        ),
    )  # fmt: skip


def _limits(lines: Sequence[Line]) -> tuple[float, float]:
    """Of all norms above 1e-12 of the nearest: what is smaller is gone."""
    values = [y for line in lines for _, y in line.points]
    low = max(min(values), max(line.points[0][1] for line in lines) * 1e-12)
    return low / 2, 2 * max(values)


def _name(radius: float) -> str:
    return f"ρ = {radius:g}"


def _ends(lessons: Sequence[Lesson], kind: str, radius: float, is_clipped: bool) -> list[float]:
    return [e.end for e in lessons if (e.kind, e.radius, e.is_clipped) == (kind, radius, is_clipped)]


def _say_end(ends: Sequence[float]) -> str:
    """The loss at the end over seeds, or how many trainings broke down."""
    n_broken = sum(not math.isfinite(end) for end in ends)
    if n_broken:
        return f"broke down ({n_broken} of {len(ends)})"
    return str(spread(ends, is_log=True))


def _factor(fading: Sequence[Fading], kind: str, radius: float) -> Spread:
    return spread([measure_factor(f) for f in fading if (f.kind, f.radius) == (kind, radius)], is_log=True)


def _summary(config: ExplodeConfig, fading: Sequence[Fading], lessons: Sequence[Lesson]) -> Numbers:
    rows = []
    for kind in KINDS:
        for radius in config.radii:
            ends = (_say_end(_ends(lessons, kind, radius, is_clipped)) for is_clipped in (False, True))
            rows.append((f"{kind}, {radius:g}", _factor(fading, kind, radius).write("{:.2f}".format), *ends))
    return Numbers(
        f"Factor of the gradient a step; the loss after {config.n_steps} updates, in nats",
        ("network, ρ", "factor", "not clipped", "clipped"),
        tuple(rows),
        note="The factor by which the norm of the gradient changes a step, over the farther half of the distances. In "
        "brackets 95% intervals over seeds.",
    )


def explode_sentence(config: ExplodeConfig, fading: Sequence[Fading], lessons: Sequence[Lesson]) -> str:
    """What the numbers say, in one sentence."""
    factors = {
        kind: join_names([_factor(fading, kind, radius).write("{:.2f}".format) for radius in config.radii])
        for kind in KINDS
    }
    broken = {
        (kind, is_clipped): [
            f"{radius:g}" for radius in config.radii
            if any(not end < LEARNED for end in _ends(lessons, kind, radius, is_clipped))
        ]
        for kind in KINDS for is_clipped in (False, True)
    }  # fmt: skip
    text = (
        f"{say_seeds(config.n_seeds)}: with spectral radius {join_names([f'{r:g}' for r in config.radii])} the "
        f"gradient changes by a factor of {factors['linear']} a step in a linear network and of {factors['tanh']} "
        "with tanh; "
    )
    parts = []
    for kind in KINDS:
        without, with_clipping = broken[kind, False], broken[kind, True]
        if not without and not with_clipping:
            parts.append(f"the {kind} network learns at every radius, clipped or not")
        elif not with_clipping:
            parts.append(f"unclipped, the {kind} network does not learn at {join_names(without)}, and clipped it does")
        else:
            unclipped = f"unclipped at {join_names(without)}" if without else "unclipped nowhere"
            parts.append(f"the {kind} network fails {unclipped} and clipped at {join_names(with_clipping)}")
    return text + "; ".join(parts) + "."


def _method(config: ExplodeConfig) -> Mapping[str, str]:
    return {
        "Networks": f"h = V h + E x + b, with tanh or without, {config.d_model} wide, in float64; V {config.matrix}, "
        f"scaled to spectral radius ρ; embeddings N(0, {SPREAD:g}²), as Regard's recurrent language models start",
        "Gradient": f"of the loss of the last of {config.max_distance + 1} steps with respect to every state before, "
        f"by automatic differentiation; Euclidean norm, mean over {config.n_texts} sequences",
        "Clipping": f"of the gradient of all weights together to norm {config.clip:g}: each is multiplied by min(1, "
        f"{config.clip:g}/norm)",
        "Training": f"{config.n_steps} updates of {config.n_batch} sequences of {config.max_distance + 1} out of "
        f"{N_SYMBOLS} symbols, learning rate {config.lr:g}, plain gradient descent; at every step the symbol {LAG} "
        f"steps before is to be named. Guessing costs {to_text(math.log(N_SYMBOLS))} nats; a loss below {LEARNED:g} "
        "counts as learned",
        **brief.describe_seeds(config, ()),
    }
