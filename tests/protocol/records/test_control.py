"""The record that ends a transaction, as coordinators write it and readers read it."""

from __future__ import annotations

import pytest

from ottla.protocol.records.batch import build
from ottla.protocol.records.control import (
    ControlType,
    EndTxnMarker,
    build_marker,
    control_type,
    decode_marker,
    encode_marker,
    usual_marker,
)
from ottla.protocol.records.header import CorruptBatch, read_header
from ottla.protocol.records.record import NewRecord, read_records


@pytest.mark.spec("REC-37")
def test_a_marker_is_a_type_and_a_coordinator_epoch() -> None:
    abort, commit = (EndTxnMarker(kind, 300) for kind in ControlType)
    assert encode_marker(abort) == (b"\0\0\0\0", b"\0\0\0\0\x01\x2c")
    assert encode_marker(commit) == (b"\0\0\0\1", b"\0\0\0\0\x01\x2c")
    for marker in (abort, commit):
        assert decode_marker(*encode_marker(marker)) == marker


@pytest.mark.spec("REC-36", "REC-38")
def test_a_control_batch_is_transactional_and_holds_one_record() -> None:
    marker = EndTxnMarker(ControlType.COMMIT, 4)
    batch = build_marker(
        marker, producer_id=9, producer_epoch=2, timestamp=1_000, base_offset=77, leader_epoch=5
    )
    header = read_header(batch)
    assert header.is_transactional
    assert header.is_control
    assert (header.count, header.base_offset, header.next_offset) == (1, 77, 78)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, -1)
    assert (header.leader_epoch, header.max_timestamp) == (5, 1_000)
    (record,) = read_records(batch)
    assert decode_marker(record.key, record.value) == marker


@pytest.mark.parametrize("kind", list(ControlType))
def test_a_marker_as_coordinators_write_it_is_read_at_a_glance(kind: ControlType) -> None:
    marker = EndTxnMarker(kind, -3)
    batch = build_marker(marker, producer_id=9, producer_epoch=2, timestamp=1_000)
    assert usual_marker(batch) == usual_marker(memoryview(batch)) == marker


@pytest.mark.parametrize(
    "batch",
    [
        build([], control=True, last_offset_delta=0),
        build([NewRecord(b"\0\0\0\2", bytes(6))], control=True),
        build([NewRecord(b"\xff\xff\0\1", bytes(6))], control=True),
        build([NewRecord(b"\0\0\0\1", b"\xff\xff" + bytes(4))], control=True),
        build([NewRecord(bytes(6), bytes(4))], control=True),
        build([NewRecord(bytes(4), bytes(6)), NewRecord(bytes(4), bytes(6))], control=True),
        build([NewRecord(bytes(4), bytes(6), (("h", b"v"),))], control=True),
    ],
)
def test_anything_else_is_not_and_has_to_be_read_whole(batch: bytes) -> None:
    assert usual_marker(batch) is None


def test_other_control_records_are_told_apart() -> None:
    assert control_type(b"\0\0\0\2") == 2
    assert decode_marker(b"\0\0\0\2", b"") is None


def test_later_versions_are_read_as_far_as_they_are_known() -> None:
    marker = decode_marker(b"\0\7\0\1future", b"\0\7\0\0\0\5future")
    assert marker == EndTxnMarker(ControlType.COMMIT, 5)


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b""), (b"", b""), (b"\0\0\0", b""), (b"\xff\xff\0\0", bytes(6)), (bytes(4), None),
     (bytes(4), bytes(5)), (bytes(4), b"\xff\xff" + bytes(4))],
)  # fmt: skip
def test_a_marker_that_is_cut_or_of_no_version_is_corrupt(
    key: bytes | None, value: bytes | None
) -> None:
    with pytest.raises(CorruptBatch):
        decode_marker(key, value)
