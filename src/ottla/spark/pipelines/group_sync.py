"""Consumer groups that can go on at a mirror where they stopped at its origin.

Owns: the translation of a group's offsets: a mirrored record carries the offset it had at its
origin in a header, and within a partition these only grow, so the place of an offset is found by
halving. Never: moves a group that is live at the mirror, or back from where it came to there, or
one that has nothing at the origin.

A group ahead of what has been copied is placed behind the last record copied, and moved on the
next time.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from ottla.client.admin import OffsetSpec
from ottla.client.admin.sync import Admin
from ottla.client.consumer.sync import Consumer
from ottla.model.clock import Clock
from ottla.model.errors import KafkaError
from ottla.model.ids import TopicPartition
from ottla.spark.pipelines.spec import GroupSync

log = logging.getLogger(__name__)

OFFSET_HEADER: Final = "ottla.mirror.offset"
PROBE_S: Final = 2.0

Probe: TypeAlias = Callable[[int], tuple[int, int] | None]
"""The first record at an offset or after it: where it is, and its offset at the origin."""


def place_of(origin: int, low: int, high: int, probe: Probe) -> int:
    """The first offset in [low, high] whose record has not less than `origin`; high if none has."""
    while low < high:
        middle = (low + high) // 2
        found = probe(middle)
        if found is None or found[0] >= high:
            high = middle
        elif found[1] < origin:
            low = found[0] + 1
        else:
            high = middle
    return low


class GroupSyncing:
    """Does it again and again, while the queries of a mirror run."""

    def __init__(self, sync: GroupSync, clock: Clock) -> None:
        self._sync = sync
        self._clock = clock
        self._due_ms = 0
        self._settled: dict[tuple[str, TopicPartition], int] = {}

    def __call__(self) -> None:
        now_ms = self._clock.mono_ms()
        if now_ms < self._due_ms:
            return
        self._due_ms = now_ms + self._sync.every_ms
        self.now()

    def now(self) -> None:
        """Place every group of the origin at the mirror; a cluster that is away is only told of."""
        try:
            self._all()
        except (OSError, KafkaError) as failure:
            log.warning("groups are not translated this time: %s", failure)

    def _all(self) -> None:
        with (
            Admin(bootstrap_servers=self._sync.origin) as origin,
            Admin(bootstrap_servers=self._sync.target) as target,
        ):
            for group in origin.list_groups():
                if re.fullmatch(self._sync.groups, group.id):
                    self._place(target, group.id, _offsets(origin, group.id))

    def _place(self, target: Admin, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Move the group to where it belongs at the mirror, as far as that is ahead."""
        new = {tp: at for tp, at in offsets.items() if self._settled.get((group, tp)) != at}
        ahead, settled = {}, {}
        stands = _offsets(target, group) if new else {}
        for tp, (low, high) in _bounds(target, new).items():
            with _probing(self._sync.target, tp, high) as probe:
                place = place_of(new[tp], low, high, probe)
            if place > stands.get(tp, -1):
                ahead[tp] = place
            if place < high:  # else more may be copied that the group has had
                settled[group, tp] = new[tp]
        if ahead:
            for tp, failure in target.alter_group_offsets(group, ahead).failed.items():
                settled.pop((group, tp), None)
                log.info("group %s is not moved at the mirror, %s: %s", group, tp, failure)
        self._settled |= settled


def _offsets(cluster: Admin, group: str) -> dict[TopicPartition, int]:
    told = cluster.list_group_offsets(group).succeeded
    return {tp: one.offset for tp, one in told.items() if one.offset >= 0}


def _bounds(
    cluster: Admin, wanted: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, int]]:
    """Where partitions begin, and where committed records end; only of those that are there."""
    starts = cluster.list_offsets(dict.fromkeys(wanted, OffsetSpec.EARLIEST)).succeeded
    ends = cluster.list_offsets(
        dict.fromkeys(starts, OffsetSpec.LATEST), read_committed=True
    ).succeeded
    return {tp: (starts[tp].offset or 0, end.offset or 0) for tp, end in ends.items()}


@contextmanager
def _probing(bootstrap: str, tp: TopicPartition, high: int) -> Iterator[Probe]:
    consumer: Consumer[Any, Any] = Consumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        max_poll_records=1,
        max_partition_fetch_bytes=1,  # a broker gives one batch at least, and one is enough
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    with consumer:
        consumer.assign([tp])

        def probe(offset: int) -> tuple[int, int] | None:
            consumer.seek(tp, offset)
            while consumer.position(tp) < high:  # what ends a transaction is no record
                for record in consumer.poll(PROBE_S):
                    told = dict(record.headers).get(OFFSET_HEADER)
                    if told is not None:
                        return record.offset, int(told)
            return None

        yield probe
