"""What a consumer group persists: Kafka's bytes, read as they were written."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.group import records as group_records
from ottla.coordinator.group.classic.member import Protocol
from ottla.coordinator.group.consumer.member import (
    ClassicProtocolState,
    MemberAssignment,
    MemberProfile,
    MemberState,
)
from ottla.coordinator.group.consumer.records import (
    ConsumerGroupChange,
    EpochSet,
    PatternSet,
    ProfileSet,
    Resolved,
    StandingSet,
    TargetEpochSet,
    TargetSet,
    TopicsSet,
    decode,
    record,
)
from ottla.coordinator.group.consumer.topic_partitions import TopicIdPartition, TopicSize
from ottla.model.clock import WallMs

names = st.text(max_size=12)
numbers = st.integers(0, 2**31 - 1)
shares = st.frozensets(st.builds(TopicIdPartition, st.uuids(), st.integers(0, 9)), max_size=6)
profiles = st.builds(
    MemberProfile,
    st.none() | names,
    st.none() | names,
    names,
    names,
    st.lists(names, max_size=3).map(tuple),
    st.none() | names,
    numbers,
    st.none() | names,
    st.none()
    | st.builds(
        ClassicProtocolState,
        numbers,
        st.lists(st.builds(Protocol, names, st.binary(max_size=9)), max_size=3).map(tuple),
    ),
)
standings = st.builds(
    MemberAssignment,
    st.integers(-2, 9),
    st.integers(-2, 9),
    st.sampled_from(MemberState),
    shares,
    shares,
)
resolved = st.builds(Resolved, st.frozensets(names, max_size=3), numbers, numbers)
topics = st.dictionaries(names, st.builds(TopicSize, st.uuids(), numbers), max_size=3)
records = st.one_of(
    st.builds(EpochSet, names, st.none() | numbers),
    st.builds(TopicsSet, names, st.none() | topics),
    st.builds(ProfileSet, names, names, st.none() | profiles),
    st.builds(TargetEpochSet, names, st.none() | numbers),
    st.builds(TargetSet, names, names, st.none() | shares),
    st.builds(StandingSet, names, names, st.none() | standings),
    st.builds(PatternSet, names, names, st.none() | resolved),
)


@given(records)
def test_records_read_as_they_were_written(what: ConsumerGroupChange) -> None:
    written = record(what)
    found = decode(written.key, written.value)
    assert type(found) is type(what)
    assert found == what
    assert group_records.decode(written.key, written.value) == what


TOPIC = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
SHARE = "02 00010203 04050607 08090a0b 0c0d0e0f 03 00000001 00000002 00 "


@pytest.mark.parametrize(
    ("what", "key", "value"),
    [
        (EpochSet("g", 7), "0003 0001 67", "0000 00000007 00"),
        (
            TopicsSet("g", {"t": TopicSize(TOPIC, 3)}),
            "0004 0001 67",
            "0000 02 00010203 04050607 08090a0b 0c0d0e0f 02 74 00000003 01 00 00",
        ),
        (
            ProfileSet("g", "m", MemberProfile("i", None, "c", "/h", ("t",), None, 60, "uniform")),
            "0005 0001 67 0001 6d",
            "0000 02 69 00 02 63 03 2f68 02 02 74 00 0000003c 08 756e69666f726d 00",
        ),
        (TargetEpochSet("g", 7), "0006 0001 67", "0000 00000007 00"),
        (
            TargetSet(
                "g", "m", frozenset({TopicIdPartition(TOPIC, 1), TopicIdPartition(TOPIC, 2)})
            ),
            "0007 0001 67 0001 6d",
            "0000 " + SHARE + "00",
        ),
        (
            StandingSet(
                "g",
                "m",
                MemberAssignment(
                    7,
                    6,
                    MemberState.UNREVOKED,
                    frozenset({TopicIdPartition(TOPIC, 1), TopicIdPartition(TOPIC, 2)}),
                ),
            ),
            "0008 0001 67 0001 6d",
            "0000 00000007 00000006 01 " + SHARE + "01 00",
        ),
        (
            PatternSet("g", "t.*", Resolved(frozenset({"t"}), 1, WallMs(2))),
            "0010 0001 67 0003 742e2a",
            "0000 02 02 74 00000000 00000001 00000000 00000002 00",
        ),
    ],
)
def test_the_bytes_are_kafkas(what: ConsumerGroupChange, key: str, value: str) -> None:
    written = record(what)
    assert written.key == bytes.fromhex(key)
    assert written.value == bytes.fromhex(value)


def test_a_classic_member_is_told_by_a_tag() -> None:
    face = ClassicProtocolState(10, (Protocol("range", b"x"),))
    value = record(ProfileSet("g", "m", MemberProfile(classic=face))).value
    inside = "01 0000000a 02 06 72616e6765 02 78 00 00"
    tail = "01 00 " + f"{len(bytes.fromhex(inside)):02x} " + inside
    assert value is not None and value.endswith(bytes.fromhex(tail))


def test_what_later_releases_add_is_passed_over() -> None:
    key = record(EpochSet("g", 7)).key
    hashed = bytes.fromhex("0000 00000007 01 00 08 0102030405060708")
    assert decode(key, hashed) == EpochSet("g", 7)
    state = record(StandingSet("g", "m", MemberAssignment(7, 6)))
    odd = bytes.fromhex("0000 00000007 00000006 09 01 01 00")
    found = decode(state.key, odd)
    assert isinstance(found, StandingSet) and found.standing is not None
    assert found.standing.state is MemberState.UNKNOWN


@pytest.mark.parametrize("value", ["", "00", "0001 00000007 00", "0000 0000"])
def test_a_value_that_is_not_one_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"version|exceeds the record"):
        decode(record(EpochSet("g", 7)).key, bytes.fromhex(value))
