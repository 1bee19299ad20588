"""The synchronous consumer: `with ottla.Consumer("orders", group_id="g") as consumer`.

Owns the public class: a thread with an event loop runs the same `core` as the asynchronous one.
Fetched records are decoded and returned on the caller's own thread, whole chunks at a time, so that
iterating does not involve the loop. For one thread at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar

from ottla.client.consumer import subscribing
from ottla.client.consumer.base import ConsumerBase, OwningThread, ThreadOwnership
from ottla.client.consumer.callback_thread import CallbackThread
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
from ottla.client.loop_thread import LoopThread
from ottla.client.offsets import OffsetAndMetadata, OffsetAndTimestamp, Offsets
from ottla.client.retry import Deadline
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

ITERATION_S: Final = 60.0


class Consumer(ConsumerBase[K, V], Generic[K, V]):
    """Reads records, alone or as a member of a group.

    Topics given here are subscribed to. Options are Kafka's consumer settings with underscores
    (`bootstrap_servers`, `group_id`, `auto_offset_reset`), or under Kafka's own names in `config`.
    Timeouts are in seconds. Not for two threads at a time, except `wakeup`.
    """

    def _set_up(self) -> None:
        self._owned = ThreadOwnership("thread", _thread)
        self._thread = LoopThread("ottla-consumer")
        self._callback_thread = CallbackThread(self._thread)
        self._core_task: Future[None] | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self, timeout: float = 30.0) -> None:
        """Commit if that is automatic, leave the group, close; a second call does nothing."""
        with self._owned:
            if self._closed or self._core_task is None:
                self._closed = True
                return
            try:  # a listener may still use the consumer
                self._callback_thread.run(subscribing.close(self._core, _ms(timeout)))
            finally:
                core_task, self._core_task, self._closed = self._core_task, None, True
                with suppress(UserError):  # after a fork there is no thread to stop
                    self._thread.call_soon(self._core.stop)
                    core_task.result(timeout)
                self._thread.stop()

    # what to read

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | TopicPattern | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read these topics, or all whose name contains the pattern; replaces the subscription."""
        self._do(lambda core: subscribing.subscribe(core, topics, pattern, listener))

    def unsubscribe(self) -> None:
        """Leave the group and read nothing."""
        self._await(lambda core: subscribing.unsubscribe(core), moves=True)

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions, without group assignment."""
        self._do(lambda core: subscribing.assign(core, partitions), moves=True)

    def subscription(self) -> frozenset[str]:
        """The subscribed topics; of a pattern, those that match."""
        return self._core.subscriptions.topics or frozenset(self._topics)

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this consumer currently reads."""
        return self._core.subscriptions.assigned

    # reading

    def poll(self, timeout: float = 1.0, *, max_records: int | None = None) -> list[Record[K, V]]:
        """Records as soon as there are any, at most `max.poll.records`; none after the timeout."""
        with self._owned:
            core = self._open()
            unseen = self._iteration.take_unseen()
            if unseen:
                return unseen
            if core.is_quiet and core.buffer.has_some:
                records = take(core, max_records)
                if records:
                    return records
            deadline = Deadline(core.clock, _ms(timeout))
            while self._callback_thread.run(core.wait(deadline)):
                records = take(core, max_records)
                if records:
                    return records
            return []

    def poll_arrow(self, timeout: float = 1.0, *, headers: bool = False) -> pa.Table:
        """All fetched records, as a `pyarrow.Table`; an empty one after the timeout."""
        with self._owned:
            core = self._open()
            self._rewind_unseen()
            deadline = Deadline(core.clock, _ms(timeout))
            while True:
                ready = core.is_quiet and core.buffer.has_some
                ready = ready or self._callback_thread.run(core.wait(deadline))
                table = take_arrow(core, headers=headers)
                if table.num_rows or not ready:
                    return table

    def __iter__(self) -> Iterator[Record[K, V]]:
        while not self._closed:
            yield from self._iteration.start(self.poll(ITERATION_S))

    # positions

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read on from this offset."""
        self._do(lambda core: seeking.seek(core, partition, offset), moves=True)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read these, or all assigned partitions, from their start."""
        self._do(lambda core: seeking.seek_to(core, partitions, EARLIEST), moves=True)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read only new records of these, or of all assigned partitions."""
        self._do(lambda core: seeking.seek_to(core, partitions, LATEST), moves=True)

    def seek_to_time(self, timestamp_ms: int, *partitions: TopicPartition) -> None:
        """Read these, or all assigned partitions, from the first record at or after a time."""
        timestamp = seeking.checked_time(timestamp_ms)
        self._do(lambda core: seeking.seek_to(core, partitions, timestamp), moves=True)

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The offset of the next record of a partition."""
        return self._await(lambda core: seeking.position(core, partition, self._ms(timeout)))

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these until `resume`."""
        self._do(lambda core: seeking.pause(core, partitions), moves=True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Fetch from paused partitions again."""
        self._do(lambda core: seeking.resume(core, partitions))

    def paused(self) -> frozenset[TopicPartition]:
        """The assigned partitions that are paused."""
        return seeking.paused_partitions(self._core)

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time (milliseconds since 1970), or None."""
        return self._await(lambda core: seeking.offsets_for_times(core, times, self._ms(timeout)))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return self._await(
            lambda core: seeking.beginning_offsets(core, partitions, self._ms(timeout))
        )

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record that this consumer's isolation level lets it read."""
        return self._await(lambda core: seeking.end_offsets(core, partitions, self._ms(timeout)))

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets lie between the position and the end; None before the first fetch."""
        return seeking.lag(self._core, partition)

    # committing

    def commit(self, offsets: Offsets | None = None, timeout: float | None = None) -> None:
        """Commit the current positions, or these offsets (the next to read); wait until it is done.

        Raises CommitFailed if the group has assigned the partitions to other members.
        """
        self._await(lambda core: offset_commits.commit(core, offsets, self._ms(timeout)))

    def commit_async(
        self, offsets: Offsets | None = None, callback: OnCommit | None = None
    ) -> None:
        """Commit without waiting and without retries; the callback runs in a later call."""
        self._do(lambda core: offset_commits.commit_async(core, offsets, callback))

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets; partitions without one are omitted."""
        return self._await(
            lambda core: offset_commits.committed_offsets(core, partitions, self._ms(timeout))
        )

    # the group, and the rest

    def group_metadata(self) -> GroupMetadata:
        """What a transactional producer needs for `send_offsets`."""
        return offset_commits.group_metadata(self._open())

    def enforce_rebalance(self, reason: str = "asked for by the user") -> None:
        """Rejoin the group, which reassigns partitions, at the next poll."""
        self._do(lambda core: core.group.rejoin(reason))

    def partitions_for(self, topic: str, timeout: float | None = None) -> tuple[int, ...]:
        """The partitions of a topic."""
        view = self._await(lambda core: core.cluster.topic(topic, timeout_ms=self._ms(timeout)))
        return tuple(partition.index for partition in view.partitions)

    def metrics(self) -> dict[str, float]:
        """Metrics under Kafka's names, such as `records-lag-max`."""
        return self._open().metrics()

    def wakeup(self) -> None:
        """Make the current poll, or the next one, raise `Wakeup`. From any thread."""
        if self._core_task is not None:
            self._thread.call_soon(self._core.wakeup)
        else:
            self._core.wakeup()

    def _open(self) -> Core:
        """The running core; the first call starts it."""
        if self._closed:
            raise UserError("this consumer is closed; create a new one")
        if self._core_task is None:
            self._thread.start()
            wake = self._core.fetcher.wake
            refetch = self._core.fetcher.refetch
            self._core.attach(
                self._callback_thread.invoke,
                lambda: self._thread.call_soon(wake),
                lambda chunk: self._thread.call_soon(refetch, chunk),
                self._builder.group,
            )
            self._core_task = self._thread.submit(self._core.run())
            self._callback_thread.run(self._begin())
        return self._core

    async def _begin(self) -> None:
        await self._core.opened.wait()
        if self._topics:
            subscribing.subscribe(self._core, self._topics, None, None)

    def _await(
        self, work: Callable[[Core], Coroutine[object, None, T]], *, moves: bool = False
    ) -> T:
        with self._owned:
            core = self._open()
            if moves:
                self._rewind_unseen()
            return self._callback_thread.run(work(core))

    def _do(self, work: Callable[[Core], T], *, moves: bool = False) -> T:
        async def on_loop(core: Core) -> T:
            return work(core)

        return self._await(on_loop, moves=moves)

    def _rewind_unseen(self) -> None:
        unread = self._iteration.unread()
        if not unread:
            return
        self._iteration.take_unseen()

        async def on_loop() -> None:
            seeking.rewind(self._core, unread)

        self._callback_thread.run(on_loop())

    def _ms(self, timeout: float | None) -> int:
        return self._core.config.default_api_timeout_ms if timeout is None else _ms(timeout)


def _thread() -> OwningThread:
    return OwningThread(threading.get_ident(), threading.current_thread().name)


def _ms(timeout: float) -> int:
    return max(0, int(timeout * 1_000))
