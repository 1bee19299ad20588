"""What groups persist is what Kafka persists, byte for byte, in every version there has been."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.member import ClassicMember, Protocol
from ottla.coordinator.group.records import (
    Committed,
    GroupChanged,
    GroupDeleted,
    OffsetChanged,
    StoredMember,
    decode,
    group_record,
    offset_record,
    tombstone,
)
from ottla.coordinator.record_fields import Writer
from ottla.model.clock import WallMs

KEY = b"\0\1" + b"\0\1g" + b"\0\5topic" + b"\0\0\0\7"


@pytest.mark.spec("GRP-49", "GRP-50", "GRP-51", "GRP-52")
def test_an_offset_is_stored_in_version_3_under_a_key_of_version_1() -> None:
    record = offset_record(OffsetChanged("g", "topic", 7, Committed(5, 2, "note", WallMs(9))))
    assert record.key == KEY
    value = b"\0\3" + (5).to_bytes(8, "big") + b"\0\0\0\2" + b"\0\4note" + (9).to_bytes(8, "big")
    assert record.value == value


@pytest.mark.spec("GRP-52")
def test_an_explicit_expiry_is_stored_in_version_1() -> None:
    record = offset_record(
        OffsetChanged("g", "topic", 7, Committed(5, -1, "", WallMs(9), WallMs(20)))
    )
    eight = [(number).to_bytes(8, "big") for number in (5, 9, 20)]
    assert record.value == b"\0\1" + eight[0] + b"\0\0" + eight[1] + eight[2]


@pytest.mark.spec("GRP-49")
def test_a_tombstone_takes_an_offset_or_a_group_away() -> None:
    assert decode(KEY, None) == OffsetChanged("g", "topic", 7, None)
    record = tombstone("g")
    assert (record.key, record.value) == (b"\0\2\0\1g", None)
    assert decode(record.key, None) == GroupDeleted("g")


@pytest.mark.spec("GRP-52")
@pytest.mark.parametrize("version", range(5))
def test_offsets_of_every_version_are_read(version: int) -> None:
    out = Writer(version, flexible=version >= 4).int64(5)
    if version >= 3:
        out.int32(2)
    out.string("note").int64(9)
    if version == 1:
        out.int64(20)
    found = decode(KEY, out.tags().done())
    epoch, expires = (2 if version >= 3 else -1), (20 if version == 1 else -1)
    assert found == OffsetChanged(
        "g", "topic", 7, Committed(5, epoch, "note", WallMs(9), WallMs(expires))
    )


@pytest.mark.spec("GRP-53", "GRP-54", "GRP-55")
@pytest.mark.parametrize("version", range(5))
def test_groups_of_every_version_are_read(version: int) -> None:
    out = Writer(version, flexible=version >= 4)
    out.string("consumer").int32(3).string("range").string("m")
    if version >= 2:
        out.int64(77)
    out.array(1).string("m")
    if version >= 3:
        out.string("i")
    out.string("c").string("/h")
    if version >= 1:
        out.int32(60)
    out.int32(10).blob(b"sub").blob(b"asg").tags().tags()
    member = StoredMember(
        "m", "i" if version >= 3 else None, "c", "/h", 60 if version else 10, 10, b"sub", b"asg"
    )
    since = 77 if version >= 2 else -1
    expected = GroupChanged("g", "consumer", 3, "range", "m", WallMs(since), (member,))
    assert decode(b"\0\2\0\1g", out.done()) == expected


@pytest.mark.spec("GRP-54", "GRP-55", "GRP-56")
def test_a_group_is_stored_in_version_3() -> None:
    group = ClassicGroup("g", WallMs(77))
    group.add(ClassicMember("m", "i", "c", "/h", 60, 10, (Protocol("range", b"sub"),)), "consumer")
    with pytest.raises(AssertionError):
        group_record(group, {})
    group.protocol, group.generation = "range", 3
    record = group_record(group, {"m": b"asg"})
    out = Writer(3).string("consumer").int32(3).string("range").string("m").int64(77).array(1)
    out.string("m").string("i").string("c").string("/h").int32(60).int32(10)
    assert record.value == out.blob(b"sub").blob(b"asg").done()


@pytest.mark.spec("GRP-50")
@pytest.mark.parametrize("key", [b"\0\x09\0\1g", b"\x7f\xff", b"", b"x"])
def test_kinds_that_are_not_known_are_passed_over(key: bytes) -> None:
    assert decode(key, b"whatever") is None


@pytest.mark.parametrize("value", [b"", b"\0\5", b"\xff\xff", b"\0\3\0\0"])
def test_a_value_that_cannot_be_read_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match=r"version|exceeds the record"):
        decode(KEY, value)


@given(
    st.text(max_size=20),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.text(max_size=50),
    st.integers(-1, 2**62),
)
def test_offsets_read_as_they_were_written(
    topic: str, partition: int, offset: int, metadata: str, expires: int
) -> None:
    change = OffsetChanged(
        "g", topic, partition, Committed(offset, -1, metadata, WallMs(4), WallMs(expires))
    )
    record = offset_record(change)
    assert decode(record.key, record.value) == change
