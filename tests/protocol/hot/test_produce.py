"""Produce: the same request and the same reply as kio's, without a copy of the records."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import Disconnect, ErrorCode
from ottla.protocol import wire
from ottla.protocol.hot import Endpoint, ProducedPartition, decode_produce, produce_reply
from ottla.protocol.hot.produce_request import MAX_PARTITIONS
from ottla.protocol.schema import MessageKind, message
from tests.protocol.samples import any_fields, filled, sparse

VERSIONS = range(3, 14)
RESULTS = [
    ProducedPartition(0, ErrorCode.none, 10, 1_700_000_000_000, 3),
    ProducedPartition(1, ErrorCode.not_leader_or_follower, current_leader=(4, 9)),
    ProducedPartition(
        2,
        ErrorCode.invalid_record,
        record_errors=[(0, "bad"), (7, None)],
        error_message="one or more records were refused",
    ),
]


def decoded_both_ways(version: int, fields: dict[str, Any]) -> tuple[Any, Any]:
    frame = memoryview(wire.encode_request(0, version, 1, "c", fields))[4:]
    call = wire.parse_call(frame)
    return decode_produce(call, frame), wire.decode(call, frame)


def assert_same(ours: Any, kios: Any) -> None:
    assert ours.transactional_id == kios.transactional_id
    assert (ours.acks, ours.timeout_ms) == (kios.acks, wire.ms(kios.timeout))
    assert len(ours.topics) == len(kios.topic_data)
    for (name, topic_id, partitions), topic in zip(ours.topics, kios.topic_data, strict=True):
        assert (name or "") == topic.name
        assert (topic_id or UUID(int=0)) == (topic.topic_id or UUID(int=0))
        assert [(index, records and bytes(records)) for index, records in partitions] == [
            (p.index, p.records) for p in topic.partition_data
        ]


@pytest.mark.spec("WIRE-10")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_reads_as_kio_reads_it(version: int) -> None:
    entity = message(0, version, MessageKind.REQUEST)
    for fields in (filled(entity), sparse(entity), filled(entity, count=150)):
        assert_same(*decoded_both_ways(version, fields))


@given(st.sampled_from(VERSIONS), st.data())
def test_any_request_reads_as_kio_reads_it(version: int, data: st.DataObject) -> None:
    fields = data.draw(any_fields(message(0, version, MessageKind.REQUEST)))
    assert_same(*decoded_both_ways(version, fields))


@pytest.mark.parametrize("version", VERSIONS)
def test_no_part_of_a_request_is_a_request(version: int) -> None:
    fields = filled(message(0, version, MessageKind.REQUEST), count=1)
    frame = memoryview(wire.encode_request(0, version, 1, "c", fields))[4:]
    call = wire.parse_call(frame)
    for end in range(call.body_at, len(frame)):
        with pytest.raises(Disconnect):
            decode_produce(call, frame[:end])
    assert decode_produce(call, memoryview(bytes(frame) + b"\0")) == decode_produce(call, frame)


def test_a_megabyte_of_records_is_not_copied() -> None:
    records = bytes(1 << 20)
    topic = {"name": "t", "partition_data": [{"index": 0, "records": records}]}
    fields = {"acks": 1, "timeout": 1, "topic_data": [topic]}
    frame = memoryview(wire.encode_request(0, 9, 1, "c", fields))[4:]
    tracemalloc.start()
    try:
        request = decode_produce(wire.parse_call(frame), frame)
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()
    (_, view), *_ = request.topics[0][2]
    assert view is not None
    assert view.obj is frame.obj
    assert view == records


@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize("length", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xff" * 4])
def test_a_lying_length_ends_the_connection(version: int, length: bytes) -> None:
    fields = {"acks": 1, "timeout": 1, "topic_data": []}
    frame = bytes(wire.encode_request(0, version, 1, None, fields)[4:])
    cut = 1 + 1 if version >= 9 else 4
    view = memoryview(frame[:-cut] + length)
    with pytest.raises(Disconnect):
        decode_produce(wire.parse_call(view), view)


@pytest.mark.parametrize("version", [3, 9])
def test_more_partitions_than_anyone_has_are_refused(version: int) -> None:
    count = MAX_PARTITIONS + 1
    topic = {"name": "t", "partition_data": [{"index": 0, "records": None}] * count}
    fields = {"acks": 1, "timeout": 1, "topic_data": [topic]}
    frame = memoryview(wire.encode_request(0, version, 1, "c", fields))[4:]
    with pytest.raises(Disconnect, match="array length"):
        decode_produce(wire.parse_call(frame), frame)


@pytest.mark.parametrize("version", [0, 2, 14])
def test_other_versions_are_not_decoded(version: int) -> None:
    with pytest.raises(Disconnect, match="unsupported version"):
        decode_produce(wire.Call(0, version, 1, None, 0), memoryview(b""))


@given(st.sampled_from(VERSIONS), st.data())
def test_no_damage_does_anything_but_disconnect(version: int, data: st.DataObject) -> None:
    fields = filled(message(0, version, MessageKind.REQUEST))
    frame = bytearray(wire.encode_request(0, version, 1, "c", fields)[4:])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(10, len(frame)))
        frame[at : at + data.draw(st.integers(0, 4))] = data.draw(
            st.sampled_from([b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f"]) | st.binary(max_size=5)
        )
    view = memoryview(bytes(frame))
    with suppress(Disconnect):
        decode_produce(wire.parse_call(view), view)


@pytest.mark.spec("WIRE-12", "WIRE-13")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("results", [RESULTS, RESULTS[:1], [], RESULTS * 60])
def test_a_reply_is_written_as_kio_writes_it(
    version: int, results: list[ProducedPartition]
) -> None:
    call = wire.Call(0, version, 1234, None, 0)
    topic = UUID(int=77) if version >= 13 else "tøpic"
    endpoints = [Endpoint(4, "host", 9092), Endpoint(5, "h", 1, "rack")]
    fields = {
        "responses": [
            {
                "name": topic,
                "topic_id": topic,
                "partition_responses": [fields_of_result(result) for result in results],
            }
        ],
        "throttle_time": 9,
        "node_endpoints": [endpoint._asdict() for endpoint in endpoints],
    }
    ours = produce_reply(call, [(topic, results)], throttle_ms=9, endpoints=endpoints)
    assert ours == wire.reply(call, fields)
    plain = produce_reply(call, [])
    assert plain == wire.reply(call, {"responses": []})


def fields_of_result(result: ProducedPartition) -> dict[str, Any]:
    fields = result._asdict()
    fields["log_append_time"] = fields.pop("log_append_time_ms")
    fields["record_errors"] = [
        {"batch_index": index, "batch_index_error_message": text}
        for index, text in result.record_errors
    ]
    if result.current_leader is not None:
        leader, epoch = result.current_leader
        fields["current_leader"] = {"leader_id": leader, "leader_epoch": epoch}
    return fields
