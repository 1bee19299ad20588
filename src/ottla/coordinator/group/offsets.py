"""The committed offsets of one partition's groups: kept, pending in transactions, read.

`apply` and `end_transaction` are the only writers, live and at loading alike. An offset written in
a transaction counts when the transaction's marker says so; it replaces another only if its record
stands later in the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from ottla.coordinator.group.records import Committed, OffsetChanged
from ottla.model.ids import NO_PRODUCER, Offset, ProducerId


class Kept(NamedTuple):
    """A committed offset, and where its record stands."""

    position: Offset
    committed: Committed


ByTopic: TypeAlias = dict[str, dict[int, Kept]]
_NOTHING: Final[Mapping[int, Kept]] = MappingProxyType({})


class Offsets:
    def __init__(self) -> None:
        self._groups: dict[str, ByTopic] = {}
        self._pending: dict[ProducerId, dict[tuple[str, str, int], Kept | Offset]] = {}

    # Reading

    def of(self, group: str) -> Mapping[str, Mapping[int, Kept]]:
        return self._groups.get(group, {})

    def get(self, group: str, topic: str, partition: int) -> Committed | None:
        topics = self._groups.get(group)
        if topics is None:
            return None
        kept = topics.get(topic, _NOTHING).get(partition)
        return None if kept is None else kept.committed

    def each(self, group: str) -> Iterator[tuple[str, int, Committed]]:
        for topic, partitions in self.of(group).items():
            for partition, kept in partitions.items():
                yield topic, partition, kept.committed

    def groups(self) -> list[str]:
        return list(self._groups)

    def has_any(self, group: str) -> bool:
        return bool(self._groups.get(group)) or group in self.pending_groups()

    def is_pending(self, group: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has written this offset."""
        key = (group, topic, partition)
        return any(key in changes for changes in self._pending.values())

    def pending_groups(self) -> set[str]:
        return {key[0] for changes in self._pending.values() for key in changes}

    # Writing

    def apply(self, change: OffsetChanged, position: Offset, producer_id: ProducerId) -> None:
        group, topic, partition, committed = change
        if producer_id != NO_PRODUCER:
            changes = self._pending.setdefault(producer_id, {})
            key = (group, topic, partition)
            changes[key] = position if committed is None else Kept(position, committed)
        elif committed is None:
            self._remove(group, topic, partition)
        else:
            self._put(group, topic, partition, Kept(position, committed))

    def end_transaction(self, producer_id: ProducerId, *, committed: bool) -> None:
        changes = self._pending.pop(producer_id, {})
        if not committed:
            return
        for (group, topic, partition), change in changes.items():
            if not isinstance(change, Kept):
                self._remove(group, topic, partition)
                continue
            known = self._groups.get(group, {}).get(topic, _NOTHING).get(partition)
            if known is None or known.position < change.position:
                self._put(group, topic, partition, change)

    def _put(self, group: str, topic: str, partition: int, kept: Kept) -> None:
        topics = self._groups.get(group)
        if topics is None:
            topics = self._groups[group] = {}
        partitions = topics.get(topic)
        if partitions is None:
            topics[topic] = {partition: kept}
        else:
            partitions[partition] = kept

    def _remove(self, group: str, topic: str, partition: int) -> None:
        topics = self._groups.get(group)
        if topics is None or topic not in topics:
            return
        topics[topic].pop(partition, None)
        if not topics[topic]:
            del topics[topic]
        if not topics:
            del self._groups[group]
