"""The interface between a consumer and its group protocol.

Owns the interface that `classic_loop`, `consumer_loop` and `standalone_loop` implement, the parts
that they use, and the poll interval of a member: when the user last polled, and when that is too
long ago.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.consumer.group.error_reactions import ErrorReaction
from ottla.client.consumer.group.rebalance import Rebalance
from ottla.client.consumer.metadata_watch import MetadataWatch
from ottla.client.consumer.poll_gate import PollGate
from ottla.client.consumer.subscription import Subscriptions
from ottla.config.client import ConsumerConfig
from ottla.model.clock import Clock, MonoMs


class Group(Protocol):
    """One membership."""

    @property
    def metadata(self) -> GroupMetadata: ...

    @property
    def is_lost(self) -> bool:
        """Whether other members may own its partitions already."""
        ...

    def commit_metadata(self) -> GroupMetadata | None:
        """The member to commit as; None if it is no longer a member."""
        ...

    def on_commit_error(self, after: ErrorReaction) -> None: ...

    def on_subscription_changed(self) -> None:
        """Called when the subscribed topics have changed."""
        ...

    def rejoin(self, reason: str) -> None:
        """Rejoin, so that the group reassigns partitions."""
        ...

    async def run(self) -> None:
        """Be a member until cancelled."""
        ...

    async def leave(self, reason: str, timeout_ms: int) -> None:
        """Leave the group, so that others need not wait for the session to expire."""
        ...


class PollInterval:
    """When the user last polled: a member that stops polling must leave its group."""

    def __init__(self, clock: Clock, max_interval_ms: int) -> None:
        self._clock = clock
        self._max_interval_ms = max_interval_ms
        self._inside = 0
        self._polled_ms: MonoMs | None = None

    def enter(self) -> None:
        self._inside += 1

    def leave(self) -> None:
        self._inside -= 1
        self.on_poll()

    def on_poll(self) -> None:
        self._polled_ms = self._clock.mono_ms()

    @property
    def left_ms(self) -> int:
        if self._inside or self._polled_ms is None:  # a poll may wait as long as it likes
            return self._max_interval_ms
        return self._polled_ms + self._max_interval_ms - self._clock.mono_ms()

    @property
    def is_too_slow(self) -> bool:
        return self.left_ms <= 0


class Member(Protocol):
    """What the loops of both protocols need of a member."""

    @property
    def metadata(self) -> GroupMetadata: ...

    @property
    def lost(self) -> bool: ...


M = TypeVar("M", bound=Member)


@dataclass(frozen=True, slots=True)
class MembershipParts:
    """The parts of a consumer that a membership works with."""

    cluster: Cluster
    subscriptions: Subscriptions
    watch: MetadataWatch
    gate: PollGate
    rebalance: Rebalance
    poll_interval: PollInterval


class Membership(Generic[M]):
    """Base of both protocols: a member, and the parts of its consumer."""

    def __init__(self, member: M, parts: MembershipParts) -> None:
        assert isinstance(parts.cluster.config, ConsumerConfig)
        self._config: ConsumerConfig = parts.cluster.config
        self._member = member
        self._cluster = parts.cluster
        self._subscriptions = parts.subscriptions
        self._watch = parts.watch
        self._gate = parts.gate
        self._rebalance = parts.rebalance
        self._poll_interval = parts.poll_interval

    @property
    def metadata(self) -> GroupMetadata:
        return self._member.metadata

    @property
    def is_lost(self) -> bool:
        return self._member.lost
