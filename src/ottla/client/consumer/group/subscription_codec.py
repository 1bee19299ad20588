"""Subscriptions and assignments of classic groups as bytes.

Owns the encoding inside JoinGroup and SyncGroup, which brokers do not decode. Encoded in the newest
version; a version newer than that is decoded as the newest, since versions only ever add fields at
the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pkgutil import resolve_name
from struct import Struct
from typing import Final

from kio.serial import entity_reader

from ottla.client.consumer.assignors.assignor import Subscription
from ottla.model.errors import Disconnect
from ottla.model.ids import TopicPartition
from ottla.protocol.encode import Fields, writer_of
from ottla.protocol.length_check import check, walk_of
from ottla.protocol.schema import Entity, KioMessage, KioStruct

NEWEST: Final = 3
_VERSION: Final = Struct(">h")


class UnreadableSubscription(ValueError):
    """Bytes of another member that cannot be decoded."""


def encode_subscription(subscription: Subscription) -> bytes:
    fields = {
        "topics": sorted(subscription.topics),
        "user_data": subscription.user_data,
        "owned_partitions": _by_topic(subscription.owned),
        "generation_id": subscription.generation,
        "rack_id": subscription.rack,
    }
    return _encode("subscription", fields)


def decode_subscription(data: bytes, instance_id: str | None = None) -> Subscription:
    entity = _decode("subscription", data)
    return Subscription(
        topics=tuple(entity.topics),
        user_data=entity.user_data,
        owned=_flat(getattr(entity, "owned_partitions", ())),
        generation=getattr(entity, "generation_id", -1),
        rack=getattr(entity, "rack_id", None),
        instance_id=instance_id,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    return _encode("assignment", {"assigned_partitions": _by_topic(partitions), "user_data": None})


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """A member's partitions; empty data means none."""
    return _flat(_decode("assignment", data).assigned_partitions) if data else ()


def _by_topic(partitions: Iterable[TopicPartition]) -> list[Fields]:
    return [
        {"topic": topic, "partitions": [tp.partition for tp in group]}
        for topic, group in groupby(sorted(partitions), key=lambda tp: tp.topic)
    ]


def _flat(topics: Iterable[KioStruct]) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic, index) for topic in topics for index in topic.partitions
    )


def _entity(kind: str, version: int) -> Entity:
    path = f"kio.schema.consumer_protocol_{kind}.v{version}.data"
    entity: Entity = resolve_name(f"{path}:ConsumerProtocol{kind.capitalize()}")
    return entity


def _encode(kind: str, fields: Fields) -> bytes:
    out = bytearray(_VERSION.pack(NEWEST))
    writer_of(_entity(kind, NEWEST))(fields, out)
    return bytes(out)


def _decode(kind: str, data: bytes) -> KioMessage:
    if len(data) < _VERSION.size:
        raise UnreadableSubscription(f"{kind} has only {len(data)} bytes")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise UnreadableSubscription(f"{kind} has invalid version {version}")
    entity = _entity(kind, min(version, NEWEST))
    try:
        check(walk_of(entity), memoryview(data), _VERSION.size)
        value, _ = entity_reader(entity)(memoryview(data), _VERSION.size)
    except Disconnect as fault:
        raise UnreadableSubscription(f"{kind}: {fault}") from None
    except Exception as fault:  # such as kio's errors for text that is not UTF-8
        raise UnreadableSubscription(f"{kind}: {fault}") from None
    return value
