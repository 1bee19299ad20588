"""Fetch: read each partition of the request, or wait until there is enough to read.

Owns the order in which partitions share a reply's bytes, and the wait for `min_bytes`. Never
decodes a request, encodes a reply or copies a record: a part of a reply is a slice of a file.
Hot: benchmarks/small_requests.py.

A follower's fetch is also its acknowledgement: its position is recorded before the read, so that
the high watermark in the reply already includes it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from typing import Final

from ottla.delay.slices import SLICE, sliced, step_through
from ottla.log.aborted_transactions import find_aborted
from ottla.log.follower_append import verify
from ottla.log.log import FAULTS, Log
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID, BrokerId, Offset
from ottla.protocol.hot import FetchedPartition, Sized
from ottla.replica.fetch.delayed_fetch import (
    FOLLOWERS,
    DelayedFetch,
    DelayedFollowerFetch,
    Done,
    FollowerWaits,
)
from ottla.replica.fetch.follower_fetches import FollowerFetches, continues, diverging_epoch
from ottla.replica.fetch.options import READ_COMMITTED, FetchOptions
from ottla.replica.fetch.session_partition import SessionChanges, SessionPartition
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.partition import HostedPartition, check_epoch
from ottla.replica.partition_fetch import UNKNOWN_TOPIC, PartitionFetch, PartitionFetchResult

ANY_SIZE: Final = 0x7FFFFFFF
GOOD: Final = ErrorCode.none
NO_ABORTED: Final[Sequence[tuple[int, int]]] = ()

WATERMARK_WAIT_MS: Final = 5
"""How long a newer high watermark waits for records to be sent with to a follower. Alone it doubles
the fetches of followers that keep up, which are most of what a committed record costs."""

# Nobody has looked into a log; as Kafka does, the list of aborted transactions is empty, not null.
NOT_FOUND: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id)


class Reader:
    """Answers fetches from the partitions hosted here."""

    def __init__(
        self, hosted: HostedPartitions, followers: FollowerFetches, *, reads_by_rack: bool = False
    ) -> None:
        self._hosted = hosted
        self._followers = followers
        self._reads_by_rack = reads_by_rack
        """Consumers are sent to a replica of their rack, and may read from followers."""
        self._total = hosted.topic_metrics.all
        self._may_delay = True
        self._follower_waits = FollowerWaits(hosted.waiting.fetch, hosted.environment.clock)
        hosted.listeners.append(self._follower_waits)

    def fetch(
        self, requests: list[PartitionFetch], options: FetchOptions, on_done: Done
    ) -> DelayedFetch | None:
        """Call `on_done` once with the result of each partition, now or within the wait.

        What is returned still waits; it is to be forgotten when nobody waits for it.
        """
        if options.from_follower:
            options = self._follower_waits.shorten(options)
            for request in requests:
                self._record_follower_fetch(request, options)
        must_wait = self._may_wait(requests, options)
        if not must_wait and len(requests) <= SLICE:
            fetched = self.read(requests, options)
            if self._is_enough(fetched, options):
                self._complete(fetched, options, on_done)
                return None
        elif not must_wait and not (options.from_follower and self._would_wait(options)):
            self.answer(
                requests, options, on_done
            )  # there is something: it is read once, in slices
            return None
        delayed = DelayedFetch(self, requests, options, on_done)
        keys = [request.key for request in requests]
        waiting = self._hosted.waiting.fetch
        if must_wait:
            waiting.watch(delayed, keys)
            return delayed
        return None if waiting.try_complete_else_watch(delayed, keys) else delayed

    def fetch_changes(
        self,
        partitions: Iterable[SessionPartition],
        changes: SessionChanges,
        options: FetchOptions,
        on_done: Done,
    ) -> DelayedFetch | None:
        """A fetch in a follower's session: `partitions` have changed since the last reply.

        While it waits, more may change; the others are not looked at.
        """
        for partition in partitions:
            partition.watch(self._record_follower_fetch(partition.request, options))
        if not self._would_wait(options):
            self.answer(changes.take(), options, on_done)
            return None
        requests = changes.requests
        short = self._follower_waits.shorten(options)
        delayed = DelayedFollowerFetch(self, changes, short, on_done)
        self._hosted.waiting.fetch.watch(delayed, (FOLLOWERS,))
        if self.has_enough(requests, options):
            delayed.complete_soon()
        elif self.has_newer_watermark(requests, options):
            delayed.send_watermark_soon()
        return None if delayed.completed else delayed

    def call_soon(self, callback: Callable[[], object]) -> None:
        self._hosted.environment.thread_pool.loop.call_soon(callback)

    @property
    def watermark_wait_ms(self) -> int:
        """Consumers that read from followers must not be kept waiting."""
        return 0 if self._reads_by_rack else WATERMARK_WAIT_MS

    def stop_waiting(self) -> None:
        """The broker stops: complete all delayed fetches now, and delay no more."""
        self._may_delay = False
        self._hosted.waiting.fetch.finish_all()

    def answer(self, requests: list[PartitionFetch], options: FetchOptions, on_done: Done) -> None:
        if len(requests) > SLICE:
            step_through(self._answer_in_slices(requests, options, on_done))
        else:
            self._complete(self.read(requests, options), options, on_done)

    def _answer_in_slices(
        self, requests: list[PartitionFetch], options: FetchOptions, on_done: Done
    ) -> Generator[None, None, None]:
        fetched: list[PartitionFetchResult] = []
        left = options.max_bytes
        for some in sliced(requests):
            rest = replace(options, max_bytes=left)
            more = self.read(some, rest, empty=left == options.max_bytes)
            left -= sum(result.size for result in more)
            fetched += more
            self._record(more, options)
            yield
        on_done(fetched)

    def _complete(
        self, fetched: list[PartitionFetchResult], options: FetchOptions, on_done: Done
    ) -> None:
        self._record(fetched, options)
        on_done(fetched)

    def _record(self, fetched: list[PartitionFetchResult], options: FetchOptions) -> None:
        if options.from_follower:
            self._followers.record_sent(fetched, options.replica_id)
        self._count(fetched, options)

    def _may_wait(self, requests: list[PartitionFetch], options: FetchOptions) -> bool:
        """A consumer that is up to date, as most are most of the time, need not be read for."""
        if not requests or options.from_follower or not self._would_wait(options):
            return False
        # A small fetch is read next, which says the same as looking at what there is to read.
        is_read_next = options.min_bytes <= 1 and len(requests) <= SLICE
        if self.is_ready(requests, options, exact=not is_read_next):
            return False
        return not self._reads_by_rack or not any(
            self._is_sent_elsewhere(request, options) for request in requests
        )

    def _would_wait(self, options: FetchOptions) -> bool:
        return options.max_wait_ms > 0 and options.min_bytes > 0 and self._may_delay

    def _count(self, fetched: list[PartitionFetchResult], options: FetchOptions) -> None:
        total, size = self._total, 0
        total.total_fetch_requests.value += len(fetched)
        for result in fetched:
            if not result.size and not result.failed:
                continue
            partition = self._hosted.find(result.request.key)
            if result.size and partition is not None:
                partition.topic_metrics.sent(options.from_follower).value += result.size
                size += result.size
                if options.from_follower:
                    self._followers.count_throttled(partition, result.size)
            elif result.failed:
                total.failed_fetch_requests.value += 1
                if partition is not None:
                    partition.topic_metrics.failed_fetch_requests.value += 1
        if size:
            total.sent(options.from_follower).value += size

    def _is_enough(self, fetched: list[PartitionFetchResult], options: FetchOptions) -> bool:
        if options.max_wait_ms <= 0 or not fetched or not self._may_delay:
            return True
        size = 0
        for result in fetched:
            size += result.size
            if (
                size >= options.min_bytes
                or result.failed
                or result.part.diverging_epoch is not None
                or result.part.preferred_read_replica >= 0
            ):
                return True
            if options.from_follower and self._followers.needs_watermark(
                result.request, options.replica_id
            ):
                return True
        return False

    def read(
        self, requests: Sequence[PartitionFetch], options: FetchOptions, *, empty: bool = True
    ) -> list[PartitionFetchResult]:
        """One pass over the partitions, in the order asked for, within `max_bytes`.

        While nothing has been read (`empty`) one batch is, however large it is.
        """
        left = options.max_bytes
        fetched = []
        for request in requests:
            result = self._read_one(request, options, left, min_one=empty)
            if result.size:
                left -= result.size
                empty = False
            fetched.append(result)
        return fetched

    def _read_one(
        self, request: PartitionFetch, options: FetchOptions, left: int, *, min_one: bool
    ) -> PartitionFetchResult:
        try:
            partition = self._partition(request, options)
            partition.topic_metrics.total_fetch_requests.value += 1
            limit = max(0, min(request.max_bytes, left))
            return self._read_log(partition, request, options, limit, min_one=min_one)
        except KafkaError as refusal:
            code = refusal.code
        except FAULTS as fault:
            code = self._hosted.fail(partition, fault).code
        aborted: Sequence[tuple[int, int]] | None = [] if code in NOT_FOUND else None
        return PartitionFetchResult(
            request, FetchedPartition(request.key.partition, code, aborted=aborted), 0
        )

    def _read_log(
        self,
        partition: HostedPartition,
        request: PartitionFetch,
        options: FetchOptions,
        limit: int,
        *,
        min_one: bool,
    ) -> PartitionFetchResult:
        log = partition.log
        committed = options.isolation is READ_COMMITTED
        aborted = NO_ABORTED if committed else None
        diverging = diverging_epoch(log, request) if request.last_fetched_epoch >= 0 else None
        if diverging is not None:
            return PartitionFetchResult(request, _part(request, log, diverging=diverging), 0)
        if self._reads_by_rack:
            preferred = self._preferred_replica(partition, request, options)
            if preferred is not None:
                part = _part(request, log, aborted)._replace(preferred_read_replica=preferred)
                return PartitionFetchResult(request, part, 0)
        bound = options.upper_bound(log)
        at_end = bound <= request.offset <= log.end_offset
        if at_end or (options.from_follower and self._followers.is_held_back(partition, options)):
            return PartitionFetchResult(request, _part(request, log, aborted), 0)
        read = log.read(request.offset, limit, end=bound, min_one=min_one)
        records = read.slice
        if records is None:
            return PartitionFetchResult(request, _part(request, log, aborted), 0)
        if options.from_follower and self._followers.is_repeated(partition, request, options):
            verify(read)
        if committed:
            aborted_transactions = find_aborted(log, request.offset, bound)
            aborted = [(txn.producer_id, txn.first_offset) for txn in aborted_transactions]
        return PartitionFetchResult(request, _part(request, log, aborted, records), records.size)

    def _partition(self, request: PartitionFetch, options: FetchOptions) -> HostedPartition:
        """The partition to read; KafkaError with the code for the reader."""
        if request.key.topic is UNKNOWN_TOPIC and not request.resolve_name(
            self._hosted.topic_names
        ):
            raise KafkaError(ErrorCode.unknown_topic_id)
        partition = self._hosted.get(request.key)
        if request.topic_id is not NO_TOPIC_ID and request.topic_id != partition.log.topic_id:
            raise KafkaError(ErrorCode.inconsistent_topic_id)
        if partition.leadership is None and self._is_read_as_follower(partition, options):
            check_epoch(partition, request.leader_epoch)
            if request.offset > partition.log.end_offset:  # the leader may have it
                raise KafkaError(ErrorCode.offset_not_available)
            return partition
        leadership, reader = partition.require_leadership(request.leader_epoch), options.replica_id
        if reader >= 0 and reader not in leadership.followers:
            # It may see what no replica has yet, so it must be one.
            has_epoch = request.leader_epoch >= 0
            raise KafkaError(
                ErrorCode.unknown_leader_epoch if has_epoch else ErrorCode.not_leader_or_follower
            )
        return partition

    # Consumers that read from the replica of their rack

    def _is_read_as_follower(self, partition: HostedPartition, options: FetchOptions) -> bool:
        """Whether the reader gets what this follower has, up to the high watermark it knows."""
        return (
            partition.leadership is None
            and self._reads_by_rack
            and options.client is not None
            and partition.leader_id >= 0
        )

    def _is_sent_elsewhere(self, request: PartitionFetch, options: FetchOptions) -> bool:
        partition = self._hosted.find(request.key)
        return (
            partition is not None
            and self._preferred_replica(partition, request, options) is not None
        )

    def _preferred_replica(
        self, partition: HostedPartition, request: PartitionFetch, options: FetchOptions
    ) -> BrokerId | None:
        """The in-sync follower in the consumer's rack that has the offset, if there is one."""
        client, leadership = options.client, partition.leadership
        if not self._reads_by_rack or client is None or not client.rack or leadership is None:
            return None
        nodes = self._hosted.replica_nodes(partition.key, client.listener)
        racks = {broker: node.rack for broker, node in nodes.items()}
        if racks.get(self._hosted.environment.broker_id) == client.rack:
            return None
        return leadership.replica_in_rack(client.rack, racks, request.offset)

    def _record_follower_fetch(
        self, request: PartitionFetch, options: FetchOptions
    ) -> HostedPartition | None:
        """The partition, unless the follower must not read it."""
        try:
            partition = self._partition(request, options)
            self._followers.record(partition, request, options)
        except KafkaError:
            return None  # the read that follows returns the error
        return partition

    # Waiting

    def is_ready(
        self, requests: list[PartitionFetch], options: FetchOptions, *, exact: bool = True
    ) -> bool:
        """Whether a delayed fetch would now get enough, or must hear of a change."""
        return self.has_enough(requests, options, exact=exact) or (
            options.from_follower and self.has_newer_watermark(requests, options)
        )

    def has_newer_watermark(self, requests: list[PartitionFetch], options: FetchOptions) -> bool:
        """Whether a follower lacks a newer high watermark."""
        needs, broker = self._followers.needs_watermark, options.replica_id
        return any(needs(request, broker) for request in requests)

    def has_enough(
        self, requests: list[PartitionFetch], options: FetchOptions, *, exact: bool = True
    ) -> bool:
        """Whether there are enough bytes, or an error.

        Where very many partitions have a little, that is enough. Unless `exact`, the log is not
        looked at, and the answer may be yes where compaction left nothing to read.
        """
        size = looked = 0
        find, upper_bound, min_bytes = self._hosted.find, options.upper_bound, options.min_bytes
        follower = options.from_follower
        for request in requests:
            partition = find(request.key)
            if partition is None or self._is_refused(request, partition, options):
                return True
            log, offset = partition.log, request.offset
            bound = upper_bound(log)
            if offset < bound and not (
                follower and self._followers.is_held_back(partition, options)
            ):
                if not exact or (min_bytes <= 1 and _begins_recent_batch(log, offset)):
                    return True
                size += self._size_of(log, request, bound)  # 0 where compaction left a gap
                looked += 1
                if size >= min_bytes or looked == SLICE:
                    return True
            elif offset > log.end_offset:  # truncated meanwhile
                return True
        return False

    def _is_refused(
        self, request: PartitionFetch, partition: HostedPartition, options: FetchOptions
    ) -> bool:
        """Whether the reader is wrong about the partition, or must truncate its log."""
        leadership = partition.leadership
        if leadership is None:
            if not self._is_read_as_follower(partition, options):
                return True
        elif options.from_follower and options.replica_id not in leadership.followers:
            return True
        if -1 < request.leader_epoch != partition.leader_epoch:
            return True
        if request.last_fetched_epoch >= 0 and not continues(partition.log, request):
            return True
        return request.topic_id is not NO_TOPIC_ID and request.topic_id != partition.log.topic_id

    @staticmethod
    def _size_of(log: Log, request: PartitionFetch, bound: Offset) -> int:
        try:
            read = log.read(request.offset, request.max_bytes, end=bound, min_one=True)
        except (KafkaError, *FAULTS):
            return ANY_SIZE  # the reply has the error
        if read.slice is None:
            return 0
        if read.segment_base < log.segments[log.segments.index_of(bound)].base_offset:
            return ANY_SIZE  # a closed segment: however long it waits, it gets no more of it
        return read.slice.size


def _begins_recent_batch(log: Log, offset: Offset) -> bool:
    """Whether a batch is known to begin there: the case of most readers that are woken."""
    recent = log.segments.active.recent
    batch = None if recent is None else recent.floor(offset)
    return batch is not None and batch[0] == offset


def _part(
    request: PartitionFetch,
    log: Log,
    aborted: Sequence[tuple[int, int]] | None = None,
    records: Sized | bytes = b"",
    diverging: tuple[int, int] | None = None,
) -> FetchedPartition:
    return FetchedPartition(
        request.key[1],
        GOOD,
        log.high_watermark,
        log.last_stable_offset,
        log.start_offset,
        aborted,
        -1,
        diverging,
        None,
        records,
    )
