"""The consumer itself, on one event loop: its parts, and the wait of a poll.

Owns the parts and their tasks. Used by `aio`, whose caller is on the same loop, and by `sync`,
whose caller is on another thread and waits. Between calls the tasks only fetch, heartbeat and
commit; assignments and positions change only while a caller is inside a call.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.consumer.errors import Wakeup
from ottla.client.consumer.fetch.buffer import Buffer
from ottla.client.consumer.fetch.chunk import Chunk, ChunkReader
from ottla.client.consumer.fetch.fetcher import Fetcher
from ottla.client.consumer.fetch.partition_responses import FetchErrorReaction
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
from ottla.model.clock import MonoMs
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)

NEVER_MS: Final = MonoMs(1 << 62)


class Core:
    """All parts of one consumer. `run` runs them; everything else is called while it does."""

    def __init__(self, cluster: Cluster, reading: ChunkReader, interceptors: Interceptors) -> None:
        assert isinstance(cluster.config, ConsumerConfig)
        self.config: ConsumerConfig = cluster.config
        self.clock = cluster.clock
        self.cluster = cluster
        self.reading = reading
        self.interceptors = interceptors
        self.subscriptions = Subscriptions()
        self.wake_event = asyncio.Event()
        self.gate = PollGate(self.wake_event.set)
        self.watch = MetadataWatch(cluster, self.subscriptions, self.config)
        policy = reset_policy(self.config.auto_offset_reset)
        read_committed = self.config.isolation_level == "read_committed"
        self.lookup = OffsetLookup(cluster, read_committed=read_committed)
        self.position_loop = PositionLoop(
            cluster, self.subscriptions, self.watch, self.lookup, policy
        )
        self.fetcher = Fetcher(cluster, self.subscriptions, self.watch, policy)
        self.commits = CommitLoop(cluster, self, self._on_committed)
        self.poll_interval = PollInterval(self.clock, self.config.max_poll_interval_ms)
        self.opened = asyncio.Event()
        self.pending_callbacks: deque[Callable[[], object]] = deque()
        """User callbacks to run in the user's next call."""
        self.unread: Callable[[], Mapping[TopicPartition, int]] = dict
        """The first offset of records that were taken from the buffer but not seen by the user."""
        self.records = 0
        self._stop = asyncio.Event()
        self._wakeup_requested = False
        self._auto_commit_at_ms = NEVER_MS
        self._member: asyncio.Task[None] | None = None

    def attach(
        self,
        invoke: Invoke,
        drained: Callable[[], None],
        corrupt: Callable[[Chunk], None],
        make_group: Callable[[Core], Group],
    ) -> None:
        """Connect it to a public class, which calls user code and reads the buffer."""
        self.invoke = invoke
        self.buffer = Buffer(self.reading, drained, corrupt)
        self.rebalance = Rebalance(
            self.subscriptions, self.auto_commit, invoke, self._on_assignment_changed
        )
        self.group = make_group(self)
        self.fetcher.attach(
            self.buffer,
            FetchErrorReaction(self.wake_event.set, self.position_loop.wake, self.gate.fail),
        )
        self.position_loop.attach(
            self._group_for_lookup, PositionThen(self._on_positions_found, self.gate.fail)
        )
        self.watch.add_listener(self._on_assignment_changed)

    async def run(self) -> None:
        """Run all background tasks, until `stop`."""
        async with self.cluster, asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            running = [
                tasks.create_task(self._run_task(part.run()))
                for part in (self.watch, self.position_loop, self.fetcher, self.commits)
            ]
            self.opened.set()
            await self._stop.wait()
            for task in running:
                task.cancel()
            self.end_membership()

    def stop(self) -> None:
        self._stop.set()

    async def wait(self, deadline: Deadline) -> bool:
        """Do the work of a poll until there are records to read, or until the deadline."""
        if self.subscriptions.mode is SubscriptionMode.NOTHING:
            raise UserError("nothing to poll: call subscribe() or assign() first")
        self.poll_interval.enter()
        try:
            self._begin_membership()
            if any(part.phase is not PositionPhase.READY for part in self.subscriptions):
                self.position_loop.wake()
            while True:
                self.wake_event.clear()
                await self._run_poll_work()
                if self.buffer.has_some:
                    return True
                left_ms = min(deadline.left_ms, self._auto_commit_at_ms - self.clock.mono_ms())
                if deadline.is_over:
                    return False
                try:
                    async with asyncio.timeout(max(left_ms, 1) / 1e3):
                        await self.wake_event.wait()
                except TimeoutError:
                    continue
        finally:
            self.poll_interval.leave()

    @property
    def is_quiet(self) -> bool:
        """Whether a poll only has to take buffered records. Any thread may ask."""
        return (
            self.gate.is_quiet
            and not self._wakeup_requested
            and not self.pending_callbacks
            and self.clock.mono_ms() < self._auto_commit_at_ms
        )

    async def _run_poll_work(self) -> None:
        """Inside a poll: run callbacks, apply rebalances, start an automatic commit if due."""
        if self._wakeup_requested:
            self._wakeup_requested = False
            raise Wakeup
        await self.run_callbacks()
        await self.gate.run_pending()
        fault = self.subscriptions.fault
        if fault is not None:
            raise fault
        if self.clock.mono_ms() >= self._auto_commit_at_ms:
            self._auto_commit_at_ms = self._next_auto_commit()
            offsets = self.consumed_positions()
            if offsets:
                self.commits.start(offsets, _log_failed_commit, is_retried=False)

    async def run_callbacks(self) -> None:
        while self.pending_callbacks:
            await self.invoke(self.pending_callbacks.popleft())

    def wakeup(self) -> None:
        self._wakeup_requested = True
        self.wake_event.set()

    def _begin_membership(self) -> None:
        """Join the group in the first poll after subscribing."""
        if self.subscriptions.is_automatic and self._member is None:
            self._member = self._tasks.create_task(self._run_task(self.group.run()))
        if self.auto_commits and self._auto_commit_at_ms == NEVER_MS:
            self._auto_commit_at_ms = self._next_auto_commit()

    def _next_auto_commit(self) -> MonoMs:
        return MonoMs(self.clock.mono_ms() + self.config.auto_commit_interval_ms)

    def end_membership(self) -> None:
        if self._member is not None:
            self._member.cancel()
            self._member = None

    @property
    def auto_commits(self) -> bool:
        return self.config.enable_auto_commit and self.config.group_id is not None

    def consumed_positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The position of each partition: one past the last record the user has received."""
        unread = self.unread()
        return {
            tp: OffsetAndMetadata(unread.get(tp, part.offset), "", part.epoch)
            for tp, part in self.subscriptions.positions().items()
        }

    async def auto_commit(self) -> None:
        """Commit the current positions, if commits are automatic, and wait for it."""
        if self.auto_commits:
            await self.commits.commit(self.consumed_positions(), self.config.default_api_timeout_ms)

    def commit_metadata(self) -> GroupMetadata | None:
        if self.subscriptions.is_automatic:
            return self.group.commit_metadata()
        assert self.config.group_id is not None
        return GroupMetadata(self.config.group_id)

    def on_commit_error(self, reaction: ErrorReaction) -> None:
        if self.subscriptions.is_automatic:
            self.group.on_commit_error(reaction)

    def metrics(self) -> dict[str, float]:
        """Metrics under the names of Kafka's consumer."""
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

    def _group_for_lookup(self) -> GroupMetadata | None:
        """The group whose committed offsets a new partition starts from."""
        if self.config.group_id is None:
            return None
        if self.subscriptions.is_automatic and self.config.group_protocol == "consumer":
            return self.group.metadata
        return GroupMetadata(self.config.group_id)

    def _on_committed(self, offsets: Positions) -> None:
        if self.interceptors:
            self.pending_callbacks.append(lambda: self.interceptors.call_on_commit(offsets))

    def _on_assignment_changed(self) -> None:
        self.position_loop.wake()
        self.fetcher.wake()
        self.wake_event.set()

    def _on_positions_found(self) -> None:
        self.fetcher.wake()
        self.wake_event.set()

    async def _run_task(self, work: Coroutine[object, None, None]) -> None:
        """Run a background task; a failure is raised by the next poll."""
        try:
            await work
        except Exception as error:
            log.exception("consumer background task failed; the next poll raises the error")
            self.gate.fail(error)


def _log_failed_commit(error: Exception | None) -> None:
    if error is not None:
        log.warning("automatic offset commit failed, will be retried: %s", error)
