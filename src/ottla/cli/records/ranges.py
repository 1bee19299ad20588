"""Where a consumer begins and ends.

Owns: the loop that polls until every partition is read to its end, or for ever. Never: shows a
record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from ottla.client.admin import OffsetSpec
from ottla.client.admin.sync import Admin
from ottla.client.consumer.record import Record
from ottla.client.consumer.sync import Consumer
from ottla.model.ids import TopicPartition

POLL_S: Final = 0.5
Batch = list[Record[bytes, bytes]]


class ReadRange(NamedTuple):
    """Offsets to read: from the first of each partition to before the last; None has no end."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int] | None

    @property
    def total(self) -> int | None:
        """How many offsets that is."""
        if self.ends is None:
            return None
        return sum(max(end - self.starts[one], 0) for one, end in self.ends.items())


def span(
    admin: Admin,
    partitions: list[TopicPartition],
    first: OffsetSpec | int,
    *,
    end: OffsetSpec | int | None,
    read_committed: bool = False,
) -> ReadRange:
    """From an end or a time to another; a time after the last record is the end."""
    starts = _resolve_offsets(admin, partitions, first, read_committed)
    ends = None if end is None else _resolve_offsets(admin, partitions, end, read_committed)
    return ReadRange(starts, ends)


def _resolve_offsets(
    admin: Admin, partitions: list[TopicPartition], spec: OffsetSpec | int, read_committed: bool
) -> dict[TopicPartition, int]:
    offsets = admin.list_offsets(
        dict.fromkeys(partitions, spec), read_committed=read_committed
    ).all()
    late = [partition for partition in partitions if offsets[partition].offset is None]
    last = admin.list_offsets(
        dict.fromkeys(late, OffsetSpec.LATEST), read_committed=read_committed
    ).all()
    return {
        partition: offsets[partition].offset
        if partition not in last
        else last[partition].offset or 0  # type: ignore[misc]
        for partition in partitions
    }


def read_span(consumer: Consumer[bytes, bytes], span: ReadRange) -> Iterator[Batch]:
    """The records of a span, as they come; an empty list when nothing came for a while."""
    consumer.assign(list(span.starts))
    for partition, offset in span.starts.items():
        consumer.seek(partition, offset)
    yield from _until(consumer, lambda: span.ends)


def read_group(
    consumer: Consumer[bytes, bytes], topics: list[str], *, follow: bool
) -> Iterator[Batch]:
    """What a group has not read yet: to the ends of its partitions, or for ever."""
    consumer.subscribe(topics)
    ends: dict[TopicPartition, int] = {}

    def known_ends() -> Mapping[TopicPartition, int] | None:
        assigned = consumer.assignment()
        if follow or not assigned:
            return None
        if not ends:
            ends.update(consumer.end_offsets(assigned))
        return {one: ends[one] for one in assigned if one in ends}

    yield from _until(consumer, known_ends)


def _until(
    consumer: Consumer[bytes, bytes], known_ends: Callable[[], Mapping[TopicPartition, int] | None]
) -> Iterator[Batch]:
    """Poll until every partition is at its end. Records beyond one's end are left out."""
    finished: set[TopicPartition] = set()
    while True:
        ends = known_ends()
        if ends is not None:
            finished |= {
                partition
                for partition in ends.keys() - finished
                if consumer.position(partition) >= ends[partition]
            }
            if finished >= ends.keys():
                return
        records = consumer.poll(POLL_S)
        if ends is not None:
            records = [
                record for record in records if record.offset < ends.get(_partition(record), 0)
            ]
        yield records


def _partition(record: Record[bytes, bytes]) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)
