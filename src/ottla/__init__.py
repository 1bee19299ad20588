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
    from ottla.client.consumer.classic import GroupMetadata
    from ottla.client.consumer.errors import (
        CommitFailed,
        ConcurrentUse,
        LogTruncated,
        NoOffset,
        OffsetOutOfRange,
        Wakeup,
    )
    from ottla.client.consumer.interceptors import ConsumerInterceptor
    from ottla.client.consumer.listener import RebalanceListener
    from ottla.client.consumer.offsets import OffsetAndMetadata, OffsetAndTimestamp
    from ottla.client.consumer.records import Record
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
    "CommitFailed",
    "ConcurrentUse",
    "Consumer",
    "ConsumerInterceptor",
    "ErrorCode",
    "Fenced",
    "GroupMetadata",
    "KafkaError",
    "LogTruncated",
    "NoOffset",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRange",
    "Producer",
    "RebalanceListener",
    "Record",
    "RecordTooLarge",
    "SerializationError",
    "TopicPartition",
    "UnsupportedVersion",
    "UserError",
    "Wakeup",
]

_HOMES: Final = {
    "AbortNeeded": "ottla.client.errors",
    "Admin": "ottla.client.admin.sync",
    "CommitFailed": "ottla.client.consumer.errors",
    "ConcurrentUse": "ottla.client.consumer.errors",
    "Consumer": "ottla.client.consumer.sync",
    "ConsumerInterceptor": "ottla.client.consumer.interceptors",
    "ErrorCode": "ottla.model.errors",
    "Fenced": "ottla.client.errors",
    "GroupMetadata": "ottla.client.consumer.classic",
    "KafkaError": "ottla.model.errors",
    "LogTruncated": "ottla.client.consumer.errors",
    "NoOffset": "ottla.client.consumer.errors",
    "OffsetAndMetadata": "ottla.client.consumer.offsets",
    "OffsetAndTimestamp": "ottla.client.consumer.offsets",
    "OffsetOutOfRange": "ottla.client.consumer.errors",
    "Producer": "ottla.client.producer.sync",
    "RebalanceListener": "ottla.client.consumer.listener",
    "Record": "ottla.client.consumer.records",
    "RecordTooLarge": "ottla.client.errors",
    "SerializationError": "ottla.client.errors",
    "TopicPartition": "ottla.model.ids",
    "UnsupportedVersion": "ottla.client.errors",
    "UserError": "ottla.model.errors",
    "Wakeup": "ottla.client.consumer.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ottla' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
