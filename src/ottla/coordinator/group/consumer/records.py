"""The records of groups of the consumer protocol in `__consumer_offsets`.

Pure: typed records and their encoding, in Kafka's own formats (`docs/formats/internal-topics.md`).
The version of a key is the type of the record. Every value has version 0 and is flexible; a null
value deletes the entry of the key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from struct import pack, unpack
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from ottla.coordinator.group.classic.member import Protocol
from ottla.coordinator.group.consumer.member import (
    ClassicProtocolState,
    MemberAssignment,
    MemberProfile,
    MemberState,
)
from ottla.coordinator.group.consumer.topic_partitions import (
    Parts,
    TopicIdPartition,
    TopicSize,
    by_topic,
)
from ottla.coordinator.outcome import Change, CoordinatorRecord
from ottla.coordinator.record_fields import Reader, Writer
from ottla.model.clock import WallMs

VALUE: Final = 0
CLASSIC_TAG: Final = 0
PRESENT: Final = 1
STATES: Final = frozenset(state.value for state in MemberState)


class Resolved(NamedTuple):
    """The topics that match a pattern."""

    topics: frozenset[str]
    version: int
    """How often the topics have changed."""
    at_ms: WallMs


class EpochSet(NamedTuple):
    group: str
    epoch: int | None


class TopicsSet(NamedTuple):
    group: str
    topics: Mapping[str, TopicSize] | None


class ProfileSet(NamedTuple):
    group: str
    member: str
    profile: MemberProfile | None


class TargetEpochSet(NamedTuple):
    group: str
    epoch: int | None


class TargetSet(NamedTuple):
    group: str
    member: str
    parts: Parts | None


class StandingSet(NamedTuple):
    group: str
    member: str
    standing: MemberAssignment | None


class PatternSet(NamedTuple):
    group: str
    pattern: str
    resolved: Resolved | None


ConsumerGroupChange: TypeAlias = (
    EpochSet | TopicsSet | ProfileSet | TargetEpochSet | TargetSet | StandingSet | PatternSet
)


# Writing


def _write_epoch(out: Writer, epoch: int) -> Writer:
    return out.int32(epoch).tags()


def _write_topics(out: Writer, topics: Mapping[str, TopicSize]) -> Writer:
    out.array(len(topics))
    for name, (topic_id, partitions) in topics.items():
        # An empty array for the racks of partitions, which are no longer stored.
        out.raw(topic_id.bytes).string(name).int32(partitions).array(0).tags()
    return out.tags()


def _write_profile(out: Writer, profile: MemberProfile) -> Writer:
    out.string(profile.instance_id).string(profile.rack_id)
    out.string(profile.client_id).string(profile.client_host).strings(tuple(profile.topics))
    out.string(profile.pattern).int32(profile.rebalance_timeout_ms).string(profile.assignor)
    classic = profile.classic
    return out.tags({} if classic is None else {CLASSIC_TAG: _classic_bytes(classic)})


def _classic_bytes(classic: ClassicProtocolState) -> bytes:
    # A structure that may be null begins with a byte that says whether it is.
    out = Writer(None, flexible=True).int8(PRESENT).int32(classic.session_timeout_ms)
    out.array(len(classic.protocols))
    for protocol in classic.protocols:
        out.string(protocol.name).blob(protocol.metadata).tags()
    return out.tags().done()


def _write_target(out: Writer, parts: Parts) -> Writer:
    return _write_parts(out, parts).tags()


def _write_standing(out: Writer, standing: MemberAssignment) -> Writer:
    out.int32(standing.epoch).int32(standing.previous_epoch).int8(standing.state.value)
    return _write_parts(_write_parts(out, standing.assigned), standing.revoking).tags()


def _write_parts(out: Writer, parts: Parts) -> Writer:
    return out.raw(_parts_bytes(parts))


@lru_cache(maxsize=2)
def _parts_bytes(parts: Parts) -> bytes:
    """A member's target often becomes its assignment in the same step: encoded once."""
    topics, out = by_topic(parts), Writer(None, flexible=True)
    out.array(len(topics))
    for topic_id, partitions in topics.items():
        # Packed at once: a group may have thousands of partitions, written with each change.
        packed = pack(f">{len(partitions)}i", *partitions)
        out.raw(topic_id.bytes).array(len(partitions)).raw(packed).tags()
    return out.done()


def _write_pattern(out: Writer, resolved: Resolved) -> Writer:
    out.array(len(resolved.topics))
    for name in sorted(resolved.topics):
        out.string(name)
    return out.int64(resolved.version).int64(resolved.at_ms).tags()


# Reading


def _read_epoch(reader: Reader) -> int:
    return reader.int32()


def _read_topics(reader: Reader) -> dict[str, TopicSize]:
    return dict(_read_topic(reader) for _ in range(reader.array()))


def _read_topic(reader: Reader) -> tuple[str, TopicSize]:
    topic_id, name, partitions = UUID(bytes=reader.raw(16)), reader.text(), reader.int32()
    for _ in range(reader.array()):  # the racks of a partition
        reader.int32()
        for _ in range(reader.array()):
            reader.string()
        reader.tags()
    reader.tags()
    return name, TopicSize(topic_id, partitions)


def _read_profile(reader: Reader) -> MemberProfile:
    instance_id, rack_id = reader.string(), reader.string()
    client_id, client_host = reader.text(), reader.text()
    topics = tuple(reader.text() for _ in range(reader.array()))
    pattern, rebalance_ms, assignor = reader.string(), reader.int32(), reader.string()
    tagged = reader.tags().get(CLASSIC_TAG)
    return MemberProfile(
        instance_id,
        rack_id,
        client_id,
        client_host,
        topics,
        pattern,
        rebalance_ms,
        assignor,
        None if tagged is None else _read_classic(Reader.inside(tagged)),
    )


def _read_classic(reader: Reader) -> ClassicProtocolState | None:
    if reader.int8() != PRESENT:
        return None
    session_ms = reader.int32()
    return ClassicProtocolState(
        session_ms, tuple(_read_protocol(reader) for _ in range(reader.array()))
    )


def _read_protocol(reader: Reader) -> Protocol:
    protocol = Protocol(reader.text(), reader.blob() or b"")
    reader.tags()
    return protocol


def _read_standing(reader: Reader) -> MemberAssignment:
    epoch, previous, number = reader.int32(), reader.int32(), reader.int8()
    state = MemberState(number) if number in STATES else MemberState.UNKNOWN
    return MemberAssignment(epoch, previous, state, _read_parts(reader), _read_parts(reader))


def _read_parts(reader: Reader) -> Parts:
    parts: list[TopicIdPartition] = []
    for _ in range(reader.array()):
        topic_id, count = UUID(bytes=reader.raw(16)), reader.array()
        indexes = unpack(f">{count}i", reader.raw(4 * count))
        parts += [TopicIdPartition(topic_id, index) for index in indexes]
        reader.tags()
    return frozenset(parts)


def _read_pattern(reader: Reader) -> Resolved:
    topics = frozenset(reader.text() for _ in range(reader.array()))
    return Resolved(topics, reader.int64(), WallMs(reader.int64()))


class _Kind(NamedTuple):
    make: Callable[..., ConsumerGroupChange]
    key: int
    names: int
    """Strings in the key: the group, and for some a member or a pattern."""
    write: Callable[[Writer, Change], Writer]
    read: Callable[[Reader], Change]


_BY_TYPE: Final[Mapping[type, _Kind]] = {
    EpochSet: _Kind(EpochSet, 3, 1, _write_epoch, _read_epoch),
    TopicsSet: _Kind(TopicsSet, 4, 1, _write_topics, _read_topics),
    ProfileSet: _Kind(ProfileSet, 5, 2, _write_profile, _read_profile),
    TargetEpochSet: _Kind(TargetEpochSet, 6, 1, _write_epoch, _read_epoch),
    TargetSet: _Kind(TargetSet, 7, 2, _write_target, _read_parts),
    StandingSet: _Kind(StandingSet, 8, 2, _write_standing, _read_standing),
    PatternSet: _Kind(PatternSet, 16, 2, _write_pattern, _read_pattern),
}
KINDS: Final[Mapping[int, _Kind]] = {kind.key: kind for kind in _BY_TYPE.values()}
"""By the version of the key."""


def record(change: ConsumerGroupChange) -> CoordinatorRecord:
    """The record with its encoded key and value."""
    kind = _BY_TYPE[type(change)]
    *names, content = change
    key = Writer(kind.key)
    for name in names:
        key.string(name)
    value = None if content is None else kind.write(Writer(VALUE, flexible=True), content).done()
    return CoordinatorRecord(change, key.done(), value)


def decode(key: bytes, value: bytes | None) -> ConsumerGroupChange:
    """A record of one of `KINDS`; ValueError where the bytes are malformed."""
    reader = Reader(key)
    kind = KINDS[reader.version]
    names = [reader.text() for _ in range(kind.names)]
    return kind.make(*names, None if value is None else kind.read(_value(value)))


def _value(value: bytes) -> Reader:
    reader = Reader(value, flexible_from=VALUE)
    if reader.version != VALUE:
        raise ValueError(f"consumer group value has unsupported version {reader.version}")
    return reader
