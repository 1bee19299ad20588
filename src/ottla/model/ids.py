"""Ids of brokers, topics, partitions and producers, epochs and offsets.

Ids that are never computed with are `NewType`s, so that a broker id cannot stand where an epoch
is meant. Offsets are computed with in every hot loop, where wrapping each result would cost more
than the sum itself: they are a plain alias.
"""

from __future__ import annotations

from typing import Final, NamedTuple, NewType, TypeAlias
from uuid import UUID

Offset: TypeAlias = int
TopicId: TypeAlias = UUID

BrokerId = NewType("BrokerId", int)
BrokerEpoch = NewType("BrokerEpoch", int)
ControllerEpoch = NewType("ControllerEpoch", int)
LeaderEpoch = NewType("LeaderEpoch", int)
ProducerId = NewType("ProducerId", int)

NO_BROKER: Final = BrokerId(-1)
NO_EPOCH: Final = LeaderEpoch(-1)
DELETED_EPOCH: Final = LeaderEpoch(-2)
"""In a StopReplica of a deleted topic: applies whatever epoch the replica has."""
NO_PRODUCER: Final = ProducerId(-1)
NO_TOPIC_ID: Final = UUID(int=0)

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})


class TopicPartition(NamedTuple):
    """One partition of one topic; it reads as its directory is named."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
