"""Regular expressions received from clients.

RE2 takes time linear in its input and rejects expressions that need more memory than its limit, so
that no expression can block a broker. It is imported with the first expression: most brokers never
get one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import re2

MEMORY_BYTES: Final = 1 << 20
"""For one compiled expression."""


def compiled(pattern: str) -> re2.Pattern:
    """The compiled pattern; INVALID_REGULAR_EXPRESSION with the reason if it is invalid."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MEMORY_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as fault:
        cause = fault.args[0]
        reason = cause.decode(errors="replace") if isinstance(cause, bytes) else str(cause)
        raise KafkaError(
            ErrorCode.invalid_regular_expression,
            f"`{pattern}` is not a valid regular expression: {reason}",
        ) from None
