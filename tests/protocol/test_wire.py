"""Frames become requests and fields become frames; what is wrong with one ends in Disconnect."""

from __future__ import annotations

import resource
import struct
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.index import api_key_map

from ottla.model.errors import Disconnect, ErrorCode
from ottla.protocol import wire
from ottla.protocol.encode import uvarint
from ottla.protocol.schema import MessageKind, message, versions
from tests.protocol.samples import (
    ALL_KEYS,
    SERVED,
    any_fields,
    as_kio,
    filled,
    messages,
    served_versions,
    sparse,
)


def frame_of(data: bytes) -> memoryview:
    assert struct.unpack(">i", data[:4])[0] == len(data) - 4
    return memoryview(data)[4:]


@pytest.mark.spec("WIRE-01", "WIRE-02", "WIRE-05")
@pytest.mark.parametrize("key", ALL_KEYS)
def test_every_request_survives_the_wire(key: int) -> None:
    for version, kind, entity in messages(key):
        if kind is not MessageKind.REQUEST:
            continue
        for fields in (filled(entity), sparse(entity)):
            frame = frame_of(wire.encode_request(key, version, 77, "me", fields))
            call = wire.parse_call(frame)
            assert (call.key, call.version, call.correlation_id) == (key, version, 77)
            assert call.client_id == (None if (key, version) == (7, 0) else "me")
            assert wire.decode(call, frame) == as_kio(entity, fields)


@pytest.mark.spec("WIRE-03", "WIRE-09")
@pytest.mark.parametrize("key", ALL_KEYS)
def test_every_reply_survives_the_wire(key: int) -> None:
    for version, kind, entity in messages(key):
        if kind is not MessageKind.RESPONSE:
            continue
        for fields in (filled(entity), sparse(entity)):
            frame = frame_of(wire.reply(wire.Call(key, version, -77, None, 0), fields))
            assert struct.unpack(">i", frame[:4]) == (-77,)
            assert wire.decode_reply(key, version, frame) == as_kio(entity, fields)


@given(st.data())
def test_any_request_survives_the_wire(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(ALL_KEYS))
    version = data.draw(st.sampled_from(served_versions(key)))
    fields = data.draw(any_fields(message(key, version, MessageKind.REQUEST)))
    frame = frame_of(wire.encode_request(key, version, 1, None, fields))
    decoded = wire.decode(wire.parse_call(frame), frame)
    assert decoded == as_kio(message(key, version, MessageKind.REQUEST), fields)


def test_headers_are_flexible_from_the_version_that_kio_says() -> None:
    for key in (*SERVED, *range(4, 8)):
        for version in versions(key):
            header = message(key, version, MessageKind.REQUEST).__header_schema__  # type: ignore[attr-defined]
            assert wire.Call(key, version, 0, None, 0).flexible == (header.__version__ == 2)
    assert set(wire.FLEXIBLE_SINCE) <= set(api_key_map) | set(range(4, 8))


@pytest.mark.spec("WIRE-07")
def test_the_header_of_an_api_versions_reply_never_becomes_flexible() -> None:
    fields = {"error_code": ErrorCode.none, "api_keys": []}
    for version in range(5):
        frame = wire.reply(wire.Call(18, version, 1, None, 0), fields)
        assert frame[8:10] == b"\0\0"  # the error code comes right after the correlation id


def test_a_metadata_request_is_laid_out_as_the_protocol_says() -> None:
    frame = wire.encode_request(3, 1, 5, "cli", {"topics": [{"name": "t"}]})
    assert frame.hex(" ") == (
        "00 00 00 14 00 03 00 01 00 00 00 05 00 03 63 6c 69 00 00 00 01 00 01 74"
    )


def test_the_header_of_an_unknown_api_is_still_read() -> None:
    call = wire.parse_call(memoryview(struct.pack(">hhih3s", 999, 42, 7, 3, b"abc") + b"??"))
    assert (call.key, call.version, call.correlation_id, call.client_id) == (999, 42, 7, "abc")
    with pytest.raises(Disconnect, match="unknown"):
        wire.decode(call, memoryview(b""))


@pytest.mark.spec("WIRE-02", "REC-42")
def test_a_client_id_may_be_null_empty_or_not_utf_8() -> None:
    head = struct.pack(">hhi", 3, 1, 7)
    assert wire.parse_call(memoryview(head + b"\xff\xff")).client_id is None
    assert wire.parse_call(memoryview(head + b"\x00\x00")).client_id == ""
    odd = wire.parse_call(memoryview(head + b"\x00\x02\xff\n"))
    assert odd.client_id == "\N{REPLACEMENT CHARACTER}\n"


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x00\x03\x00",
        struct.pack(">hhi", 3, 1, 7),
        struct.pack(">hhih", 3, 1, 7, -2),
        struct.pack(">hhih", 3, 1, 7, 5) + b"abc",
        struct.pack(">hhih", 3, 9, 7, -1),
        struct.pack(">hhih", 3, 9, 7, -1) + b"\x01\x00",
        struct.pack(">hhih", 3, 9, 7, -1) + b"\x01\x00\x7f",
        struct.pack(">hhih", 3, 9, 7, -1) + b"\xff\xff\xff\xff\x7f",
    ],
)
def test_a_cut_or_lying_header_ends_the_connection(frame: bytes) -> None:
    with pytest.raises(Disconnect):
        wire.parse_call(memoryview(frame))


def test_tagged_fields_in_a_header_are_passed_over() -> None:
    plain = wire.encode_request(3, 9, 7, "c", sparse(message(3, 9, MessageKind.REQUEST)))[4:]
    with_tag = memoryview(plain[:11] + b"\x01\x05\x02ab" + plain[12:])
    call = wire.parse_call(with_tag)
    assert wire.decode(call, with_tag).topics is None


@pytest.mark.spec("WIRE-08")
@pytest.mark.parametrize(
    ("key", "version", "body"),
    [
        (3, 1, b"\x00\x00\x00\x01\x00\x02\xff\xfe"),  # text that is not UTF-8
        (3, 12, b"\xff\xff\xff\xff\x07" + bytes(64)),
        (8, 2, b"\0\1g\0\0\0\1\0\1m" + b"\x7f" + b"\xff" * 7 + bytes(4)),  # 292 million years
        (12, 0, b""),
    ],
)
def test_a_body_that_does_not_parse_ends_the_connection(
    key: int, version: int, body: bytes
) -> None:
    call = wire.Call(key, version, 1, None, 0)
    with pytest.raises(Disconnect):
        wire.decode(call, memoryview(body))


@settings(max_examples=300)
@given(st.data())
def test_no_damage_to_a_request_does_anything_but_disconnect(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(ALL_KEYS))
    version = data.draw(st.sampled_from(served_versions(key)))
    fields = filled(message(key, version, MessageKind.REQUEST))
    frame = bytearray(wire.encode_request(key, version, 1, "c", fields)[4:])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(frame)))
        frame[at : at + data.draw(st.integers(0, 4))] = data.draw(
            st.sampled_from([b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\x80" * 5])
            | st.binary(max_size=5)
        )
    view = memoryview(bytes(frame))
    with suppress(Disconnect):
        wire.decode(wire.parse_call(view), view)


@pytest.mark.parametrize("count", [10_001, 10_000_000])
def test_tagged_fields_of_a_header_are_counted_before_they_are_walked(count: int) -> None:
    head = b"\0\3\0\x0c\0\0\0\1\xff\xff"  # Metadata v12 without a client id
    frame = memoryview(head + uvarint(count) + b"\x64\x00" * min(count, 20_000))
    with pytest.raises(Disconnect, match="too many tagged fields"):
        wire.parse_call(frame)


def test_a_header_may_have_ten_thousand_tagged_fields() -> None:
    head = b"\0\3\0\x0c\0\0\0\1\xff\xff"
    frame = memoryview(head + uvarint(10_000) + b"\x64\x00" * 10_000 + b"\x00\x00\x00\x00")
    assert wire.decode(wire.parse_call(frame), frame).topics is None


def test_a_flood_of_tiny_elements_stays_within_its_memory() -> None:
    """The most that passes the guard costs tens of megabytes, not hundreds."""
    count = 49_900  # times five values each: just under the budget
    body = memoryview(count.to_bytes(4, "big") + bytes(2) * count)
    call = wire.Call(3, 1, 1, None, 0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(wire.decode(call, body).topics) == count
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024
    with pytest.raises(Disconnect):
        wire.decode(call, memoryview((count * 2).to_bytes(4, "big") + bytes(4) * count))


@pytest.mark.parametrize("frame", [b"", b"\0\0\0\1", b"\0\0\0\1\x01", b"\0\0\0\1\0\xff"])
def test_a_broken_reply_ends_the_connection(frame: bytes) -> None:
    with pytest.raises(Disconnect):
        wire.decode_reply(12, 4, memoryview(frame))


@pytest.mark.spec("WIRE-52", "WIRE-53")
def test_error_codes_have_kafkas_numbers() -> None:
    numbers = {
        "offset_out_of_range": 1, "corrupt_message": 2, "unknown_topic_or_partition": 3,
        "leader_not_available": 5, "not_leader_or_follower": 6, "request_timed_out": 7,
        "message_too_large": 10, "stale_controller_epoch": 11, "offset_metadata_too_large": 12,
        "coordinator_load_in_progress": 14, "coordinator_not_available": 15,
        "not_coordinator": 16, "not_enough_replicas": 19, "not_enough_replicas_after_append": 20,
        "invalid_required_acks": 21, "illegal_generation": 22, "inconsistent_group_protocol": 23,
        "invalid_group_id": 24, "unknown_member_id": 25, "invalid_session_timeout": 26,
        "rebalance_in_progress": 27, "invalid_timestamp": 32, "unsupported_version": 35,
        "not_controller": 41, "invalid_request": 42, "out_of_order_sequence_number": 45,
        "duplicate_sequence_number": 46, "invalid_producer_epoch": 47, "invalid_txn_state": 48,
        "invalid_producer_id_mapping": 49, "invalid_transaction_timeout": 50,
        "concurrent_transactions": 51, "transaction_coordinator_fenced": 52,
        "kafka_storage_error": 56, "unknown_producer_id": 59, "non_empty_group": 68,
        "group_id_not_found": 69, "fetch_session_id_not_found": 70,
        "invalid_fetch_session_epoch": 71, "fenced_leader_epoch": 74, "unknown_leader_epoch": 75,
        "stale_broker_epoch": 77, "member_id_required": 79, "group_max_size_reached": 81,
        "fenced_instance_id": 82,
    }  # fmt: skip
    assert {name: ErrorCode[name].value for name in numbers} == numbers
