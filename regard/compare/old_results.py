"""Comparisons that earlier versions wrote, in the form that this version reads.

Schema 1 without a `kind` holds language models that were trained to be compared; `kind` "runs" holds finished runs of
models that translate, parse or describe pictures. Schema 3 holds either, with tests that took the blocks of one text
for independent ones, between neighbours and with the best alone; what they found stays, with a warning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from regard.score.figures import count_text, p_text

SCHEMA = 4
"""Of what this version writes."""
OLD = (
    "An earlier version tested this, with intervals that are too narrow and without a correction for the number of "
    "pairs: run the comparison again before an order is believed."
)
ITEMS = {"translation": "sentences", "parsing": "sentences", "captions": "pictures"}
Plain = dict[str, Any]


def upgrade(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a compare.json of any version holds, as this version writes it; what is damaged stays as it is."""
    try:
        if given.get("kind") == "runs" and given.get("schema") in (1, 2):
            return _upgrade_statistics(_upgrade_runs(given))
        if "kind" not in given and given.get("schema") == 1:
            return _upgrade_statistics(_upgrade_language_models(given))
        if given.get("schema") == 3:
            return _upgrade_statistics(given)
    except (KeyError, TypeError, IndexError, AttributeError):
        return {**given, "schema": SCHEMA}  # whose reader says what is missing
    return given


def _upgrade_statistics(given: Mapping[str, Any]) -> Plain:
    """Schema 3 as schema 4, which knows documents, all pairs, which lossy tokenizer is whose, and what was matched."""
    setup = {name: value for name, value in given["setup"].items() if name != "needs_seeds"} | {"n_documents": None}
    if setup["training"] is not None:
        setup["training"] = {**setup["training"], "match": "total"}
    contenders = []
    for old in given["contenders"]:
        lossy = "" if old["is_comparable"] else old["about"].split(", ")[-1]
        positions = [{"low": None, "high": None, **point} for point in old["views"]["positions"]]
        views = {**old["views"], "positions": positions}
        new = {"lossy": lossy, "baseline": None, "n_non_embedding": None, "views": views}
        contenders.append({name: value for name, value in old.items() if name != "is_comparable"} | new)
    by_name = {contender["name"]: contender for contender in contenders}
    pairs = [
        _take(pair, "better", "worse", "difference", "low", "high", "p")
        | {"relative": pair["difference"] / (by_name[pair["worse"]]["score"]["value"] or math.nan)}
        | {"p_holm": pair["p"], "n_effective": None, "is_settled": pair["is_clear"]}
        | {"why": "" if pair["is_clear"] else p_text(pair["p"])}
        for pair in given["pairs"]
        if by_name[pair["better"]]["lossy"] == by_name[pair["worse"]]["lossy"]
    ]
    return {
        **given, "schema": SCHEMA, "setup": setup, "contenders": contenders, "pairs": pairs, "warnings": [OLD],
        "power": "",
    }  # fmt: skip


def _upgrade_language_models(given: Mapping[str, Any]) -> Plain:
    old, n_blocks = given["setup"], len(given["setup"]["block_bytes"])
    n_bytes, source = sum(old["block_bytes"]), old["data"].get("train")
    source = ", ".join(source) if isinstance(source, list) else str(source)
    train, valid, test = (f"{count_text(old[f'n_{split}_bytes'])}B" for split in ("train", "valid", "test"))
    training = {
        "data": f"{source}: {train} to train on, {valid} to watch, {test} to test on",
        "batch": f"the same text in the same order, {old['n_batch']} lanes of {old['n_context']} tokens a step",
        **_take(old, "budget", "n_parameters", "seeds", "seconds"),
    }
    setup = _describe(old, "language-model", "blocks of text", "bits per byte", "bits per byte") | {
        "data": f"the test split of {source}: {count_text(n_bytes)}B in {n_blocks} blocks",
        "n_tested": n_blocks,
        "interval": f"95%, from a bootstrap over {n_blocks} blocks of text and the variance over seeds",
        "test": "sign-flip test on the blocks' differences",
        "needs_seeds": True,
        "training": training,
        **_take(old, "passage", "prompt", "sampling"),
    }
    contenders = [_upgrade_contender(contender, n_bytes) for contender in given["contenders"]]
    pairs = [{**pair, "wins": None} for pair in given["neighbours"]]
    return _take(given, "headline", "ranking") | {
        "schema": SCHEMA, "setup": setup, "contenders": contenders, "pairs": pairs, "costs": [], "examples": [],
    }  # fmt: skip


def _upgrade_contender(old: Mapping[str, Any], n_bytes: int) -> Plain:
    """A language model that was trained with several seeds."""
    score, seeds, tokenizer, config = old["score"], old["seeds"], old["tokenizer"], old["config"]
    curves = [[{**p, "score": p["bits_per_byte"], "step": 0} for p in seed["curve"]] for seed in seeds]
    lowest = [min(p["score"] for p in curve) for curve in curves if curve]
    about = [old["model"], *(f"{config[k]} {word}" for k, word in ABOUT.items() if config.get(k))]
    runs = [
        _take(seed, "run", "seed", "flops", "seconds")
        | {"score": sum(seed["block_nats"]) / n_bytes / math.log(2), "tokens": seed["train_tokens"]}
        for seed in seeds
    ]
    if score is not None:
        others = {"perplexity": score["perplexity_per_token"]}
        score = _take(score, "low", "high") | {"value": score["bits_per_byte"], "others": others}
    return _take(old, "name", "model", "n_parameters", "failures") | {
        "about": ", ".join([*about, *([f"{tokenizer['kind']} {tokenizer['vocab_size']:,}"] if tokenizer else [])]),
        "config": {"model": {"name": old["model"], **config}, **old["training"]},
        "size_note": old["parameters_note"],
        "is_comparable": tokenizer is not None and tokenizer["is_lossless"],
        "has_seeds": any(seed["highest_lr"] is not None for seed in seeds) or not seeds,
        "runs": runs,
        "score": score,
        "valid": fmean(lowest) if lowest else None,
        "curve": [_join_points(points) for points in zip(*curves, strict=False)],
        "views": _take(old, "sample", "positions", "surprise", "attention", "cells"),
    }


ABOUT = {"d_model": "wide", "n_layers": "layers"}


def _join_points(points: tuple[Mapping[str, Any], ...]) -> Plain:
    """The mean of one evaluation over runs."""
    means = {name: fmean(p[name] for p in points) for name in ("tokens", "flops", "seconds", "score")}
    scores = [p["score"] for p in points]
    return {"step": points[0]["step"], **means, "low": min(scores), "high": max(scores)}


def _upgrade_runs(given: Mapping[str, Any]) -> Plain:
    old = given["setup"]
    items = ITEMS[old["task"]]
    setup = _describe(old, old["task"], items, old["metric"], old["watched"]) | {
        "other_signatures": {"chrF": old["chrf_signature"]} if old["chrf_signature"] else {},
        "interval": f"95% of {old['n_draws']:,} draws of the test {items} (Koehn 2004)",
        "test": f"paired bootstrap over the test {items}, as in sacreBLEU's --paired-bs",
        **_take(old, "signature", "data", "n_tested", "n_left_out", "decoding", "notes"),
    }
    contenders = [_upgrade_system(system) for system in given["systems"]]
    return _take(given, "headline", "ranking", "examples") | {
        "schema": SCHEMA, "setup": setup, "contenders": contenders, "pairs": given["duels"], "costs": given["reached"],
    }  # fmt: skip


def _upgrade_system(old: Mapping[str, Any]) -> Plain:
    """A finished run, or several with different seeds."""
    spent = _take(old, "tokens", "flops", "seconds")
    runs = [{"run": r, "seed": None, "score": s, **spent} for r, s in zip(old["runs"], old["scores"], strict=True)]
    others = {} if old["chrf"] is None else {"chrF": old["chrf"]}
    return _take(old, "name", "about", "n_parameters", "valid") | {
        "model": old["config"].get("model", {}).get("name", ""),
        "config": {name: part for name, part in old["config"].items() if isinstance(part, dict)},
        "size_note": "",
        "is_comparable": True,
        "has_seeds": True,
        "runs": runs,
        "failures": [],
        "score": _take(old, "low", "high") | {"value": old["score"], "others": others},
        "curve": [{**point, "low": point["score"], "high": point["score"]} for point in old["curve"]],
        "views": {"sample": "", "positions": [], "surprise": [], "attention": None, "cells": None},
    }


def _describe(old: Mapping[str, Any], task: str, items: str, metric: str, watched: str) -> Plain:
    """The setup that both kinds have in common, with nothing where one of them has nothing to say."""
    return _take(old, "data_hash", "versions", "hardware", "date", "command") | {
        "task": task, "items": items, "metric": metric, "is_higher_better": metric != "bits per byte",
        "watched": watched, "is_watched_upwards": watched != "bits per byte", "signature": "", "other_signatures": {},
        "n_left_out": 0, "decoding": "", "needs_seeds": False, "training": None, "passage": "", "prompt": "",
        "sampling": "", "notes": [],
    }  # fmt: skip


def _take(given: Mapping[str, Any], *names: str) -> Plain:
    return {name: given[name] for name in names}
