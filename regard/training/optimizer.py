"""The update rules, which weights they decay, and their state as named tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.training.config import OptimizerConfig

Named = list[tuple[str, nn.Parameter]]


def build_optimizer(parameters: Iterable[tuple[str, nn.Parameter]], config: OptimizerConfig) -> torch.optim.Optimizer:
    """AdamW (Loshchilov & Hutter 2019) or SGD. Only matrices decay: a bias or a norm's gain has no reason to be small.

    With `decays_vectors` they do, as in Merity et al. 2018, who decay every weight. For sgd the decay is added to the
    gradient after it was clipped; for adamw it is apart from the gradient.

    The learning rate is set before each update (`set_rate`); it starts at zero here.
    """
    matrices: list[nn.Parameter] = []
    vectors: list[nn.Parameter] = []
    for _, parameter in parameters:
        (matrices if parameter.ndim >= 2 else vectors).append(parameter)
    decay = config.complete(is_recurrent=False).weight_decay  # which does not depend on the model
    vector_decay = decay if config.decays_vectors else 0.0
    groups = [
        {"params": group, "weight_decay": rate} for group, rate in ((matrices, decay), (vectors, vector_decay)) if group
    ]
    is_fused = config.is_fused and all(p.device.type in ("cpu", "cuda") for p in matrices + vectors)
    if config.name == "sgd":
        return torch.optim.SGD(groups, lr=0.0, momentum=config.momentum, fused=is_fused)
    return torch.optim.AdamW(groups, lr=0.0, betas=config.betas, fused=is_fused)


def highest_rate(config: OptimizerConfig, carries_state: bool) -> float:
    """`optimizer.lr`, or where it is null a rate that suits the rule and the kind of model."""
    lr = config.complete(carries_state).lr
    assert lr is not None
    return lr


def set_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = lr


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
