"""Regular expressions that members subscribe with, and the topics they stand for.

Pure, and not for the loop: `resolve` runs on the pool. RE2 takes time linear in its input and
refuses what would need more memory than it is given, so that no expression can hold a broker up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import re2

from ottla.model.errors import ErrorCode, KafkaError

MEMORY_BYTES: Final = 1 << 20
"""For one compiled expression."""


def resolve(patterns: Iterable[str], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """The names each pattern matches from end to end; INVALID_REGULAR_EXPRESSION otherwise."""
    names = list(names)
    return {pattern: _matching(pattern, names) for pattern in patterns}


def _matching(pattern: str, names: list[str]) -> frozenset[str]:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MEMORY_BYTES
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as fault:
        reason = fault.args[0]
        said = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise KafkaError(
            ErrorCode.invalid_regular_expression,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {said}",
        ) from None
    return frozenset(name for name in names if compiled.fullmatch(name))
