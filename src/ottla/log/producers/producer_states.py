"""What one partition knows of the producers that write to it.

Owns, per producer id: epoch, the last five batches, the open transaction; and from these the
first unstable offset. Never writes a file and never looks at a clock. `check` decides whether a
batch may be appended, `apply` takes in one that was: live, by replication and at recovery alike.

Five batches, because a client has at most five requests in flight: any of them may come again,
and is then answered with the offset it already has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.log.producers.snapshot_file import ProducerEntry
from ottla.log.validate import Origin
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import Offset
from ottla.protocol.records.batch import BatchHeader

REMEMBERED_BATCHES: Final = 5
EXPIRED_IN_A_STEP: Final = 2_000
NO_SEQUENCE: Final = -1
MAX_SEQUENCE: Final = 2**31 - 1


class RecentBatch(NamedTuple):
    """A batch that the producer may send again."""

    first_sequence: int
    last_sequence: int
    first_offset: Offset
    last_offset: Offset
    timestamp: int


class Marker(NamedTuple):
    """The content of a transaction marker: how a transaction ended."""

    commits: bool
    coordinator_epoch: int


class CompletedTxn(NamedTuple):
    """A transaction that has ended in this partition; `last_offset` is the marker's."""

    producer_id: int
    first_offset: Offset
    last_offset: Offset
    aborted: bool


class ProducerState:
    """One producer, as this partition has seen it."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "producer_id",
        "timestamp",
        "txn_first_offset",
    )

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.batches: list[RecentBatch] = []  # a deque takes 600 bytes more
        self.coordinator_epoch = -1
        self.timestamp = -1
        self.txn_first_offset: Offset | None = None

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def add_batch(
        self, first_sequence: int, last_sequence: int, first: Offset, last: Offset, timestamp: int
    ) -> None:
        """A data batch of it has been appended."""
        batches = self.batches
        batches.append(RecentBatch(first_sequence, last_sequence, first, last, timestamp))
        if len(batches) > REMEMBERED_BATCHES:
            del batches[0]
        self.timestamp = timestamp

    def entry(self) -> ProducerEntry:
        last = self.batches[-1] if self.batches else None
        return ProducerEntry(
            self.producer_id,
            self.epoch,
            last.last_sequence if last else NO_SEQUENCE,
            last.last_offset if last else -1,
            last.last_offset - last.first_offset if last else 0,
            self.timestamp,
            self.coordinator_epoch,
            -1 if self.txn_first_offset is None else self.txn_first_offset,
        )


class ProducerStates:
    """Every producer of one partition, and the transactions that keep readers waiting."""

    __slots__ = ("_ended", "_ongoing", "_producers", "first_unstable_offset")

    def __init__(self) -> None:
        self._producers: dict[int, ProducerState] | None = None  # most partitions have none
        self._ongoing: dict[Offset, int] = _NOTHING_ONGOING
        self._ended: list[CompletedTxn] | None = None
        self.first_unstable_offset: Offset | None = None

    def __len__(self) -> int:
        return len(self._producers or ())

    def __iter__(self) -> Iterator[ProducerState]:
        return iter((self._producers or {}).values())

    def get(self, producer_id: int) -> ProducerState | None:
        return self._producers.get(producer_id) if self._producers else None

    # Deciding

    def check(self, header: BatchHeader, origin: Origin) -> RecentBatch | None:
        """Refuse a data batch that must not be appended; the earlier one if it is a repeat."""
        state = self.get(header.producer_id)
        if state is None:
            return None  # unknown or expired: any first sequence is valid
        epoch, sequence = header.producer_epoch, header.base_sequence
        if epoch < state.epoch:
            raise _fenced_error(header, state)
        if origin is Origin.CLIENT:
            if epoch == state.epoch:
                for batch_state in state.batches:
                    if (
                        batch_state.first_sequence == sequence
                        and batch_state.last_sequence == header.last_sequence
                    ):
                        return batch_state
            _check_sequence(header, state)
        if state.txn_first_offset is not None and not header.is_transactional:
            raise KafkaError(
                ErrorCode.invalid_txn_state,
                f"producer {header.producer_id} sent a non-transactional batch in a transaction",
            )
        return None

    def find_expecting(self, producer_id: int, epoch: int, sequence: int) -> ProducerState | None:
        """The producer, if exactly this comes next from it and it has no transaction open."""
        state = self._producers.get(producer_id) if self._producers else None
        if state is None or state.epoch != epoch or state.txn_first_offset is not None:
            return None
        batches = state.batches
        return state if batches and batches[-1][1] + 1 == sequence else None

    def check_marker(self, header: BatchHeader, marker: Marker) -> None:
        """Refuse a marker of an older producer epoch or an older coordinator."""
        state = self.get(header.producer_id)
        if state is None:
            return
        if header.producer_epoch < state.epoch:
            raise _fenced_error(header, state)
        if marker.coordinator_epoch < state.coordinator_epoch:
            raise KafkaError(
                ErrorCode.transaction_coordinator_fenced,
                f"coordinator epoch {marker.coordinator_epoch} is older than "
                f"{state.coordinator_epoch}",
            )

    # Taking in what was appended

    def apply(self, header: BatchHeader, first_offset: Offset) -> None:
        """A data batch of a producer has been appended at `first_offset`."""
        state = self._state(header.producer_id, header.producer_epoch)
        last_offset = first_offset + header.last_offset_delta
        state.add_batch(
            header.base_sequence,
            header.last_sequence,
            first_offset,
            last_offset,
            header.max_timestamp,
        )
        if header.is_transactional and state.txn_first_offset is None:
            state.txn_first_offset = first_offset
            if self._ongoing is _NOTHING_ONGOING:
                self._ongoing = {}
            self._ongoing[first_offset] = header.producer_id
            self._find_first_unstable()

    def apply_marker(
        self, header: BatchHeader, marker: Marker, offset: Offset
    ) -> CompletedTxn | None:
        """A marker has been appended; the transaction it ended, if that wrote anything here."""
        state = self._state(header.producer_id, header.producer_epoch)
        state.coordinator_epoch = marker.coordinator_epoch
        state.timestamp = header.max_timestamp
        first_offset, state.txn_first_offset = state.txn_first_offset, None
        if first_offset is None:
            return None
        completed = CompletedTxn(header.producer_id, first_offset, offset, not marker.commits)
        self._ongoing.pop(first_offset, None)
        if self._ended is None:
            self._ended = []
        self._ended.append(completed)
        self._find_first_unstable()
        return completed

    def stable_offset_after(self, completed: CompletedTxn) -> Offset:
        """The last stable offset once this transaction has ended, for the transaction index."""
        others = (first for first, owner in self._ongoing.items() if owner != completed.producer_id)
        return min(others, default=completed.last_offset + 1)

    def on_high_watermark_changed(self, high_watermark: Offset) -> None:
        """Markers below the high watermark are final: the last stable offset may pass them."""
        if self._ended:
            self._ended = [txn for txn in self._ended if txn.last_offset >= high_watermark]
            self._find_first_unstable()

    def expire(self, now_ms: WallMs, idle_ms: int) -> None:
        """Forget producers that were silent for too long and have nothing open."""
        for _ in self.expire_in_steps(now_ms, idle_ms):
            pass

    def expire_in_steps(self, now_ms: WallMs, idle_ms: int) -> Iterator[None]:
        """The same; other work may run between two steps."""
        producers = self._producers
        if producers is None:
            return
        for number, state in enumerate(list(producers.values()), 1):
            if state.txn_first_offset is None and now_ms - state.timestamp >= idle_ms:
                producers.pop(state.producer_id, None)
            if not number % EXPIRED_IN_A_STEP:
                yield

    # Snapshots

    def entries(self) -> list[ProducerEntry]:
        return [state.entry() for state in self]

    def restore(self, entries: Iterable[ProducerEntry]) -> None:
        """Begin again from a snapshot."""
        self.__init__()  # type: ignore[misc]  # the one place that starts over
        for entry in entries:
            state = self._state(entry.producer_id, entry.epoch)
            state.coordinator_epoch = entry.coordinator_epoch
            state.timestamp = entry.timestamp
            if entry.last_offset >= 0:
                first_sequence = entry.last_sequence
                if first_sequence >= 0:
                    first_sequence = (entry.last_sequence - entry.offset_delta) & MAX_SEQUENCE
                state.batches.append(
                    RecentBatch(
                        first_sequence,
                        entry.last_sequence,
                        entry.last_offset - entry.offset_delta,
                        entry.last_offset,
                        entry.timestamp,
                    )
                )
            if entry.txn_first_offset >= 0:
                state.txn_first_offset = entry.txn_first_offset
        self._ongoing = {
            state.txn_first_offset: state.producer_id
            for state in sorted(self, key=lambda state: state.txn_first_offset or 0)
            if state.txn_first_offset is not None
        }
        self._find_first_unstable()

    def _state(self, producer_id: int, epoch: int) -> ProducerState:
        if self._producers is None:
            self._producers = {}
        state = self._producers.get(producer_id)
        if state is None:
            state = self._producers[producer_id] = ProducerState(producer_id, epoch)
        elif state.epoch != epoch:
            state.epoch = epoch
            state.batches.clear()
        return state

    def _find_first_unstable(self) -> None:
        offsets = [*self._ongoing]
        if self._ended:
            offsets += [txn.first_offset for txn in self._ended]
        self.first_unstable_offset = min(offsets) if offsets else None


_NOTHING_ONGOING: Final[dict[Offset, int]] = {}


def is_gap(states: ProducerStates, header: BatchHeader) -> bool:
    """Whether a data batch skips a sequence; so does an unknown producer's that is not 0."""
    if header.producer_id < 0 or header.is_control:
        return False
    state = states.get(header.producer_id)
    if state is None or header.producer_epoch > state.epoch:
        return header.base_sequence > 0
    ahead = (header.base_sequence - state.last_sequence - 1) & MAX_SEQUENCE
    return header.producer_epoch == state.epoch and 0 < ahead <= MAX_SEQUENCE // 2


def _check_sequence(header: BatchHeader, state: ProducerState) -> None:
    sequence = header.base_sequence
    same_epoch = header.producer_epoch == state.epoch
    expected = (state.last_sequence + 1) & MAX_SEQUENCE if same_epoch else 0
    if sequence != expected:
        if same_epoch and _is_compacted_away(header, state):
            raise KafkaError(
                ErrorCode.duplicate_sequence_number,
                f"producer {header.producer_id} epoch {header.producer_epoch} repeats sequence "
                f"{sequence}, whose batch compaction has removed",
            )
        raise KafkaError(
            ErrorCode.out_of_order_sequence_number,
            f"producer {header.producer_id} epoch {header.producer_epoch} sent sequence "
            f"{sequence}, expected {expected}",
        )


def _is_compacted_away(header: BatchHeader, state: ProducerState) -> bool:
    """Whether the batch was appended between two that are known, and is gone from the log.

    Sequences are accepted in order only. Clients take this duplicate for a success; its offset is
    not known any more.
    """
    first, last = header.base_sequence, header.base_sequence + header.last_offset_delta
    return any(
        before.last_sequence < first and last < after.first_sequence
        for before, after in pairwise(state.batches)
    )


def _fenced_error(header: BatchHeader, state: ProducerState) -> KafkaError:
    return KafkaError(
        ErrorCode.invalid_producer_epoch,
        f"producer {header.producer_id} has epoch {state.epoch}, not {header.producer_epoch}",
    )
