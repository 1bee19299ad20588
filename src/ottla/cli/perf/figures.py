"""Percentiles and rates.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

PERCENTILES: Final = (50.0, 95.0, 99.0, 99.9)
NS_PER_MS: Final = 1_000_000


def percentile(ordered: Sequence[int], share: float) -> int:
    """The smallest value that this share of all, in percent, does not exceed."""
    at = -(-len(ordered) * share // 100)  # rounded up
    return ordered[max(int(at), 1) - 1]


def summary(times_ns: Sequence[int]) -> dict[str, float]:
    """How long things took, in milliseconds: mean, percentiles, worst."""
    if not times_ns:
        return {}
    ordered = sorted(times_ns)
    shares = {f"p{share:g}": percentile(ordered, share) for share in PERCENTILES}
    every = {"mean": sum(ordered) / len(ordered), **shares, "max": ordered[-1]}
    return {name: round(ns / NS_PER_MS, 3) for name, ns in every.items()}


def rate(count: int, size: int, took_ns: int) -> dict[str, float]:
    """Records and megabytes, in all and a second."""
    seconds = max(took_ns, 1) / 1e9
    return {
        "records": count,
        "seconds": round(seconds, 3),
        "records/s": round(count / seconds),
        "MB/s": round(size / seconds / 1e6, 2),
    }
