from __future__ import annotations

import contextlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import Disconnect, ErrorCode
from ottla.protocol.hot.fetch import FetchedPartition, fetch_reply
from ottla.protocol.hot.fetch_response import NEWEST, read_fetch_response
from ottla.protocol.wire import Call, decode_reply

ID = UUID(int=77)
PARTITIONS = [
    FetchedPartition(0, ErrorCode.none, 9, 8, 1, None, -1, None, None, b"some records"),
    FetchedPartition(
        3, ErrorCode.not_leader_or_follower, 5, 4, 0, [(11, 2), (12, 3)], 6, None, (2, 8), b""
    ),
    FetchedPartition(4, ErrorCode.none, 9, 9, 0, [], -1, (1, 5), None, None),
]


def frame(version: int) -> memoryview:
    call = Call(1, version, 5, None, 0)
    topic = ID if version >= 13 else "orders"
    parts = fetch_reply(call, 7, ErrorCode.none, 42, [(topic, PARTITIONS)])
    return memoryview(b"".join(bytes(part) for part in parts))[4:]  # type: ignore[arg-type]


@pytest.mark.parametrize("version", range(4, NEWEST + 1))
def test_every_version_reads_as_kio_reads_it(version: int) -> None:
    data = frame(version)
    mine, theirs = read_fetch_response(version, data), decode_reply(1, version, data)
    assert mine.session_id == (42 if version >= 7 else 0)
    (topic,) = theirs.responses
    assert len(mine.partitions) == len(topic.partitions) == 3
    for ours, told in zip(mine.partitions, topic.partitions, strict=True):
        assert ours.topic == (topic.topic_id if version >= 13 else topic.topic)
        assert ours.partition == told.partition_index
        assert ours.error_code == told.error_code
        assert ours.high_watermark == told.high_watermark
        assert ours.stable_offset == told.last_stable_offset
        assert ours.log_start == (told.log_start_offset if version >= 5 else -1)
        assert ours.preferred_replica == (told.preferred_read_replica if version >= 11 else -1)
        assert bytes(ours.records) == bytes(told.records or b"")
        aborted = [
            (each.producer_id, each.first_offset) for each in told.aborted_transactions or ()
        ]
        assert list(ours.aborted) == aborted
    leader = mine.partitions[1].leader
    assert leader == ((2, 8) if version >= 12 else None)
    assert mine.partitions[2].diverging == ((1, 5) if version >= 12 else None)
    assert mine.partitions[0].diverging is None


def test_records_are_not_copied() -> None:
    data = frame(12)
    assert read_fetch_response(12, data).partitions[0].records.obj is data.obj


@given(st.integers(4, NEWEST), st.integers(0, 200))
def test_a_frame_that_is_cut_short_does_not_read(version: int, size: int) -> None:
    whole = frame(version)
    if size < len(whole):
        with pytest.raises(Disconnect):
            read_fetch_response(version, whole[:size])


@given(st.integers(4, NEWEST), st.binary(max_size=80))
def test_nothing_worse_comes_of_bytes_that_are_no_reply(version: int, data: bytes) -> None:
    with contextlib.suppress(Disconnect):
        read_fetch_response(version, memoryview(data))
