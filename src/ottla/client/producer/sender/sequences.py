"""Sequence numbers: how brokers tell a batch sent again from a new one.

Owns: for each partition the next number, the last one acknowledged, and the batches that are open,
in the order of their numbers; which producer id and epoch they carry. Pure: no clock, no socket.

A batch gets its number when it is drained and keeps it through every retry (TXN-11). When a number
is lost for good (a batch expired, or the broker has forgotten us) nothing that follows could be
told from a gap: the epoch is raised, numbers begin at 0 again there, and open batches are numbered
anew once none of them is on the wire. Other partitions move to the new epoch when nothing of theirs
is open.
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
    """Who a broker takes us for."""

    producer_id: int = NONE
    epoch: int = NONE

    @property
    def is_known(self) -> bool:
        return self.producer_id != NONE


class _Partition:
    """`open` holds every batch that has a number and no outcome yet, in the order of numbers."""

    __slots__ = ("identity", "last_acked", "next", "on_wire", "open", "unresolved")

    def __init__(self, identity: Identity) -> None:
        self.open: list[Batch] = []
        self.on_wire = 0
        self.restart(identity)

    def restart(self, identity: Identity) -> None:
        """Numbers begin at 0 again, those of open batches included."""
        self.identity = identity
        self.last_acked = NONE
        self.unresolved: int | None = None  # a batch that ended here may or may not have arrived
        self.next = 0
        for batch in self.open:
            batch.stamp = ProducerStamp(*identity, self.next)
            self.next = (self.next + batch.records) & MASK


class Sequences:
    """The numbers of one producer."""

    def __init__(self) -> None:
        self.identity = Identity()
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._to_restart: set[TopicPartition] = set()

    def begin(self, identity: Identity) -> None:
        """All numbers begin at 0, with nothing under way: a transactional producer's new epoch."""
        self.identity = identity
        self._to_restart.clear()
        for partition in self._partitions.values():
            partition.restart(identity)

    def adopt(self, identity: Identity) -> None:
        """Take a new identity. Partitions that lost a number begin at 0 under it, with what is
        open there; the others do when nothing of theirs is open, under the old one until then."""
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
        """A number was lost somewhere."""
        return bool(self._to_restart)

    @property
    def has_gaps(self) -> bool:
        """Numbers were lost, or may have been."""
        return self.needs_restart or any(
            each.unresolved is not None for each in self._partitions.values()
        )

    @property
    def may_restart(self) -> bool:
        """Nothing is on the wire where numbers would change."""
        return not any(self._at(tp).on_wire for tp in self._to_restart)

    def restart(self, partitions: Iterable[TopicPartition]) -> None:
        """Ask for numbers from 0 in these partitions."""
        self._to_restart.update(partitions)

    def may_drain(self, tp: TopicPartition, head: Batch) -> bool:
        """Whether the first batch of a queue may be sent now.

        One that has a number is being sent again: it waits until it is the oldest open one, so
        that retries go one at a time and in order.
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
        # A broker that has not heard of us takes any first number. So the first batch goes alone:
        # if it failed and a later one did not, it could never be put before it.
        return not partition.open or (
            partition.identity == self.identity and partition.last_acked != NONE
        )

    def sent(self, batch: Batch) -> None:
        """A batch goes on the wire: it gets its numbers, unless it has them."""
        partition = self._at(batch.tp)
        partition.on_wire += 1
        if batch.stamp is None:
            if partition.identity != self.identity:
                assert not partition.open
                partition.restart(self.identity)
            batch.stamp = ProducerStamp(*partition.identity, partition.next)
            partition.next = (partition.next + batch.records) & MASK
            partition.open.append(batch)

    def returned(self, batch: Batch) -> None:
        """A batch is no longer on the wire, whatever became of it."""
        self._at(batch.tp).on_wire -= 1

    def replaced(self, batch: Batch, parts: Sequence[Batch]) -> None:
        """Smaller batches take the place, and the numbers, of one that was too large."""
        partition = self._at(batch.tp)
        assert batch.stamp is not None
        at = partition.open.index(batch)
        partition.open[at : at + 1] = parts
        sequence = batch.stamp.sequence
        for part in parts:
            part.stamp = batch.stamp._replace(sequence=sequence)
            sequence = (sequence + part.records) & MASK

    def acked(self, batch: Batch) -> None:
        """The broker has it, or had it already."""
        partition = self._at(batch.tp)
        partition.open.remove(batch)
        if self._is_current(batch, partition) and _newer(batch.last_sequence, partition.last_acked):
            partition.last_acked = batch.last_sequence

    def failed(self, batch: Batch, *, may_have_arrived: bool) -> None:
        """It is given up, and its numbers with it."""
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
        """Partitions where lost numbers may be a gap in the log; those that healed go on."""
        gaps = []
        for tp, partition in self._partitions.items():
            if partition.unresolved is None:
                continue
            if _after(partition.last_acked) == partition.next:
                partition.unresolved = None  # a later batch was taken: this one had arrived
            elif not partition.open:
                gaps.append(tp)
        return gaps

    def is_gap(self, batch: Batch) -> bool:
        """Whether a batch refused as out of order is next in line: what came before is missing.

        One that is not next was only overtaken by the failure of another, and will do.
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
    """Whether `sequence` comes after another; numbers go round."""
    return than == NONE or 0 < (sequence - than) & MASK < MASK // 2
