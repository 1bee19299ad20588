"""The leader's view of one partition's replicas: high watermark and ISR changes.

Owns each follower's position as of its last fetch, the ISR and the one change of it that may be
proposed. Never reads the log, writes the store or looks at a clock: the log end and
the time are arguments.

The high watermark follows the slowest member of the *largest* in-sync set we may have: the
committed one plus any we have proposed, because a replica we have asked to add may already count
for a later leader. It also waits for a follower that is not in the set but has been caught up
within the lag limit, so that a joining replica never misses what was committed. It does not move
while the set is smaller than `min.insync.replicas`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ottla.model.clock import MonoMs
from ottla.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset

UNKNOWN_OFFSET: Final[Offset] = -1
UNKNOWN_EPOCH: Final = BrokerEpoch(-1)


REFUSED_WAIT_MS: Final = 1_000
"""After a refused proposal: a follower fetches many times a second, and each may propose it."""


class LeaderAssignment(NamedTuple):
    """What the controller decided for one partition, as LeaderAndIsr carries it."""

    leader: BrokerId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    replicas: tuple[BrokerId, ...]
    version: int
    """The version of the partition's state in the store: a change must name it."""


class IdleFetches:
    """When a follower last fetched in a session, for all partitions that had nothing to send."""

    __slots__ = ("last_ms",)

    def __init__(self, last_ms: MonoMs) -> None:
        self.last_ms = last_ms


class Follower:
    """One remote replica: where it is, and when it last was where the leader was."""

    __slots__ = (
        "broker_epoch",
        "caught_up_at_ms",
        "end",
        "fetched_at_ms",
        "idle",
        "leader_end_at_fetch",
        "log_start",
        "sent_high_watermark",
        "sent_offset",
    )

    def __init__(self, caught_up_at_ms: MonoMs | None) -> None:
        self.end: Offset = UNKNOWN_OFFSET
        self.log_start: Offset = UNKNOWN_OFFSET
        self.caught_up_at_ms = caught_up_at_ms
        self.fetched_at_ms: MonoMs | None = None
        self.leader_end_at_fetch: Offset = 0
        self.sent_high_watermark: Offset = UNKNOWN_OFFSET
        """The high watermark it was last told of."""
        self.sent_offset: Offset | None = None
        """From where it was last sent records: asked again, it could not append them."""
        self.broker_epoch = UNKNOWN_EPOCH
        """Of its last fetch: the controller compares it with the registration."""
        self.idle: IdleFetches | None = None
        """Set while it is at the leader's end in every fetch of a session."""

    def on_fetch(
        self, offset: Offset, log_start: Offset, *, leader_end: Offset, now_ms: MonoMs
    ) -> None:
        """A fetch from `offset` says that everything below it is on the follower's disk."""
        if self.idle is not None:
            self.end_idle()
        if offset >= leader_end:
            self.caught_up_at_ms = now_ms
        elif self.fetched_at_ms is not None and offset >= self.leader_end_at_fetch:
            self.caught_up_at_ms = self.fetched_at_ms
        self.end = offset
        self.log_start = log_start
        self.leader_end_at_fetch = leader_end
        self.fetched_at_ms = now_ms

    def end_idle(self) -> None:
        """Its partition has changed since the last fetch, at which it was at the end."""
        if self.idle is not None:
            self.caught_up_at_ms = self.fetched_at_ms = self.idle.last_ms
            self.leader_end_at_fetch = self.end
            self.idle = None

    def is_caught_up(self, *, now_ms: MonoMs, lag_max_ms: int) -> bool:
        caught_up_at_ms = self.caught_up_at_ms if self.idle is None else self.idle.last_ms
        return caught_up_at_ms is not None and now_ms - caught_up_at_ms <= lag_max_ms


class Leadership:
    """The state of a led partition for one leader epoch; the partition is its only writer."""

    __slots__ = (
        "epoch",
        "epoch_start",
        "followers",
        "isr",
        "led_since",
        "propose_from_ms",
        "proposed",
        "replicas",
        "version",
    )

    def __init__(
        self,
        assigned: LeaderAssignment,
        *,
        broker_id: BrokerId,
        epoch_start: Offset,
        now_ms: MonoMs,
        led_since: LeaderEpoch | None = None,
    ) -> None:
        self.epoch = assigned.leader_epoch
        self.led_since = assigned.leader_epoch if led_since is None else led_since
        """The epoch since which this broker has led without a break: nothing was truncated."""
        self.epoch_start = epoch_start
        self.replicas = assigned.replicas
        self.isr = frozenset(assigned.isr)
        self.version = assigned.version
        self.proposed: frozenset[BrokerId] | None = None
        """A set that the controller was asked for, until it is known whether it was taken."""
        self.propose_from_ms = now_ms
        """No set is proposed before."""
        self.followers = {
            replica: Follower(now_ms if replica in self.isr else None)
            for replica in assigned.replicas
            if replica != broker_id
        }

    def high_watermark(
        self, own_end: Offset, *, min_isr: int, now_ms: MonoMs, lag_max_ms: int
    ) -> Offset | None:
        """Where the high watermark may stand, or None where it may not move.

        `own_end` is the leader's own vote: its log end, or the end of what is flushed where an
        acknowledgement waits for the disk.
        """
        if len(self.isr) < min(min_isr, len(self.replicas)):
            return None
        if not self.followers:
            return own_end
        counted = self.isr if self.proposed is None else self.isr | self.proposed
        lowest = own_end
        for broker, follower in self.followers.items():
            if follower.end < lowest and (
                broker in counted or follower.is_caught_up(now_ms=now_ms, lag_max_ms=lag_max_ms)
            ):
                lowest = follower.end
        return lowest

    def low_watermark(self, own_start: Offset, live: Iterable[BrokerId]) -> Offset:
        """The smallest log start among live replicas: below it nothing can be read anywhere."""
        alive = set(live)
        starts = [f.log_start for b, f in self.followers.items() if b in alive]
        return min([own_start, *starts])

    def replica_in_rack(
        self, rack: str, racks: Mapping[BrokerId, str | None], offset: Offset
    ) -> BrokerId | None:
        """The follower in a rack that a consumer at `offset` may read from: the one with most.

        `racks` has the live replicas. As Kafka's RackAwareReplicaSelector chooses.
        """
        near = {
            broker: follower.end
            for broker, follower in self.followers.items()
            if broker in self.isr
            and racks.get(broker) == rack
            and follower.log_start <= offset <= follower.end
        }
        return max(near, key=lambda broker: (near[broker], -broker)) if near else None

    def on_committed(self, isr: frozenset[BrokerId], version: int) -> None:
        """The controller has taken this set, whoever proposed it."""
        self.isr = isr
        self.version = version
        self.proposed = None

    def on_refused(self, now_ms: MonoMs) -> None:
        """The controller said that the proposed set was not taken, nor will be."""
        self.proposed = None
        self.propose_from_ms = MonoMs(now_ms + REFUSED_WAIT_MS)

    def isr_with(
        self, broker: BrokerId, *, high_watermark: Offset, now_ms: MonoMs
    ) -> frozenset[BrokerId] | None:
        """The in-sync set with this follower in it, once it caught up and nothing is pending."""
        follower = self.followers.get(broker)
        if follower is None or self.proposed is not None or broker in self.isr:
            return None
        if now_ms < self.propose_from_ms:
            return None
        if follower.end < high_watermark or follower.end < self.epoch_start:
            return None
        return self.isr | {broker}

    def isr_without_lagging(
        self, *, leader_end: Offset, now_ms: MonoMs, lag_max_ms: int
    ) -> frozenset[BrokerId] | None:
        """The in-sync set without followers that have been behind for too long, if any have."""
        if self.proposed is not None:
            return None
        lagging = {
            broker
            for broker, follower in self.followers.items()
            if broker in self.isr
            and follower.end < leader_end
            and not follower.is_caught_up(now_ms=now_ms, lag_max_ms=lag_max_ms)
        }
        return self.isr - lagging if lagging else None
