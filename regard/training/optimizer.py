"""The update rules, the rate of each weight, which weights decay, and their state as named tensors.

One learning rate does not suit every width: a matrix that reads n numbers moves its output by about n times what each
of its entries moves, and Adam moves every entry by the rate. So the rates of a language model follow the width, after
muP (Yang et al. 2021), where W is a matrix that reads n numbers, E the embeddings and the output matrix, and b all
vectors and the positions:

    W: lr · min(4, 128 / n)        E: lr · embedding_rate        b: lr

The best lr then stays in its place from a width of 64 to one of 512 (docs/defaults.md). By default `embedding_rate`
follows the spread that the embeddings of a model start with (`ModelEntry.embedding_rate_at`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.table import BASE_WIDTH
from regard.training.config import OptimizerConfig

Named = list[tuple[str, nn.Parameter]]
EMBEDDINGS = ("embedding", "head")
POSITIONS = "positions.table"
TABLES = ("segments",)
ENCODER = "encoder."
ABOVE_ENCODER = ("head.", "choice.", "mixer.")
"""What names begin with where a task puts a head above an encoder (`models/reader.py`)."""
_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
LARGEST_FACTOR = 4.0  # below a width of 32, where nothing was measured, rates rise no further


def build_optimizer(parameters: Iterable[tuple[str, nn.Parameter]], config: OptimizerConfig) -> torch.optim.Optimizer:
    """AdamW (Loshchilov & Hutter 2019) or SGD. Only matrices decay: a bias or a norm's gain has no reason to be small.

    With `decays_vectors` they do, as in Merity et al. 2018, who decay every weight. For sgd the decay is added to the
    gradient after it was clipped; for adamw it is apart from the gradient.

    The learning rate is set before each update (`set_rate`); it starts at zero here.
    """
    config = config.complete(is_recurrent=False)  # the weight decay does not depend on the model
    groups: dict[tuple[bool, float], list[nn.Parameter]] = {(True, 1.0): [], (False, 1.0): []}
    named = list(parameters)
    has_encoder = any(name.startswith(ENCODER) for name, _ in named)
    below = {name for name, _ in named if not (has_encoder and name.startswith(ABOVE_ENCODER))}
    n_layers = max((depth_of(name) or 0 for name in below), default=0)
    for name, parameter in named:
        factor = layer_factor(name, n_layers, config.layer_decay) if name in below else config.head_rate
        factor *= rate_factor(name, parameter, config)
        groups.setdefault((parameter.ndim >= 2, factor), []).append(parameter)
    decays = {True: config.weight_decay, False: config.weight_decay if config.decays_vectors else 0.0}
    made = [
        {"params": group, "weight_decay": decays[is_matrix], "rate_factor": factor}
        for (is_matrix, factor), group in groups.items()
        if group
    ]
    is_fused = config.is_fused and all(p.device.type in ("cpu", "cuda") for group in groups.values() for p in group)
    if config.name == "sgd":
        return torch.optim.SGD(made, lr=0.0, momentum=config.momentum, fused=is_fused)
    on_gpu = all(p.is_cuda for group in groups.values() for p in group)
    return torch.optim.AdamW(made, lr=0.0, betas=config.betas, fused=is_fused, capturable=is_fused and on_gpu)


def rate_factor(name: str, parameter: Tensor, config: OptimizerConfig) -> float:
    """What the learning rate of a weight is multiplied by.

    >>> rate_factor("mixer.out.weight", torch.zeros(8, 256), OptimizerConfig(follows_width=True))
    0.5
    >>> rate_factor("embedding", torch.zeros(8, 512), OptimizerConfig(follows_width=True, embedding_rate=4.0))
    4.0
    """
    if name.rpartition(".")[2] in EMBEDDINGS:
        return 1.0 if config.embedding_rate is None else config.embedding_rate
    if not config.follows_width or parameter.ndim < 2 or name.endswith(POSITIONS):
        return 1.0
    return min(LARGEST_FACTOR, BASE_WIDTH / parameter.shape[-1])


def depth_of(name: str) -> int | None:
    """The layer that a weight belongs to, from 1; 0: what comes before the first; None: what comes after the last.

    >>> [depth_of(name) for name in ("encoder.embedding", "encoder.mixer.layers.2.norm.weight", "head.out.weight")]
    [0, 3, None]
    """
    if (found := _LAYER.search(name)) is not None:
        return int(found[1]) + 1
    return 0 if name.rpartition(".")[2] in (*TABLES, EMBEDDINGS[0]) or name.endswith(POSITIONS) else None


def layer_factor(name: str, n_layers: int, decay: float) -> float:
    """What the rate of a weight is multiplied by for the layers that lie above it.

    >>> layer_factor("layers.0.weight", 3, 0.5), layer_factor("norm.weight", 3, 0.5)
    (0.25, 1.0)
    """
    depth = depth_of(name)
    return 1.0 if depth is None or decay == 1 else decay ** (n_layers - depth)


def set_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Set the rate of every weight; `lr` is that of weights whose factor is one."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group["rate_factor"]


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float | None) -> Tensor:
    """The length of the gradient over all weights, before it is scaled down to `max_norm` (Pascanu et al. 2013)."""
    weights = [p for p in parameters if p.grad is not None]
    norm = nn.utils.get_total_norm([p.grad for p in weights if p.grad is not None])
    if max_norm is not None:
        nn.utils.clip_grads_with_norm_(weights, max_norm, norm)
    return norm


def optimizer_tensors(optimizer: torch.optim.Optimizer, parameters: Named) -> dict[str, Tensor]:
    """The optimiser's state as `WEIGHT/SLOT`: `mixer.layers.0.weight/exp_avg`. Settings are the config's, not state."""
    return {
        f"{name}/{slot}": value.detach()
        for name, parameter in parameters
        for slot, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, parameters: Named, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` gave; the optimiser must have been built with the same config."""
    by_name = dict(parameters)
    order = {id(p): i for i, p in enumerate(p for group in optimizer.param_groups for p in group["params"])}
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        name, _, slot = key.rpartition("/")
        if name not in by_name:
            raise RegardError(f"The saved optimiser state has '{name}', which this model has not.")
        state.setdefault(order[id(by_name[name])], {})[slot] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
