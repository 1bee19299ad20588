"""Bytes of clients that have not logged in: refused before memory or time is spent on them.

Each line is closed with one line in the log, and allocates no more than its own bytes.
"""

from __future__ import annotations

import gzip
import struct
import threading
import tracemalloc
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar, Final

import pytest

from ottla.model.errors import ErrorCode, UserError
from ottla.security.sasl.key_sets import READ_MAX_BYTES, read_address
from ottla.testing import Broker
from tests.bad_input.conftest import BrokerOnClock
from tests.bad_input.raw_frames import Lines, framed, plain, tagged
from tests.raw_requests import API_VERSIONS, FETCH, METADATA, PRODUCE, Line

HANDSHAKE: Final = 17
AUTHENTICATE: Final = 36
MOST: Final = b"\x7f\xff\xff\xff"
COMPACT_MOST: Final = b"\xff\xff\xff\xff\x07"
ALLOCATED_MAX_BYTES: Final = 4 << 20
"""A frame of at most 512 KiB, its copy for the log, and what a connection is made of."""
JAAS: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS: Final = {
    "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.clients.plain.sasl.jaas.config": f'{JAAS} user_alice="secret";',
}
PICKED: Final = plain(HANDSHAKE, 1, b"\0\5PLAIN")
BOMB: Final = gzip.compress(bytes(300 << 20), 9)
BEFORE_LOGIN: Final[dict[str, tuple[bytes, str]]] = {
    "a frame above 512 KiB": (struct.pack(">i", (512 << 10) + 1), "524289"),
    "a frame of all memory": (MOST, "2147483647"),
    "Metadata": (plain(METADATA, 1, b"\0\0\0\0"), "API key 3 before login"),
    "Metadata of a million topics": (plain(METADATA, 1, MOST), "API key 3 before login"),
    "Produce of a compressed 300 MiB": (plain(PRODUCE, 3, BOMB), "API key 0 before login"),
    "Fetch as a replica": (plain(FETCH, 4, bytes(30)), "API key 1 before login"),
    "an API that brokers use": (plain(4, 0, bytes(30)), "API key 4 before login"),
    "an unknown API": (plain(999, 0), "API key 999 before login"),
    "a token before a mechanism": (plain(AUTHENTICATE, 0, bytes(8)), "API key 36 before login"),
    "a mechanism twice": (PICKED + PICKED, "API key 17 before login"),
    "a version to come": (plain(HANDSHAKE, 9, bytes(8)), "version 9 of API key 17"),
    "a mechanism of length -2": (plain(HANDSHAKE, 1, b"\xff\xfe"), "negative length"),
    "a mechanism past the end": (plain(HANDSHAKE, 1, b"\x7f\xffPLAIN"), "cut short"),
    "a token of 2^31-1 bytes": (PICKED + plain(AUTHENTICATE, 0, MOST), "cut short"),
    "a compact token of 2^31-1": (PICKED + tagged(AUTHENTICATE, 2, COMPACT_MOST), "cut short"),
    "a null token": (PICKED + plain(AUTHENTICATE, 0, b"\xff\xff\xff\xff"), "negative length"),
    "10,001 tags of a header": (
        tagged(API_VERSIONS, 3, b"", b"\x91\x4e" + b"\x64\0" * 10_001),
        "too many tagged fields (10001)",
    ),
    "a header of 250,000 tags": (
        tagged(API_VERSIONS, 3, b"", b"\x90\xa1\x0f" + b"\x64\0" * 250_000),
        "too many tagged fields (250000)",
    ),
    "a million tags that are not there": (
        tagged(AUTHENTICATE, 2, b"", b"\xc0\x84\x3d"), "too many tagged",
    ),
    "a client id of length -2": (plain(HANDSHAKE, 1, client=b"\xff\xfe"), "client id"),
    "a size of 0": (b"\0\0\0\0", "request size 0 is too small"),
    "HTTP": (b"GET / HTTP/1.1\r\n\r\n", "looks like HTTP"),
    "a header that ends early": (framed(struct.pack(">hhi", HANDSHAKE, 1, 7)), "cut short"),
}  # fmt: skip


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerOnClock]:
    with BrokerOnClock(SETTINGS) as running:
        yield running


@pytest.mark.spec("SEC-05", "NET-17")
@pytest.mark.parametrize("wrong", BEFORE_LOGIN)
def test_before_a_login_bad_bytes_cost_no_memory_and_one_line(
    clients: str, complaints: Lines, wrong: str
) -> None:
    data, reason = BEFORE_LOGIN[wrong]
    tracemalloc.start()
    try:
        with Line(clients) as line:
            line.send(data)
            while line.receive() is not None:  # what was answered before, such as a handshake
                pass
            allocated = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    [said] = complaints()
    assert reason in said
    assert said.startswith("closed connection from 127.0.0.1:")
    assert len(said) < 400
    assert allocated < ALLOCATED_MAX_BYTES
    with Line(clients) as line:  # and nobody else notices
        assert line.ask(API_VERSIONS, 0).error_code is ErrorCode.none


CLASSES: Final = {
    "a login module": {
        "listener.name.clients.plain.sasl.jaas.config": "com.sun.security.auth.module."
        'JndiLoginModule required user.provider.url="ldap://evil";'
    },
    "a module of ours": {
        "listener.name.clients.plain.sasl.jaas.config": "ottla.testing.Broker required;"
    },
    "an authorizer": {"authorizer.class.name": "os.system"},
}


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize("named", CLASSES)
def test_a_class_that_a_setting_names_is_refused_and_not_loaded(named: str) -> None:
    with pytest.raises(UserError), Broker({**SETTINGS, **CLASSES[named]}):
        pass


class Answers(BaseHTTPRequestHandler):
    """A host that sends its readers elsewhere, or too much."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(302 if self.path == "/keys" else 200)
        self.send_header("Location", "/inside")
        self.end_headers()
        if self.path == "/large":
            self.wfile.write(bytes(READ_MAX_BYTES + 1))

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is to be seen of it."""


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize(("path", "text"), [("/keys", "Found"), ("/large", "more than")])
def test_keys_are_not_read_from_where_a_redirect_points_nor_without_a_bound(
    path: str, text: str
) -> None:
    Answers.asked.clear()
    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with pytest.raises(OSError, match=text):
            read_address(f"http://127.0.0.1:{server.server_port}{path}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert Answers.asked == [path]
