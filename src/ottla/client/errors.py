"""The exceptions that users of the clients catch.

An error response is a `KafkaError` with Kafka's own code; the few that programs treat differently
have a class. A timeout is the built-in `TimeoutError`, an unreachable broker `ConnectionError`, a
mistake in a call or an option `UserError`.
"""

from __future__ import annotations

from typing import Final

from ottla.model.errors import ErrorCode, KafkaError, UserError

__all__ = [
    "AbortNeeded",
    "ErrorCode",
    "Fenced",
    "KafkaError",
    "RecordTooLarge",
    "SerializationError",
    "UnsupportedVersion",
    "UserError",
    "refusal",
]


class UnsupportedVersion(KafkaError):
    """Broker and client have no version of an API in common."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.unsupported_version, message)


class Fenced(KafkaError):
    """Another client with the same name has taken over: this one can only be closed."""


class AbortNeeded(KafkaError):
    """A part of the transaction failed: abort it, then begin another."""


class RecordTooLarge(KafkaError):
    """The record, or its batch, is larger than a setting allows."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.message_too_large, message)


class SerializationError(ValueError):
    """A key or a value cannot be serialized, or its bytes cannot be deserialized."""


_CLASSES: Final[dict[ErrorCode, type[KafkaError]]] = {
    ErrorCode.invalid_producer_epoch: Fenced,
    ErrorCode.producer_fenced: Fenced,
    ErrorCode.fenced_instance_id: Fenced,
    ErrorCode.transaction_abortable: AbortNeeded,
}


def refusal(code: ErrorCode, message: str | None = None) -> KafkaError:
    """The exception for an error code of a response."""
    if code is ErrorCode.message_too_large:
        return RecordTooLarge(
            message or "batch is larger than the topic's max.message.bytes or the broker's limit"
        )
    return _CLASSES.get(code, KafkaError)(code, message)
