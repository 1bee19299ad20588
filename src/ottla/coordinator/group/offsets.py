"""The offsets of one partition's groups: committed, and pending in transactions.

`apply`, `bulk` and `end_transaction` are the only writers, for live requests and while loading. An
offset written in a transaction takes effect with the transaction's commit marker; it replaces
another only if its record is later in the log.

An offset is stored as one `bytes`: the position and the value of its record. There may be millions,
and a million objects tracked by the garbage collector block the event loop for half a second in
each full collection; bytes, and a dict of bytes, are not tracked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.member import GroupPhase
from ottla.coordinator.group.consumer.group import ConsumerGroup, Group
from ottla.coordinator.group.memory import OffsetMemory
from ottla.coordinator.group.offset_replay import (
    OFFSET_BYTES,
    POSITION,
    VALUE_OVERHEAD,
    BulkOffsetReplay,
    Packed,
)
from ottla.coordinator.group.records import (
    NEVER,
    Committed,
    OffsetChanged,
    committed_value,
    read_committed,
)
from ottla.model.clock import WallMs
from ottla.model.ids import NO_PRODUCER, Offset, ProducerId


class PendingOffsets(NamedTuple):
    """What a transaction has written: the record's offset, and its value, None for a deletion."""

    position: Offset
    value: bytes | None

    @property
    def memory_bytes(self) -> int:
        return PENDING_BYTES + len(self.value or b"")


ByTopic: TypeAlias = dict[str, Packed]
GROUP_BYTES: Final = 1_500
"""Memory counted for a group with offsets, besides its name and its members."""
TOPIC_BYTES: Final = 300
PENDING_BYTES: Final = 300
_NOTHING: Final[Mapping[int, bytes]] = MappingProxyType({})


class Offsets:
    def __init__(self, memory: OffsetMemory | None = None) -> None:
        self.memory = memory or OffsetMemory()
        self._bytes = 0  # its part of `memory`
        self._groups: dict[str, ByTopic] = {}
        self._pending: dict[ProducerId, dict[tuple[str, str, int], PendingOffsets]] = {}
        self.bulk = BulkOffsetReplay(self._open, self._grow)
        """Replays plain commits in bulk."""

    # Reading

    def of(self, group: str) -> Mapping[str, Mapping[int, bytes]]:
        """The partitions that have an offset, by topic; `get` decodes one."""
        return self._groups.get(group, {})

    def get(self, group: str, topic: str, partition: int) -> Committed | None:
        topics = self._groups.get(group)
        if topics is None:
            return None
        packed = topics.get(topic, _NOTHING).get(partition)
        return None if packed is None else _unpack(packed)

    def entries(self, group: str) -> Iterator[tuple[str, int, Committed]]:
        for topic, partitions in self.of(group).items():
            for partition, packed in partitions.items():
                yield topic, partition, _unpack(packed)

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

    def growth(self, group: str, topic: str, partition: int, metadata: str) -> int:
        """By how many bytes of memory a commit of this offset makes the offsets larger."""
        topics = self._groups.get(group)
        packed = None if topics is None else topics.get(topic)
        before = None if packed is None else packed.get(partition)
        size = VALUE_OVERHEAD + len(metadata.encode())
        if before is not None:
            return size + POSITION.size - len(before)
        size += OFFSET_BYTES + (TOPIC_BYTES + len(topic) if packed is None else 0)
        return size + (GROUP_BYTES + len(group) if topics is None else 0)

    # Writing

    def release(self) -> None:
        """The offsets are no longer used: their memory is not counted any more."""
        self.memory.total -= self._bytes
        self.memory, self._bytes = OffsetMemory(), 0

    def _grow(self, size: int) -> None:
        self._bytes += size
        self.memory.total += size

    def apply(self, change: OffsetChanged, position: Offset, producer_id: ProducerId) -> None:
        group, topic, partition, committed = change
        value = None if committed is None else committed_value(committed)
        if producer_id != NO_PRODUCER:
            changes = self._pending.setdefault(producer_id, {})
            before = changes.get((group, topic, partition))
            after = changes[group, topic, partition] = PendingOffsets(position, value)
            self._grow(after.memory_bytes - (0 if before is None else before.memory_bytes))
        elif value is None:
            self._remove(group, topic, partition)
        else:
            self._put(group, topic, partition, POSITION.pack(position) + value)

    def end_transaction(self, producer_id: ProducerId, *, committed: bool) -> None:
        changes = self._pending.pop(producer_id, {})
        self._grow(-sum(change.memory_bytes for change in changes.values()))
        if not committed:
            return
        for (group, topic, partition), (position, value) in changes.items():
            if value is None:
                self._remove(group, topic, partition)
                continue
            current = self._groups.get(group, {}).get(topic, _NOTHING).get(partition)
            if current is None or POSITION.unpack_from(current)[0] < position:
                self._put(group, topic, partition, POSITION.pack(position) + value)

    def _put(self, group: str, topic: str, partition: int, value: bytes) -> None:
        packed = self._open(group, topic)
        before = packed.get(partition)
        packed[partition] = value
        self._grow(len(value) + (OFFSET_BYTES if before is None else -len(before)))

    def _open(self, group: str, topic: str) -> Packed:
        """The offsets of one topic, created if there are none."""
        topics = self._groups.get(group)
        if topics is None:
            topics = self._groups[group] = {}
            self._grow(GROUP_BYTES + len(group))
        packed = topics.get(topic)
        if packed is None:
            packed = topics[topic] = {}
            self._grow(TOPIC_BYTES + len(topic))
        return packed

    def _remove(self, group: str, topic: str, partition: int) -> None:
        topics = self._groups.get(group)
        if topics is None or topic not in topics:
            return
        before = topics[topic].pop(partition, None)
        self._grow(0 if before is None else -OFFSET_BYTES - len(before))
        if not topics[topic]:
            del topics[topic]
            self._grow(-TOPIC_BYTES - len(topic))
        if not topics:
            del self._groups[group]
            self._grow(-GROUP_BYTES - len(group))


def _unpack(packed: bytes) -> Committed:
    return read_committed(packed[POSITION.size :])


def expired_offsets(
    group: Group, offsets: Offsets, now: WallMs, retention_ms: int
) -> Iterator[tuple[str, int]]:
    """Topic and partition of every expired offset of the group."""
    if not _may_expire(group):
        return
    in_use = _in_use(group)
    for topic, partition, committed in offsets.entries(group.id):
        if topic in in_use or offsets.is_pending(group.id, topic, partition):
            continue
        if _is_old(group, committed, now, retention_ms):
            yield topic, partition


def _may_expire(group: Group) -> bool:
    if isinstance(group, ConsumerGroup):
        return True
    if group.phase is GroupPhase.EMPTY:
        return True
    reads = group.is_consumer_group and group.subscribed is not None
    return reads and group.phase is GroupPhase.STABLE


def _in_use(group: Group) -> frozenset[str]:
    if isinstance(group, ConsumerGroup):
        return group.subscribed()
    return frozenset() if group.phase is GroupPhase.EMPTY else group.subscribed or frozenset()


def _is_old(group: Group, committed: Committed, now: WallMs, retention_ms: int) -> bool:
    if committed.expires_ms != NEVER:
        return now >= committed.expires_ms
    since = committed.committed_ms
    if isinstance(group, ClassicGroup) and group.protocol_type and group.phase is GroupPhase.EMPTY:
        since = group.since_ms if group.since_ms >= 0 else since
    return now - since >= retention_ms
