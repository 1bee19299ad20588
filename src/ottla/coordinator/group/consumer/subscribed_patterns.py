"""Regular expressions that members subscribe with, and the topics they stand for.

Pure, and not for the loop: `resolve` runs on the pool.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.coordinator.regular_expressions import compiled
from ottla.model.errors import KafkaError


def resolve(patterns: Iterable[str], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """The names each pattern matches from end to end; INVALID_REGULAR_EXPRESSION otherwise."""
    names = list(names)
    return {pattern: _matching(pattern, names) for pattern in patterns}


def _matching(pattern: str, names: list[str]) -> frozenset[str]:
    try:
        found = compiled(pattern)
    except KafkaError as refusal:
        raise KafkaError(refusal.code, f"SubscribedTopicRegex {refusal.message}") from None
    return frozenset(name for name in names if found.fullmatch(name))
