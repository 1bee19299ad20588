"""The consumer for asyncio: `async with ottla.aio.Consumer("orders", group_id="g") as consumer`.

Owns the public class; the work is done by `core` and the functions of `subscribing`,
`position.seeking` and `group.offset_commits`. For one task at a time.
"""

# ruff: noqa: ASYNC109 - timeouts are the caller's, as in Kafka's own consumer

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from inspect import isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Generic, Self

from ottla.client.consumer import subscribing
from ottla.client.consumer.base import ConsumerBase, OwningThread, ThreadOwnership
from ottla.client.consumer.core import Core
from ottla.client.consumer.fetch.delivery import take, take_arrow
from ottla.client.consumer.group import offset_commits
from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.consumer.group.offset_commits import OnCommit
from ottla.client.consumer.position import seeking
from ottla.client.consumer.position.reset_policy import EARLIEST, LATEST
from ottla.client.consumer.rebalance_listener import RebalanceListener
from ottla.client.consumer.record import K, Record, V
from ottla.client.consumer.subscription import TopicPattern
from ottla.client.offsets import OffsetAndMetadata, OffsetAndTimestamp, Offsets
from ottla.client.retry import Deadline
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

ITERATION_MS: Final = 60_000


class Consumer(ConsumerBase[K, V], Generic[K, V]):
    """Reads records, alone or as a member of a group.

    Topics given here are subscribed to. Options are Kafka's consumer settings with underscores
    (`bootstrap_servers`, `group_id`, `auto_offset_reset`), or under Kafka's own names in `config`.
    Timeouts are in seconds. Not for two tasks at a time, except `wakeup`.
    """

    def _set_up(self) -> None:
        self._owned = ThreadOwnership("task", _task)
        self._tasks: asyncio.TaskGroup | None = None

    async def __aenter__(self) -> Self:
        core = self._core
        core.attach(_call, core.fetcher.wake, core.fetcher.refetch, self._builder.group)
        if self._topics:
            subscribing.subscribe(core, self._topics, None, None)
        self._tasks = asyncio.TaskGroup()
        await self._tasks.__aenter__()
        self._tasks.create_task(core.run())
        await core.opened.wait()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self, timeout: float = 30.0) -> None:
        """Commit if that is automatic, leave the group, close; a second call does nothing."""
        with self._owned:
            if self._tasks is None:
                return
            try:  # a listener may still use the consumer
                await subscribing.close(self._core, _ms(timeout))
            finally:
                tasks, self._tasks = self._tasks, None
                self._core.stop()
                await tasks.__aexit__(None, None, None)

    # what to read

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | TopicPattern | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read these topics, or all whose name contains the pattern; replaces the subscription."""
        with self._owned:
            subscribing.subscribe(self._open, topics, pattern, listener)

    async def unsubscribe(self) -> None:
        """Leave the group and read nothing."""
        with self._owned:
            self._rewind_unseen()
            await subscribing.unsubscribe(self._open)

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions, without group assignment."""
        with self._owned:
            self._rewind_unseen()
            subscribing.assign(self._open, partitions)

    def subscription(self) -> frozenset[str]:
        """The subscribed topics; of a pattern, those that match."""
        return self._core.subscriptions.topics

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this consumer currently reads."""
        return self._core.subscriptions.assigned

    # reading

    async def poll(
        self, timeout: float = 1.0, *, max_records: int | None = None
    ) -> list[Record[K, V]]:
        """Records as soon as there are any, at most `max.poll.records`; none after the timeout."""
        with self._owned:
            core, deadline = self._open, Deadline(self._core.clock, _ms(timeout))
            unseen = self._iteration.take_unseen()
            if unseen:
                return unseen
            await asyncio.sleep(0)  # a loop that polls must let other tasks run
            while True:
                if not (core.is_quiet and core.buffer.has_some) and not await core.wait(deadline):
                    return []
                records = take(core, max_records)
                if records:
                    return records

    async def poll_arrow(self, timeout: float = 1.0, *, headers: bool = False) -> pa.Table:
        """All fetched records, as a `pyarrow.Table`; an empty one after the timeout."""
        with self._owned:
            core, deadline = self._open, Deadline(self._core.clock, _ms(timeout))
            self._rewind_unseen()
            await asyncio.sleep(0)
            while True:
                ready = core.is_quiet and core.buffer.has_some
                ready = ready or await core.wait(deadline)
                table = take_arrow(core, headers=headers)
                if table.num_rows or not ready:
                    return table

    async def __aiter__(self) -> AsyncIterator[Record[K, V]]:
        while self._tasks is not None:
            for record in self._iteration.start(await self.poll(ITERATION_MS / 1e3)):
                yield record

    # positions

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read on from this offset."""
        with self._owned:
            self._rewind_unseen()
            seeking.seek(self._open, partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read these, or all assigned partitions, from their start."""
        with self._owned:
            self._rewind_unseen()
            seeking.seek_to(self._open, partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read only new records of these, or of all assigned partitions."""
        with self._owned:
            self._rewind_unseen()
            seeking.seek_to(self._open, partitions, LATEST)

    def seek_to_time(self, timestamp_ms: int, *partitions: TopicPartition) -> None:
        """Read these, or all assigned partitions, from the first record at or after a time."""
        with self._owned:
            self._rewind_unseen()
            seeking.seek_to(self._open, partitions, seeking.checked_time(timestamp_ms))

    async def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The offset of the next record of a partition."""
        with self._owned:
            return await seeking.position(self._open, partition, self._ms(timeout))

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these until `resume`."""
        with self._owned:
            self._rewind_unseen()
            seeking.pause(self._open, partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Fetch from paused partitions again."""
        with self._owned:
            seeking.resume(self._open, partitions)

    def paused(self) -> frozenset[TopicPartition]:
        """The assigned partitions that are paused."""
        return seeking.paused_partitions(self._core)

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time (milliseconds since 1970), or None."""
        with self._owned:
            return await seeking.offsets_for_times(self._open, times, self._ms(timeout))

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        with self._owned:
            return await seeking.beginning_offsets(self._open, partitions, self._ms(timeout))

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record that this consumer's isolation level lets it read."""
        with self._owned:
            return await seeking.end_offsets(self._open, partitions, self._ms(timeout))

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets lie between the position and the end; None before the first fetch."""
        return seeking.lag(self._core, partition)

    # committing

    async def commit(self, offsets: Offsets | None = None, timeout: float | None = None) -> None:
        """Commit the current positions, or these offsets (the next to read); wait until it is done.

        Raises CommitFailed if the group has assigned the partitions to other members.
        """
        with self._owned:
            await offset_commits.commit(self._open, offsets, self._ms(timeout))

    def commit_async(
        self, offsets: Offsets | None = None, callback: OnCommit | None = None
    ) -> None:
        """Commit without waiting and without retries; the callback runs in a later call."""
        with self._owned:
            offset_commits.commit_async(self._open, offsets, callback)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets; partitions without one are omitted."""
        with self._owned:
            return await offset_commits.committed_offsets(self._open, partitions, self._ms(timeout))

    # the group, and the rest

    def group_metadata(self) -> GroupMetadata:
        """What a transactional producer needs for `send_offsets`."""
        return offset_commits.group_metadata(self._core)

    def enforce_rebalance(self, reason: str = "asked for by the user") -> None:
        """Rejoin the group, which reassigns partitions, at the next poll."""
        with self._owned:
            self._open.group.rejoin(reason)

    async def partitions_for(self, topic: str, timeout: float | None = None) -> tuple[int, ...]:
        """The partitions of a topic."""
        with self._owned:
            view = await self._open.cluster.topic(topic, timeout_ms=self._ms(timeout))
            return tuple(partition.index for partition in view.partitions)

    def metrics(self) -> dict[str, float]:
        """Metrics under Kafka's names, such as `records-lag-max`."""
        return self._core.metrics()

    def wakeup(self) -> None:
        """Make the current poll, or the next one, raise `Wakeup`. From any task of the loop."""
        self._core.wakeup()

    @property
    def _open(self) -> Core:
        if self._tasks is None:
            raise UserError("the consumer is not open: use `async with Consumer(…) as consumer`")
        return self._core

    def _rewind_unseen(self) -> None:
        seeking.rewind(self._open, self._iteration.unread())
        self._iteration.take_unseen()

    def _ms(self, timeout: float | None) -> int:
        return self._core.config.default_api_timeout_ms if timeout is None else _ms(timeout)


async def _call(function: Callable[[], object]) -> object:
    """Call user code on the loop; await it if it is a coroutine."""
    result = function()
    return await result if isawaitable(result) else result


def _task() -> OwningThread:
    task = asyncio.current_task()
    assert task is not None
    return OwningThread(id(task), task.get_name())


def _ms(timeout: float) -> int:
    return max(0, int(timeout * 1_000))
