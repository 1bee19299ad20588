"""What a fetcher asks of the broker that leads: Fetch, and ListOffsets where a log is out of range.

Owns the fields of these requests. Never decides which partitions are fetched, nor what a reply
means (`follower` does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerEpoch, BrokerId, TopicPartition
from ottla.net.broker_link import LinkReply, RawReply
from ottla.net.request_slot import Bytes
from ottla.protocol.encode import Fields, writer_of
from ottla.protocol.hot.fetch_request import FIRST, encode_follower_fetch
from ottla.protocol.schema import MessageKind, message
from ottla.replica.fetcher.follower import FollowedPartition, LeaderBounds
from ottla.replica.fetcher.settings import FetcherSettings

FETCH: Final = 1
LIST_OFFSETS: Final = 2
LATEST: Final = -1
EARLIEST: Final = -2


class FetchLink(Protocol):
    """The requests of a fetcher: `net/broker_link.py`."""

    async def ask(self, key: int, fields: Fields, timeout_ms: int) -> LinkReply: ...

    async def ask_encoded(
        self, key: int, encode: Callable[[int], Sequence[Bytes]], timeout_ms: int
    ) -> RawReply: ...


def fetch_fields(broker: BrokerId, epoch: BrokerEpoch, settings: FetcherSettings) -> Fields:
    """A Fetch without its session: `FollowerSession.next_request` has the rest."""
    return {
        "replica_id": broker,
        "replica_state": {"replica_id": broker, "replica_epoch": epoch},
        "max_wait": settings.wait_ms,
        "min_bytes": settings.min_bytes,
        "max_bytes": settings.response_bytes,
        "isolation_level": 0,
        "rack_id": "",
    }


def encode_fetch(version: int, fields: Fields) -> list[bytes]:
    if version >= FIRST:
        return [encode_follower_fetch(fields)]
    out = bytearray()
    writer_of(message(FETCH, version, MessageKind.REQUEST))(fields, out)
    return [bytes(out)]


async def ask_bounds(
    link: FetchLink, broker: BrokerId, partitions: Sequence[FollowedPartition], timeout_ms: int
) -> dict[TopicPartition, LeaderBounds]:
    """Where the leader's logs begin and end; without those that it refuses to tell."""
    ends, starts = [
        await _list_offsets(link, _list_offsets_fields(broker, partitions, which, timeout_ms))
        for which in (LATEST, EARLIEST)
    ]
    return {key: LeaderBounds(starts[key], end) for key, end in ends.items() if key in starts}


def _list_offsets_fields(
    broker: BrokerId, partitions: Iterable[FollowedPartition], timestamp: int, timeout_ms: int
) -> Fields:
    topics: dict[str, list[Fields]] = {}
    for followed in partitions:
        topics.setdefault(followed.key.topic, []).append(
            {
                "partition_index": followed.key.partition,
                "current_leader_epoch": followed.leader_epoch,
                "timestamp": timestamp,
            }
        )
    return {
        "replica_id": broker,
        "isolation_level": 0,
        "topics": [{"name": name, "partitions": parts} for name, parts in topics.items()],
        "timeout": timeout_ms,
    }


async def _list_offsets(link: FetchLink, fields: Fields) -> dict[TopicPartition, int]:
    reply = await link.ask(LIST_OFFSETS, fields, fields["timeout"])
    return {
        TopicPartition(topic.name, partition.partition_index): partition.offset
        for topic in reply.body.topics
        for partition in topic.partitions
        if partition.error_code is ErrorCode.none and partition.offset >= 0
    }
