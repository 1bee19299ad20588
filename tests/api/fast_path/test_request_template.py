"""A template reads what the full decoder reads, or nothing; its replies are the full encoder's."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.api.fast_path.request_template import VERSIONS, RequestTemplate, template_of
from ottla.model.errors import Disconnect
from ottla.protocol import wire
from ottla.protocol.hot import ProducedPartition, decode_produce, produce_reply

TOPIC_ID = UUID(int=77)
RECORDS = bytes(range(200))


def frame_of(
    version: int,
    records: bytes | None = RECORDS,
    *,
    number: int = 5,
    topics: int = 1,
    index: int = 3,
    **more: Any,
) -> memoryview:
    topic = {
        "name": more.get("name", "orders"),
        "topic_id": TOPIC_ID,
        "partition_data": [{"index": index, "records": records}] * more.get("partitions", 1),
    }
    fields = {
        "transactional_id": more.get("transactional_id"),
        "acks": more.get("acks", 1),
        "timeout": 1_000,
        "topic_data": [topic] * topics,
    }
    return memoryview(wire.encode_request(0, version, number, more.get("client", "c"), fields))[4:]


def learnt(frame: memoryview) -> RequestTemplate | None:
    call = wire.parse_call(frame)
    return template_of(call, frame, decode_produce(call, frame))


@pytest.mark.spec("WIRE-10")
@pytest.mark.parametrize("version", sorted(VERSIONS))
@pytest.mark.parametrize("size", [61, 126, 127, 128, 16_000, 16_382])
def test_the_next_request_is_read_as_the_decoder_reads_it(version: int, size: int) -> None:
    template = learnt(frame_of(version))
    assert template is not None
    frame = frame_of(version, bytes(size), number=-9, index=4711)
    read = template.read(frame)
    if read is None:
        assert version >= 9 and size < 127, "only what is small may be left"
        return
    correlation, index, records = read
    assert (correlation, index, bytes(records)) == (-9, 4711, bytes(size))


@pytest.mark.spec("WIRE-12", "WIRE-13")
@pytest.mark.parametrize("version", sorted(VERSIONS))
def test_a_reply_is_byte_for_byte_the_encoders(version: int) -> None:
    frame = frame_of(version)
    template, call = learnt(frame), wire.parse_call(frame)
    assert template is not None
    topic = TOPIC_ID if version >= 13 else "orders"
    full = produce_reply(call, [(topic, [ProducedPartition(3, base_offset=1 << 40,
                                                           log_start_offset=12)])])  # fmt: skip
    assert template.reply(call.correlation_id, 3, 1 << 40, 12) == full


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize(
    "other",
    [
        {"topics": 2}, {"topics": 0}, {"partitions": 2}, {"partitions": 0}, {"records": None},
        {"transactional_id": "t"},
    ],
)  # fmt: skip
def test_anything_but_one_record_set_outside_transactions_has_no_shape(
    version: int, other: dict[str, Any]
) -> None:
    assert learnt(frame_of(version, **other)) is None


@pytest.mark.parametrize("version", [3, 4, 5, 6, 8])
def test_versions_that_clients_of_today_do_not_speak_have_no_shape(version: int) -> None:
    assert learnt(frame_of(version)) is None


@pytest.mark.parametrize("version", sorted(VERSIONS))
@pytest.mark.parametrize(
    "other",
    [
        {"topics": 2}, {"partitions": 2}, {"name": "order_"}, {"name": "orders2"}, {"acks": -1},
        {"client": "d"}, {"client": "cc"}, {"transactional_id": "t"}, {"records": None},
        {"records": b""},
    ],
)  # fmt: skip
def test_a_request_that_differs_elsewhere_is_not_read(version: int, other: dict[str, Any]) -> None:
    template = learnt(frame_of(version))
    assert template is not None
    if "name" in other and version >= 13:
        return  # names are not sent there
    read = template.read(frame_of(version, **other))
    assert read is None or bytes(read[2]) == other.get("records", RECORDS)
    assert read is None or "records" in other


@given(st.sampled_from(sorted(VERSIONS)), st.data())
def test_whatever_arrives_is_read_as_the_decoder_reads_it_or_not_at_all(
    version: int, data: st.DataObject
) -> None:
    template = learnt(frame_of(version))
    assert template is not None
    frame = bytearray(frame_of(version, data.draw(st.binary(max_size=300))))
    for _ in range(data.draw(st.integers(0, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    mutated = memoryview(frame)[: data.draw(st.integers(0, len(frame)))].toreadonly()
    read = template.read(mutated)
    if read is None:
        return
    call = wire.parse_call(mutated)
    try:
        request = decode_produce(call, mutated)
    except Disconnect:
        raise AssertionError("the decoder refuses what the template reads") from None
    ((_, _, ((index, records),)),) = request.topics
    assert records is not None
    assert read == (call.correlation_id, index, records)
    assert (request.acks, request.transactional_id) == (template.acks, None)
