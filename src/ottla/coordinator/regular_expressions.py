"""Regular expressions that came over the wire.

RE2 takes time linear in its input and refuses what would need more memory than it is given, so that
no expression can hold a broker up. It is loaded with the first one: most brokers never see any.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.model.errors import ErrorCode, KafkaError

MEMORY_BYTES: Final = 1 << 20
"""For one compiled expression."""


def compiled(pattern: str) -> Any:
    """RE2's form of a pattern; INVALID_REGULAR_EXPRESSION, with the reason, for what is none."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MEMORY_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as fault:
        reason = fault.args[0]
        said = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise KafkaError(
            ErrorCode.invalid_regular_expression,
            f"`{pattern}` is not a valid regular expression: {said}",
        ) from None
