"""Which dead letters have been replayed, kept in the cluster that holds them.

Owns: the compacted topic `__ottla_replays`, the format of its records, and the question whether a
letter was replayed. Never: sends a letter.

A position stands for a partition of a dead-letter topic and a reason, or for every reason: letters
below it have been replayed. Two positions therefore describe each letter exactly: a replay of one
reason leaves the letters of the others where they are. A position is written in the transaction
that sends the letters. Its format: docs/formats/replays.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from ottla.client.admin.offsets import OffsetSpec
from ottla.client.admin.sync import Admin
from ottla.client.consumer.record import AnyRecord, Record
from ottla.client.consumer.sync import Consumer
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import Offset, TopicPartition

TOPIC: Final = "__ottla_replays"
FORMAT: Final = 1
MEMORY: Final = TopicPartition(TOPIC, 0)
REPLICATION_FACTOR: Final = 3
POLL_S: Final = 0.2
MAX_EMPTY_POLLS: Final = 300
"""A minute without a record where there must be some: the broker is gone, or a transaction open."""

Key: TypeAlias = tuple[TopicPartition, str | None]
"""A partition of a dead-letter topic, and a reason; None: every reason."""
Ranges: TypeAlias = Mapping[TopicPartition, tuple[Offset, Offset]]


class Positions:
    """How far each partition has been replayed, by reason."""

    def __init__(self, offsets: Mapping[Key, Offset] | None = None) -> None:
        self.offsets: dict[Key, Offset] = dict(offsets or {})

    def is_replayed(self, tp: TopicPartition, offset: Offset, reason: str) -> bool:
        return offset < self.start(tp, reason)

    def start(self, tp: TopicPartition, reason: str | None) -> Offset:
        """The first letter of this reason that may not have been replayed."""
        return max(self.offsets.get((tp, None), 0), self.offsets.get((tp, reason), 0))

    def advance(self, key: Key, offset: Offset) -> None:
        self.offsets[key] = max(offset, self.offsets.get(key, 0))


def to_record(key: Key, offset: Offset) -> tuple[bytes, bytes]:
    """Key and value of the record that says it."""
    tp, reason = key
    return _json([tp.topic, tp.partition, reason]), _json({"format": FORMAT, "next": offset})


def from_record(key: bytes, value: bytes) -> tuple[Key, Offset]:
    topic, partition, reason = json.loads(key)
    fields = json.loads(value)
    if fields["format"] != FORMAT:
        raise ValueError(f"{TOPIC}: unsupported format {fields['format']}; supported: {FORMAT}")
    return (TopicPartition(topic, partition), reason), fields["next"]


def read_positions(admin: Admin, consumer: Consumer[bytes, bytes], topic: str) -> Positions:
    """What is known of a dead-letter topic.

    The topic of positions is read up to its end, transactions of other replays that are open
    included: an earlier position of ours may lie behind their first record.
    """
    positions = Positions()
    if TOPIC not in admin.list_topics(internal=True):
        return positions
    listed = admin.list_offsets({MEMORY: OffsetSpec.LATEST}).all()
    start = consumer.beginning_offsets([MEMORY])[MEMORY]
    for records in read_ranges(consumer, {MEMORY: (start, listed[MEMORY].offset or 0)}):
        for record in records:
            if record.key is not None and record.value is not None:
                key, offset = from_record(record.key, record.value)
                if key[0].topic == topic:
                    positions.advance(key, offset)
    return positions


def create_topic(admin: Admin) -> None:
    """Create the topic of positions where there is none."""
    if TOPIC in admin.list_topics(internal=True):
        return
    copies = min(REPLICATION_FACTOR, len(admin.describe_cluster().brokers))
    configs = {"cleanup.policy": "compact", "min.insync.replicas": str(max(copies - 1, 1))}
    try:
        admin.create_topic(TOPIC, partitions=1, replication_factor=copies, configs=configs)
    except KafkaError as refused:
        if refused.code is not ErrorCode.topic_already_exists:
            raise


def read_ranges(
    consumer: Consumer[bytes, bytes], ranges: Ranges
) -> Iterator[list[Record[bytes, bytes]]]:
    """The records of fixed ranges of offsets, without a group; ends at their ends."""
    unread = {tp: end for tp, (start, end) in ranges.items() if start < end}
    consumer.assign(list(unread))
    for tp in unread:
        consumer.seek(tp, ranges[tp][0])
    empty_polls = 0
    while unread:
        polled = consumer.poll(POLL_S)
        records = [record for record in polled if record.offset < ranges[_partition(record)][1]]
        if records:
            yield records
        empty_polls = 0 if polled else empty_polls + 1
        if empty_polls > MAX_EMPTY_POLLS:
            waited_s = MAX_EMPTY_POLLS * POLL_S
            raise TimeoutError(f"no record of {_listing(unread)} within {waited_s:.0f} s")
        # Control records at the end of a range are never returned: only the position passes them.
        unread = {tp: end for tp, end in unread.items() if consumer.position(tp) < end}


def _partition(record: AnyRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def _listing(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(str(tp) for tp in sorted(partitions))


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
