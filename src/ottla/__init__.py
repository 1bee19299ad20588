"""Ottla: a distributed commit log that speaks Kafka's protocol.

The clients are here under their short names, loaded when they are first asked for: the broker and
a program that only wants one of them pay for nothing else. `ottla.aio` has the same for asyncio.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # type checkers know the name; importing typing takes longer than all of this
if TYPE_CHECKING:
    from typing import Any, Final

    from ottla import serializers
    from ottla.client.admin.acls import AclFilter, AclRule
    from ottla.client.admin.sync import Admin
    from ottla.client.consumer.errors import (
        CommitFailed,
        ConcurrentUse,
        LogTruncated,
        NoOffset,
        OffsetOutOfRange,
        Wakeup,
    )
    from ottla.client.consumer.group.classic_member import GroupMetadata
    from ottla.client.consumer.interceptors import ConsumerInterceptor
    from ottla.client.consumer.rebalance_listener import RebalanceListener
    from ottla.client.consumer.record import Record
    from ottla.client.consumer.sync import Consumer
    from ottla.client.errors import (
        AbortNeeded,
        Fenced,
        RecordTooLarge,
        SerializationError,
        UnsupportedVersion,
    )
    from ottla.client.interceptors import ProducerInterceptor, ProducerRecord
    from ottla.client.offsets import OffsetAndMetadata, OffsetAndTimestamp
    from ottla.client.partitioners import RoundRobin
    from ottla.client.producer.buffer.batch import RecordMetadata
    from ottla.client.producer.delivery import Delivery
    from ottla.client.producer.sync import Producer
    from ottla.client.producer.table_delivery import SentRange, TableDelivery
    from ottla.client.producer.transactions.prepared_transaction import end_transaction
    from ottla.client.producer.transactions.state import PreparedTransaction
    from ottla.model.errors import ErrorCode, KafkaError, UserError
    from ottla.model.ids import TopicPartition

__all__ = [
    "AbortNeeded",
    "AclFilter",
    "AclRule",
    "Admin",
    "CommitFailed",
    "ConcurrentUse",
    "Consumer",
    "ConsumerInterceptor",
    "Delivery",
    "ErrorCode",
    "Fenced",
    "GroupMetadata",
    "KafkaError",
    "LogTruncated",
    "NoOffset",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRange",
    "PreparedTransaction",
    "Producer",
    "ProducerInterceptor",
    "ProducerRecord",
    "RebalanceListener",
    "Record",
    "RecordMetadata",
    "RecordTooLarge",
    "RoundRobin",
    "SentRange",
    "SerializationError",
    "TableDelivery",
    "TopicPartition",
    "UnsupportedVersion",
    "UserError",
    "Wakeup",
    "end_transaction",
    "serializers",
]

_HOMES: Final = {
    "AbortNeeded": "ottla.client.errors",
    "AclFilter": "ottla.client.admin.acls",
    "AclRule": "ottla.client.admin.acls",
    "Admin": "ottla.client.admin.sync",
    "CommitFailed": "ottla.client.consumer.errors",
    "ConcurrentUse": "ottla.client.consumer.errors",
    "Consumer": "ottla.client.consumer.sync",
    "ConsumerInterceptor": "ottla.client.consumer.interceptors",
    "Delivery": "ottla.client.producer.delivery",
    "ErrorCode": "ottla.model.errors",
    "Fenced": "ottla.client.errors",
    "GroupMetadata": "ottla.client.consumer.group.classic_member",
    "KafkaError": "ottla.model.errors",
    "LogTruncated": "ottla.client.consumer.errors",
    "NoOffset": "ottla.client.consumer.errors",
    "OffsetAndMetadata": "ottla.client.offsets",
    "OffsetAndTimestamp": "ottla.client.offsets",
    "OffsetOutOfRange": "ottla.client.consumer.errors",
    "PreparedTransaction": "ottla.client.producer.transactions.state",
    "Producer": "ottla.client.producer.sync",
    "ProducerInterceptor": "ottla.client.interceptors",
    "ProducerRecord": "ottla.client.interceptors",
    "RebalanceListener": "ottla.client.consumer.rebalance_listener",
    "Record": "ottla.client.consumer.record",
    "RecordMetadata": "ottla.client.producer.buffer.batch",
    "RecordTooLarge": "ottla.client.errors",
    "RoundRobin": "ottla.client.partitioners",
    "SentRange": "ottla.client.producer.table_delivery",
    "SerializationError": "ottla.client.errors",
    "TableDelivery": "ottla.client.producer.table_delivery",
    "TopicPartition": "ottla.model.ids",
    "UnsupportedVersion": "ottla.client.errors",
    "UserError": "ottla.model.errors",
    "Wakeup": "ottla.client.consumer.errors",
    "end_transaction": "ottla.client.producer.transactions.prepared_transaction",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "serializers":
        return import_module("ottla.serializers")
    if name not in _HOMES:
        raise AttributeError(f"module 'ottla' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
