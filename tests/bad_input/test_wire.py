"""Frames that no client sends, and peers that do not keep up: closed, said once, paid for by them.

What is closed is closed with one line in the log that names the peer and the reason.
"""

from __future__ import annotations

import re
import struct
import time
from typing import Final

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from tests.bad_input.conftest import BrokerOnClock, MakeTopic
from tests.bad_input.raw_frames import Lines, framed, plain, tagged
from tests.raw_requests import (
    API_VERSIONS,
    FETCH,
    METADATA,
    PRODUCE,
    Line,
    batch,
    fetch_fields,
    produced,
)

MOST: Final = b"\x7f\xff\xff\xff"
MANY: Final = (2_000_000).to_bytes(4, "big")
SIX_BYTES: Final = b"\xff\xff\xff\xff\xff\x01"
COMPACT_MOST: Final = b"\xff\xff\xff\xff\x07"


TLS_HELLO: Final = bytes.fromhex("16030100c8010000c40303") + bytes(190)
CLOSED: Final[dict[str, tuple[bytes, str]]] = {
    "size -1": (b"\xff\xff\xff\xff", "request size -1 is too small"),
    "size of the smallest number": (b"\x80\0\0\0", "request size -2147483648 is too small"),
    "size 0": (b"\0\0\0\0", "request size 0 is too small"),
    "size 7": (b"\0\0\0\7" + bytes(7), "request size 7 is too small"),
    "size above socket.request.max.bytes": (
        struct.pack(">i", (8 << 20) + 1),
        "above socket.request.max.bytes",
    ),
    "size of all memory": (MOST, "above socket.request.max.bytes"),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", "looks like HTTP"),
    "HTTP POST": (b"POST /topics HTTP/1.1\r\n\r\n", "looks like HTTP"),
    "a TLS hello": (TLS_HELLO, "looks like a TLS handshake"),
    "a header that ends early": (framed(struct.pack(">hhi", METADATA, 1, 7)), "cut short"),
    "a client id past the end": (plain(METADATA, 1, client=b"\0\x50x"), "cut short"),
    "a client id of length -2": (plain(METADATA, 1, client=b"\xff\xfe"), "client id"),
    "a flexible header without tags": (plain(METADATA, 9), "cut short"),
    "an unknown API": (plain(999, 0), "api key 999"),
    "a negative API": (plain(-1, 0), "api key -1"),
    "a removed API version": (plain(PRODUCE, 2, bytes(10)), "version 2 of Produce"),
    "an API version to come": (tagged(METADATA, 99, b"\0\0\0\0"), "version 99 of Metadata"),
    "a negative version": (plain(METADATA, -1, b"\0\0\0\0"), "version -1 of Metadata"),
    "an array of 2^31-1": (plain(METADATA, 1, MOST), "array length (2147483647)"),
    "a compact array of 2^31-1": (tagged(METADATA, 9, COMPACT_MOST), "array length"),
    "an array of -2": (plain(METADATA, 1, b"\xff\xff\xff\xfe"), "array length (-2)"),
    "a million elements": (plain(METADATA, 1, MANY + bytes(2) * 2_000_000), "array length"),
    "a million empty structs": (
        plain(FETCH, 4, struct.pack(">iiiib", -1, 0, 1, 1, 0) + MANY + bytes(6) * 1_000_000),
        "array length",
    ),
    "null where a name must be": (plain(METADATA, 1, b"\0\0\0\1\xff\xff"), "negative length"),
    "a null compact name": (tagged(METADATA, 9, b"\2\0\0\0\0\0"), "not nullable"),
    "null for an array": (plain(FETCH, 4, bytes(17) + b"\xff\xff\xff\xff"), "array length (-1)"),
    "a varint of six bytes": (tagged(METADATA, 9, SIX_BYTES), "too long"),
    "a tag count of six bytes": (tagged(METADATA, 9, b"\1\0\0\0" + SIX_BYTES), "too long"),
    "a tag past the end": (tagged(METADATA, 9, b"\1\0\0\0\1\5\x50x"), "past the end"),
    "a header tag past the end": (tagged(METADATA, 9, b"", b"\1\5\x50x"), "past the end"),
    "a million tags": (tagged(METADATA, 9, b"\1\0\0\0" + b"\xbf\x84\x3d"), "too many tagged"),
    "a million tags that are there": (
        tagged(METADATA, 9, b"\1\0\0\0" + b"\xc0\x84\x3d" + b"\x64\0" * 1_000_000),
        "too many tagged fields (1000000)",
    ),
    "10,001 tags of a header": (
        tagged(METADATA, 9, b"", b"\x91\x4e" + b"\x64\0" * 10_001),
        "too many tagged fields (10001)",
    ),
    "10,001 tags of a struct": (
        tagged(METADATA, 9, b"\2\2t" + b"\x91\x4e" + b"\x64\0" * 10_001),
        "too many tagged fields (10001)",
    ),
    "Produce with 10,001 tags in two structs": (
        tagged(PRODUCE, 9, b"\0\0\1\0\0\0\0\2\2t\3" + (b"\0\0\0\0\0" + b"\x89\x27"
               + b"\x64\0" * 5_001) * 2),
        "too many tagged fields (5001)",
    ),
    "a name that is not UTF-8": (plain(METADATA, 1, b"\0\0\0\1\0\2\xff\xfe"), "decode"),
    "a string past the end": (plain(METADATA, 1, b"\0\0\0\1\x7f\xffab"), "cut short"),
    "a message that ends early": (plain(FETCH, 4, bytes(3)), "cut short"),
    "Produce with an array of 2^31-1": (
        plain(PRODUCE, 3, b"\xff\xff" + struct.pack(">hi", 1, 5) + MOST),
        "array length",
    ),
    "Produce with records of length -2": (
        plain(PRODUCE, 3, b"\xff\xff\0\1" + bytes(4) + b"\0\0\0\1\0\1t\0\0\0\1" + bytes(4)
              + b"\xff\xff\xff\xfe"),
        "negative length",
    ),
    "Produce with records past the end": (
        plain(PRODUCE, 3, b"\xff\xff\0\1" + bytes(4) + b"\0\0\0\1\0\1t\0\0\0\1" + bytes(4) + MOST),
        "cut short",
    ),
    "Produce of a null topic": (
        plain(PRODUCE, 3, b"\xff\xff\0\1" + bytes(4) + b"\0\0\0\1\xff\xff" + bytes(4)),
        "topic name is null",
    ),
}  # fmt: skip


@pytest.mark.spec("NET-15", "NET-17", "NET-21")
@pytest.mark.parametrize("wrong", CLOSED)
def test_what_cannot_be_read_closes_the_connection_with_one_line(
    clients: str, complaints: Lines, wrong: str
) -> None:
    data, reason = CLOSED[wrong]
    with Line(clients) as line:
        line.send(data)
        assert line.is_closed()
        [said] = complaints()
        assert reason in said
        assert re.match(r"closed connection from 127\.0\.0\.1:\d+ on listener CLIENTS: ", said)
        assert "\n" not in said
    with Line(clients) as line:  # and nobody else notices
        assert line.ask(API_VERSIONS, 0).error_code is ErrorCode.none


@pytest.mark.parametrize("version", [5, 99, 32_767])
def test_an_unknown_version_of_apiversions_is_answered_in_version_0(
    line: Line, version: int
) -> None:
    line.send(tagged(API_VERSIONS, version, b"whatever it will hold"))
    reply = line.receive()
    assert reply is not None
    told = wire.decode_reply(API_VERSIONS, 0, memoryview(reply))
    assert told.error_code is ErrorCode.unsupported_version
    assert {key.api_key for key in told.api_keys} == {API_VERSIONS}, "enough to ask again"


@pytest.mark.parametrize("client", [b"\xff\xfe\xfd", b"a\r\nINFO forged", b"\x1b[31mred", b"\0"])
def test_a_strange_client_id_is_served_and_never_shown_raw(
    line: Line, complaints: Lines, client: bytes
) -> None:
    client_id = struct.pack(">h", len(client)) + client
    line.send(plain(API_VERSIONS, 0, client=client_id))
    assert line.receive() is not None
    line.send(plain(METADATA, 77, client=client_id))
    assert line.is_closed()
    assert all(said.isprintable() for said in complaints())


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("evil\nname", "1"),
        ("", "1"),
        ("ok", ""),
        ("-ok", "1"),
        ("ok", "1;"),
        ("x" * 100, "\x1b[2J"),
    ],
)
def test_a_software_name_is_a_name(line: Line, name: str, version: str) -> None:
    told = {"client_software_name": name, "client_software_version": version}
    assert line.ask(API_VERSIONS, 3, **told).error_code is ErrorCode.invalid_request
    told = {"client_software_name": "fine-1.0", "client_software_version": "2.4.1"}
    assert line.ask(API_VERSIONS, 3, **told).error_code is ErrorCode.none


# Peers that do not keep up


@pytest.mark.parametrize("sent", [b"\0", b"\0\0\1\0", b"\0\0\1\0\0\3\0\1rest"])
def test_a_frame_that_takes_too_long_is_given_up(
    broker: BrokerOnClock, clients: str, complaints: Lines, sent: bytes
) -> None:
    with Line(clients) as line:
        line.send(sent)
        with Line(clients) as other:  # by its answer the bytes above have been seen
            assert other.ask(API_VERSIONS, 0).error_code is ErrorCode.none
        broker.clock.added_ms += 40_000
        assert line.is_closed()
    [said] = complaints()
    assert "request timed out" in said


def test_an_idle_connection_is_closed_without_a_word(
    broker: BrokerOnClock, clients: str, complaints: Lines
) -> None:
    with Line(clients) as line:
        assert line.ask(API_VERSIONS, 0).error_code is ErrorCode.none
        broker.clock.added_ms += 601_000
        assert line.is_closed()
    assert complaints() == []


def test_ten_thousand_pipelined_requests_are_answered_in_order(line: Line) -> None:
    """The broker stops reading while replies wait, so sender and reader must both go on."""
    requests = b"".join(wire.encode_request(API_VERSIONS, 0, n, "test", {}) for n in range(10_000))
    sent = 0
    line.socket.setblocking(False)
    while True:  # as much as is taken while nothing is read
        try:
            sent += line.socket.send(requests[sent : sent + 65_536])
        except BlockingIOError:
            break
        if sent == len(requests):
            break
    line.socket.settimeout(20)
    for number in range(10_000):
        if sent < len(requests):
            line.socket.sendall(requests[sent : sent + 64])
            sent = min(sent + 64, len(requests))
        reply = line.receive()
        assert reply is not None
        assert int.from_bytes(reply[:4], "big") == number


def test_a_peer_that_never_reads_is_bounded_and_then_closed(
    broker: BrokerOnClock, clients: str, complaints: Lines
) -> None:
    """What it may have the broker hold is a small multiple of a reply; then nobody reads it."""
    request = wire.encode_request(API_VERSIONS, 0, 1, "test", {})
    with Line(clients) as line:
        line.socket.settimeout(1)
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 256 << 20:
                line.socket.sendall(request * 1000)
                sent += len(request) * 1000
        assert sent < 64 << 20  # what the system's own buffers took, and little more
        broker.clock.added_ms += 601_000
        with Line(clients) as other:
            deadline = time.monotonic() + 10
            while not complaints() and time.monotonic() < deadline:
                assert other.ask(API_VERSIONS, 0).error_code is ErrorCode.none
        [said] = complaints()
        assert "has not read its replies" in said


def test_a_fetch_may_wait_as_long_as_it_likes_and_still_hears_of_records(
    line: Line, clients: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    fields = {**fetch_fields(topic), "max_wait": 2**31 - 1}
    line.send(wire.encode_request(FETCH, 12, 9, "test", fields))
    with Line(clients) as other:
        assert produced(other, topic, batch("v")).error_code is ErrorCode.none
    reply = line.receive()
    assert reply is not None
    told = wire.decode_reply(FETCH, 12, memoryview(reply))
    assert told.responses[0].partitions[0].high_watermark == 1
