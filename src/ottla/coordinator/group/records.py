"""The records of classic groups and offsets in `__consumer_offsets`, in Kafka's own formats.

Pure: typed records and their encoding. The version of a key is the type of the record; values of
all versions are read, and the newest that all releases can read is written
(`docs/formats/internal-topics.md`).
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.consumer import records as consumer_records
from ottla.coordinator.outcome import CoordinatorRecord
from ottla.coordinator.record_fields import INT16, INT64, Reader, Writer
from ottla.model.clock import WallMs

OFFSET_KEYS: Final = (0, 1)
GROUP_KEY: Final = 2
FIRST_FLEXIBLE: Final = 4
NEWEST_READ: Final = 4
WRITTEN: Final = 3
WRITTEN_WITH_EXPIRY: Final = 1
PLAIN: Final = Struct(">hqih")
"""The start of a value of version `WRITTEN`: version, offset, leader epoch, metadata size."""
NEVER: Final = WallMs(-1)
"""No explicit expiry: the broker's retention decides."""


class Committed(NamedTuple):
    """The committed offset of a group in one partition."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    committed_ms: WallMs = WallMs(0)
    expires_ms: WallMs = NEVER


class OffsetChanged(NamedTuple):
    """None deletes the offset."""

    group: str
    topic: str
    partition: int
    committed: Committed | None


class StoredMember(NamedTuple):
    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupChanged(NamedTuple):
    """A generation of a group, as it is stored."""

    group: str
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    since_ms: WallMs
    members: tuple[StoredMember, ...]


class GroupDeleted(NamedTuple):
    group: str


GroupRecord: TypeAlias = OffsetChanged | GroupChanged | GroupDeleted
GroupTopicChange: TypeAlias = GroupRecord | consumer_records.ConsumerGroupChange


class TimerKey(NamedTuple):
    """The key of a timer of a group's shard."""

    kind: str
    group: str = ""
    member: str = ""


# Writing


def offset_record(change: OffsetChanged) -> CoordinatorRecord:
    key = Writer(1).string(change.group).string(change.topic).int32(change.partition).done()
    value = None if change.committed is None else committed_value(change.committed)
    return CoordinatorRecord(change, key, value)


def committed_value(committed: Committed) -> bytes:
    """An offset's value; the older version is the one that has an expiry."""
    if committed.expires_ms != NEVER:
        out = Writer(WRITTEN_WITH_EXPIRY).int64(committed.offset).string(committed.metadata)
        return out.int64(committed.committed_ms).int64(committed.expires_ms).done()
    out = Writer(WRITTEN).int64(committed.offset).int32(committed.leader_epoch)
    return out.string(committed.metadata).int64(committed.committed_ms).done()


def group_record(group: ClassicGroup, assignments: dict[str, bytes]) -> CoordinatorRecord:
    """The group as it is now, each member with its assignment."""
    assert group.protocol is not None or not group.members, f"group {group.id}: no protocol"
    change = GroupChanged(
        group.id,
        group.protocol_type or "",
        group.generation,
        group.protocol,
        group.leader,
        group.since_ms,
        tuple(
            StoredMember(
                member.id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.metadata_for(group.protocol),
                assignments.get(member.id, b""),
            )
            for member in group.members.values()
        ),
    )
    return CoordinatorRecord(change, _group_key(group.id), _group_value(change))


def tombstone(group: str) -> CoordinatorRecord:
    return CoordinatorRecord(GroupDeleted(group), _group_key(group), None)


def _group_key(group: str) -> bytes:
    return Writer(GROUP_KEY).string(group).done()


def _group_value(change: GroupChanged) -> bytes:
    out = Writer(WRITTEN).string(change.protocol_type).int32(change.generation)
    out.string(change.protocol).string(change.leader).int64(change.since_ms)
    out.array(len(change.members))
    for member in change.members:
        out.string(member.id).string(member.instance_id)
        out.string(member.client_id).string(member.client_host)
        out.int32(member.rebalance_timeout_ms).int32(member.session_timeout_ms)
        out.blob(member.subscription).blob(member.assignment)
    return out.done()


# Reading


def decode(key: bytes, value: bytes | None) -> GroupTopicChange | None:
    """The typed value of a record; None for an unknown type."""
    (kind,) = INT16.unpack_from(key) if len(key) >= INT16.size else (-1,)
    if kind in OFFSET_KEYS:
        return _read_offset(Reader(key), value)
    if kind == GROUP_KEY:
        group = Reader(key).text()
        return GroupDeleted(group) if value is None else _read_group(group, value)
    return consumer_records.decode(key, value) if kind in consumer_records.KINDS else None


def _read_offset(key: Reader, value: bytes | None) -> OffsetChanged:
    group, topic, partition = key.text(), key.text(), key.int32()
    committed = None if value is None else read_committed(value)
    return OffsetChanged(group, topic, partition, committed)


def read_committed(value: bytes) -> Committed:
    """An offset's value; of the version we write in one go."""
    if len(value) >= PLAIN.size:
        version, offset, leader_epoch, size = PLAIN.unpack_from(value)
        if version == WRITTEN and len(value) == PLAIN.size + size + 8:
            (committed_ms,) = INT64.unpack_from(value, PLAIN.size + size)
            metadata = value[PLAIN.size : PLAIN.size + size].decode()
            return Committed(offset, leader_epoch, metadata, committed_ms)
    reader = _value(value)
    version = reader.version
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else -1
    metadata = reader.text()
    committed_ms = reader.int64()
    expires_ms = reader.int64() if version == 1 else NEVER
    return Committed(offset, leader_epoch, metadata, WallMs(committed_ms), WallMs(expires_ms))


def _read_group(group: str, value: bytes) -> GroupChanged:
    reader = _value(value)
    protocol_type, generation = reader.text(), reader.int32()
    protocol, leader = reader.string(), reader.string()
    since_ms = reader.int64() if reader.version >= 2 else -1
    members = tuple(_read_member(reader) for _ in range(reader.array()))
    return GroupChanged(
        group, protocol_type, generation, protocol, leader, WallMs(since_ms), members
    )


def _read_member(reader: Reader) -> StoredMember:
    version = reader.version
    member_id = reader.text()
    instance_id = reader.string() if version >= 3 else None
    client_id, client_host = reader.text(), reader.text()
    rebalance_ms = reader.int32() if version >= 1 else -1
    session_ms = reader.int32()
    subscription, assignment = reader.blob() or b"", reader.blob() or b""
    reader.tags()
    return StoredMember(
        member_id,
        instance_id,
        client_id,
        client_host,
        session_ms if rebalance_ms < 0 else rebalance_ms,
        session_ms,
        subscription,
        assignment,
    )


def _value(value: bytes) -> Reader:
    reader = Reader(value, flexible_from=FIRST_FLEXIBLE)
    if not 0 <= reader.version <= NEWEST_READ:
        raise ValueError(
            f"group metadata or offset value has unsupported version {reader.version}; "
            f"supported are 0 to {NEWEST_READ}"
        )
    return reader
