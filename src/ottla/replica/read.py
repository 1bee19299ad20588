"""Fetching: read each partition asked for, or wait until there is something to read.

Owns the order in which partitions share a reply's bytes, and the wait for `min_bytes`. Never
decodes a request, encodes a reply or copies a record: a part of a reply is a slice of a file.
Hot: benchmarks/small_requests.py.

A follower's fetch is also its acknowledgement: its position is noted before the read, so that the
high watermark it is told already counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from enum import IntEnum
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from ottla.delay.purgatory import Delayed
from ottla.delay.slices import SLICE, sliced, step_through
from ottla.log.aborted_transactions import find_aborted
from ottla.log.log import FAULTS, Log
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID, BrokerId, Offset
from ottla.protocol.hot import FetchedPartition, Sized
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.isr_loop import IsrLoop
from ottla.replica.partition import HostedPartition
from ottla.replica.partition_fetch import UNKNOWN_TOPIC, PartitionFetch, PartitionFetchResult

CONSUMER: Final = BrokerId(-1)
ANY_SIZE: Final = 0x7FFFFFFF
GOOD: Final = ErrorCode.none
_new: Final = tuple.__new__  # a named tuple at half its price; hot
NO_ABORTED: Final[Sequence[tuple[int, int]]] = ()

# Nobody has looked into a log; as Kafka does, the list of aborted transactions is empty, not null.
NOT_FOUND: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id)


class Isolation(IntEnum):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


_END: Final[Callable[[Log], Offset]] = attrgetter("end_offset")
_STABLE: Final[Callable[[Log], Offset]] = attrgetter("last_stable_offset")
_COMMITTED: Final[Callable[[Log], Offset]] = attrgetter("high_watermark")


class FetchOptions(NamedTuple):
    """What a fetch asks for as a whole."""

    replica_id: BrokerId
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: Isolation

    @property
    def from_follower(self) -> bool:
        return self.replica_id >= 0

    @property
    def reach(self) -> Callable[[Log], Offset]:
        """Says the first offset of a log that this reader may not see."""
        if self.replica_id >= 0:
            return _END
        return _STABLE if self.isolation is Isolation.READ_COMMITTED else _COMMITTED


Done: TypeAlias = Callable[[list[PartitionFetchResult]], None]


class Reader:
    """Answers fetches from the partitions hosted here."""

    def __init__(self, hosted: HostedPartitions, isr: IsrLoop) -> None:
        self._hosted = hosted
        self._isr = isr
        self._total = hosted.traffic.all
        self._patient = True

    def fetch(
        self, wanted: list[PartitionFetch], terms: FetchOptions, done: Done
    ) -> DelayedFetch | None:
        """Call `done` once with a part for each partition wanted, now or within the wait.

        What is returned still waits; it is to be forgotten when nobody waits for it.
        """
        if terms.from_follower:
            for want in wanted:
                self._note_follower(want, terms.replica_id)
        parked = DelayedFetch(self, wanted, terms, done)
        keys = [want.key for want in wanted]
        waiting = self._hosted.waiting.fetch
        if self._may_wait(wanted, terms):
            waiting.watch(parked, keys)
            return parked
        if len(wanted) > SLICE and not (terms.from_follower and self._would_wait(terms)):
            self.answer(wanted, terms, done)  # there is something: it is read once, in slices
            return None
        if len(wanted) > SLICE:
            return None if waiting.try_complete_else_watch(parked, keys) else parked
        fetched = self.read(wanted, terms)
        if self._is_enough(fetched, terms):
            self._tell(fetched, terms, done)
            return None
        return None if waiting.try_complete_else_watch(parked, keys) else parked

    def stop_waiting(self) -> None:
        """The broker stops: answer with what there is, those that wait and those yet to come."""
        self._patient = False
        self._hosted.waiting.fetch.finish_all()

    def answer(self, wanted: list[PartitionFetch], terms: FetchOptions, done: Done) -> None:
        if len(wanted) > SLICE:
            step_through(self._answer_in_slices(wanted, terms, done))
        else:
            self._tell(self.read(wanted, terms), terms, done)

    def _answer_in_slices(
        self, wanted: list[PartitionFetch], terms: FetchOptions, done: Done
    ) -> Generator[None, None, None]:
        fetched: list[PartitionFetchResult] = []
        left = terms.max_bytes
        for some in sliced(wanted):
            more = self.read(some, terms._replace(max_bytes=left), empty=left == terms.max_bytes)
            left -= sum(one.size for one in more)
            fetched += more
            yield
        self._tell(fetched, terms, done)

    def _tell(self, fetched: list[PartitionFetchResult], terms: FetchOptions, done: Done) -> None:
        if terms.from_follower:
            self._note_told(fetched, terms.replica_id)
        self._count(fetched, terms)
        done(fetched)

    def _may_wait(self, wanted: list[PartitionFetch], terms: FetchOptions) -> bool:
        """A consumer that is up to date, as most are most of the time, need not be read for."""
        if not wanted or terms.from_follower or not self._would_wait(terms):
            return False
        return not self.is_ready(wanted, terms)

    def _would_wait(self, terms: FetchOptions) -> bool:
        return terms.max_wait_ms > 0 and terms.min_bytes > 0 and self._patient

    def _count(self, fetched: list[PartitionFetchResult], terms: FetchOptions) -> None:
        total, size = self._total, 0
        total.total_fetch_requests.value += len(fetched)
        for one in fetched:
            if not one.size and not one.failed:
                continue
            partition = self._hosted.find(one.wanted.key)
            if one.size and partition is not None:
                partition.traffic.sent(terms.from_follower).value += one.size
                size += one.size
            elif one.failed:
                total.failed_fetch_requests.value += 1
                if partition is not None:
                    partition.traffic.failed_fetch_requests.value += 1
        if size:
            total.sent(terms.from_follower).value += size

    def _is_enough(self, fetched: list[PartitionFetchResult], terms: FetchOptions) -> bool:
        if terms.max_wait_ms <= 0 or not fetched or not self._patient:
            return True
        size = 0
        for one in fetched:
            size += one.size
            if size >= terms.min_bytes or one.failed or one.part.diverging_epoch is not None:
                return True
            if terms.from_follower and self._has_news(one.wanted, terms.replica_id):
                return True
        return False

    def read(
        self, wanted: Sequence[PartitionFetch], terms: FetchOptions, *, empty: bool = True
    ) -> list[PartitionFetchResult]:
        """One pass over the partitions, in the order asked for, within `max_bytes`.

        While nothing has been read (`empty`) one batch is, however large it is.
        """
        left = terms.max_bytes
        fetched = []
        for want in wanted:
            one = self._read_one(want, terms, left, min_one=empty)
            if one.size:
                left -= one.size
                empty = False
            fetched.append(one)
        return fetched

    def _read_one(
        self, want: PartitionFetch, terms: FetchOptions, left: int, *, min_one: bool
    ) -> PartitionFetchResult:
        try:
            partition = self._partition(want, terms.replica_id)
            partition.traffic.total_fetch_requests.value += 1
            log = partition.log
            if want.last_fetched_epoch >= 0:
                diverging = _diverging(log, want)
                if diverging is not None:
                    return PartitionFetchResult(want, _part(want, log, diverging=diverging), 0)
            committed = terms.isolation is Isolation.READ_COMMITTED
            aborted = NO_ABORTED if committed else None
            bound = terms.reach(log)
            if bound <= want.offset <= log.end_offset:
                return PartitionFetchResult(want, _part(want, log, aborted), 0)
            limit = max(0, min(want.max_bytes, left))
            records = log.read(want.offset, limit, end=bound, min_one=min_one).slice
            if records is None:
                return PartitionFetchResult(want, _part(want, log, aborted), 0)
            if committed:
                found = find_aborted(log, want.offset, bound)
                aborted = [(one.producer_id, one.first_offset) for one in found]
            return PartitionFetchResult(want, _part(want, log, aborted, records), records.size)
        except KafkaError as refusal:
            code = refusal.code
        except FAULTS as fault:
            code = self._hosted.fail(partition, fault).code
        aborted = [] if code in NOT_FOUND else None
        return PartitionFetchResult(
            want, FetchedPartition(want.key.partition, code, aborted=aborted), 0
        )

    def _partition(self, want: PartitionFetch, reader: BrokerId) -> HostedPartition:
        """What is to be read, or the refusal the reader must hear."""
        if want.key.topic == UNKNOWN_TOPIC and not want.named_by(self._hosted.topic_names):
            raise KafkaError(ErrorCode.unknown_topic_id)
        partition = self._hosted.get(want.key)
        if want.topic_id is not NO_TOPIC_ID and want.topic_id != partition.log.topic_id:
            raise KafkaError(ErrorCode.inconsistent_topic_id)
        leadership = partition.led(want.leader_epoch)
        if reader >= 0 and reader not in leadership.followers:
            # It may see what no replica has yet, so it must be one.
            known = want.leader_epoch >= 0
            raise KafkaError(
                ErrorCode.unknown_leader_epoch if known else ErrorCode.not_leader_or_follower
            )
        return partition

    # Followers

    def _note_follower(self, want: PartitionFetch, broker: BrokerId) -> None:
        try:
            partition = self._partition(want, broker)
            if not _continues(partition.log, want):
                return  # it must cut its log first: what it has does not count
            grown = partition.follower_asked(broker, want.offset, want.log_start)
        except KafkaError:
            return  # the read that follows says it
        if grown is not None:
            self._isr.propose(partition, grown)
        self._hosted.advance(partition)
        self._hosted.waiting.delete_records.check(partition.key)

    def _has_news(self, want: PartitionFetch, broker: BrokerId) -> bool:
        """A follower must hear of a newer high watermark without waiting."""
        partition = self._hosted.find(want.key)
        if partition is None or partition.leadership is None:
            return False
        follower = partition.leadership.followers.get(broker)
        return follower is not None and follower.told < partition.log.high_watermark

    def _note_told(self, fetched: list[PartitionFetchResult], broker: BrokerId) -> None:
        """Remember which high watermark this follower is about to hear."""
        for one in fetched:
            partition = self._hosted.find(one.wanted.key)
            if partition is not None and partition.leadership is not None:
                follower = partition.leadership.followers.get(broker)
                if follower is not None:
                    follower.told = one.part.high_watermark

    # Waiting

    def is_ready(self, wanted: list[PartitionFetch], terms: FetchOptions) -> bool:
        """Whether a parked fetch would now get enough, or must hear of a change.

        Where very many partitions have a little, that is enough.
        """
        size = looked = 0
        find, reach, min_bytes = self._hosted.find, terms.reach, terms.min_bytes
        follower = terms.from_follower
        for want in wanted:
            partition = find(want.key)
            if partition is None or partition.leadership is None or _is_refused(want, partition):
                return True
            log, offset = partition.log, want.offset
            bound = reach(log)
            if offset < bound:
                if min_bytes <= 1:
                    return True
                size += self._size_of(log, want, bound)
                looked += 1
                if size >= min_bytes or looked == SLICE:
                    return True
            elif offset > log.end_offset:  # truncated meanwhile
                return True
            if follower and self._has_news(want, terms.replica_id):
                return True
        return False

    @staticmethod
    def _size_of(log: Log, want: PartitionFetch, bound: Offset) -> int:
        try:
            read = log.read(want.offset, want.max_bytes, end=bound, min_one=True)
        except (KafkaError, *FAULTS):
            return ANY_SIZE  # the reply says it
        if read.segment_base < log.segments[log.segments.index_of(bound)].base_offset:
            return ANY_SIZE  # a closed segment: however long it waits, it gets no more of it
        return 0 if read.slice is None else read.slice.size


class DelayedFetch(Delayed):
    """A fetch that found too little; what it gets is read when it ends."""

    __slots__ = ("_done", "_reads", "_terms", "_wanted")

    def __init__(
        self, reads: Reader, wanted: list[PartitionFetch], terms: FetchOptions, done: Done
    ) -> None:
        super().__init__(terms.max_wait_ms)
        self._reads = reads
        self._wanted = wanted
        self._terms = terms
        self._done = done

    def try_complete(self) -> bool:
        return self._reads.is_ready(self._wanted, self._terms) and self.force_complete()

    def on_complete(self) -> None:
        self._reads.answer(self._wanted, self._terms, self._done)
        self._let_go()

    def forget(self) -> None:
        """Whoever waited is gone: end without an answer."""
        if not self.completed:
            self.abandon()
            self._let_go()

    def _let_go(self) -> None:
        """Watch lists may hold this for a while yet; and whom it answers knows it, which would be a
        cycle of a hundred objects a fetch for the collector: 2 ms, three times a second. One that
        has waited for long is old to the collector, which seldom looks at what is old.
        """
        del self._done, self._wanted


def _is_refused(want: PartitionFetch, partition: HostedPartition) -> bool:
    """Whether the reader is wrong about the partition, or may be: the read finds out."""
    if -1 < want.leader_epoch != partition.leader_epoch or want.last_fetched_epoch >= 0:
        return True
    return want.topic_id is not NO_TOPIC_ID and want.topic_id != partition.log.topic_id


def _part(
    want: PartitionFetch,
    log: Log,
    aborted: Sequence[tuple[int, int]] | None = None,
    records: Sized | bytes = b"",
    diverging: tuple[int, int] | None = None,
) -> FetchedPartition:
    return _new(
        FetchedPartition,
        (
            want.key[1],
            GOOD,
            log.high_watermark,
            log.last_stable_offset,
            log.start_offset,
            aborted,
            -1,
            diverging,
            None,
            records,
        ),
    )


def _continues(log: Log, want: PartitionFetch) -> bool:
    """Whether all that the reader has is the beginning of this log."""
    if not log.start_offset <= want.offset <= log.end_offset:
        return False
    return want.last_fetched_epoch < 0 or _diverging(log, want) is None


def _diverging(log: Log, want: PartitionFetch) -> tuple[int, int] | None:
    """Where the reader must cut back to, when its last batch is not on our log."""
    epoch, end = log.epochs.end_offset(want.last_fetched_epoch, log.end_offset)
    if epoch < 0 or end < 0:
        raise KafkaError(ErrorCode.offset_out_of_range)
    if epoch < want.last_fetched_epoch or end < want.offset:
        return epoch, end
    return None
