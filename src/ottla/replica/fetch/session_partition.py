"""The partitions of a fetch session, and which of a follower's have changed since its last reply.

Owns what a session remembers of each partition. Never reads a log's records or a clock.

A follower may copy thousands of partitions of which few change between two fetches. So the work of
its fetch follows the partitions that changed: a partition is *settled* once the follower has been
sent all there is (it is at the end of the log, knows the high watermark and the log start, and is
in sync). The hosted partition then reports its next change. Until then every fetch of the session
says that the follower is still at the end; that is remembered once for all settled partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.model.clock import MonoMs
from ottla.model.ids import BrokerEpoch, BrokerId
from ottla.replica.leader import UNKNOWN_EPOCH, IdleFetches
from ottla.replica.partition import HostedPartition
from ottla.replica.partition_fetch import PartitionFetch, PartitionFetchResult

PARTITION_BYTES = 512
"""What a session keeps of one partition, but for the topic's name."""


class SessionPartition:
    """One partition of a session, and its state in the last reply."""

    __slots__ = ("_changes", "_watched", "high_watermark", "log_start", "request", "size")

    def __init__(self, request: PartitionFetch, changes: SessionChanges | None = None) -> None:
        self.request = request
        self.size = memory_bytes(request)
        self.high_watermark = -1
        self.log_start = -1
        self._changes = changes
        self._watched: HostedPartition | None = None

    def record(self, fetched: PartitionFetchResult) -> bool:
        """Remember this result; True when the client has to be sent it."""
        part = fetched.part
        changed = (
            fetched.size > 0
            or fetched.failed
            or part.diverging_epoch is not None
            or part.high_watermark != self.high_watermark
            or part.log_start_offset != self.log_start
            or part.preferred_read_replica >= 0
        )
        self.high_watermark = part.high_watermark
        self.log_start = part.log_start_offset
        if fetched.failed:  # an error is repeated until it is gone
            self.high_watermark = -1
        return changed

    # In a follower's session

    def watch(self, partition: HostedPartition | None) -> None:
        """Be told of changes of this partition; of one follower, only its newest session is."""
        if partition is self._watched or self._changes is None:
            return
        self.unwatch()
        if partition is None:
            return
        other = partition.watchers.get(self._changes.broker)
        partition.watchers[self._changes.broker] = self
        self._watched = partition
        if isinstance(other, SessionPartition):
            other.on_unwatched()

    def unwatch(self) -> None:
        partition, changes = self._watched, self._changes
        if partition is not None and changes is not None:
            self._end_idle(partition, changes)
            if partition.watchers.get(changes.broker) is self:
                del partition.watchers[changes.broker]
        self._watched = None

    def on_unwatched(self) -> None:
        """Another session watches the partition: this one must look at it in every fetch."""
        self._watched = None
        if self._changes is not None:
            self._changes.mark(self)

    def on_change(self) -> None:
        """The partition may have changed: called by it."""
        partition, changes = self._watched, self._changes
        if partition is None or changes is None or not self._differs(partition, changes.broker):
            return
        self._end_idle(partition, changes)
        changes.mark(self)

    def settle(self, fetched: PartitionFetchResult) -> bool:
        """Whether the follower has all there is; its fetches then count as being at the end."""
        partition, changes = self._watched, self._changes
        if (
            partition is None
            or changes is None
            or fetched.size
            or fetched.failed
            or fetched.part.diverging_epoch is not None
            or self._differs(partition, changes.broker)
        ):
            return False
        if partition.leadership is not None:
            partition.leadership.followers[changes.broker].idle = changes.fetches
        return True

    def _differs(self, partition: HostedPartition, broker: BrokerId) -> bool:
        """Whether a reply would say something new, or the follower might join the in-sync set."""
        leadership, log, request = partition.leadership, partition.log, self.request
        return (
            leadership is None
            or broker not in leadership.isr
            or request.offset != log.end_offset
            or self.high_watermark != log.high_watermark
            or self.log_start != log.start_offset
            or request.leader_epoch != partition.leader_epoch
        )

    @staticmethod
    def _end_idle(partition: HostedPartition, changes: SessionChanges) -> None:
        leadership = partition.leadership
        follower = None if leadership is None else leadership.followers.get(changes.broker)
        if follower is not None and follower.idle is changes.fetches:
            follower.end_idle()


class SessionChanges:
    """The partitions that the next reply to a follower must look at."""

    def __init__(self, broker: BrokerId) -> None:
        self.broker = broker
        self.fetches = IdleFetches(MonoMs(0))
        self.on_mark: Callable[[SessionPartition], object] | None = None
        """Called for a change while a fetch of the session waits."""
        self._broker_epoch = UNKNOWN_EPOCH
        self._changed: dict[SessionPartition, None] = {}
        self._unfinished: dict[SessionPartition, None] = {}
        self._served: dict[SessionPartition, None] = {}
        """Sent records in the last reply: the others come first in the next."""

    def begin(
        self, everything: Iterable[SessionPartition], broker_epoch: BrokerEpoch, now_ms: MonoMs
    ) -> list[SessionPartition]:
        """A fetch of the session has arrived: the partitions it is about."""
        self.fetches.last_ms = now_ms
        if broker_epoch != self._broker_epoch:  # the follower has registered anew
            self._broker_epoch = broker_epoch
            self._changed = dict.fromkeys(everything)
        else:
            self._changed = {**self._unfinished, **self._changed, **self._served}
        self._unfinished, self._served = {}, {}
        return list(self._changed)

    @property
    def requests(self) -> list[PartitionFetch]:
        return [each.request for each in self._changed]

    def take(self) -> list[PartitionFetch]:
        """What the reply is about; each one's result is handed to `finish`."""
        self._unfinished, self._changed = self._changed, {}
        return [each.request for each in self._unfinished]

    def finish(self, partition: SessionPartition, fetched: PartitionFetchResult) -> None:
        """This result is sent, or says nothing new."""
        self._unfinished.pop(partition, None)
        if partition.settle(fetched):
            return
        if fetched.size:
            self._changed.pop(partition, None)
            self._served[partition] = None
        else:
            self._changed[partition] = None

    def mark(self, partition: SessionPartition) -> None:
        """This partition has changed, or its position in the session has."""
        if partition not in self._served:
            self._changed[partition] = None
        if self.on_mark is not None:
            self.on_mark(partition)

    def forget(self, partition: SessionPartition) -> None:
        partition.unwatch()
        for some in (self._changed, self._unfinished, self._served):
            some.pop(partition, None)

    def close(self, everything: Iterable[SessionPartition]) -> None:
        """The session has ended."""
        for partition in everything:
            partition.unwatch()


def memory_bytes(request: PartitionFetch) -> int:
    return PARTITION_BYTES + len(request.key.topic)
