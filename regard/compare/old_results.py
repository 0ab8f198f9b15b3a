"""Comparisons that version 0.1.0 wrote, in the form that this version reads.

Schema 1 without a `kind` holds language models that were trained to be compared; `kind` "runs" holds finished runs of
models that translate, parse or describe pictures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from regard.score.figures import count_text

SCHEMA = 3
"""Of what this version writes."""
ITEMS = {"translation": "sentences", "parsing": "sentences", "captions": "pictures"}


def upgrade(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a compare.json of any version holds, as this version writes it; what is damaged stays as it is."""
    try:
        if given.get("kind") == "runs" and given.get("schema") in (1, 2):
            return _upgrade_runs(given)
        if "kind" not in given and given.get("schema") == 1:
            return _upgrade_language_models(given)
    except (KeyError, TypeError, IndexError, AttributeError):
        return {**given, "schema": SCHEMA}  # whose reader says what is missing
    return given


def _upgrade_language_models(given: Mapping[str, Any]) -> dict[str, Any]:
    setup = given["setup"]
    n_bytes, names = setup["block_bytes"], given["ranking"]
    seeds = setup["seeds"]
    several = f" and the variance over {len(seeds)} seeds with Student's t" if len(seeds) > 1 else ""
    sizes = {split: f"{count_text(setup[f'n_{split}_bytes'])}B" for split in ("train", "valid", "test")}
    source = setup["data"].get("train")
    source = ", ".join(source) if isinstance(source, list) else str(source)
    training = {
        "data": f"{source}: {sizes['train']} to train on, {sizes['valid']} to watch, {sizes['test']} to test on",
        "batch": f"the same text in the same order, {setup['n_batch']} lanes of {setup['n_context']} tokens a step",
        **{name: setup[name] for name in ("budget", "n_parameters", "seeds", "seconds")},
    }
    return {
        "schema": SCHEMA,
        "headline": given["headline"],
        "setup": {
            **_describe("language-model", "blocks of text", "bits per byte", "", "bits per byte", setup),
            "data": f"the test split of {source}: {count_text(sum(n_bytes))}B in {len(n_bytes)} blocks",
            "n_tested": len(n_bytes),
            "n_left_out": 0,
            "decoding": "",
            "interval": f"95%, from a bootstrap over {len(n_bytes)} blocks of text{several}",
            "test": "sign-flip test on the blocks' differences",
            "needs_seeds": True,
            "training": training,
            **{name: setup[name] for name in ("passage", "prompt", "sampling")},
            "notes": [],
        },
        "contenders": [_upgrade_contender(c, sum(n_bytes)) for c in given["contenders"]],
        "ranking": names,
        "pairs": [{**pair, "wins": None} for pair in given["neighbours"]],
        "costs": [],
        "examples": [],
    }


def _describe(
    task: str, items: str, metric: str, signature: str, watched: str, setup: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "task": task,
        "items": items,
        "metric": metric,
        "is_higher_better": metric != "bits per byte",
        "signature": signature,
        "other_signatures": {},
        "watched": watched,
        "is_watched_upwards": watched != "bits per byte",
        **{name: setup[name] for name in ("data_hash", "versions", "hardware", "date", "command")},
    }


def _upgrade_contender(old: Mapping[str, Any], n_bytes: int) -> dict[str, Any]:
    """A language model that was trained with several seeds."""
    score, seeds, tokenizer = old["score"], old["seeds"], old["tokenizer"]
    curves = [[{**p, "score": p["bits_per_byte"], "step": 0} for p in seed["curve"]] for seed in seeds]
    lowest = [min(p["score"] for p in curve) for curve in curves if curve]
    config = old["config"]
    about = [
        old["model"],
        *(f"{config[k]} {word}" for k, word in (("d_model", "wide"), ("n_layers", "layers")) if config.get(k)),
    ]
    if tokenizer is not None:
        about.append(f"{tokenizer['kind']} {tokenizer['vocab_size']:,}")
    return {
        **{name: old[name] for name in ("name", "model", "n_parameters", "failures")},
        "about": ", ".join(about),
        "config": {"model": {"name": old["model"], **config}, **old["training"]},
        "size_note": old["parameters_note"],
        "is_comparable": tokenizer is not None and tokenizer["is_lossless"],
        "has_seeds": any(seed["highest_lr"] is not None for seed in seeds) or not seeds,
        "runs": [
            {
                **{name: seed[name] for name in ("run", "seed", "flops", "seconds")},
                "score": sum(seed["block_nats"]) / n_bytes / math.log(2),
                "tokens": seed["train_tokens"],
            }
            for seed in seeds
        ],
        "score": None
        if score is None
        else {
            "value": score["bits_per_byte"],
            **{name: score[name] for name in ("low", "high")},
            "others": {"perplexity": score["perplexity_per_token"]},
        },
        "valid": fmean(lowest) if lowest else None,
        "curve": _join_curves(curves),
        "views": {name: old[name] for name in ("sample", "positions", "surprise", "attention", "cells")},
    }


def _join_curves(curves: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Means over runs, evaluation by evaluation, as long as all runs went on."""
    found = []
    for points in zip(*curves, strict=False):
        means = {name: fmean(p[name] for p in points) for name in ("tokens", "flops", "seconds", "score")}
        scores = [p["score"] for p in points]
        found.append({"step": points[0]["step"], **means, "low": min(scores), "high": max(scores)})
    return found


def _upgrade_runs(given: Mapping[str, Any]) -> dict[str, Any]:
    setup, systems = given["setup"], given["systems"]
    items = ITEMS[setup["task"]]
    described = _describe(setup["task"], items, setup["metric"], setup["signature"], setup["watched"], setup)
    if setup["chrf_signature"]:
        described["other_signatures"] = {"chrF": setup["chrf_signature"]}
    return {
        "schema": SCHEMA,
        "headline": given["headline"],
        "setup": {
            **described,
            **{name: setup[name] for name in ("data", "n_tested", "n_left_out", "decoding", "notes")},
            "interval": f"95% of {setup['n_draws']:,} draws of the test {items} (Koehn 2004)",
            "test": f"paired bootstrap over the test {items}, as in sacreBLEU's --paired-bs",
            "needs_seeds": False,
            "training": None,
            "passage": "",
            "prompt": "",
            "sampling": "",
        },
        "contenders": [_upgrade_system(system) for system in systems],
        "ranking": given["ranking"],
        "pairs": given["duels"],
        "costs": given["reached"],
        "examples": given["examples"],
    }


def _upgrade_system(old: Mapping[str, Any]) -> dict[str, Any]:
    """A finished run, or several with different seeds."""
    spent = {name: old[name] for name in ("tokens", "flops", "seconds")}
    runs = [
        {"run": run, "seed": None, "score": score, **spent}
        for run, score in zip(old["runs"], old["scores"], strict=True)
    ]
    return {
        **{name: old[name] for name in ("name", "about", "n_parameters", "valid")},
        "model": old["config"].get("model", {}).get("name", ""),
        "config": {name: part for name, part in old["config"].items() if isinstance(part, dict)},
        "size_note": "",
        "is_comparable": True,
        "has_seeds": True,
        "runs": runs,
        "failures": [],
        "score": {
            "value": old["score"],
            **{name: old[name] for name in ("low", "high")},
            "others": {} if old["chrf"] is None else {"chrF": old["chrf"]},
        },
        "curve": [{**point, "low": point["score"], "high": point["score"]} for point in old["curve"]],
        "views": {"sample": "", "positions": [], "surprise": [], "attention": None, "cells": None},
    }
