"""Exceptions: an error reply, a connection that must be closed, a user's mistake.

A refusal carries Kafka's own error code and reaches the client. A `Disconnect` ends the
connection with one log line. Failures of disks and peers stay `OSError`; broken invariants are
asserts. There are no codes of our own.
"""

from __future__ import annotations

import ottla.model.kio_import  # noqa: F401 - before anything else of kio

# isort: split
from kio.schema.errors import ErrorCode

__all__ = ["AuthenticationFailed", "Disconnect", "ErrorCode", "KafkaError", "UserError"]


class KafkaError(Exception):
    """A request, or one item of it, refused with a code every Kafka client knows."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed when it is made again."""
        return bool(self.code.retriable)


class AuthenticationFailed(KafkaError):
    """One side of a connection does not accept the other: certificate, mechanism or credentials."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.sasl_authentication_failed, message)


class Disconnect(Exception):
    """The peer broke the protocol so that no reply is possible: close, and say why once."""


class UserError(Exception):
    """A mistake in a setting, an option or a command: shown as one line, exit code 2."""
