"""The consumer itself, on one event loop: its parts, and what a poll waits for.

Owns the parts and their tasks. Two faces stand on it: `aio`, whose caller is on the same loop, and
`sync`, whose caller is on another thread and waits. Between calls the tasks only fetch, heartbeat
and commit; partitions change hands and positions jump only while a caller is inside.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from ottla.client.cluster import Cluster
from ottla.client.consumer.errors import Wakeup
from ottla.client.consumer.fetch.buffer import Buffer
from ottla.client.consumer.fetch.chunk import Chunk, ChunkReader
from ottla.client.consumer.fetch.fetcher import Fetcher
from ottla.client.consumer.fetch.partition_responses import ErrorReaction as FetchThen
from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.consumer.group.commit_loop import CommitLoop
from ottla.client.consumer.group.commit_queue import Positions
from ottla.client.consumer.group.error_reactions import ErrorReaction
from ottla.client.consumer.group.membership import Group, PollInterval
from ottla.client.consumer.group.rebalance import Rebalance
from ottla.client.consumer.interceptors import Interceptors
from ottla.client.consumer.metadata_watch import MetadataWatch
from ottla.client.consumer.poll_gate import PollGate
from ottla.client.consumer.position.offset_lookup import OffsetLookup
from ottla.client.consumer.position.partition_position import PositionPhase
from ottla.client.consumer.position.position_loop import PositionLoop
from ottla.client.consumer.position.position_loop import PositionStep as PositionThen
from ottla.client.consumer.position.reset_policy import reset_policy
from ottla.client.consumer.rebalance_listener import Invoke
from ottla.client.consumer.subscription import SubscriptionMode, Subscriptions
from ottla.client.offsets import OffsetAndMetadata
from ottla.client.retry import Deadline
from ottla.config.client import ConsumerConfig
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)

NEVER_MS: Final = 1 << 62


class Core:
    """All parts of one consumer. `live` runs them; everything else is called while it does."""

    def __init__(self, cluster: Cluster, reading: ChunkReader, interceptors: Interceptors) -> None:
        assert isinstance(cluster.config, ConsumerConfig)
        self.config: ConsumerConfig = cluster.config
        self.clock = cluster.clock
        self.cluster = cluster
        self.reading = reading
        self.interceptors = interceptors
        self.subscriptions = Subscriptions()
        self.bell = asyncio.Event()
        self.gate = PollGate(self.bell.set)
        self.watch = MetadataWatch(cluster, self.subscriptions, self.config)
        policy = reset_policy(self.config.auto_offset_reset)
        read_committed = self.config.isolation_level == "read_committed"
        self.lookup = OffsetLookup(cluster, read_committed=read_committed)
        self.placer = PositionLoop(cluster, self.subscriptions, self.watch, self.lookup, policy)
        self.fetcher = Fetcher(cluster, self.subscriptions, self.watch, policy)
        self.commits = CommitLoop(cluster, self, self._landed)
        self.pace = PollInterval(self.clock, self.config.max_poll_interval_ms)
        self.opened = asyncio.Event()
        self.later: deque[Callable[[], Any]] = deque()
        """User code to call when the user is next inside."""
        self.unread: Callable[[], Mapping[TopicPartition, int]] = dict
        """Where records begin that were taken from the buffer but that the user has not seen."""
        self.records = 0
        self._stop = asyncio.Event()
        self._wakened = False
        self._auto_commit_at_ms = NEVER_MS
        self._member: asyncio.Task[None] | None = None

    def face(
        self,
        invoke: Invoke,
        drained: Callable[[], None],
        broken: Callable[[Chunk], None],
        make_group: Callable[[Core], Group],
    ) -> None:
        """Who stands on it: how user code is called, and how the loop is told of what was read."""
        self.invoke = invoke
        self.buffer = Buffer(self.reading, drained, broken)
        self.rebalance = Rebalance(self.subscriptions, self.save, invoke, self._reassigned)
        self.group = make_group(self)
        self.fetcher.serve(self.buffer, FetchThen(self.bell.set, self.placer.kick, self.gate.fail))
        self.placer.serve(self._commits_of, PositionThen(self._placed, self.gate.fail))
        self.watch.tell(self._reassigned)

    async def live(self) -> None:
        """Everything that goes on between calls, until `stop`."""
        async with self.cluster, asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            running = [
                tasks.create_task(self._watched(part.run()))
                for part in (self.watch, self.placer, self.fetcher, self.commits)
            ]
            self.opened.set()
            await self._stop.wait()
            for task in running:
                task.cancel()
            self.end_membership()

    def stop(self) -> None:
        self._stop.set()

    async def wait(self, deadline: Deadline) -> bool:
        """Do what a poll has to do until there is something to read, or time is up."""
        if self.subscriptions.mode is SubscriptionMode.NOTHING:
            raise UserError("nothing to poll: call subscribe() or assign() first")
        self.pace.enter()
        try:
            self._begin_membership()
            if any(part.phase is not PositionPhase.READY for part in self.subscriptions):
                self.placer.kick()
            while True:
                self.bell.clear()
                await self._tend()
                if self.buffer.has_some:
                    return True
                left_ms = min(deadline.left_ms, self._auto_commit_at_ms - self.clock.mono_ms())
                if deadline.is_over:
                    return False
                try:
                    async with asyncio.timeout(max(left_ms, 1) / 1e3):
                        await self.bell.wait()
                except TimeoutError:
                    continue
        finally:
            self.pace.leave()

    @property
    def is_quiet(self) -> bool:
        """Whether a poll has nothing to do but take what is there. Any thread may ask."""
        return (
            self.gate.is_quiet
            and not self._wakened
            and not self.later
            and self.clock.mono_ms() < self._auto_commit_at_ms
        )

    async def _tend(self) -> None:
        """Inside a poll: call user code, let partitions change hands, commit what is due."""
        if self._wakened:
            self._wakened = False
            raise Wakeup
        await self.call_back()
        await self.gate.tend()
        fault = self.subscriptions.fault
        if fault is not None:
            raise fault
        if self.clock.mono_ms() >= self._auto_commit_at_ms:
            self._auto_commit_at_ms = self.clock.mono_ms() + self.config.auto_commit_interval_ms
            offsets = self.consumed()
            if offsets:
                self.commits.start(offsets, _say_failure, insists=False)

    async def call_back(self) -> None:
        while self.later:
            await self.invoke(self.later.popleft())

    def wakeup(self) -> None:
        self._wakened = True
        self.bell.set()

    def _begin_membership(self) -> None:
        """The first poll after subscribing joins."""
        if self.subscriptions.is_automatic and self._member is None:
            self._member = self._tasks.create_task(self._watched(self.group.run()))
        if self.commits_by_itself and self._auto_commit_at_ms == NEVER_MS:
            self._auto_commit_at_ms = self.clock.mono_ms() + self.config.auto_commit_interval_ms

    def end_membership(self) -> None:
        if self._member is not None:
            self._member.cancel()
            self._member = None

    @property
    def commits_by_itself(self) -> bool:
        return self.config.enable_auto_commit and self.config.group_id is not None

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The position of each partition: one past the last record that the user has."""
        unread = self.unread()
        return {
            tp: OffsetAndMetadata(unread.get(tp, part.offset), "", part.epoch)
            for tp, part in self.subscriptions.positions().items()
        }

    async def save(self) -> None:
        """Commit what the user has, if that is automatic, and wait for it."""
        if self.commits_by_itself:
            await self.commits.commit(self.consumed(), self.config.default_api_timeout_ms)

    def committing(self) -> GroupMetadata | None:
        if self.subscriptions.is_automatic:
            return self.group.committing()
        assert self.config.group_id is not None
        return GroupMetadata(self.config.group_id)

    def commit_refused(self, after: ErrorReaction) -> None:
        if self.subscriptions.is_automatic:
            self.group.commit_refused(after)

    def metrics(self) -> dict[str, float]:
        """Figures under the names that Kafka's consumer has for them."""
        read_committed = self.config.isolation_level == "read_committed"
        lags = [part.lag(read_committed) or 0 for part in self.subscriptions]
        return {
            "records-consumed-total": self.records,
            "bytes-consumed-total": self.fetcher.bytes,
            "fetch-total": self.fetcher.fetches,
            "records-lag-max": max(lags, default=0),
            "commit-total": self.commits.commits,
            "rebalance-total": self.rebalance.count,
            "assigned-partitions": len(self.subscriptions),
        }

    def _commits_of(self) -> GroupMetadata | None:
        """Whose commits a new partition begins at."""
        if self.config.group_id is None:
            return None
        if self.subscriptions.is_automatic and self.config.group_protocol == "consumer":
            return self.group.metadata
        return GroupMetadata(self.config.group_id)

    def _landed(self, offsets: Positions) -> None:
        if self.interceptors:
            self.later.append(lambda: self.interceptors.committed(offsets))

    def _reassigned(self) -> None:
        self.placer.kick()
        self.fetcher.kick()
        self.bell.set()

    def _placed(self) -> None:
        self.fetcher.kick()
        self.bell.set()

    async def _watched(self, work: Coroutine[Any, Any, None]) -> None:
        """A part that fails is heard of in the next poll, not when the consumer is closed."""
        try:
            await work
        except Exception as error:
            log.exception("a part of the consumer failed")
            self.gate.fail(error)


def _say_failure(error: Exception | None) -> None:
    if error is not None:
        log.warning("offsets were not committed: %s; the next automatic commit tries again", error)
