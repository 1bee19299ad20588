"""Translates offsets of consumer groups from the origin of a mirror to the mirror.

Owns: the translation: a mirrored record carries its offset at the origin in a header, and within a
partition these only grow, so an offset is found by binary search. Never: moves a group that has
members at the mirror, moves one back, or creates one that has no offsets at the origin.

A group that is ahead of what has been copied gets the end of the mirror, and is moved on later.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeAlias

from ottla.client.admin import OffsetSpec
from ottla.client.admin.sync import Admin
from ottla.client.consumer.sync import Consumer
from ottla.model.clock import Clock, MonoMs
from ottla.model.errors import KafkaError
from ottla.model.ids import TopicPartition
from ottla.spark.pipelines.spec import GroupSync

log = logging.getLogger(__name__)

OFFSET_HEADER: Final = "ottla.mirror.offset"
PROBE_S: Final = 2.0

Probe: TypeAlias = Callable[[int], tuple[int, int] | None]
"""The first record at or after an offset: its offset here, and its offset at the origin."""


def translate_offset(origin: int, low: int, high: int, probe: Probe) -> int:
    """The first offset in [low, high] whose record has at least the offset `origin`; else high."""
    while low < high:
        middle = (low + high) // 2
        record = probe(middle)
        if record is None or record[0] >= high:
            high = middle
        elif record[1] < origin:
            low = record[0] + 1
        else:
            high = middle
    return low


class GroupSyncing:
    """Translates the groups at regular times, while the queries of a mirror run."""

    def __init__(self, sync: GroupSync, clock: Clock) -> None:
        self._sync = sync
        self._clock = clock
        self._due_ms = MonoMs(0)
        self._settled: dict[tuple[str, TopicPartition], int] = {}

    def __call__(self) -> None:
        now_ms = self._clock.mono_ms()
        if now_ms < self._due_ms:
            return
        self._due_ms = MonoMs(now_ms + self._sync.every_ms)
        self.now()

    def now(self) -> None:
        """Translate every group now; an unreachable cluster is only logged."""
        sync = self._sync
        try:
            self._translate_all()
        except (OSError, KafkaError) as failure:
            log.warning("cannot sync groups from %s to %s: %s", sync.origin, sync.target, failure)

    def _translate_all(self) -> None:
        with (
            Admin(bootstrap_servers=self._sync.origin) as origin,
            Admin(bootstrap_servers=self._sync.target) as target,
        ):
            for group in origin.list_groups():
                if re.fullmatch(self._sync.groups, group.id):
                    self._translate(target, group.id, _offsets(origin, group.id))

    def _translate(self, target: Admin, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit the group's offsets at the mirror where they are ahead of those it has."""
        new = {
            tp: offset for tp, offset in offsets.items() if self._settled.get((group, tp)) != offset
        }
        ahead, settled = {}, {}
        committed = _offsets(target, group) if new else {}
        for tp, (low, high) in _bounds(target, new).items():
            with _probing(self._sync.target, tp, high) as probe:
                offset = translate_offset(new[tp], low, high, probe)
            if offset > committed.get(tp, -1):
                ahead[tp] = offset
            if offset < high:  # else records the group has read may still be copied
                settled[group, tp] = new[tp]
        if ahead:
            for tp, failure in target.alter_group_offsets(group, ahead).failed.items():
                settled.pop((group, tp), None)
                log.info(
                    "cannot commit the offset of group %s for %s at the mirror: %s",
                    group,
                    tp,
                    failure,
                )
        self._settled |= settled


def _offsets(cluster: Admin, group: str) -> dict[TopicPartition, int]:
    committed = cluster.list_group_offsets(group).succeeded
    return {tp: entry.offset for tp, entry in committed.items() if entry.offset >= 0}


def _bounds(
    cluster: Admin, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, int]]:
    """Log start and last stable offset of the partitions that exist."""
    starts = cluster.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST)).succeeded
    ends = cluster.list_offsets(
        dict.fromkeys(starts, OffsetSpec.LATEST), read_committed=True
    ).succeeded
    return {tp: (starts[tp].offset or 0, end.offset or 0) for tp, end in ends.items()}


@contextmanager
def _probing(bootstrap: str, tp: TopicPartition, high: int) -> Iterator[Probe]:
    consumer: Consumer[bytes, bytes] = Consumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        max_poll_records=1,
        max_partition_fetch_bytes=1,  # a broker returns at least one batch
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    with consumer:
        consumer.assign([tp])

        def probe(offset: int) -> tuple[int, int] | None:
            consumer.seek(tp, offset)
            while consumer.position(tp) < high:  # control batches yield no record
                for record in consumer.poll(PROBE_S):
                    origin_offset = dict(record.headers).get(OFFSET_HEADER)
                    if origin_offset is not None:
                        return record.offset, int(origin_offset)
            return None

        yield probe
