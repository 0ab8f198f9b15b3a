"""The state that a model carries from one window to the next: nested tuples of tensors and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def detach(tree: Any) -> Any:
    """Copy the values of a state without their history, into memory of their own.

    A state may be a view into a larger tensor, and a product over memory that is aligned or strided in another way
    may add in another order: a run that read its state from a file would differ in the last bit (seen with a GRU).
    """
    if isinstance(tree, Tensor):
        return tree.detach().clone(memory_format=torch.contiguous_format)
    return tuple(detach(part) for part in tree) if isinstance(tree, tuple) else tree


def flatten(tree: Any) -> tuple[dict[str, Tensor], Any]:
    """Take a state apart: tensors by name, and the shape of the tree as JSON.

    >>> flatten((3, (None,)))
    ({}, [3, [None]])
    """
    tensors: dict[str, Tensor] = {}

    def shape(part: Any) -> Any:
        if isinstance(part, Tensor):
            name = str(len(tensors))
            tensors[name] = part
            return {"tensor": name}
        return [shape(p) for p in part] if isinstance(part, tuple) else part

    json_shape = shape(tree)
    return tensors, json_shape


def unflatten(tensors: Mapping[str, Tensor], shape: Any) -> Any:
    """Put together what `flatten` took apart."""
    if isinstance(shape, dict):
        return tensors[shape["tensor"]]
    return tuple(unflatten(tensors, part) for part in shape) if isinstance(shape, list) else shape
