"""Ottla: a distributed commit log that speaks Kafka's protocol.

The clients are here under their short names, loaded when they are first asked for: the broker and
a program that only wants one of them pay for nothing else. `ottla.aio` has the same for asyncio.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ottla.client.admin.sync import Admin
    from ottla.client.consumer.sync import Consumer
    from ottla.client.errors import (
        AbortNeeded,
        Fenced,
        RecordTooLarge,
        SerializationError,
        UnsupportedVersion,
    )
    from ottla.client.producer.sync import Producer
    from ottla.model.errors import ErrorCode, KafkaError, UserError
    from ottla.model.ids import TopicPartition

__all__ = [
    "AbortNeeded",
    "Admin",
    "Consumer",
    "ErrorCode",
    "Fenced",
    "KafkaError",
    "Producer",
    "RecordTooLarge",
    "SerializationError",
    "TopicPartition",
    "UnsupportedVersion",
    "UserError",
]

_HOMES: Final = {
    "AbortNeeded": "ottla.client.errors",
    "Admin": "ottla.client.admin.sync",
    "Consumer": "ottla.client.consumer.sync",
    "ErrorCode": "ottla.model.errors",
    "Fenced": "ottla.client.errors",
    "KafkaError": "ottla.model.errors",
    "Producer": "ottla.client.producer.sync",
    "RecordTooLarge": "ottla.client.errors",
    "SerializationError": "ottla.client.errors",
    "TopicPartition": "ottla.model.ids",
    "UnsupportedVersion": "ottla.client.errors",
    "UserError": "ottla.model.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ottla' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
