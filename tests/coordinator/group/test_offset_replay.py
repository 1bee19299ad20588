"""Commits read many at a time say the same as commits read one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.group.offset_replay import ReplayedOffsets
from ottla.coordinator.group.offsets import Offsets
from ottla.coordinator.group.records import (
    NEVER,
    Committed,
    OffsetChanged,
    decode,
    offset_record,
    tombstone,
)
from ottla.coordinator.outcome import CoordinatorRecord
from ottla.model.ids import NO_PRODUCER
from ottla.protocol.records.batch import build, read_header
from ottla.protocol.records.record import NewRecord, read_records, records_section

NAMES = st.sampled_from(["", "g", "größer", "x" * 90, "y" * 9_000])
LONGS = st.integers(-(2**63), 2**63 - 1)
COMMITS = st.builds(
    OffsetChanged,
    NAMES,
    NAMES,
    st.sampled_from([0, 1, 255, 2**31 - 1, -1]),
    st.one_of(
        st.none(),
        st.builds(
            Committed,
            LONGS,
            st.integers(-(2**31), 2**31 - 1),
            st.sampled_from(["", "why", "z" * 200, "ü" * 4_096]),
            LONGS,
            st.one_of(st.just(NEVER), st.integers(0, 2**63 - 1)),
        ),
    ),
)
RECORDS = st.lists(
    st.one_of(COMMITS.map(offset_record), st.just(tombstone("g"))), min_size=1, max_size=12
)
TIMES = st.sampled_from([0, 1, 100, 2**40])


def batch_of(records: list[CoordinatorRecord], times: list[int]) -> bytes:
    return build([NewRecord(r.key, r.value, (), t) for r, t in zip(records, times, strict=True)])


def found(offsets: Offsets) -> dict[tuple[str, str, int], Committed]:
    return {
        (group, topic, partition): committed
        for group in offsets.groups()
        for topic, partition, committed in offsets.entries(group)
    }


@given(st.data(), RECORDS, st.integers(0, 2**40))
def test_what_is_taken_at_once_is_what_would_be_taken_one_by_one(
    data: st.DataObject, records: list[CoordinatorRecord], base: int
) -> None:
    times = [data.draw(TIMES) for _ in records]
    batch = batch_of(records, times)
    section = bytes(records_section(batch, read_header(batch)))
    many, single = Offsets(), Offsets()
    taken = many.bulk.take(section, 0, len(records), base)
    for number, record in enumerate(records[: taken.records]):
        what = decode(record.key, record.value)
        assert isinstance(what, OffsetChanged)
        single.apply(what, base + number, NO_PRODUCER)
    assert found(many) == found(single)
    assert many.of("g") == single.of("g"), "at the same places in the log"
    if taken.records == len(records):
        assert taken.position == len(section)
    else:  # it stopped before the next
        rest = bytes(section[taken.position :])
        key = records[taken.records].key
        assert key in rest[: len(key) + 30]


def plain(count: int) -> list[CoordinatorRecord]:
    return [offset_record(OffsetChanged("g", "t", n, Committed(n))) for n in range(count)]


def test_all_of_the_records_we_write_are_taken_at_once() -> None:
    batch = batch_of(plain(10_000), [5] * 10_000)
    section = bytes(records_section(batch, read_header(batch)))
    offsets = Offsets()
    first = offsets.bulk.take(section, 0, 4_000, 7)
    assert first.records == 4_000
    # An offset beyond 8,191 in its batch takes three bytes: those are read one by one.
    assert offsets.bulk.take(section, first.position, 6_000, 7).records == 4_192
    assert offsets.get("g", "t", 8_191) == Committed(8_191)
    places = [int.from_bytes(packed[:8], "big") for packed in offsets.of("g")["t"].values()]
    assert places == [7 + number for number in range(8_192)]


def test_nothing_is_taken_where_bytes_are_missing() -> None:
    batch = batch_of(plain(1), [0])
    section = bytes(records_section(batch, read_header(batch)))
    for end in range(len(section)):
        offsets = Offsets()
        assert offsets.bulk.take(section[:end], 0, 1, 0) == ReplayedOffsets(0, 0)
        assert not found(offsets)
    assert len(list(read_records(batch))) == 1


def test_commits_go_where_they_belong_after_a_group_has_gone() -> None:
    batch = batch_of(plain(1), [0])
    section = bytes(records_section(batch, read_header(batch)))
    offsets = Offsets()
    offsets.bulk.take(section, 0, 1, 0)
    offsets.apply(OffsetChanged("g", "t", 0, None), 1, NO_PRODUCER)
    offsets.bulk.forget()
    offsets.bulk.take(section, 0, 1, 2)
    assert offsets.get("g", "t", 0) == Committed(0)
