"""Refusals as HTTP has them: a status, an error code of the API, and a message.

Owns: the codes, and which one an error of the clients becomes. Never: writes a reply.

The codes are those of the REST Proxy's API v2: a status, or a status and two digits. Clients
compare them, so they are part of the API as paths are.
"""

from __future__ import annotations

from typing import Final

from ottla.client.consumer.errors import CommitFailed
from ottla.client.errors import SerializationError
from ottla.model.errors import AuthenticationFailed, ErrorCode, KafkaError, UserError

AUTHENTICATION_FAILED: Final = 40101
NOT_AUTHORIZED: Final = 40301
TOPIC_NOT_FOUND: Final = 40401
PARTITION_NOT_FOUND: Final = 40402
INSTANCE_NOT_FOUND: Final = 40403
FORMAT_MISMATCH: Final = 40601
INSTANCE_EXISTS: Final = 40902
ILLEGAL_STATE: Final = 40903
INVALID_CONSUMER_CONFIG: Final = 42204
KAFKA_FAILED: Final = 50002
KAFKA_FAILED_RETRIABLE: Final = 50003

_UNAUTHORIZED: Final = frozenset(
    {
        ErrorCode.topic_authorization_failed,
        ErrorCode.group_authorization_failed,
        ErrorCode.cluster_authorization_failed,
        ErrorCode.transactional_id_authorization_failed,
    }
)


class HttpError(Exception):
    """A request that is refused: `code` is the status, or begins with it."""

    def __init__(self, code: int, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        return self.code // 100 if self.code > 999 else self.code


def invalid(field: str, expected: str) -> HttpError:
    """A field of the request has a value that the API does not allow."""
    return HttpError(422, f"{field}: expected {expected}")


def topic_not_found(topic: str) -> HttpError:
    return HttpError(TOPIC_NOT_FOUND, f"Topic not found: {topic}")


def partition_not_found(topic: str, partition: int) -> HttpError:
    return HttpError(PARTITION_NOT_FOUND, f"Partition not found: {topic}-{partition}")


def instance_not_found(group: str, instance: str) -> HttpError:
    return HttpError(
        INSTANCE_NOT_FOUND,
        f"Consumer instance not found: {instance!r} of group {group!r}; it was never created here, "
        "was deleted, or expired",
    )


def error_code(error: Exception) -> int:
    """The code for an error of a client, also of a single record."""
    match error:
        case HttpError():
            return error.code
        case AuthenticationFailed():
            return AUTHENTICATION_FAILED
        case KafkaError(code=code) if code in _UNAUTHORIZED:
            return NOT_AUTHORIZED
        case KafkaError(code=ErrorCode.unknown_topic_or_partition):
            return TOPIC_NOT_FOUND
        case KafkaError(code=ErrorCode.invalid_topic_exception):
            return 422
        case CommitFailed():
            return ILLEGAL_STATE
        case KafkaError(retriable=False) | SerializationError():
            return KAFKA_FAILED
        case UserError():
            return ILLEGAL_STATE
        case _:
            return KAFKA_FAILED_RETRIABLE


def describe(error: Exception) -> str:
    """An error's message on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def http_error(error: Exception) -> HttpError:
    """The refusal that an error of the clients becomes."""
    return HttpError(error_code(error), describe(error))
