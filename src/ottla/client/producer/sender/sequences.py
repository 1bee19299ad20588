"""Sequence numbers, by which brokers recognize retried batches.

Owns: for each partition the next sequence, the last acknowledged one, and the open batches in the
order of their sequences; their producer id and epoch. Pure: no clock, no socket.

A batch gets its sequence when it is drained and keeps it through every retry (TXN-11). When a
sequence is lost for good (a batch expired, or the broker dropped the producer state) the broker
would reject what follows as a gap: the epoch is bumped, sequences restart at 0 in that partition,
and its open batches are renumbered once none of them is in flight. Other partitions move to the new
epoch when they have no open batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.client.producer.buffer.batch import Batch, ProducerStamp
from ottla.model.ids import TopicPartition

MAX_EPOCH: Final = 0x7FFF
MASK: Final = 0x7FFF_FFFF
NONE: Final = -1


class Identity(NamedTuple):
    """Producer id and epoch."""

    producer_id: int = NONE
    epoch: int = NONE

    @property
    def is_known(self) -> bool:
        return self.producer_id != NONE


class _Partition:
    """`open` has every batch with a sequence and without an outcome, in order."""

    __slots__ = ("identity", "last_acked", "next", "on_wire", "open", "unresolved")

    def __init__(self, identity: Identity) -> None:
        self.open: list[Batch] = []
        self.on_wire = 0
        self.restart(identity)

    def restart(self, identity: Identity) -> None:
        """Restart at sequence 0, including open batches."""
        self.identity = identity
        self.last_acked = NONE
        self.unresolved: int | None = None  # a batch that ended here may or may not be in the log
        self.next = 0
        for batch in self.open:
            batch.stamp = ProducerStamp(*identity, self.next)
            self.next = (self.next + batch.records) & MASK


class Sequences:
    """The sequence numbers of one producer."""

    def __init__(self) -> None:
        self.identity = Identity()
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._to_restart: set[TopicPartition] = set()

    def begin(self, identity: Identity) -> None:
        """Restart all at 0, with nothing in flight: a transactional producer's new epoch."""
        self.identity = identity
        self._to_restart.clear()
        for partition in self._partitions.values():
            partition.restart(identity)

    def adopt(self, identity: Identity) -> None:
        """Use a new identity. Partitions that lost a sequence restart at 0 under it, with their
        open batches; the others keep the old one until they have no open batches."""
        assert self.may_restart
        self.identity = identity
        for tp in self._to_restart:
            self._at(tp).restart(identity)
        self._to_restart.clear()

    @property
    def next_identity(self) -> Identity | None:
        """The next epoch; None when it is used up and another producer id is needed."""
        if self.identity.epoch >= MAX_EPOCH:
            return None
        return Identity(self.identity.producer_id, self.identity.epoch + 1)

    @property
    def needs_restart(self) -> bool:
        """A sequence was lost in some partition."""
        return bool(self._to_restart)

    @property
    def has_gaps(self) -> bool:
        """Sequences were lost, or may have been."""
        return self.needs_restart or any(
            partition.unresolved is not None for partition in self._partitions.values()
        )

    @property
    def may_restart(self) -> bool:
        """Nothing is in flight where sequences would change."""
        return not any(self._at(tp).on_wire for tp in self._to_restart)

    def restart(self, partitions: Iterable[TopicPartition]) -> None:
        """Request a restart at sequence 0 in these partitions."""
        self._to_restart.update(partitions)

    def may_drain(self, tp: TopicPartition, head: Batch) -> bool:
        """Whether the first batch of a queue may be sent now.

        One that has a sequence is a retry: it waits until it is the oldest open one, so that
        retries are sent one at a time and in order.
        """
        partition = self._partitions.get(tp)
        if partition is None:
            return True
        if tp in self._to_restart:
            return False
        if head.stamp is not None:
            return partition.open[0] is head
        if partition.unresolved is not None:
            return False
        # A broker without state of this producer accepts any first sequence. So the first batch is
        # sent alone: if it failed and a later one did not, it could never be written before it.
        return not partition.open or (
            partition.identity == self.identity and partition.last_acked != NONE
        )

    def sent(self, batch: Batch) -> None:
        """A batch is sent: it gets its sequence, unless it has one."""
        partition = self._at(batch.tp)
        partition.on_wire += 1
        if batch.stamp is None:
            if partition.identity != self.identity:
                assert not partition.open
                partition.restart(self.identity)
            batch.stamp = ProducerStamp(*partition.identity, partition.next)
            partition.next = (partition.next + batch.records) & MASK
            partition.open.append(batch)

    def on_returned(self, batch: Batch) -> None:
        """A batch is no longer in flight, whatever its result."""
        self._at(batch.tp).on_wire -= 1

    def on_split(self, batch: Batch, parts: Sequence[Batch]) -> None:
        """Replace a batch that was too large by its parts, with its sequences."""
        partition = self._at(batch.tp)
        assert batch.stamp is not None
        index = partition.open.index(batch)
        partition.open[index : index + 1] = parts
        sequence = batch.stamp.sequence
        for part in parts:
            part.stamp = batch.stamp._replace(sequence=sequence)
            sequence = (sequence + part.records) & MASK

    def on_success(self, batch: Batch) -> None:
        """The batch is in the log."""
        partition = self._at(batch.tp)
        partition.open.remove(batch)
        if self._is_current(batch, partition) and _newer(batch.last_sequence, partition.last_acked):
            partition.last_acked = batch.last_sequence

    def on_failure(self, batch: Batch, *, may_have_arrived: bool) -> None:
        """The batch failed for good; its sequences are lost."""
        partition = self._at(batch.tp)
        if batch.stamp is None:
            return
        partition.open.remove(batch)
        if not self._is_current(batch, partition):
            return
        if may_have_arrived:
            partition.unresolved = batch.last_sequence
        else:
            self._to_restart.add(batch.tp)

    def resolve(self) -> list[TopicPartition]:
        """Partitions where lost sequences may be a gap in the log; resolved ones continue."""
        gaps = []
        for tp, partition in self._partitions.items():
            if partition.unresolved is None:
                continue
            if _after(partition.last_acked) == partition.next:
                partition.unresolved = None  # a later batch was accepted: this one is in the log
            elif not partition.open:
                gaps.append(tp)
        return gaps

    def is_gap(self, batch: Batch) -> bool:
        """Whether an out-of-order error means a gap: the batch is the next one after the last ack.

        A batch that is not the next one failed only because an earlier one did; it can be retried.
        """
        partition = self._at(batch.tp)
        if not self._is_current(batch, partition):
            return False
        assert batch.stamp is not None
        before = partition.last_acked if partition.unresolved is None else partition.unresolved
        return batch.stamp.sequence == _after(before)

    def _is_current(self, batch: Batch, partition: _Partition) -> bool:
        return batch.stamp is not None and batch.stamp[:2] == partition.identity

    def _at(self, tp: TopicPartition) -> _Partition:
        partition = self._partitions.get(tp)
        if partition is None:
            partition = self._partitions[tp] = _Partition(self.identity)
        return partition


def _after(sequence: int) -> int:
    return (sequence + 1) & MASK


def _newer(sequence: int, than: int) -> bool:
    """Whether `sequence` comes after another; sequences wrap around."""
    return than == NONE or 0 < (sequence - than) & MASK < MASK // 2
