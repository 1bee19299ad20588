"""What members of a classic group tell each other: subscriptions and assignments as bytes.

Owns the encoding inside JoinGroup and SyncGroup, which brokers pass on unread. Written in the
newest version; a version newer than that is read as the newest, since versions only ever add
fields at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pkgutil import resolve_name
from struct import Struct
from typing import Any, Final

from kio.serial import entity_reader

from ottla.client.consumer.assignors.assignor import Subscription
from ottla.model.errors import Disconnect
from ottla.model.ids import TopicPartition
from ottla.protocol.encode import Fields, writer_of
from ottla.protocol.length_check import check, walk_of
from ottla.protocol.schema import Entity

NEWEST: Final = 3
_VERSION: Final = Struct(">h")


class UnreadableSubscription(ValueError):
    """Bytes of another member that are not what they should be."""


def encode_subscription(told: Subscription) -> bytes:
    fields = {
        "topics": sorted(told.topics),
        "user_data": told.user_data,
        "owned_partitions": _by_topic(told.owned),
        "generation_id": told.generation,
        "rack_id": told.rack,
    }
    return _written("subscription", fields)


def decode_subscription(data: bytes, instance_id: str | None = None) -> Subscription:
    read = _read("subscription", data)
    return Subscription(
        topics=tuple(read.topics),
        user_data=read.user_data,
        owned=_flat(getattr(read, "owned_partitions", ())),
        generation=getattr(read, "generation_id", -1),
        rack=getattr(read, "rack_id", None),
        instance_id=instance_id,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    return _written("assignment", {"assigned_partitions": _by_topic(partitions), "user_data": None})


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """A member's share; a member that gets none may be sent no bytes at all."""
    return _flat(_read("assignment", data).assigned_partitions) if data else ()


def _by_topic(partitions: Iterable[TopicPartition]) -> list[Fields]:
    return [
        {"topic": topic, "partitions": [at.partition for at in held]}
        for topic, held in groupby(sorted(partitions), key=lambda at: at.topic)
    ]


def _flat(topics: Iterable[Any]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(each.topic, index) for each in topics for index in each.partitions)


def _entity(kind: str, version: int) -> Entity:
    path = f"kio.schema.consumer_protocol_{kind}.v{version}.data"
    entity: Entity = resolve_name(f"{path}:ConsumerProtocol{kind.capitalize()}")
    return entity


def _written(kind: str, fields: Fields) -> bytes:
    out = bytearray(_VERSION.pack(NEWEST))
    writer_of(_entity(kind, NEWEST))(fields, out)
    return bytes(out)


def _read(kind: str, data: bytes) -> Any:
    if len(data) < _VERSION.size:
        raise UnreadableSubscription(f"{kind} of {len(data)} bytes")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise UnreadableSubscription(f"{kind} of version {version}")
    entity = _entity(kind, min(version, NEWEST))
    try:
        check(walk_of(entity), memoryview(data), _VERSION.size)
        read, _ = entity_reader(entity)(memoryview(data), _VERSION.size)
    except Disconnect as fault:
        raise UnreadableSubscription(f"{kind}: {fault}") from None
    except Exception as fault:  # whatever kio makes of text that is not UTF-8
        raise UnreadableSubscription(f"{kind}: {fault}") from None
    return read
