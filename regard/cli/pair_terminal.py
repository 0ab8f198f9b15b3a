"""What the command line prints of pairs."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from regard.cli.terminal import errors, on_one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from regard.score.scored import Scored


def print_scored_pairs(
    sources: Sequence[str], targets: Sequence[str], scores: Iterable[Scored | None], as_json: bool
) -> None:
    """A line a pair: log P of the target, its tokens, their perplexity and both texts, or JSON; the sum on stderr."""
    n_pairs, n_tokens, n_left_out, nats = 0, 0, 0, 0.0
    for number, (source, target, found) in enumerate(zip(sources, targets, scores, strict=True), start=1):
        if found is None:
            n_left_out += bool(source.strip() or target.strip())
            print(json.dumps({"line": number, "log_prob": None}) if as_json else "")
            continue
        n_pairs, n_tokens, nats = n_pairs + 1, n_tokens + len(found.tokens), nats + found.total
        if as_json:
            print(_json_line(number, source, found))
        else:
            numbers = (
                f"{found.log_probability:.4f}",
                str(len(found.tokens)),
                f"{perplexity(found.total, len(found.tokens)):.4f}",
            )
            print(*numbers, on_one_line(source.strip()), on_one_line(found.text), sep="\t")
    left_out = f"; left out, each an empty line: {n_left_out:,}" if n_left_out else ""
    pairs = "pair" if n_pairs == 1 else "pairs"
    mean = nats / max(n_tokens, 1)
    errors.print(
        f"[dim]{n_pairs:,} {pairs}, {n_tokens:,} target tokens, log-probability {-nats:,.2f} nats, {mean:.3f} nats a "
        f"token, perplexity {perplexity(nats, n_tokens):,.2f}{left_out}[/dim]",
        soft_wrap=True,
    )


def perplexity(nats: float, n_tokens: int) -> float:
    """e to the mean nats of a token; 1 where there is none."""
    from regard.score.evaluate import finite_perplexity  # with torch, which takes long to start

    return finite_perplexity(nats / max(n_tokens, 1))


def _json_line(number: int, source: str, found: Scored) -> str:
    """JSON has no word for infinity: what is impossible is null."""
    line = {
        "line": number,
        "source": source.strip(),
        "target": found.text,
        "log_prob": found.log_probability if math.isfinite(found.total) else None,
        "n_tokens": len(found.tokens),
        "perplexity": perplexity(found.total, len(found.tokens)),
        "tokens": [{"text": t.text, "nats": t.nats if math.isfinite(t.nats) else None} for t in found.tokens],
    }
    return json.dumps(line, ensure_ascii=False)
